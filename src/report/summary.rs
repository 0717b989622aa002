//! A run's summary as people read it: one line for each kind of figure.

use super::facts::Facts;
use super::units::{human_energy, human_mass, human_power, human_time};
use crate::machine::Machine;
use crate::metrics::{Summary, TaskFigures};
use crate::policy::{DropReason, Predictions};
use crate::sim::EnergyByState;
use crate::units::Joules;

/// The summary in a few lines.
pub fn summary_facts(summary: &Summary) -> Facts {
    let mut facts = Facts::default();
    add_subject(summary, &mut facts);
    facts.add("jobs", endings(summary));
    if let Some(tasks) = &summary.tasks {
        add_tasks(tasks, &mut facts);
    }
    add_times(summary, &mut facts);
    add_power(summary, &mut facts);
    add_feeds(summary, &mut facts);
    add_costs(summary, &mut facts);
    let predictions = summary.predictions.iter().flat_map(Predictions::sentences);
    for (place, sentence) in predictions.enumerate() {
        facts.add(if place == 0 { "predictions" } else { "" }, sentence);
    }
    add_incidents(summary, &mut facts);
    facts
}

fn share(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

fn or_unknown(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

/// Which policy ran which jobs on which machine.
fn add_subject(s: &Summary, facts: &mut Facts) {
    facts.add("policy", &s.policy);
    facts.add("workload", format_args!("{}, {} jobs", s.workload, s.jobs));
    match s.machine.starts_with(&format!("{} processors", s.nodes)) {
        true => facts.add("machine", &s.machine),
        false => match s.whole_nodes {
            Some(nodes) => {
                let all = format!("{}, {nodes} nodes with {} processors", s.machine, s.nodes);
                facts.add("machine", all);
            }
            None => facts.add("machine", format_args!("{}, {} nodes", s.machine, s.nodes)),
        },
    }
}

/// That no job ran, and why, if it is so: every figure of such a run is empty.
pub(crate) fn none_ran(s: &Summary) -> Option<String> {
    let left_running = s.tasks.as_ref().map_or(0, |tasks| tasks.left_running);
    let ran = s.completed + s.killed + left_running;
    (ran == 0 && s.jobs > 0).then(|| format!("no job ran: {}", other_endings(s).join(", ")))
}

/// How many jobs completed, and what became of the others.
fn endings(s: &Summary) -> String {
    let others = other_endings(s).into_iter().map(|ending| format!(", {ending}"));
    format!("{} completed{}", s.completed, others.collect::<String>())
}

/// What became of jobs that did not complete, with their number.
fn other_endings(s: &Summary) -> Vec<String> {
    let [low_utility, no_machine, no_energy] = s.tasks.as_ref().map_or([0; 3], |tasks| {
        [tasks.dropped_utility, tasks.dropped_machine, tasks.dropped_energy]
    });
    let (running, waiting) =
        s.tasks.as_ref().map_or((0, 0), |tasks| (tasks.left_running, tasks.left_waiting));
    let known_drops = s.dropped_power + low_utility + no_machine + no_energy;
    let others = [
        (s.killed, "killed at their limit"),
        (s.rejected_nodes, "rejected: larger than the machine"),
        (s.rejected_power, "rejected: more power than the budget allows"),
        (s.rejected_feeds.unwrap_or(0), "rejected: more power than feeds carry"),
        (s.rejected_limits.unwrap_or(0), "rejected: over a limit of the site"),
        (s.rejected_dependencies.unwrap_or(0), "rejected: their dependency was not fulfilled"),
        (s.dropped - known_drops, DropReason::Unsaid.reason()),
        (s.dropped_power, DropReason::NeverFed.reason()),
        (low_utility, DropReason::LowUtility.reason()),
        (no_machine, DropReason::NoMachine.reason()),
        (no_energy, DropReason::NoEnergy.reason()),
        (if s.tasks.is_none() { s.unfinished } else { 0 }, "never started"),
        (running, "left running"),
        (waiting, "left waiting"),
    ];
    let others = others.iter().filter(|(count, _)| *count > 0);
    others.map(|(count, what)| format!("{count} {what}")).collect()
}

/// What tasks with utility functions earned and consumed.
fn add_tasks(tasks: &TaskFigures, facts: &mut Facts) {
    let (begin, end) = (human_time(tasks.period_begin_s), human_time(tasks.period_end_s));
    let offered = tasks.utility_offered.max(f64::MIN_POSITIVE);
    facts.add(
        "utility",
        format_args!(
            "{:.1} earned by {} tasks from {begin} to {end}, {} of what was offered",
            tasks.utility,
            tasks.completed_in_period,
            share(tasks.utility / offered)
        ),
    );
    let portions = tasks.portions.iter().filter(|portion| portion.offered > 0.0);
    let portions: Vec<String> = portions
        .map(|portion| format!("{} of tasks worth {}", share(portion.share()), portion.start))
        .collect();
    if portions.len() > 1 && portions.len() <= 8 {
        facts.go_on(portions.join(", "));
    }
    let limit = match tasks.energy_budget_j {
        Some(limit) => format!(" of {} in the period", human_energy(limit)),
        None => " in the period, without a limit".to_owned(),
    };
    facts.add("consumed", human_energy(tasks.energy_consumed_j) + &limit);
}

/// How long everything took, and how full the machine was.
fn add_times(s: &Summary, facts: &mut Facts) {
    if s.oversized > 0 {
        let count = s.oversized;
        facts.add(
            "oversized",
            format_args!("{count} slowed: they exceed every limit at nominal speed"),
        );
    }
    facts.add("makespan", human_time(s.makespan_s));
    let wait = s.mean_wait_s.zip(s.median_wait_s).zip(s.p99_wait_s.zip(s.max_wait_s));
    let wait = wait.map(|((mean, median), (p99, longest))| {
        let [mean, median, p99, longest] = [mean, median, p99, longest].map(human_time);
        format!("mean {mean}, median {median}, 99th percentile {p99}, longest {longest}")
    });
    facts.add("wait", or_unknown(wait));
    let turnaround = s.mean_turnaround_s.map(|mean| format!("mean {}", human_time(mean)));
    facts.add("turnaround", or_unknown(turnaround));
    let slowdown = s.mean_bsld.zip(s.max_bsld).map(|(mean, worst)| {
        let nominal = s.mean_bsld_nominal.filter(|nominal| *nominal != mean);
        let nominal = nominal.map(|bsld| format!(", {bsld:.2} against nominal run times"));
        let threshold = human_time(s.bsld_threshold_s);
        let nominal = nominal.unwrap_or_default();
        format!("mean {mean:.2}, worst {worst:.2} (bounded, threshold {threshold}){nominal}")
    });
    facts.add("slowdown", or_unknown(slowdown));
    facts.add("utilisation", or_unknown(s.utilisation.map(share)));
    let part = share(s.backfilled as f64 / s.jobs.max(1) as f64);
    facts.add("backfilled", format_args!("{} of {} jobs ({part})", s.backfilled, s.jobs));
}

/// What was drawn, of what was allowed.
fn add_power(s: &Summary, facts: &mut Facts) {
    let mut power = format!("peak {}", human_power(s.peak_power_w));
    if let Some(mean) = s.mean_power_w {
        power += &format!(", mean {}", human_power(mean));
    }
    if let Some(budget) = s.budget_w {
        power += &format!(", budget {}", human_power(budget));
    }
    if let Some(used) = s.budget_used {
        power += &format!(" ({} of it used)", share(used));
    }
    facts.add("power", power);
    if let Some(bound) = s.peak_of_peaks_w {
        facts.go_on(format_args!(
            "at most {} if all jobs that run at once reach their measured peaks together",
            human_power(bound)
        ));
    }
    if s.power_is_assumed {
        let watts = Machine::ASSUMED_NODE_POWER.as_f64();
        facts.go_on(format_args!(
            "assuming {watts} W for a busy node; set your value in a machine file"
        ));
    }
    let mut energy = human_energy(s.energy_j);
    if let Some(part) = s.energy_vs_nominal.filter(|part| *part != 1.0) {
        energy += &format!(" (jobs drew {} of their energy at nominal speed)", share(part));
    }
    facts.add("energy", energy);
    if let Some((energy, peak)) = s.site_energy_j.zip(s.site_peak_w) {
        let pue = energy / s.energy_j.max(f64::MIN_POSITIVE);
        let (energy, peak) = (human_energy(energy), human_power(peak));
        facts.go_on(format_args!(
            "{energy} at the site's meter, with cooling (PUE {pue:.2}), peak {peak}"
        ));
    }
    if let Some(stops) = s.node_stops {
        add_states(&s.energy_by_state, stops, facts);
    }
    if let Some(ghz) = s.mean_frequency_ghz.filter(|_| s.energy_vs_nominal != Some(1.0)) {
        facts.add("frequency", format_args!("mean {ghz:.2} GHz"));
        if s.gears_are_assumed {
            facts.go_on("assuming the built-in frequency levels; set yours in a machine file");
        }
    }
}

/// How feeds were used: which of them kept power from idle nodes while jobs waited, for how long, and how much.
fn add_feeds(s: &Summary, facts: &mut Facts) {
    for (place, feed) in s.feeds.iter().flatten().enumerate() {
        let mut line = format!("{}: peak {}", feed.name, human_power(feed.peak_power_w));
        if let Some(limit) = feed.limit_w {
            line += &format!(", limit {}", human_power(limit));
        }
        if feed.bound_s > 0.0 {
            let part = share(feed.bound_s / s.makespan_s.max(f64::MIN_POSITIVE));
            let (bound, stranded) = (human_time(feed.bound_s), human_energy(feed.stranded_j));
            line += &format!("; bound for {bound} ({part}), {stranded} stranded");
        }
        if feed.over_limit_s > 0.0 {
            let (over, worst) =
                (human_time(feed.over_limit_s), human_power(feed.worst_excursion_w));
            line += &format!("; over its limit for {over}, by {worst} at most");
        }
        facts.add(if place == 0 { "feeds" } else { "" }, line);
    }
}

/// What nodes drew beside running jobs, and how often they were switched off.
fn add_states(energy: &EnergyByState, stops: u64, facts: &mut Facts) {
    let parts = [
        (energy.running, "running jobs"),
        (energy.idle, "idle"),
        (energy.starting, "starting"),
        (energy.stopping, "stopping"),
        (energy.off, "off"),
        (energy.base, "beside the nodes"),
    ];
    let parts = parts.iter().filter(|(part, _)| *part != Joules::ZERO);
    let parts: Vec<String> =
        parts.map(|(part, what)| format!("{} {what}", human_energy(part.as_f64()))).collect();
    facts.go_on(parts.join(", "));
    facts.add("switched", format_args!("nodes were switched off {stops} times"));
}

/// What it cost and emitted, and the figures of parts of the time.
fn add_costs(s: &Summary, facts: &mut Facts) {
    let currency = s.currency.as_deref().unwrap_or_default();
    if s.currency.is_some() {
        let mut cost = match s.cost {
            Some(cost) => format!("{cost:.2} {currency}"),
            None => "not known".to_owned(),
        };
        if let Some((demand, highest)) = s.demand_cost.zip(s.peak_quarter_w) {
            let energy = s.energy_cost.map(|energy| format!("{energy:.2} for energy and "));
            let highest = human_power(highest);
            cost += &format!(
                ": {}{demand:.2} for the highest 15-minute average of each month, at most {highest}",
                energy.unwrap_or_default()
            );
        }
        facts.add("cost", cost);
    }
    if let Some(carbon) = s.carbon_kg {
        facts.add("CO₂", human_mass(carbon));
    }
    if let Some(window) = &s.window {
        facts.add(
            "window",
            format_args!("{}: {} of the run", window.when, human_time(window.time_s)),
        );
        let mean = or_unknown(window.mean_power_w.map(human_power));
        let (energy, peak) = (human_energy(window.energy_j), human_power(window.peak_power_w));
        facts.go_on(format_args!("power mean {mean}, peak {peak}; energy {energy}"));
        let wait = or_unknown(window.mean_wait_s.map(human_time));
        let (submitted, started, ended) = (window.submitted, window.started, window.ended);
        facts.go_on(format_args!(
            "{submitted} jobs submitted, with a mean wait of {wait}; {started} started, {ended} ended"
        ));
        let cost = window.cost.map(|cost| format!("cost {cost:.2} {currency}"));
        let carbon = window.carbon_kg.map(|carbon| format!("CO₂ {}", human_mass(carbon)));
        let both: Vec<String> = cost.into_iter().chain(carbon).collect();
        if !both.is_empty() {
            facts.go_on(both.join(", "));
        }
    }
}

/// What happened to running jobs, and what went wrong.
fn add_incidents(s: &Summary, facts: &mut Facts) {
    if s.changes > 0 {
        let (changes, moves) = (s.changes, s.moves);
        facts.add(
            "changes",
            format_args!(
                "{changes} of nodes or caps of running jobs, {moves} of them with a pause for other nodes"
            ),
        );
    }
    if s.restarts > 0 {
        facts.add("restarts", format_args!("{} after failing nodes", s.restarts));
    }
    if s.over_budget_s > 0.0 {
        let (times, worst) = (s.excursions, human_power(s.worst_excursion_w));
        let long = human_time(s.over_budget_s);
        facts.add("over budget", format_args!("{long} in {times} excursions, by {worst} at most"));
    }
    if s.violations > 0 {
        let (refused, all) = (s.violations, s.decisions);
        facts.add("violations", format_args!("{refused} of {all} decisions refused"));
    }
}
