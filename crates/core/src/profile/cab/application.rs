//! The eight applications: how long they take.
//!
//! A run is work of three kinds, one after the other:
//!
//! - **computing**, shared among all cores of all nodes, in proportion to frequency;
//! - **memory**, shared among the nodes and blind to frequency. The cores of a node share its
//!   memory: few cannot keep it busy, many get in each other's way;
//! - **waiting**: for what one core does alone (which depends on frequency), for data from other
//!   nodes, and, in codes that do not scale, for an exchange of all with all.

use super::processor::{self, Occupation, TURBO_GHZ, Work};
use super::{CORES, Configuration, NODES, SOCKETS};

/// The cores that use a node's memory best.
const MEMORY_CORES: f64 = 12.0;

/// What an exchange of all with all takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Network {
    /// Seconds to move the data, if all of it has to move. It is the same data on any number of
    /// nodes, and all of it goes through the middle of the network.
    pub(super) volume_seconds: f64,
    /// Seconds for each other node that has to be dealt with.
    pub(super) peer_seconds: f64,
}

impl Network {
    /// An application that exchanges nothing.
    const UNUSED: Network = Network { volume_seconds: 0.0, peer_seconds: 0.0 };

    /// Seconds of all exchanges among this many nodes. A node keeps its own part of the data.
    fn seconds(self, nodes: f64) -> f64 {
        let peers = nodes - 1.0;
        self.volume_seconds * peers / nodes + self.peer_seconds * peers
    }
}

/// What an application needs.
#[derive(Clone, Copy, Debug)]
struct Needs {
    /// Computing, in core · GHz · seconds.
    computing: f64,
    /// Memory, in node · seconds, with the best number of cores.
    memory: f64,
    /// What one core does while all others wait, in GHz · seconds.
    serial: f64,
    /// Waiting for data from neighbours, in seconds.
    neighbours: f64,
    /// Exchanges of all with all.
    network: Network,
}

/// The seconds of a run, by kind.
#[derive(Clone, Copy, Debug)]
struct Phases {
    computing: f64,
    memory: f64,
    waiting: f64,
}

impl Phases {
    fn total(self) -> f64 {
        self.computing + self.memory + self.waiting
    }

    fn occupation(self) -> Occupation {
        let total = self.total();
        Occupation { stalled: self.memory / total, waiting: self.waiting / total }
    }
}

impl Needs {
    /// A run at a frequency.
    fn phases(&self, nodes: f64, cores: u32, ghz: f64) -> Phases {
        let cores = f64::from(cores);
        Phases {
            computing: self.computing / (nodes * cores * ghz),
            memory: self.memory / nodes * crowding(cores),
            waiting: self.serial / ghz + self.neighbours + self.network.seconds(nodes),
        }
    }
}

/// How much longer memory takes with this many cores than with the best number: the more cores, the
/// more requests are under way, and the longer each of them queues.
fn crowding(cores: f64) -> f64 {
    (MEMORY_CORES / cores + cores / MEMORY_CORES) / 2.0
}

/// One application.
#[derive(Clone, Copy, Debug)]
pub(super) struct Application {
    pub(super) name: &'static str,
    needs: Needs,
    /// Watts of a computing core for each GHz · V².
    heat: f64,
}

/// What a run takes and draws, before it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) seconds: f64,
    pub(super) socket_watts: f64,
}

impl Application {
    /// An application that makes a socket draw so much on the whole machine without a cap.
    fn new(name: &'static str, full_watts: f64, needs: Needs) -> Self {
        let occupation = needs.phases(f64::from(NODES), CORES, TURBO_GHZ).occupation();
        let cores = f64::from(CORES) / f64::from(SOCKETS);
        Application { name, needs, heat: processor::heat(full_watts, cores, TURBO_GHZ, occupation) }
    }

    /// The eight applications. Those that do not scale exchange all with all, over this network.
    ///
    /// The draws of NSC and SP-MZ on the whole machine and the mean of all are published; the
    /// others are chosen so that the loops of SC and NSC are equally hot, and those of SM and NSM.
    pub(super) fn all(network: Network) -> [Application; 8] {
        let needs = |computing, memory, serial, neighbours| Needs {
            computing,
            memory,
            serial,
            neighbours,
            network: Network::UNUSED,
        };
        [
            Application::new("SPhot", 80.4, needs(460e3, 400.0, 450.0, 25.0)),
            Application::new("BT-MZ", 87.6, needs(270e3, 1700.0, 510.0, 100.0)),
            Application::new("SP-MZ", 92.6, needs(175e3, 2800.0, 390.0, 85.0)),
            Application::new("LU-MZ", 86.8, needs(210e3, 2000.0, 480.0, 120.0)),
            Application::new("SC", 75.4, needs(440e3, 0.0, 340.0, 25.0)),
            Application::new("NSC", 66.1, Needs { network, ..needs(124e3, 0.0, 50.0, 0.0) }),
            Application::new("SM", 82.3, needs(104e3, 7500.0, 100.0, 98.0)),
            Application::new("NSM", 76.8, Needs { network, ..needs(50e3, 2200.0, 50.0, 0.0) }),
        ]
    }

    /// A run in a configuration.
    pub(super) fn run(&self, configuration: &Configuration) -> Run {
        let &Configuration { nodes, cores, cap } = configuration;
        self.run_on(f64::from(nodes), cores, cap.as_f64())
    }

    /// The same for any number of nodes, also between whole ones, and any cap of a socket in watts.
    pub(super) fn run_on(&self, nodes: f64, cores: u32, cap: f64) -> Run {
        let work = Work { cores: f64::from(cores) / f64::from(SOCKETS), heat: self.heat };
        let phases = |ghz| self.needs.phases(nodes, cores, ghz);
        let watts = |ghz| processor::watts(work, ghz, phases(ghz).occupation());
        let (speed, socket_watts) = processor::settle(cores, cap, watts);
        Run { seconds: phases(speed.ghz).total() / speed.duty, socket_watts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::cab::Preset;

    #[test]
    fn phases_worked_out_by_hand() {
        let needs = Needs {
            computing: 6400.0,
            memory: 100.0,
            serial: 30.0,
            neighbours: 5.0,
            network: Network { volume_seconds: 10.0, peer_seconds: 0.5 },
        };
        let phases = needs.phases(10.0, 16, 2.0);
        // 6400 / (10·16·2); 100/10 · (12/16 + 16/12)/2; 30/2 + 5 + 10·9/10 + 0.5·9.
        assert!((phases.computing - 20.0).abs() < 1e-9, "{phases:?}");
        assert!((phases.memory - 10.416_666_667).abs() < 1e-9, "{phases:?}");
        assert!((phases.waiting - 33.5).abs() < 1e-9, "{phases:?}");
    }

    #[test]
    fn memory_is_used_best_by_twelve_cores() {
        assert_eq!(crowding(12.0), 1.0);
        assert!(crowding(10.0) < crowding(8.0) && crowding(14.0) < crowding(16.0));
    }

    #[test]
    fn loops_of_a_kind_are_equally_hot() {
        for preset in Preset::ALL {
            let applications = Application::all(preset.network());
            let heat = |name| applications.iter().find(|each| each.name == name).unwrap().heat;
            for (one, other) in [("SC", "NSC"), ("SM", "NSM")] {
                let ratio = heat(one) / heat(other);
                assert!((ratio - 1.0).abs() < 0.03, "{preset}, {one} and {other}: {ratio}");
            }
            // At 3 GHz, where GHz · V² is 4, a computing core draws 6 to 14 W.
            for application in &applications {
                assert!((1.5..3.5).contains(&application.heat), "{application:?}");
            }
        }
    }
}
