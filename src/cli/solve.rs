//! `busbar solve`: shares nodes and watts among jobs to maximise the total value.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Clock};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::cli::{host, print, wrong_kind};
use crate::report::{Side, Versioned, columns, human_power, write_whole};
use crate::solve::file::{Program, lp};
use crate::solve::knapsack::{Limits, NoChoice, Solution, solve};
use crate::solve::random::Random;
use crate::text;
use crate::units::{Share, parse_micros};
use crate::workload::FileKind;

/// Choose nodes and a cap for each of many jobs, to maximise the total value
///
/// The jobs share nodes and power; running jobs must continue, others may wait. Without arguments, it solves 50
/// random jobs.
#[derive(Debug, Args)]
#[command(
    after_help = "--write-lp and --write-instance write the integer program before it is solved.

Examples:
  busbar solve jobs.json
  busbar solve jobs.json --gap 0.01% --time-limit 50ms --json
  busbar solve --random jobs=500,configs=60,family=tight,alpha=0,running=50,seed=1
  busbar solve --random jobs=50,family=free --write-instance jobs.json --write-lp jobs.lp"
)]
pub(super) struct Arguments {
    /// Integer program in a .json file; docs/reference/solve.md describes it
    #[arg(value_name = "INSTANCE", conflicts_with = "random")]
    instance: Option<PathBuf>,

    /// Random jobs: jobs=50,configs=60,family=tight|free|pow2|twins,alpha=0,running=0,seed=1
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true)]
    random: Option<Random>,

    /// Accept a solution within this gap of the optimum: 0.01%
    #[arg(long, value_name = "SHARE", default_value = "0%", allow_hyphen_values = true)]
    gap: Share,

    /// Stop after about this time with the best solution found: 50ms, 1.5s
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time,
          allow_hyphen_values = true)]
    time_limit: Duration,

    /// Write the integer program in CPLEX LP format, for other solvers
    #[arg(long, value_name = "FILE")]
    write_lp: Option<PathBuf>,

    /// Write the integer program as a .json file for this command
    #[arg(long, value_name = "FILE")]
    write_instance: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Whether two paths lead to one file that exists.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|path| real(other) == Some(path))
}

pub(super) fn parse_time(text: &str) -> anyhow::Result<Duration> {
    Ok(Duration::from_micros(parse_micros(text)?))
}

/// The answer as JSON.
#[derive(Serialize)]
struct Answer {
    objective: f64,
    bound: f64,
    gap: f64,
    optimal: bool,
    solve_s: f64,
    nodes_used: u64,
    power_used_w: f64,
    chosen: Vec<Chosen>,
}

/// A job that runs.
#[derive(Serialize)]
struct Chosen {
    job: String,
    nodes: u32,
    cap_w: Option<f64>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let written = [&arguments.write_lp, &arguments.write_instance];
    if let Some(path) = &arguments.instance
        && let Some(same) = written.into_iter().flatten().find(|other| is_same_file(path, other))
    {
        bail!("{} is the input file; write to another file", same.display());
    }
    let (program, source) = load(arguments)?;
    let instance = program.instance().with_context(|| source.clone())?;
    if let Some(path) = &arguments.write_instance {
        write_whole(path, &|out| {
            serde_json::to_writer_pretty(&mut *out, &program)?;
            out.write_all(b"\n")
        })?;
    }
    if let Some(path) = &arguments.write_lp {
        write_whole(path, &|out| lp::write(out, &program))?;
    }

    let start = Clock::now();
    let goes_on = host::goes_on();
    let mut stop = || start.elapsed() >= arguments.time_limit || goes_on().is_break();
    let limits = Limits {
        gap: arguments.gap.millionths() as f64 / 1e6,
        effort: u64::MAX,
        stop: Some(&mut stop),
    };
    let result = solve(&instance, limits, None);
    let solve_s = start.elapsed().as_secs_f64();
    match result {
        Ok(solution) if arguments.json => {
            print_json(&Versioned::new(answer(&program, &solution, solve_s)))
        }
        Ok(solution) => print(&describe(&program, &source, &solution, solve_s)),
        Err(reason) => {
            if arguments.json {
                print_json(&Versioned::new(refusal(&reason)))?;
            }
            Err(anyhow!(explain(&program, &reason)).context(source))
        }
    }
}

/// The program, and what to call it.
fn load(arguments: &Arguments) -> anyhow::Result<(Program, String)> {
    if let Some(path) = &arguments.instance {
        let source = path.display().to_string();
        let text = text::read_whole(path).with_context(|| format!("cannot read {source}"));
        let text = wrong_kind::told(text, path, |kind| kind == FileKind::Program)?;
        let program = Program::from_json(&text).with_context(|| source.clone());
        // Any JSON is meant to be one.
        let is_json = text.trim_start().starts_with('{');
        return Ok((wrong_kind::told(program, path, |_| is_json)?, source));
    }
    let random = arguments.random.unwrap_or_default();
    Ok((random.generate()?, format!("random, {random}")))
}

fn print_json(answer: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string_pretty(answer)? + "\n"))
}

fn answer(program: &Program, solution: &Solution, solve_s: f64) -> Answer {
    let chosen = program.chosen(solution).map(|(place, way)| Chosen {
        job: program.name(place),
        nodes: way.nodes,
        cap_w: way.cap.map(|cap| cap.as_f64()),
    });
    Answer {
        objective: solution.objective(),
        bound: solution.bound(),
        gap: solution.gap(),
        optimal: solution.optimal(),
        solve_s,
        nodes_used: solution.nodes_used(),
        power_used_w: solution.power_used().as_f64(),
        chosen: chosen.collect(),
    }
}

/// Why there is no solution, as JSON.
fn refusal(reason: &NoChoice) -> serde_json::Value {
    match reason {
        NoChoice::Exceeded { nodes, power } => {
            json!({"infeasible": {"excess_nodes": nodes, "excess_power_w": power.as_f64(), "together": false}})
        }
        NoChoice::Together { power } => {
            json!({"infeasible": {"excess_nodes": 0, "excess_power_w": power.as_f64(), "together": true}})
        }
        NoChoice::Undecided => json!({"undecided": {"why": "time limit"}}),
    }
}

/// Why there is no solution, as text.
fn explain(program: &Program, reason: &NoChoice) -> String {
    let running = program.jobs.iter().filter(|job| job.running).count();
    let (nodes_there, power_there) = (program.nodes, program.power);
    let advice = "raise the limits, or give running jobs smaller configurations";
    match reason {
        NoChoice::Exceeded { nodes, power } => {
            let mut parts = Vec::new();
            if *nodes > 0 {
                parts.push(format!("{nodes} more nodes than the available {nodes_there}"));
            }
            if power.milliwatts() > 0 {
                parts.push(format!("{power} more than the available {power_there}"));
            }
            let excess = parts.join(" and ");
            format!("the running jobs ({running}) alone need at least {excess}; {advice}")
        }
        NoChoice::Together { power } => format!(
            "the running jobs ({running}) would fit the nodes alone and the power alone, but not \
             both: on {nodes_there} nodes they need at least {power} more than the available {power_there}; {advice}"
        ),
        NoChoice::Undecided => format!(
            "within the time limit, no solution was found for the running jobs ({running}), and none was proven \
            impossible; raise --time-limit"
        ),
    }
}

/// Jobs in the table at most.
const MOST_ROWS: usize = 20;

fn describe(program: &Program, source: &str, solution: &Solution, solve_s: f64) -> String {
    let configurations: usize = program.jobs.iter().map(|job| job.configurations.len()).sum();
    let running = program.jobs.iter().filter(|job| job.running).count();
    let chosen: Vec<_> = program.chosen(solution).collect();
    let quality = if solution.optimal() {
        "this is the optimum".to_owned()
    } else {
        format!("at most {:.6} is possible, {:.4} % more", solution.bound(), 100.0 * solution.gap())
    };
    let prices = solution.prices();
    let mut text = format!(
        "     program  {source}\n        jobs  {}, {running} of them running, {configurations} \
         configurations\n       value  {:.6}; {quality}\n        runs  {} jobs\n       nodes  {} of \
         {}; one more is worth {:.3e}\n       power  {} of {}; a watt more is worth {:.3e}\n\
         \x20      speed  solved in {:.2} ms\n\n",
        program.jobs.len(),
        solution.objective(),
        chosen.len(),
        solution.nodes_used(),
        program.nodes,
        prices.node,
        human_power(solution.power_used().as_f64()),
        human_power(program.power.as_f64()),
        prices.watt,
        1000.0 * solve_s,
    );
    let headings = [
        ("job", Side::Left),
        ("nodes", Side::Right),
        ("cap", Side::Right),
        ("power", Side::Right),
        ("value", Side::Right),
    ];
    let rows = chosen.iter().take(MOST_ROWS).map(|(place, way)| {
        vec![
            program.name(*place),
            way.nodes.to_string(),
            way.cap.map_or("-".to_owned(), |cap| cap.to_string()),
            way.power.to_string(),
            format!("{:.6}", way.value),
        ]
    });
    text += &columns(&headings, &rows.collect::<Vec<_>>());
    if chosen.len() > MOST_ROWS {
        text += &format!("  and {} more; --json lists all\n", chosen.len() - MOST_ROWS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_time("50ms").unwrap(), Duration::from_millis(50));
        assert_eq!(parse_time(" 1.5 s").unwrap(), Duration::from_millis(1500));
        assert_eq!(parse_time("0.5ms").unwrap(), Duration::from_micros(500));
        assert!(parse_time("50").unwrap_err().to_string().contains("no known unit"));
        assert!(parse_time("-1s").is_err());
    }
}
