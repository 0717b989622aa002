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
//! [`Profile`]: crate::profile::Profile

use crate::job::Job;
use crate::machine::Machine;
use crate::model::{Footprint, Menu, Model, OperatingPoint, Outcome, Rung, Stretch, Way};
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{JobId, Share, Span, Watts};

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

/// Why profiles cannot be used for a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfiledError {
    /// There are no profiles.
    #[error("there are no profiles; import or generate some (busbar profile)")]
    None,
    /// A profile has no rows.
    #[error("the profile of '{0}' has no rows on as few nodes as the machine has")]
    Empty(String),
    /// A profile is of nodes with more cores.
    #[error(
        "the profile of '{application}' has rows with {cores} cores a node, and a node of the \
         machine has {processors}; is it another machine (--machine)?"
    )]
    Cores {
        /// Which profile.
        application: String,
        /// Cores of one of its rows.
        cores: u32,
        /// Processors of a node of the machine.
        processors: u32,
    },
    /// A profile is of nodes that draw more.
    #[error(
        "the profile of '{application}' has rows under {cap} a socket, and a node of the machine \
         has {sockets} and draws {node_power} at most; is it another machine (--machine)?"
    )]
    Cap {
        /// Which profile.
        application: String,
        /// The cap of one of its rows.
        cap: Watts,
        /// Sockets of a node of the machine.
        sockets: u32,
        /// What a node draws at most.
        node_power: Watts,
    },
    /// A job does not say which application it runs.
    #[error(
        "job {job} does not say which application it runs; its executable number must be one \
         that 'busbar profile list' shows"
    )]
    NoApplication {
        /// The job's number.
        job: u64,
    },
    /// A job's application has no profile.
    #[error(
        "job {job} runs application {application}, which has no profile; there are {profiles}: \
         see 'busbar profile list'"
    )]
    Unknown {
        /// The job's number.
        job: u64,
        /// The application's.
        application: u32,
        /// How many profiles there are.
        profiles: usize,
    },
    /// What is believed of a configuration cannot be held against what is true.
    #[error(
        "nobody knows what is true of '{application}' on {configuration}, which is believed to be \
         possible; measure it, or do not believe in it"
    )]
    NoTruth {
        /// Which application.
        application: String,
        /// Which configuration.
        configuration: Configuration,
    },
}

/// Applications with profiles.
#[derive(Clone, Debug)]
pub struct Profiled {
    /// By the application's number, which counts from 1: those that jobs run.
    tables: Vec<Option<Table>>,
    sockets: u32,
    beliefs: Beliefs,
    rungs: [Rung; 1],
}

/// The configurations of one application.
#[derive(Clone, Debug)]
struct Table {
    /// By configuration.
    rows: Vec<Row>,
    /// Every number of nodes there is a row for, ascending.
    nodes: Vec<u32>,
    /// For each of them: the rows on at most so many nodes that none of the others beats, by
    /// rising power and falling time.
    fronts: Vec<Vec<Row>>,
    /// For each of them: the row with most cores and the highest cap.
    packed: Vec<Row>,
    /// Whether any of the times is only predicted.
    is_predicted: bool,
}

impl Table {
    fn new(profile: Profile) -> Self {
        let packed: Vec<Row> = profile.unthrottled().copied().collect();
        let nodes: Vec<u32> = packed.iter().map(|row| row.configuration.nodes).collect();
        // What is beaten on fewer nodes is beaten on more.
        let same = |one: &Row, other: &Row| one.configuration.nodes == other.configuration.nodes;
        let mut front = Profile { application: String::new(), rows: Vec::new() };
        let fronts = profile.rows.chunk_by(same).map(|rows| {
            front.rows.extend(rows);
            front.rows = front.best();
            front.rows.clone()
        });
        Table {
            fronts: fronts.collect(),
            is_predicted: profile.rows.iter().any(|row| row.origin == Origin::Predicted),
            nodes,
            packed,
            rows: profile.rows,
        }
    }

    /// The place of the number of nodes a request means: the next larger one, or the largest.
    fn place_of(&self, nodes: u32) -> usize {
        self.nodes.partition_point(|count| *count < nodes).min(self.nodes.len() - 1)
    }

    fn fastest(&self, nodes: u32, power: Watts) -> Option<&Row> {
        let place = self.nodes.partition_point(|count| *count <= nodes).checked_sub(1)?;
        let front = &self.fronts[place];
        front.partition_point(|row| row.power <= power).checked_sub(1).map(|row| &front[row])
    }

    fn row(&self, configuration: &Configuration) -> Option<&Row> {
        let found = self.rows.binary_search_by_key(configuration, |row| row.configuration);
        found.ok().map(|row| &self.rows[row])
    }
}

/// The rows of a profile that a machine can run.
fn table(machine: &Machine, profile: &Profile, beliefs: &Beliefs) -> Result<Table, ProfiledError> {
    let mut profile = profile.clone();
    profile.rows.retain(|row| row.configuration.nodes <= machine.nodes);
    let application = || profile.application.clone();
    let sockets = machine.sockets_per_node;
    for row in &profile.rows {
        let Configuration { cores, cap, .. } = row.configuration;
        let processors = machine.processors_per_node;
        if cores > processors {
            return Err(ProfiledError::Cores { application: application(), cores, processors });
        }
        // What a node draws is only known if somebody said so.
        let node_power = match machine.power_is_assumed {
            true => Watts::LARGEST,
            false => machine.node_power,
        };
        if cap.checked_mul(sockets).is_none_or(|most| most > node_power) {
            let application = application();
            return Err(ProfiledError::Cap { application, cap, sockets, node_power });
        }
    }
    if profile.rows.is_empty() {
        return Err(ProfiledError::Empty(profile.application));
    }
    if let Some(node_power) = beliefs.node_power {
        for row in &mut profile.rows {
            let power = node_power.checked_mul(row.configuration.nodes);
            row.power = power.unwrap_or(Watts::LARGEST).min(Watts::LARGEST);
        }
    }
    Ok(Table::new(profile))
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
        let least = tables
            .iter()
            .flatten()
            .flat_map(|table| &table.rows)
            .map(|row| row.power.milliwatts() / u64::from(row.configuration.nodes));
        let node_power = Watts::from_milliwatts(least.min().unwrap_or(1).max(1));
        let rungs = [Rung { node_power, stretch: Stretch::NONE }];
        Ok(Profiled { tables, sockets: machine.sockets_per_node, beliefs, rungs })
    }

    /// Whether another table, which is to be the truth, has every configuration that this one has;
    /// `profiles` are those both were made from.
    pub fn check_truth(&self, truth: &Profiled, profiles: &[Profile]) -> Result<(), ProfiledError> {
        for ((believed, truth), profile) in self.tables.iter().zip(&truth.tables).zip(profiles) {
            let (Some(believed), Some(truth)) = (believed, truth) else { continue };
            let unknown = believed.rows.iter().find(|row| truth.row(&row.configuration).is_none());
            if let Some(Row { configuration, .. }) = unknown {
                let application = profile.application.clone();
                let configuration = *configuration;
                return Err(ProfiledError::NoTruth { application, configuration });
            }
        }
        Ok(())
    }

    /// The least that any job of this workload could draw, and the application that does.
    pub fn least_power(&self, jobs: &[Job]) -> Option<(Watts, u32)> {
        let least = |job: &Job| {
            let application = job.application.map_or(1, |application| application.0.get());
            (self.thriftiest(JobId(0), job).point.power, application)
        };
        jobs.iter().map(least).min()
    }

    /// The table of a job's application; every job has one, or there would be no model.
    #[inline]
    fn table(&self, job: &Job) -> &Table {
        let place = job.application.map_or(0, |application| application.0.get() as usize - 1);
        let table = self.tables.get(place).and_then(Option::as_ref);
        table.expect("a job of the workload the model was made for")
    }

    /// A row as a job takes it: its limit is what its user asked for, or longer if it is believed
    /// to take longer.
    #[inline]
    fn way(&self, job: &Job, row: &Row) -> Way {
        let Configuration { nodes, cores, cap } = row.configuration;
        // One margin for the whole table: what is faster must not have the longer limit.
        let limit = match self.table(job).is_predicted {
            false => row.time,
            true => {
                let millis = u128::from(row.time.millis());
                let stretched = millis * u128::from(self.beliefs.margin.millionths());
                Span::from_millis(stretched.div_ceil(1_000_000) as u64).max(row.time)
            }
        };
        let point = OperatingPoint {
            nodes,
            cores,
            cap: cap * self.sockets,
            time: limit.max(job.requested).max(OperatingPoint::SHORTEST),
            power: row.power,
        };
        Way { point, believed: row.time }
    }

    #[inline]
    fn row_of(&self, job: &Job, point: &OperatingPoint) -> Option<&Row> {
        let cap = Watts::from_milliwatts(point.cap.milliwatts() / u64::from(self.sockets));
        self.table(job).row(&Configuration { nodes: point.nodes, cores: point.cores, cap })
    }
}

impl Model for Profiled {
    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        let table = self.table(job);
        self.way(job, &table.packed[table.place_of(job.nodes)]).point
    }

    fn menu(&self, id: JobId, job: &Job) -> Menu {
        let nominal = self.nominal(id, job);
        let points = self.table(job).rows.iter().map(|row| self.way(job, row).point);
        Menu::new(nominal, points.filter(|point| *point != nominal))
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
        Footprint { nodes: table.nodes[0], time: shortest }
    }

    fn may_enter(&self, id: JobId, job: &Job, is_fed: &dyn Fn(&OperatingPoint) -> bool) -> bool {
        is_fed(&self.thriftiest(id, job).point)
    }

    fn fastest(&self, _id: JobId, job: &Job, nodes: u32, power: Watts) -> Option<Way> {
        self.table(job).fastest(nodes, power).map(|row| self.way(job, row))
    }

    fn fastest_of(
        &self,
        _id: JobId,
        job: &Job,
        accepts: &dyn Fn(&Way) -> bool,
    ) -> Option<OperatingPoint> {
        let ways = self.table(job).rows.iter().map(|row| self.way(job, row));
        let accepted = ways.filter(accepts);
        accepted.min_by_key(|way| (way.believed, way.point.power)).map(|way| way.point)
    }

    fn thriftiest(&self, _id: JobId, job: &Job) -> Way {
        let table = self.table(job);
        let first = table.fronts.last().and_then(|front| front.first());
        self.way(job, first.unwrap_or(&table.rows[0]))
    }

    fn unthrottled(&self, _id: JobId, job: &Job, power: Watts) -> Option<Way> {
        let table = self.table(job);
        let asked = &table.packed[..=table.place_of(job.nodes)];
        asked.iter().rev().find(|row| row.power <= power).map(|row| self.way(job, row))
    }

    fn offers(&self, _id: JobId, job: &Job, point: &OperatingPoint) -> bool {
        self.row_of(job, point).is_some_and(|row| self.way(job, row).point == *point)
    }
}
