//! A job that has to wait changes nothing: if the policy never hears of it, everybody else gets the
//! same caps until it starts.
//!
//! The policy is asked as often in both runs. Asked once more, it might well start somebody: whoever
//! starts leaves others with a smaller share, and on a smaller share one may ask for fewer processors
//! and so find room.

use busbar::model::Caps;
use busbar::policy::{BuildContext, Changes, Decision, Policy, PolicySpec, View};
use busbar::units::JobId;

use super::*;

/// A policy that does not hear of a job.
struct Deaf {
    inner: Box<dyn Policy>,
    to: Option<JobId>,
}

impl Policy for Deaf {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let arrived = view.changes.arrived.iter().copied();
        let heard: Vec<JobId> = arrived.filter(|job| Some(*job) != self.to).collect();
        let changes = Changes { arrived: &heard, ..view.changes };
        self.inner.decide(&View { changes, ..*view }, decisions);
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }

    fn names_nodes(&self) -> bool {
        self.inner.names_nodes()
    }
}

impl Story {
    /// Runs it with a policy that does not hear of a job.
    fn run_deaf_to(&self, job: Option<JobId>) -> Run {
        let (machine, workload) = (machine(&self.curves, self.base_watts), workload(&self.jobs));
        let model = Varied::on(&machine, workload.jobs(), 1);
        let policy: PolicySpec = self.rules.text().parse().unwrap();
        Simulation::new(&machine, &workload)
            .model(&model)
            .budget(self.budget())
            .outages(self.outages())
            .events(self.events)
            .keep_power(true)
            .run(&mut Deaf { inner: policy.build(&BuildContext::default()), to: job })
    }

    /// Whether nobody else asks for as many nodes for the same application. Who does is refused with
    /// the first of his kind, however much changes between the two.
    fn is_alone_of_its_kind(&self, place: usize) -> bool {
        let kind = |job: &Asked| (job.1, job.4);
        let own = kind(&self.jobs[place]);
        self.jobs.iter().filter(|job| kind(job) == own).count() == 1
    }
}

/// All caps before an instant: when, whose, and which.
fn caps_before(run: &Run, before: Instant) -> Vec<(Instant, JobId, Caps)> {
    let cappings = run.cappings.iter().filter(|capping| capping.at < before);
    cappings.map(|capping| (capping.at, capping.job, capping.caps.clone())).collect()
}

/// Hides each job that waited, one at a time; says how many.
fn check(story: &Story) -> usize {
    let run = story.run_deaf_to(None);
    let jobs = workload(&story.jobs);
    let mut hidden = 0;
    for (place, record) in run.records.iter().enumerate() {
        let has_waited = record.state == State::Waiting
            || record.state.has_run() && record.start > jobs.jobs()[place].submit;
        if !has_waited || record.restarts > 0 || !story.is_alone_of_its_kind(place) {
            continue;
        }
        hidden += 1;
        let other = story.run_deaf_to(Some(JobId(place as u32)));
        assert_eq!(other.records[place].state, State::Waiting);
        let expected = caps_before(&run, record.start);
        assert_eq!(caps_before(&other, record.start), expected, "without #{place}");
        for (with, without) in run.records.iter().zip(&other.records) {
            if with.state.has_run() && with.end < record.start {
                assert_eq!(with.backfilled, without.backfilled);
                assert_eq!((with.start, with.end), (without.start, without.end));
                assert_eq!((with.power, with.state), (without.power, without.state));
            }
        }
    }
    hidden
}

/// Under the rule by which nobody waits because of another.
fn skipping(mut story: Story) -> Story {
    story.rules.refusal = Refusal::Skip;
    story
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 3 + 1, ..ProptestConfig::default() })]

    #[test]
    fn who_waits_changes_nothing(story in stories(6, 10, 1).prop_map(skipping)) {
        check(&story);
    }
}

/// Two processors, 90 W; one job has one of them and all the power, and the other asks for two.
#[test]
fn who_waits_is_hidden() {
    let story = Story {
        curves: vec![vec![vec![(50_000, 100), (100_000, 150)]; 2]],
        base_watts: 0,
        jobs: vec![(0, 1, 100, 100, 1), (5, 2, 100, 100, 1)],
        budget: vec![(0, 90)],
        outages: vec![],
        rules: Rules {
            sizes: (4, 64),
            refusal: Refusal::Skip,
            is_uncapped: false,
            fewest: 0,
            sharing: Sharing::Busbar,
        },
        events: Events::Instant,
    };
    assert_eq!(check(&story), 1);
}
