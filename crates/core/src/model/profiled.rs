//! Moldable jobs: applications whose profiles say how they run on other nodes, cores and caps.
//!
//! A job runs the application its user names, and that takes as long as the application's
//! [`Profile`] says for the configuration it gets, whatever the log says of its run time. The
//! nominal configuration has the nodes the user asks for (or the next larger number there is a
//! row for), all cores, the highest cap.
//!
//! Configurations that another one beats in time and power on no more nodes are put aside once, so
//! that 'the fastest within these watts and these nodes' is a search in a sorted list.
//!
//! A job whose user says on how many nodes it can run has a table of its own, of the rows in that range.
//!
//! [`Profile`]: crate::profile::Profile

use std::collections::HashMap;

use crate::job::{Job, NodeRange};
use crate::machine::Machine;
use crate::model::{
    Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch, TimedPoint, TimedPoints,
};
use crate::profile::{Configuration, Profile, Row};
use crate::units::{JobId, Share, Span, Watts};

mod error;
mod table;
#[cfg(test)]
mod tests;

pub use error::ProfiledError;
use table::{Table, table};

/// How rows of profiles are taken by a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beliefs {
    /// A job whose application has times that are only predicted gets so much of its time as its
    /// limit.
    pub margin: Share,
    /// Power is set aside by the node, whatever the profile says.
    pub node_power: Option<Watts>,
}

/// Limits a third longer than predicted times, and power as the profile has it.
impl Default for Beliefs {
    fn default() -> Self {
        Beliefs { margin: Share::percent(133), node_power: None }
    }
}

/// Applications with profiles.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// By the application's number, which counts from 1: those that jobs run.
    tables: Vec<Option<Table>>,
    /// The same for jobs that can run on some numbers of nodes alone.
    ranged: HashMap<(usize, NodeRange), Table>,
    sockets: u32,
    beliefs: Beliefs,
    rungs: [Rung; 1],
}

impl Profiled {
    /// The jobs of a workload on a machine, each running the application of its number.
    pub fn new(
        machine: &Machine,
        profiles: &[Profile],
        jobs: &[Job],
        beliefs: Beliefs,
    ) -> Result<Self, ProfiledError> {
        if profiles.is_empty() {
            return Err(ProfiledError::None);
        }
        let mut is_run = vec![false; profiles.len()];
        for job in jobs {
            let application = job.application.map(|application| application.0.get());
            let application =
                application.ok_or(ProfiledError::NoApplication { job: job.number })?;
            let place = application as usize - 1;
            if profiles.get(place).is_none_or(|profile| profile.rows.is_empty()) {
                let (job, profiles) = (job.number, profiles.len());
                return Err(ProfiledError::Unknown { job, application, profiles });
            }
            is_run[place] = true;
        }
        let tables: Vec<Option<Table>> = profiles
            .iter()
            .zip(is_run)
            .map(|(profile, is_run)| match is_run {
                true => table(machine, profile, &beliefs).map(Some),
                // A profile that nobody uses may be of another machine.
                false => Ok(None),
            })
            .collect::<Result<_, _>>()?;
        let mut model = Profiled::of_tables(machine, tables, beliefs);
        for job in jobs {
            model.knows(job)?;
            model.learn(JobId(0), job);
        }
        Ok(model)
    }

    fn of_tables(machine: &Machine, tables: Vec<Option<Table>>, beliefs: Beliefs) -> Self {
        let least = tables
            .iter()
            .flatten()
            .flat_map(|table| &table.rows)
            .map(|row| row.power.milliwatts() / u64::from(row.configuration.nodes));
        let node_power = Watts::from_milliwatts(least.min().unwrap_or(1).max(1));
        let rungs = [Rung::alike(node_power, Stretch::NONE)];
        let (sockets, ranged) = (machine.sockets_per_node, HashMap::new());
        Profiled { tables, ranged, sockets, beliefs, rungs }
    }

    /// Whether a job can be asked about: its application has a profile, with rows on numbers of nodes
    /// that it can run on.
    fn knows(&self, job: &Job) -> Result<(), ProfiledError> {
        let Some(application) = job.application.map(|application| application.0.get()) else {
            return Err(ProfiledError::NoApplication { job: job.number });
        };
        let Some(Some(table)) = self.tables.get(application as usize - 1) else {
            let profiles = self.tables.iter().flatten().count();
            return Err(ProfiledError::Unknown { job: job.number, application, profiles });
        };
        match job.terms.nodes {
            Some(range) if !table.nodes.iter().any(|nodes| range.contains(*nodes)) => {
                Err(ProfiledError::Range { job: job.number, application, range })
            }
            _ => Ok(()),
        }
    }

    /// The table of a job's application; every job has one, or there would be no model.
    #[inline]
    fn table(&self, job: &Job) -> &Table {
        let place = job.application.map_or(0, |application| application.0.get() as usize - 1);
        if let Some(table) = job.terms.nodes.and_then(|range| self.ranged.get(&(place, range))) {
            return table;
        }
        let table = self.tables.get(place).and_then(Option::as_ref);
        table.expect("a job of the workload the model was made for")
    }

    /// A row as a job takes it: its limit is what its user asked for, or longer if it is believed
    /// to take longer.
    #[inline]
    fn way(&self, job: &Job, row: &Row) -> TimedPoint {
        let Configuration { nodes, cores, cap } = row.configuration;
        // One margin for the whole table: what is faster must not have the longer limit.
        let limit = match self.table(job).is_predicted {
            false => row.time,
            true => self.beliefs.margin.of_span(row.time).max(row.time),
        };
        let point = OperatingPoint {
            nodes,
            cores,
            cap: cap * self.sockets,
            time: limit.max(job.requested).max(OperatingPoint::SHORTEST),
            power: row.power,
        };
        TimedPoint { point, believed: row.time }
    }

    #[inline]
    fn row_of(&self, job: &Job, point: &OperatingPoint) -> Option<&Row> {
        let cap = Watts::from_milliwatts(point.cap.milliwatts() / u64::from(self.sockets));
        self.table(job).row(&Configuration { nodes: point.nodes, cores: point.cores, cap })
    }
}

impl Model for Profiled {
    /// Works out what a range of nodes leaves. All else is known by the application.
    fn learn(&mut self, _id: JobId, job: &Job) {
        let place = job.application.map_or(0, |application| application.0.get() as usize - 1);
        if let (Some(range), Some(Some(table))) = (job.terms.nodes, self.tables.get(place))
            && !self.ranged.contains_key(&(place, range))
        {
            self.ranged.extend(table.within(range).map(|table| ((place, range), table)));
        }
    }

    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        let table = self.table(job);
        self.way(job, &table.packed[table.place_of(job.nodes)]).point
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let nominal = self.nominal(id, job);
        let points = self.table(job).rows.iter().map(|row| self.way(job, row).point);
        Menu::new(nominal, points.filter(|point| *point != nominal))
    }

    fn ways(&self, id: JobId, job: &Job) -> TimedPoints {
        let table = self.table(job);
        let nominal = self.way(job, &table.packed[table.place_of(job.nodes)]);
        debug_assert_eq!(nominal.point, self.nominal(id, job));
        let others = table.rows.iter().map(|row| self.way(job, row));
        std::iter::once(nominal).chain(others.filter(|way| way.point != nominal.point)).collect()
    }

    fn outcome(&self, _id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        match self.row_of(job, point) {
            Some(row) => Outcome { run_time: row.time, power: row.power },
            // A configuration nobody ever measured: what is believed is all there is.
            None => Outcome { run_time, power: point.power },
        }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }

    fn footprint(&self, _id: JobId, job: &Job) -> Footprint {
        let table = self.table(job);
        let shortest = table.fronts.last().and_then(|front| front.last());
        let shortest = shortest.map_or(Span::ZERO, |row| self.way(job, row).point.time);
        Footprint { nodes: table.nodes[0], time: shortest, power: Watts::ZERO }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.thriftiest(id, job).point)
    }

    fn fastest(&self, _id: JobId, job: &Job, nodes: u32, power: Watts) -> Option<TimedPoint> {
        self.table(job).fastest(nodes, power).map(|row| self.way(job, row))
    }

    fn fastest_of(
        &self,
        _id: JobId,
        job: &Job,
        accepts: &dyn Fn(&TimedPoint) -> bool,
    ) -> Option<OperatingPoint> {
        let ways = self.table(job).rows.iter().map(|row| self.way(job, row));
        let accepted = ways.filter(accepts);
        accepted.min_by_key(|way| (way.believed, way.point.power)).map(|way| way.point)
    }

    fn thriftiest(&self, _id: JobId, job: &Job) -> TimedPoint {
        let table = self.table(job);
        let first = table.fronts.last().and_then(|front| front.first());
        self.way(job, first.unwrap_or(&table.rows[0]))
    }

    fn unthrottled(&self, _id: JobId, job: &Job, power: Watts) -> Option<TimedPoint> {
        let table = self.table(job);
        let asked = &table.packed[..=table.place_of(job.nodes)];
        asked.iter().rev().find(|row| row.power <= power).map(|row| self.way(job, row))
    }

    fn offers(&self, _id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        self.row_of(job, point).is_some_and(|row| self.way(job, row).point == *point)
    }
}
