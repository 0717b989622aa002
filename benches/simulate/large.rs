//! A month of a large site: 10 000 nodes and 100 000 jobs, in the world that all policies share.

use std::ops::ControlFlow;
use std::time::Instant;

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::policy::PolicySpec;
use busbar::prepared::{PreparedWorkload, Rules, SharedWorld};
use busbar::units::Share;
use busbar::workload::lublin::Lublin;
use busbar::world::Repertoire;

use super::bench::{Bench, timed};
use super::calendar::afternoons;
use super::table::{Table, grouped, met};

const NODES: u32 = 10_000;
/// Jobs are those of a machine of so many nodes: with larger ones, so many jobs would take years.
const LARGEST: u32 = 256;
/// The load of the large machine.
const LOAD: f64 = 0.85;
/// In seconds.
const GOAL: f64 = 10.0;
/// Who takes so many times the goal is broken off: how much more it would be says nothing more, and some would take an hour.
const MOST: f64 = 3.0;

const POLICIES: [&str; 14] = [
    "easy-power",
    "uniform",
    "utility",
    "conservative",
    "pb-guided",
    "rmap-traditional",
    "rmap-adaptive",
    "share(use=caps)",
    "share(use=sizes)",
    "share(use=recaps)",
    "share(use=resizes)",
    "share(order=history)",
    "parm",
    "ppartition",
];

/// How long each policy takes for the whole month, under 70 % of the power and under a limit that falls each afternoon.
pub(super) fn large(bench: &Bench) {
    let mut table = Table::new("policy | budget | jobs | turns | seconds | goal | met");
    let jobs = if bench.quick { 5_000 } else { 100_000 };
    let load = LOAD * f64::from(NODES) / f64::from(LARGEST);
    let lublin = Lublin { jobs, load, processors: LARGEST, ..Lublin::default() };
    let workload = lublin.generate().expect("valid parameters");
    let applications = Repertoire::BuiltIn;
    let machine = Machine::of_processors(NODES).expect("a machine");
    let machine = applications.filled_in(&machine).expect("a machine that suits");
    let prepared = PreparedWorkload::new(machine, workload, true);
    let PreparedWorkload { machine, workload, .. } = &prepared;
    let shared = SharedWorld::new(machine, workload, &applications, &Rules::default(), 1);
    let shared = shared.expect("a world");
    for name in POLICIES {
        for by_day in [false, true] {
            let policy: PolicySpec = name.parse().expect("a policy");
            let belief = shared.belief(&policy, machine, workload.jobs()).expect("a belief");
            let budget = match by_day {
                true => afternoons(machine, workload),
                false => Budget::constant(Share::percent(70).of(machine.max_power())),
            };
            let scenario = prepared.in_shared_world(policy, budget, &shared, belief.as_ref());
            let goal = GOAL * f64::from(jobs) / 100_000.0;
            let (begun, mut ended) = (Instant::now(), 0);
            let mut progress = |jobs: usize| {
                ended = jobs;
                match begun.elapsed().as_secs_f64() > MOST * goal {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            let (seconds, simulated) = timed(|| scenario.simulate_with(&mut progress));
            let is_whole = simulated.run.unfinished == 0;
            // The section takes minutes.
            eprintln!("{name}: {seconds:.2} s");
            table.row(vec![
                name.to_owned(),
                if by_day { "falls each afternoon" } else { "70 %" }.to_owned(),
                match is_whole {
                    true => grouped(jobs.into()),
                    false => format!("the first {}", grouped(ended as u64)),
                },
                grouped(simulated.run.turns),
                match is_whole {
                    true => format!("{seconds:.2}"),
                    false => format!("more than {seconds:.0}"),
                },
                format!("≤ {goal} s"),
                met(seconds <= goal),
            ]);
        }
    }
    table.print();
}
