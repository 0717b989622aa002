//! What a turn costs the policies that change jobs, where all jobs come at once or the machine is large.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::{Beliefs, Profiled};
use busbar::profile::Profile;
use busbar::profile::cab::{self, Preset};
use busbar::scenario::Scenario;
use busbar::units::{self, Share, Span, Watts};
use busbar::workload::Workload;
use busbar::workload::lublin::Lublin;
use busbar::workload::rmap::{Trace, UsualTimes};

use super::bench::{Bench, model_of};
use super::table::{Table, grouped, met};

/// PARM on a machine of the size of the paper's projection under 80 % of its power, which is not
/// enough for the load.
pub(super) fn malleable(bench: &Bench) {
    let mut table = Table::new("policy | jobs | turns | s, best | median | ms/turn | goal | met");
    let machine = Machine::of_processors(40_960).expect("a machine");
    let lublin = Lublin { jobs: 1000, processors: 40_960, load: 1.0, ..Lublin::default() };
    let workload = lublin.generate().expect("a workload");
    for policy in ["parm(flex=none)", "parm(flex=moldable)", "parm"] {
        let spec = policy.parse().expect("a policy");
        let model = model_of(&spec, &machine, &workload);
        let scenario = Scenario {
            budget: Budget::constant(Share::percent(80).of(machine.max_power())),
            ..Scenario::new(&machine, &workload, spec, model.as_ref())
        };
        let (times, turns) = bench.time_turns(&scenario);
        table.row(vec![
            policy.to_owned(),
            grouped(1000),
            grouped(turns),
            format!("{:.2}", times.best),
            format!("{:.2}", times.median),
            format!("{:.3}", times.median * 1e3 / turns as f64),
            "< 10 s".to_owned(),
            met(times.median < 10.0),
        ]);
    }
    table.print();
}

/// RMAP's policies on the 64 nodes of cab, with 10 000 jobs that all come at once: how long a turn
/// takes. Users ask for the time their application takes, or for up to twice that, each for another.
pub(super) fn moldable(bench: &Bench) {
    let mut table =
        Table::new("requests | policy | turns | µs/turn, best | median | jobs/s | goal | met");
    let machine = Machine::cab();
    let profiles = cab::generate(Preset::Cab, 1);
    let usual = UsualTimes(profiles.iter().map(Profile::usual_times).collect());
    let trace = Trace { jobs: 10_000, gaps: 0.0, ..Trace::default() };
    let alike = trace.draw(&usual, 1).expect("a trace");
    let jobs =
        alike.jobs().iter().zip(alike.run_times()).zip(0u64..).map(|((job, time), place)| {
            // A different share of the time for each job, in no order.
            let more = job.requested.millis() * (place * 7919 % 10_007) / 10_007;
            let requested = Span::from_millis(job.requested.millis() + more);
            (Job { requested, ..*job }, *time)
        });
    let different = Workload::new("different", jobs);
    for (name, workload) in [("alike", &alike), ("all different", &different)] {
        let model = Profiled::new(&machine, &profiles, workload.jobs(), Beliefs::default());
        let model = model.expect("applications with profiles");
        for policy in ["rmap-traditional", "rmap-naive", "rmap-adaptive(slowdown=10%)"] {
            let scenario = Scenario {
                budget: Budget::constant(Watts::from_watts(8000)),
                ..Scenario::new(&machine, workload, policy.parse().expect("a policy"), &model)
            };
            let (times, turns) = bench.time_turns(&scenario);
            let micros = |seconds: f64| seconds * 1e6 / turns as f64;
            table.row(vec![
                name.to_owned(),
                policy.to_owned(),
                grouped(turns),
                format!("{:.1}", micros(times.best)),
                format!("{:.1}", micros(times.median)),
                grouped(times.speed(10_000) as u64),
                "< 20".to_owned(),
                met(micros(times.median) < 20.0),
            ]);
        }
    }
    table.print();
}

/// Share beside EASY on 256 nodes with 10 000 jobs that all come at once, under 60 % of the power: how long a turn
/// takes.
pub(super) fn share(bench: &Bench) {
    let mut table = Table::new("policy | turns | µs/turn, best | median | of EASY's | goal | met");
    let machine = Machine::of_processors(256).expect("a machine");
    let lublin = Lublin { jobs: 10_000, processors: 256, load: 1.0, ..Lublin::default() };
    let drawn = lublin.generate().expect("a workload");
    let at_once = drawn.jobs().iter().zip(drawn.run_times());
    let at_once = at_once.map(|(job, time)| (Job { submit: units::Instant::ZERO, ..*job }, *time));
    let workload = Workload::new("at once", at_once.collect::<Vec<_>>());
    let mut easy = None;
    for (policy, goal) in [
        ("easy", None),
        ("easy(order=history)", None),
        ("share(use=caps)", Some(5.0)),
        ("share(use=caps, order=aged)", Some(5.0)),
        ("share(use=caps, order=history)", Some(5.0)),
        ("share(use=recaps)", None),
        ("share(use=sizes)", None),
        ("share(use=resizes)", None),
    ] {
        let spec = policy.parse().expect("a policy");
        let model = model_of(&spec, &machine, &workload);
        let scenario = Scenario {
            budget: Budget::constant(Share::percent(60).of(machine.max_power())),
            ..Scenario::new(&machine, &workload, spec, model.as_ref())
        };
        let (times, turns) = bench.time_turns(&scenario);
        let micros = |seconds: f64| seconds * 1e6 / turns as f64;
        let median = micros(times.median);
        let mut row = vec![policy.to_owned(), grouped(turns), format!("{:.1}", micros(times.best))];
        row.push(format!("{median:.1}"));
        row.push(format!("{:.1}", median / *easy.get_or_insert(median)));
        row.extend(match goal {
            Some(goal) => [format!("≤ {goal}"), met(median <= goal)],
            None => ["-".to_owned(), "-".to_owned()],
        });
        table.row(row);
    }
    table.print();
}
