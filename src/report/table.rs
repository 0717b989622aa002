//! The summary as people read it.

use std::fmt::Write;

use crate::machine::Machine;
use crate::metrics::Summary;
use crate::policy::DropReason;

/// The unit that suits a length of time, and its seconds.
pub fn time_unit(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s < 120.0 => ("s", 1.0),
        s if s < 7200.0 => ("min", 60.0),
        s if s < 172_800.0 => ("h", 3600.0),
        _ => ("days", 86_400.0),
    }
}

/// The prefix of a unit that suits a value, and how much it stands for.
pub fn prefix(value: f64) -> (&'static str, f64) {
    let prefixes = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    prefixes.into_iter().find(|(_, size)| value >= *size).unwrap_or(("", 1.0))
}

/// A length of time in the unit that suits it.
pub fn human_time(seconds: f64) -> String {
    let (unit, size) = time_unit(seconds);
    format!("{:.1} {unit}", seconds / size)
}

/// Power in the unit that suits it.
pub fn human_power(watts: f64) -> String {
    scaled(watts, "W")
}

/// Energy in the unit that suits it.
pub fn human_energy(joules: f64) -> String {
    scaled(joules, "J")
}

fn scaled(value: f64, unit: &str) -> String {
    match prefix(value) {
        ("", _) => format!("{value:.1} {unit}"),
        (prefix, size) => format!("{:.2} {prefix}{unit}", value / size),
    }
}

fn share(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The summary as a table of a few lines.
pub fn summary_table(summary: &Summary) -> String {
    let s = summary;
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:>12}  {value}");
    };
    let unknown = || "-".to_owned();
    row("policy", s.policy.clone());
    row("workload", format!("{}, {} jobs", s.workload, s.jobs));
    let named = if s.machine.starts_with(&format!("{} processors", s.nodes)) {
        s.machine.clone()
    } else {
        format!("{}, {} nodes", s.machine, s.nodes)
    };
    row("machine", named);
    let mut ended = format!("{} completed", s.completed);
    let drops = s.tasks.as_ref().map_or((0, 0, 0), |tasks| {
        (tasks.dropped_utility, tasks.dropped_machine, tasks.dropped_energy)
    });
    let known_drops = s.dropped_power + drops.0 + drops.1 + drops.2;
    let left = s.tasks.as_ref().map_or((0, 0), |tasks| (tasks.left_running, tasks.left_waiting));
    let others = [
        (s.killed, "killed at their limit"),
        (s.rejected_nodes, "rejected: larger than the machine"),
        (s.rejected_power, "rejected: more power than the budget allows"),
        (s.dropped - known_drops, DropReason::Unsaid.reason()),
        (s.dropped_power, DropReason::NeverFed.reason()),
        (drops.0, DropReason::LowUtility.reason()),
        (drops.1, DropReason::NoMachine.reason()),
        (drops.2, DropReason::NoEnergy.reason()),
        (if s.tasks.is_none() { s.unfinished } else { 0 }, "never started"),
        (left.0, "left running"),
        (left.1, "left waiting"),
    ];
    for (count, what) in others.iter().filter(|(count, _)| *count > 0) {
        ended += &format!(", {count} {what}");
    }
    row("jobs", ended);
    if let Some(tasks) = &s.tasks {
        let (begin, end) = (human_time(tasks.period_begin_s), human_time(tasks.period_end_s));
        let offered = tasks.utility_offered.max(f64::MIN_POSITIVE);
        row(
            "utility",
            format!(
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
            row("", portions.join(", "));
        }
        let limit = match tasks.energy_budget_j {
            Some(limit) => format!(" of {} in the period", human_energy(limit)),
            None => " in the period, without a limit".to_owned(),
        };
        row("consumed", human_energy(tasks.energy_consumed_j) + &limit);
    }
    if s.oversized > 0 {
        row(
            "oversized",
            format!("{} slowed: the budget never feeds them at nominal speed", s.oversized),
        );
    }
    row("makespan", human_time(s.makespan_s));
    row(
        "wait",
        match (s.mean_wait_s, s.median_wait_s, s.max_wait_s) {
            (Some(mean), Some(median), Some(max)) => format!(
                "mean {}, median {}, longest {}",
                human_time(mean),
                human_time(median),
                human_time(max)
            ),
            _ => unknown(),
        },
    );
    row(
        "turnaround",
        s.mean_turnaround_s.map_or_else(unknown, |t| format!("mean {}", human_time(t))),
    );
    row(
        "slowdown",
        match (s.mean_bsld, s.max_bsld) {
            (Some(mean), Some(max)) => {
                let nominal = s.mean_bsld_nominal.filter(|nominal| *nominal != mean);
                let nominal = nominal.map(|bsld| format!(", {bsld:.2} against nominal run times"));
                format!(
                    "mean {mean:.2}, worst {max:.2} (bounded, threshold {}){}",
                    human_time(s.bsld_threshold_s),
                    nominal.unwrap_or_default()
                )
            }
            _ => unknown(),
        },
    );
    row("utilisation", s.utilisation.map_or_else(unknown, share));
    row(
        "backfilled",
        format!(
            "{} of {} jobs ({})",
            s.backfilled,
            s.jobs,
            share(s.backfilled as f64 / s.jobs.max(1) as f64)
        ),
    );
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
    row("power", power);
    if s.power_is_assumed {
        let assumed = Machine::ASSUMED_NODE_POWER.as_f64();
        row("", format!("assuming {assumed} W a busy node; a machine file says what yours draws"));
    }
    let mut energy = human_energy(s.energy_j);
    if let Some(part) = s.energy_vs_nominal.filter(|part| *part != 1.0) {
        energy += &format!(" (jobs drew {} of what they would at nominal speed)", share(part));
    }
    row("energy", energy);
    if let Some(ghz) = s.mean_frequency_ghz.filter(|_| s.energy_vs_nominal != Some(1.0)) {
        row("frequency", format!("mean {ghz:.2} GHz"));
        if s.gears_are_assumed {
            row("", "assuming the built-in gears; a machine file says what yours are".to_owned());
        }
    }
    if s.changes > 0 {
        let moves = format!("{} of them with a pause for other nodes", s.moves);
        row("changes", format!("{} of nodes or caps of running jobs, {moves}", s.changes));
    }
    if s.restarts > 0 {
        row("restarts", format!("{} after failing nodes", s.restarts));
    }
    if s.over_budget_s > 0.0 {
        let (times, worst) = (s.excursions, human_power(s.worst_excursion_w));
        let long = human_time(s.over_budget_s);
        row("over budget", format!("{long} in {times} excursions, by {worst} at most"));
    }
    if s.violations > 0 {
        row("violations", format!("{} of {} decisions refused", s.violations, s.decisions));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_the_unit_that_suits_them() {
        assert_eq!(human_time(59.96), "60.0 s");
        assert_eq!(human_time(5400.0), "90.0 min");
        assert_eq!(human_time(36_000.0), "10.0 h");
        assert_eq!(human_time(864_000.0), "10.0 days");
        assert_eq!(human_power(4_200_000.0), "4.20 MW");
        assert_eq!(human_power(12.0), "12.0 W");
        assert_eq!(human_energy(1.5e9), "1.50 GJ");
    }
}
