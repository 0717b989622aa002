//! Foreseen, and then lived through.

use super::*;
use crate::control::setup::LastResort;
use crate::engine::Signal;
use crate::job::{After, JobRequest, Program, Requester};
use crate::wire::{ClientGone, Submission};
use busbar_core::machine::{Details, Machine};
use busbar_core::world::Repertoire;

fn at(seconds: u32) -> Instant {
    Instant::from_secs(seconds)
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn request(nodes: u32, seconds: u32, after: &[u64]) -> JobRequest {
    JobRequest {
        name: "test".to_owned(),
        nodes,
        moldable: None,
        time: Span::from_secs(seconds),
        application: None,
        slowdown: None,
        after: after.iter().map(|job| After { job: *job, any: false }).collect(),
        held: false,
        account: None,
        part: Default::default(),
    }
}

/// Four nodes of 100 W, with these jobs submitted at the beginning.
fn controller(policy: &str, limit: u32, wishes: &[JobRequest]) -> Controller {
    let machine = Machine { details: Details::ideal(), ..Machine::of_processors(4).unwrap() };
    let setup = Setup::new(&machine, Repertoire::BuiltIn, policy.parse().unwrap());
    let setup = Setup { last_resort: LastResort::Suspend, ..setup.unwrap() };
    let budget = Budget::constant(watts(limit));
    let mut controller = Controller::new(setup, budget, Saved::default(), at(0)).unwrap();
    for request in wishes {
        let program = Program {
            command: vec!["true".to_owned()],
            folder: "/".into(),
            environment: Vec::new(),
            output: "out".into(),
            errors: None,
        };
        let submission = Submission { request: request.clone(), program, array: None };
        let owner = Owner { user: 0, group: 0 };
        controller.submit(at(0), owner, submission, &|_| Some(true)).unwrap();
    }
    controller.turn(at(0)).unwrap();
    controller.take(at(0), 0);
    controller
}

/// As an operator sees it; the clock on the wall began with the daemon's.
fn outlook_at(controller: &Controller, now: Instant) -> Outlook {
    let viewer = controller.setup().viewer(Requester::Full(Owner { user: 0, group: 0 }));
    Outlook::of(controller, viewer, now, now.millis() as i64)
}

fn wanted() -> Cancellation {
    Cancellation::for_at_most(Span::from_secs(100_000), ClientGone::default())
}

fn foreseen(outlook: Outlook, question: &ForecastRequest) -> Forecast {
    outlook.forecast(question, &wanted()).unwrap()
}

/// Start and end of each job, in seconds from the beginning.
fn told(forecast: &Forecast) -> Vec<(Option<i64>, Option<i64>)> {
    forecast.jobs.iter().map(|line| (line.start, line.end)).collect()
}

fn some(start: i64, end: i64) -> (Option<i64>, Option<i64>) {
    (Some(start), Some(end))
}

#[test]
fn jobs_start_when_others_end() {
    let wishes =
        [request(3, 100, &[]), request(2, 50, &[]), request(1, 100, &[]), request(1, 10, &[2])];
    let controller = controller("easy", 400, &wishes);
    let outlook = || outlook_at(&controller, at(40));
    let forecast = foreseen(outlook(), &ForecastRequest::default());
    assert_eq!(told(&forecast), [some(0, 100), some(100, 150), some(0, 100), some(150, 160)]);
    assert_eq!((forecast.peak, forecast.all_over), (watts(400), 160));
    // 40 of 50 s are over already.
    let half = ForecastRequest { percent: Some(50), ..ForecastRequest::default() };
    let forecast = foreseen(outlook(), &half);
    assert_eq!(told(&forecast), [some(0, 50), some(50, 75), some(0, 50), some(75, 80)]);
    let asked = ForecastRequest { job: Some(request(1, 30, &[])), ..ForecastRequest::default() };
    let forecast = foreseen(outlook(), &asked);
    assert_eq!((forecast.jobs.len(), forecast.jobs[4].job), (5, None));
    assert_eq!(told(&forecast)[4], some(100, 130));
    let long = ForecastRequest { percent: Some(101), ..ForecastRequest::default() };
    assert!(outlook().forecast(&long, &wanted()).is_err());
}

/// Three of four nodes are off, and take five minutes to start.
#[test]
fn nodes_that_are_off_are_started_first() {
    let plain = controller("easy", 400, &[]);
    let switch_off = Some("idle for 10min".parse().unwrap());
    let setup = Setup { switch_off, ..plain.setup().clone() };
    let nodes = [1, 2, 3].map(|node| (node, SwitchState::Off)).into();
    let saved = Saved { nodes, ..Saved::default() };
    let controller = Controller::new(setup, Budget::constant(watts(400)), saved, at(0)).unwrap();
    for (nodes, expected) in [(1, some(40, 70)), (4, some(340, 370))] {
        let job = Some(request(nodes, 30, &[]));
        let asked = ForecastRequest { job, ..ForecastRequest::default() };
        let forecast = foreseen(outlook_at(&controller, at(40)), &asked);
        assert_eq!(told(&forecast), [expected]);
    }
}

#[test]
fn a_chain_is_followed_to_its_end() {
    let wishes: Vec<JobRequest> = (0..40)
        .map(|job| request(1, 10, if job == 0 { &[] } else { std::slice::from_ref(&job) }))
        .collect();
    let controller = controller("easy", 400, &wishes);
    let forecast = foreseen(outlook_at(&controller, at(0)), &ForecastRequest::default());
    assert_eq!(told(&forecast)[39], some(390, 400));
}

/// What is foreseen for a limit that falls is what comes when it does, under policies that change nobody
/// because of what they know beforehand.
#[test]
fn a_limit_that_falls_is_foreseen_as_it_comes() {
    for (policy, limit) in [("easy-power", "300W"), ("easy", "250W")] {
        let wishes =
            [request(1, 600, &[]), request(1, 600, &[]), request(2, 600, &[]), request(1, 60, &[])];
        let mut live = controller(policy, 400, &wishes);
        let question = ForecastRequest {
            budget: vec![BudgetChange { after: Span::from_secs(60), limit: limit.to_owned() }],
            ..ForecastRequest::default()
        };
        let forecast = foreseen(outlook_at(&live, at(0)), &question);
        let limit: Watts = limit.parse().unwrap();
        // The operator sets it when the time has come.
        live.advance(at(60));
        live.set_budget(Budget::constant(limit), true);
        live.turn(at(60)).unwrap();
        live.take(at(60), 0);
        let later = foreseen(outlook_at(&live, at(60)), &ForecastRequest::default());
        assert!(later.peak <= limit, "{policy}: {}", later.peak);
        // What is known beforehand may keep somebody from starting; who runs fares alike.
        for (one, other) in told(&forecast).iter().zip(&told(&later)).take(3) {
            assert_eq!(one, other, "{policy}");
        }
        assert!(forecast.all_over > 600, "{policy}: it costs time");
    }
}

#[test]
fn who_never_starts_says_why() {
    let mut held = request(1, 10, &[]);
    held.held = true;
    let wishes = [held, request(1, 10, &[1]), request(4, 10, &[])];
    let controller = controller("easy", 300, &wishes);
    let forecast = foreseen(outlook_at(&controller, at(0)), &ForecastRequest::default());
    let reasons: Vec<&str> =
        forecast.jobs.iter().map(|line| line.reason.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        reasons,
        ["until it is released", "after 1", "needs more power than the budget allows"]
    );
    assert_eq!(told(&forecast), [(None, None); 3]);
}

/// Of an array of six jobs of ten seconds two may run at once, and whoever waits for it waits for all.
#[test]
fn the_bound_of_an_array_is_foreseen() {
    let mut live = controller("easy", 400, &[]);
    let program = Program {
        command: vec!["true".to_owned()],
        folder: "/".into(),
        environment: Vec::new(),
        output: "out".into(),
        errors: None,
    };
    let owner = Owner { user: 0, group: 0 };
    let array = Some("1-6%2".parse().unwrap());
    let submission = Submission { request: request(1, 10, &[]), program: program.clone(), array };
    let number = live.submit(at(0), owner, submission, &|_| None).unwrap();
    let submission = Submission { request: request(1, 5, &[number]), program, array: None };
    live.submit(at(0), owner, submission, &|_| None).unwrap();
    live.turn(at(0)).unwrap();
    live.take(at(0), 0);
    let forecast = foreseen(outlook_at(&live, at(0)), &ForecastRequest::default());
    let expected = [(0, 10), (0, 10), (10, 20), (10, 20), (20, 30), (20, 30), (30, 35)];
    assert_eq!(told(&forecast), expected.map(|(start, end)| some(start, end)));
    let indices = forecast.jobs.iter().filter_map(|line| Some(line.array?.index));
    assert_eq!(indices.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}

/// Numbers without a pattern, the same each time.
struct Numbers(u64);

impl Numbers {
    /// From the least to the most.
    fn draw(&mut self, least: u64, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        least + (self.0 >> 33) % (most - least + 1)
    }

    /// How long a process takes to begin, or to be seen ending.
    fn moment(&mut self) -> Span {
        Span::from_millis(self.draw(5, 60))
    }
}

/// Real processes that take exactly the time they ask for: they begin a moment after that was decided, and are
/// seen ending a moment late. At their limits they are asked to end, and do so within a moment.
struct Life {
    live: Controller,
    numbers: Numbers,
    now: Instant,
    starts: BTreeMap<u64, Instant>,
    ends: BTreeMap<Attempt, Instant>,
}

impl Life {
    /// The jobs of a controller, as it began with them.
    fn of(live: Controller, mut numbers: Numbers) -> Self {
        let (mut starts, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for attempt in live.attempts() {
            let Phase::Running(run) = &live.jobs()[&attempt.job].phase else { unreachable!() };
            starts.insert(attempt.job, run.start);
            ends.insert(attempt, run.until + numbers.moment());
        }
        Life { live, numbers, now: at(0), starts, ends }
    }

    /// Goes on until this many jobs have started, or all are over.
    fn pass(&mut self, starts: usize) {
        while self.starts.len() < starts {
            let next = self.ends.values().copied().chain(self.live.next_deadline()).min();
            let Some(next) = next else { return };
            // The loop wakes up a little late.
            self.now = next.max(self.now) + Span::from_millis(1);
            self.live.advance(self.now);
            let is_over = |end: &Instant| *end <= self.now;
            let over =
                self.ends.iter().filter(|(_, end)| is_over(end)).map(|(attempt, _)| *attempt);
            for attempt in over.collect::<Vec<_>>() {
                self.ends.remove(&attempt);
                self.live.ended(self.now, attempt, End::Exited(0));
            }
            self.live.turn(self.now).unwrap();
            let Turn { acts, .. } = self.live.take(self.now, 0);
            acts.into_iter().for_each(|act| self.act(act));
        }
    }

    fn act(&mut self, act: Act) {
        let late = self.now + self.numbers.moment();
        match act {
            Act::Start { attempt, allotment } => {
                self.starts.insert(attempt.job, self.now);
                self.ends.insert(attempt, late + allotment.time);
            }
            Act::Signal { attempt, signal: Signal::Terminate } => {
                self.ends.entry(attempt).and_modify(|end| *end = late.min(*end));
            }
            _ => (),
        }
    }
}

/// Thirty jobs of one to three nodes that ask for up to a minute, in steps of this many milliseconds: where they
/// are long, jobs often fit exactly. A forecast is made when so many of them have started. By how many
/// milliseconds it is wrong at most.
fn worst(policy: &str, limit: u32, step: u64, started: usize, seed: u64) -> i64 {
    let mut numbers = Numbers(seed);
    let wishes: Vec<JobRequest> = (0..30)
        .map(|_| {
            let nodes = numbers.draw(1, 3) as u32;
            let time = Span::from_millis(step * numbers.draw(10_000 / step, 60_000 / step));
            JobRequest { time, ..request(nodes, 1, &[]) }
        })
        .collect();
    let mut life = Life::of(controller(policy, limit, &wishes), numbers);
    life.pass(started);
    let forecast = foreseen(outlook_at(&life.live, life.now), &ForecastRequest::default());
    assert!(forecast.jobs.iter().filter(|line| line.start > Some(0)).count() > 5);
    life.pass(usize::MAX);
    let wrong = forecast.jobs.iter().map(|line| {
        // Whole seconds are foreseen.
        let came = life.starts[&line.job.unwrap()].millis() as i64;
        (came - line.start.unwrap() * 1000 - 500).abs() - 500
    });
    wrong.max().unwrap()
}

/// Plans are made for whole seconds, and processes are some hundredths of a second late: that adds up to less
/// than a second, and changes nothing else.
#[test]
fn a_plan_comes_as_it_is_foreseen() {
    for policy in ["fcfs", "conservative"] {
        for (limit, step) in [(400, 1000), (400, 10_000), (340, 1000), (340, 10_000)] {
            for (started, seed) in (1..=6).flat_map(|seed| [(0, seed), (10, seed)]) {
                let wrong = worst(policy, limit, step, started, seed);
                let what = format!("{policy}, {limit} W, seed {seed}, after {started}");
                assert!(wrong < 1000, "{what}: wrong by {wrong} ms");
            }
        }
    }
}

/// The same under policies that let jobs pass each other, but where a job fits into a gap to within these
/// hundredths: they decide who passes whom, and much may be different then. The longer the steps in which
/// jobs ask for time, the more often that is so; with whole seconds it is rare.
#[test]
fn who_passes_whom_is_mostly_foreseen() {
    for policy in ["easy", "easy-power", "pb-guided(bsld_lower=5)"] {
        for step in [1, 1000] {
            let seeds = 1..=16;
            let wrong: Vec<i64> = seeds.map(|seed| worst(policy, 340, step, 0, seed)).collect();
            let right = wrong.iter().filter(|wrong| **wrong < 1000).count();
            assert!(right >= 13, "{policy}, steps of {step} ms: wrong by {wrong:?} ms");
        }
    }
}
