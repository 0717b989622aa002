//! Jobs that are too many to be kept one by one.
//!
//! No screen shows a million rectangles. The jobs with the most node time, which are those that can be seen, are kept
//! as they are; of all others it is kept how much of each tile of the schedule they cover, and in which colours.

use serde::{Deserialize, Serialize};

use crate::report::digest::Column;

/// The most jobs of a run that a page shows one by one.
pub(crate) const MOST_JOBS: usize = 100_000;

/// How many tiles the schedule is cut into, across and up.
pub(in crate::report) const TILES: (u64, u64) = (512, 96);

/// How many classes there are by each figure.
pub(in crate::report) const CLASSES: usize = 6;

/// The upper ends of classes of waits, in milliseconds; the last class has no end.
pub(in crate::report) const WAITS: [u64; CLASSES - 1] =
    [1000, 600_000, 3_600_000, 21_600_000, 86_400_000];

/// The same of bounded slowdowns, in ten-thousandths.
pub(in crate::report) const SLOWDOWNS: [u64; CLASSES - 1] =
    [10_001, 20_000, 50_000, 200_000, 1_000_000];

/// What jobs cover of the schedule that are not kept one by one. Tiles are equal parts of time and lanes, row by row
/// from the first lanes on; what is covered is in node milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rest {
    /// How many jobs they are.
    pub(crate) jobs: u64,
    /// Their node time in thousandths of that of all jobs.
    pub(crate) share: u64,
    /// Where the first tile begins, in milliseconds.
    pub(crate) begin: u64,
    /// How many milliseconds a tile has.
    pub(crate) width: u64,
    /// How many lanes a tile has.
    pub(crate) height: u64,
    /// How many tiles there are in a row.
    pub(crate) across: u64,
    /// The lowest and the highest power of a node under all jobs, in milliwatts.
    pub(crate) caps: [u64; 2],
    /// What jobs cover of each tile that are kept one by one.
    pub(crate) singles: Column,
    /// What others cover, by how long they waited: a column for each class of `WAITS`.
    pub(crate) wait: Vec<Column>,
    /// The same by their bounded slowdowns.
    pub(crate) slowdown: Vec<Column>,
    /// The same by the power of their nodes, in equal parts of what there is.
    pub(crate) cap: Vec<Column>,
}

/// A rectangle of the schedule, in milliseconds and lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) lane: u64,
    pub(super) lanes: u64,
}

/// The figures of a job by which it is coloured, as [`Jobs`](super::Jobs) has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    pub(super) wait: u64,
    pub(super) slowdown: u64,
    pub(super) cap: u64,
}

/// How much of one tile is covered.
#[derive(Clone, Default)]
struct Tile {
    /// By jobs that are kept one by one.
    singles: u64,
    /// By others: in each class by their waits, by their slowdowns, and by the power of their nodes.
    others: [[u64; CLASSES]; 3],
}

/// Tiles while they are filled.
pub(super) struct Tiles {
    begin: u64,
    width: u64,
    height: u64,
    across: u64,
    caps: [u64; 2],
    covered: Vec<Tile>,
}

impl Tiles {
    /// For a run from begin to end on this many nodes, in so many tiles at most across and up.
    pub(super) fn new(
        [begin, end]: [u64; 2],
        nodes: u32,
        caps: [u64; 2],
        (across, up): (u64, u64),
    ) -> Self {
        let (time, nodes) = ((end - begin).max(1), u64::from(nodes).max(1));
        let (width, height) = (time.div_ceil(across), nodes.div_ceil(up));
        let (across, up) = (time.div_ceil(width), nodes.div_ceil(height));
        let covered = vec![Tile::default(); (across * up) as usize];
        Tiles { begin, width, height, across, caps, covered }
    }

    /// Those of jobs that are not kept, as they are.
    pub(super) fn of_others(rest: &Rest) -> Self {
        let Rest { begin, width, height, across, caps, .. } = *rest;
        let tile = |place: usize| {
            let classes = |by: &[Column]| {
                std::array::from_fn(|class| {
                    by.get(class).map_or(0, |column| column.values()[place])
                })
            };
            let others = [&rest.wait, &rest.slowdown, &rest.cap].map(|by| classes(by));
            Tile { singles: 0, others }
        };
        let covered = (0..rest.singles.values().len()).map(tile).collect();
        Tiles { begin, width, height, across, caps, covered }
    }

    /// A rectangle of a job that is kept.
    pub(super) fn add_single(&mut self, rectangle: Rectangle) {
        self.cover(rectangle, |tile, covered| tile.singles += covered);
    }

    /// A rectangle of a job that is not.
    pub(super) fn add(&mut self, rectangle: Rectangle, looks: Looks) {
        let classes = [
            class(looks.wait, &WAITS),
            class(looks.slowdown, &SLOWDOWNS),
            class_of_cap(looks.cap, self.caps),
        ];
        self.cover(rectangle, |tile, covered| {
            for (by_figure, class) in tile.others.iter_mut().zip(classes) {
                by_figure[class] += covered;
            }
        });
    }

    /// Goes through the tiles that a rectangle covers, with how much of each.
    fn cover(&mut self, rectangle: Rectangle, mut add: impl FnMut(&mut Tile, u64)) {
        let Rectangle { from, until, lane, lanes } = rectangle;
        let (from, until) = (from.max(self.begin) - self.begin, until.max(self.begin) - self.begin);
        if from >= until || lanes == 0 {
            return;
        }
        let shared = |place: u64, size: u64, from: u64, until: u64| {
            until.min((place + 1).saturating_mul(size)) - from.max(place * size)
        };
        for row in lane / self.height..=(lane + lanes - 1) / self.height {
            let high = shared(row, self.height, lane, lane + lanes);
            for column in from / self.width..=((until - 1) / self.width).min(self.across - 1) {
                let place = (row * self.across + column) as usize;
                if let Some(tile) = self.covered.get_mut(place) {
                    add(tile, high.saturating_mul(shared(column, self.width, from, until)));
                }
            }
        }
    }

    /// What there is to say of so many jobs that are not kept.
    pub(super) fn rest(&self, jobs: u64) -> Rest {
        let by = |figure: usize| -> Vec<Column> {
            let class =
                |class| self.covered.iter().map(|tile| tile.others[figure][class]).collect();
            (0..CLASSES).map(class).collect()
        };
        let sum = |of: &dyn Fn(&Tile) -> u64| -> u128 {
            self.covered.iter().map(|tile| u128::from(of(tile))).sum()
        };
        let singles = sum(&|tile| tile.singles);
        let others = sum(&|tile| tile.others[0].iter().sum());
        Rest {
            jobs,
            share: (1000 * others / (singles + others).max(1)) as u64,
            begin: self.begin,
            width: self.width,
            height: self.height,
            across: self.across,
            caps: self.caps,
            singles: self.covered.iter().map(|tile| tile.singles).collect(),
            wait: by(0),
            slowdown: by(1),
            cap: by(2),
        }
    }
}

/// The class of a value: the first that does not end below it.
fn class(value: u64, ends: &[u64; CLASSES - 1]) -> usize {
    ends.iter().take_while(|end| value > **end).count()
}

/// Power has no natural classes: equal parts of what there is.
fn class_of_cap(cap: u64, [least, most]: [u64; 2]) -> usize {
    match (6 * u128::from(cap.saturating_sub(least))).checked_sub(1) {
        Some(above) if most > least => (above / u128::from(most - least)).min(5) as usize,
        _ => 0,
    }
}

/// Which of many are the largest, so many at most; of equal ones the first.
pub(in crate::report) fn largest(sizes: &[u64], most: usize) -> Vec<bool> {
    if sizes.len() <= most {
        return vec![true; sizes.len()];
    }
    let mut sorted = sizes.to_vec();
    let least = match most {
        0 => u64::MAX,
        _ => *sorted.select_nth_unstable_by(most - 1, |one, other| other.cmp(one)).1,
    };
    let mut room = most - sizes.iter().filter(|size| **size > least).count();
    let is_kept = |size: &u64| {
        let fits = *size == least && room > 0;
        room -= usize::from(fits);
        fits || *size > least
    };
    sizes.iter().map(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_by_hand() {
        assert_eq!([0, 1000, 1001, 86_400_001].map(|wait| class(wait, &WAITS)), [0, 0, 1, 5]);
        // From 40 W to 100 W in steps of 10 W.
        let caps = [40_000, 50_000, 50_001, 70_000, 90_001, 100_000];
        let classes = caps.map(|cap| class_of_cap(cap, [40_000, 100_000]));
        assert_eq!(classes, [0, 0, 1, 2, 5, 5]);
        assert_eq!(class_of_cap(5, [5, 5]), 0);
    }

    #[test]
    fn the_largest_are_kept() {
        assert_eq!(largest(&[3, 9, 3, 1, 3], 3), [true, true, true, false, false]);
        assert_eq!(largest(&[3, 9], 2), [true, true]);
        assert_eq!(largest(&[3, 9], 0), [false, false]);
    }

    proptest! {
        /// Against every lane and every millisecond written out: nothing is lost, and nothing is in a wrong tile.
        #[test]
        fn tiles_have_all_that_is_covered(
            rectangles in prop::collection::vec(
                (0u64..60, 1u64..30, 0u64..9, 1u64..4, 0u64..3_000_000, any::<bool>()), 1..30,
            ),
            grid in (1u64..9, 1u64..9),
        ) {
            let (begin, end, nodes) = (7, 97, 12);
            let mut tiles = Tiles::new([begin, end], nodes, [0, 0], grid);
            for &(from, time, lane, lanes, wait, is_single) in &rectangles {
                let rectangle = Rectangle { from: from + begin, until: from + begin + time, lane, lanes };
                match is_single {
                    true => tiles.add_single(rectangle),
                    false => tiles.add(rectangle, Looks { wait, slowdown: 10_000, cap: 0 }),
                }
            }
            let rest = tiles.rest(3);
            let mut plain = vec![(0u64, [0u64; CLASSES]); rest.singles.values().len()];
            for &(from, time, lane, lanes, wait, is_single) in &rectangles {
                for (at, on) in (from..from + time).flat_map(|at| (lane..lane + lanes).map(move |on| (at, on))) {
                    let place = on / rest.height * rest.across + at / rest.width;
                    match is_single {
                        true => plain[place as usize].0 += 1,
                        false => plain[place as usize].1[class(wait, &WAITS)] += 1,
                    }
                }
            }
            for (place, (singles, others)) in plain.into_iter().enumerate() {
                prop_assert_eq!(rest.singles.values()[place], singles);
                let seen: Vec<u64> = rest.wait.iter().map(|class| class.values()[place]).collect();
                prop_assert_eq!(seen, others);
                prop_assert_eq!(rest.slowdown[0].values()[place], others.iter().sum::<u64>());
            }
        }
    }
}
