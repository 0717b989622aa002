//! The configurations of an application, sorted so that the fastest within what there is is found at
//! once.

use super::{Beliefs, ProfiledError};
use crate::job::NodeRange;
use crate::machine::Machine;
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::Watts;

/// The configurations of one application.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// The rows, in the order of their configurations.
    pub(super) rows: Vec<Row>,
    /// Every number of nodes there is a row for, ascending.
    pub(super) nodes: Vec<u32>,
    /// For each of them: the rows on at most so many nodes that none of the others beats, by
    /// rising power and falling time.
    pub(super) fronts: Vec<Vec<Row>>,
    /// For each of them: the row with most cores and the highest cap.
    pub(super) packed: Vec<Row>,
    /// Whether any of the times is only predicted.
    pub(super) is_predicted: bool,
}

impl Table {
    /// Of its rows those on some numbers of nodes; `None` if there are none.
    pub(super) fn within(&self, range: NodeRange) -> Option<Self> {
        let within = |row: &&Row| range.contains(row.configuration.nodes);
        let rows: Vec<Row> = self.rows.iter().filter(within).copied().collect();
        let profile = Profile { application: String::new(), rows };
        // One margin for all, whatever the range.
        (!profile.rows.is_empty())
            .then(|| Table { is_predicted: self.is_predicted, ..Table::new(profile) })
    }

    pub(super) fn new(profile: Profile) -> Self {
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
    pub(super) fn place_of(&self, nodes: u32) -> usize {
        self.nodes.partition_point(|count| *count < nodes).min(self.nodes.len() - 1)
    }

    pub(super) fn fastest(&self, nodes: u32, power: Watts) -> Option<&Row> {
        let place = self.nodes.partition_point(|count| *count <= nodes).checked_sub(1)?;
        let front = &self.fronts[place];
        front.partition_point(|row| row.power <= power).checked_sub(1).map(|row| &front[row])
    }

    pub(super) fn row(&self, configuration: &Configuration) -> Option<&Row> {
        let found = self.rows.binary_search_by_key(configuration, |row| row.configuration);
        found.ok().map(|row| &self.rows[row])
    }
}

/// The rows of a profile that a machine can run.
pub(super) fn table(
    machine: &Machine,
    profile: &Profile,
    beliefs: &Beliefs,
) -> Result<Table, ProfiledError> {
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
