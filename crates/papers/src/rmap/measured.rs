//! The same policies on tables that were measured: a site's own, or published ones.
//!
//! All contenders believe the tables as they are: a real table seldom varies nodes, cores and caps independently, as
//! a fit needs. The machine has by default as many nodes as the largest configuration, and the worst case of a node
//! is the most that any row draws. Bounds are the same shares of that as the paper's.

use crate::parallel::in_parallel;
use crate::rmap::ReproduceError;
use crate::rmap::experiment::{BOUNDS, Contender, Draw, STRETCHES, Trial};
use crate::rmap::tables::{TRACES, Traces};
use crate::sample::{Published, Rows, Sample};
use crate::{Finding, Reproduction};
use busbar_core::machine::Machine;
use busbar_core::profile::{Origin, Profile, Row, counted};
use busbar_core::units::Watts;
use busbar_workloads::rmap::{Kind, TraceError};

/// The most that the paper's machine draws: 64 nodes of 230 W.
const PUBLISHED_MOST: u64 = 64 * 230;

/// Tables, and how many draws of traces.
#[derive(Clone, Debug)]
pub struct OnTables {
    /// By the number of the application, less one; those without rows stand for numbers nobody has.
    pub profiles: Vec<Profile>,
    /// The name of the tables.
    pub name: String,
    /// Nodes of the machine [default: as many as the largest configuration].
    pub nodes: Option<u32>,
    /// Draws of each trace.
    pub seeds: u64,
    /// The first seed; the others follow.
    pub first_seed: u64,
}

/// Runs the paper's traces on tables; `progress` hears how many draws are done, of how many.
pub fn reproduce_on(
    options: &OnTables,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Reproduction, ReproduceError> {
    let machine = machine(options)?;
    let bounds = bounds(&machine);
    let seeds: Vec<u64> =
        (0..options.seeds).map(|draw| options.first_seed.wrapping_add(draw)).collect();
    let mut draws: Vec<Draw> = Vec::new();
    let drawn = |seed: &u64| draws_of(options, &machine, bounds, *seed);
    for done in in_parallel(&seeds, drawn, progress) {
        draws.extend(done?);
    }
    let mut findings: Vec<Finding> = Vec::new();
    for (stretch, gaps) in STRETCHES.into_iter().enumerate() {
        let here: Vec<&Draw> = draws.iter().filter(|draw| draw.stretch == stretch).collect();
        let place = format!("{}, gaps × {gaps}", options.name);
        findings.extend(TRACES.iter().flat_map(|traces| gains(traces, &here, &bounds, &place)));
    }
    Ok(Reproduction { findings, notes: notes(options, &machine, &bounds, &draws) })
}

/// The nodes that the tables are of.
fn machine(options: &OnTables) -> Result<Machine, ReproduceError> {
    let rows = || options.profiles.iter().flat_map(|profile| &profile.rows);
    let known = options.profiles.iter().filter(|profile| !profile.rows.is_empty());
    if known.clone().all(|profile| profile.rows.len() < 2) {
        return Err(ReproduceError::NothingToChoose { tables: options.name.clone() });
    }
    let largest = rows().map(|row| row.configuration.nodes).max().unwrap_or(1);
    let smallest = rows().map(|row| row.configuration.nodes).min().unwrap_or(1);
    let nodes = options.nodes.unwrap_or(largest);
    if nodes < smallest {
        return Err(ReproduceError::TooSmall { nodes, smallest });
    }
    let of_node = |row: &Row| {
        let nodes = u64::from(row.configuration.nodes.max(1));
        Watts::from_milliwatts(row.power.milliwatts().div_ceil(nodes))
    };
    let cores = rows().map(|row| row.configuration.cores).max().unwrap_or(1);
    Ok(Machine {
        name: options.name.clone(),
        processors_per_node: cores,
        node_power: rows().map(of_node).max().unwrap_or_default(),
        ..Machine::of_processors(nodes)?
    })
}

/// The same shares of what the machine draws at most as in the paper.
fn bounds(machine: &Machine) -> [u32; BOUNDS.len()] {
    let most = machine.node_power.milliwatts().saturating_mul(u64::from(machine.nodes)) / 1000;
    BOUNDS.map(|bound| {
        let watts = most.saturating_mul(u64::from(bound)) / PUBLISHED_MOST;
        u32::try_from(watts).unwrap_or(u32::MAX).max(1)
    })
}

fn draws_of(
    options: &OnTables,
    machine: &Machine,
    bounds: [u32; BOUNDS.len()],
    seed: u64,
) -> Result<Vec<Draw>, ReproduceError> {
    // Rows on more nodes than the machine has are for others.
    let mut profiles = options.profiles.clone();
    for profile in &mut profiles {
        profile.rows.retain(|row| row.configuration.nodes <= machine.nodes);
    }
    let tables = [&profiles[..], &profiles[..]];
    let mut draws = Vec::new();
    for kind in Kind::ALL {
        for stretch in 0..STRETCHES.len() {
            match Trial::new(machine, kind, stretch, tables, machine.node_power, seed) {
                Ok(trial) => draws.push(trial.draw(None, bounds)),
                // Tables may have no sizes of this kind.
                Err(ReproduceError::Trace(TraceError::NoApplications(_))) => (),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(draws)
}

/// How much better adaptive is than the others on some traces.
fn gains(traces: &Traces, draws: &[&Draw], bounds: &[u32], place: &str) -> Vec<Finding> {
    let draws: Vec<&&Draw> =
        draws.iter().filter(|draw| traces.kinds.contains(&draw.kind)).collect();
    let experiment = "Turnaround: adaptive against the others, all with these tables, better by";
    let mut rows = Rows::new(experiment, place.to_owned());
    if draws.is_empty() {
        return Vec::new();
    }
    use Contender::{Even, Naive, Traditional, Unbounded, WorstCase};
    let pairs = [
        (Even, Traditional, traces.over_traditional.mean),
        (Even, Naive, traces.over_naive.mean),
        (Even, WorstCase, Published::Nothing),
        (Unbounded, Traditional, Published::Nothing),
    ];
    for (of, over, published) in pairs {
        let of_name = if of == Even { "adaptive(0 %)" } else { of.name() };
        let over_name =
            if over == WorstCase { "traditional, the worst case a node" } else { over.name() };
        let title = format!("{}: {of_name} over {over_name}", traces.name);
        // Where one of them leaves jobs out, turnarounds are of other jobs.
        let gain = |draw: &Draw, bound: usize| {
            let is_fair = [of, over].iter().all(|each| draw.outcome(bound, *each).left_out == 0.0);
            is_fair.then(|| draw.gains(of, over)[bound])
        };
        let mean = |draw: &Draw| {
            let fair: Vec<f64> = (0..bounds.len()).filter_map(|bound| gain(draw, bound)).collect();
            (!fair.is_empty()).then(|| fair.into_iter().collect::<Sample>().mean())
        };
        let means: Vec<f64> = draws.iter().filter_map(|draw| mean(draw)).collect();
        if means.is_empty() {
            continue;
        }
        let average: Sample = means.into_iter().collect();
        rows.add(format!("{title}: mean of the bounds"), published, &average, "%");
        for (bound, watts) in bounds.iter().enumerate() {
            let sample: Vec<f64> = draws.iter().filter_map(|draw| gain(draw, bound)).collect();
            if !sample.is_empty() {
                let sample: Sample = sample.into_iter().collect();
                rows.add(format!("{title}: at {watts} W"), Published::Nothing, &sample, "%");
            }
        }
    }
    rows.findings
}

fn notes(options: &OnTables, machine: &Machine, bounds: &[u32], draws: &[Draw]) -> Vec<String> {
    let rows = || options.profiles.iter().flat_map(|profile| &profile.rows);
    let of = |origin: Origin| rows().filter(|row| row.origin == origin).count();
    let origins = Origin::ALL.into_iter().filter(|origin| of(*origin) > 0);
    let origins: Vec<String> =
        origins.map(|origin| format!("{} {}", of(origin), origin.name())).collect();
    let shares: Vec<String> = bounds.iter().map(|watts| format!("{watts} W")).collect();
    let mut notes = vec![
        format!(
            "{}: {} rows; a machine of {} of at most {} each; bounds {}, the same shares of that as the paper's",
            options.name,
            origins.join(", "),
            counted(machine.nodes as usize, "node"),
            machine.node_power,
            shares.join(", ")
        ),
        format!(
            "{} draws of each trace; measured is their mean, ± their standard deviation, agree the share of \
             them, in per cent, with the published sign",
            options.seeds
        ),
        "all policies believe the tables as they are; in the paper adaptive has predicted ones"
            .to_owned(),
    ];
    let missing: Vec<String> = TRACES
        .iter()
        .filter(|traces| !draws.iter().any(|draw| traces.kinds.contains(&draw.kind)))
        .map(|traces| traces.name.to_owned())
        .collect();
    if !missing.is_empty() {
        notes.push(format!(
            "no table has sizes for these traces: {}; they are left out",
            missing.join(", ")
        ));
    }
    let unfair = |draw: &Draw| {
        let left_out = |contender: Contender| draw.each(contender, |figures| figures.left_out);
        Contender::ALL
            .into_iter()
            .any(|contender| left_out(contender).iter().any(|share| *share > 0.0))
    };
    let left_out = draws.iter().filter(|draw| unfair(draw)).count();
    if left_out > 0 {
        notes.push(format!(
            "in {left_out} of {} traces a bound is too low for some job under some policy; such runs are not \
             compared",
            draws.len()
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::profile::cab::{self, Preset};

    fn on(profiles: Vec<Profile>, nodes: Option<u32>) -> OnTables {
        OnTables { profiles, name: "tables".to_owned(), nodes, seeds: 1, first_seed: 3 }
    }

    /// The made-up machine by its tables alone: nearly the published bounds, and sound findings.
    #[test]
    fn the_machine_is_that_of_the_tables() {
        let options = on(cab::generate(Preset::Cab, 1), None);
        let machine = machine(&options).unwrap();
        assert_eq!((machine.nodes, machine.processors_per_node), (64, 16));
        let most = machine.node_power.as_f64();
        assert!((150.0..=230.0).contains(&most), "{most}");
        assert_eq!(u64::from(bounds(&machine)[0]), (64.0 * most) as u64 * 6500 / PUBLISHED_MOST);
        let done = reproduce_on(&options, &|_, _| ()).unwrap();
        assert!(done.findings.iter().all(|finding| finding.measured.unwrap().is_finite()));
        assert!(done.findings.iter().any(|finding| finding.metric.starts_with("small: ")));
    }

    #[test]
    fn what_cannot_be_supported_is_said() {
        let mut single = cab::generate(Preset::Cab, 1);
        single.iter_mut().for_each(|profile| profile.rows.truncate(1));
        let error = reproduce_on(&on(single, None), &|_, _| ()).unwrap_err().to_string();
        assert!(error.contains("one row for each application"), "{error}");
        let few = on(cab::generate(Preset::Cab, 1), Some(4));
        let error = reproduce_on(&few, &|_, _| ()).unwrap_err().to_string();
        assert!(error.contains("4 nodes") && error.contains("at least 8"), "{error}");
    }
}
