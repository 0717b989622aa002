//! Daemon and agents are killed, stopped and cut off again and again while limits rise and fall.
//!
//! As long as the limit stays, what the nodes may draw is within it at every look, whatever else happens. When it
//! falls, it is within the new one after a while. In the end every job has run once, and nodes have the caps that the
//! daemon says.

use std::collections::BTreeMap;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use busbar::live::wire::Request;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;
use rustix::process::{Pid, Signal, kill_process};

use super::{Cluster, NODES, kills_of_storms};
use crate::patience::wait_for;

/// A limit that all nodes can keep while two of them are out of reach at their highest cap.
const LOW: u64 = 1700;
const HIGH: u64 = 2200;

/// Something that is to be undone later.
#[derive(Debug)]
enum Trouble {
    /// An agent was killed.
    Killed(usize),
    /// An agent was stopped.
    Stopped(usize),
    /// An agent is out of reach.
    CutOff(usize),
}

impl Trouble {
    fn node(&self) -> usize {
        let (Trouble::Killed(node) | Trouble::Stopped(node) | Trouble::CutOff(node)) = self;
        *node
    }
}

struct Storm {
    cluster: Cluster,
    numbers: Pcg64Dxsm,
    limit: u64,
    troubles: Vec<Trouble>,
    submitted: Vec<u64>,
    looks: u64,
    kills: u32,
}

impl Storm {
    /// Looks at all nodes.
    fn look(&mut self) {
        let Some(drawn) = self.cluster.drawn() else { return };
        self.looks += 1;
        let (limit, nodes, troubles) = (self.limit, self.cluster.nodes(), &self.troubles);
        assert!(drawn <= limit, "{drawn} W of {limit} W\n{nodes:?}\n{troubles:?}");
    }

    /// Keeps the queue filled.
    fn fill(&mut self) {
        let status = self.cluster.served.status();
        for _ in status.waiting..8 {
            let nodes = self.numbers.random_range(1..=4);
            let hundredths = self.numbers.random_range(10..100);
            let script = format!(
                "echo $BUSBAR_JOB begins >> $RECORD; sleep 0.{hundredths}; echo $BUSBAR_JOB ends >> $RECORD"
            );
            self.submitted.push(self.cluster.submit(nodes, &script));
        }
    }

    /// An agent that is in no trouble, unless too many are.
    fn victim(&mut self) -> Option<usize> {
        let node = self.numbers.random_range(0..NODES);
        let is_free = self.troubles.iter().all(|trouble| trouble.node() != node);
        (is_free && self.troubles.len() < 2).then_some(node)
    }

    fn signal(&self, node: usize, signal: Signal) {
        let agent = self.cluster.agents[node].as_ref().expect("an agent").id();
        kill_process(Pid::from_raw(agent as i32).unwrap(), signal).unwrap();
    }

    fn mend(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Killed(node) => self.cluster.begin_agent(node),
            Trouble::Stopped(node) => self.signal(node, Signal::CONT),
            Trouble::CutOff(node) => self.cluster.relays[node].mend(),
        }
    }

    fn restart(&mut self) {
        self.cluster.served.kill();
        self.kills += 1;
        self.cluster.served.begin_and_answer();
    }

    fn set_limit(&mut self, limit: u64) {
        self.cluster.served.ask(&Request::Budget { set: Some(format!("{limit}W")) });
        if limit < self.limit {
            // What was decided before is done when nothing is under way.
            wait_for("that nodes have less", || {
                (self.cluster.served.status().unconfirmed == 0).then_some(())?;
                self.cluster.drawn().filter(|drawn| *drawn <= limit)
            });
        }
        self.limit = limit;
    }

    /// Does some harm, or undoes it.
    fn disturb(&mut self) {
        match self.numbers.random_range(0..8) {
            0 => self.restart(),
            1 | 2 => {
                if let Some(node) = self.victim() {
                    self.cluster.kill_agent(node);
                    self.kills += 1;
                    self.troubles.push(Trouble::Killed(node));
                }
            }
            3 => {
                if let Some(node) = self.victim() {
                    self.signal(node, Signal::STOP);
                    self.troubles.push(Trouble::Stopped(node));
                }
            }
            4 => {
                if let Some(node) = self.victim() {
                    self.cluster.relays[node].cut();
                    self.troubles.push(Trouble::CutOff(node));
                }
            }
            5 => {
                let limit = if self.limit == HIGH { LOW } else { HIGH };
                self.set_limit(limit);
            }
            _ => {
                if !self.troubles.is_empty() {
                    let one = self.numbers.random_range(0..self.troubles.len());
                    let trouble = self.troubles.remove(one);
                    self.mend(trouble);
                }
            }
        }
    }

    /// All troubles end, and all jobs. Every job has run once.
    fn calm(&mut self) {
        for trouble in std::mem::take(&mut self.troubles) {
            self.mend(trouble);
        }
        let caps = self.cluster.settled();
        assert_eq!(caps.len(), NODES);
        self.cluster.served.drain();
        let record = fs::read_to_string(self.cluster.served.record()).unwrap();
        let mut lines: BTreeMap<(u64, &str), u32> = BTreeMap::new();
        for line in record.lines() {
            let (job, word) = line.split_once(' ').unwrap();
            *lines.entry((job.parse().unwrap(), word)).or_default() += 1;
        }
        let once =
            self.submitted.iter().flat_map(|job| [((*job, "begins"), 1), ((*job, "ends"), 1)]);
        assert_eq!(lines, once.collect());
        wait_for("nodes at their lowest cap", || {
            self.cluster.nodes().iter().all(|node| *node == (80, false)).then_some(())
        });
    }
}

fn storm(policy: &str, seed: u64) {
    let mut cluster = Cluster::with_relays(policy);
    cluster.served.begin_and_answer();
    let numbers = Pcg64Dxsm::seed_from_u64(seed);
    let mut storm = Storm {
        cluster,
        numbers,
        limit: HIGH,
        troubles: Vec::new(),
        submitted: Vec::new(),
        looks: 0,
        kills: 0,
    };
    let kills = kills_of_storms();
    while storm.kills < kills {
        storm.fill();
        for _ in 0..4 {
            storm.look();
            sleep(Duration::from_millis(20));
        }
        storm.disturb();
    }
    storm.calm();
    let (jobs, looks) = (storm.submitted.len(), storm.looks);
    println!("{policy}: {jobs} jobs, {kills} kills, within the limit at {looks} looks");
}

#[test]
fn easy_power_in_a_storm() {
    storm("easy-power", 1);
}

#[test]
fn parm_in_a_storm() {
    storm("parm", 2);
}
