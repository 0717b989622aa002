//! The solver against another one, and against itself with less time.

use std::collections::{BTreeMap, BTreeSet};

use busbar::solve::file::{Program, lp};
use busbar::solve::knapsack::{Instance, Limits, Solution, Solver, solve};
use busbar::solve::random::{Family, Random};
use cplex_lp::{Read, Row, Terms};
use microlp::{ComparisonOp, OptimizationDirection, Problem, Variable};

mod cplex_lp;

/// Small programs of every family, with and without running jobs.
fn programs(jobs: u32, configs: u32, seeds: u64) -> impl Iterator<Item = (Random, Program)> {
    let kinds = Family::ALL.into_iter().flat_map(move |family| {
        [(0.0, 0), (0.0, jobs / 2), (0.5, 0), (0.5, jobs / 3)].into_iter().flat_map(
            move |(alpha, running)| {
                (1..=seeds).map(move |seed| Random { jobs, configs, family, alpha, running, seed })
            },
        )
    });
    kinds.map(|random| (random, random.generate().unwrap()))
}

/// The largest value by branch and bound over a linear program; nothing if nothing fits.
fn oracle(program: &Program) -> Option<f64> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let (mut nodes, mut power) = (Vec::new(), Vec::new());
    for job in &program.jobs {
        let mut one = Vec::new();
        for way in &job.configurations {
            let variable = problem.add_binary_var(way.value);
            nodes.push((variable, f64::from(way.nodes)));
            power.push((variable, way.power.as_f64()));
            one.push((variable, 1.0));
        }
        let compare = if job.running { ComparisonOp::Eq } else { ComparisonOp::Le };
        problem.add_constraint(&one, compare, 1.0);
    }
    problem.add_constraint(&nodes, ComparisonOp::Le, program.nodes as f64);
    problem.add_constraint(&power, ComparisonOp::Le, program.power.as_f64());
    largest(&problem)
}

fn largest(problem: &Problem) -> Option<f64> {
    match problem.solve() {
        Ok(outcome) => Some(outcome.into_solution().expect("it has no limits").objective()),
        Err(microlp::Error::Infeasible) => None,
        Err(error) => panic!("{error}"),
    }
}

fn assert_near(ours: f64, truth: f64, what: &dyn std::fmt::Display) {
    assert!((ours - truth).abs() <= 1e-7 * truth.abs(), "{ours}, but {truth} in truth: {what}");
}

#[test]
fn agrees_with_branch_and_bound() {
    let (mut compared, mut infeasible) = (0, 0);
    for (random, mut program) in programs(7, 12, 6) {
        // As it is, and so short that running jobs may not fit.
        for shrink in [1, 3, 6] {
            program.nodes /= shrink;
            program.power =
                busbar::units::Watts::from_milliwatts(program.power.milliwatts() / shrink);
            let ours = solve(&program.instance().unwrap(), Limits::default(), None);
            match (ours, oracle(&program)) {
                (Ok(solution), Some(truth)) => {
                    assert!(solution.optimal(), "{random}");
                    assert_near(solution.objective(), truth, &random);
                    compared += 1;
                }
                (Err(_), None) => infeasible += 1,
                (ours, truth) => panic!("{ours:?}, but {truth:?} in truth: {random}"),
            }
        }
    }
    assert!(compared > 150 && infeasible > 25, "{compared} compared, {infeasible} infeasible");
}

/// What is chosen, added up again from the program.
fn check(program: &Program, solution: &Solution) {
    let chosen: Vec<_> = program.chosen(solution).collect();
    let nodes: u64 = chosen.iter().map(|(_, way)| u64::from(way.nodes)).sum();
    let power = chosen.iter().map(|(_, way)| way.power).sum();
    assert!(nodes <= program.nodes && power <= program.power);
    assert_eq!((nodes, power), (solution.nodes_used(), solution.power_used()));
    for (job, choice) in program.jobs.iter().zip(solution.chosen()) {
        assert!(!job.running || choice.is_some());
    }
    assert!(solution.bound() >= solution.objective());
}

#[test]
fn less_effort_gives_a_worse_answer_and_a_true_bound() {
    let mut unfinished = 0;
    for (random, program) in programs(60, 60, 3) {
        let instance = program.instance().unwrap();
        let best = solve(&instance, Limits::default(), None).unwrap();
        check(&program, &best);
        assert!(best.optimal(), "{random}");
        let hasty =
            |effort| solve(&instance, Limits { effort, ..Limits::default() }, None).unwrap();
        for effort in [0, 10_000, 25_000, 30_000, 60_000] {
            let solution = hasty(effort);
            check(&program, &solution);
            let rounding = 1e-9 * best.objective();
            assert!(solution.objective() <= best.objective() + rounding, "{random}");
            assert!(solution.bound() >= best.objective() - rounding, "{random}");
            assert_eq!(solution, hasty(effort), "the same effort, the same answer: {random}");
            unfinished += usize::from(!solution.optimal());
        }
    }
    assert!(unfinished > 50, "{unfinished} answers were cut short");
}

#[test]
fn a_gap_that_was_asked_for_is_kept() {
    for (random, program) in programs(200, 60, 2) {
        let instance = program.instance().unwrap();
        for gap in [1e-2, 1e-4] {
            let solution = solve(&instance, Limits { gap, ..Limits::default() }, None).unwrap();
            check(&program, &solution);
            assert!(solution.gap() <= gap, "{random}: {}", solution.gap());
        }
    }
}

#[test]
fn warm_prices_and_used_memory_change_no_answer() {
    let mut solver = Solver::default();
    let mut prices = None;
    for (random, program) in programs(150, 60, 2) {
        let instance: Instance = program.instance().unwrap();
        let cold = solve(&instance, Limits::default(), None).unwrap();
        // Nor does it matter that a search before was cut short, wherever that was.
        for share in 1..8 {
            let effort = cold.effort() * share / 8;
            solver.solve(&instance, Limits { effort, ..Limits::default() }, None).unwrap();
        }
        let warm = solver.solve(&instance, Limits::default(), prices).unwrap();
        assert!(cold.optimal() && warm.optimal(), "{random}");
        assert_near(warm.objective(), cold.objective(), &random);
        prices = Some(warm.prices());
    }
}

#[test]
fn whoever_has_a_clock_can_stop_it() {
    let random = Random { jobs: 1000, family: Family::Pow2, ..Random::default() };
    let program = random.generate().unwrap();
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        true
    };
    let limits = Limits { stop: Some(&mut stop), ..Limits::default() };
    let solution = solve(&program.instance().unwrap(), limits, None).unwrap();
    check(&program, &solution);
    assert!(!solution.optimal() && solution.gap() < 0.01, "{}", solution.gap());
    assert!(asked > 0);
}

/// A program as another solver reads it from the file.
fn written(program: &Program) -> Read {
    let mut file = Vec::new();
    lp::write(&mut file, program).unwrap();
    let text = String::from_utf8(file).unwrap();
    cplex_lp::read(&text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// What the file of a program has to say, by its definition.
fn definition(program: &Program) -> Read {
    let mut read = Read { maximize: true, ..Read::default() };
    let (mut nodes, mut power) = (Terms::new(), Terms::new());
    let mut jobs = Vec::new();
    for (place, job) in program.jobs.iter().enumerate() {
        let mut own = Terms::new();
        for (number, way) in job.configurations.iter().enumerate() {
            if u64::from(way.nodes) > program.nodes || way.power > program.power {
                continue;
            }
            let name = format!("x_{place}_{number}");
            read.objective.insert(name.clone(), way.value);
            nodes.insert(name.clone(), f64::from(way.nodes));
            power.insert(name.clone(), way.power.as_f64());
            own.insert(name.clone(), 1.0);
            read.binary.insert(name);
        }
        let relation = if job.running { '=' } else { '<' };
        if own.is_empty() && job.running {
            own.insert(format!("x_{place}_none"), 0.0);
        }
        jobs.push((format!("job_{place}"), Row { terms: own, relation, right: 1.0 }));
    }
    let most = |terms, right| Row { terms, relation: '<', right };
    read.rows.push(("nodes".to_owned(), most(nodes, program.nodes as f64)));
    read.rows.push(("power".to_owned(), most(power, program.power.as_f64())));
    read.rows.extend(jobs);
    // A row without variables says nothing, and the format has none.
    read.rows.retain(|(_, row)| !row.terms.is_empty());
    read
}

/// The largest value of a program that was read.
fn solved(read: &Read) -> Option<f64> {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let variables: BTreeMap<&String, Variable> = read
        .variables()
        .into_iter()
        .map(|name| {
            let value = read.objective.get(name).copied().unwrap_or(0.0);
            // Without bounds of its own, a variable is at least zero.
            let variable = match read.binary.contains(name) {
                true => problem.add_binary_var(value),
                false => problem.add_var(value, (0.0, f64::INFINITY)),
            };
            (name, variable)
        })
        .collect();
    for (_, row) in &read.rows {
        let terms: Vec<(Variable, f64)> =
            row.terms.iter().map(|(name, factor)| (variables[name], *factor)).collect();
        let relation = match row.relation {
            '<' => ComparisonOp::Le,
            '>' => ComparisonOp::Ge,
            _ => ComparisonOp::Eq,
        };
        problem.add_constraint(&terms, relation, row.right);
    }
    largest(&problem)
}

#[test]
fn other_solvers_read_the_same_program() {
    let (mut compared, mut infeasible) = (0, 0);
    for (random, mut program) in programs(5, 8, 3) {
        for shrink in [1, 3, 6] {
            program.nodes /= shrink;
            program.power =
                busbar::units::Watts::from_milliwatts(program.power.milliwatts() / shrink);
            let read = written(&program);
            assert_eq!(read, definition(&program), "{random}");
            match (solve(&program.instance().unwrap(), Limits::default(), None), solved(&read)) {
                (Ok(ours), Some(theirs)) => {
                    assert_near(ours.objective(), theirs, &random);
                    compared += 1;
                }
                (Err(_), None) => infeasible += 1,
                (ours, theirs) => panic!("{ours:?}, but {theirs:?} by the file: {random}"),
            }
        }
    }
    assert!(compared > 50 && infeasible > 5, "{compared} compared, {infeasible} infeasible");
}

/// Programs of which nothing is left, and numbers of many digits.
#[test]
fn other_solvers_read_extreme_programs() {
    let cases = [
        r#"{"nodes": 4, "power": "1kW", "jobs": []}"#,
        r#"{"nodes": 4, "power": "1kW", "jobs": [{"configurations": []}]}"#,
        r#"{"nodes": 4, "power": "1kW", "jobs": [{"configurations": [{"nodes": 9, "power": 1, "value": 1}]}]}"#,
        r#"{"nodes": 4, "power": "1kW", "jobs": [{"running": true, "configurations": [{"nodes": 9, "power": 1, "value": 1}]}]}"#,
        r#"{"nodes": 4, "power": "1kW", "jobs": [{"configurations": [{"nodes": 1, "power": 0.001, "value": 1e-300},
                                                                     {"nodes": 2, "power": 0.123, "value": 1e199}]}]}"#,
    ];
    for text in cases {
        let program = Program::from_json(text).unwrap();
        let read = written(&program);
        assert_eq!(read, definition(&program), "{text}");
        let all: BTreeSet<&String> = read.variables();
        assert!(all.iter().all(|name| name.len() < 20), "{all:?}");
    }
}

/// Watts below feeds: a linear program for each of many random trees.
mod below_feeds {
    use busbar::solve::feeds::{Consumer, Line, Step, share, worth};
    use busbar::units::Watts;
    use microlp::{ComparisonOp, OptimizationDirection, Problem};
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Dxsm;

    fn random(feeds: usize, nodes: usize, seed: u64) -> (Vec<Line>, Vec<Consumer>) {
        let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
        let lines = (0..feeds).map(|place| Line {
            limit: Watts::from_watts(numbers.random_range(1..400 * nodes as u32)),
            above: (place > 0).then(|| numbers.random_range(0..place)),
        });
        let lines: Vec<Line> = lines.collect();
        let nodes = (0..nodes).map(|_| {
            let mut worths: Vec<u64> =
                (0..numbers.random_range(1..6)).map(|_| numbers.random_range(1..1000)).collect();
            worths.sort_unstable_by(|one, other| other.cmp(one));
            let step =
                |worth| Step { power: Watts::from_watts(numbers.random_range(1..90)), worth };
            let steps = worths.into_iter().map(step).collect();
            let least = Watts::from_watts(numbers.random_range(0..30));
            Consumer { feed: numbers.random_range(0..feeds), least, steps }
        });
        let nodes = nodes.collect();
        (lines, nodes)
    }

    /// The largest worth, in watts times what a milliwatt is worth; nothing if what nodes draw at least is too much.
    fn oracle(lines: &[Line], nodes: &[Consumer]) -> Option<f64> {
        let mut problem = Problem::new(OptimizationDirection::Maximize);
        let mut below: Vec<Vec<(microlp::Variable, f64)>> = vec![Vec::new(); lines.len()];
        let mut least = vec![0.0; lines.len()];
        for node in nodes {
            let steps = node.steps.iter();
            let steps: Vec<_> = steps
                .map(|step| problem.add_var(step.worth as f64, (0.0, step.power.as_f64())))
                .collect();
            let mut above = Some(node.feed);
            while let Some(feed) = above {
                below[feed].extend(steps.iter().map(|step| (*step, 1.0)));
                least[feed] += node.least.as_f64();
                above = lines[feed].above;
            }
        }
        for ((line, terms), least) in lines.iter().zip(&below).zip(least) {
            if least > line.limit.as_f64() {
                return None;
            }
            problem.add_constraint(terms, ComparisonOp::Le, line.limit.as_f64() - least);
        }
        super::largest(&problem)
    }

    #[test]
    fn agrees_with_a_linear_program() {
        let sizes = [(1, 3, 40), (4, 12, 150), (9, 60, 40), (40, 400, 4)];
        let (mut compared, mut infeasible) = (0, 0);
        for (feeds, count, seeds) in sizes {
            for seed in 0..seeds {
                let (lines, nodes) = random(feeds, count, seed);
                match (share(&lines, &nodes), oracle(&lines, &nodes)) {
                    (Ok(shares), Some(truth)) => {
                        let ours = worth(&nodes, &shares) as f64 / 1000.0;
                        super::assert_near(
                            ours,
                            truth,
                            &format!("{feeds} feeds, {count} nodes, seed {seed}"),
                        );
                        compared += 1;
                    }
                    (Err(_), None) => infeasible += 1,
                    (ours, truth) => {
                        panic!("{ours:?}, but {truth:?} in truth: {feeds} feeds, seed {seed}")
                    }
                }
            }
        }
        assert!(compared > 60 && infeasible > 10, "{compared} compared, {infeasible} infeasible");
    }
}
