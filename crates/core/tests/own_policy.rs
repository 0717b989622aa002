//! A policy from outside the crate, with two parameters: this file is all there is to it.

use busbar_core::budget::Budget;
use busbar_core::freedom::Freedoms;
use busbar_core::job::Job;
use busbar_core::machine::Machine;
use busbar_core::model::Rigid;
use busbar_core::policy::{
    BuildContext, Decision, Parameter, Policy, PolicyKind, PolicySpec, Room, View, register,
};
use busbar_core::scenario::Scenario;
use busbar_core::units::{Instant, Span};
use busbar_core::workload::Workload;

/// Starts the shortest of the first jobs in the queue, or the longest.
#[derive(Clone, Debug)]
struct ByLength {
    /// How many jobs are looked at.
    depth: usize,
    longest: bool,
}

impl PolicyKind for ByLength {
    fn name(&self) -> &str {
        "by-length"
    }

    fn about(&self) -> &str {
        "the shortest of the first jobs, or the longest"
    }

    fn usual(&self) -> Self {
        ByLength { depth: 100, longest: false }
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        vec![
            Parameter::number("depth", |policy: &mut Self| &mut policy.depth),
            Parameter::switch("longest", |policy| &mut policy.longest),
        ]
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

impl Policy for ByLength {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut room = Room::of(view);
        let mut first: Vec<_> = view.queue.iter().take(self.depth).collect();
        first.sort_by_key(|job| (view.job(*job).requested, *job));
        if self.longest {
            first.reverse();
        }
        for job in first {
            let point = view.nominal(job);
            if room.admits(&point) {
                room.take(&point);
                decisions.push(Decision::Start { job, point });
            }
        }
    }
}

/// The order in which jobs of 300, 100, 200 and 50 s start on one node. The first takes it when it comes alone.
fn starts(policy: &str) -> Vec<u64> {
    let machine = Machine::of_processors(1).unwrap();
    let jobs =
        (1..).zip([(0, 300), (1, 100), (2, 200), (3, 50)]).map(|(number, (submit, time))| {
            let time = Span::from_secs(time);
            (Job::new(number, Instant::from_secs(submit), 1, time), time)
        });
    let workload = Workload::new("four", jobs.collect::<Vec<_>>());
    let model = Rigid::on(&machine);
    let policy: PolicySpec = policy.parse().unwrap();
    let scenario = Scenario::new(&machine, &workload, policy, &model);
    let run = Scenario { budget: Budget::unlimited(), ..scenario }.run().run;
    let mut started: Vec<_> =
        run.records.iter().zip(1..).map(|(record, number)| (record.start, number)).collect();
    started.sort();
    started.into_iter().map(|(_, number)| number).collect()
}

#[test]
fn it_stands_beside_the_built_in_ones() {
    let usual = PolicySpec::of(ByLength { depth: 0, longest: true }.usual());
    register(std::slice::from_ref(&usual)).unwrap();
    assert_eq!("by-length".parse(), Ok(usual.clone()));
    assert_eq!("by-length(depth=100, longest=off)".parse(), Ok(usual.clone()));
    assert_eq!(usual.parameters(), [("depth", "100".to_owned()), ("longest", "off".to_owned())]);
    assert!(PolicySpec::known().contains(&usual) && !PolicySpec::all().contains(&usual));
    assert_eq!((usual.wants(), usual.needs()), (Freedoms::NONE, Freedoms::NONE));
    for text in ["by-length(depth=2)", "by-length(depth=2, longest=on)"] {
        assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
    }
    for (wrong, why) in [
        ("by-length(dept=2)", "did you mean 'depth'? it takes depth, longest"),
        (
            "by-length(depth=two)",
            "parameter 'depth': 'two': invalid digit found in string; write a number",
        ),
        ("by-length(longest=yes)", "parameter 'longest': 'yes': write on or off"),
        ("by-lenght", "did you mean 'by-length'?"),
    ] {
        let error = wrong.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    // When the first job ends the others wait.
    assert_eq!(starts("by-length"), [1, 4, 2, 3]);
    assert_eq!(starts("by-length(longest=on)"), [1, 3, 2, 4]);
    assert_eq!(starts("by-length(depth=2)"), [1, 2, 4, 3]);
    assert_eq!(starts("by-length(depth=1)"), [1, 2, 3, 4]);
}
