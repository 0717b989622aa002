//! Stories with a daemon that has no processes, and random ones in which it may die at any moment.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;

mod arrays;
mod switching;

use super::*;
use crate::config::LastResort;
use crate::engine::{Found, Power};
use crate::job::{After, JobRequest, Owner, Program, Submission};
use crate::store::Batch;
use crate::wire::{RefusalKind, State};
use busbar_core::freedom::Freedom;
use busbar_core::machine::{Details, Machine};
use busbar_core::policy::PolicySpec;
use busbar_core::profile::cab;
use busbar_core::units::Span;
use busbar_core::world::Repertoire;

const ALICE: Owner = Owner { user: 1000, group: 1000 };
const BOB: Owner = Owner { user: 1001, group: 1001 };
const ROOT: Owner = Owner { user: 0, group: 0 };

fn at(seconds: u32) -> Instant {
    Instant::from_secs(seconds)
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn submission(nodes: u32, seconds: u32) -> Submission {
    Submission {
        request: JobRequest {
            name: "test".to_owned(),
            nodes,
            moldable: None,
            time: Span::from_secs(seconds),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
        },
        program: Program {
            command: vec!["true".to_owned()],
            folder: "/".into(),
            environment: Vec::new(),
            output: "out".into(),
            errors: None,
        },
        array: None,
    }
}

/// Four nodes of 100 W, or a machine that suits the policy. What the policy believes takes longest to work out, and is
/// the same in every story.
fn setup(policy: &str) -> Setup {
    thread_local!(static KNOWN: RefCell<BTreeMap<String, Setup>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        known.entry(policy.to_owned()).or_insert_with(|| new_setup(policy)).clone()
    })
}

fn new_setup(policy: &str) -> Setup {
    let policy: PolicySpec = policy.parse().unwrap();
    let (machine, profiles) = match policy {
        PolicySpec::Rmap(_) => (Machine::cab(), cab::generate(cab::Preset::Cab, 1)),
        PolicySpec::Ppartition(_) | PolicySpec::Uniform(_) => {
            (Machine::catalyst(4, 1).unwrap(), Vec::new())
        }
        _ => (Machine::of_processors(4).unwrap(), Vec::new()),
    };
    let machine = Machine { details: Details::ideal(), ..machine };
    Setup::new(&machine, Repertoire::of(&profiles), policy).unwrap()
}

/// A controller with a file and a world that do what they are told.
struct World {
    controller: Controller,
    /// What is written down.
    file: BTreeMap<u64, Entry>,
    next: u64,
    /// What runs, what it draws if it is not stopped, and whether it is.
    running: BTreeMap<Attempt, (Watts, bool)>,
    /// Who was ever started.
    started: BTreeMap<Attempt, u32>,
    /// Nodes that are not on, as is written down.
    nodes_in_file: BTreeMap<u32, SwitchState>,
    /// Nodes that are not on, and when they will be where they are going.
    nodes: BTreeMap<u32, (SwitchState, Instant)>,
    events: Vec<EventKind>,
}

impl World {
    fn new(setup: Setup, budget: Budget) -> Self {
        let controller = Controller::new(setup, budget, Saved::default(), at(0)).unwrap();
        World {
            controller,
            file: BTreeMap::new(),
            next: 1,
            running: BTreeMap::new(),
            started: BTreeMap::new(),
            nodes_in_file: BTreeMap::new(),
            nodes: BTreeMap::new(),
            events: Vec::new(),
        }
    }

    fn submit(&mut self, now: Instant, submission: Submission) -> u64 {
        self.controller.submit(now, ALICE, submission, &|_| None).unwrap()
    }

    fn write(&mut self, batch: Batch) {
        for (entry, _) in batch.submitted {
            assert!(!self.file.contains_key(&entry.number), "a number is used once");
            self.next = self.next.max(entry.number + 1);
            self.file.insert(entry.number, entry);
        }
        for entry in batch.elements {
            assert!(!self.file.contains_key(&entry.number), "a number is used once");
            self.next = self.next.max(entry.number + 1);
            self.file.insert(entry.number, entry);
        }
        for entry in batch.changed {
            assert!(self.file.contains_key(&entry.number), "what changes is known");
            self.file.insert(entry.number, entry);
        }
        for (node, state) in batch.nodes {
            match state {
                Some(state) => _ = self.nodes_in_file.insert(node, state),
                None => _ = self.nodes_in_file.remove(&node),
            }
        }
        self.events.extend(batch.events.into_iter().map(|event| event.kind));
    }

    /// Does the first so many acts; returns who is gone because of a signal.
    fn act(&mut self, acts: &[Act], most: usize, limit: Watts) {
        for act in acts.iter().take(most) {
            let before = self.drawn();
            match act {
                Act::Start { attempt, allotment } => {
                    *self.started.entry(*attempt).or_default() += 1;
                    self.running.insert(*attempt, (allotment.power, false));
                }
                Act::Set { attempt, allotment, .. } => {
                    if let Some((power, _)) = self.running.get_mut(attempt) {
                        *power = allotment.power;
                    }
                    self.controller.confirmed(*attempt, allotment);
                }
                Act::Signal { attempt, signal: signal @ (Signal::Suspend | Signal::Resume) } => {
                    if let Some((_, is_stopped)) = self.running.get_mut(attempt) {
                        *is_stopped = *signal == Signal::Suspend;
                    }
                }
                Act::Switch { node, to, expected, .. } => {
                    let state = match to {
                        Power::Off => SwitchState::Stopping,
                        Power::On => SwitchState::Starting,
                    };
                    let now = self.controller.scheduler.ledger().now();
                    self.nodes.insert(*node, (state, now + *expected));
                }
                Act::Signal { .. } | Act::Forget { .. } | Act::Dismiss { .. } => (),
            }
            let power = self.drawn();
            assert!(power <= limit || power <= before, "{act:?} leads to {power}, over {limit}");
        }
    }

    /// What nodes draw without jobs.
    fn base(&self) -> Watts {
        let machine = &self.controller.setup.machine;
        let (idle, off) = (machine.node().idle, machine.off());
        let node = |node: u32| match self.nodes.get(&node) {
            None => idle,
            Some((SwitchState::Stopping, _)) => off.stop.power,
            Some((SwitchState::Off, _)) => off.power,
            Some((SwitchState::Starting, _)) => off.start.power,
        };
        (0..machine.nodes).map(node).sum()
    }

    /// What the whole machine draws.
    fn drawn(&self) -> Watts {
        self.base() + self.power()
    }

    /// Nodes that have been switched for long enough are there, and the daemon hears of it.
    fn arrive(&mut self, now: Instant) {
        for (node, (state, at)) in self.nodes.clone() {
            let to = match state {
                SwitchState::Stopping if at <= now => {
                    self.nodes.insert(node, (SwitchState::Off, Instant::NEVER));
                    Power::Off
                }
                SwitchState::Starting if at <= now => {
                    self.nodes.remove(&node);
                    Power::On
                }
                _ => continue,
            };
            self.controller.switched(now, node, None, to);
        }
    }

    fn power(&self) -> Watts {
        self.running.values().filter(|(_, is_stopped)| !is_stopped).map(|(power, _)| *power).sum()
    }

    /// A whole cycle.
    fn cycle(&mut self, now: Instant) -> Vec<Act> {
        self.arrive(now);
        self.controller.turn(now).unwrap();
        let Turn { batch, acts } = self.controller.take(now, 0);
        self.write(batch);
        let limit = self.controller.budget.at(now);
        self.act(&acts, usize::MAX, limit);
        acts
    }

    fn end(&mut self, now: Instant, attempt: Attempt, end: End) {
        self.running.remove(&attempt);
        self.controller.ended(now, attempt, end);
    }

    /// A new daemon finds what the last one wrote down and what runs.
    fn restart(&mut self, now: Instant) {
        let alive = self.file.values().filter(|entry| !matches!(entry.phase, Phase::Over(_)));
        let (jobs, nodes) = (alive.cloned().collect(), self.nodes_in_file.clone());
        let saved = Saved { jobs, nodes, next: self.next, ..Saved::default() };
        let setup = self.controller.setup.clone();
        let budget = self.controller.budget.clone();
        self.controller = Controller::new(setup, budget, saved, now).unwrap();
        for attempt in self.controller.attempts() {
            let found = match self.running.contains_key(&attempt) {
                true => Found::Running,
                false if self.started.contains_key(&attempt) => Found::Ended(End::Exited(0)),
                false => Found::NeverStarted,
            };
            self.controller.found(now, attempt, found);
        }
        self.controller.resend_settings();
    }

    fn state(&self, job: u64, now: Instant) -> (State, Option<String>) {
        let line = match self.controller.jobs.get(&job) {
            Some(entry) => self.controller.line(entry, now, &|_| 0),
            None => crate::answers::line(&self.file[&job], now, &|_| 0),
        };
        (line.state, line.reason)
    }
}

fn first(job: u64) -> Attempt {
    Attempt { job, number: 1 }
}

#[test]
fn nobody_has_more_jobs_than_one_user_may() {
    let setup = Setup { most_jobs_per_user: 2, ..setup("easy") };
    let mut world = World::new(setup, Budget::unlimited());
    let submit = |world: &mut World, who| {
        let answer = world.controller.submit(at(0), who, submission(4, 60), &|_| None);
        world.cycle(at(0));
        answer.map_err(|refusal| refusal.kind)
    };
    assert_eq!(submit(&mut world, ALICE), Ok(1));
    assert_eq!(submit(&mut world, ALICE), Ok(2));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
    assert_eq!(submit(&mut world, BOB), Ok(3));
    world.restart(at(0));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
    world.controller.cancel(at(0), ALICE, 2).unwrap();
    assert_eq!(submit(&mut world, ALICE), Ok(4));
    assert_eq!(submit(&mut world, ALICE), Err(RefusalKind::Full));
}

/// What is kept of one user's jobs has a bound in bytes, also after a restart.
#[test]
fn nobody_has_more_bytes_than_one_user_may() {
    let with = |bytes: usize| {
        let mut submission = submission(4, 60);
        submission.program.environment.push(("LARGE".to_owned(), "x".repeat(bytes)));
        submission
    };
    let (small, large) = (with(1000), with(5000));
    let setup = Setup { most_bytes_per_user: 3 * small.bytes(), ..setup("easy") };
    let mut world = World::new(setup, Budget::unlimited());
    let submit = |world: &mut World, who, submission: &Submission| {
        let answer = world.controller.submit(at(0), who, submission.clone(), &|_| None);
        world.cycle(at(0));
        answer
    };
    for job in 1..=3 {
        assert_eq!(submit(&mut world, ALICE, &small), Ok(job));
    }
    let refusal = submit(&mut world, ALICE, &small).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Full);
    let most = format!("more than {}; try later", 3 * small.bytes());
    assert!(refusal.message.contains(&most), "{refusal}");
    assert_eq!(submit(&mut world, BOB, &large).unwrap_err().kind, RefusalKind::Full);
    assert_eq!(submit(&mut world, BOB, &small), Ok(4), "others have their own");
    world.controller.cancel(at(0), ALICE, 2).unwrap();
    assert_eq!(submit(&mut world, ALICE, &small), Ok(5), "who goes makes room");
    assert!(submit(&mut world, ALICE, &small).is_err());
}

#[test]
fn who_cancels_holds_and_releases_is_written_down() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let (runs, waits) =
        (world.submit(at(0), submission(4, 60)), world.submit(at(0), submission(4, 60)));
    let late = world.submit(at(0), submission(4, 60));
    world.cycle(at(0));
    world.controller.hold(at(1), ALICE, waits).unwrap();
    world.controller.release(at(2), ROOT, waits).unwrap();
    world.controller.cancel(at(3), ROOT, waits).unwrap();
    world.controller.cancel(at(3), ALICE, runs).unwrap();
    world.cycle(at(3));
    // Who asks again, and a restart, change nothing.
    world.restart(at(40));
    world.controller.cancel(at(40), ROOT, runs).unwrap();
    world.end(at(41), first(runs), End::Signalled(9));
    world.cycle(at(41));
    world.controller.turn(at(110)).unwrap();
    world.end(at(110), first(late), End::Signalled(15));
    world.cycle(at(110));
    let by = |what: &EventKind| match what {
        EventKind::Held { job, by, .. } | EventKind::Ending { job, by, .. } => Some((*job, *by)),
        EventKind::Ended { job, outcome } => Some((*job, outcome.by)),
        _ => None,
    };
    let (alice, root) = (Some(ALICE.user), Some(ROOT.user));
    let expected = [
        (waits, alice),
        (waits, root),
        (waits, root),
        (runs, alice),
        (runs, alice),
        (runs, alice),
        // Its time was over.
        (late, None),
        (late, None),
    ];
    assert_eq!(world.events.iter().filter_map(by).collect::<Vec<_>>(), expected);
    let Phase::Over(outcome) = &world.file[&runs].phase else { panic!() };
    assert_eq!((outcome.reason, outcome.by), (Some(EndReason::Cancelled), alice));
}

/// Where applications were described, a name that none has is a typing mistake.
#[test]
fn an_application_that_is_not_known_is_refused() {
    let named = |name: &str| {
        let mut job = submission(1, 60);
        job.request.application = Some(name.to_owned());
        job
    };
    for policy in ["ppartition", "rmap-adaptive"] {
        let mut world = World::new(setup(policy), Budget::unlimited());
        let known = world.controller.setup.decider.applications()[0].to_owned();
        let typed = format!("{known}x");
        let refusal = world.controller.submit(at(0), ALICE, named(&typed), &|_| None).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Impossible);
        let meant = format!("did you mean '{known}'?");
        assert!(refusal.message.contains(&meant), "{}", refusal.message);
        assert!(refusal.message.contains("Known applications: "), "{}", refusal.message);
        let far =
            world.controller.submit(at(0), ALICE, named("zzzzzzzzzz"), &|_| None).unwrap_err();
        assert!(!far.message.contains("did you mean"), "{}", far.message);
        let request = named(&typed).request;
        assert!(world.controller.check_request(&request).is_err(), "nor can it be foreseen");
    }
    // Without --app the worst is assumed, and a known one is fine.
    let mut world = World::new(setup("parm"), Budget::unlimited());
    world.submit(at(0), submission(1, 60));
    let known = world.controller.setup.decider.applications()[0].to_owned();
    let job = world.submit(at(0), named(&known));
    assert_eq!(world.controller.advice(job), None);
    // Where nobody described any, other names are taken, and it is said that they make no difference.
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(0), named("CoMDD"));
    let advice = world.controller.advice(job).unwrap();
    let said = "names the application 'CoMDD', which has no profile, so the name has no effect";
    assert_eq!(advice, said);
    // Another policy takes over who was accepted.
    let budget = Budget::unlimited();
    world.controller.set_up(setup("parm"), budget, at(1)).unwrap();
    assert_eq!(world.controller.remark(job), None);
}

#[test]
fn a_job_is_written_down_before_it_starts_and_ends_well() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(1), submission(2, 60));
    world.controller.turn(at(1)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    let (entry, _) = &batch.submitted[0];
    let Phase::Running(run) = &entry.phase else { panic!("{entry:?}") };
    assert_eq!(run.allotment.nodes, [(0, watts(100)), (1, watts(100))]);
    assert_eq!(run.until, at(61));
    assert!(matches!(&acts[..], [Act::Start { attempt, .. }] if *attempt == first(job)));
    world.write(batch);
    world.act(&acts, 1, Watts::UNLIMITED);
    world.end(at(31), first(job), End::Exited(0));
    let acts = world.cycle(at(31));
    assert_eq!(acts, [Act::Forget { attempt: first(job) }]);
    let Phase::Over(outcome) = &world.file[&job].phase else { panic!() };
    assert!(outcome.succeeded());
    // Two nodes of 100 W for 30 s.
    assert_eq!(outcome.energy, Joules::from_joules(6000));
}

/// A job whose time is over is asked to end, and its nodes go to the one that waits for them, not to a third
/// one that would fit if the job stayed for as long as it may. If it does stay, that one starts a moment later.
#[test]
fn a_job_at_its_limit_is_waited_for_before_others_pass() {
    for ends in [true, false] {
        let mut world = World::new(setup("easy"), Budget::unlimited());
        let [_, waits] = [3, 4].map(|nodes| world.submit(at(0), submission(nodes, 60)));
        world.cycle(at(0));
        let short = world.submit(at(50), submission(1, 20));
        assert_eq!(world.cycle(at(50)), []);
        let asked = Act::Signal { attempt: first(1), signal: Signal::Terminate };
        assert_eq!(world.cycle(at(60)), [asked]);
        let moment = at(60) + SETTLING;
        assert_eq!(world.controller.next_deadline(), Some(moment));
        if ends {
            let soon = at(60) + Span::from_millis(20);
            world.end(soon, first(1), End::Signalled(15));
            world.cycle(soon);
            assert!(world.running.contains_key(&first(waits)));
        } else {
            world.cycle(moment);
            assert!(world.running.contains_key(&first(short)));
        }
    }
}

#[test]
fn the_budget_decides_who_runs() {
    let mut world = World::new(setup("easy"), Budget::constant(watts(250)));
    for _ in 0..3 {
        world.submit(at(0), submission(1, 60));
    }
    world.cycle(at(0));
    assert_eq!(world.power(), watts(200));
    assert_eq!(world.state(3, at(0)), (State::Waiting, Some("for power".to_owned())));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    world.cycle(at(1));
    assert_eq!(world.power(), watts(300), "new watts are used at once");
}

#[test]
fn a_falling_budget_slows_jobs_down_and_a_rising_one_speeds_them_up_again() {
    let mut world = World::new(setup("easy-power"), Budget::constant(watts(400)));
    for _ in 0..2 {
        world.submit(at(0), submission(2, 600));
    }
    world.cycle(at(0));
    assert_eq!(world.power(), watts(400));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    let acts = world.cycle(at(60));
    assert!(world.power() <= watts(300), "{}", world.power());
    assert!(acts.iter().all(|act| matches!(act, Act::Set { allotment, before, .. }
        if allotment.power < before.allotment.power && allotment.speed < 1_000_000)));
    // Who is slower may take longer.
    let slowed = world.file.values().filter_map(|entry| match &entry.phase {
        Phase::Running(run) if run.squeezed_from.is_some() => Some(run.until),
        _ => None,
    });
    assert!(slowed.into_iter().all(|until| until > at(600)));
    world.controller.set_budget(Budget::constant(watts(400)), true);
    world.cycle(at(120));
    assert_eq!(world.power(), watts(400), "everybody has what he had");
}

fn short_of_power(last_resort: LastResort) -> World {
    let mut world =
        World::new(Setup { last_resort, ..setup("easy") }, Budget::constant(watts(400)));
    for second in 0..3 {
        world.submit(at(second), submission(1, 600));
        world.cycle(at(second));
    }
    world.controller.set_budget(Budget::constant(watts(250)), true);
    world
}

#[test]
fn the_last_resort_can_be_to_wait() {
    let mut world = short_of_power(LastResort::Hold);
    assert_eq!(world.cycle(at(10)), []);
    assert!(world.controller.shortage().unwrap().contains("50W more than the limit of 250W"));
    let job = world.submit(at(11), submission(1, 1));
    world.cycle(at(11));
    assert_eq!(world.state(job, at(11)), (State::Waiting, Some("power is short".to_owned())));
    world.end(at(12), first(1), End::Exited(0));
    world.cycle(at(12));
    assert_eq!(world.controller.shortage(), None);
    let notices = world.events.iter().filter(|what| matches!(what, EventKind::Notice { .. }));
    assert_eq!(notices.count(), 1, "it is said once");
}

#[test]
fn the_last_resort_can_be_to_suspend_the_youngest() {
    let mut world = short_of_power(LastResort::Suspend);
    let acts = world.cycle(at(10));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Suspend }]);
    assert_eq!(world.power(), watts(200));
    assert_eq!(world.state(3, at(10)).0, State::Suspended);
    // Its time stands still as well: it has run for 8 of 600 s.
    world.controller.set_budget(Budget::constant(watts(400)), true);
    let acts = world.cycle(at(1000 - 408));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Resume }]);
    let Phase::Running(run) = &world.file[&3].phase else { panic!() };
    assert_eq!((run.until, run.suspended), (at(592 + 592), false));
    assert_eq!(run.energy, Joules::from_joules(800));
}

#[test]
fn the_last_resort_can_be_to_end_the_youngest() {
    let mut world = short_of_power(LastResort::Cancel);
    let acts = world.cycle(at(10));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Terminate }]);
    assert_eq!(world.cycle(at(11)), [], "one is enough, as soon as it has ended");
    world.end(at(12), first(3), End::Signalled(15));
    world.cycle(at(12));
    assert_eq!(world.state(3, at(12)), (State::Cancelled, Some("no power left for it".to_owned())));
    assert_eq!(world.controller.shortage(), None);
}

#[test]
fn a_job_whose_time_is_over_is_asked_to_end_and_then_made_to() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let job = world.submit(at(0), submission(1, 60));
    world.cycle(at(0));
    assert_eq!(world.controller.next_deadline(), Some(at(60)));
    assert_eq!(world.cycle(at(59)), []);
    let attempt = first(job);
    assert_eq!(world.cycle(at(60)), [Act::Signal { attempt, signal: Signal::Terminate }]);
    assert_eq!(world.cycle(at(61)), []);
    assert_eq!(world.controller.next_deadline(), Some(at(90)));
    assert_eq!(world.cycle(at(90)), [Act::Signal { attempt, signal: Signal::Kill }]);
    assert_eq!(world.cycle(at(120)), [Act::Signal { attempt, signal: Signal::Kill }], "again");
    assert_eq!(world.power(), watts(100), "it holds its power until it has ended");
    world.end(at(121), attempt, End::Signalled(9));
    world.cycle(at(121));
    assert_eq!(world.state(job, at(121)).0, State::TimedOut);
}

#[test]
fn jobs_wait_for_others_and_for_their_release() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let before = world.submit(at(0), submission(1, 60));
    let mut well = submission(1, 60);
    well.request.after = vec![After { job: before, any: false }];
    let well = world.submit(at(0), well);
    let mut any = submission(1, 60);
    any.request.after = vec![After { job: before, any: true }];
    any.request.held = true;
    let any = world.submit(at(0), any);
    world.cycle(at(0));
    assert_eq!(world.running.len(), 1);
    assert_eq!(world.state(well, at(0)), (State::Blocked, Some("after 1".to_owned())));
    world.end(at(5), first(before), End::Exited(3));
    world.cycle(at(5));
    let reason = Some("a job it depends on failed".to_owned());
    assert_eq!(world.state(well, at(5)), (State::Cancelled, reason));
    assert_eq!(world.state(any, at(5)).0, State::Held);
    world.controller.release(at(6), ALICE, any).unwrap();
    assert!(world.controller.release(at(6), ALICE, any).is_err(), "it is not held any more");
    world.cycle(at(6));
    assert_eq!(world.state(any, at(6)).0, State::Running);
    let mut late = submission(1, 60);
    late.request.after = vec![After { job: before, any: false }];
    let ended = |job| (job == before).then_some(false);
    let refusal = world.controller.submit(at(7), ALICE, late.clone(), &ended).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Impossible);
    let refusal = world.controller.submit(at(7), ALICE, late, &|_| None).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unknown);
}

#[test]
fn only_owners_and_operators_touch_jobs() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let (runs, waits) =
        (world.submit(at(0), submission(4, 60)), world.submit(at(0), submission(4, 60)));
    world.cycle(at(0));
    let controller = &mut world.controller;
    let kind = |result: Result<(), crate::wire::Refusal>| result.unwrap_err().kind;
    assert_eq!(kind(controller.cancel(at(1), BOB, runs)), RefusalKind::Forbidden);
    assert_eq!(kind(controller.hold(at(1), BOB, waits)), RefusalKind::Forbidden);
    assert_eq!(kind(controller.hold(at(1), ALICE, runs)), RefusalKind::Impossible);
    assert_eq!(kind(controller.cancel(at(1), ALICE, 99)), RefusalKind::Unknown);
    controller.hold(at(1), ROOT, waits).unwrap();
    controller.cancel(at(1), ALICE, runs).unwrap();
    let acts = world.cycle(at(1));
    assert_eq!(acts, [Act::Signal { attempt: first(runs), signal: Signal::Terminate }]);
    world.end(at(2), first(runs), End::Signalled(15));
    world.cycle(at(2));
    assert_eq!(world.state(waits, at(2)).0, State::Held);
    world.controller.cancel(at(3), ALICE, waits).unwrap();
    world.cycle(at(3));
    assert_eq!(world.state(waits, at(3)), (State::Cancelled, Some("cancelled".to_owned())));
    assert!(world.controller.jobs.is_empty());
}

#[test]
fn who_stands_still_is_ended_by_force() {
    let mut world = short_of_power(LastResort::Suspend);
    world.cycle(at(10));
    world.controller.cancel(at(11), ALICE, 3).unwrap();
    let acts = world.cycle(at(11));
    assert_eq!(acts, [Act::Signal { attempt: first(3), signal: Signal::Kill }], "it gets no power");
    world.end(at(12), first(3), End::Signalled(9));
    world.cycle(at(12));
    assert_eq!(world.state(3, at(12)).0, State::Cancelled);
}

#[test]
fn wishes_that_cannot_be_are_refused() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let mut refused = |change: &dyn Fn(&mut Submission)| {
        let mut submission = submission(1, 60);
        change(&mut submission);
        world.controller.submit(at(0), ALICE, submission, &|_| None).unwrap_err().kind
    };
    assert_eq!(refused(&|s| s.request.nodes = 0), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.nodes = 5), RefusalKind::Impossible);
    assert_eq!(refused(&|s| s.request.time = Span::ZERO), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.time = Span::FOREVER), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.moldable = Some((2, 4))), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.moldable = Some((1, 0))), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.slowdown = Some("much".into())), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.request.name = "a\nb".into()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.command.clear()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.folder = "here".into()), RefusalKind::Malformed);
    assert_eq!(refused(&|s| s.program.command = vec!["a\0".into()]), RefusalKind::Malformed);
    assert!(world.controller.is_clean(), "what is refused leaves nothing");
}

#[test]
fn a_job_that_cannot_be_fed_now_waits_and_says_why() {
    let mut world = World::new(setup("easy"), Budget::constant(watts(150)));
    let job = world.submit(at(0), submission(2, 60));
    assert_eq!(world.controller.remark(job), Some("needs more power than the budget allows"));
    world.cycle(at(0));
    assert_eq!(world.running.len(), 0);
    world.controller.set_budget(Budget::constant(watts(200)), true);
    world.cycle(at(1));
    assert_eq!(world.state(job, at(1)).0, State::Running);
}

#[test]
fn what_could_not_be_lowered_gives_nobody_more() {
    let mut world = World::new(setup("easy-power"), Budget::constant(watts(400)));
    for _ in 0..2 {
        world.submit(at(0), submission(2, 600));
    }
    world.cycle(at(0));
    world.controller.set_budget(Budget::constant(watts(300)), true);
    world.controller.turn(at(1)).unwrap();
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    world.write(batch);
    // The very first act fails.
    world.controller.undo(at(1), &acts.iter().collect::<Vec<_>>(), "no hand to turn it down");
    let Turn { batch, acts } = world.controller.take(at(1), 0);
    world.write(batch);
    assert_eq!(acts, []);
    let held: Watts = world
        .file
        .values()
        .map(|entry| match &entry.phase {
            Phase::Running(run) => run.allotment.power,
            _ => Watts::ZERO,
        })
        .sum();
    assert_eq!(held, watts(400), "it is known to draw what it drew");
    world.cycle(at(2));
    assert!(world.power() <= watts(300), "and is tried again");
}

/// What happens in a random story.
#[derive(Clone, Debug)]
enum Step {
    Submit {
        nodes: u32,
        seconds: u32,
        held: bool,
        after: Option<u64>,
    },
    /// One of those that run ends.
    End(usize, i32),
    Cancel(u64),
    Hold(u64),
    Release(u64),
    Budget(u32),
    /// The daemon dies after so many acts of its next cycle, and another one begins.
    Die(usize),
    /// It dies before it has written anything of its next cycle.
    DieUnwritten,
    /// Another policy is to decide from now on, where the machine is like others.
    Policy(usize),
    Wait(u32),
}

/// Policies that a daemon may be told to go on with.
const OTHERS: [&str; 5] = ["easy", "easy-power", "parm", "conservative", "share"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..=4u32, 1..100u32, any::<bool>(), proptest::option::weighted(0.2, 1..20u64))
            .prop_map(|(nodes, seconds, held, after)| Step::Submit {
                nodes, seconds, held: held && after.is_none(), after
            }),
        4 => (0..4usize, 0..2i32).prop_map(|(which, code)| Step::End(which, code)),
        1 => (1..20u64).prop_map(Step::Cancel),
        1 => (1..20u64).prop_map(Step::Hold),
        2 => (1..20u64).prop_map(Step::Release),
        2 => (0..=8u32).prop_map(|fifties| Step::Budget(50 * fifties + 20)),
        2 => (0..6usize).prop_map(Step::Die),
        1 => Just(Step::DieUnwritten),
        1 => (0..OTHERS.len()).prop_map(Step::Policy),
        3 => (1..60u32).prop_map(Step::Wait),
    ]
}

/// A story must not lose a job, start an attempt twice, or draw more than the limit at any step, unless
/// the limit has fallen and what runs is at its floor.
fn tell(policy: &str, last_resort: LastResort, steps: &[Step]) {
    tell_with(Setup { last_resort, ..setup(policy) }, steps);
}

fn tell_with(setup: Setup, steps: &[Step]) {
    let last_resort = setup.last_resort;
    // Applications with profiles run on eight nodes at least.
    let is_profiled = matches!(setup.decider.spec(), PolicySpec::Rmap(_));
    let scale = if is_profiled { 20 } else { 1 };
    let application = setup.decider.applications().first().cloned();
    let mut world = World::new(setup, Budget::constant(watts(400 * scale)));
    let mut now = at(0);
    let mut accepted = 0;
    for step in steps {
        now = now + Span::from_millis(10);
        // What the daemon hears now it may forget, if it dies.
        world.arrive(now);
        match step.clone() {
            Step::Submit { nodes, seconds, held, after } => {
                let mut submission = submission(nodes, seconds);
                submission.request.held = held;
                submission.request.application.clone_from(&application);
                if world.controller.setup.decider.spec().wants().has(Freedom::Sizes) {
                    submission.request.moldable = Some((1, world.controller.setup.machine.nodes));
                }
                submission.request.after =
                    after.map(|job| After { job, any: job % 2 == 0 }).into_iter().collect();
                let file = world.file.clone();
                let over = |job| match &file.get(&job)?.phase {
                    Phase::Over(outcome) => Some(outcome.succeeded()),
                    _ => None,
                };
                accepted +=
                    u64::from(world.controller.submit(now, ALICE, submission, &over).is_ok());
            }
            Step::End(which, code) => {
                let attempt = world.running.keys().nth(which).copied();
                if let Some(attempt) = attempt {
                    world.end(now, attempt, End::Exited(code));
                }
            }
            Step::Cancel(job) => drop(world.controller.cancel(now, ALICE, job)),
            Step::Hold(job) => drop(world.controller.hold(now, ALICE, job)),
            Step::Release(job) => drop(world.controller.release(now, ALICE, job)),
            Step::Budget(power) => {
                world.controller.set_budget(Budget::constant(watts(power * scale)), true);
            }
            Step::Policy(which) => {
                let setup = world.controller.setup.clone();
                let setup = setup.decided_by(OTHERS[which].parse().unwrap()).unwrap();
                let budget = world.controller.budget.clone();
                world.controller.set_up(setup, budget, now).unwrap();
            }
            Step::Wait(seconds) => now = now + Span::from_secs(seconds),
            Step::DieUnwritten => {
                world.controller.turn(now).unwrap();
                let unwritten = world.controller.take(now, 0).batch.submitted.len() as u64;
                accepted -= unwritten;
                world.restart(now);
            }
            Step::Die(most) => {
                world.controller.turn(now).unwrap();
                let Turn { batch, acts } = world.controller.take(now, 0);
                world.write(batch);
                let limit = world.controller.budget.at(now);
                world.act(&acts, most, limit);
                world.restart(now);
            }
        }
        world.cycle(now);
        // Whoever is asked to end does so at once.
        let ending = world.controller.jobs.values().filter_map(|entry| match &entry.phase {
            Phase::Running(run) if run.ending.is_some() => {
                Some(Attempt { job: entry.number, number: entry.attempts })
            }
            _ => None,
        });
        for attempt in ending.collect::<Vec<_>>() {
            world.end(now, attempt, End::Signalled(15));
        }
        world.cycle(now);
        world.controller.scheduler.ledger().check().unwrap();
        let limit = world.controller.budget.at(now);
        let held: Watts = world.controller.scheduler.ledger().held();
        assert_eq!(world.power(), held, "what is drawn is what the ledger says");
        world.check_nodes();
        assert!(
            held <= limit || last_resort == LastResort::Hold && world.controller.shortage.is_some(),
            "{held} over {limit}"
        );
        assert!(world.started.values().all(|times| *times == 1), "an attempt starts once");
        for (number, entry) in &world.controller.jobs {
            // That a change was confirmed is written with whatever is written next.
            let known = world.file.get(number).cloned().map(|mut known| {
                if let (Phase::Running(known), Phase::Running(run)) =
                    (&mut known.phase, &entry.phase)
                    && run.before.is_none()
                {
                    known.before = None;
                }
                known
            });
            assert_eq!(known.as_ref(), Some(entry), "the file knows it all");
        }
    }
    assert_eq!(world.file.len() as u64, accepted, "no job is lost");
    let refused = |what: &&EventKind| matches!(what, EventKind::Notice { text } if text.contains("decision of the policy was refused"));
    assert_eq!(world.events.iter().find(refused), None, "policies decide what can be");
}

#[test]
fn a_running_job_that_a_new_policy_does_not_know_holds_what_it_holds() {
    let cab = setup("rmap-adaptive");
    let machine = Machine { details: Details::ideal(), ..Machine::cab() };
    let easy = Setup::new(&machine, Repertoire::BuiltIn, "easy-power".parse().unwrap()).unwrap();
    let limit = Budget::constant(watts(3000));
    let mut world = World::new(easy, limit.clone());
    let mut job = submission(8, 600);
    job.request.application = Some("one that has no profile".to_owned());
    world.submit(at(0), job);
    world.cycle(at(0));
    let drawn = world.power();
    assert!(drawn > Watts::ZERO);
    world.controller.set_up(cab, limit, at(1)).unwrap();
    let ledger = world.controller.scheduler.ledger();
    assert_eq!((ledger.held(), ledger.free_nodes()), (drawn, 64 - 8));
    // A lower limit cannot slow it, as nobody knows how; but nobody else starts.
    world.controller.set_budget(Budget::constant(watts(500)), true);
    world.cycle(at(2));
    assert_eq!(world.power(), drawn);
    assert!(world.controller.shortage().is_some());
    world.end(at(3), first(1), End::Exited(0));
    world.cycle(at(3));
    assert_eq!(world.controller.scheduler.ledger().held(), Watts::ZERO);
}

#[test]
fn a_job_may_wait_for_many() {
    let mut world = World::new(setup("easy"), Budget::unlimited());
    let mut last = submission(1, 60);
    last.request.after = (1..=200).map(|job| After { job, any: true }).collect();
    for _ in 0..200 {
        let mut held = submission(1, 60);
        held.request.held = true;
        world.submit(at(0), held);
    }
    let last = world.submit(at(0), last);
    for job in 1..=200 {
        assert_eq!(world.state(last, at(1)).0, State::Blocked);
        world.controller.cancel(at(1), ALICE, job).unwrap();
        world.cycle(at(1));
    }
    assert_eq!(world.state(last, at(1)).0, State::Running);
    let mut too_many = submission(1, 60);
    too_many.request.after = vec![After { job: last, any: true }; 1001];
    assert!(world.controller.submit(at(2), ALICE, too_many, &|_| None).is_err());
}

/// A limit that falls tomorrow is no reason to stand still today.
#[test]
fn who_stands_still_goes_on_although_a_limit_will_fall() {
    let mut world = short_of_power(LastResort::Suspend);
    world.cycle(at(10));
    assert_eq!(world.state(3, at(10)).0, State::Suspended);
    let steps = vec![(at(0), watts(400)), (at(100), watts(250))];
    world.controller.set_budget(Budget::from_steps(steps).unwrap(), false);
    world.cycle(at(11));
    assert_eq!(world.state(3, at(11)).0, State::Running);
    world.cycle(at(100));
    assert_eq!(world.state(3, at(100)).0, State::Suspended, "when it falls, it falls");
    assert!(world.controller.shortage().is_some());
    let later = world.submit(at(101), submission(1, 1));
    world.cycle(at(101));
    assert_eq!(world.state(later, at(101)).0, State::Waiting, "nobody takes its power");
    assert!(world.controller.shortage().is_some(), "and that is said as long as it lasts");
}

/// What running jobs give up when the limit falls is not there for others.
#[test]
fn nobody_starts_with_watts_that_are_missing() {
    let submit = |nodes| Step::Submit { nodes, seconds: 1, held: false, after: None };
    tell(
        "share(use=recaps)",
        LastResort::Hold,
        &[submit(1), submit(4), submit(1), Step::Budget(20)],
    );
}

fn last_resort() -> impl Strategy<Value = LastResort> {
    prop_oneof![Just(LastResort::Hold), Just(LastResort::Suspend), Just(LastResort::Cancel)]
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn stories_under_every_policy(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("conservative"), Just("easy-power"),
            Just("pb-guided(bsld_lower=5)"), Just("parm"), Just("parm(flex=moldable)"), Just("share"),
            Just("share(use=caps, order=history)"), Just("share(use=recaps)"), Just("share(use=sizes)"),
            Just("rmap-traditional"), Just("rmap-adaptive"), Just("rmap-adaptive(guard=10%)"),
            Just("ppartition"), Just("uniform"), Just("uniform(cap=min)"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell(policy, last_resort, &steps);
    }

    /// A policy that forgets who was withdrawn decides as a new one does, which never knew of them.
    #[test]
    fn to_forget_is_to_begin_anew(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("easy-power"), Just("pb-guided(bsld_lower=5)"),
        ],
        steps in proptest::collection::vec((0..5_u32, 1..=4_u32, 1..60_u32), 1..60),
    ) {
        let world = || World::new(setup(policy), Budget::constant(watts(250)));
        let mut worlds = [world(), world()];
        let mut now = at(0);
        for (kind, nodes, seconds) in steps {
            now = now + Span::from_secs(seconds);
            for (place, world) in worlds.iter_mut().enumerate() {
                let waits = |entry: &&Entry| entry.phase == Phase::Waiting;
                let waiting: Vec<u64> =
                    world.controller.jobs.values().filter(waits).map(|job| job.number).collect();
                let chosen = waiting.get(nodes as usize % waiting.len().max(1)).copied();
                match (kind, chosen) {
                    (0 | 1, _) => {
                        world.submit(now, submission(nodes, 20 * seconds));
                    }
                    (2, Some(job)) => world.controller.cancel(now, ALICE, job).unwrap(),
                    (3, Some(job)) => {
                        let held = world.controller.jobs[&job].request.held;
                        world.controller.set_held(now, job, !held, None);
                    }
                    _ => {
                        if let Some(first) = world.controller.attempts().first() {
                            world.end(now, *first, End::Exited(0));
                        }
                    }
                }
                prop_assert!(!world.controller.must_rebuild);
                world.controller.must_rebuild = place == 1 && matches!(kind, 2 | 3);
                world.controller.must_ask |= matches!(kind, 2 | 3);
                world.cycle(now);
            }
            prop_assert_eq!(&worlds[0].controller.jobs, &worlds[1].controller.jobs);
        }
    }
}
