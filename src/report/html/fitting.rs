//! How much of its runs a page holds: what a screen can show, and no more than a mail can carry.
//!
//! Single jobs are what takes room. Where all jobs of all runs are too many, each run keeps those with the most node
//! time, and tiles of what all others cover; runs of one workload keep the same jobs, so that they can be compared.

use std::borrow::Cow;

use serde::Serialize;

use crate::report::digest::{Column, Digest, MOST_PARTS, Rest, TILES, largest};

/// The parts of a curve that a screen shows at a time.
const SHOWN_PARTS: usize = 700;

/// The finest shade of a tile: this many steps to a tile that is covered wholly.
const STEPS: u128 = 63;

/// The runs as a page holds them, with at most so many single jobs in all.
pub(super) fn fitted(digests: &[Digest], most: usize) -> Cow<'_, [Digest]> {
    if digests.iter().map(Digest::singles).sum::<usize>() <= most {
        return Cow::Borrowed(digests);
    }
    let runs = digests.len();
    let parts = (4 * MOST_PARTS / runs).clamp(SHOWN_PARTS, MOST_PARTS);
    // The tiles of all runs together are as many as those of one.
    let coarser = (1..).find(|coarser| coarser * coarser >= runs as u64).unwrap_or(1);
    let tiles = ((TILES.0 / coarser).max(1), (TILES.1 / coarser).max(1));
    let lighter = |digest: &Digest| {
        let same = digests.iter().filter(|other| is_same_workload(digest, other));
        let mut sizes = vec![0u64; digest.singles()];
        for other in same {
            sizes
                .iter_mut()
                .zip(other.sizes())
                .for_each(|(sum, size)| *sum = sum.saturating_add(size));
        }
        digest.lighter(&largest(&sizes, most / runs), parts, tiles)
    };
    Cow::Owned(digests.iter().map(lighter).collect())
}

/// Whether two runs have the same jobs.
pub(super) fn is_same_workload(one: &Digest, other: &Digest) -> bool {
    one.jobs.number == other.jobs.number && one.jobs.submit == other.jobs.submit
}

/// What jobs cover that are not in the page one by one, as it is drawn: for each class the part of what single jobs
/// leave of a tile, in steps.
#[derive(Serialize)]
pub(super) struct Shades {
    jobs: u64,
    share: u64,
    begin: u64,
    width: u64,
    height: u64,
    across: u64,
    caps: [u64; 2],
    wait: Vec<Column>,
    slowdown: Vec<Column>,
    cap: Vec<Column>,
}

impl Shades {
    /// Those of a run, if it has any.
    pub(super) fn of(digest: &Digest) -> Option<Self> {
        let rest = digest.rest.as_ref()?;
        let Rest { jobs, share, begin, width, height, across, caps, .. } = *rest;
        let nodes = u64::from(digest.summary.nodes);
        let left = |(place, singles): (u64, &u64)| {
            let lane = place / across * height;
            let from = begin + place % across * width;
            let (lanes, time) = (height.min(nodes - lane), width.min(digest.end - from));
            lanes.saturating_mul(time).saturating_sub(*singles)
        };
        let left: Vec<u64> = (0..).zip(rest.singles.values()).map(left).collect();
        let shade = |(covered, left): (&u64, &u64)| {
            let left = u128::from(*left).max(1);
            ((u128::from(*covered) * STEPS + left / 2) / left).min(STEPS) as u64
        };
        let shades = |classes: &[Column]| -> Vec<Column> {
            let of_class = |class: &Column| class.values().iter().zip(&left).map(shade).collect();
            classes.iter().map(of_class).collect()
        };
        Some(Shades {
            jobs,
            share,
            begin,
            width,
            height,
            across,
            caps,
            wait: shades(&rest.wait),
            slowdown: shades(&rest.slowdown),
            cap: shades(&rest.cap),
        })
    }
}
