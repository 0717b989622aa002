//! Parts of nodes: which processors and GPUs of a shared node each job has, and requests that no node can meet.

use std::collections::BTreeSet;

use super::Controller;
use crate::job::{Allotment, JobRequest, Place};
use crate::wire::{Refusal, RefusalKind};
use busbar_core::seats::{Lack, Missing};

impl Controller {
    /// Chooses the processors and GPUs of a job on its nodes: of those that no other job has, the first. Who has all of its nodes
    /// needs no choice.
    pub(super) fn choose_places(&self, allotment: &mut Allotment) {
        let (Some(kinds), Some(part)) = (&self.setup.machine.kinds, &mut allotment.part) else {
            return;
        };
        let size = |node: u32| {
            let kind = kinds.kind_of_node(busbar_core::units::NodeId(node))?;
            Some(kinds.kinds()[kind].size)
        };
        let sizes: Option<Vec<_>> = allotment.nodes.iter().map(|(node, _)| size(*node)).collect();
        let Some(sizes) = sizes else { return };
        if sizes.iter().all(|size| size.processors == part.processors) {
            return;
        }
        let runs = self.running.iter().filter_map(|number| self.run_of(*number));
        let others: Vec<&Allotment> = runs.map(|run| &run.allotment).collect();
        part.places = allotment
            .nodes
            .iter()
            .zip(sizes)
            .map(|((node, _), size)| {
                let (mut cores, mut gpus) = (BTreeSet::new(), BTreeSet::new());
                for place in others.iter().filter_map(|other| other.place_on(*node)) {
                    cores.extend(&place.cores);
                    gpus.extend(&place.gpus);
                }
                let first = |count: u32, of: u32, taken: &BTreeSet<u32>| {
                    let free = (0..of).filter(|number| !taken.contains(number));
                    free.take(count as usize).collect()
                };
                Place {
                    cores: first(part.processors, size.processors, &cores),
                    gpus: first(part.gpus, size.gpus, &gpus),
                }
            })
            .collect();
    }

    /// Refuses a request that no node can meet, and says which resource is missing, and how much of it.
    pub(super) fn check_part(&self, request: &JobRequest) -> Result<(), Refusal> {
        let Some(seat) = self.setup.seat(request)? else { return Ok(()) };
        let refuse = |message: String| {
            let kind = RefusalKind::Impossible;
            Err(Refusal { kind, message })
        };
        if request.moldable.is_some() {
            let message = "--moldable: jobs keep their numbers of nodes where nodes are of several kinds or shared; leave it out";
            return refuse(message.to_owned());
        }
        if request.part.processors == Some(0) {
            return refuse("-n 0: a job needs at least one processor".to_owned());
        }
        let Err(Lack { of, asked, most }) = seat else { return Ok(()) };
        let (option, of_what, unit) = match of {
            Missing::Processors => ("-n", "processors of a node", ""),
            Missing::Memory => ("--mem", "memory of a node", " MiB"),
            Missing::Gpus => ("--gpus", "GPUs of a node", ""),
            Missing::Nodes => ("-N", "nodes of one kind", ""),
        };
        let of_partition = match &request.part.partition {
            Some(name) => format!("partition '{name}'"),
            None => "the machine".to_owned(),
        };
        let over = asked.saturating_sub(most);
        refuse(format!(
            "{option}: no node can hold the job: it asks for {asked}{unit} ({of_what}), and {of_partition} has {most}{unit}, \
             {over}{unit} too few"
        ))
    }
}
