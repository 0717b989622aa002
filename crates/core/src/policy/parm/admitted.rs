//! What of the program's choice can be had below feeds, and where jobs ask for certain nodes: both are tried on a copy of the
//! ledger.
//!
//! There all running jobs first go down to the least that they may have; then those start that the program chose, each at its
//! point or the fastest of those that draw less; and then those that run get what the program chose for them, or the most that
//! is granted.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::jobs::{Options, Running};
use super::{Least, Parm};
use crate::ledger::Ledger;
use crate::model::OperatingPoint;
use crate::policy::{Decision, View};
use crate::units::JobId;

/// How often the program is solved in a turn: each time without those who found no nodes.
const MOST_TRIES: u32 = 4;

/// What can be had.
pub(super) struct Admitted {
    /// The running jobs that are to change, in order, and then those that start.
    wanted: Vec<(JobId, OperatingPoint)>,
    /// Those that were to start and cannot.
    refused: Vec<JobId>,
}

/// The points that a running job may be given, the one that draws least first.
fn points<'a>(running: &'a Running, options: &'a Options) -> Vec<&'a OperatingPoint> {
    let may = |point: &&OperatingPoint| {
        point.nodes == running.point.nodes
            && options.leads_to(&running.point, point)
            && options.may_have_cap(&running.point, point)
    };
    let mut points: Vec<&OperatingPoint> = options.points.iter().filter(may).collect();
    points.sort_by_key(|point| (point.power, Reverse(point.time)));
    points
}

/// The point of a running job, or else the fastest of those that draw less, as far as the ledger grants it.
fn grant(
    ledger: &mut Ledger,
    view: &View<'_>,
    job: JobId,
    running: &Running,
    target: &OperatingPoint,
) -> OperatingPoint {
    let points = points(running, &running.options);
    let less = points.iter().rev().filter(|point| point.power < target.power);
    let tried = std::iter::once(target).chain(less.copied());
    let mut granted =
        tried.filter(|point| ledger.change(job, point, running.left_at(point, view.now)).is_ok());
    granted.next().copied().unwrap_or(running.point)
}

/// The point of a job that starts; or else the fastest of those that draw less, or of all others.
fn start(
    ledger: &mut Ledger,
    job: JobId,
    options: &Options,
    target: &OperatingPoint,
) -> Option<OperatingPoint> {
    let others = options.thrifty.iter().map(|place| &options.points[*place as usize]);
    let mut others: Vec<&OperatingPoint> = others.filter(|point| *point != target).collect();
    others.sort_by_key(|point| (point.power >= target.power, point.time, point.power));
    let mut tried = std::iter::once(target).chain(others);
    tried.find(|point| ledger.start(job, point).is_ok()).copied()
}

impl Parm {
    /// What of this choice can be had.
    pub(super) fn admitted(&self, view: &View<'_>, wanted: &[(JobId, OperatingPoint)]) -> Admitted {
        let mut ledger = view.ledger.clone();
        let targets: BTreeMap<JobId, OperatingPoint> = wanted.iter().copied().collect();
        for (job, running) in self.going() {
            if let Some(least) = points(running, &running.options).first() {
                _ = ledger.change(*job, least, running.left_at(least, view.now));
            }
        }
        let (mut starts, mut refused) = (Vec::new(), Vec::new());
        for (job, target) in wanted.iter().filter(|(job, _)| !self.running.contains_key(job)) {
            let granted =
                self.options.get(job).and_then(|options| start(&mut ledger, *job, options, target));
            match granted {
                Some(point) => starts.push((*job, point)),
                None => refused.push(*job),
            }
        }
        let mut wanted = Vec::new();
        for (job, running) in self.going() {
            let target = targets.get(job).unwrap_or(&running.point);
            let point = grant(&mut ledger, view, *job, running, target);
            if point != running.point {
                wanted.push((*job, point));
            }
        }
        wanted.append(&mut starts);
        Admitted { wanted, refused }
    }

    /// Whether all of this choice can be had.
    pub(super) fn is_had(&self, view: &View<'_>, wanted: &[(JobId, OperatingPoint)]) -> bool {
        let stays = |(job, point): &(JobId, OperatingPoint)| {
            self.running.get(job).is_some_and(|running| running.point == *point)
        };
        let Admitted { wanted: admitted, refused } = self.admitted(view, wanted);
        refused.is_empty()
            && admitted.iter().all(|one| wanted.contains(one))
            && wanted.iter().all(|one| stays(one) || admitted.contains(one))
    }

    /// Does what the program says, as far as it can be done.
    pub(super) fn go_on_within(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut wanted = Vec::new();
        for _ in 0..MOST_TRIES {
            let chosen = self.solve(view, Least::Any).unwrap_or_else(|| self.hold_back(view));
            let admitted = self.admitted(view, &chosen);
            wanted = admitted.wanted;
            if admitted.refused.is_empty() {
                break;
            }
            self.left_out.extend(admitted.refused);
        }
        self.left_out.clear();
        self.carry_out(view, &wanted, BTreeMap::new(), decisions);
    }
}
