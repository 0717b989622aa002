//! Gangs against a plain version of them: at each turn every waiting job is looked at with every point of
//! its menu, from nothing but the view. Every decision must agree, ties included.

use busbar::availability::{Availability, Claim};
use busbar::budget::Budget;
use busbar::freedom::{Freedom, Freedoms};
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::{Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use busbar::policy::utility::spec::{Heuristic, Measure, Order, States};
use busbar::policy::utility::{Gangs, UtilitySpec, worth};
use busbar::policy::{Decision, DropReason, Policy, View};
use busbar::sim::{Events, Outage, Outages, Simulation, State};
use busbar::units::{Instant, JobId, NodeId, Span, Watts};
use busbar::utility::Utility;
use busbar::workload::Workload;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

/// Three levels, by which jobs of two kinds are slowed unlike.
struct Levels {
    drops: bool,
    rungs: [Rung; 1],
}

const LEVELS: [[(u32, u64); 3]; 2] = [[(90, 4), (60, 5), (40, 8)], [(90, 4), (80, 4), (30, 16)]];

impl Levels {
    fn new(drops: bool) -> Self {
        let rung = Rung::alike(Watts::from_watts(30), Stretch::NONE);
        Levels { drops, rungs: [rung] }
    }

    fn points(id: JobId, job: &Job) -> [OperatingPoint; 3] {
        LEVELS[id.index() % 2].map(|(watts, quarters)| OperatingPoint {
            nodes: job.nodes,
            cores: 1,
            cap: Watts::from_watts(watts),
            time: Span::from_millis((job.requested.millis() * quarters / 4).max(1)),
            power: Watts::from_watts(watts) * job.nodes,
        })
    }
}

impl Model for Levels {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        Self::points(id, job)[0]
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let [nominal, others @ ..] = Self::points(id, job);
        Menu::new(nominal, others)
    }

    fn freedoms(&self, _: JobId, _: &Job) -> Freedoms {
        if self.drops { Freedoms::ALL } else { Freedoms::ALL - Freedoms::of(&[Freedom::Drops]) }
    }

    fn outcome(&self, id: JobId, _: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let level = |(watts, _): &&(u32, u64)| Watts::from_watts(*watts) == point.cap;
        let quarters = LEVELS[id.index() % 2].iter().find(level).unwrap().1;
        let run_time = Span::from_millis(run_time.millis() * quarters / 4);
        Outcome { run_time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }
}

/// The plain version. It remembers nothing.
struct Plain(UtilitySpec);

/// What is free now and later.
struct Free {
    nodes: u32,
    power: Watts,
    /// It counts on jobs that should have ended, so what is free now is kept beside it.
    later: Availability,
}

impl Free {
    fn fits(&self, now: Instant, point: &OperatingPoint) -> bool {
        let fits_now = point.nodes <= self.nodes && point.power <= self.power;
        fits_now && self.later.fits(now, &Claim::of(point))
    }

    fn take(&mut self, now: Instant, point: &OperatingPoint) {
        self.nodes -= point.nodes;
        self.power -= point.power;
        self.later.take(now, &Claim::of(point));
    }
}

/// What the largest of is best: a ratio, and of equal ones the smallest of the rest.
type Value = (u128, u128, [u64; 4]);

fn is_better(one: &Value, other: &Value) -> bool {
    let (left, right) = (one.0 * other.1, other.0 * one.1);
    left > right || left == right && one.2 < other.2
}

impl Plain {
    fn value(&self, view: &View<'_>, id: JobId, place: usize, point: &OperatingPoint) -> Value {
        let (job, order) = (view.job(id), u64::from(id.0));
        let level = |prioritized| match prioritized {
            true => u128::from(job.terms.weight.thousandths()),
            false => 1,
        };
        let last = place as u64;
        match self.0.heuristic {
            Heuristic::Greedy(measure) => {
                let completion = view.now + point.time;
                let gain = worth(job).at(completion.since(job.submit)).millionths();
                let cost = match measure {
                    Measure::Utility => 1,
                    Measure::PerTime => u128::from(point.nodes) * u128::from(point.time.millis()),
                    Measure::PerEnergy => point.power.over(point.time).microjoules(),
                };
                (u128::from(gain), cost, [completion.millis(), 0, order, last])
            }
            Heuristic::Ordered { order: Order::FirstCome, prioritized, .. } => {
                (level(prioritized), 1, [order, point.time.millis(), last, 0])
            }
            Heuristic::Ordered { order: Order::LastCome, prioritized, .. } => {
                (level(prioritized), 1, [u64::MAX - order, point.time.millis(), last, 0])
            }
            Heuristic::Random => unreachable!("its draws are its own"),
            Heuristic::Priced => unreachable!("it is not for gangs"),
        }
    }

    fn is_hopeless(&self, view: &View<'_>, id: JobId) -> bool {
        let job = view.job(id);
        let soonest = view.menu(id).iter().map(|point| view.now + point.time).min().unwrap();
        worth(job).at(soonest.since(job.submit)) < self.0.drop
    }

    /// The nominal point, or the fastest that can ever be fed.
    fn aim(view: &View<'_>, menu: &Menu) -> usize {
        let fed = |place: &usize| {
            let point = &menu[*place];
            point.power <= view.ledger.most_for_jobs(point.time)
        };
        let fed = (0..menu.len()).filter(fed);
        fed.min_by_key(|place| (*place > 0, menu[*place].time, menu[*place].power)).unwrap_or(0)
    }

    /// The best start among jobs.
    fn best(
        &self,
        view: &View<'_>,
        free: &Free,
        jobs: impl Iterator<Item = JobId>,
    ) -> Option<(JobId, OperatingPoint)> {
        let mut best: Option<(Value, JobId, OperatingPoint)> = None;
        for job in jobs {
            let menu = view.menu(job);
            let aim = Self::aim(view, &menu);
            for (place, point) in menu.iter().enumerate() {
                let only =
                    matches!(self.0.heuristic, Heuristic::Ordered { states: States::Fastest, .. });
                if only && place != aim || !free.fits(view.now, point) {
                    continue;
                }
                let value = self.value(view, job, place, point);
                if best.as_ref().is_none_or(|(other, ..)| is_better(&value, other)) {
                    best = Some((value, job, *point));
                }
            }
        }
        best.map(|(_, job, point)| (job, point))
    }
}

impl Policy for Plain {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut waiting: Vec<JobId> = view.queue.iter().collect();
        let may_drop = |job: JobId| view.model.freedoms(job, view.job(job)).has(Freedom::Drops);
        if waiting.first().is_some_and(|job| may_drop(*job)) {
            let (dropped, others) =
                waiting.into_iter().partition(|job| self.is_hopeless(view, *job));
            waiting = others;
            let dropped: Vec<JobId> = dropped;
            let reason = DropReason::LowUtility;
            decisions.extend(dropped.into_iter().map(|job| Decision::Drop { job, reason }));
        }
        let (nodes, power) = (view.ledger.free_nodes(), view.ledger.free_power());
        let mut free = Free { nodes, power, later: Availability::of(view.ledger) };
        let mut start = |waiting: &mut Vec<JobId>, free: &mut Free, job, point| {
            free.take(view.now, &point);
            waiting.retain(|other| *other != job);
            decisions.push(Decision::Start { job, point });
        };
        let is_spent = |job: &JobId| {
            let job = view.job(*job);
            view.now >= job.submit + worth(job).spent()
        };
        while let Some(head) = waiting.iter().copied().find(|job| is_spent(job)) {
            match self.best(view, &free, std::iter::once(head)) {
                Some((job, point)) => start(&mut waiting, &mut free, job, point),
                None => {
                    let menu = view.menu(head);
                    let claim = Claim::of(&menu[Self::aim(view, &menu)]);
                    if let Some(at) = free.later.earliest(view.now, &claim) {
                        free.later.take(at, &claim);
                    }
                    break;
                }
            }
        }
        while let Some((job, point)) = self.best(view, &free, waiting.iter().copied()) {
            start(&mut waiting, &mut free, job, point);
        }
    }
}

/// Both at once: what the fast one decides is done, and the plain one has to decide the same.
struct Both {
    fast: Gangs,
    plain: Plain,
}

impl Policy for Both {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut expected = Vec::new();
        self.plain.decide(view, &mut expected);
        self.fast.decide(view, decisions);
        let sorted = |decisions: &[Decision]| {
            // Jobs are dropped in the order in which they became hopeless.
            let mut decisions = decisions.to_vec();
            decisions.sort_by_key(|decision| match decision {
                Decision::Drop { job, .. } => (0, job.0),
                _ => (1, 0),
            });
            decisions
        };
        assert_eq!(sorted(decisions), sorted(&expected), "at {}", view.now);
    }
}

/// Jobs full of ties, on few nodes, with limits that may change; some wait for days.
fn hold(seed: u64, jobs: u32, heuristic: Heuristic) {
    let mut rng = Pcg64Dxsm::seed_from_u64(seed);
    let mut below = |count: u32| rng.random_range(0..count);
    let nodes = 2 + below(6);
    let machine = Machine::of_processors(nodes).unwrap();
    let unit = [60, 900, 3600, 10_000][below(4) as usize];
    // From half of what the nodes can do to twice as much.
    let load = 1 + below(4);
    let span = (jobs * unit * 4 / (nodes * load)).max(1);
    let jobs: Vec<(Job, Span)> = (0..jobs)
        .map(|number| {
            let submit = Instant::from_secs(below(span) / unit * (unit / 2));
            let requested = Span::from_secs(unit * below(5));
            let wanted = 1 + below(nodes).min(below(nodes));
            let mut job = Job::new(u64::from(number), submit, wanted, requested);
            job.terms.weight = ["1", "1", "2", "0.1"][below(4) as usize].parse().unwrap();
            // Most end before their time.
            let run_time = Span::from_millis(requested.millis() * u64::from(1 + below(4)) / 4);
            (job, run_time)
        })
        .collect();
    let workload = Workload::new("test", jobs);
    let limit = |part: u32| Watts::from_watts(90 * nodes * part / 4);
    let budget = match below(3) {
        0 => Budget::unlimited(),
        1 => Budget::constant(limit(2 + below(2))),
        _ => {
            let steps = (0..1 + below(6))
                .map(|step| (Instant::from_secs(step * (1 + span / 8)), limit(2 + below(3))));
            Budget::from_steps(steps.collect()).unwrap()
        }
    };
    let model = Levels::new(below(3) == 0);
    let mut outages = Outages::default();
    if below(4) == 0 {
        let node = NodeId(below(nodes));
        let down = Instant::from_secs(below(span));
        let up = down + Span::from_secs(1 + below(span));
        outages = Outages::new(vec![Outage { node, down, up }]);
    }
    let spec = UtilitySpec {
        heuristic,
        drop: Utility::from_millionths([0, 500_000, 1_000_000][below(3) as usize]),
        ..UtilitySpec::default()
    };
    let events = [Events::default(), Events::Each][below(2) as usize];
    let mut both = Both { fast: Gangs::new(spec), plain: Plain(spec) };
    let run = Simulation::new(&machine, &workload)
        .budget(budget)
        .model(&model)
        .truth(&model)
        .outages(outages)
        .events(events)
        .run(&mut both);
    assert_eq!(run.violations, 0, "{:?}", run.first_violations);
    let waits = run.records.iter().filter(|record| record.state == State::Waiting).count();
    assert_eq!(waits, 0, "nobody waits for ever");
}

fn heuristics() -> impl Strategy<Value = Heuristic> {
    let plain = Heuristic::ALL.into_iter().filter(|heuristic| *heuristic != Heuristic::Random);
    prop::sample::select(plain.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn agrees_with_the_plain_version(seed: u64, jobs in 1u32..40, heuristic in heuristics()) {
        hold(seed, jobs, heuristic);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn agrees_in_long_queues(seed: u64, heuristic in heuristics()) {
        hold(seed, 160, heuristic);
    }
}
