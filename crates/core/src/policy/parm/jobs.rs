//! What jobs may have, and how far those that run have got, as far as is believed.

mod offered;

pub(super) use offered::{Offered, least};

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Flexibility, Phase, is_over};
use crate::freedom::{Freedom, Freedoms};
use crate::model::{OperatingPoint, Work};
use crate::policy::{Adopted, View};
use crate::units::{Instant, JobId, Span, Watts};

/// The points a job may have, and what each is worth.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) points: Vec<OperatingPoint>,
    /// How many times as fast as on the fewest nodes under the lowest cap.
    pub(super) speed_ups: Vec<f64>,
    /// The nodes that it asks for, ...
    pub(super) asked_nodes: u32,
    /// ... and how many times as fast it is there.
    asked: f64,
    /// The time on the fewest nodes under the lowest cap.
    pub(super) slowest: Span,
    /// The longest any of them takes.
    pub(super) longest: Span,
    /// The most speed-up for a watt, against that on the fewest nodes under the lowest cap.
    pub(super) best_per_watt: f64,
    /// The places of points that no other one beats: on as many nodes or fewer, with as much power or
    /// less, and at least as fast. Nobody needs another to start with.
    pub(super) thrifty: Vec<u32>,
    /// Whether a lower cap on the same nodes is as fast, by place.
    is_capped_in_vain: Vec<bool>,
    /// What may be done to it.
    pub(super) freedoms: Freedoms,
    /// The point that is not on its menu, which it had before anybody asked: it may stay there, but
    /// not come back.
    admitted: Option<OperatingPoint>,
}

impl Options {
    /// Of the job's menu, those on the nodes it asks for, or all.
    pub(super) fn of(view: &View<'_>, job: JobId, flexibility: Flexibility) -> Self {
        let menu = view.menu(job);
        let asked = menu[0];
        let may = |point: &&OperatingPoint| {
            flexibility != Flexibility::None || point.nodes == asked.nodes
        };
        let mut points: Vec<OperatingPoint> = menu.iter().filter(may).copied().collect();
        // PARM chooses nodes and caps; a job uses all the cores it can.
        points.sort_unstable_by_key(|point| (point.nodes, point.cap, Reverse(point.cores)));
        points.dedup_by_key(|point| (point.nodes, point.cap));
        let slowest = points.first().map_or(Span::ZERO, |point| point.time);
        let speed_up = |point: &OperatingPoint| {
            slowest.secs_f64() / point.time.max(OperatingPoint::SHORTEST).secs_f64()
        };
        let speed_ups: Vec<f64> = points.iter().map(speed_up).collect();
        let per_watt = |(point, speed_up): (&OperatingPoint, &f64)| {
            speed_up / point.power.as_f64().max(f64::MIN_POSITIVE)
        };
        let per_watt: Vec<f64> = points.iter().zip(&speed_ups).map(per_watt).collect();
        let best_per_watt = per_watt.iter().copied().fold(0.0, f64::max) / per_watt[0];
        let longest = points.iter().map(|point| point.time).max().unwrap_or(Span::ZERO);
        // Of equals the first is kept.
        let beats = |one: usize, other: usize| {
            let (a, b) = (&points[one], &points[other]);
            let is_equal =
                (a.nodes, a.power) == (b.nodes, b.power) && speed_ups[one] == speed_ups[other];
            let is_no_more = a.nodes <= b.nodes && a.power <= b.power;
            is_no_more && speed_ups[one] >= speed_ups[other] && !(is_equal && one >= other)
        };
        // Points on the same nodes stand side by side.
        let mut is_capped_in_vain = Vec::with_capacity(points.len());
        for alike in points.chunk_by(|a, b| a.nodes == b.nodes) {
            let first = is_capped_in_vain.len();
            let alike = first..first + alike.len();
            let is_beaten = |place| alike.clone().any(|other| beats(other, place));
            is_capped_in_vain.extend(alike.clone().map(is_beaten));
        }
        // Whoever is beaten by one of those that were dropped is beaten by what beats that one, too. More nodes beat nobody.
        let needed = (0..points.len()).filter(|place| !is_capped_in_vain[*place]);
        let needed: Vec<usize> = needed.collect();
        let is_thrifty = |(rank, place): (usize, &usize)| {
            let beaten = needed[..rank].iter().any(|other| beats(*other, *place));
            (!beaten).then_some(*place as u32)
        };
        Options {
            thrifty: needed.iter().enumerate().filter_map(is_thrifty).collect(),
            is_capped_in_vain,
            asked_nodes: asked.nodes,
            asked: speed_up(&asked),
            points,
            speed_ups,
            slowest,
            longest,
            best_per_watt,
            freedoms: view.model.freedoms(job, view.job(job)),
            admitted: None,
        }
    }

    /// Whether a job that runs at a point needs this one: a lower cap is not as fast, or it is the
    /// present one.
    pub(super) fn is_needed(&self, from: &OperatingPoint, place: usize) -> bool {
        !self.is_capped_in_vain[place] || self.points[place] == *from
    }

    /// Whether it is as fast at a point as it asks to be.
    pub(super) fn is_as_asked(&self, place: usize) -> bool {
        self.speed_ups[place] >= self.asked
    }

    /// Whether a job that runs at a point may be given the cap of another.
    pub(super) fn may_have_cap(&self, from: &OperatingPoint, to: &OperatingPoint) -> bool {
        from.cap == to.cap || self.freedoms.has(Freedom::Recaps)
    }

    /// The point on the fewest nodes under the lowest cap.
    pub(super) fn least(&self) -> &OperatingPoint {
        &self.points[0]
    }

    /// Whether a job that runs at a point may be told to go on at another.
    pub(super) fn leads_to(&self, from: &OperatingPoint, to: &OperatingPoint) -> bool {
        from == to || self.admitted != Some(*to)
    }

    /// A job that was started by somebody else may have a point that is not on its menu. It may keep
    /// that.
    pub(super) fn admit(&mut self, point: OperatingPoint) {
        let place = self
            .points
            .partition_point(|other| (other.nodes, other.cap) < (point.nodes, point.cap));
        let is_new = |other: &OperatingPoint| {
            (other.nodes, other.cap, other.power) != (point.nodes, point.cap, point.power)
        };
        if self.points.get(place).is_none_or(is_new) {
            let time = point.time.max(OperatingPoint::SHORTEST);
            self.points.insert(place, point);
            self.is_capped_in_vain.insert(place, false);
            self.longest = self.longest.max(point.time);
            self.admitted = Some(point);
            self.speed_ups.insert(place, self.slowest.secs_f64() / time.secs_f64());
        }
    }

    /// The same, of a job that somebody starts at a point.
    pub(super) fn with(self: &Arc<Self>, point: OperatingPoint) -> Arc<Self> {
        if self.points.contains(&point) {
            return self.clone();
        }
        let mut options = Options::clone(self);
        options.admit(point);
        Arc::new(options)
    }

    /// The point on this many nodes under this cap.
    fn at(&self, nodes: u32, cap: Watts) -> Option<OperatingPoint> {
        let found =
            self.points.binary_search_by_key(&(nodes, cap), |point| (point.nodes, point.cap));
        found.ok().map(|place| self.points[place])
    }
}

/// A job that runs.
pub(super) struct Running {
    pub(super) options: Arc<Options>,
    /// What it may be offered, if somebody has worked that out for some point.
    offered: Option<Offered>,
    pub(super) point: OperatingPoint,
    pub(super) work: Work,
    /// Up to when `work` was reckoned; in the future while it moves.
    since: Instant,
    /// When its number of nodes changed last.
    moved: Option<Instant>,
    /// When it started, as far as is known.
    pub(super) began: Instant,
    /// Whether it stands still until somebody resumes it.
    pub(super) is_suspended: bool,
}

impl Running {
    pub(super) fn new(options: Arc<Options>, point: OperatingPoint, now: Instant) -> Self {
        Running {
            options,
            offered: None,
            point,
            work: Work::ALL,
            since: now,
            moved: None,
            began: now,
            is_suspended: false,
        }
    }

    /// One that somebody else started.
    pub(super) fn adopted(options: Arc<Options>, adopted: &Adopted, is_suspended: bool) -> Self {
        let Adopted { point, work, since, moved, .. } = *adopted;
        let offered = None;
        Running { options, offered, point, work, since, moved, began: since, is_suspended }
    }

    /// Has it worked out what may be offered at the point it has, where that is not known.
    pub(super) fn work_out_offers(
        &mut self,
        work_out: impl FnOnce(&Options, OperatingPoint) -> Offered,
    ) {
        if self.offered().is_none() {
            self.offered = Some(work_out(&self.options, self.point));
        }
    }

    /// What it may be offered at the point it has, if that was worked out.
    pub(super) fn offered(&self) -> Option<&Offered> {
        self.offered.as_ref().filter(|offered| offered.is_for(&self.point))
    }

    /// Time has passed.
    pub(super) fn advance(&mut self, now: Instant) {
        if !self.is_suspended {
            self.work = self.work.after(now.since(self.since), self.point.time);
        }
        self.since = self.since.max(now);
    }

    /// Whether its number of nodes may change now.
    pub(super) fn may_move(&self, now: Instant, guard: Span) -> bool {
        is_over(self.moved, guard, now) && self.since <= now
    }

    /// How long it takes from now on at the point it has.
    pub(super) fn left(&self) -> Span {
        self.work.time(self.point.time)
    }

    /// The same at another point on as many nodes, beside what is left of a move.
    pub(super) fn left_at(&self, point: &OperatingPoint, now: Instant) -> Span {
        self.since.since(now) + self.work.time(point.time)
    }

    /// Whether it may be worth moving to a point, if that takes so long at least and so much is [left](Running::left)
    /// here: one who expands ends sooner, and one who shrinks does not end before the move is over.
    pub(super) fn pays(&self, to: &OperatingPoint, pause: Span, left: Span) -> bool {
        match to.nodes > self.point.nodes {
            true => pause + self.work.time(to.time) < left,
            false => pause < left,
        }
    }

    /// Takes over what it really holds, if that is not what was decided.
    pub(super) fn correct(&mut self, nodes: u32, power: Watts) {
        if (self.point.nodes, self.point.power) != (nodes, power) {
            let is_it = |point: &&OperatingPoint| (point.nodes, point.power) == (nodes, power);
            self.point = self.options.points.iter().find(is_it).copied().unwrap_or(self.point);
        }
    }

    /// The longest it may still take if it does not move again.
    pub(super) fn longest(&self, now: Instant) -> Span {
        self.since.since(now) + self.work.time(self.options.longest)
    }

    /// One of two steps to another point: nothing becomes more in the first, nothing less in the
    /// second. The point to go to, for how long the job stands still, and how long it then holds
    /// what it has; `None` if there is nothing to be done.
    pub(super) fn step(
        &mut self,
        phase: Phase,
        to: OperatingPoint,
        now: Instant,
        pause: Span,
    ) -> Option<(OperatingPoint, Span, Span)> {
        let (from, nodes, cap) = (self.point, to.nodes, to.cap);
        let is_less = nodes <= from.nodes && cap <= from.cap;
        let is_mixed = !is_less && (nodes < from.nodes || cap < from.cap);
        let target = match phase {
            Phase::Lower if is_less => to,
            // Halfway: fewer nodes under the old cap, or as many under the new one.
            Phase::Lower if is_mixed => {
                let halfway = self.options.at(nodes.min(from.nodes), cap.min(from.cap));
                halfway.filter(|point| self.options.leads_to(&from, point))?
            }
            Phase::Lower => return None,
            Phase::Raise => to,
        };
        if target == from {
            return None;
        }
        // Nodes change in one of the steps alone: in the first if they become fewer.
        let moves = target.nodes != from.nodes;
        let pause = if moves { pause } else { Span::ZERO };
        self.moved = if moves { Some(now) } else { self.moved };
        self.point = target;
        self.since = self.since.max(now) + pause;
        let left = self.since.since(now) + self.work.time(target.time);
        Some((target, pause, left))
    }
}
