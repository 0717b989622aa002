//! When machines are ready, as a plan goes on: of each type, the one that is ready first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::{Instant, NodeId, Span};

/// The machines that a plan may use.
#[derive(Clone, Debug)]
pub(super) struct ReadyMachines {
    kinds: Vec<Kind>,
    /// Whether machines stay in the plan, ready again when their task is complete.
    queues: bool,
    left: usize,
}

#[derive(Clone, Debug)]
struct Kind {
    /// When each machine is ready.
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The first of them; [`Instant::NEVER`] if there is none.
    first: (Instant, u32),
    /// When the first was available at the beginning of the plan.
    available: Instant,
    /// How often the first changed.
    version: u32,
    /// The machines by their numbers, if one may be picked out.
    members: Vec<(u32, Instant)>,
}

impl ReadyMachines {
    /// No machines of so many types.
    pub(super) fn new(kinds: usize, queues: bool) -> Self {
        let none = Kind {
            heap: BinaryHeap::new(),
            first: (Instant::NEVER, u32::MAX),
            available: Instant::NEVER,
            version: 0,
            members: Vec::new(),
        };
        ReadyMachines { kinds: vec![none; kinds], queues, left: 0 }
    }

    /// Adds a machine; they come in the order of their numbers.
    pub(super) fn add(&mut self, kind: usize, node: NodeId, available: Instant) {
        let kind = &mut self.kinds[kind];
        kind.heap.push(Reverse((available, node.0)));
        kind.members.push((node.0, available));
        kind.first = kind.first.min((available, node.0));
        kind.available = kind.first.0;
        self.left += 1;
    }

    /// Whether there is no machine any more.
    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The machine of a type that is ready first, and when; never, if there is none.
    #[inline]
    pub(super) fn first(&self, kind: u16) -> (Instant, u32) {
        self.kinds[usize::from(kind)].first
    }

    /// When the first machine of a type was available before anything was planned.
    #[inline]
    pub(super) fn available(&self, kind: u16) -> Instant {
        self.kinds[usize::from(kind)].available
    }

    /// It is another one whenever the first machine of the type, or its time, is.
    #[inline]
    pub(super) fn version(&self, kind: u16) -> u32 {
        self.kinds[usize::from(kind)].version
    }

    /// Gives a task the first machine of a type.
    pub(super) fn take(&mut self, kind: u16, time: Span) -> (Instant, NodeId) {
        let kind = &mut self.kinds[usize::from(kind)];
        let (start, node) = kind.first;
        match self.queues {
            true => {
                if let Some(mut top) = kind.heap.peek_mut() {
                    *top = Reverse((start + time, node));
                }
            }
            false => {
                kind.heap.pop();
                self.left -= 1;
            }
        }
        kind.first = kind.heap.peek().map_or((Instant::NEVER, u32::MAX), |first| first.0);
        kind.version += 1;
        (start, NodeId(node))
    }

    /// How many machines of a type there are.
    #[inline]
    pub(super) fn count(&self, kind: u16) -> usize {
        self.kinds[usize::from(kind)].members.len()
    }

    /// Gives a task the machine at this place of its type. Only for plans that never ask which is
    /// first.
    pub(super) fn take_member(&mut self, kind: u16, place: usize, time: Span) -> (Instant, NodeId) {
        let members = &mut self.kinds[usize::from(kind)].members;
        let (node, start) = members[place];
        match self.queues {
            true => members[place].1 = start + time,
            false => {
                members.remove(place);
                self.left -= 1;
            }
        }
        (start, NodeId(node))
    }
}
