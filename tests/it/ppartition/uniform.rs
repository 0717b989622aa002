//! Uniform capping, turn by turn against the plain rule.
//!
//! In which order processors are picked is random; it is learned from a first run, in which as many
//! jobs of one processor each as there are processors come one after the other.

use std::collections::BTreeMap;

use busbar::model::{Caps, NodeCap};
use busbar::policy::{BuildContext, Decision, DropReason, Policy, PolicySpec, View};
use busbar::units::JobId;
use busbar::variation::Curve;

use super::rule::{Refused, Waiting};
use super::watched::{application, curves as curves_of, plain, reliable};
use super::*;

/// The cap of every processor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cap {
    Min,
    Share,
    Tdp,
    Power(u64),
}

impl Cap {
    fn text(self) -> String {
        match self {
            Cap::Power(milliwatts) => format!("{milliwatts}mW"),
            named => format!("{named:?}").to_lowercase(),
        }
    }

    /// In milliwatts, where so much is there for all.
    fn milliwatts(self, machine: &Machine, power: u64) -> u64 {
        match self {
            Cap::Min => FLOOR,
            Cap::Share => (power / u64::from(machine.nodes)).max(FLOOR),
            Cap::Tdp => machine.node_power.milliwatts(),
            Cap::Power(milliwatts) => milliwatts,
        }
    }

    /// How many processors so much feeds.
    fn fed(self, machine: &Machine, power: u64) -> usize {
        (power / self.milliwatts(machine, power)).min(u64::from(machine.nodes)) as usize
    }
}

impl Cap {
    /// Whether a job can start where nobody else is and so much is there for all.
    fn starts_alone(
        self,
        machine: &Machine,
        power: u64,
        nodes: u32,
        curves: &[Curve],
        picked: &[u32],
    ) -> bool {
        let (cap, nodes) = (self.milliwatts(machine, power), nodes as usize);
        let hold = |node: &u32| cap.max(curves[*node as usize].least().milliwatts());
        cap >= FLOOR
            && nodes <= self.fed(machine, power)
            && picked[..nodes].iter().map(hold).sum::<u64>() <= power
    }
}

fn policy(cap: Cap, rules: &Rules, seed: u64) -> Box<dyn Policy> {
    let text = rules.text();
    let queueing = text.strip_prefix("ppartition(").unwrap().split(", first").next().unwrap();
    let text = format!("uniform(cap={}, {queueing}, seed={seed})", cap.text());
    text.parse::<PolicySpec>().unwrap().build(&BuildContext::default())
}

/// The order in which processors are picked.
fn picked(machine: &Machine, rules: &Rules, seed: u64) -> Vec<u32> {
    let jobs = vec![(0, 1, 100, 100, 1); machine.nodes as usize];
    let workload = workload(&jobs);
    let model = Varied::on(machine, workload.jobs(), 1);
    let simulation = Simulation::new(machine, &workload).model(&model).keep_power(true);
    let run = simulation.run(policy(Cap::Min, rules, seed).as_mut());
    let nodes = run.cappings.iter().map(|capping| plain(&capping.caps)[0].0);
    nodes.collect()
}

/// The policy and its watcher.
struct Watched<'a> {
    inner: Box<dyn Policy>,
    cap: Cap,
    rules: Rules,
    machine: &'a Machine,
    budget: &'a Budget,
    curves: Vec<&'a [Curve]>,
    picked: Vec<u32>,
    /// Who holds how many milliwatts.
    held: BTreeMap<JobId, u64>,
    refused: Refused,
}

impl Watched<'_> {
    fn largest(&self, now: Instant) -> u64 {
        let limits = self.budget.changes_after(now).iter().map(|change| change.1);
        let largest = limits.fold(self.budget.at(now), Watts::max);
        largest.saturating_sub(self.machine.base_power).milliwatts()
    }

    fn expected(&mut self, view: &View<'_>) -> Vec<Decision> {
        let largest = self.largest(view.now);
        let arrived = view.changes.arrived.iter().copied();
        let is_too_large = |job: &JobId| {
            let (nodes, curves) = (view.job(*job).nodes, self.curves[application(view, *job)]);
            !self.cap.starts_alone(self.machine, largest, nodes, curves, &self.picked)
        };
        let mut decisions: Vec<Decision> = arrived
            .filter(is_too_large)
            .map(|job| Decision::Drop { job, reason: DropReason::NeverFed })
            .collect();
        let waiting: Vec<Waiting> = view
            .queue
            .iter()
            .filter(|job| {
                !decisions.contains(&Decision::Drop { job: *job, reason: DropReason::NeverFed })
            })
            .map(|job| Waiting {
                job: job.0,
                nodes: view.job(job).nodes,
                application: application(view, job),
            })
            .collect();
        let power = reliable(self.machine, self.budget, view.now);
        let cap = self.cap.milliwatts(self.machine, power);
        let in_use = &self.picked[..self.cap.fed(self.machine, power)];
        let is_free = |node: &u32| view.ledger.is_free(NodeId(*node));
        let mut free: Vec<u32> = in_use.iter().copied().filter(is_free).collect();
        if !view.changes.nothing_freed() {
            self.refused = Refused::default();
        }
        let mut refused = std::mem::take(&mut self.refused);
        self.rules.in_turn(&waiting, &mut refused, |Waiting { job, nodes, application }| {
            if nodes as usize > free.len() || cap < FLOOR {
                return false;
            }
            let curves = self.curves[application];
            let own = &free[..nodes as usize];
            let hold = |node: &u32| cap.max(curves[*node as usize].least().milliwatts());
            let holds: u64 = own.iter().map(hold).sum();
            if self.held.values().sum::<u64>() + holds > power {
                return false;
            }
            let capped =
                |node: u32| NodeCap { node: NodeId(node), cap: Watts::from_milliwatts(cap) };
            let caps = Caps::new(own.iter().copied().map(capped).collect()).unwrap();
            self.held.insert(JobId(job), holds);
            decisions.push(Decision::StartOn { job: JobId(job), caps });
            free.drain(..nodes as usize);
            true
        });
        self.refused = refused;
        decisions
    }
}

impl Policy for Watched<'_> {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        for holding in view.changes.released {
            let held = self.held.remove(&holding.job);
            assert_eq!(held, Some(holding.power.milliwatts()), "{}", holding.job);
        }
        assert_eq!(view.ledger.held().milliwatts(), self.held.values().sum::<u64>());
        let first = decisions.len();
        self.inner.decide(view, decisions);
        assert_eq!(decisions[first..], self.expected(view), "at {}", view.now);
        let held: u64 = self.held.values().sum();
        let limit = self.budget.at(view.now).saturating_sub(self.machine.base_power);
        assert!(held <= limit.milliwatts());
    }

    fn names_nodes(&self) -> bool {
        self.inner.names_nodes()
    }
}

/// Runs a story under uniform capping, watched.
fn check(story: &Story, cap: Cap, seed: u64) -> Run {
    let (machine, workload) = (machine(&story.curves, story.base_watts), workload(&story.jobs));
    let budget = story.budget();
    let model = Varied::on(&machine, workload.jobs(), 1);
    let mut watched = Watched {
        inner: policy(cap, &story.rules, seed),
        cap,
        rules: story.rules,
        machine: &machine,
        budget: &budget,
        curves: curves_of(&machine),
        picked: picked(&machine, &story.rules, seed),
        held: BTreeMap::new(),
        refused: Refused::default(),
    };
    let mut all = watched.picked.clone();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..machine.nodes), "every processor is picked once");
    let simulation = Simulation::new(&machine, &workload)
        .model(&model)
        .budget(budget.clone())
        .outages(story.outages())
        .events(story.events)
        .keep_power(true);
    let run = simulation.run(&mut watched);
    Replay { machine: &machine, workload: &workload }.check(&run);
    check_caps(story, cap, &machine, &run, &watched.picked);
    let again = simulation.run(policy(cap, &story.rules, seed).as_mut());
    assert_eq!((&run.records, &run.cappings), (&again.records, &again.cappings));
    run
}

/// Under a budget that stays, all caps are equal and no more processors are ever in use than it feeds.
fn check_caps(story: &Story, cap: Cap, machine: &Machine, run: &Run, picked: &[u32]) {
    let [(0, hundredths)] = story.budget[..] else { return };
    let power = u64::from(machine.nodes) * FLOOR * u64::from(hundredths) / 100;
    let milliwatts = cap.milliwatts(machine, power);
    let caps = || run.cappings.iter().flat_map(|capping| plain(&capping.caps));
    assert!(caps().all(|capped| capped.1 == milliwatts));
    let mut used: Vec<u32> = caps().map(|capped| capped.0).collect();
    used.sort_unstable();
    used.dedup();
    assert!(used.len() as u64 * milliwatts <= power, "{used:?}");
    for (record, asked) in run.records.iter().zip(&story.jobs) {
        let is_dropped = record.state == State::Dropped(DropReason::NeverFed);
        let is_rejected = matches!(record.state, State::Rejected(_));
        let curves = curves_of(machine)[asked.4 as usize - 1];
        let can_start = cap.starts_alone(machine, power, asked.1, curves, picked);
        assert!(is_rejected || is_dropped != can_start);
        let is_skipped = story.rules.refusal == Refusal::Skip;
        assert!(record.state != State::Waiting || !is_skipped, "nobody waits for ever");
        assert!(!record.state.has_run() || record.nodes == asked.1);
    }
}

fn caps() -> impl Strategy<Value = Cap> {
    let power = prop_oneof![40_000u64..49_999, 50_000u64..120_000];
    prop_oneof![Just(Cap::Min), Just(Cap::Share), Just(Cap::Tdp), power.prop_map(Cap::Power)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_turn_is_that_of_the_plain_rule(
        story in stories(7, 12, 2),
        cap in caps(),
        seed in any::<u64>(),
    ) {
        check(&story, cap, seed);
    }
}

/// Of ten processors any may come first: 60 seeds that never pick some of them first are less likely
/// than 10 · 0.9⁶⁰, which is 1.8 %, and none of the orders should come twice.
#[test]
fn other_seeds_pick_others() {
    let machine = machine(&[vec![vec![(50_000, 100), (100_000, 150)]; 10]], 0);
    let rules = Rules {
        sizes: (4, 64),
        refusal: Refusal::Skip,
        is_uncapped: false,
        fewest: 0,
        sharing: Sharing::Busbar,
    };
    let mut orders: Vec<Vec<u32>> = (0..60).map(|seed| picked(&machine, &rules, seed)).collect();
    assert_eq!(orders[7], picked(&machine, &rules, 7));
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders.len(), 60);
    assert!((0..10).all(|node| orders.iter().any(|order| order[0] == node)));
}

/// 4 processors, 230 W, caps of 60 W: three of them are in use. The job of four is given up; the one
/// of three has all of them; the others wait for it and then run side by side. Under 60 W a processor
/// does 110 of 150, so 110 s take 150 s.
#[test]
fn what_the_budget_feeds_is_in_use() {
    let story = Story {
        curves: vec![vec![vec![(50_000, 100), (100_000, 150)]; 4]],
        base_watts: 0,
        jobs: vec![(0, 4, 9, 9, 1), (0, 3, 110, 110, 1), (0, 1, 110, 110, 1), (5, 2, 110, 110, 1)],
        budget: vec![(0, 115)],
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
    let run = check(&story, Cap::Power(60_000), 1);
    let second = Instant::from_secs;
    let starts: Vec<(Instant, State)> =
        run.records.iter().map(|record| (record.start, record.state)).collect();
    let expected = [
        (second(0), State::Dropped(DropReason::NeverFed)),
        (second(0), State::Completed),
        (second(150), State::Completed),
        (second(150), State::Completed),
    ];
    assert_eq!(starts, expected);
    assert_eq!((run.end, run.peak), (second(300), Watts::from_watts(180)));
}
