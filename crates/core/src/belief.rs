//! Beliefs: what a policy expects of jobs.
//!
//! A belief is made of the same stuff as the [world](crate::world): a [`Law`] for each application. They
//! need not be the laws that hold. From them, the sizes and the caps that a policy may choose from
//! ([`Freedoms`]), and what is set aside for a job ([`Holds`]), comes the `Sheet` of each job: all that it
//! may be given. Jobs of the same application that ask for the same have one sheet.

pub mod fit;
mod joined;
mod named;
mod sheet;
#[cfg(test)]
mod tests;

pub(crate) use joined::Joined;
pub(crate) use named::OnNamed;
pub(crate) use sheet::Sheet;
use sheet::{Entry, Size};

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::freedom::{Freedom, Freedoms};
use crate::job::{Job, NodeRange, Tolerance};
use crate::model::elastic::counts;
use crate::model::pass::Resizing;
use crate::model::{
    Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch, TimedPoint, TimedPoints, Within,
};
use crate::units::{JobId, Share, Span, Watts};
use crate::world::law::Table;
use crate::world::{Ask, Assignment, Law, Node, Pace, Shape};

/// What is set aside for a node of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Holds {
    /// What it may draw at most: the rest of the node and the whole cap. Whatever the job is, it never
    /// draws more.
    #[default]
    WholeCaps,
    /// What the belief says that it draws.
    Draw,
    /// So much for a whole node, whatever runs there.
    Node(Watts),
}

/// The rule that admits or rejects jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Every job that can be fed somehow.
    #[default]
    AnyWay,
    /// Those that can be fed as they were asked for.
    AsAsked,
}

/// What is believed of all jobs alike.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// By application: how it is believed to run.
    pub(crate) laws: Vec<Arc<dyn Law>>,
    /// The power that is reserved for a job.
    pub(crate) holds: Holds,
    /// How much of the believed time a job gets as its limit, unless it runs as it was asked for.
    pub(crate) margin: Share,
    /// The rule that admits or rejects jobs.
    pub(crate) admission: Admission,
    /// What is known of what single jobs draw.
    pub(crate) draws: Draws,
}

/// What is known of what single jobs draw, beyond the laws: by job, what each of its nodes draws as it is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Draws {
    /// Nothing.
    #[default]
    ByLaw,
    /// What is predicted. The laws say how it changes with caps and sizes.
    Predicted(Arc<[Option<Watts>]>),
    /// What it will not exceed, or hardly ever. Under a cap it is no more; in other sizes a job may draw all that its
    /// caps let it.
    AtMost(Arc<[Option<Watts>]>),
}

impl Draws {
    /// What a node of a job draws as it is asked for, if more is known than the laws.
    fn of(&self, job: JobId) -> Option<Watts> {
        match self {
            Draws::ByLaw => None,
            Draws::Predicted(known) | Draws::AtMost(known) => {
                known.get(job.index()).copied().flatten()
            }
        }
    }
}

/// What there is to choose from.
#[derive(Clone, Debug)]
pub struct Choices {
    /// The nodes.
    pub node: Node,
    /// The caps of the capped part of a node, ascending; the last is the highest.
    pub levels: Vec<Watts>,
    /// How many nodes there are.
    pub nodes: u32,
    /// The cores of a node.
    pub cores: u32,
    /// What may be chosen.
    pub freedoms: Freedoms,
    /// By application: the configurations it was run in, where that is all that is known. No other sizes can
    /// be chosen then.
    pub tables: Arc<[Arc<Table>]>,
}

/// A job without a sheet.
const UNKNOWN: u32 = u32::MAX;

/// What jobs have in common that have the same sheet: application, nodes asked for, those they can
/// run on, what they put up with, and what their nodes are expected to draw.
type Key = (usize, u32, Option<NodeRange>, Shape, Option<Watts>);

/// What a policy expects of jobs.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    knowledge: Arc<Knowledge>,
    choices: Choices,
    assigned: Assignment,
    sheets: Vec<Sheet>,
    places: HashMap<Key, u32>,
    /// By job; [`UNKNOWN`] for those in between that nobody spoke of.
    sheet_of: Vec<u32>,
    rungs: Vec<Rung>,
    /// Whether jobs draw unlike amounts of power for a node.
    draws_differ: bool,
}

impl Belief {
    /// What is believed of these jobs, which run the applications they are assigned.
    pub(crate) fn new(
        knowledge: Arc<Knowledge>,
        choices: Choices,
        assigned: Assignment,
        jobs: &[Job],
    ) -> Self {
        let mut belief = Belief {
            knowledge,
            choices,
            assigned,
            sheets: Vec::new(),
            places: HashMap::new(),
            sheet_of: Vec::with_capacity(jobs.len()),
            rungs: Vec::new(),
            draws_differ: false,
        };
        for (id, job) in (0..).map(JobId).zip(jobs) {
            let place = belief.place_of(id, job);
            belief.sheet_of.push(place);
        }
        belief.renew_rungs();
        belief
    }

    /// The sheet of a job.
    #[inline]
    fn sheet(&self, id: JobId) -> &Sheet {
        let place = self.sheet_of.get(id.index()).copied().unwrap_or(UNKNOWN);
        self.sheets.get(place as usize).expect("a job that was known or learned of")
    }

    /// Where the sheet of a job is; it is made if there is none like it.
    fn place_of(&mut self, id: JobId, job: &Job) -> u32 {
        let application = self.assigned.application(id);
        let expected = self.knowledge.draws.of(id);
        let key = (application, job.nodes, job.terms.nodes, self.assigned.shape(id), expected);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let place = self.sheets.len() as u32;
        self.sheets.push(self.made(id, application, job));
        self.places.insert(key, place);
        place
    }

    fn made(&self, id: JobId, application: usize, job: &Job) -> Sheet {
        let law = &self.knowledge.laws[application];
        let ask = Ask { nodes: job.nodes, beta: self.assigned.beta(id) };
        let freedoms = self.choices.freedoms & self.assigned.shape(id).allows();
        let sizes = self.sizes(application, job, freedoms.has(Freedom::Sizes));
        let levels = match freedoms.has(Freedom::Caps) {
            true => &self.choices.levels[..],
            false => &self.choices.levels[self.choices.levels.len() - 1..],
        };
        let sheet = Sheet::new(&**law, ask, &sizes, levels, &self.choices, self.knowledge.holds);
        let Some(expected) = self.knowledge.draws.of(id) else { return sheet };
        let added = expected.saturating_sub(self.choices.node.idle);
        match self.knowledge.draws {
            Draws::AtMost(_) => sheet.drawing_at_most(added, job.nodes),
            _ => sheet.drawing(added),
        }
    }

    /// The sizes that a job may have: the nodes it asks for and all cores, if it may have no others.
    fn sizes(&self, application: usize, job: &Job, may_choose: bool) -> Vec<Size> {
        let table = self.choices.tables.get(application);
        let nodes: Vec<u32> = match (may_choose, table) {
            (false, _) => vec![job.nodes],
            (true, None) => {
                let asked = NonZeroU32::new(job.nodes).unwrap_or(NonZeroU32::MIN);
                counts(asked, self.choices.nodes, job.terms.nodes)
            }
            (true, Some(table)) => {
                let mut nodes: Vec<u32> = table.nodes().to_vec();
                nodes.push(job.nodes);
                let range = job.terms.nodes;
                let is_wanted = |nodes: u32| range.is_none_or(|range| range.contains(nodes));
                nodes.retain(|nodes| *nodes <= self.choices.nodes && is_wanted(*nodes));
                nodes.sort_unstable();
                nodes.dedup();
                if nodes.is_empty() { vec![job.nodes] } else { nodes }
            }
        };
        let all = |nodes: u32| Size { nodes, cores: self.choices.cores, is_full: true };
        let Some(table) = table else { return nodes.into_iter().map(all).collect() };
        let minds = may_choose && self.knowledge.laws[application].minds_cores();
        let of_nodes = |nodes: u32| {
            let cores = table.cores(nodes);
            let cores = if minds { cores } else { cores.into_iter().take(1).collect() };
            let size = move |(place, cores)| Size { nodes, cores, is_full: place == 0 };
            cores.into_iter().enumerate().map(size)
        };
        nodes.into_iter().flat_map(of_nodes).collect()
    }

    /// There are new sheets.
    fn renew_rungs(&mut self) {
        self.rungs = self.rungs();
        self.draws_differ = self.rungs.iter().any(|rung| rung.part > Share::percent(0));
    }

    /// Bounds for each place of the menus. Where sizes may be chosen, menus have little in common.
    fn rungs(&self) -> Vec<Rung> {
        // Where nodes draw alike as they are asked for, the number of nodes says it all.
        let nominal = |sheet: &Sheet| sheet.entries()[sheet.nominal()].node_power;
        let is_alike = self.sheets.windows(2).all(|pair| nominal(&pair[0]) == nominal(&pair[1]));
        let mut entries = self.sheets.iter().flat_map(Sheet::entries);
        let is_shortest = self.knowledge.margin <= Share::WHOLE
            && entries.all(|entry| matches!(entry.pace, Pace::Times(_)));
        let rung = |(sheet, entry): (&Sheet, &Entry)| Rung {
            node_power: entry.node_power.max(Watts::from_milliwatts(1)),
            stretch: entry.stretch(),
            part: if is_alike { Share::percent(0) } else { sheet.part(entry) },
            is_shortest,
        };
        let lesser = |one: Rung, other: Rung| Rung {
            node_power: one.node_power.min(other.node_power),
            stretch: one.stretch.min(other.stretch),
            part: one.part.min(other.part),
            is_shortest,
        };
        let least = |place: usize| {
            let entries = self.sheets.iter();
            let entries = entries.filter_map(|sheet| Some((sheet, sheet.entries().get(place)?)));
            entries.map(rung).reduce(lesser)
        };
        let longest = match self.choices.freedoms.has(Freedom::Sizes) {
            true => 0,
            false => self.sheets.iter().map(|sheet| sheet.entries().len()).max().unwrap_or(0),
        };
        let rungs: Vec<Rung> = (0..longest).filter_map(least).collect();
        match rungs.is_empty() {
            false => rungs,
            true => {
                let of = |sheet| move |entry| rung((sheet, entry));
                let all =
                    self.sheets.iter().flat_map(|sheet| sheet.entries().iter().map(of(sheet)));
                let least = all.reduce(lesser);
                let least = least.unwrap_or(Rung::alike(Watts::from_milliwatts(1), Stretch::NONE));
                vec![Rung { stretch: Stretch::NONE, ..least }]
            }
        }
    }

    #[inline]
    fn way(&self, job: &Job, sheet: &Sheet, place: usize) -> TimedPoint {
        let entry = &sheet.entries()[place];
        let believed = entry.pace.of(job.requested);
        let limit = match entry.is_as_asked {
            true => job.requested,
            false => self.knowledge.margin.of_span(believed),
        };
        let point = OperatingPoint {
            nodes: entry.nodes,
            cores: entry.cores,
            cap: entry.cap,
            time: limit.max(OperatingPoint::SHORTEST),
            power: entry.power(),
        };
        TimedPoint { point, believed }
    }

    #[inline]
    fn point(&self, job: &Job, sheet: &Sheet, place: usize) -> OperatingPoint {
        self.way(job, sheet, place).point
    }

    /// The shortest limit of all ways to run a job. That of the fastest may be longer: where limits have a margin above
    /// what is believed, a job as it was asked for has none.
    fn shortest(&self, job: &Job, sheet: &Sheet) -> Span {
        let limits = (0..sheet.entries().len()).map(|place| self.point(job, sheet, place).time);
        limits.min().unwrap_or(job.requested)
    }
}

impl Model for Belief {
    fn nominal(&self, id: JobId, job: &Job) -> OperatingPoint {
        let sheet = self.sheet(id);
        self.point(job, sheet, sheet.nominal())
    }

    fn learn(&mut self, id: JobId, job: &Job) {
        if id.index() >= self.sheet_of.len() {
            self.sheet_of.resize(id.index() + 1, UNKNOWN);
        }
        if self.sheet_of[id.index()] == UNKNOWN {
            let known = self.sheets.len();
            self.assigned.learn(id, job);
            self.sheet_of[id.index()] = self.place_of(id, job);
            if self.sheets.len() > known {
                self.renew_rungs();
            }
        }
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let sheet = self.sheet(id);
        let others = (0..sheet.entries().len()).filter(|place| *place != sheet.nominal());
        let others = others.map(|place| self.point(job, sheet, place));
        Menu::new(self.point(job, sheet, sheet.nominal()), others)
    }

    fn ways(&self, id: JobId, job: &Job) -> TimedPoints {
        let sheet = self.sheet(id);
        let others = (0..sheet.entries().len()).filter(|place| *place != sheet.nominal());
        let places = std::iter::once(sheet.nominal()).chain(others);
        places.map(|place| self.way(job, sheet, place)).collect()
    }

    /// What would happen if the belief were true.
    fn outcome(&self, id: JobId, _job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let sheet = self.sheet(id);
        let entry = sheet.find(point).map(|place| &sheet.entries()[place]);
        let run_time = entry.map_or(run_time, |entry| entry.pace.of(run_time));
        Outcome { run_time, power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn fewest_nodes(&self, id: JobId, _job: &Job) -> u32 {
        self.sheet(id).fewest()
    }

    fn draws_differ(&self) -> bool {
        self.draws_differ
    }

    fn footprint(&self, id: JobId, job: &Job) -> Footprint {
        let sheet = self.sheet(id);
        Footprint {
            nodes: sheet.fewest(),
            time: self.shortest(job, sheet),
            power: match self.draws_differ {
                true => sheet.entries()[sheet.nominal()].power(),
                false => Watts::ZERO,
            },
        }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.nominal(id, job))
            || self.knowledge.admission == Admission::AnyWay
                && self.menu(id, job).iter().any(is_fed)
    }

    fn fastest(&self, id: JobId, job: &Job, nodes: u32, power: Watts) -> Option<TimedPoint> {
        let sheet = self.sheet(id);
        sheet.fastest(nodes, power).map(|place| self.way(job, sheet, place))
    }

    fn fastest_of(
        &self,
        id: JobId,
        job: &Job,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        let sheet = self.sheet(id);
        let ways = (0..sheet.entries().len()).map(|place| self.way(job, sheet, place));
        let accepted = ways.filter(accepts);
        accepted.min_by_key(|way| (way.believed, way.point.power)).map(|way| way.point)
    }

    fn fastest_within(
        &self,
        id: JobId,
        job: &Job,
        within: &Within,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        let sheet = self.sheet(id);
        let is_fast =
            |place: &usize| sheet.entries()[*place].pace.of(job.requested) <= within.believed;
        let places = sheet.within(within.nodes, within.power).filter(is_fast);
        let accepted = places.map(|place| self.way(job, sheet, place)).filter(accepts);
        accepted.min_by_key(|way| (way.believed, way.point.power)).map(|way| way.point)
    }

    fn thriftiest(&self, id: JobId, job: &Job) -> TimedPoint {
        let sheet = self.sheet(id);
        self.way(job, sheet, sheet.thriftiest())
    }

    fn unthrottled(&self, id: JobId, job: &Job, power: Watts) -> Option<TimedPoint> {
        let sheet = self.sheet(id);
        sheet.unthrottled(power).map(|place| self.way(job, sheet, place))
    }

    fn alike(&self, id: JobId, _job: &Job) -> u32 {
        self.sheet_of.get(id.index()).copied().unwrap_or(UNKNOWN)
    }

    fn longest_request(
        &self,
        id: JobId,
        _job: &Job,
        way: &TimedPoint,
        limit: Span,
    ) -> Option<Span> {
        let sheet = self.sheet(id);
        let entry = &sheet.entries()[sheet.find(&way.point)?];
        if limit < OperatingPoint::SHORTEST {
            return None;
        }
        if entry.is_as_asked {
            return Some(limit);
        }
        match (entry.pace, self.knowledge.margin.whole(limit)) {
            (Pace::Times(factor), believed) => Some(factor.undone(believed)),
            (Pace::Fixed(time), believed) => (time <= believed).then_some(Span::FOREVER),
        }
    }

    fn least_request(
        &self,
        id: JobId,
        _job: &Job,
        way: &TimedPoint,
        tolerance: Tolerance,
    ) -> Option<Span> {
        let sheet = self.sheet(id);
        let entry = &sheet.entries()[sheet.find(&way.point)?];
        match entry.pace {
            // Whoever asks for more gets as much more; who is told apart by rounding alone is let pass here.
            Pace::Times(factor) => {
                let month = Span::from_secs(30 * 86_400);
                tolerance.accepts(factor.of(month), month).then_some(Span::ZERO)
            }
            Pace::Fixed(time) => Some(tolerance.least_request(time)),
        }
    }

    fn believed(&self, id: JobId, job: &Job, point: &OperatingPoint) -> Span {
        let sheet = self.sheet(id);
        let entry = sheet.find(point).map(|place| &sheet.entries()[place]);
        entry.map_or(point.time, |entry| entry.pace.of(job.requested))
    }

    fn freedoms(&self, id: JobId, _job: &Job) -> Freedoms {
        self.choices.freedoms & self.assigned.shape(id).allows()
    }

    fn moving_time(&self, _id: JobId, job: &Job, from: u32, to: u32) -> Span {
        Resizing::ASSUMED.time_of_job(job.nodes.min(self.choices.nodes), from, to)
    }

    fn offers(&self, id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        let sheet = self.sheet(id);
        // Most jobs run as they were asked for.
        if self.point(job, sheet, sheet.nominal()) == *point {
            return true;
        }
        let place = sheet.find(point);
        place.is_some_and(|place| self.point(job, sheet, place) == *point)
    }
}
