//! A machine like Cab, the Sandy Bridge cluster of the RMAP paper (Patki and others, HPDC 2015),
//! synthetic: the paper's measurements were never published.
//!
//! 64 nodes of two sockets with eight cores each run eight applications on 8 to 64 nodes, 8 to 16
//! cores in each, under caps of 51 to 115 W a socket. `processor` says how fast a socket runs
//! under a cap and what it draws, `application` how long an application takes at that speed, and
//! `noise` blurs both as measuring does. No step is more than addition, multiplication, division
//! and rounding, so a seed gives the same table to the last digit on every platform.
//!
//! The applications' figures are chosen so that the table as a whole meets what *is* published:
//!
//! - a socket's draw on 64 nodes × 16 cores without a cap is 66.1 W (NSC) to 92.6 W (SP-MZ), and
//!   81.0 W on average over the eight;
//! - the best configuration under 6500, 8000, 10 000, 12 000 and 14 720 W is at most 34.2 % faster
//!   than worst-case provisioning, which runs 16 cores on as many nodes as could draw 230 W each,
//!   and 11.4 % on average over applications and bounds.
//!
//! Both are held over seeds, not for each: noise moves single cells by a few per cent. Nothing else
//! was looked at, least of all what a scheduler makes of the table. The published facts leave room,
//! so there are two presets that both meet them. They differ in one thing, the network under the
//! two codes that do not scale: see [`Preset`].
//!
//! Choices made here:
//!
//! - "Faster by 34.2 %" is a time shorter by that share.
//! - Cores are spread evenly over both sockets, and all sockets are alike.
//! - RAPL holds a capped socket a little below its cap, as it does in measurements.
//! - The draw is the sockets' alone: memory modules, network and fans are not in it.

use std::fmt;
use std::str::FromStr;

use rand::SeedableRng;
use rand_pcg::Pcg64Dxsm;

use super::{Configuration, Origin, Profile, Row};
use crate::units::{Span, Watts};

mod application;
mod noise;
mod processor;
#[cfg(test)]
mod tests;

use application::{Application, Network};
use noise::Noise;

/// The nodes of the machine.
pub(crate) const NODES: u32 = 64;
/// The sockets of a node.
const SOCKETS: u32 = 2;
/// The cores of a node.
pub(crate) const CORES: u32 = 16;
/// The caps a socket was run under, in watts. The last is no cap at all: no socket can draw more.
pub(crate) const CAPS: [u32; 5] = [51, 65, 80, 95, 115];

/// Which Cab-like machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preset {
    /// An all-to-all exchange is limited by the data it moves: codes that do not scale gain little
    /// on more than about 28 nodes (12 to 14 % on 64, where codes that scale gain 40 %), and lose
    /// nothing.
    Cab,
    /// An all-to-all exchange moves less data and pays for every peer as well: codes that do not
    /// scale are faster on few nodes, fastest on about 28, and slower on more (by a fifth on 64).
    CabContended,
}

/// There is no machine of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown machine '{0}'; valid machines: cab, cab-contended")]
pub struct UnknownPreset(String);

impl Preset {
    /// Every preset there is.
    pub const ALL: [Preset; 2] = [Preset::Cab, Preset::CabContended];

    fn network(self) -> Network {
        match self {
            Preset::Cab => Network { volume_seconds: 285.0, peer_seconds: 0.0 },
            Preset::CabContended => Network { volume_seconds: 120.0, peer_seconds: 3.4 },
        }
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        let named = Preset::ALL.into_iter().find(|preset| preset.to_string() == text);
        named.ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Preset::Cab => "cab",
            Preset::CabContended => "cab-contended",
        })
    }
}

/// The profiles of the eight applications, each on all 375 configurations. Presets with the same
/// seed have the same noise.
pub fn generate(preset: Preset, seed: u64) -> Vec<Profile> {
    // A stream of its own, so that a workload drawn from the same seed knows nothing of it.
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed ^ 0x6361_625f_7461_626c);
    let applications = Application::all(preset.network());
    let measure = |application: &Application| Profile {
        application: application.name.to_owned(),
        rows: configurations()
            .map(|configuration| measured(application, configuration, Noise::draw(&mut numbers)))
            .collect(),
    };
    applications.iter().map(measure).collect()
}

/// How an application runs, before it is measured, on all cores of its nodes.
#[derive(Clone, Copy, Debug)]
pub struct ClosedForm(Application);

impl ClosedForm {
    /// The cap of a socket that is as good as none, in watts.
    pub(crate) const HIGHEST: f64 = CAPS[CAPS.len() - 1] as f64;

    /// The applications of a preset.
    pub fn all(preset: Preset) -> [ClosedForm; 8] {
        Application::all(preset.network()).map(ClosedForm)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// The seconds that a run takes, and the watts that a socket draws, on this many nodes, also between
    /// whole ones, under a cap of each socket in watts.
    pub fn run(&self, nodes: f64, cap: f64) -> (f64, f64) {
        let run = self.0.run_on(nodes, CORES, cap);
        (run.seconds, run.socket_watts)
    }
}

/// Every configuration that was run, ascending.
pub fn configurations() -> impl Iterator<Item = Configuration> {
    let nodes = (8..=NODES).step_by(4);
    let shapes = nodes.flat_map(|nodes| (8..=CORES).step_by(2).map(move |cores| (nodes, cores)));
    shapes.flat_map(|(nodes, cores)| {
        CAPS.map(|cap| Configuration { nodes, cores, cap: Watts::from_watts(cap) })
    })
}

/// One run of an application, as it was measured.
fn measured(application: &Application, configuration: Configuration, noise: Noise) -> Row {
    let run = application.run(&configuration);
    let sockets = SOCKETS * configuration.nodes;
    let most = configuration.cap * sockets;
    let drawn = run.socket_watts * f64::from(sockets) * noise.power;
    Row {
        configuration,
        time: Span::from_millis((run.seconds * noise.time * 1000.0).round() as u64),
        // The hardware enforces the cap, so no measurement of a run is above it.
        power: Watts::from_f64_rounded_up(drawn).map_or(most, |power| power.min(most)),
        origin: Origin::Measured,
    }
}
