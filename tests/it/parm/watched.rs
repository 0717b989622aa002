//! PARM, watched: every turn is checked by itself against the paper's program.
//!
//! The watcher keeps its own list of who runs how and how far everybody has got, from the decisions
//! and the view alone. It works in `f64` and tries everything, and so shares nothing with the policy
//! but the model and the parameters.

use std::collections::BTreeMap;

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::model::OperatingPoint;
use busbar::policy::parm::{Flexibility, Window};
use busbar::policy::{Decision, Parm, ParmSpec, Policy, View};
use busbar::units::{Instant, JobId, Span};

use super::program::{Entry, best};

/// A job that runs, as the watcher sees it.
#[derive(Clone, Copy, Debug)]
struct Held {
    point: OperatingPoint,
    /// The share of its work that is left, if it takes as long as its user says.
    left: f64,
    /// Since when it goes on; in the future while it moves.
    since: Instant,
    moved: Option<Instant>,
}

/// What happened to a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    /// It started.
    Start(OperatingPoint),
    /// It went on at another point after a pause.
    Change(OperatingPoint, Span),
    /// It ended or was thrown out.
    Gone,
}

/// The policy and its watcher.
pub(super) struct Watched<'a> {
    inner: Parm,
    spec: ParmSpec,
    machine: &'a Machine,
    budget: &'a Budget,
    running: BTreeMap<JobId, Held>,
    /// All that happened, in order.
    pub(super) journal: Vec<(Instant, JobId, Event)>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(spec: ParmSpec, machine: &'a Machine, budget: &'a Budget) -> Self {
        let (running, journal) = (BTreeMap::new(), Vec::new());
        Watched { inner: Parm::with(spec), spec, machine, budget, running, journal }
    }

    /// What happened since the last turn.
    fn note(&mut self, view: &View<'_>) {
        for holding in view.changes.released {
            let held = self.running.remove(&holding.job).expect("who is released has run");
            assert_eq!((held.point.nodes, held.point.power), (holding.nodes, holding.power));
            self.journal.push((view.now, holding.job, Event::Gone));
        }
        for held in self.running.values_mut() {
            let done = view.now.since(held.since).secs_f64() / held.point.time.secs_f64();
            held.left = (held.left - done).max(0.0);
            held.since = held.since.max(view.now);
        }
        let (nodes, milliwatts) = self.sums();
        assert_eq!(nodes, view.ledger.nodes_in_service() - view.ledger.free_nodes());
        assert_eq!(milliwatts, view.ledger.held().milliwatts());
    }

    /// Nodes and milliwatts in use.
    fn sums(&self) -> (u32, u64) {
        let points = || self.running.values().map(|held| held.point);
        (points().map(|point| point.nodes).sum(), points().map(|p| p.power.milliwatts()).sum())
    }

    /// What jobs may draw under a limit of the budget at an instant.
    fn milliwatts_at(&self, at: Instant) -> u64 {
        self.budget.at(at).saturating_sub(self.machine.base_power).milliwatts()
    }

    /// The points a job may have at its start.
    fn options(&self, view: &View<'_>, job: JobId) -> Vec<OperatingPoint> {
        let menu = view.menu(job);
        let most = menu.iter().map(|point| point.nodes).max().unwrap();
        let asked = view.job(job).nodes.min(most);
        let is_rigid = self.spec.flexibility == Flexibility::None;
        menu.iter().filter(|point| !is_rigid || point.nodes == asked).copied().collect()
    }

    /// Whether the number of nodes of a running job may change.
    fn may_move(&self, held: &Held, now: Instant) -> bool {
        let is_guarded = held.moved.is_some_and(|moved| moved + self.spec.guard > now);
        self.spec.flexibility == Flexibility::Malleable && !is_guarded && held.since <= now
    }

    /// Whether a move can be worth it: who expands ends sooner, and who shrinks does not end before
    /// the move is over, even if nobody else moves.
    fn pays(&self, view: &View<'_>, job: JobId, held: &Held, to: &OperatingPoint) -> bool {
        let moving = view.model.moving_time(job, view.job(job), held.point.nodes, to.nodes);
        let pause = 2 * moving.millis();
        let time = |point: &OperatingPoint| held.left * point.time.millis() as f64;
        // Times are whole milliseconds, rounded up.
        let left = time(&held.point).ceil() as u64;
        match to.nodes > held.point.nodes {
            true => pause + (time(to).ceil() as u64) < left,
            false => pause < left,
        }
    }

    /// The points a running job may have.
    fn ways_on(&self, view: &View<'_>, job: JobId, held: &Held) -> Vec<OperatingPoint> {
        let mut options = self.options(view, job);
        let may_move = self.may_move(held, view.now);
        options.retain(|point| {
            point.nodes == held.point.nodes || may_move && self.pays(view, job, held, point)
        });
        options
    }

    /// w · s: the weight is what is left on the fewest nodes under the lowest cap and the time since
    /// the job arrived, to the power α; the speed-up is against that point.
    fn value(&self, view: &View<'_>, job: JobId, left: f64, point: &OperatingPoint) -> f64 {
        let options = self.options(view, job);
        let least = options.iter().min_by_key(|point| (point.nodes, point.cap)).unwrap();
        let slowest = least.time.secs_f64();
        let here = view.now.since(view.job(job).submit).secs_f64();
        libm::pow(left * slowest + here, self.spec.alpha) * slowest / point.time.secs_f64()
    }

    /// The point on the fewest nodes under the lowest cap.
    fn least(&self, view: &View<'_>, job: JobId) -> OperatingPoint {
        let options = self.options(view, job);
        options.into_iter().min_by_key(|point| (point.nodes, point.cap)).unwrap()
    }

    /// What the running jobs leave at least, each with the least of what it may have: nodes, and
    /// milliwatts under the present limit.
    fn room(&self, view: &View<'_>) -> (u64, u64) {
        let ways = || self.running.iter().map(|(job, held)| self.ways_on(view, *job, held));
        let nodes = ways().map(|ways| ways.iter().map(|point| point.nodes).min().unwrap());
        let power = ways().map(|ways| ways.iter().map(|point| point.power).min().unwrap());
        let in_service = u64::from(view.ledger.nodes_in_service());
        let limit = self.milliwatts_at(view.now);
        (
            in_service.saturating_sub(u64::from(nodes.sum::<u32>())),
            limit.saturating_sub(power.map(|power| power.milliwatts()).sum()),
        )
    }

    /// The waiting jobs that enter the program: of those that could start, the first ones in this order
    /// until they fill the room so often. With α = 0 the smallest come first, of these those with the
    /// most speed-up for a watt. Else those with the most weight for a watt, and besides the smallest
    /// that fill the room once.
    fn entering(&self, view: &View<'_>) -> Vec<JobId> {
        let Window::Times(times) = self.spec.window else { return view.queue.iter().collect() };
        let room = self.room(view);
        let size = |job: JobId| {
            let least = self.least(view, job);
            (u64::from(least.nodes), least.power.milliwatts())
        };
        let could_start = |job: &JobId| size(*job).0 <= room.0 && size(*job).1 <= room.1;
        let waiting: Vec<JobId> = view.queue.iter().filter(could_start).collect();
        let per_watt = |job: JobId| {
            let least = self.least(view, job);
            let of = |point: &OperatingPoint| {
                least.time.secs_f64() / point.time.secs_f64() / point.power.as_f64()
            };
            let best = self.options(view, job).iter().map(of).fold(0.0, f64::max);
            best / of(&least)
        };
        let first = |by_rank: Vec<JobId>, times: u64| {
            let (mut first, mut sum) = (Vec::new(), (0, 0));
            for job in by_rank {
                if sum.0 < times * room.0 && sum.1 < times * room.1 {
                    sum = (sum.0 + size(job).0, sum.1 + size(job).1);
                    first.push(job);
                }
            }
            first
        };
        let times = u64::from(times.get());
        let mut smallest = waiting.clone();
        smallest.sort_by_key(|job| (size(*job).0, -(per_watt(*job) * 1000.0).round() as i64, *job));
        if self.spec.alpha == 0.0 {
            return first(smallest, times);
        }
        let rank = |job: JobId| {
            let least = self.least(view, job);
            let here = view.now.since(view.job(job).submit).secs_f64();
            let weight = libm::pow(least.time.secs_f64() + here, self.spec.alpha);
            weight * per_watt(job) / least.power.as_f64()
        };
        let mut weightiest = waiting;
        weightiest.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)).then(a.cmp(b)));
        let mut entering = first(smallest, 1);
        entering.extend(first(weightiest, times));
        entering.sort();
        entering.dedup();
        entering
    }

    /// The program of this turn: the running jobs, of whom all must go on, and the waiting ones that
    /// enter.
    fn program(&self, view: &View<'_>, entering: &[JobId]) -> Vec<Entry> {
        let choice = |job: JobId, left: f64, point: &OperatingPoint| {
            (point.nodes, point.power.milliwatts(), self.value(view, job, left, point))
        };
        let running = self.running.iter().map(|(job, held)| {
            let ways = self.ways_on(view, *job, held);
            let choices = ways.iter().map(|point| choice(*job, held.left, point)).collect();
            Entry { is_required: true, choices }
        });
        let waiting = entering.iter().map(|&job| {
            let options = self.options(view, job);
            let choices = options.iter().map(|point| choice(job, 1.0, point)).collect();
            Entry { is_required: false, choices }
        });
        running.chain(waiting).collect()
    }

    /// The longest that any job may hold what it gets now: at its slowest, and moving included.
    fn longest(&self, view: &View<'_>, entering: &[JobId]) -> Span {
        let slowest = |points: &[OperatingPoint]| points.iter().map(|p| p.time).max().unwrap();
        let move_of = |(job, held): (&JobId, &Held)| {
            let ways = self.ways_on(view, *job, held);
            let times = ways.iter().map(|way| self.move_millis(view, *job, held, way.nodes));
            2 * times.max().unwrap()
        };
        let pause = self.running.iter().map(move_of).max().unwrap_or(0);
        let running = self.running.iter().map(|(job, held)| {
            let work = held.left * slowest(&self.options(view, *job)).millis() as f64;
            let pause = if self.may_move(held, view.now) { pause } else { 0 };
            held.since.since(view.now).millis() + pause + work.ceil() as u64
        });
        let waiting = entering.iter().map(|job| slowest(&self.options(view, *job)).millis());
        Span::from_millis(running.chain(waiting).max().unwrap_or(0))
    }

    /// The lowest limit for so long.
    fn lowest_for(&self, view: &View<'_>, span: Span) -> u64 {
        let changes = self.budget.changes_after(view.now).iter();
        let times = changes.map(|change| change.0).filter(|at| *at < view.now + span);
        times.chain([view.now]).map(|at| self.milliwatts_at(at)).min().unwrap()
    }

    /// What a change of nodes takes, by the paper's formulas: 512 MB for each node asked for over
    /// links of 425 MB/s, and booting.
    fn move_millis(&self, view: &View<'_>, job: JobId, held: &Held, to: u32) -> u64 {
        let (before, after) = (f64::from(held.point.nodes), f64::from(to));
        let data = 512.0 * f64::from(view.job(job).nodes.min(self.machine.nodes));
        let links = |nodes: f64| 2.0 * 425.0 * nodes.powf(2.0 / 3.0);
        let seconds = if after > before {
            let moved = (data / before - data / after) * before;
            moved / links(before) + (after - before) * 0.01904 + 72.73
        } else {
            data / before * (before - after) / links(after)
        };
        (seconds * 1000.0).ceil() as u64
    }

    /// Carries the decisions out on the plain list, one by one.
    fn apply(&mut self, view: &View<'_>, decisions: &[Decision]) {
        let before = self.running.clone();
        let (in_service, limit) = (view.ledger.nodes_in_service(), self.milliwatts_at(view.now));
        let mut step = 0;
        for decision in decisions {
            let (_, held_before) = self.sums();
            let (rank, job, event) = match *decision {
                Decision::Start { job, point } => {
                    assert!(self.options(view, job).contains(&point), "{decision:?}");
                    assert!(view.queue.contains(job));
                    let held = Held { point, left: 1.0, since: view.now, moved: None };
                    assert!(self.running.insert(job, held).is_none(), "{job} starts twice");
                    (3, job, Event::Start(point))
                }
                Decision::Change { job, point, pause, left } => {
                    let was = before.get(&job).expect("only running jobs change");
                    assert!(self.ways_on(view, job, was).contains(&point), "{decision:?}: {was:?}");
                    let held = self.running.get_mut(&job).unwrap();
                    let from = std::mem::replace(&mut held.point, point);
                    let is_less = point.nodes <= from.nodes && point.cap <= from.cap;
                    let is_more = point.nodes >= from.nodes && point.cap >= from.cap;
                    assert!(is_less != is_more, "{from:?} to {point:?}");
                    if point.nodes != from.nodes {
                        held.moved = Some(view.now);
                    } else {
                        assert_eq!(pause, Span::ZERO, "nobody waits for a new cap");
                    }
                    held.since = held.since + pause;
                    let rest = held.since.since(view.now).millis();
                    let expected = rest as f64 + held.left * point.time.millis() as f64;
                    assert!((left.millis() as f64 - expected).abs() < 2.0, "{left} {expected}");
                    (if is_less { 1 } else { 2 }, job, Event::Change(point, pause))
                }
                _ => panic!("{decision:?}"),
            };
            assert!(step <= rank, "lower, then raise, then start: {decisions:?}");
            step = rank;
            self.journal.push((view.now, job, event));
            let (nodes, held) = self.sums();
            assert!(nodes <= in_service, "{nodes} nodes of {in_service}");
            assert!(held <= limit.max(held_before), "{held} mW of {limit}");
        }
        self.check_pauses(view, decisions, &before);
    }

    /// Whose nodes change stands still for twice the longest move of all.
    fn check_pauses(
        &self,
        view: &View<'_>,
        decisions: &[Decision],
        before: &BTreeMap<JobId, Held>,
    ) {
        let moves =
            before.iter().filter(|(job, was)| self.running[job].point.nodes != was.point.nodes);
        let times = moves.map(|(job, was)| {
            assert!(self.may_move(was, view.now), "{job} is guarded: {was:?}");
            self.move_millis(view, *job, was, self.running[job].point.nodes)
        });
        let expected = 2 * times.max().unwrap_or(0);
        for (job, was) in before {
            let pauses = decisions.iter().filter_map(|decision| match *decision {
                Decision::Change { job: other, pause, .. } if other == *job => Some(pause.millis()),
                _ => None,
            });
            let pause: u64 = pauses.sum();
            let moves = self.running[job].point.nodes != was.point.nodes;
            // Each time is rounded up to a millisecond.
            let is_right = if moves { pause.abs_diff(expected) <= 2 } else { pause == 0 };
            assert!(is_right, "{job} stands still for {pause} ms, not {expected}");
        }
    }

    /// What runs now is the best there is.
    fn check_choice(
        &self,
        view: &View<'_>,
        program: &[Entry],
        longest: Span,
        before: &BTreeMap<JobId, Held>,
    ) {
        let nodes = view.ledger.nodes_in_service();
        // The watcher's times may be off by a millisecond or two, in either direction.
        let slack = Span::from_millis(2);
        let spans = [Span::from_millis(longest.millis().saturating_sub(2)), longest + slack];
        let optima = spans.map(|span| best(program, nodes, self.lowest_for(view, span)));
        let value =
            self.running.iter().map(|(job, held)| self.value(view, *job, held.left, &held.point));
        let value: f64 = value.sum();
        let agrees = |optimum: &Option<f64>| match optimum {
            Some(optimum) => (value - optimum).abs() <= 1e-6 * optimum,
            None => self.is_held_back(view, before),
        };
        assert!(
            optima.iter().any(agrees),
            "horizon {longest}: worth {value}, at best {optima:?}, at {}",
            view.now
        );
    }

    /// Nobody waits beside what would do for it, whether it was in the program or not, unless a limit
    /// is going to fall.
    fn check_waiting(&self, view: &View<'_>) {
        if !self.budget.changes_after(view.now).is_empty() {
            return;
        }
        let (nodes, milliwatts) = self.sums();
        let free_nodes = view.ledger.nodes_in_service().saturating_sub(nodes);
        let free_milliwatts = self.milliwatts_at(view.now).saturating_sub(milliwatts);
        for job in view.queue.iter().filter(|job| !self.running.contains_key(job)) {
            let least = self.least(view, job);
            let fits = least.nodes <= free_nodes && least.power.milliwatts() <= free_milliwatts;
            assert!(!fits, "{job} waits beside {free_nodes} nodes and {free_milliwatts} mW");
        }
    }

    /// Running jobs are too much for some limit, and nobody starts. If that limit is to come,
    /// everybody goes on; if it is in force, everybody is at what draws least.
    fn is_held_back(&self, view: &View<'_>, before: &BTreeMap<JobId, Held>) -> bool {
        let milliwatts: u64 = before.values().map(|was| was.point.power.milliwatts()).sum();
        let is_to_come = milliwatts <= self.milliwatts_at(view.now);
        let is_right = |(job, was): (&JobId, &Held)| {
            let point = self.running[job].point;
            let ways = self.ways_on(view, *job, was);
            let least = ways.iter().map(|point| point.power).min();
            if is_to_come { point == was.point } else { Some(point.power) == least }
        };
        self.running.len() == before.len() && before.iter().all(is_right)
    }
}

impl Policy for Watched<'_> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.note(view);
        let entering = self.entering(view);
        let (program, longest, before) =
            (self.program(view, &entering), self.longest(view, &entering), self.running.clone());
        let first = decisions.len();
        self.inner.decide(view, decisions);
        self.apply(view, &decisions[first..]);
        self.check_choice(view, &program, longest, &before);
        self.check_waiting(view);
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }
}
