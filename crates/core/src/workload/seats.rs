//! Jobs on the nodes of a machine that are not all alike, or that they share.

use std::sync::Arc;

use super::Workload;
use crate::machine::Kinds;
use crate::seats::{Asked, Seats};
use crate::units::JobId;

/// The jobs of a workload on the nodes of a machine.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    seats: Arc<Seats>,
    /// By job: whether it is of no partition that the machine has.
    strangers: Vec<bool>,
}

impl Seated {
    /// Keeps only those of some jobs, by their places.
    pub(super) fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        Arc::make_mut(&mut self.seats).retain(&is_kept);
        let mut place = 0;
        self.strangers.retain(|_| {
            place += 1;
            is_kept(place - 1)
        });
    }
}

impl Workload {
    /// Puts jobs on nodes of several kinds, or that they share: each asks for processors from now on, all those of the nodes that
    /// it has alone.
    pub fn seat(&mut self, kinds: &Kinds) {
        // Most logs have few partitions and many jobs.
        let names: Vec<(u32, String)> = self.partition_numbers();
        let place = |name: &String| kinds.partitions().iter().position(|known| known.name == *name);
        let places: Vec<(u32, Option<usize>)> =
            names.iter().map(|(number, name)| (*number, place(name))).collect();
        let asked = |id: JobId| {
            let number = self.partition(id).unwrap_or(0);
            let known = places.binary_search_by_key(&number, |known| known.0);
            let partition = known.ok().and_then(|place| places[place].1);
            let placed = self.placed.of_jobs.get(id.index()).copied().unwrap_or_default();
            let (nodes, memory_mib, gpus) = (placed.nodes, placed.memory_mib, placed.gpus);
            Asked { partition, nodes, memory_mib, gpus, ..Asked::default() }
        };
        let mut strangers = Vec::with_capacity(self.jobs.len());
        let seats = Seats::new(
            kinds,
            (0..).map(JobId).zip(&self.jobs).map(|(id, job)| {
                let asked = asked(id);
                strangers.push(asked.partition.is_none());
                (job, asked)
            }),
        );
        for (id, job) in (0..).map(JobId).zip(&mut self.jobs) {
            job.nodes = match seats.of(id) {
                Ok(seat) => seat.nodes.saturating_mul(seat.each.processors),
                Err(_) => job.processors.max(1),
            };
        }
        self.seated = Some(Seated { seats: Arc::new(seats), strangers });
    }

    /// What jobs ask of nodes, where these are of several kinds or shared.
    pub fn seats(&self) -> Option<&Arc<Seats>> {
        self.seated.as_ref().map(|seated| &seated.seats)
    }

    /// How many jobs are of no partition that the machine has, where that matters.
    pub(super) fn strangers(&self) -> Option<usize> {
        let seated = self.seated.as_ref()?;
        Some(seated.strangers.iter().filter(|is_stranger| **is_stranger).count())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::job::Job;
    use crate::machine::{Machine, check_text};
    use crate::seats::{Missing, Seat};
    use crate::units::{Instant, Span};
    use crate::workload::{Partitions, Placed};

    fn machine() -> Machine {
        let text = "processors_per_node = 8\n[[partition]]\nname = 'own'\nnodes = 4\n\
            [[partition]]\nname = 'cpu'\nnodes = 4\nshared = true\nmemory = '16GiB'\n\
            [[partition]]\nname = 'gpu'\nnodes = 2\nprocessors_per_node = 4\nshared = true\npower.node = '900W'\n\
            power.gpus = 2\npower.gpu = '300W'\n[[partition]]\nname = 'any'\nof = ['gpu', 'cpu']\nshared = true\n";
        check_text(text, "site", Path::new("")).unwrap().choose(&[]).unwrap()
    }

    fn seat(partition: u32, processors: u32, placed: Placed) -> Result<Seat, Missing> {
        let machine = machine();
        let names = ["own", "cpu", "gpu", "any"].map(str::to_owned);
        let partitions = Partitions::new(vec![partition], (1..).zip(names).collect());
        let job = Job::new(1, Instant::ZERO, processors, Span::from_secs(9));
        let (jobs, times) = (vec![job], vec![Span::from_secs(9)]);
        let mut workload = Workload::from_parts("log".to_owned(), jobs, times, vec![], partitions);
        workload.set_placed(Vec::new(), |_| placed);
        workload.seat(machine.kinds.as_deref().unwrap());
        workload.seats().unwrap().of(JobId(0)).copied()
    }

    #[test]
    fn jobs_ask_for_parts_of_nodes_where_these_are_shared() {
        let nothing = Placed::default();
        let plain = |partition, processors| {
            seat(partition, processors, nothing)
                .map(|seat| (seat.nodes, seat.each.processors, seat.is_whole))
        };
        assert_eq!(plain(1, 3), Ok((1, 8, true)));
        assert_eq!(plain(2, 3), Ok((1, 3, false)));
        assert_eq!(plain(2, 8), Ok((1, 8, true)));
        assert_eq!(plain(2, 12), Ok((2, 6, false)));
        let spread = Placed { nodes: 3, ..nothing };
        assert_eq!(seat(2, 12, spread).map(|seat| (seat.nodes, seat.each.processors)), Ok((3, 4)));
        // More nodes than processors is a mistake of the log.
        let wide = Placed { nodes: 9, ..nothing };
        assert_eq!(seat(2, 2, wide).map(|seat| (seat.nodes, seat.each.processors)), Ok((2, 1)));
    }

    #[test]
    fn jobs_are_on_the_first_kind_that_can_hold_them() {
        let nothing = Placed::default();
        let kind = |processors, placed| seat(4, processors, placed).map(|seat| seat.kind);
        assert_eq!(kind(4, nothing), Ok(2));
        assert_eq!(kind(9, nothing), Ok(1));
        assert_eq!(kind(2, Placed { gpus: 2, ..nothing }), Ok(2));
    }

    #[test]
    fn a_part_of_the_jobs_keeps_its_seats() {
        let job = |number| {
            let job = Job::new(number, Instant::ZERO, number as u32, Span::from_secs(9));
            (job, Span::from_secs(9))
        };
        let mut workload = Workload::new("log", (1..=5).map(job));
        workload.seat(machine().kinds.as_deref().unwrap());
        workload.slice(2..4);
        let each = |workload: &Workload, place| {
            workload.seats().unwrap().of(JobId(place)).map(|seat| seat.each.processors)
        };
        assert_eq!([0, 1, 2].map(|place| each(&workload, place).ok()), [Some(3), Some(4), None]);
        assert!(
            workload.about_partitions().unwrap().starts_with("2 of 2 jobs are of no partition")
        );
        let last = workload.keep(|job| job.number == 4);
        assert_eq!(each(&last, 0), Ok(4));
    }

    #[test]
    fn what_no_node_has_is_named() {
        let nothing = Placed::default();
        let missing = |processors, placed| seat(2, processors, placed).unwrap_err();
        assert_eq!(missing(33, nothing), Missing::Nodes);
        assert_eq!(missing(1, Placed { memory_mib: 17 << 10, ..nothing }), Missing::Memory);
        assert_eq!(missing(1, Placed { gpus: 1, ..nothing }), Missing::Gpus);
        assert!(seat(2, 1, Placed { memory_mib: 16 << 10, ..nothing }).is_ok());
    }
}
