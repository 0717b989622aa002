//! A queue that only grows, while limits of the budget are to come.

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::scenario::Scenario;
use busbar::units::{Instant, Share, Span};
use busbar::workload::Workload;
use busbar::workload::lublin::Sizes;

use super::bench::{Bench, generate, machine_of, model_of};
use super::table::{Table, grouped, met};

/// Where a turn may take so many times as long in a queue that is four times as long.
const GROWTH: f64 = 2.0;

/// What a turn costs, with two lengths of the queue: under one limit, and under one that falls each afternoon.
pub(super) fn calendar(bench: &Bench) {
    let mut table = Table::new(
        "policy | budget | jobs | turns | µs/turn, best | median | of the shorter queue's | goal | met",
    );
    let few = if bench.quick { 2_500 } else { 10_000 };
    let workloads = [few, 4 * few].map(|jobs| generate(jobs, 3.0, Sizes::Mixed));
    for policy in ["easy", "easy-power", "share(use=caps)", "pb-guided"] {
        for by_day in [false, true] {
            let mut shorter = None;
            for workload in &workloads {
                let median = row(bench, &mut table, policy, by_day, workload, shorter);
                shorter = Some(median);
            }
        }
    }
    table.print();
}

fn row(
    bench: &Bench,
    table: &mut Table,
    policy: &str,
    by_day: bool,
    workload: &Workload,
    shorter: Option<f64>,
) -> f64 {
    let machine = machine_of(workload);
    let spec = policy.parse().expect("a policy");
    let model = model_of(&spec, &machine, workload);
    let budget = match by_day {
        true => afternoons(&machine, workload),
        false => Budget::constant(Share::percent(80).of(machine.max_power())),
    };
    let scenario = Scenario { budget, ..Scenario::new(&machine, workload, spec, model.as_ref()) };
    let (times, turns) = bench.time_turns(&scenario);
    let [best, median] = [times.best, times.median].map(|seconds| seconds * 1e6 / turns as f64);
    let growth = shorter.map(|shorter| median / shorter);
    table.row(vec![
        policy.to_owned(),
        if by_day { "falls each afternoon" } else { "80 %" }.to_owned(),
        grouped(workload.jobs().len() as u64),
        grouped(turns),
        format!("{best:.1}"),
        format!("{median:.1}"),
        growth.map_or("-".to_owned(), |growth| format!("{growth:.1} ×")),
        growth.map_or("-".to_owned(), |_| format!("≤ {GROWTH} ×")),
        growth.map_or("-".to_owned(), |growth| met(growth <= GROWTH)),
    ]);
    median
}

/// 80 % of the power, and 60 % from 14:00 to 18:00, for four times as long as jobs come.
pub(super) fn afternoons(machine: &Machine, workload: &Workload) -> Budget {
    let last = workload.jobs().last().map_or(Instant::ZERO, |job| job.submit);
    let days = 4 * last.since(Instant::ZERO).millis() / 86_400_000 + 1;
    let limit = |day: u64, hour: u64, percent: u32| {
        let at = Instant::ZERO + Span::from_millis((24 * day + hour) * 3_600_000);
        (at, Share::percent(percent).of(machine.max_power()))
    };
    let day = |day: u64| [limit(day, 0, 80), limit(day, 14, 60), limit(day, 18, 80)];
    Budget::from_steps((0..days).flat_map(day).collect()).expect("limits in order")
}
