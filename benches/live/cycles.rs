//! Control cycles with a long queue: in each of them a job ends, one is submitted, and the policy
//! decides who starts.

use std::time::{Duration, Instant as Moment};

use busbar::budget::Budget;
use busbar::live::control::active_budget::ActiveBudget;
use busbar::live::control::clock::{Clock, Hand};
use busbar::live::control::controller::{Act, Controller};
use busbar::live::control::daemon::{Daemon, LoopOptions};
use busbar::live::control::schedule::Schedule;
use busbar::live::control::setup::Setup;
use busbar::live::engine::{AtOnce, Recording, USUAL_DEADLINE};
use busbar::live::job::{End, Requester};
use busbar::live::store::{Saved, Store};
use busbar::live::wire::{ClientGone, Message, Reply, Request, answers};
use busbar::units::{Instant, Span, Watts};
use rustix::time::{ClockId, clock_gettime};

use crate::story::{ROOT, Story, setup};
use crate::{QUEUED, Times, met};

/// What the policies are given: of what the machine draws at most.
const BUDGET: &str = "70%";

const POLICIES: [&str; 10] = [
    "fcfs",
    "easy",
    "conservative",
    "easy-power",
    "pb-guided(bsld_lower=5)",
    "rmap-adaptive(slowdown=10%)",
    "parm",
    "parm(flex=moldable)",
    "ppartition",
    "uniform",
];

pub(crate) fn measure(cycles: usize) {
    println!("\n### Control cycles with {QUEUED} jobs in the queue\n");
    println!(
        "| policy | cycles | run | by the wall: mean ms | 99 % | worst | goal | met | of a core: mean ms \
         | worst | turn of the policy, of a core: mean ms | commit, by the wall: mean ms | one \
         cancelled, of a core: mean ms | worst |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for policy in POLICIES {
        let setup = setup(policy);
        let (turns, commits) = parts(setup.clone(), cycles);
        let mut house = House::new(setup);
        house.fill();
        let begun = Moment::now();
        let is_late = |done: usize| done >= 10 && begun.elapsed() > Duration::from_secs(60);
        let times = (0..cycles).take_while(|done| !is_late(*done)).map(|_| house.step());
        let (walls, cores): (Vec<f64>, Vec<f64>) = times.map(|took| (took.wall, took.core)).unzip();
        let (times, cores) = (Times::new(walls), Times::new(cores));
        let cancels = (0..cycles.div_ceil(10)).map(|_| house.cancel_one().core);
        let cancels = Times::new(cancels.collect());
        println!(
            "| `{policy}` | {} | {} | {:.2} | {:.2} | {:.2} | < 50 | {} | {:.2} | {:.2} | {:.2} | \
             {:.2} | {:.2} | {:.2} |",
            times.0.len(),
            house.engine.running().len(),
            times.mean(),
            times.percent(99),
            times.worst(),
            met(times.worst() < 50.0),
            cores.mean(),
            cores.worst(),
            turns.mean(),
            commits.mean(),
            cancels.mean(),
            cancels.worst(),
        );
    }
}

/// How long something took, in milliseconds: by the clock on the wall, and of a core.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    wall: f64,
    core: f64,
}

impl Took {
    fn of(what: impl FnOnce()) -> Self {
        let core = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
        };
        let (begun, used) = (Moment::now(), core());
        what();
        Took { wall: begun.elapsed().as_secs_f64() * 1e3, core: core() - used }
    }
}

/// A daemon without a socket, on an engine on which jobs end when they are told to.
pub(crate) struct House {
    daemon: Daemon,
    pub(crate) engine: Recording,
    hand: Hand,
    story: Story,
    next: u64,
    _folder: tempfile::TempDir,
}

impl House {
    pub(crate) fn new(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path()).expect("a store");
        let (clock, hand): (Clock, Hand) = Clock::by_hand();
        let engine = Recording::new();
        let rules = LoopOptions {
            period: Span::from_secs(1),
            deadline: USUAL_DEADLINE,
            retention: Span::from_secs(3600),
            cluster: None,
            runs: None,
            reload: Box::new(|_| Err("there is no configuration".to_owned())),
        };
        let story = Story::new(&setup);
        let feed = ActiveBudget::new(Schedule::unlimited(), &setup.machine);
        let on = AtOnce::boxed(engine.clone());
        let daemon = Daemon::begin(setup, feed, store, on, rules, clock).expect("a daemon");
        let mut house = House { daemon, engine, hand, story, next: 1, _folder: folder };
        house.ask(vec![Request::Budget { set: Some(BUDGET.to_owned()) }]);
        house
    }

    /// A cycle with these requests: how long it took.
    pub(crate) fn ask(&mut self, requests: Vec<Request>) -> Took {
        let (reply, mut replies) = answers();
        let gone = ClientGone::default();
        let message = |request| Message {
            request,
            peer: Requester::Full(ROOT),
            reply: reply.clone(),
            gone: gone.clone(),
        };
        let messages: Vec<Message> = requests.into_iter().map(message).collect();
        let asked = messages.len();
        let took = Took::of(|| self.daemon.cycle(messages).expect("a cycle"));
        let refused = |reply: &Reply| matches!(reply, Reply::Error(_));
        let answers: Vec<Reply> = std::iter::from_fn(|| replies.try_recv().ok()).collect();
        assert!(answers.len() == asked && !answers.iter().any(refused), "{:?}", answers.first());
        self.engine.take_calls();
        took
    }

    pub(crate) fn submit(&mut self, jobs: usize) -> Took {
        self.next += jobs as u64;
        let submit = |story: &mut Story| Request::Submit(Box::new(story.next()));
        let requests = (0..jobs).map(|_| submit(&mut self.story)).collect();
        self.ask(requests)
    }

    fn fill(&mut self) {
        for _ in 0..QUEUED / 250 {
            self.submit(250);
        }
    }

    /// A job ends, and another one comes.
    fn step(&mut self) -> Took {
        self.hand.advance(Span::from_secs(10));
        if let Some(first) = self.engine.running().first() {
            self.engine.end(*first, End::Exited(0));
        }
        self.submit(1)
    }

    /// All that run end.
    pub(crate) fn end_all(&mut self) -> usize {
        self.hand.advance(Span::from_secs(10));
        let running = self.engine.running();
        for attempt in &running {
            self.engine.end(*attempt, End::Exited(0));
        }
        running.len()
    }

    /// The last job of the queue is cancelled. A policy that cannot forget it begins anew.
    fn cancel_one(&mut self) -> Took {
        self.next -= 1;
        self.ask(vec![Request::Cancel { jobs: vec![self.next] }])
    }
}

/// The same without a daemon around it: how long the turn of the policy takes, and the commit.
fn parts(setup: Setup, cycles: usize) -> (Times, Times) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Store::open(folder.path()).expect("a store");
    let watts = setup.machine.max_power().milliwatts() / 10 * 7;
    let budget = Budget::constant(Watts::from_milliwatts(watts));
    let mut story = Story::new(&setup);
    let mut now = Instant::ZERO;
    let mut controller = Controller::new(setup, budget, Saved::default(), now).expect("no jobs");
    for _ in 0..QUEUED {
        controller.submit(now, ROOT, story.next(), &|_| None).expect("room");
    }
    controller.turn(now).expect("a turn");
    store.commit(&controller.take(now, 0).batch).expect("a commit");
    let (mut turns, mut commits) = (Vec::new(), Vec::new());
    let mut running = controller.attempts();
    let begun = Moment::now();
    while turns.len() < cycles && (turns.len() < 10 || begun.elapsed() < Duration::from_secs(60)) {
        now = now + Span::from_secs(10);
        if !running.is_empty() {
            controller.ended(now, running.remove(0), End::Exited(0));
        }
        controller.submit(now, ROOT, story.next(), &|_| None).expect("room");
        turns.push(Took::of(|| controller.turn(now).expect("a turn")).core);
        let turn = controller.take(now, 0);
        commits.push(Took::of(|| store.commit(&turn.batch).expect("a commit")).wall);
        running.extend(turn.acts.iter().filter_map(|act| match act {
            Act::Start { attempt, .. } => Some(*attempt),
            _ => None,
        }));
    }
    (Times::new(turns), Times::new(commits))
}
