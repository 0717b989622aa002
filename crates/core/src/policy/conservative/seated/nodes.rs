//! What is free of each node over time.

use crate::ledger::{Ledger, Seating};
use crate::machine::NodeSize;
use crate::units::{Instant, NodeId, Span};

/// What is free of nodes from now on.
#[derive(Clone, Debug)]
pub(super) struct NodesOverTime {
    now: Instant,
    /// By node: when each step begins, ascending, and what is free then. The last one holds for ever.
    steps: Vec<Vec<(Instant, NodeSize)>>,
}

/// Steps that are past are forgotten when there are so many of a node.
const MANY: usize = 16;

impl NodesOverTime {
    /// What is free now, and what jobs give back when they are expected to. A job that should have ended gives back at once.
    pub(super) fn of(ledger: &Ledger, seating: &Seating) -> Self {
        let now = ledger.now();
        let steps = (0..seating.nodes()).map(|node| vec![(now, *seating.free(NodeId(node)))]);
        let mut nodes = NodesOverTime { now, steps: steps.collect() };
        for holding in ledger.running().iter() {
            let Some(seat) = seating.seat(holding.job) else { continue };
            let back = holding.until.max(now);
            nodes.give(seating.nodes_of(holding.job), &seat.each, back, Instant::NEVER);
        }
        nodes
    }

    /// Moves the clock.
    pub(super) fn advance(&mut self, now: Instant) {
        self.now = now;
    }

    /// So much less is free of these nodes between two instants. It must be there.
    pub(super) fn take(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        from: Instant,
        until: Instant,
    ) {
        let less = |free: &NodeSize| free.without(each).unwrap_or_default();
        self.change(nodes, from, until, less);
    }

    /// So much more is.
    pub(super) fn give(
        &mut self,
        nodes: &[NodeId],
        each: &NodeSize,
        from: Instant,
        until: Instant,
    ) {
        self.change(nodes, from, until, |free| free.with(each));
    }

    fn change(
        &mut self,
        nodes: &[NodeId],
        from: Instant,
        until: Instant,
        to: impl Fn(&NodeSize) -> NodeSize,
    ) {
        for node in nodes {
            let steps = &mut self.steps[node.0 as usize];
            if steps.len() > MANY {
                let past = steps.partition_point(|step| step.0 <= self.now).saturating_sub(1);
                steps.drain(..past);
            }
            let first = split(steps, from);
            let last = if until == Instant::NEVER { steps.len() } else { split(steps, until) };
            steps[first..last].iter_mut().for_each(|step| step.1 = to(&step.1));
            join(steps, last);
            join(steps, first);
        }
    }

    /// Whether a node has so much free from an instant on for so long; or else the next instant from which it has.
    pub(super) fn room(
        &self,
        node: NodeId,
        each: &NodeSize,
        at: Instant,
        time: Span,
    ) -> Result<(), Instant> {
        let steps = &self.steps[node.0 as usize];
        let first = steps.partition_point(|step| step.0 <= at).saturating_sub(1);
        let mut since = Some(at);
        for (from, free) in &steps[first..] {
            if since.is_some_and(|since| since + time <= *from) {
                break;
            }
            since = match free.has(each) {
                true => since.or(Some(*from)),
                false => None,
            };
        }
        match since {
            Some(since) if since == at => Ok(()),
            Some(since) => Err(since),
            None => Err(Instant::NEVER),
        }
    }
}

/// Makes sure that a step begins at an instant, and says which.
fn split(steps: &mut Vec<(Instant, NodeSize)>, at: Instant) -> usize {
    let after = steps.partition_point(|step| step.0 <= at);
    match after.checked_sub(1) {
        Some(before) if steps[before].0 < at => {
            steps.insert(after, (at, steps[before].1));
            after
        }
        before => before.unwrap_or(0),
    }
}

/// A step equal to the one before it says nothing.
fn join(steps: &mut Vec<(Instant, NodeSize)>, step: usize) {
    let same = step > 0 && step < steps.len() && steps[step - 1].1 == steps[step].1;
    if same {
        steps.remove(step);
    }
}
