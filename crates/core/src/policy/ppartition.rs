//! PPartition: the machine's power shared among jobs on processors that are not alike (Gholkar,
//! Mueller and Rountree: Power tuning for HPC jobs under manufacturing variations).
//!
//! Rule: if as many processors are free as a job asks for, it is offered the most efficient of them, and
//! a share of the machine's power in proportion to what it asks for; PTune says which of the
//! processors and which caps make the best of it. If so much power is not free, and PTune has use for
//! fewer processors, its share is what those are of all that are busy; if more is free than that, it
//! has all that is free; and otherwise what is missing is taken from every running job in proportion to
//! what that has, and from others what one cannot give. Each of those is tuned again on its own
//! processors. If too little comes together, nothing changes, and the job waits until another ends.
//! What jobs give back when they end, and nobody can start with, goes to the running jobs that gain
//! most by it, if it is a watt or more; of that the paper says nothing.
//! [`Sharing::Paper`] is the rule to the letter of the paper. [`Sharing::Gain`] lets jobs in by that rule, and others
//! if all jobs together then get no less done; and it gives all power above the lowest caps to the processors that
//! gain most by it, whose job they are.
//!
//! A job that is squeezed onto few processors keeps them for all of its life, and may take very long.
//! So one for which there are too few (`fewest`, which is not in the paper) waits instead. One that could not be fed even alone is
//! given up.
//!
//! Jobs come from a conventional dispatcher with [three queues](super::three_queues).
//!
//! Where the budget is going to change, the lowest limit to come counts from now on: safe, but
//! wasteful. If running jobs need more than there is, nobody starts, and all go down to the least.
//!
//! Below feeds, and on nodes of several kinds, processors are not told apart, and power is shared among jobs (`by_job`).
//!
//! What it deliberately does not do: reserve. A large job may wait forever while smaller ones pass it
//! (`dispatch=stop` prevents that).

mod by_job;
mod partition;
mod spec;

pub use spec::{First, PpartitionSpec, Sharing};

use crate::freedom::Freedom;
use crate::model::{Caps, Varied};
use crate::policy::three_queues::{Kind, ThreeQueues};
use crate::policy::{Decision, DropReason, Policy, View};
use crate::solve::ptune::crew::{Crew, Divided, OfRun};
use crate::units::{Instant, JobId, Span, Watts};
use crate::variation::Curve;
use crate::variation::kin::Kin;

use partition::{Admission, Partition};

/// The policy with these parameters: one that shares power by job, or one that knows each node.
fn policy(spec: PpartitionSpec, is_by_job: bool) -> Box<dyn Policy> {
    match is_by_job {
        true => Box::new(by_job::ByJob::with(spec)),
        false => Box::new(Ppartition::with(spec)),
    }
}

/// Power shared by need, and processors by efficiency.
pub struct Ppartition {
    spec: PpartitionSpec,
    queues: ThreeQueues,
    partition: Partition,
}

impl Ppartition {
    /// The policy with these parameters.
    pub fn with(spec: PpartitionSpec) -> Self {
        Ppartition {
            spec,
            queues: ThreeQueues::new(spec.queueing),
            partition: Partition::default(),
        }
    }

    /// Takes in what happened: who came, and who is gone. Who could not be fed even alone is given up.
    fn note(&mut self, view: &View<'_>, varied: &Varied, decisions: &mut Vec<Decision>) {
        let gone = self.partition.follow(view, varied);
        if !gone.is_empty() || !view.changes.nothing_freed() {
            self.queues.reopen();
        }
        // Who was thrown out by a failing node is gone, and has come again.
        let refused = gone.iter().filter(|job| !view.changes.arrived.contains(job));
        for job in refused.chain(view.changes.arrived) {
            if !view.queue.contains(*job) {
                continue;
            }
            let kind = kind(view, varied, *job);
            let largest = view.ledger.most_for_jobs(Span::ZERO);
            let fewest = self.fewest(varied, largest, kind);
            let best = varied.by_efficiency(kind.application).iter().take(fewest as usize);
            let curves = varied.curves(kind.application);
            let least = best.map(|place| curves[*place as usize].least()).sum::<Watts>();
            if least > largest {
                decisions.push(Decision::Drop { job: *job, reason: DropReason::NeverFed });
            } else {
                self.queues.insert(*job, kind);
            }
        }
    }

    /// The fewest processors that a job starts on where there is so much power for all.
    fn fewest(&self, varied: &Varied, power: Watts, kind: Kind) -> u32 {
        if !kind.is_moldable {
            return kind.nodes;
        }
        // Of what it asks for, or of all that can run at once if those are fewer: nobody waits for what
        // never comes.
        let fed = u32::try_from(varied.fed(kind.application, power)).unwrap_or(u32::MAX);
        (self.spec.fewest.of_count(kind.nodes.min(fed)) as u32).max(1)
    }

    /// A job's share of the machine's power: what it asks for, of all processors, or of those that the
    /// power feeds at all.
    fn share(&self, varied: &Varied, power: Watts, kind: Kind) -> Watts {
        let (asked, all) = (u64::from(kind.nodes), varied.processors().names().len() as u64);
        match self.spec.sharing {
            Sharing::Paper | Sharing::Gain => portion(power, asked, all),
            Sharing::Busbar => {
                let fed = varied.fed(kind.application, power);
                portion(power, asked.min(fed), fed)
            }
        }
    }

    /// How a job could be let in, if it can.
    fn admission(&self, varied: &Varied, power: Watts, kind: Kind) -> Option<Admission> {
        let Kind { application, nodes, .. } = kind;
        let fewest = self.fewest(varied, power, kind);
        let kin = varied.kin(application);
        let mut offered = self.partition.candidates(application, nodes)?;
        let needed = offered.first(fewest).least(kin);
        let free = power.saturating_sub(self.partition.power());
        let most = offered.most(kin);
        let share = self.share(varied, power, kind).max(needed);
        let share = match self.spec.sharing {
            Sharing::Paper | Sharing::Gain => share,
            // Nobody takes from others what he could not use.
            Sharing::Busbar => share.min(most),
        };
        let first = match self.spec.first {
            First::Share => share,
            First::Uncapped => most,
        };
        let mut budgets = Vec::new();
        let mut gathered = first;
        if first > free {
            if free + self.partition.spare() < needed {
                // As below, but found without tuning.
                return None;
            }
            let allocated = self.partition.allocated();
            let (mut wanted, mut sufficient) = (share, offered.clone());
            // With fewer processors its share is another, and of that it may have use for fewer still.
            loop {
                let best = tune(&sufficient, kin, wanted, fewest)?.crew;
                if best.count() == sufficient.count() {
                    break;
                }
                let count = u64::from(best.count());
                wanted = portion(power, count, allocated + count).max(needed);
                sufficient = best;
            }
            if free >= wanted && self.spec.sharing == Sharing::Busbar {
                gathered = free;
            } else {
                let taken;
                (budgets, taken) =
                    self.partition.take(wanted.saturating_sub(free), self.spec.sharing);
                gathered = wanted.min(free) + taken;
                offered = sufficient;
                if gathered < offered.least(kin) {
                    return None;
                }
            }
        }
        let Divided { crew, levels } = tune(&offered, kin, gathered, fewest)?;
        Some(Admission { application, crew, levels, budgets })
    }

    /// How a job could be let in so that all jobs together get no less done. It has those of its processors that get
    /// more done with their power than those who have it now.
    fn gainful(&self, varied: &Varied, power: Watts, kind: Kind) -> Option<Admission> {
        let Kind { application, nodes, .. } = kind;
        let kin = varied.kin(application);
        let candidates = self.partition.candidates(application, nodes)?;
        let without = self.partition.poured(varied, power, &[])?;
        let is_worth = |one: &&OfRun| without.is_worth(&kin.run(one.run).curve);
        let worth: u32 =
            candidates.members().iter().take_while(is_worth).map(|one| one.count).sum();
        let crew = candidates.first(worth.max(self.fewest(varied, power, kind)));
        let curves = |one: &OfRun| std::iter::repeat_n(&kin.run(one.run).curve, one.count as usize);
        let offered: Vec<&Curve> = crew.members().iter().flat_map(curves).collect();
        if self.partition.poured(varied, power, &offered)?.is_less_than(&without) {
            return None;
        }
        let free = power.saturating_sub(self.partition.power());
        let missing = crew.least(kin).saturating_sub(free);
        let (budgets, taken) = self.partition.take(missing, Sharing::Busbar);
        if taken < missing {
            return None;
        }
        let levels = crew.at_least(kin);
        Some(Admission { application, crew, levels, budgets })
    }

    /// Lets in whoever can be, in the order of the queues.
    fn dispatch(&mut self, varied: &Varied, power: Watts) {
        let mut turn = self.queues.turn(self.partition.free_count());
        while let Some((job, kind)) = turn.next() {
            let mut admission = self.admission(varied, power, kind);
            if admission.is_none() && self.spec.sharing == Sharing::Gain {
                admission = self.gainful(varied, power, kind);
            }
            match admission {
                Some(admission) => {
                    self.partition.admit(job, admission, varied);
                    turn.started(&mut self.queues, job, kind);
                }
                None => turn.refused(&mut self.queues, kind),
            }
        }
    }

    /// Writes down how to get from what is to what is to be: first who gets less, then who starts, then
    /// who gets more.
    fn carry_out(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut raises = Vec::new();
        let mut starts = Vec::new();
        for (&job, member) in &mut self.partition.members {
            let Some(caps) = member.due_caps() else { continue };
            // The caps are of processors there are, within what can be set.
            let Some(point) = view.model.on(job, view.job(job), &caps) else { continue };
            match member.held.as_ref().map(Caps::total) {
                None => {
                    member.start(caps.clone(), view.now, point.time);
                    starts.push(Decision::StartOn { job, caps });
                }
                Some(before) => {
                    let is_more = caps.total() > before;
                    let left = member.recap(caps.clone(), view.now, point.time);
                    let list = if is_more { &mut raises } else { &mut *decisions };
                    list.push(Decision::Recap { job, caps, left });
                }
            }
        }
        decisions.append(&mut starts);
        decisions.append(&mut raises);
    }
}

/// The best that can be made of so much power on some of these processors, but on no fewer than that.
fn tune(offered: &Crew, kin: &Kin, power: Watts, fewest: u32) -> Option<Divided> {
    let best = offered.tune(kin, power)?;
    if best.crew.count() >= fewest {
        return Some(best);
    }
    let crew = offered.first(fewest);
    let levels = crew.retune(kin, power)?;
    Some(Divided { crew, levels })
}

/// A part of the machine's power, rounded down.
fn portion(power: Watts, part: u64, whole: u64) -> Watts {
    let milliwatts = u128::from(power.milliwatts()) * u128::from(part) / u128::from(whole.max(1));
    Watts::from_milliwatts(u64::try_from(milliwatts).unwrap_or(u64::MAX))
}

/// What makes a job like others.
pub(super) fn kind(view: &View<'_>, varied: &Varied, job: JobId) -> Kind {
    let asked = view.job(job);
    let is_moldable = view.model.freedoms(job, asked).has(Freedom::Sizes);
    Kind { nodes: asked.nodes, application: varied.application(job), is_moldable }
}

/// The power that jobs can rely on, now and under every limit to come.
pub(super) fn reliable(view: &View<'_>) -> Watts {
    view.ledger.for_jobs(view.ledger.lowest_limit(Instant::NEVER)).min(Watts::LARGEST)
}

impl Policy for Ppartition {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let Some(varied) = view.model.varied() else { return };
        self.note(view, varied, decisions);
        let strangers = self.partition.held_by_strangers(view);
        let power = reliable(view).saturating_sub(strangers);
        self.partition.go_down_to(power);
        self.dispatch(varied, power);
        self.partition.settle(varied, power);
        if self.spec.sharing == Sharing::Gain {
            self.partition.divide_anew(varied, power);
        }
        self.carry_out(view, decisions);
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn names_nodes(&self) -> bool {
        true
    }
}
