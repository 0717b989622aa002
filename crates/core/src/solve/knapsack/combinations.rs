//! All combinations of moves that lose no more than so much together, of those that take the same
//! nodes and watts only the one that loses least.
//!
//! The list is kept in the order of what combinations take, and grows by one group of classes after
//! the other. A shifted list is still in order, so a group is added by merging shifted copies of the
//! list, and combinations that take the same meet in the merge: no table is needed, and memory is
//! read from front to back. Groups whose moves lose much come first, while the list is short and few
//! of its combinations can bear them; so the work is not much more than the length of the list in
//! the end. Where node counts and caps are few, hundreds of combinations take the same, and keeping
//! one of them is what makes large instances possible.

use super::classes::Kind;
use super::meter::Meter;
use super::runs::{Combination, NOTHING, Runs};
use super::traces::Traces;

/// A list of combinations, and how each was made.
#[derive(Default)]
pub(super) struct Combinations {
    list: Vec<Combination>,
    /// By which combinations of groups.
    traces: Traces,
    /// The combinations of the group that is being added.
    own: Vec<Combination>,
    /// By which kinds of moves, counted from one, those of all groups were made.
    own_traces: Traces,
    kinds: Vec<Kind>,
    runs: Runs,
    rounds: Runs,
}

/// More are not kept in memory.
const MOST: usize = 1 << 20;
/// Nor are more traces.
const MOST_TRACES: usize = 1 << 23;

impl Combinations {
    /// Begins anew, with nothing but to move nothing.
    pub(super) fn begin(&mut self) {
        self.list.clear();
        self.list.push(Combination::default());
        self.traces.clear();
        self.own_traces.clear();
        self.kinds.clear();
    }

    /// The combinations, in the order of nodes and then of watts they take.
    pub(super) fn list(&self) -> &[Combination] {
        &self.list
    }

    /// Extends the list by the moves of one group of classes, as far as nothing loses more than
    /// `most`. For each class there are its moves and how many entries it has. Returns whether
    /// there was enough effort and room.
    pub(super) fn extend<'a>(
        &mut self,
        mut group: impl Iterator<Item = (&'a [Kind], u32)>,
        most: f64,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        self.own.clear();
        self.own.push(Combination::default());
        if !group.all(|(kinds, size)| self.extend_own(kinds, size, most, meter)) {
            return false;
        }
        let shifts = self.own.iter().filter(|own| own.trace != NOTHING);
        let shifts = shifts.map(|own| Combination { on_top: own.trace, ..*own });
        let mut shifts: Vec<Combination> = shifts.collect();
        if !self.runs.shift(&self.list, &mut shifts, most, MOST, meter) {
            return false;
        }
        self.runs.merge_into(&mut self.list);
        self.traces.note(&mut self.list);
        self.list.len() <= MOST && self.traces.len() <= MOST_TRACES
    }

    /// Extends the combinations of the group by the moves of one class.
    fn extend_own(
        &mut self,
        kinds: &[Kind],
        size: u32,
        most: f64,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        let first = self.kinds.len() as u32 + 1;
        self.kinds.extend_from_slice(kinds);
        let moves = kinds.iter().zip(first..).map(|(kind, on_top)| Combination {
            loss: kind.loss,
            takes: kind.takes,
            on_top,
            trace: NOTHING,
        });
        let mut moves: Vec<Combination> = moves.collect();
        // Another entry of the class moves in each round, in every way.
        let mut round = self.own.clone();
        self.rounds.clear();
        for _ in 0..size {
            if !self.runs.shift(&round, &mut moves, most, MOST, meter) {
                return false;
            }
            round.clear();
            self.runs.merge_into(&mut round);
            if round.is_empty() {
                break;
            }
            self.own_traces.note(&mut round);
            self.rounds.push(&round);
            if self.rounds.len() > MOST || self.own_traces.len() > MOST_TRACES {
                return false;
            }
        }
        self.rounds.merge_into(&mut self.own);
        true
    }

    /// The moves of a combination.
    pub(super) fn moves(&self, at: usize) -> impl Iterator<Item = Kind> + '_ {
        let groups = self.traces.back(self.list[at].trace);
        let kinds = groups.flat_map(|own| self.own_traces.back(own));
        kinds.map(|kind| self.kinds[kind as usize - 1])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Losses and takes of each way an entry of the class may move, and how many entries it has.
    type Class = (Vec<(u8, i64, i64)>, u32);

    fn kinds(class: usize, ways: &[(u8, i64, i64)]) -> Vec<Kind> {
        let kind = |(place, way): (usize, &(u8, i64, i64))| Kind {
            class: class as u32,
            place: place as u32,
            loss: way.0.into(),
            takes: [way.1, way.2],
        };
        ways.iter().enumerate().map(kind).collect()
    }

    /// What can be taken, and at which loss at least, by trying every way for every entry.
    fn plain(classes: &[Class], most: f64) -> BTreeMap<[i64; 2], f64> {
        let mut all = vec![(0.0, [0, 0])];
        for (ways, size) in classes {
            for _ in 0..*size {
                for (loss, [nodes, watts]) in all.clone() {
                    all.extend(
                        ways.iter()
                            .map(|way| (loss + f64::from(way.0), [nodes + way.1, watts + way.2])),
                    );
                }
            }
        }
        let mut least = BTreeMap::new();
        for (loss, takes) in all.into_iter().filter(|(loss, _)| *loss <= most) {
            let known = least.entry(takes).or_insert(loss);
            *known = f64::min(*known, loss);
        }
        least
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whole losses, so that sums are exact in any order.
        #[test]
        fn all_combinations_are_listed_once_and_can_be_made(
            groups in prop::collection::vec(
                prop::collection::vec(
                    (prop::collection::vec((0u8..5, -3i64..4, -3i64..4), 1..3), 1u32..3), 1..3),
                0..3),
            most in 0u8..12,
        ) {
            let most = f64::from(most);
            let classes: Vec<Class> = groups.iter().flatten().cloned().collect();
            let kinds: Vec<_> =
                classes.iter().enumerate().map(|(class, (ways, _))| kinds(class, ways)).collect();
            let mut meter = Meter::new(u64::MAX, None);
            let mut combinations = Combinations::default();
            combinations.begin();
            let mut rows = kinds.iter().zip(&classes).map(|(kinds, class)| (&kinds[..], class.1));
            for group in &groups {
                prop_assert!(combinations.extend(rows.by_ref().take(group.len()), most, &mut meter));
            }
            let list = combinations.list();
            let listed: Vec<_> = list.iter().map(|one| (one.takes, one.loss)).collect();
            prop_assert_eq!(listed, plain(&classes, most).into_iter().collect::<Vec<_>>());
            for (at, one) in list.iter().enumerate() {
                let (mut loss, mut takes) = (0.0, [0, 0]);
                let mut moved = vec![0; classes.len()];
                for kind in combinations.moves(at) {
                    loss += kind.loss;
                    takes = [takes[0] + kind.takes[0], takes[1] + kind.takes[1]];
                    moved[kind.class as usize] += 1;
                }
                prop_assert_eq!((loss, takes), (one.loss, one.takes));
                prop_assert!(moved.iter().zip(&classes).all(|(moved, class)| *moved <= class.1));
            }
        }
    }
}
