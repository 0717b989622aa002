//! Free power for those who gain most by it: the steepest stretches of all hulls first. Stretches that are equally steep are
//! fed in the order of their jobs. Which processor of a job it is does not matter: what is asked for is how much each job gets.
//!
//! Along each hull the stretches are in order already. So the next one is always the first of some hull, and those that
//! get nothing are never looked at.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::units::{JobId, Watts};
use crate::variation::kin::Run;

#[derive(Default)]
pub(super) struct Pouring<'k> {
    hulls: Vec<Hull<'k>>,
    /// The next stretch of each hull: the bits of its slope, whose it is, and which hull.
    next: Vec<Reverse<(u64, JobId, u32)>>,
}

/// This many processors of a job that stand at one power.
struct Hull<'k> {
    run: &'k Run,
    count: u32,
    /// The corner that the next stretch leads to.
    corner: usize,
    cap: Watts,
}

impl Hull<'_> {
    /// How steep the next stretch is, as bits that rise where it falls.
    fn falling(&self) -> Option<u64> {
        self.run.falling.get(self.corner - 1).copied()
    }
}

impl<'k> Pouring<'k> {
    /// This many processors of a job that have this cap.
    pub(super) fn add(&mut self, job: JobId, run: &'k Run, count: u32, cap: Watts) {
        if count == 0 || run.curve.most() <= cap {
            return;
        }
        // At the lowest cap it is the first stretch that comes next.
        let corner = run.corners.partition_point(|knot| knot.power <= cap).max(1);
        let hull = Hull { run, count, corner, cap };
        if let Some(falling) = hull.falling() {
            self.next.push(Reverse((falling, job, self.hulls.len() as u32)));
            self.hulls.push(hull);
        }
    }

    /// What each job gets of so much power, in the order of the jobs.
    pub(super) fn pour(mut self, mut free: Watts) -> BTreeMap<JobId, Watts> {
        let mut more = BTreeMap::<JobId, Watts>::new();
        let mut next = BinaryHeap::from(self.next);
        while let Some(Reverse((_, job, place))) = next.pop() {
            let hull = &mut self.hulls[place as usize];
            let to = hull.run.corners[hull.corner].power;
            let from = hull.run.corners[hull.corner - 1].power.max(hull.cap);
            let given = ((to - from) * hull.count).min(free);
            *more.entry(job).or_default() += given;
            free -= given;
            if free == Watts::ZERO {
                break;
            }
            hull.corner += 1;
            next.extend(hull.falling().map(|falling| Reverse((falling, job, place))));
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::variation::kin::Kin;
    use crate::variation::{Application, Curve, Ips, Knot};

    fn any_curve() -> impl Strategy<Value = Curve> {
        prop::collection::vec((5u64..30, 1u64..40), 1..6).prop_map(|points| {
            let knot = |(power, ips)| Knot {
                power: Watts::from_milliwatts(power),
                ips: Ips::from_ips(ips),
            };
            let floor = Watts::from_milliwatts(1);
            Curve::new(floor, points.into_iter().map(knot).collect()).unwrap()
        })
    }

    proptest! {
        /// The same as if the stretches of all processors were sorted.
        #[test]
        fn heaps_agree_with_a_sorted_list(
            curves in prop::collection::vec(any_curve(), 1..5),
            jobs in prop::collection::vec((0u32..4, any::<prop::sample::Index>(), 0u32..4, 1u64..30), 0..12),
            free in 1u64..300,
        ) {
            let kin = Kin::of(&Application { name: "a".to_owned(), curves: curves.clone() });
            let free = Watts::from_milliwatts(free);
            let mut pouring = Pouring::default();
            let mut stretches = Vec::new();
            for (job, index, count, cap) in jobs {
                let place = index.index(curves.len());
                let (job, cap) = (JobId(job), Watts::from_milliwatts(cap));
                pouring.add(job, kin.run(kin.run_of(place as u32).unwrap()), count, cap);
                for segment in curves[place].hull().iter().filter(|segment| segment.to.power > cap) {
                    let power = segment.to.power - segment.from.power.max(cap);
                    let stretch = (!segment.slope.to_bits(), job, power);
                    stretches.extend(std::iter::repeat_n(stretch, count as usize));
                }
            }
            stretches.sort_unstable();
            let (mut expected, mut left) = (BTreeMap::<JobId, Watts>::new(), free);
            for (_, job, power) in stretches {
                let given = power.min(left);
                *expected.entry(job).or_default() += given;
                left -= given;
                if left == Watts::ZERO {
                    break;
                }
            }
            prop_assert_eq!(pouring.pour(free), expected);
        }
    }
}
