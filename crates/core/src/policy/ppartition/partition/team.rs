//! The processors of a job, which it keeps as long as it runs, and the caps they are to have.

use crate::model::{Caps, NodeCap};
use crate::solve::ptune::crew::{Crew, Feed, Levels, OfRun};
use crate::units::{NodeId, Watts};
use crate::variation::kin::Kin;

/// The processors of a job.
#[derive(Clone, Debug)]
pub(in crate::policy::ppartition) struct Team {
    /// In the order of their numbers.
    nodes: Vec<NodeId>,
    /// By node: which of the crew's runs it is of.
    places: Vec<u32>,
    feed: Feed,
}

/// The caps that a job is to have.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::policy::ppartition) struct Wanted {
    shape: Shape,
    total: Watts,
}

#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// As power was divided here.
    ByRun(Levels),
    /// As somebody else had it.
    ByNode(Caps),
}

impl Team {
    /// These nodes; none if one of them is no processor.
    pub(super) fn new(mut nodes: Vec<NodeId>, kin: &Kin) -> Option<Self> {
        nodes.sort_unstable();
        let runs: Option<Vec<u32>> = nodes.iter().map(|node| kin.run_of(node.0)).collect();
        let runs = runs?;
        let mut present = runs.clone();
        present.sort_unstable();
        let mut members: Vec<OfRun> = Vec::new();
        for run in present {
            match members.last_mut() {
                Some(last) if last.run == run => last.count += 1,
                _ => members.push(OfRun { run, count: 1 }),
            }
        }
        let place = |run: &u32| members.partition_point(|one| one.run < *run) as u32;
        let places = runs.iter().map(place).collect();
        Some(Team { nodes, places, feed: Feed::new(Crew::new(members), kin) })
    }

    pub(in crate::policy::ppartition) fn nodes(&self) -> &[NodeId] {
        &self.nodes
    }

    pub(super) fn crew(&self) -> &Crew {
        self.feed.crew()
    }

    pub(super) fn feed(&self) -> &Feed {
        &self.feed
    }
}

impl Wanted {
    pub(super) fn by_run(levels: Levels, total: Watts) -> Self {
        Wanted { shape: Shape::ByRun(levels), total }
    }

    pub(super) fn by_node(caps: Caps) -> Self {
        Wanted { total: caps.total(), shape: Shape::ByNode(caps) }
    }

    pub(super) fn total(&self) -> Watts {
        self.total
    }

    /// The caps one by one.
    pub(super) fn caps(&self, team: &Team) -> Option<Caps> {
        let levels = match &self.shape {
            Shape::ByNode(caps) => return Some(caps.clone()),
            Shape::ByRun(levels) => levels,
        };
        let nodes = team.nodes.iter().zip(&team.places);
        let low = |place: u32| levels.caps[place as usize];
        let Some(split) = levels.split else {
            let capped = |(node, place): (&NodeId, &u32)| NodeCap { node: *node, cap: low(*place) };
            return Caps::in_order(nodes.map(capped));
        };
        // Of the run that is split, those with lower numbers come first.
        let mut seen = 0;
        let capped = |(node, place): (&NodeId, &u32)| {
            let mut cap = low(*place);
            if *place as usize == split.place {
                match seen {
                    before if before < split.first => cap = split.high,
                    here if here == split.first => cap = split.between,
                    _ => {}
                }
                seen += 1;
            }
            NodeCap { node: *node, cap }
        };
        Caps::in_order(nodes.map(capped))
    }

    /// Tells of this many processors of each run under each cap.
    pub(super) fn for_each(&self, team: &Team, kin: &Kin, told: &mut dyn FnMut(u32, u32, Watts)) {
        match &self.shape {
            Shape::ByNode(caps) => {
                for NodeCap { node, cap } in caps.iter() {
                    if let Some(run) = kin.run_of(node.0) {
                        told(run, 1, cap);
                    }
                }
            }
            Shape::ByRun(levels) => {
                for (place, (one, cap)) in
                    team.crew().members().iter().zip(&levels.caps).enumerate()
                {
                    let mut low = one.count;
                    if let Some(split) = levels.split.filter(|split| split.place == place) {
                        low -= split.first + 1;
                        told(one.run, split.first, split.high);
                        told(one.run, 1, split.between);
                    }
                    told(one.run, low, *cap);
                }
            }
        }
    }
}
