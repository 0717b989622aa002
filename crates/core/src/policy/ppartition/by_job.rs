//! PPartition where processors are not told apart: on nodes of several kinds, those of a kind are alike, and below feeds it matters
//! more where a node is than which one it is.
//!
//! Rule: what is left of [PPartition](super) without a choice of processors. A job is offered a share of the machine's power in
//! proportion to what it asks for. If so much is not free, what is missing is taken from every running job in proportion to
//! what that has, down to the least each needs. A job gets the fastest of its points that its power feeds; what nobody has goes
//! to those that gain most by a watt. A job has the first nodes that are free for it. Whoever shares nodes has one point, and
//! neither gives nor gets.
//!
//! What it deliberately does not do: give a job other numbers of nodes than it asks for, or weigh who gains more before
//! somebody is let in, as `sharing=gain` does elsewhere.

use std::collections::BTreeMap;

use super::{First, PpartitionSpec, Sharing, portion, reliable};
use crate::freedom::Freedom;
use crate::ledger::{Holding, Ledger};
use crate::model::OperatingPoint;
use crate::policy::rehearsal::try_out;
use crate::policy::three_queues::{Kind, ThreeQueues};
use crate::policy::{Decision, Policy, View};
use crate::units::{JobId, Span, Watts};

/// Power shared by what jobs ask for.
pub(super) struct ByJob {
    spec: PpartitionSpec,
    queues: ThreeQueues,
}

/// A job in the sharing out.
struct Member {
    /// What it holds, and how long all of its work takes there; nothing if it is about to start.
    held: Option<(Holding, Span)>,
    /// The points it may have, the one that draws least first, and each faster than the one before.
    points: Vec<OperatingPoint>,
    /// The power it may use.
    budget: Watts,
    /// Which of its points it is to have.
    place: usize,
}

impl Member {
    fn least(&self) -> Watts {
        self.points[0].power
    }

    fn spare(&self) -> Watts {
        self.budget.saturating_sub(self.least())
    }

    /// What it would do at one of its points, as a decision.
    fn decision(&self, view: &View<'_>, job: JobId, place: usize) -> Decision {
        let point = self.points[place];
        match &self.held {
            None => Decision::Start { job, point },
            Some((holding, whole)) => {
                let left = u128::from(holding.until.since(view.now).millis())
                    * u128::from(point.time.millis());
                let left = left.div_ceil(u128::from(whole.millis().max(1)));
                let left = Span::from_millis(u64::try_from(left).unwrap_or(u64::MAX));
                Decision::Change { job, point, pause: Span::ZERO, left }
            }
        }
    }

    /// How much faster it gets for each watt by its next point, if there is one.
    fn gain(&self) -> Option<(f64, Watts)> {
        let (here, next) = (self.points.get(self.place)?, self.points.get(self.place + 1)?);
        let more = next.power.saturating_sub(here.power);
        let fastest = self.points[self.points.len() - 1].time.secs_f64();
        let speeds = fastest / next.time.secs_f64() - fastest / here.time.secs_f64();
        Some((speeds / more.as_f64().max(f64::MIN_POSITIVE), more))
    }
}

/// The points on the nodes that a job asks for that no other one beats, the one that draws least first.
fn points(view: &View<'_>, job: JobId) -> Vec<OperatingPoint> {
    let menu = view.menu(job);
    let asked = menu[0].nodes;
    let mut points: Vec<OperatingPoint> =
        menu.iter().filter(|point| point.nodes == asked).copied().collect();
    points.sort_by_key(|point| (point.power, point.time));
    let mut shortest = Span::FOREVER;
    points.retain(|point| {
        let is_faster = point.time < shortest;
        shortest = shortest.min(point.time);
        is_faster
    });
    if points.is_empty() { vec![menu[0]] } else { points }
}

impl ByJob {
    pub(super) fn with(spec: PpartitionSpec) -> Self {
        ByJob { spec, queues: ThreeQueues::new(spec.queueing) }
    }

    /// The running jobs that may be changed.
    fn running(view: &View<'_>) -> BTreeMap<JobId, Member> {
        let member = |holding: &Holding| {
            let job = holding.job;
            let may_change = view.model.freedoms(job, view.job(job)).has(Freedom::Recaps)
                && view.ledger.suspended(job).is_none();
            let points = points(view, job);
            let is_held = |point: &OperatingPoint| {
                (point.nodes, point.power) == (holding.nodes, holding.power)
            };
            let place = points.iter().position(is_held).filter(|_| may_change)?;
            let held = Some((*holding, points[place].time));
            Some((job, Member { held, points, budget: holding.power, place }))
        };
        view.ledger.running().iter().filter_map(member).collect()
    }

    /// Takes so much power from all, from each in proportion to what it has, and from none more than it can do without; says
    /// how much came together.
    fn take(&self, members: &mut BTreeMap<JobId, Member>, power: Watts) -> Watts {
        let mut taken = Watts::ZERO;
        while taken < power {
            let givers = members.values().filter(|member| member.spare() > Watts::ZERO);
            let all: Watts = givers.map(|member| member.budget).sum();
            let missing = power.saturating_sub(taken).milliwatts();
            let before = taken;
            for member in members.values_mut().filter(|member| member.spare() > Watts::ZERO) {
                let part = u128::from(missing) * u128::from(member.budget.milliwatts());
                let part = part.div_ceil(u128::from(all.milliwatts().max(1)));
                let part = Watts::from_milliwatts(u64::try_from(part).unwrap_or(u64::MAX));
                let part = part.min(member.spare()).min(power.saturating_sub(taken));
                member.budget -= part;
                taken += part;
            }
            if taken == before || self.spec.sharing == Sharing::Paper {
                break;
            }
        }
        taken
    }

    /// Lets a job in, if there are nodes and power for it. The ledger has all others at their least.
    fn let_in(
        &self,
        view: &View<'_>,
        job: JobId,
        power: Watts,
        free: Watts,
        members: &mut BTreeMap<JobId, Member>,
        ledger: &mut Ledger,
    ) -> bool {
        let points = points(view, job);
        let (least, most) = (points[0].power, points[points.len() - 1].power);
        let (asked, all) = (u64::from(points[0].nodes), u64::from(view.ledger.total_nodes()));
        let fed = power.milliwatts().saturating_mul(asked) / least.milliwatts().max(1);
        let share = match self.spec.sharing {
            Sharing::Paper | Sharing::Gain => portion(power, asked, all),
            // Of those that the power feeds.
            Sharing::Busbar => portion(power, asked.min(fed.min(all)), fed.min(all)),
        };
        let share = share.clamp(least, most);
        let first = if self.spec.first == First::Uncapped { most } else { share };
        let spare: Watts = members.values().map(Member::spare).sum();
        if free.saturating_add(spare) < least {
            return false;
        }
        let mut member = Member { held: None, points, budget: first.min(free), place: 0 };
        if ledger.start(job, &member.points[0]).is_err() {
            return false;
        }
        if first > free {
            member.budget = free.saturating_add(self.take(members, share.saturating_sub(free)));
        }
        members.insert(job, member);
        true
    }

    /// Everybody gets the fastest point that its power feeds, and what nobody has goes to those that gain most by it.
    fn settle(members: &mut BTreeMap<JobId, Member>, power: Watts) {
        for member in members.values_mut() {
            let is_fed = |point: &OperatingPoint| point.power <= member.budget;
            member.place = member.points.iter().rposition(is_fed).unwrap_or(0);
        }
        let held: Watts = members.values().map(|member| member.points[member.place].power).sum();
        let mut free = power.saturating_sub(held);
        loop {
            let gains = members.iter().filter_map(|(job, member)| Some((member.gain()?, *job)));
            let fitting = gains.filter(|((_, more), _)| *more <= free);
            let best = fitting
                .max_by(|one, other| one.0.0.total_cmp(&other.0.0).then(other.1.cmp(&one.1)));
            let Some(((_, more), job)) = best else { return };
            free -= more;
            if let Some(member) = members.get_mut(&job) {
                member.place += 1;
            }
        }
    }
}

impl Policy for ByJob {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if !view.changes.nothing_freed() || view.changes.machine {
            self.queues.reopen();
        }
        let kind = |job: JobId| {
            let application = view.model.alike(job, view.job(job)) as usize;
            Kind { nodes: view.nominal(job).nodes, application, is_moldable: false }
        };
        for &job in view.changes.arrived {
            self.queues.insert(job, kind(job));
        }
        let mut members = ByJob::running(view);
        let held: Watts = members.values().map(|member| member.budget).sum();
        let others = view.ledger.held().saturating_sub(held);
        let power = reliable(view).saturating_sub(others);
        let mut ledger = view.ledger.clone();
        for (job, member) in &members {
            _ = try_out(&mut ledger, &member.decision(view, *job, 0));
        }
        let excess = held.saturating_sub(power);
        self.take(&mut members, excess);
        let mut turn = self.queues.turn(view.ledger.free_nodes());
        let mut starting = Vec::new();
        while let Some((job, kind)) = turn.next() {
            let held: Watts = members.values().map(|member| member.budget).sum();
            let free = power.saturating_sub(held);
            match self.let_in(view, job, power, free, &mut members, &mut ledger) {
                true => {
                    starting.push((job, kind));
                    turn.started(&mut self.queues, job, kind);
                }
                false => turn.refused(&mut self.queues, kind),
            }
        }
        ByJob::settle(&mut members, power);
        // As much of that as every limit grants.
        let (mut lowers, mut starts, mut raises) = (Vec::new(), Vec::new(), Vec::new());
        for (job, member) in &mut members {
            let is_granted = |place: &usize| {
                let (point, left) = match member.decision(view, *job, *place) {
                    Decision::Change { point, left, .. } => (point, left),
                    _ => (member.points[*place], member.points[*place].time),
                };
                ledger.change(*job, &point, left).is_ok()
            };
            let granted = (0..=member.place).rev().find(is_granted);
            member.place = granted.unwrap_or(0);
            let decision = member.decision(view, *job, member.place);
            let power = member.points[member.place].power;
            match &member.held {
                None => starts.push(decision),
                Some((holding, _)) if power < holding.power => lowers.push(decision),
                Some((holding, _)) if power > holding.power => raises.push(decision),
                Some(_) => (),
            }
        }
        let mut ledger = view.ledger.clone();
        for decision in lowers.into_iter().chain(starts).chain(raises) {
            if try_out(&mut ledger, &decision) {
                decisions.push(decision);
            }
        }
        // Whoever could not start after all waits on.
        for (job, kind) in starting.into_iter().filter(|(job, _)| !ledger.holds(*job)) {
            self.queues.insert(job, kind);
        }
    }

    fn adjusts(&self) -> bool {
        true
    }
}
