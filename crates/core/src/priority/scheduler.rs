//! How a site's Slurm is set to look at its queue: what `SchedulerParameters` says, and a little more.
//!
//! Keys are those of Slurm. Lengths are written with their unit, as everywhere in a site's file, where Slurm has seconds or
//! minutes.

use std::fmt::Display;

use crate::units::{Length, Span, parse_length};

/// Settings of Slurm's scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheduler {
    /// Whether there is a backfill pass beside the main loop.
    pub backfill: bool,
    /// Whether the main loop does not run whenever a job ends.
    pub defer: bool,
    /// Whether nodes have an epilog (`Epilog`), whose end they report by themselves: the main loop runs at once then. Without
    /// one, nodes say so when the controller asks, and it waits for the loop that is due, as it does for jobs that arrive.
    pub epilog: bool,
    /// How often the main loop goes through the whole queue.
    pub sched_interval: Span,
    /// How long the main loop waits after it ran before it runs for jobs that arrived.
    pub batch_sched_delay: Span,
    /// How many jobs the main loop looks at when something happened.
    pub default_queue_depth: u32,
    /// How many jobs of a partition the main loop looks at; 0 for all.
    pub partition_job_depth: u32,
    /// How many jobs the main loop starts at most; 0 for all.
    pub sched_max_job_start: u32,
    /// How often there is a backfill pass.
    pub bf_interval: Span,
    /// How far a backfill pass looks ahead.
    pub bf_window: Span,
    /// The resolution of its map.
    pub bf_resolution: Span,
    /// How many jobs it tries.
    pub bf_max_job_test: u32,
    /// How many jobs it starts; 0 for all.
    pub bf_max_job_start: u32,
    /// How many jobs of a user it tries; 0 for all.
    pub bf_max_job_user: u32,
    /// How many jobs of a partition it tries; 0 for all.
    pub bf_max_job_part: u32,
    /// How many jobs of a user in a partition it tries; 0 for all.
    pub bf_max_job_user_part: u32,
    /// How many jobs of a partition it promises nodes; 0 for all.
    pub bf_job_part_count_reserve: u32,
    /// For how many slots its map has room; 0 for as many as jobs are tried.
    pub bf_node_space_size: u32,
    /// Whoever has waited for less is promised nothing and blocks nobody.
    pub bf_min_age_reserve: Span,
    /// Whoever has a lower priority is promised nothing and blocks nobody.
    pub bf_min_prio_reserve: u32,
    /// By how much the steps become longer in which it looks at ends to come; nothing to double them.
    pub bf_window_linear: Span,
    /// How long after its limit a job is killed that goes on (`KillWait`).
    pub kill_wait: Span,
    /// Whether jobs are promised busy nodes before idle ones.
    pub bf_busy_nodes: bool,
    /// Whether jobs of one processor are on the last nodes.
    pub pack_serial_at_end: bool,
    /// Whether jobs are on the nodes with the largest part free (`CR_LLN`).
    pub lln: bool,
}

/// Those of Slurm 22.05 where nobody says anything, on nodes with an epilog, as nearly all sites have one.
impl Default for Scheduler {
    fn default() -> Self {
        Scheduler {
            backfill: true,
            defer: false,
            epilog: true,
            sched_interval: Span::from_secs(60),
            batch_sched_delay: Span::from_secs(3),
            default_queue_depth: 100,
            partition_job_depth: 0,
            sched_max_job_start: 0,
            bf_interval: Span::from_secs(30),
            bf_window: Span::from_secs(24 * 3600),
            bf_resolution: Span::from_secs(60),
            bf_max_job_test: 500,
            bf_max_job_start: 0,
            bf_max_job_user: 0,
            bf_max_job_part: 0,
            bf_max_job_user_part: 0,
            bf_job_part_count_reserve: 0,
            bf_node_space_size: 0,
            bf_min_age_reserve: Span::ZERO,
            bf_min_prio_reserve: 0,
            bf_window_linear: Span::ZERO,
            kill_wait: Span::from_secs(30),
            bf_busy_nodes: false,
            pack_serial_at_end: false,
            lln: false,
        }
    }
}

/// A setting: its key, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    field: Field,
}

#[derive(Clone, Copy)]
enum Field {
    Switch(fn(&mut Scheduler) -> &mut bool),
    Count {
        of: fn(&mut Scheduler) -> &mut u32,
        least: u32,
    },
    /// In seconds, from the least on.
    Length {
        of: fn(&mut Scheduler) -> &mut Span,
        least: u32,
    },
}

impl Setting {
    /// All settings.
    pub(crate) const ALL: &[Setting] = &[
        Setting::switch("backfill", |scheduler| &mut scheduler.backfill),
        Setting::switch("defer", |scheduler| &mut scheduler.defer),
        Setting::switch("epilog", |scheduler| &mut scheduler.epilog),
        Setting::length("sched_interval", 1, |scheduler| &mut scheduler.sched_interval),
        Setting::length("batch_sched_delay", 0, |scheduler| &mut scheduler.batch_sched_delay),
        Setting::count("default_queue_depth", 0, |scheduler| &mut scheduler.default_queue_depth),
        Setting::count("partition_job_depth", 0, |scheduler| &mut scheduler.partition_job_depth),
        Setting::count("sched_max_job_start", 0, |scheduler| &mut scheduler.sched_max_job_start),
        Setting::length("bf_interval", 1, |scheduler| &mut scheduler.bf_interval),
        Setting::length("bf_window", 60, |scheduler| &mut scheduler.bf_window),
        Setting::length("bf_resolution", 1, |scheduler| &mut scheduler.bf_resolution),
        Setting::count("bf_max_job_test", 1, |scheduler| &mut scheduler.bf_max_job_test),
        Setting::count("bf_max_job_start", 0, |scheduler| &mut scheduler.bf_max_job_start),
        Setting::count("bf_max_job_user", 0, |scheduler| &mut scheduler.bf_max_job_user),
        Setting::count("bf_max_job_part", 0, |scheduler| &mut scheduler.bf_max_job_part),
        Setting::count("bf_max_job_user_part", 0, |scheduler| &mut scheduler.bf_max_job_user_part),
        Setting::count("bf_job_part_count_reserve", 0, |scheduler| {
            &mut scheduler.bf_job_part_count_reserve
        }),
        Setting::count("bf_node_space_size", 0, |scheduler| &mut scheduler.bf_node_space_size),
        Setting::length("bf_min_age_reserve", 0, |scheduler| &mut scheduler.bf_min_age_reserve),
        Setting::count("bf_min_prio_reserve", 0, |scheduler| &mut scheduler.bf_min_prio_reserve),
        Setting::length("bf_window_linear", 0, |scheduler| &mut scheduler.bf_window_linear),
        Setting::length("kill_wait", 0, |scheduler| &mut scheduler.kill_wait),
        Setting::switch("bf_busy_nodes", |scheduler| &mut scheduler.bf_busy_nodes),
        Setting::switch("pack_serial_at_end", |scheduler| &mut scheduler.pack_serial_at_end),
        Setting::switch("lln", |scheduler| &mut scheduler.lln),
    ];

    const fn switch(key: &'static str, of: fn(&mut Scheduler) -> &mut bool) -> Self {
        Setting { key, field: Field::Switch(of) }
    }

    const fn count(key: &'static str, least: u32, of: fn(&mut Scheduler) -> &mut u32) -> Self {
        Setting { key, field: Field::Count { of, least } }
    }

    const fn length(key: &'static str, least: u32, of: fn(&mut Scheduler) -> &mut Span) -> Self {
        Setting { key, field: Field::Length { of, least } }
    }

    /// Sets it as it is written: `on` or `off`, a number, or a length of time.
    ///
    /// # Errors
    ///
    /// If that is no value for it: why, and what to write.
    pub(crate) fn set(&self, scheduler: &mut Scheduler, text: &str) -> Result<(), String> {
        match self.field {
            Field::Switch(of) => {
                *of(scheduler) = match text {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("'{text}': write on or off")),
                };
            }
            Field::Count { of, least } => {
                let number: Result<u32, _> = text.parse();
                let number = number.ok().filter(|number| *number >= least);
                *of(scheduler) =
                    number.ok_or_else(|| format!("'{text}': write a number from {least} on"))?;
            }
            Field::Length { of, least } => {
                let length = parse_length(text).map_err(|why| why.to_string())?;
                if length < Span::from_secs(least) {
                    return Err(format!("'{text}': it is at least {least}s"));
                }
                *of(scheduler) = length;
            }
        }
        Ok(())
    }

    /// Its value, as it is written.
    pub(crate) fn text(&self, scheduler: &Scheduler) -> String {
        let mut scheduler = scheduler.clone();
        let text: &dyn Display = match self.field {
            Field::Switch(of) => &if *of(&mut scheduler) { "on" } else { "off" },
            Field::Count { of, .. } => &*of(&mut scheduler),
            Field::Length { of, .. } => &Length(*of(&mut scheduler)),
        };
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_what_they_print() {
        let usual = Scheduler::default();
        let other = |field: &Setting| match field.field {
            Field::Switch(of) => {
                if *of(&mut usual.clone()) {
                    "off"
                } else {
                    "on"
                }
            }
            Field::Count { .. } => "7",
            Field::Length { .. } => "90s",
        };
        for setting in Setting::ALL {
            let mut changed = usual.clone();
            setting.set(&mut changed, other(setting)).unwrap();
            assert_ne!(changed, usual, "{}", setting.key);
            let mut again = usual.clone();
            setting.set(&mut again, &setting.text(&changed)).unwrap();
            assert_eq!(again, changed);
            setting.set(&mut again, &setting.text(&usual)).unwrap();
            assert_eq!(again, usual);
            assert!(setting.set(&mut again, "-1").is_err() && setting.set(&mut again, "").is_err());
        }
    }
}
