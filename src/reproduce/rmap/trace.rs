//! The paper's four kinds of traces: thirty jobs, sparse arrivals.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64Dxsm;

use crate::job::{ApplicationId, Job};
use crate::profile::Profile;
use crate::profile::cab;
use crate::units::{Instant, Span};
use crate::workload::Workload;

/// Jobs in a trace.
pub(super) const JOBS: usize = 30;

/// Mean seconds between arrivals, before they are stretched: about half of the jobs of a random
/// trace then do not wait on a machine that is fed well, which is all the paper says of its load.
const GAP: f64 = 450.0;

/// What jobs a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// Jobs of any size, most of which arrive early.
    RandomEarly,
    /// Jobs of any size.
    Random,
    /// Jobs of at least 40 nodes.
    Large,
    /// Jobs of at most 24 nodes.
    Small,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [Kind::RandomEarly, Kind::Random, Kind::Large, Kind::Small];

    fn nodes(self) -> std::ops::RangeInclusive<u32> {
        match self {
            Kind::RandomEarly | Kind::Random => 8..=64,
            Kind::Large => 40..=64,
            Kind::Small => 8..=24,
        }
    }
}

/// Draws a trace. A job asks for the time its application takes on the nodes it asks for,
/// unthrottled: what a user knows who has run it before.
pub(super) fn draw(kind: Kind, stretch: f64, profiles: &[Profile], seed: u64) -> Workload {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x726d_6170_7472_6163);
    let mut sizes: Vec<u32> = cab::configurations().map(|way| way.nodes).collect();
    sizes.retain(|nodes| kind.nodes().contains(nodes));
    sizes.sort_unstable();
    sizes.dedup();
    let mut at = 0.0;
    let mut jobs = Vec::with_capacity(JOBS);
    for number in 1..=JOBS as u64 {
        let application = numbers.random_range(0..profiles.len());
        let nodes = sizes[numbers.random_range(0..sizes.len())];
        let rows = &profiles[application].rows;
        let packed = rows.iter().rfind(|row| row.configuration.nodes == nodes);
        let time = packed.map_or(Span::ZERO, |row| row.time);
        let job = Job {
            number,
            submit: Instant::from_millis((at * 1000.0) as u64),
            requested: time,
            nodes,
            processors: nodes,
            user: None,
            application: std::num::NonZeroU32::new(application as u32 + 1).map(ApplicationId),
        };
        jobs.push((job, time));
        at += gap(kind, number, &mut numbers) * stretch;
    }
    Workload::new(format!("{kind:?}"), jobs)
}

fn gap(kind: Kind, number: u64, numbers: &mut impl Rng) -> f64 {
    let gap: f64 = Exp1.sample(numbers);
    let is_early = kind == Kind::RandomEarly && number <= JOBS as u64 / 2;
    GAP * gap * if is_early { 0.5 } else { 1.0 }
}
