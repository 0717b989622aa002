//! A daemon replays its finished jobs once a day. It proposes, and changes nothing; and whatever goes wrong with
//! that, it goes on.

use busbar::live::control::schedule::{Allowance, ScheduleSpec};
use busbar::live::control::setup::Nightly;
use busbar::live::job::{End, EventKind};
use busbar::policy::{BuildContext, Decision, Policy, PolicyKind, PolicySpec, View};
use busbar::tuning::Advice;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use super::by_hand::ByHand;
use crate::patience::wait_for;

/// A policy that cannot be replayed.
#[derive(Clone, Debug)]
struct Broken;

impl PolicyKind for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    fn about(&self) -> &str {
        "panics"
    }

    fn usual(&self) -> Self {
        Broken
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(Broken)
    }
}

impl Policy for Broken {
    fn decide(&mut self, _view: &View<'_>, _decisions: &mut Vec<Decision>) {
        panic!("as it should");
    }
}

/// A daemon that replays its past at 23:00 by these candidates.
fn daemon(folder: &std::path::Path, policies: Vec<PolicySpec>) -> ByHand {
    let unlimited = ScheduleSpec::Always(Allowance::Unlimited);
    let mut day = ByHand::new(folder, "easy", &unlimited);
    let nightly = Nightly::at(Time::constant(23, 0, 0, 0), TimeZone::UTC);
    day.tune(Nightly { policies, ..nightly });
    day.hand.set_wall(0);
    day.begin();
    day
}

/// Whoever runs ends.
fn end_all(day: &mut ByHand) {
    for attempt in day.engine.running() {
        assert!(day.engine.end(attempt, End::Exited(0)));
    }
    day.cycle();
}

/// Three jobs that need all nodes, in 10 000 s: of 600 s; a second later of 6000 s; and of 600 s again. They are
/// ended in the order in which EASY runs them.
fn group(day: &mut ByHand) {
    for seconds in [700, 6100, 700] {
        day.submit(4, seconds).unwrap();
        day.pass(1);
    }
    for seconds in [597, 6000, 600] {
        day.pass(seconds);
        end_all(day);
    }
    day.pass(10_000 - 7200);
}

/// What the daemon says about its replay, which another thread makes.
fn said(day: &mut ByHand) -> String {
    wait_for("that something is said", || {
        day.cycle();
        let about = |text: &String| text.starts_with("tuning");
        let mut notices = day.history().into_iter().filter_map(|line| match line.event.kind {
            EventKind::Notice { text, .. } => Some(text).filter(about),
            _ => None,
        });
        notices.next_back()
    })
}

/// By hand, as in `tests/cmd/tune-policy.trycmd`: the mean bounded slowdown is 4.70, and 1.40 if the short job goes
/// before the long one.
#[test]
fn it_proposes_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let aged: PolicySpec = "easy(order=aged)".parse().unwrap();
    let mut day = daemon(folder.path(), vec![aged]);
    for _ in 0..8 {
        group(&mut day);
    }
    assert_eq!(day.status().proposal, None);
    // It is 22:13; at 23:00 it begins.
    day.pass(47 * 60);
    let text = said(&mut day);
    let proposes = "tuning proposes: easy(order=aged) instead of easy: mean bounded slowdown 1.40 instead of 4.70";
    assert!(text.starts_with(proposes), "{text}");
    assert!(
        text.ends_with("write policy = \"easy(order=aged)\" into the configuration and send HUP"),
        "{text}"
    );
    let status = day.status();
    assert_eq!(status.policy, "easy");
    let proposal = status.proposal.unwrap();
    assert_eq!((proposal.advice, proposal.figures.jobs), (Advice::Adopt, 24));
    assert!((proposal.present_figures.mean_bsld - 4.6988).abs() < 1e-3, "{proposal:?}");
    assert!((proposal.figures.mean_bsld - 1.3988).abs() < 1e-3, "{proposal:?}");
    // Jobs run as before: first come, first served.
    let [_, second, _] = [700, 6100, 700].map(|seconds| day.submit(4, seconds).unwrap());
    end_all(&mut day);
    let running: Vec<u64> = day.engine.running().iter().map(|attempt| attempt.job).collect();
    assert_eq!(running, [second]);
    end_all(&mut day);
    end_all(&mut day);
    day.end();
}

/// Too few jobs, and a candidate that panics: an event, and the daemon goes on.
#[test]
fn a_replay_that_fails_is_an_event() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = daemon(folder.path(), vec![PolicySpec::of(Broken)]);
    group(&mut day);
    day.pass(73 * 1000);
    let text = said(&mut day);
    assert!(text.contains("there is no proposal: 3 finished jobs are too few"), "{text}");
    assert_eq!(day.status().proposal, None);
    day.end();

    let folder = tempfile::tempdir().unwrap();
    let mut day = daemon(folder.path(), vec![PolicySpec::of(Broken)]);
    for _ in 0..8 {
        group(&mut day);
    }
    day.pass(47 * 60);
    let text = said(&mut day);
    assert!(text.contains("there is no proposal: the replay failed"), "{text}");
    assert!(day.submit(1, 60).is_ok());
    assert_eq!((day.status().running, day.status().proposal), (1, None));
    end_all(&mut day);
    day.end();
}
