//! The processors of each node, and pinning of jobs to them.
//!
//! If there are more nodes than entries in the list, the list is repeated. Without a list nothing is
//! pinned. Missing processors are left out and reported; a job with none left may use all.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::host::process::Process;
use crate::job::Allotment;

/// How often new threads are searched for.
const ROUNDS: u32 = 50;

/// The processors of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    of_nodes: Vec<Vec<u32>>,
    /// All processors that this program may use.
    all: Vec<u32>,
}

impl Cpus {
    /// The existing ones of these processors, with messages about the others.
    pub(super) fn new(of_nodes: Vec<Vec<u32>>) -> io::Result<(Self, Vec<String>)> {
        Ok(Cpus::among(of_nodes, usable_cpus()?))
    }

    fn among(mut of_nodes: Vec<Vec<u32>>, all: Vec<u32>) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        for (node, cpus) in of_nodes.iter_mut().enumerate() {
            let missing: Vec<u32> = cpus.iter().copied().filter(|cpu| !all.contains(cpu)).collect();
            cpus.retain(|cpu| all.contains(cpu));
            if !missing.is_empty() {
                let left = match cpus.as_slice() {
                    [] => "jobs that have no other node may use all processors".to_owned(),
                    left => format!("it has {}", list(left)),
                };
                let missing = list(&missing);
                notices.push(format!(
                    "node {node} is to have processor {missing}, which does not exist or is not \
                available to this program; {left}"
                ));
            }
        }
        (Cpus { of_nodes, all }, notices)
    }

    /// The processors of a job in order; none if it is not pinned.
    pub(super) fn of(&self, allotment: &Allotment) -> Vec<u32> {
        if self.of_nodes.is_empty() {
            return Vec::new();
        }
        let nodes = allotment.nodes.iter().map(|(node, _)| *node);
        let of_node = |node: u32| {
            let all = self.of_nodes[node as usize % self.of_nodes.len()].as_slice();
            // A node may have more processors than are listed for it.
            match allotment.place_on(node).filter(|_| !all.is_empty()) {
                None => all.to_vec(),
                Some(place) => {
                    place.cores.iter().map(|core| all[*core as usize % all.len()]).collect()
                }
            }
        };
        let cpus: BTreeSet<u32> = nodes.flat_map(of_node).collect();
        if cpus.is_empty() { self.all.clone() } else { cpus.into_iter().collect() }
    }
}

/// The processors that this process may use, in order.
pub(crate) fn usable_cpus() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(all.map(|cpu| cpu as u32).collect())
}

/// A list of numbers: `0,1,5`.
pub(super) fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Pins a process with all its threads, including new ones, to these processors. If none of them
/// exists any more, nothing changes.
pub(super) fn pin(process: Process, cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize).filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    if set.count() == 0 {
        return Ok(());
    }
    let mut pinned = BTreeSet::new();
    for _ in 0..ROUNDS {
        let before = pinned.len();
        for thread in threads(process)? {
            if !pinned.insert(thread) {
                continue;
            }
            match sched_setaffinity(Pid::from_raw(thread), &set) {
                Ok(()) | Err(Errno::SRCH | Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if pinned.len() == before {
            break;
        }
    }
    Ok(())
}

/// The threads of a process; none if it is gone.
fn threads(process: Process) -> io::Result<Vec<i32>> {
    let listed = match fs::read_dir(format!("/proc/{}/task", process.number)) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    if !process.is_there()? {
        return Ok(Vec::new());
    }
    // A thread that cannot be listed has just ended.
    let names = listed.filter_map(|entry| Some(entry.ok()?.file_name()));
    Ok(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Part, Place};
    use busbar_core::units::{Span, Watts};

    fn on(nodes: &[u32]) -> Allotment {
        Allotment {
            nodes: nodes.iter().map(|node| (*node, Watts::ZERO)).collect(),
            cores: 1,
            cap: Watts::ZERO,
            time: Span::from_secs(1),
            power: Watts::ZERO,
            speed: 1_000_000,
            part: None,
        }
    }

    #[test]
    fn nodes_share_what_there_is() {
        let (cpus, notices) = Cpus::among(vec![vec![2, 3], vec![0]], vec![0, 1, 2, 3]);
        assert_eq!(notices, Vec::<String>::new());
        assert_eq!(cpus.of(&on(&[0])), [2, 3]);
        assert_eq!(cpus.of(&on(&[3])), [0], "the list begins again");
        assert_eq!(cpus.of(&on(&[0, 1, 2])), [0, 2, 3]);
        let (free, _) = Cpus::among(Vec::new(), vec![0, 1]);
        assert!(free.of(&on(&[0, 1])).is_empty());
    }

    #[test]
    fn who_shares_a_node_has_some_of_its_processors() {
        let (cpus, _) = Cpus::among(vec![vec![4, 5, 6, 7], vec![2]], (0..8).collect());
        let place = |cores: &[u32]| Place { cores: cores.to_vec(), gpus: Vec::new() };
        let has = |nodes: &[u32], places: Vec<Place>| {
            let part = Part { processors: 2, memory_mib: 0, gpus: 0, places };
            cpus.of(&Allotment { part: Some(Box::new(part)), ..on(nodes) })
        };
        assert_eq!(has(&[0], vec![place(&[1, 3])]), [5, 7]);
        assert_eq!(
            has(&[0, 1], vec![place(&[0, 1]), place(&[2, 3])]),
            [2, 4, 5],
            "one stands for all"
        );
        assert_eq!(has(&[0], Vec::new()), [4, 5, 6, 7], "it has the node alone");
    }

    #[test]
    fn what_is_not_there_is_left_out_and_said() {
        let (cpus, notices) = Cpus::among(vec![vec![0, 9], vec![8]], vec![0, 1]);
        assert_eq!(cpus.of(&on(&[0])), [0]);
        assert_eq!(cpus.of(&on(&[1])), [0, 1], "all there are");
        assert_eq!(cpus.of(&on(&[0, 1])), [0]);
        assert_eq!(notices.len(), 2);
        assert!(notices[0].starts_with("node 0 is to have processor 9,"), "{}", notices[0]);
        assert!(notices[0].ends_with("it has 0"), "{}", notices[0]);
        assert!(notices[1].ends_with("may use all processors"), "{}", notices[1]);
    }

    #[test]
    fn who_is_gone_is_not_kept_to_anything() {
        pin(Process { number: i32::MAX, began: 0 }, &[0]).unwrap();
    }
}
