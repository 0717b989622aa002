//! A snapshot of all processes, and which of them belong to a job.
//!
//! All processes of a job descend from its [warden](super::warden): a process that loses its parent
//! becomes a child of the warden, whatever its session or process group. If the warden is gone,
//! processes are recognised by a variable in their initial environment, or because they were seen below
//! the warden before.
//!
//! A snapshot takes some tens of microseconds per process, so a daemon takes one for all jobs.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;

use super::speed;
use crate::host::process::{Process, Stat};

/// The processes of this machine.
pub(super) struct Processes {
    all: Vec<Stat>,
    /// The positions in `all` of the children of each process ID.
    children: HashMap<i32, Vec<usize>>,
}

impl Processes {
    /// The current processes. Some that start or end meanwhile may be missed.
    pub(super) fn now() -> io::Result<Self> {
        let mut all = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
                all.extend(Stat::of(number)?);
            }
        }
        Ok(Processes::from(all))
    }

    fn from(all: Vec<Stat>) -> Self {
        let mut children: HashMap<i32, Vec<usize>> = HashMap::new();
        for (place, stat) in all.iter().enumerate() {
            children.entry(stat.parent).or_default().push(place);
        }
        Processes { all, children }
    }

    /// All descendants of a process; none if it is gone.
    pub(super) fn below(&self, root: Process) -> Vec<Stat> {
        if !self.all.iter().any(|stat| stat.process == root) {
            return Vec::new();
        }
        self.below_numbers(vec![root.number])
    }

    fn below_numbers(&self, mut parents: Vec<i32>) -> Vec<Stat> {
        let mut below = Vec::new();
        let mut seen = BTreeSet::new();
        while let Some(parent) = parents.pop() {
            for place in self.children.get(&parent).into_iter().flatten() {
                // Each process is visited once, even if reused IDs form a cycle.
                if seen.insert(*place) {
                    parents.push(self.all[*place].process.number);
                    below.push(self.all[*place]);
                }
            }
        }
        below
    }

    /// Finds the attempts that processes belong to by their environment.
    pub(super) fn marks(&self) -> Marks {
        let mut marks: HashMap<OsString, Vec<Process>> = HashMap::new();
        for stat in self.all.iter().filter(|stat| is_alive(stat)) {
            if let Some(mark) = mark(stat.process.number) {
                marks.entry(mark).or_default().push(stat.process);
            }
        }
        Marks(marks)
    }

    /// The children of this process, including zombies.
    pub(super) fn own_children(&self) -> impl Iterator<Item = &Stat> {
        let own = std::process::id() as i32;
        self.children.get(&own).into_iter().flatten().map(|place| &self.all[*place])
    }

    /// The remaining processes of an attempt without a warden: those with its mark, those known to
    /// belong to it, and their descendants; without zombies.
    pub(super) fn left(
        &self,
        marks: &Marks,
        mark: &OsStr,
        known: impl IntoIterator<Item = Process>,
    ) -> Vec<Process> {
        let marked = marks.0.get(mark).into_iter().flatten().copied();
        let roots: BTreeSet<Process> = marked.chain(known).collect();
        let known = self.all.iter().filter(|stat| roots.contains(&stat.process)).copied();
        let known: Vec<Stat> = known.collect();
        let below = self.below_numbers(known.iter().map(|stat| stat.process.number).collect());
        let all: BTreeSet<Process> = known
            .iter()
            .chain(&below)
            .filter(|stat| is_alive(stat))
            .map(|stat| stat.process)
            .collect();
        all.into_iter().collect()
    }
}

/// Processes by the speed file in their environment.
pub(super) struct Marks(HashMap<OsString, Vec<Process>>);

/// Whether a process is neither a zombie nor this process.
fn is_alive(stat: &Stat) -> bool {
    !stat.is_over && stat.process.number != std::process::id() as i32
}

/// The speed file in the initial environment of a process; `None` if that cannot be read.
fn mark(number: i32) -> Option<OsString> {
    let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
    let mut values = environment
        .split(|byte| *byte == 0)
        .filter_map(|entry| entry.strip_prefix(speed::VARIABLE.as_bytes())?.strip_prefix(b"="));
    values.next().map(|value| OsString::from_vec(value.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(parents: &[(i32, i32)]) -> Processes {
        let stat = |&(number, parent)| {
            let process = Process { number, began: 10 * number as u64 };
            Stat { process, parent, group: 1, is_over: number == 8, is_stopped: false }
        };
        Processes::from(parents.iter().map(stat).collect())
    }

    /// Ascending.
    fn numbers(processes: impl IntoIterator<Item = Process>) -> Vec<i32> {
        let mut numbers: Vec<i32> = processes.into_iter().map(|one| one.number).collect();
        numbers.sort_unstable();
        numbers
    }

    const NOBODY: [i32; 0] = [];

    /// 7 has the children 8, which has ended, and 3, which has 2; 9 is somebody else's.
    const FAMILY: [(i32, i32); 6] = [(1, 0), (2, 3), (3, 7), (7, 1), (8, 7), (9, 1)];

    #[test]
    fn everybody_below() {
        let family = family(&FAMILY);
        let below = |number, began| {
            numbers(family.below(Process { number, began }).iter().map(|stat| stat.process))
        };
        assert_eq!(below(7, 70), [2, 3, 8]);
        assert_eq!(below(9, 90), NOBODY);
        assert_eq!(below(7, 71), NOBODY, "another process has the number now");
        assert_eq!(below(5, 50), NOBODY);
    }

    #[test]
    fn everybody_who_is_left() {
        let family = family(&FAMILY);
        let marked = vec![Process { number: 9, began: 90 }];
        let marks = Marks(HashMap::from([(OsString::from("mine"), marked)]));
        let left = |mark: &str, command| numbers(family.left(&marks, mark.as_ref(), command));
        assert_eq!(left("mine", None), [9]);
        assert_eq!(left("mine", Some(Process { number: 7, began: 70 })), [2, 3, 7, 9]);
        assert_eq!(left("other", Some(Process { number: 7, began: 71 })), NOBODY);
        assert_eq!(left("other", Some(Process { number: 8, began: 80 })), NOBODY, "it has ended");
    }

    /// A snapshot is not taken at one moment: numbers that were used again may close a ring.
    #[test]
    fn a_ring_is_walked_once() {
        let family = family(&[(2, 4), (3, 2), (4, 3)]);
        assert_eq!(family.below(Process { number: 2, began: 20 }).len(), 3);
    }
}
