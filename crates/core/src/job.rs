//! A job: what a user asks for.
//!
//! How long the job then really runs is not part of it: that is known to the simulated world
//! alone ([`Workload`](crate::workload::Workload) keeps it apart), so that no policy can peek.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::units::{Instant, QuantityError, Share, Span, Watts, parse_decimal};
use crate::utility::UtilityId;

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Job {
    /// The number the user or the log knows the job by.
    pub number: u64,
    /// When it was submitted.
    pub submit: Instant,
    /// How long the user says it will run at the nominal operating point; its limit.
    pub requested: Span,
    /// How many nodes it asks for; at least one.
    pub nodes: u32,
    /// How many processors it asks for, where nodes have several; on whole nodes it may get more.
    pub processors: u32,
    /// The user who submitted it, if the log names one.
    pub user: Option<UserId>,
    /// The group or the account that it belongs to, where the log says so.
    pub group: Option<GroupId>,
    /// Which application it runs, where the log says so.
    pub application: Option<ApplicationId>,
    /// What it was submitted to, where the log says so.
    pub entry: Entry,
    /// What else its user and the site agreed on.
    pub terms: Terms,
}

impl Job {
    /// A request for nodes and time, and nothing else said.
    #[inline]
    pub fn new(number: u64, submit: Instant, nodes: u32, requested: Span) -> Self {
        Job {
            number,
            submit,
            requested,
            nodes,
            processors: nodes,
            user: None,
            group: None,
            application: None,
            entry: Entry::default(),
            terms: Terms::default(),
        }
    }
}

/// What a job was submitted to, by the log's numbers; 0 is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The queue, or the quality of service.
    pub queue: u16,
    /// The part of the machine.
    pub partition: u16,
}

impl Entry {
    /// A queue and a partition. Numbers of more than 16 bits, and below zero, count as not known.
    #[inline]
    pub fn of(queue: i64, partition: i64) -> Self {
        let number = |number: i64| u16::try_from(number).unwrap_or(0);
        Entry { queue: number(queue), partition: number(partition) }
    }
}

/// The terms of a job: what it is worth to the site, and what its user puts up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// How much more than others of its size it may have.
    pub weight: Weight,
    /// How much longer than asked for it may take; if its user does not say, what the policy says.
    pub tolerance: Option<Tolerance>,
    /// What its completion is worth by when it comes, where that is agreed on.
    pub utility: Option<UtilityId>,
    /// On how many nodes it can run at all, if its user says so. It binds models in which jobs run on
    /// several numbers of nodes.
    pub nodes: Option<NodeRange>,
}

/// The fewest and the most nodes that a job can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeRange {
    fewest: NonZeroU32,
    most: NonZeroU32,
}

impl NodeRange {
    /// From the fewest to the most; `None` if that is nothing.
    pub fn new(fewest: u32, most: u32) -> Option<Self> {
        let (fewest, most) = (NonZeroU32::new(fewest)?, NonZeroU32::new(most)?);
        (fewest <= most).then_some(NodeRange { fewest, most })
    }

    /// The fewest nodes.
    pub fn fewest(self) -> u32 {
        self.fewest.get()
    }

    /// The most nodes.
    pub fn most(self) -> u32 {
        self.most.get()
    }

    /// Whether this many nodes are neither too few nor too many.
    pub(crate) fn contains(self, nodes: u32) -> bool {
        (self.fewest()..=self.most()).contains(&nodes)
    }
}

/// Reads `2-8`, or `4` for just so many.
impl FromStr for NodeRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (fewest, most) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| {
            let text = text.trim();
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|number| digits && *number > 0).ok_or_else(|| {
                format!("'{text}' is not a number of nodes; write a range such as 2-8")
            })
        };
        let (fewest, most) = (number(fewest)?, number(most)?);
        NodeRange::new(fewest, most)
            .ok_or_else(|| format!("'{text}': {fewest} is more than {most}; write it as 2-8"))
    }
}

impl fmt::Display for NodeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fewest == self.most {
            true => self.most.fmt(f),
            false => write!(f, "{}-{}", self.fewest, self.most),
        }
    }
}

/// A priority weight, in thousandths: by so much a job's fair share is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZeroU32);

impl Weight {
    const THOUSAND: NonZeroU32 = NonZeroU32::new(1000).unwrap();

    /// The value in thousandths.
    #[inline]
    pub fn thousandths(self) -> u32 {
        self.0.get()
    }

    /// So many times this power, rounded down: a limit is never exceeded.
    #[inline]
    pub fn times(self, power: Watts) -> Watts {
        let product = u128::from(power.milliwatts()) * u128::from(self.0.get()) / 1000;
        Watts::from_milliwatts(product.min(u128::from(Watts::UNLIMITED.milliwatts())) as u64)
    }
}

/// As much as anybody.
impl Default for Weight {
    fn default() -> Self {
        Weight(Weight::THOUSAND)
    }
}

/// Reads `2` or `0.25`.
impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let thousandths = parse_decimal(text, 1000).map_err(|error| error.to_string())?;
        let thousandths = u32::try_from(thousandths).ok().and_then(NonZeroU32::new);
        thousandths.map(Weight).ok_or_else(|| format!("'{text}' is not from 0.001 to 4294967"))
    }
}

/// How much longer than asked for a job may take so that it need not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tolerance {
    /// By at most this share.
    Slowdown(Share),
    /// The job may take however long it takes.
    Unbounded,
}

impl Tolerance {
    /// Whether a job may take so long that asked for so much.
    #[inline]
    pub fn accepts(self, time: Span, requested: Span) -> bool {
        match self {
            Tolerance::Unbounded => true,
            Tolerance::Slowdown(share) => {
                let whole = Share::WHOLE.millionths();
                let at_most = whole.saturating_add(share.millionths());
                u128::from(time.millis()) * u128::from(whole)
                    <= u128::from(requested.millis()) * u128::from(at_most)
            }
        }
    }

    /// The longest that a job may take that asked for so much: whatever is [accepted](Tolerance::accepts) is no longer, and
    /// what is longer is not accepted.
    #[inline]
    pub fn longest(self, requested: Span) -> Span {
        match self {
            Tolerance::Unbounded => Span::FOREVER,
            Tolerance::Slowdown(share) => {
                let whole = Share::WHOLE.millionths();
                let at_most = whole.saturating_add(share.millionths());
                if let Some(product) = requested.millis().checked_mul(at_most) {
                    return Span::from_millis(product / whole);
                }
                let most = u128::from(requested.millis()) * u128::from(at_most) / u128::from(whole);
                Span::from_millis(u64::try_from(most).unwrap_or(u64::MAX))
            }
        }
    }

    /// The least a job may have asked for that is to take so long.
    #[inline]
    pub(crate) fn least_request(self, time: Span) -> Span {
        match self {
            Tolerance::Unbounded => Span::ZERO,
            Tolerance::Slowdown(share) => {
                let whole = Share::WHOLE.millionths();
                let at_most = whole.saturating_add(share.millionths());
                let least = u128::from(time.millis()) * u128::from(whole);
                Span::from_millis(least.div_ceil(u128::from(at_most)) as u64)
            }
        }
    }
}

/// Reads `10%` or `unbounded`.
impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "unbounded" => Ok(Tolerance::Unbounded),
            share => {
                let share = share.parse();
                let share =
                    share.map_err(|error: QuantityError| format!("{error}, or unbounded"))?;
                Ok(Tolerance::Slowdown(share))
            }
        }
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Slowdown(share) => share.fmt(f),
            Tolerance::Unbounded => f.write_str("unbounded"),
        }
    }
}

/// A user, by the log's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserId(pub NonZeroU32);

/// A group of users or an account, by the log's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub NonZeroU32);

/// An application, by the log's executable number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApplicationId(pub NonZeroU32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_request_is_just_accepted() {
        for percent in ["0%", "10%", "33.3%", "1844674407370955%"] {
            let tolerance: Tolerance = percent.parse().unwrap();
            for millis in [0, 1, 7, 439_200, 1 << 50] {
                let time = Span::from_millis(millis);
                let least = tolerance.least_request(time);
                assert!(tolerance.accepts(time, least), "{percent} of {millis}");
                let less = least.millis().checked_sub(1).map(Span::from_millis);
                assert!(less.is_none_or(|less| !tolerance.accepts(time, less)));
            }
        }
        assert_eq!(Tolerance::Unbounded.least_request(Span::from_secs(1)), Span::ZERO);
    }

    #[test]
    fn the_longest_is_just_accepted() {
        for percent in ["0%", "10%", "33.3%", "1844674407370955%"] {
            let tolerance: Tolerance = percent.parse().unwrap();
            for millis in [0, 1, 7, 439_200, 1 << 40] {
                let requested = Span::from_millis(millis);
                let longest = tolerance.longest(requested);
                assert!(tolerance.accepts(longest, requested), "{percent} of {millis}");
                let more = longest.millis().checked_add(1).map(Span::from_millis);
                assert!(more.is_none_or(|more| !tolerance.accepts(more, requested)));
            }
        }
        assert_eq!(Tolerance::Unbounded.longest(Span::from_secs(1)), Span::FOREVER);
    }

    #[test]
    fn ranges_of_nodes_read_what_they_print() {
        for (text, fewest, most) in [("2-8", 2, 8), ("4", 4, 4), ("1-4294967295", 1, u32::MAX)] {
            let range: NodeRange = text.parse().unwrap();
            assert_eq!((range.fewest(), range.most()), (fewest, most));
            assert_eq!(range.to_string(), text);
        }
        assert_eq!(" 2 - 8 ".parse(), Ok(NodeRange::new(2, 8).unwrap()));
        assert_eq!("4-4".parse::<NodeRange>().unwrap().to_string(), "4");
        let range = NodeRange::new(2, 8).unwrap();
        assert_eq!([1, 2, 8, 9].map(|nodes| range.contains(nodes)), [false, true, true, false]);
        for wrong in ["", "-", "0-4", "8-2", "2-", "-8", "+2-8", "2-8-9", "x", "4294967296"] {
            assert!(wrong.parse::<NodeRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn weights_are_exact_and_never_round_up() {
        let weight = |text: &str| text.parse::<Weight>().unwrap();
        assert_eq!(weight("1"), Weight::default());
        assert_eq!(weight("0.001").times(Watts::from_milliwatts(1999)), Watts::from_milliwatts(1));
        assert_eq!(weight("2.5").times(Watts::from_watts(300)), Watts::from_watts(750));
        for wrong in ["0", "-1", "x", "", "0.0001", "4294968"] {
            assert!(wrong.parse::<Weight>().is_err(), "{wrong}");
        }
    }
}
