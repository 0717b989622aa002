//! A daemon that is driven cycle by cycle, with a clock that is moved by hand and an engine that runs
//! nothing and remembers what it was asked to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use busbar::live::control::active_budget::ActiveBudget;
use busbar::live::control::clock::Hand;
use busbar::live::control::daemon::{Daemon, LoopOptions};
use busbar::live::control::schedule::{Schedule, ScheduleSpec};
use busbar::live::control::setup::{LastResort, Nightly, Setup};
use busbar::live::engine::{AtOnce, Call, Recording, Signal, USUAL_DEADLINE};
use busbar::live::job::{Allotment, Attempt, JobRequest, Owner, Program, Requester};
use busbar::live::store::Store;
use busbar::live::wire::{
    ClientGone, HistoryLine, JobLine, Message, Refusal, Reply, Request, Status, Submission, answers,
};
use busbar::machine::{Details, Machine};
use busbar::units::{Span, Watts};
use busbar::world::Repertoire;

pub(super) const ROOT: Owner = Owner { user: 0, group: 0 };

/// Four nodes of 100 W, a daemon, and all that is around it.
pub(super) struct ByHand {
    pub(super) daemon: Option<Daemon>,
    pub(super) engine: Recording,
    pub(super) hand: Hand,
    pub(super) retention: Span,
    folder: PathBuf,
    setup: Setup,
    schedule: Schedule,
}

impl ByHand {
    /// A daemon with its state in this folder.
    pub(super) fn new(folder: &Path, policy: &str, schedule: &ScheduleSpec) -> Self {
        let machine = Machine { details: Details::ideal(), ..Machine::of_processors(4).unwrap() };
        let schedule = schedule.resolve(&machine, &jiff::tz::TimeZone::UTC).unwrap();
        let setup = Setup::new(&machine, Repertoire::BuiltIn, policy.parse().unwrap()).unwrap();
        ByHand {
            daemon: None,
            engine: Recording::new(),
            hand: Hand::default(),
            retention: Span::from_secs(24 * 3600),
            folder: folder.to_owned(),
            setup,
            schedule,
        }
    }

    pub(super) fn last_resort(mut self, last_resort: LastResort) -> Self {
        self.setup.last_resort = last_resort;
        self
    }

    /// It replays its past then.
    pub(super) fn tune(&mut self, nightly: Nightly) {
        self.setup.tune = Some(nightly);
    }

    /// A daemon begins, and works for a cycle.
    pub(super) fn begin(&mut self) {
        let store = Store::open(&self.folder).unwrap();
        let clock = self.hand.clock(store.load().unwrap().last.as_ref());
        let rules = LoopOptions {
            period: Span::from_secs(1),
            deadline: USUAL_DEADLINE,
            retention: self.retention,
            cluster: None,
            runs: None,
            reload: Box::new(|_| Err("there is no configuration".to_owned())),
        };
        let engine = AtOnce::boxed(self.engine.clone());
        let feed = ActiveBudget::new(self.schedule.clone(), &self.setup.machine);
        let daemon = Daemon::begin(self.setup.clone(), feed, store, engine, rules, clock);
        self.daemon = Some(daemon.unwrap());
        self.cycle();
    }

    /// The daemon is gone.
    pub(super) fn end(&mut self) {
        self.daemon.take().unwrap().close().unwrap();
    }

    fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("a daemon")
    }

    /// Time passes, and there is a cycle.
    pub(super) fn pass(&mut self, seconds: u32) {
        self.hand.advance(Span::from_secs(seconds));
        self.cycle();
    }

    pub(super) fn cycle(&mut self) {
        self.daemon().cycle(Vec::new()).unwrap();
    }

    /// A cycle with one request, and one more for what follows from it.
    pub(super) fn ask(&mut self, request: Request) -> Reply {
        let (reply, mut answer) = answers();
        self.daemon()
            .cycle(vec![Message {
                request,
                peer: Requester::Full(ROOT),
                reply,
                gone: ClientGone::default(),
            }])
            .unwrap();
        self.cycle();
        answer.blocking_recv().expect("an answer")
    }

    pub(super) fn submit(&mut self, nodes: u32, seconds: u32) -> Result<u64, Refusal> {
        match self.ask(Request::Submit(Box::new(submission(nodes, seconds)))) {
            Reply::Submitted { job, .. } => Ok(job),
            Reply::Error(refusal) => Err(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn queue(&mut self) -> Vec<JobLine> {
        match self.ask(Request::Queue) {
            Reply::Queue(lines) => lines,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn status(&mut self) -> Status {
        match self.ask(Request::Status) {
            Reply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn history(&mut self) -> Vec<HistoryLine> {
        match self.ask(Request::History { job: None, after: Some(0), limit: None }) {
            Reply::History(lines) => lines,
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn submission(nodes: u32, seconds: u32) -> Submission {
    Submission {
        request: JobRequest {
            name: "fault".to_owned(),
            nodes,
            moldable: None,
            time: Span::from_secs(seconds),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
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

/// The first attempt of a job.
pub(super) fn first(job: u64) -> Attempt {
    Attempt { job, number: 1 }
}

/// What an engine was asked to do, added up: what each attempt has by now.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub(super) has: BTreeMap<Attempt, Allotment>,
    pub(super) suspended: Vec<Attempt>,
    pub(super) signals: Vec<(Attempt, Signal)>,
    /// How many starts there were in the calls that were taken last.
    pub(super) starts: usize,
}

impl Done {
    /// Takes what the engine was asked to do since.
    pub(super) fn take(&mut self, engine: &Recording) {
        self.starts = 0;
        self.signals.clear();
        for call in engine.take_calls() {
            match call {
                Call::Start(launch) => {
                    self.starts += 1;
                    let before = self.has.insert(launch.attempt, launch.allotment);
                    assert!(before.is_none(), "{} starts twice", launch.attempt);
                }
                Call::Set(attempt, allotment) => {
                    self.has.insert(attempt, allotment);
                }
                Call::Signal(attempt, signal) => {
                    self.suspended.retain(|other| *other != attempt);
                    if signal == Signal::Suspend {
                        self.suspended.push(attempt);
                    }
                    self.signals.push((attempt, signal));
                }
                Call::Find(_) | Call::Forget(_) => (),
            }
        }
    }

    /// What those draw that run.
    pub(super) fn drawn(&self, engine: &Recording) -> Watts {
        let awake = engine.running().into_iter().filter(|one| !self.suspended.contains(one));
        awake.map(|attempt| self.has[&attempt].power).sum()
    }
}

/// A profile of the day: from which hour on how much may be drawn.
pub(super) fn daily(steps: &[(i8, &str)]) -> ScheduleSpec {
    let step = |&(hour, limit): &(i8, &str)| {
        (jiff::civil::Time::constant(hour, 0, 0, 0), limit.parse().unwrap())
    };
    ScheduleSpec::Daily(steps.iter().map(step).collect())
}

/// A day on the wall, in milliseconds.
pub(super) const DAY: i64 = 24 * 3_600_000;

/// An hour of the first day on the wall, in milliseconds.
pub(super) fn o_clock(hour: i64) -> i64 {
    hour * 3_600_000
}
