//! What the models answered before there was one world, frozen in `tests/frozen`.
//!
//! `worlds` and `runs` say what is asked, in words that belong to no model; `ask` puts the questions to the
//! code of today. The answers must be the frozen ones, to the millisecond and the milliwatt. What the files
//! hold, and when they may be written anew, is in `tests/frozen/README.md`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

mod ask;
mod reproductions;
mod runs;
mod worlds;

use ask::{Answers, Point, Ran, Truth, ask_run};
use runs::Setup;
use worlds::{Asked, Betas, Kinds, Named, Sample, World};

/// Set to 1, it makes these tests write their files anew.
const FREEZE: &str = "BUSBAR_FREEZE";

/// Compares a text with a frozen file, or writes it.
fn hold(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frozen").join(file);
    if std::env::var(FREEZE).is_ok_and(|value| value == "1") {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        return;
    }
    let frozen = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("tests/frozen/{file}: {error}; see tests/frozen/README.md"));
    if let Some(difference) = difference(&frozen, text) {
        panic!(
            "tests/frozen/{file}, {difference}\n\
             The frozen answers are those of the models before there was one world. If the difference \
             is meant, read tests/frozen/README.md, then write the files anew:\n\
             {FREEZE}=1 cargo test --test it frozen"
        );
    }
}

/// The first line in which two texts differ, in words.
fn difference(frozen: &str, now: &str) -> Option<String> {
    if frozen == now {
        return None;
    }
    let (mut one, mut other) = (frozen.lines(), now.lines());
    let header = frozen.lines().next().unwrap_or_default();
    for number in 1.. {
        let (one, other) = (one.next(), other.next());
        if one != other || one.is_none() {
            let [one, other] = [one, other].map(|line| line.unwrap_or("(no such line)"));
            let lines = format!("line {number}:\n  frozen  {one}\n  now     {other}");
            // A JSON file has no header.
            let columns = header.contains(',').then(|| format!("\n  columns {header}"));
            return Some(lines + &columns.unwrap_or_default());
        }
    }
    None
}

#[test]
fn the_first_line_that_differs_is_shown() {
    assert_eq!(difference("a,b\n1,2\n", "a,b\n1,2\n"), None);
    let shown = difference("a,b\n1,2\n3,4\n", "a,b\n1,2\n3,5\n").unwrap();
    assert_eq!(shown, "line 3:\n  frozen  3,4\n  now     3,5\n  columns a,b");
    assert!(difference("a\n1\n", "a\n").unwrap().contains("now     (no such line)"));
    assert!(difference("a\n", "a").is_some());
}

/// A number, or a dash where there is none.
fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// `node:milliwatts` for each of the nodes; `0-23:milliwatts` where the first ones all have the same cap.
fn nodes(named: &Named) -> String {
    let cap = named[0].1;
    let is_even = named.iter().zip(0..).all(|(one, node)| *one == (node, cap));
    if is_even && named.len() > 4 {
        return format!("0-{}:{cap}", named.len() - 1);
    }
    named.iter().map(|(node, cap)| format!("{node}:{cap}")).collect::<Vec<_>>().join(" ")
}

/// Numbers with blanks in between.
fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

fn point(point: &Point) -> String {
    let Point { nodes, cores, cap_mw, limit_ms, believed_ms, power_mw } = point;
    format!("{nodes} {cores} {cap_mw} {limit_ms} {believed_ms} {power_mw}")
}

/// A point and what is true of it. What is equal to the limit, or to the believed power, is left empty.
fn answer(answer: Option<(Point, Truth)>) -> String {
    let Some((Point { nodes, cores, cap_mw, limit_ms, believed_ms, power_mw }, truth)) = answer
    else {
        return "-,-,-,-,-,-,-,-".to_owned();
    };
    let unless = |value: u64, other: u64| (value != other).then(|| value.to_string());
    let believed = unless(believed_ms, limit_ms).unwrap_or_default();
    let drawn = unless(truth.power_mw, power_mw).unwrap_or_default();
    let run = truth.run_ms;
    format!("{nodes},{cores},{cap_mw},{limit_ms},{believed},{power_mw},{run},{drawn}")
}

/// What the world of a sample is told of a job beside what its user says.
fn told(world: &World, place: usize) -> String {
    match world {
        World::Gears { betas: Betas::Told(betas), .. } => format!("sensitivity {}", betas[place]),
        World::Pass(pass) => match &pass.kinds {
            Kinds::Told(kinds) => {
                let (application, parallelism, variation) = kinds[place];
                format!(
                    "application {application}; parallelism {parallelism}; variation {variation}"
                )
            }
            Kinds::Drawn { .. } | Kinds::Unknown => "-".to_owned(),
        },
        _ => "-".to_owned(),
    }
}

/// The jobs that are asked about, their menus, what they do on named nodes, and other questions.
fn hold_menus(family: &str, samples: &[Sample]) {
    let mut jobs =
        "world,job,nodes,processors,requested_ms,run_ms,application,fewest,most,told\n".to_owned();
    let mut menus =
        "world,job,point,nodes,cores,cap_mw,limit_ms,believed_ms,power_mw,true_ms,true_mw\n"
            .to_owned();
    let mut questions = "world,job,question,answer\n".to_owned();
    for sample in samples {
        let answers = Answers::of(sample);
        let name = &sample.name;
        for (place, Asked { job, run }) in sample.jobs.iter().enumerate() {
            let application = job.application.map(|application| application.0);
            let range = job.terms.nodes;
            let (fewest, most) =
                (range.map(|range| range.fewest()), range.map(|range| range.most()));
            writeln!(
                jobs,
                "{name},{place},{},{},{},{},{},{},{},{}",
                job.nodes,
                job.processors,
                job.requested.millis(),
                run.millis(),
                or_dash(application),
                or_dash(fewest),
                or_dash(most),
                told(&sample.world, place)
            )
            .unwrap();
            let menu = answers.ask_menu(place);
            let nominal = menu[0];
            writeln!(menus, "{name},{place},nominal,{}", answer(Some(nominal))).unwrap();
            let mut others = menu[1..].to_vec();
            others.sort_unstable();
            for other in others {
                writeln!(menus, "{name},{place},,{}", answer(Some(other))).unwrap();
            }
            for (_, named) in sample.named.iter().filter(|(job, _)| *job == place) {
                let found = answer(answers.ask_on(place, named));
                writeln!(menus, "{name},{place},{},{found}", nodes(named)).unwrap();
            }
            ask_more(&mut questions, &answers, sample, place, &nominal.0);
        }
        let bounds = answers.ask_bounds();
        let bounds = bounds.iter().map(|(power, stretch)| format!("{power} {stretch}"));
        let bounds = bounds.collect::<Vec<_>>().join("; ");
        writeln!(questions, "{name},-,bounds,{bounds}").unwrap();
    }
    hold(&format!("menus/{family}-jobs.csv"), &jobs);
    hold(&format!("menus/{family}.csv"), &menus);
    hold(&format!("menus/{family}-questions.csv"), &questions);
}

/// What else policies ask about a job whose nominal point is this.
fn ask_more(
    questions: &mut String,
    answers: &Answers,
    sample: &Sample,
    place: usize,
    nominal: &Point,
) {
    let mut say = |question: &str, answer: &str| {
        writeln!(questions, "{},{place},{question},{answer}", sample.name).unwrap();
    };
    let maybe = |found: Option<Point>| found.map_or("-".to_owned(), |found| point(&found));
    let (fewest, shortest) = answers.ask_least(place);
    say("least nodes and ms", &format!("{fewest} {shortest}"));
    say("enters with mW", &answers.ask_entry(place).to_string());
    if let Some((application, order, fed)) =
        answers.ask_processors(place, &[50_000, 600_000, 1_000_000, 1_224_000, 2_000_000])
    {
        say("application", &application.to_string());
        say("processors by efficiency", &list(&order));
        say("fed by 50 600 1000 1224 2000 W", &list(&fed));
    }
    if matches!(sample.world, World::Curves { .. } | World::States(_)) {
        return;
    }
    if matches!(sample.world, World::Plain) {
        return;
    }
    say("thriftiest", &point(&answers.ask_thriftiest(place)));
    let asked = sample.jobs[place].job.nodes;
    let part = |percent: u64| nominal.power_mw * percent / 100;
    let nodes = 2 * asked;
    let found = maybe(answers.ask_fastest(place, nodes, part(60)));
    say(&format!("fastest on {nodes} nodes with {} mW", part(60)), &found);
    if matches!(sample.world, World::Tables { .. }) {
        for watts in [1500, 4000, 6500] {
            let power = 1000 * watts;
            let found = maybe(answers.ask_fastest(place, sample.machine.nodes, power));
            say(&format!("fastest with {watts} W"), &found);
            let found = maybe(answers.ask_unthrottled(place, power));
            say(&format!("unthrottled with {watts} W"), &found);
        }
    }
    if matches!(sample.world, World::Pass(_)) {
        for (from, to) in [(asked, 2 * asked), (2 * asked, asked)] {
            let moving = answers.ask_moving(place, from, to);
            say(&format!("ms from {from} to {to} nodes"), &moving.to_string());
        }
    }
}

#[test]
fn menus_of_jobs_as_asked_for_are_frozen() {
    hold_menus("plain", &worlds::plain());
}

#[test]
fn menus_of_gears_are_frozen() {
    hold_menus("gears", &worlds::gears());
}

#[test]
fn menus_of_pass_are_frozen() {
    hold_menus("pass", &worlds::pass());
}

#[test]
fn menus_of_tables_are_frozen() {
    hold_menus("tables", &worlds::tables());
}

#[test]
fn menus_of_curves_are_frozen() {
    hold_menus("curves", &worlds::curves());
}

#[test]
fn menus_of_machine_types_are_frozen() {
    hold_menus("states", &worlds::states());
}

/// The runs themselves, what became of each job, and for some every change of a running job.
fn hold_starts(family: &str, setups: &[Setup]) {
    let mut runs = "run,policy,machine_nodes,jobs,limits,end_ms,peak_mw,peak_held_mw,energy_uj,\
                    excursions,excursion_ms,worst_mw,consumed_uj\n"
        .to_owned();
    let mut starts =
        "run,job,start_ms,end_ms,nodes,cores,cap_mw,power_mw,changes,backfilled,state\n".to_owned();
    let mut changes = String::new();
    for setup in setups {
        let ran = ask_run(setup);
        let name = &setup.name;
        write_run(&mut runs, setup, &ran);
        for (job, fate) in ran.fates.iter().enumerate() {
            writeln!(
                starts,
                "{name},{job},{},{},{},{},{},{},{},{},{}",
                or_dash(fate.start_ms),
                or_dash(fate.end_ms),
                fate.nodes,
                fate.cores,
                fate.cap_mw,
                fate.power_mw,
                fate.changes,
                u8::from(fate.is_backfilled),
                if fate.state == "completed" { "" } else { fate.state }
            )
            .unwrap();
        }
        if setup.in_detail {
            write_changes(&mut changes, name, &ran);
        }
    }
    hold(&format!("starts/{family}-runs.csv"), &runs);
    hold(&format!("starts/{family}.csv"), &starts);
    if !changes.is_empty() {
        let header = "run,at_ms,job,what,nodes,cap_mw,power_mw,pause_ms,caps\n";
        hold(&format!("starts/{family}-changes.csv"), &(header.to_owned() + &changes));
    }
}

fn write_run(runs: &mut String, setup: &Setup, ran: &Ran) {
    let limit = |at: u64, limit: u64| format!("{at} ms: {limit} mW");
    let begin = busbar::units::Instant::ZERO;
    let first = setup.budget.is_limited().then(|| limit(0, setup.budget.at(begin).milliwatts()));
    let later = setup.budget.changes_after(begin).iter();
    let later = later.map(|(at, power)| limit(at.millis(), power.milliwatts()));
    let limits: Vec<String> = first.into_iter().chain(later).collect();
    writeln!(
        runs,
        "{},\"{}\",{},{},{},{},{},{},{},{},{},{},{}",
        setup.name,
        setup.policy,
        setup.machine.nodes,
        setup.workload.jobs().len(),
        if limits.is_empty() { "-".to_owned() } else { limits.join("; ") },
        ran.end_ms,
        ran.peak_mw,
        ran.peak_held_mw,
        ran.energy_uj,
        ran.excursions,
        ran.excursion_ms,
        ran.worst_mw,
        or_dash(ran.consumed_uj)
    )
    .unwrap();
}

fn write_changes(changes: &mut String, name: &str, ran: &Ran) {
    for step in &ran.steps {
        writeln!(
            changes,
            "{name},{},{},{},{},{},{},{},-",
            step.at_ms,
            step.job,
            if step.is_start { "start" } else { "change" },
            step.nodes,
            step.cap_mw,
            step.power_mw,
            step.pause_ms
        )
        .unwrap();
    }
    for (at, job, named) in &ran.cappings {
        writeln!(changes, "{name},{at},{job},caps,{},-,-,-,{}", named.len(), nodes(named)).unwrap();
    }
}

#[test]
fn starts_of_jobs_as_asked_for_are_frozen() {
    hold_starts("plain", &runs::plain());
}

#[test]
fn starts_with_gears_are_frozen() {
    hold_starts("gears", &runs::gears());
}

#[test]
fn starts_with_pass_are_frozen() {
    hold_starts("pass", &runs::pass());
}

#[test]
fn starts_with_tables_are_frozen() {
    hold_starts("tables", &runs::tables());
}

#[test]
fn starts_with_curves_are_frozen() {
    hold_starts("curves", &runs::curves());
}

#[test]
fn starts_on_machine_types_are_frozen() {
    hold_starts("states", &runs::states());
}

/// The runs together have every policy there is.
#[test]
fn every_policy_is_among_the_runs() {
    let all = [
        runs::plain(),
        runs::gears(),
        runs::pass(),
        runs::tables(),
        runs::curves(),
        runs::states(),
    ];
    let names: Vec<String> = all
        .iter()
        .flatten()
        .map(|setup| setup.policy.split('(').next().unwrap().to_owned())
        .collect();
    for policy in ask::ask_policies() {
        assert!(names.contains(&policy), "{policy}");
    }
}
