//! What a running job may be offered, which changes only with the point it has.

use smallvec::SmallVec;

use super::{Options, Running};
use crate::model::OperatingPoint;
use crate::model::pass::Resizing;
use crate::policy::View;
use crate::policy::parm::Window;
use crate::units::{JobId, Span, Watts};

/// What a job that runs at some point may be offered, whatever time it is. Jobs keep their points for many turns, and
/// what others take to move is worked out once.
pub(in crate::policy::parm) struct Offered {
    /// The point for which this holds.
    point: OperatingPoint,
    /// The places among its options on the nodes it has, ...
    staying: SmallVec<[u32; 8]>,
    /// ... the least nodes and the least power among them, ...
    least: (u32, Watts),
    /// ... and by how long that would delay others.
    delay: Span,
    /// All places, each with the delay it means for jobs that change with it; nothing if its nodes may never change.
    moving: Vec<(u32, Span)>,
}

impl Offered {
    /// What is offered to a job that runs at this point.
    pub(in crate::policy::parm) fn to(
        view: &View<'_>,
        job: JobId,
        options: &Options,
        point: OperatingPoint,
        window: Window,
        may_ever_move: bool,
    ) -> Self {
        let is_full = window == Window::All;
        let may = |place: usize, to: &OperatingPoint| {
            (is_full || options.is_needed(&point, place))
                && options.leads_to(&point, to)
                && options.may_have_cap(&point, to)
        };
        let delay_to = |nodes: u32| {
            Resizing::delay([view.model.moving_time(job, view.job(job), point.nodes, nodes)])
        };
        let places = || options.points.iter().enumerate().filter(|(place, to)| may(*place, to));
        let staying = places().filter(|(_, to)| to.nodes == point.nodes);
        let staying: SmallVec<[u32; 8]> = staying.map(|(place, _)| place as u32).collect();
        let mut moving = Vec::new();
        if may_ever_move {
            // Points on the same nodes stand side by side.
            let mut known: Option<(u32, Span)> = None;
            for (place, to) in places() {
                let (_, delay) = match known.filter(|(nodes, _)| *nodes == to.nodes) {
                    Some(same) => same,
                    None => *known.insert((to.nodes, delay_to(to.nodes))),
                };
                moving.push((place as u32, delay));
            }
        }
        Offered {
            point,
            least: least(options, &staying),
            delay: if staying.is_empty() { Span::ZERO } else { delay_to(point.nodes) },
            staying,
            moving,
        }
    }

    /// Whether this is what a job is offered that runs at a point.
    pub(in crate::policy::parm) fn is_for(&self, point: &OperatingPoint) -> bool {
        self.point == *point
    }

    /// The places that are offered to a job that stays where it is.
    pub(in crate::policy::parm) fn staying(&self) -> &[u32] {
        &self.staying
    }

    /// The least nodes and the least power among them.
    pub(in crate::policy::parm) fn least(&self) -> (u32, Watts) {
        self.least
    }

    /// The delay that comes of one who stays.
    pub(in crate::policy::parm) fn delay(&self) -> Span {
        self.delay
    }

    /// The places that are offered to a job that may move and has got so far, each with the delay that comes of it: on as
    /// many nodes as it has, and on others if that may be worth it.
    pub(in crate::policy::parm) fn moving<'a>(
        &'a self,
        options: &'a Options,
        running: &'a Running,
    ) -> impl Iterator<Item = (u32, Span)> + 'a {
        let left = running.left();
        self.moving.iter().copied().filter(move |(place, delay)| {
            let to = &options.points[*place as usize];
            to.nodes == self.point.nodes || running.pays(to, *delay, left)
        })
    }
}

/// The least nodes and the least power among these options.
pub(in crate::policy::parm) fn least(options: &Options, places: &[u32]) -> (u32, Watts) {
    let points = || places.iter().map(|place| options.points[*place as usize]);
    let nodes = points().map(|point| point.nodes).min().unwrap_or(0);
    let power = points().map(|point| point.power).min().unwrap_or(Watts::ZERO);
    (nodes, power)
}
