//! The order by priority agrees with a plain one, start for start.
//!
//! The plain one keeps no lanes and moves nothing: at each event it adds up, from all jobs that ever ran, what everybody
//! used, works out all priorities, and sorts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use busbar_core::fairshare::{Decay, Rule};
use busbar_core::job::{Job, UserId};
use busbar_core::machine::Machine;
use busbar_core::model::OperatingPoint;
use busbar_core::policy::{Backfill, BuildContext, Nominal, Order, Policy, PolicySpec, View};
use busbar_core::priority::{Billing, Priorities, Settings, Weights};
use busbar_core::queue::{Fit, Place};
use busbar_core::sim::{Events, Simulation};
use busbar_core::units::{Instant, JobId, Span};
use busbar_core::workload::Workload;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

/// A job that runs or ran: its user, what it is charged, since when, and until when.
#[derive(Clone, Debug)]
struct Ran {
    user: u32,
    rate: f64,
    from: u64,
    until: Option<u64>,
}

#[derive(Clone)]
struct Plain {
    settings: Settings,
    ran: BTreeMap<JobId, Vec<Ran>>,
    /// When each user was first heard of.
    users: BTreeMap<u32, u64>,
    began: Option<u64>,
    /// The waiting jobs with their priorities, the first one first.
    waiting: Vec<(f64, JobId)>,
    gone: Vec<JobId>,
    /// Two jobs were too close to say which comes first.
    too_close: Arc<AtomicBool>,
}

fn user_of(job: &Job) -> u32 {
    job.user.map_or(0, |user| user.0.get())
}

impl Plain {
    fn new(settings: Settings, too_close: Arc<AtomicBool>) -> Self {
        Plain {
            settings,
            ran: BTreeMap::new(),
            users: BTreeMap::new(),
            began: None,
            waiting: Vec::new(),
            gone: Vec::new(),
            too_close,
        }
    }

    /// What each user used, as it counts at the end of the last period.
    fn used(&self, now: u64) -> BTreeMap<u32, f64> {
        let period = self.settings.decay.period.millis();
        let last = now / period * period;
        let mut used: BTreeMap<u32, f64> = self.users.keys().map(|user| (*user, 0.0)).collect();
        let mut end = self.began.unwrap() / period * period + period;
        while end <= last {
            let weight = match self.settings.decay.half_life {
                None => 1.0,
                Some(half) => libm::pow(0.5, (last - end) as f64 / half.millis() as f64),
            };
            for ran in self.ran.values().flatten() {
                let until = ran.until.unwrap_or(u64::MAX).min(end);
                let overlap = until.saturating_sub(ran.from.max(end - period));
                *used.get_mut(&ran.user).unwrap() += ran.rate * overlap as f64 * weight;
            }
            end += period;
        }
        used
    }

    fn factors(&self, now: u64) -> BTreeMap<u32, f64> {
        let period = self.settings.decay.period.millis();
        let last = (now / period * period).max(self.began.unwrap());
        let used = self.used(now);
        let all: f64 = used.values().sum();
        // Who came in this period, or at the instant at which it was looked at, shares from the next on.
        let is_old = |user: u32| self.users[&user] < last;
        let old: Vec<u32> = used.keys().copied().filter(|user| is_old(*user)).collect();
        let count = old.len() as f64;
        let factor = |user: u32| {
            if !is_old(user) {
                return 1.0;
            }
            match self.settings.rule {
                Rule::Classic { dampening } => {
                    let part = if all == 0.0 { 0.0 } else { used[&user] / all };
                    libm::pow(0.5, part * count / f64::from(dampening))
                }
                Rule::FairTree => {
                    let before = old.iter().filter(|other| used[other] < used[&user]).count();
                    let close = |other: &&u32| {
                        let (one, other) = (used[*other], used[&user]);
                        one != other && (one - other).abs() <= 1e-9 * one.max(other)
                    };
                    if old.iter().any(|other| close(&other)) {
                        self.too_close.store(true, Ordering::Relaxed);
                    }
                    (count - before as f64) / count
                }
            }
        };
        used.keys().map(|user| (*user, factor(*user))).collect()
    }

    fn sort(&mut self, view: &View<'_>) {
        let now = view.now.millis();
        let factors = self.factors(now);
        let Settings { weights, max_age, favors_small, .. } = self.settings;
        let priority = |job: &Job| {
            let waited = view.now.since(job.submit).millis() as f64;
            let age = (waited / max_age.millis() as f64).min(1.0);
            let part = f64::from(job.nodes.min(view.ledger.total_nodes()))
                / f64::from(view.ledger.total_nodes());
            let size = if favors_small { 1.0 - part } else { part };
            f64::from(weights.age) * age
                + f64::from(weights.fair_share) * factors[&user_of(job)]
                + f64::from(weights.job_size) * size
                + f64::from(weights.cpus + weights.nodes) * part
        };
        self.waiting = view
            .queue
            .iter()
            .filter(|job| !self.gone.contains(job))
            .map(|id| (priority(view.job(id)), id))
            .collect();
        self.waiting.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        for pair in self.waiting.windows(2) {
            let difference = (pair[0].0 - pair[1].0).abs();
            let same = |one: &Job, other: &Job| {
                let is_oldest = |job: &Job| view.now.since(job.submit) >= max_age;
                (one.submit == other.submit || is_oldest(one) && is_oldest(other))
                    && one.nodes == other.nodes
                    && factors[&user_of(one)] == factors[&user_of(other)]
            };
            if difference < 1e-4 && !same(view.job(pair[0].1), view.job(pair[1].1)) {
                self.too_close.store(true, Ordering::Relaxed);
            }
        }
    }

    fn rank(&self, job: JobId) -> usize {
        self.waiting.iter().position(|other| other.1 == job).unwrap_or(usize::MAX)
    }
}

impl Order for Plain {
    fn begin(&mut self, view: &View<'_>) {
        let now = view.now.millis();
        self.began.get_or_insert(now);
        self.gone.clear();
        for holding in view.changes.released {
            let ran = self.ran.get_mut(&holding.job).unwrap();
            ran.last_mut().unwrap().until = Some(now);
        }
        for job in view.queue.iter() {
            self.users.entry(user_of(view.job(job))).or_insert(now);
        }
        self.sort(view);
    }

    fn first(&self, _: &View<'_>) -> Option<JobId> {
        self.waiting.first().map(|job| job.1)
    }

    fn next(&self, _: &View<'_>, after: JobId) -> Option<JobId> {
        self.waiting.get(self.rank(after) + 1).map(|job| job.1)
    }

    fn next_fit(&self, view: &View<'_>, after: JobId, _: &[Fit]) -> Option<JobId> {
        self.next(view, after)
    }

    fn moves(&self) -> bool {
        true
    }

    fn place(&self, job: JobId) -> Place {
        Place { key: self.rank(job) as i64, job }
    }

    fn goes_on(&mut self, view: &View<'_>, id: JobId, point: &OperatingPoint, _: Span) {
        let job = view.job(id);
        let billing = self.settings.billing;
        let rate = f64::from(billing.cpu + billing.node) * f64::from(point.nodes);
        let (user, from) = (user_of(job), view.now.millis());
        self.ran.entry(id).or_default().push(Ran { user, rate, from, until: None });
    }

    fn left(&mut self, job: JobId) {
        self.gone.push(job);
    }
}

fn starts(
    policy: &mut dyn Policy,
    nodes: u32,
    workload: &Workload,
    events: Events,
) -> Vec<Option<u64>> {
    let machine = Machine::of_processors(nodes).unwrap();
    let run = Simulation::new(&machine, workload).events(events).run(policy);
    assert_eq!(run.violations, 0, "{:?}", run.first_violations);
    run.records.iter().map(|job| job.state.has_run().then(|| job.start.millis())).collect()
}

fn policy(text: &str, settings: &Settings) -> Box<dyn Policy> {
    let priorities = Arc::new(Priorities::new(settings.clone()));
    let context = BuildContext { priorities: Some(&priorities), ..BuildContext::default() };
    text.parse::<PolicySpec>().unwrap().build(&context)
}

fn settings() -> impl Strategy<Value = Settings> {
    let weights = (0u32..3000, 0u32..3000, 0u32..900, 0u32..200, 0u32..200);
    let rule = prop_oneof![
        Just(Rule::FairTree),
        (1u32..4).prop_map(|dampening| Rule::Classic { dampening })
    ];
    let half_life = prop_oneof![Just(None), (7u32..200).prop_map(|s| Some(Span::from_secs(s)))];
    (weights, rule, half_life, 1u32..50, 1u32..8, any::<bool>(), 0u32..3).prop_map(
        |(
            (age, fair_share, job_size, cpus, nodes),
            rule,
            half_life,
            max_age,
            period,
            small,
            node,
        )| {
            Settings {
                weights: Weights { age, fair_share, job_size, cpus, nodes, ..Weights::default() },
                max_age: Span::from_secs(max_age),
                favors_small: small,
                rule,
                decay: Decay {
                    half_life,
                    period: Span::from_secs(period),
                    lead: Span::ZERO,
                    resets: Vec::new(),
                },
                billing: Billing { cpu: 1000, node: node * 500 },
            }
        },
    )
}

/// Jobs of some users that collide: user, gap, nodes, how long it runs, and how much longer it asks for, in tenths of
/// a second.
fn workload() -> impl Strategy<Value = Workload> {
    let job = (1u32..7, 0u64..40, 1u32..12, 1u64..200, prop_oneof![Just(0u64), 0u64..100]);
    prop::collection::vec(job, 1..60).prop_map(|jobs| {
        let mut submit = 0;
        let jobs = (1..).zip(jobs).map(|(number, (user, gap, nodes, run_time, more))| {
            submit += gap.saturating_sub(15) * 100 + gap % 7;
            let [run_time, requested] =
                [run_time, run_time + more].map(|tenths| Span::from_millis(tenths * 100));
            let job = Job {
                user: NonZeroU32::new(user).map(UserId),
                ..Job::new(number, Instant::from_millis(submit), nodes, requested)
            };
            (job, run_time)
        });
        Workload::new("test", jobs.collect::<Vec<_>>())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_order_by_priority_is_that_of_sorted_priorities(
        workload in workload(),
        settings in settings(),
        nodes in 11u32..20,
    ) {
        for events in [Events::Instant, Events::Each] {
            let too_close = Arc::new(AtomicBool::new(false));
            let plain = Plain::new(settings.clone(), too_close.clone());
            let mut plain = Backfill::ordered(Nominal, plain);
            let expected = starts(&mut plain, nodes, &workload, events);
            if too_close.load(Ordering::Relaxed) {
                continue;
            }
            let mut quick = policy("easy(order=multifactor)", &settings);
            prop_assert_eq!(starts(quick.as_mut(), nodes, &workload, events), expected);
        }
    }
}

/// Where jobs are in no doubt, most random workloads say something.
#[test]
fn most_random_workloads_are_compared() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut clear, mut moved) = (0, 0);
    for _ in 0..100 {
        let tree = (workload(), settings()).new_tree(&mut runner).unwrap();
        let (workload, settings) = tree.current();
        let too_close = Arc::new(AtomicBool::new(false));
        let plain = Plain::new(settings, too_close.clone());
        let by_priority =
            starts(&mut Backfill::ordered(Nominal, plain), 12, &workload, Events::Instant);
        clear += u32::from(!too_close.load(Ordering::Relaxed));
        let fcfs = starts(
            PolicySpec::easy().build(&BuildContext::default()).as_mut(),
            12,
            &workload,
            Events::Instant,
        );
        moved += u32::from(by_priority != fcfs);
    }
    assert!(
        clear > 50 && moved > 50,
        "{clear} of 100 are clear, {moved} are not first come, first served"
    );
}

/// One node, and a period of a minute. User 1 has it for ten minutes; then one job of each user waits, the one of user 1
/// submitted first. The other's comes first, whose user has used nothing; without a weight for that, the older one.
#[test]
fn who_has_used_less_comes_first() {
    let of = |user: u32, number: u64, submit_s: u32, seconds: u32| {
        let time = Span::from_secs(seconds);
        let job = Job::new(number, Instant::from_secs(submit_s), 1, time);
        (Job { user: NonZeroU32::new(user).map(UserId), ..job }, time)
    };
    let jobs = [of(1, 1, 0, 600), of(1, 2, 10, 60), of(2, 3, 20, 60)];
    let workload = Workload::new("story", jobs);
    let starts = |fair_share: u32| {
        let settings = Settings {
            weights: Weights { fair_share, ..Weights::default() },
            decay: Decay { period: Span::from_secs(60), ..Settings::default().decay },
            ..Settings::default()
        };
        let mut policy = policy("easy(order=multifactor)", &settings);
        starts(policy.as_mut(), 1, &workload, Events::Instant)
    };
    assert_eq!(starts(10_000), [Some(0), Some(660_000), Some(600_000)]);
    assert_eq!(starts(0), [Some(0), Some(600_000), Some(660_000)]);
}
