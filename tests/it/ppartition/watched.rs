//! PPartition, watched: every turn against the plain rule, and every single cap as it is set.
//!
//! The watcher keeps its own list of who is on which processor under which cap, and how far everybody
//! has got, from the decisions and the releases alone.

use std::collections::BTreeMap;

use busbar::budget::Budget;
use busbar::machine::Machine;
use busbar::model::{Caps, NodeCap};
use busbar::policy::{BuildContext, Decision, DropReason, Policy, PolicySpec, View};
use busbar::units::{Instant, JobId, NodeId, Span, Watts};
use busbar::variation::Curve;

use super::rule::{
    Capped, Member, Refused, Rules, Settled, Situation, Waiting, more_efficient, total,
};
use super::work::{ALL, after, ips, left, whole};

/// A job that runs, as the watcher sees it.
#[derive(Clone, Debug)]
struct Held {
    application: usize,
    caps: Capped,
    /// The caps by which others are let in.
    entitled: Capped,
    /// What is left of its work, if it takes as long as its user says.
    work: u128,
    since: Instant,
    whole: u64,
}

/// What the turns came to, all together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) turns: u64,
    pub(super) starts: u64,
    /// Jobs that started on fewer processors than they asked for.
    pub(super) squeezed: u64,
    pub(super) lowered: u64,
    pub(super) raised: u64,
    pub(super) deferred: u64,
    /// Jobs that the paper's rule refuses and that make all together no slower.
    pub(super) gainful: u64,
}

/// The policy and its watcher.
pub(super) struct Watched<'a> {
    inner: Box<dyn Policy>,
    rules: Rules,
    machine: &'a Machine,
    budget: &'a Budget,
    curves: Vec<&'a [Curve]>,
    running: BTreeMap<JobId, Held>,
    refused: Refused,
    pub(super) tally: Tally,
}

/// The curves of a machine, for each application.
pub(super) fn curves(machine: &Machine) -> Vec<&[Curve]> {
    let applications = machine.variation.as_ref().unwrap().applications();
    applications.iter().map(|application| &application.curves[..]).collect()
}

/// Caps in plain numbers.
pub(super) fn plain(caps: &Caps) -> Capped {
    caps.iter().map(|capped| (capped.node.0, capped.cap.milliwatts())).collect()
}

fn typed(caps: &Capped) -> Caps {
    let capped = caps.iter().map(|(node, milliwatts)| NodeCap {
        node: NodeId(*node),
        cap: Watts::from_milliwatts(*milliwatts),
    });
    Caps::new(capped.collect()).unwrap()
}

/// Which application a job runs; these logs say.
pub(super) fn application(view: &View<'_>, job: JobId) -> usize {
    view.job(job).application.unwrap().0.get() as usize - 1
}

/// The lowest limit from an instant on, without what the machine draws anyway.
pub(super) fn reliable(machine: &Machine, budget: &Budget, now: Instant) -> u64 {
    let limits = budget.changes_after(now).iter().map(|change| change.1);
    let lowest = limits.fold(budget.at(now), Watts::min);
    lowest.saturating_sub(machine.base_power).min(Watts::LARGEST).milliwatts()
}

impl<'a> Watched<'a> {
    pub(super) fn new(rules: Rules, machine: &'a Machine, budget: &'a Budget) -> Self {
        let spec: PolicySpec = rules.text().parse().unwrap();
        let inner = spec.build(&BuildContext::default());
        let (running, refused) = (BTreeMap::new(), Refused::default());
        let tally = Tally::default();
        Watched { inner, rules, machine, budget, curves: curves(machine), running, refused, tally }
    }

    /// What happened since the last turn; the ledger says the same.
    fn note(&mut self, view: &View<'_>) {
        for holding in view.changes.released {
            let held = self.running.remove(&holding.job).expect("who is released has run");
            assert_eq!(holding.nodes as usize, held.caps.len());
            assert_eq!(holding.power.milliwatts(), total(&held.caps));
        }
        let mut owners = BTreeMap::new();
        for (job, held) in &self.running {
            assert_eq!(view.ledger.caps(*job).map(plain).as_ref(), Some(&held.caps), "{job}");
            owners.extend(held.caps.iter().map(|cap| (cap.0, *job)));
        }
        for node in 0..self.machine.nodes {
            assert_eq!(view.ledger.holder(NodeId(node)), owners.get(&node).copied());
        }
        assert_eq!(view.ledger.held().milliwatts(), self.drawn());
    }

    fn drawn(&self) -> u64 {
        self.running.values().map(|held| total(&held.caps)).sum()
    }

    /// Who came and could not be fed even alone, on the best processors and under the best limit.
    fn hopeless(&self, view: &View<'_>) -> Vec<JobId> {
        let limits = self.budget.changes_after(view.now).iter().map(|change| change.1);
        let largest = limits.fold(self.budget.at(view.now), Watts::max);
        let largest = largest.saturating_sub(self.machine.base_power);
        let is_hopeless = |job: &JobId| {
            let mut best: Vec<&Curve> = self.curves[application(view, *job)].iter().collect();
            best.sort_by(|a, b| more_efficient(a, b));
            let (nodes, curves) = (view.job(*job).nodes, self.curves[application(view, *job)]);
            best.truncate(self.rules.fewest_of(nodes, curves, largest.milliwatts()));
            best.iter().map(|curve| curve.least()).sum::<Watts>() > largest
        };
        view.changes.arrived.iter().copied().filter(is_hopeless).collect()
    }

    fn situation(&self, view: &View<'_>, hopeless: &[JobId]) -> Situation<'_> {
        let member = |(job, held): (&JobId, &Held)| Member {
            job: job.0,
            application: held.application,
            caps: held.entitled.clone(),
        };
        let waiting = |job: JobId| Waiting {
            job: job.0,
            nodes: view.job(job).nodes,
            application: application(view, job),
        };
        Situation {
            curves: &self.curves,
            power: reliable(self.machine, self.budget, view.now),
            running: self.running.iter().map(member).collect(),
            waiting: view.queue.iter().filter(|job| !hopeless.contains(job)).map(waiting).collect(),
            free: (0..self.machine.nodes).filter(|n| view.ledger.is_free(NodeId(*n))).collect(),
        }
    }

    /// How long all of a job's work is believed to take under these caps.
    fn believed(&self, view: &View<'_>, job: JobId, caps: &Capped) -> u64 {
        let curves = self.curves[application(view, job)];
        let asked = view.job(job);
        whole(asked.requested.millis(), asked.nodes, curves, ips(curves, caps)).max(1)
    }

    /// The decisions by which what is becomes what is to be: who gets less, who starts, who gets more;
    /// each in the order of the jobs.
    fn expected(&self, view: &View<'_>, settled: &Settled) -> Vec<Decision> {
        let (mut lower, mut start, mut raise) = (Vec::new(), Vec::new(), Vec::new());
        for Member { job, caps, .. } in &settled.members {
            let job = JobId(*job);
            let Some(held) = self.running.get(&job) else {
                start.push(Decision::StartOn { job, caps: typed(caps) });
                continue;
            };
            if held.caps == *caps {
                continue;
            }
            let work = after(held.work, view.now.since(held.since).millis(), held.whole);
            let left = left(work, self.believed(view, job, caps));
            let left = Span::from_millis(left);
            let list = if total(caps) > total(&held.caps) { &mut raise } else { &mut lower };
            list.push(Decision::Recap { job, caps: typed(caps), left });
        }
        [lower, start, raise].concat()
    }

    /// Sets a job's caps one by one, those that fall first, and looks at the sum after each.
    fn set(&mut self, view: &View<'_>, job: JobId, caps: &Caps) {
        let limit = self.budget.at(view.now).saturating_sub(self.machine.base_power).milliwatts();
        let before = typed(&self.running[&job].caps);
        assert!(before.nodes().eq(caps.nodes()), "{job} keeps its processors");
        let mut has_risen = false;
        for step in caps.steps_from(&before) {
            let drawn = self.drawn();
            let own = &mut self.running.get_mut(&job).unwrap().caps;
            let cap = own.iter_mut().find(|cap| cap.0 == step.node.0).unwrap();
            let rises = step.cap.milliwatts() > cap.1;
            assert!(rises || !has_risen, "{job}: lower first");
            has_risen |= rises;
            cap.1 = step.cap.milliwatts();
            assert!(!rises || self.drawn() <= limit, "{} mW of {limit}", self.drawn());
            assert!(rises || self.drawn() < drawn);
        }
        assert_eq!(self.running[&job].caps, plain(caps), "the steps lead there");
    }

    /// Carries the decisions out, cap by cap.
    fn apply(&mut self, view: &View<'_>, decisions: &[Decision]) {
        let limit = self.budget.at(view.now).saturating_sub(self.machine.base_power).milliwatts();
        let mut reached = 0;
        for decision in decisions {
            let (rank, job, caps) = match decision {
                Decision::Recap { job, caps, .. } => {
                    let is_more = caps.total().milliwatts() > total(&self.running[job].caps);
                    let believed = self.believed(view, *job, &plain(caps));
                    let held = self.running.get_mut(job).unwrap();
                    let elapsed = view.now.since(held.since).millis();
                    held.work = after(held.work, elapsed, held.whole);
                    (held.since, held.whole) = (view.now, believed);
                    self.set(view, *job, caps);
                    (
                        if is_more {
                            self.tally.raised += 1;
                            3
                        } else {
                            self.tally.lowered += 1;
                            1
                        },
                        job,
                        caps,
                    )
                }
                Decision::StartOn { job, caps } => {
                    assert!(view.queue.contains(*job) && !self.running.contains_key(job));
                    let application = application(view, *job);
                    let taken = |cap: &(u32, u64)| {
                        self.running.values().any(|other| other.caps.iter().any(|c| c.0 == cap.0))
                    };
                    let caps_of_job = plain(caps);
                    assert!(!caps_of_job.iter().any(taken), "a processor has one job");
                    let whole = self.believed(view, *job, &caps_of_job);
                    let asked = view.job(*job).nodes;
                    assert!(caps.count() <= asked);
                    self.tally.starts += 1;
                    self.tally.squeezed += u64::from(caps.count() < asked);
                    let held = Held {
                        application,
                        entitled: caps_of_job.clone(),
                        caps: caps_of_job,
                        work: ALL,
                        since: view.now,
                        whole,
                    };
                    self.running.insert(*job, held);
                    (2, job, caps)
                }
                Decision::Drop { .. } => continue,
                _ => panic!("{decision:?}"),
            };
            assert!(reached <= rank, "lower, then start, then raise: {decisions:?}");
            reached = rank;
            let drawn = self.drawn();
            assert!(drawn <= limit, "{drawn} mW of {limit} after {decision:?}");
            let curves = self.curves[self.running[job].application];
            for capped in caps.iter() {
                let curve = &curves[capped.node.0 as usize];
                assert!((curve.least()..=curve.most()).contains(&capped.cap), "{capped:?}");
            }
        }
    }
}

impl Policy for Watched<'_> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        self.note(view);
        let first = decisions.len();
        self.inner.decide(view, decisions);
        let mut refused = std::mem::take(&mut self.refused);
        let hopeless = self.hopeless(view);
        let situation = self.situation(view, &hopeless);
        if !view.changes.nothing_freed() {
            refused = Refused::default();
        }
        let settled = situation.settle(&self.rules, &mut refused);
        let mut expected: Vec<Decision> = hopeless
            .iter()
            .map(|job| Decision::Drop { job: *job, reason: DropReason::NeverFed })
            .collect();
        expected.append(&mut self.expected(view, &settled));
        assert_eq!(decisions[first..], expected, "at {}: {:?}", view.now, self.running);
        self.refused = refused;
        self.tally.turns += 1;
        self.tally.deferred += settled.deferred.len() as u64;
        self.tally.gainful += settled.gainful;
        let taken = decisions[first..].to_vec();
        self.apply(view, &taken);
        for Member { job, caps, .. } in &settled.members {
            assert_eq!(&self.running[&JobId(*job)].caps, caps);
        }
        for Member { job, caps, .. } in settled.entitled {
            self.running.get_mut(&JobId(job)).unwrap().entitled = caps;
        }
        for job in settled.deferred {
            assert!(!self.running.contains_key(&JobId(job)));
        }
    }

    fn adjusts(&self) -> bool {
        self.inner.adjusts()
    }

    fn names_nodes(&self) -> bool {
        self.inner.names_nodes()
    }
}
