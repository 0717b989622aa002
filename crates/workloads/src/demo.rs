//! The built-in workload: something to simulate before any log is at hand.

use crate::lublin::Lublin;
use busbar_core::workload::Workload;

/// Processors of the machine the demo is made for.
const PROCESSORS: u32 = 256;

/// Nearly three weeks on a busy machine of 256 processors: 2 000 jobs at a load of 0.9.
///
/// The jobs come from the Lublin–Feitelson model with a fixed seed, so they are the same on every
/// run. The queue fills while people work and shrinks overnight, some days are quiet and some see
/// a rush, and a few jobs want the whole machine: if all go strictly by turn the average job waits
/// for days, with backfilling for hours.
pub fn demo() -> Workload {
    Lublin { jobs: 2_000, processors: PROCESSORS, load: 0.9, seed: 1, ..Lublin::default() }
        .draw("demo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_is_what_it_says() {
        let demo = demo();
        assert_eq!(demo.name(), "demo");
        assert_eq!(demo.processors(), Some(256));
        assert_eq!(demo.jobs().len(), 2_000);
        assert!(demo.largest_job() <= 256);
        let load = demo.offered_load(256).unwrap();
        assert!((load - 0.9).abs() < 0.001, "{load}");
        let days = demo.jobs().last().unwrap().submit.secs_f64() / 86_400.0;
        assert!((18.0..21.0).contains(&days), "{days} days");
        assert!(demo.recorded_starts().is_none());
    }

    #[test]
    fn some_jobs_want_the_whole_machine() {
        let whole = demo().jobs().iter().filter(|job| job.nodes == 256).count();
        assert!((10..200).contains(&whole), "{whole}");
    }

    #[test]
    fn the_demo_is_always_the_same() {
        assert_eq!(demo().jobs(), demo().jobs());
        assert_eq!(demo().run_times(), demo().run_times());
    }
}
