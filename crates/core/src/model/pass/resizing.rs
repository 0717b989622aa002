//! The time that a running job needs to change its number of nodes.
//!
//! Its data has to move, and new nodes have to boot. The nodes of a job are a cuboid of a 3-D torus,
//! and what moves has to pass the middle of the smaller of the two cuboids, the one before an
//! expansion or after a shrinkage: 2·s^(2/3) links for s nodes. On f nodes each holds 1/f of the
//! data, on t nodes 1/t; what moves is 1 − f/t of all of it if the job expands from f to t nodes, and
//! 1 − t/f, that of the released nodes, if it shrinks.
//!
//! Jobs that change in the same decision wait for each other, and for the slowest twice: see
//! [`Resizing::delay`].

use super::{OutOfRange, checked};
use crate::units::Span;

/// What a machine takes to move data and to boot nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resizing {
    link_megabytes_per_second: f64,
    boot_seconds: f64,
    boot_seconds_per_node: f64,
}

impl Resizing {
    /// Seconds to boot, however few nodes, as published.
    const BOOT_SECONDS: f64 = 72.73;
    /// Seconds more for each node that boots, as published.
    const BOOT_SECONDS_PER_NODE: f64 = 0.01904;

    /// The assumption by default: links like those of a Blue Gene/P, and the published boot times.
    pub(crate) const ASSUMED: Resizing = Resizing {
        link_megabytes_per_second: 425.0,
        boot_seconds: Resizing::BOOT_SECONDS,
        boot_seconds_per_node: Resizing::BOOT_SECONDS_PER_NODE,
    };

    /// Data of a job that has to move when its number of nodes changes, for each node asked for.
    const MEGABYTES_PER_NODE: f64 = 512.0;

    /// How long a job takes that asked for this many nodes.
    pub(crate) fn time_of_job(&self, asked: u32, from: u32, to: u32) -> Span {
        let megabytes = f64::from(asked) * Resizing::MEGABYTES_PER_NODE;
        // Numbers of nodes are above zero, and no machine is so large that this fails.
        self.time(megabytes, from, to).unwrap_or(Span::FOREVER)
    }

    /// A torus with links of so many megabytes a second, and the published boot times.
    ///
    /// # Errors
    ///
    /// If the links carry nothing.
    #[cfg(test)]
    fn over_links(megabytes_per_second: f64) -> Result<Self, OutOfRange> {
        Resizing::new(megabytes_per_second, Resizing::BOOT_SECONDS, Resizing::BOOT_SECONDS_PER_NODE)
    }

    /// A torus with these links and boot times.
    ///
    /// # Errors
    ///
    /// If the links carry nothing, or a time is negative.
    pub fn new(
        link_megabytes_per_second: f64,
        boot_seconds: f64,
        boot_seconds_per_node: f64,
    ) -> Result<Self, OutOfRange> {
        let (link, boot, node) = (link_megabytes_per_second, boot_seconds, boot_seconds_per_node);
        Ok(Resizing {
            link_megabytes_per_second: checked(
                "the bandwidth of a link in MB/s",
                link,
                link > 0.0,
                "above zero",
            )?,
            boot_seconds: checked("the time to boot", boot, boot >= 0.0, "at least zero")?,
            boot_seconds_per_node: checked(
                "the time to boot another node",
                node,
                node >= 0.0,
                "at least zero",
            )?,
        })
    }

    /// The seconds in which the data of a job, so many megabytes on all its nodes together, moves.
    fn transfer_seconds(&self, megabytes: f64, from: u32, to: u32) -> f64 {
        let (fewer, more) = (f64::from(from.min(to)), f64::from(from.max(to)));
        let moved_megabytes = megabytes * (more - fewer) / more;
        let links = 2.0 * libm::cbrt(fewer).powi(2);
        moved_megabytes / (self.link_megabytes_per_second * links)
    }

    /// The seconds in which the nodes boot that a job gets.
    fn boot_seconds(&self, from: u32, to: u32) -> f64 {
        match to.saturating_sub(from) {
            0 => 0.0,
            new => f64::from(new) * self.boot_seconds_per_node + self.boot_seconds,
        }
    }

    /// How long it takes a job with so many megabytes of data to go from one number of nodes to
    /// another, rounded up; no time if nothing changes. Nothing, if there is no node before or
    /// after, if the data is negative or no number, or if it takes beyond all measure.
    pub fn time(&self, megabytes: f64, from: u32, to: u32) -> Option<Span> {
        if from == 0 || to == 0 || !(megabytes >= 0.0 && megabytes.is_finite()) {
            return None;
        }
        if from == to {
            return Some(Span::ZERO);
        }
        let seconds = self.transfer_seconds(megabytes, from, to) + self.boot_seconds(from, to);
        Span::from_secs_f64_rounded_up(seconds)
    }

    /// By how much all jobs are delayed that change in one decision, by the time that each of them
    /// takes: twice the longest.
    pub fn delay(times: impl IntoIterator<Item = Span>) -> Span {
        let longest = times.into_iter().max().unwrap_or(Span::ZERO);
        longest + longest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn costs_worked_out_by_hand() {
        let torus = Resizing::over_links(100.0).unwrap();
        // Data of 64 000 MB on 8 nodes, then on 64. Expanding: (8000 − 1000)·8 = 56 000 MB over
        // 2·8^(2/3) = 8 links of 100 MB/s take 70 s; 56 new nodes boot in 56·0.01904 + 72.73 =
        // 73.79624 s. Together 143.79624 s.
        assert_eq!(torus.time(64_000.0, 8, 64), Some(Span::from_millis(143_797)));
        // Shrinking: the 1000 MB of each of 56 nodes over the same 8 links; nothing boots.
        assert_eq!(torus.time(64_000.0, 64, 8), Some(Span::from_secs(70)));
        // 27 to 8 nodes: 27 000 MB · 19/27 = 19 000 MB over 8 links are 23.75 s.
        assert_eq!(torus.time(27_000.0, 27, 8), Some(Span::from_millis(23_750)));
        assert_eq!(torus.time(64_000.0, 8, 8), Some(Span::ZERO));
        // No data, one node more: 72.74904 s.
        assert_eq!(torus.time(0.0, 1, 2), Some(Span::from_millis(72_750)));
    }

    #[test]
    fn jobs_wait_twice_for_the_slowest() {
        let times = [3, 70, 5].map(Span::from_secs);
        assert_eq!(Resizing::delay(times), Span::from_secs(140));
        assert_eq!(Resizing::delay([]), Span::ZERO);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let torus = Resizing::over_links(100.0).unwrap();
        for (megabytes, from, to) in [
            (1.0, 0, 4),
            (1.0, 4, 0),
            (-1.0, 1, 2),
            (f64::NAN, 1, 1),
            (f64::INFINITY, 1, 2),
            (f64::MAX, 1, 2),
        ] {
            assert_eq!(torus.time(megabytes, from, to), None, "{megabytes} MB, {from} to {to}");
        }
        assert_eq!(
            Resizing::over_links(0.0).unwrap_err().to_string(),
            "the bandwidth of a link in MB/s is 0; it must be above zero"
        );
        assert!(Resizing::new(1.0, -1.0, 0.0).is_err() && Resizing::new(1.0, 0.0, -1.0).is_err());
    }

    proptest! {
        /// As published: what each old node gives away, times the old nodes; or what each released
        /// node holds, times those.
        #[test]
        fn what_moves_is_what_was_published(
            megabytes in 0.0..1e9f64, from in 1..50_000u32, to in 1..50_000u32,
        ) {
            let torus = Resizing::over_links(425.0).unwrap();
            let (f, t) = (f64::from(from), f64::from(to));
            let seconds = if to >= from {
                (megabytes / f - megabytes / t) * f / (2.0 * 425.0 * f.powf(2.0 / 3.0))
            } else {
                megabytes / f * (f - t) / (2.0 * 425.0 * t.powf(2.0 / 3.0))
            };
            let said = torus.transfer_seconds(megabytes, from, to);
            prop_assert!((said - seconds).abs() <= 1e-9 * megabytes / 425.0, "{said} {seconds}");
        }

        #[test]
        fn expanding_takes_as_long_as_shrinking_back_and_booting(
            megabytes in 0.0..1e9f64, few in 1..50_000u32, more in 1..50_000u32,
        ) {
            let torus = Resizing::over_links(425.0).unwrap();
            let to = few + more;
            let (out, back) = (torus.time(megabytes, few, to), torus.time(megabytes, to, few));
            let (out, back) = (out.unwrap().secs_f64(), back.unwrap().secs_f64());
            let boot = f64::from(more) * 0.01904 + 72.73;
            prop_assert!((out - back - boot).abs() < 2e-3, "{out} {back} {boot}");
        }
    }
}
