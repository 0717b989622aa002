//! The conventional dispatcher that PPartition works with: three queues by size. Large jobs come
//! first; then small and medium ones, who fill what is left, in the order in which they came.
//!
//! Who does not fit waits until something comes free. Jobs that ask for the same number of nodes for
//! the same application are of one kind: what is refused to one of them is refused to all. So a turn
//! looks at each kind at most once more than it starts jobs, however many wait, and where nothing
//! came free only at kinds that were not refused before.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::units::JobId;

/// Which queue a job stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Up to the smaller of two sizes.
    Small,
    /// The queue of jobs between the two.
    Medium,
    /// From the larger one on.
    Large,
}

/// The sizes that divide jobs into queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The largest size of a small job.
    small: u32,
    /// The smallest size of a large one.
    large: u32,
}

impl Sizes {
    fn class(self, nodes: u32) -> Class {
        match nodes {
            nodes if nodes >= self.large => Class::Large,
            nodes if nodes <= self.small => Class::Small,
            _ => Class::Medium,
        }
    }
}

/// As in the paper.
impl Default for Sizes {
    fn default() -> Self {
        Sizes { small: 4, large: 64 }
    }
}

/// Reads `4/64`.
impl FromStr for Sizes {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (small, large) = text.split_once('/').ok_or("write two sizes, such as 4/64")?;
        let read = |text: &str| text.trim().parse::<NonZeroU32>().map(NonZeroU32::get);
        let (Ok(small), Ok(large)) = (read(small), read(large)) else {
            return Err("write two sizes above zero in plain digits, such as 4/64");
        };
        if small >= large {
            return Err("the size of small jobs must be below that of large ones");
        }
        Ok(Sizes { small, large })
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.small, self.large)
    }
}

/// What becomes of the others if a job does not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// It is passed over.
    #[default]
    Skip,
    /// Those behind it in its queue wait, too; the other queues go on.
    Close,
    /// All others wait, too.
    Stop,
}

impl Rule {
    const ALL: [Rule; 3] = [Rule::Skip, Rule::Close, Rule::Stop];

    fn name(self) -> &'static str {
        match self {
            Rule::Skip => "skip",
            Rule::Close => "close",
            Rule::Stop => "stop",
        }
    }
}

impl FromStr for Rule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Rule::ALL.into_iter().find(|rule| rule.name() == text).ok_or("valid: skip, close, stop")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The queues and the rule among them: parameters that several policies have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queueing {
    /// How jobs are divided.
    pub sizes: Sizes,
    /// What becomes of the others if a job does not fit.
    pub rule: Rule,
}

/// Jobs that nobody needs to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) nodes: u32,
    pub(super) application: usize,
    /// Whether they may also run on fewer nodes than they ask for.
    pub(super) is_moldable: bool,
}

/// The jobs that wait.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ThreeQueues {
    queueing: Queueing,
    kinds: BTreeMap<Kind, BTreeSet<JobId>>,
    /// Whether something came free since the last turn. If not, all who waited then were refused, and still are.
    is_reopened: bool,
    /// Kinds of which nobody had waited.
    fresh: BTreeSet<Kind>,
    /// Classes that are closed since something came free.
    closed: BTreeSet<Class>,
}

/// A place in the order of a turn: large jobs first, then whoever came first.
type Place = Reverse<(bool, JobId, Kind)>;

/// The next job to consider in a turn.
pub(super) struct Turn {
    heads: BinaryHeap<Place>,
}

impl ThreeQueues {
    pub(super) fn new(queueing: Queueing) -> Self {
        ThreeQueues {
            queueing,
            kinds: BTreeMap::new(),
            is_reopened: false,
            fresh: BTreeSet::new(),
            closed: BTreeSet::new(),
        }
    }

    pub(super) fn insert(&mut self, job: JobId, kind: Kind) {
        let jobs = self.kinds.entry(kind).or_insert_with(|| {
            self.fresh.insert(kind);
            BTreeSet::new()
        });
        jobs.insert(job);
    }

    fn remove(&mut self, job: JobId, kind: Kind) {
        if let Some(jobs) = self.kinds.get_mut(&kind) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.kinds.remove(&kind);
            }
        }
    }

    /// Something came free: who was refused may be asked again.
    pub(super) fn reopen(&mut self) {
        self.is_reopened = true;
        self.closed.clear();
    }

    fn class(&self, kind: Kind) -> Class {
        self.queueing.sizes.class(kind.nodes)
    }

    fn is_open(&self, kind: Kind) -> bool {
        !self.closed.contains(&self.class(kind))
    }

    fn place(&self, kind: Kind) -> Option<Place> {
        let first = *self.kinds.get(&kind)?.first()?;
        Some(Reverse((self.class(kind) != Class::Large, first, kind)))
    }

    /// Everybody who may be asked, by kinds; it goes on until nobody is left. Who asks for more nodes than `most` is known
    /// to be refused, whoever else starts.
    pub(super) fn turn(&mut self, most: u32) -> Turn {
        let fresh = std::mem::take(&mut self.fresh);
        // Where it closes a queue that somebody does not fit, it matters when he is asked.
        let most = if self.queueing.rule == Rule::Skip { most } else { u32::MAX };
        let last = Kind { nodes: most, application: usize::MAX, is_moldable: true };
        let place = |kind: &Kind| self.place(*kind).filter(|_| self.is_open(*kind));
        let heads: Vec<Place> = match self.is_reopened {
            true => self.kinds.range(..=last).filter_map(|(kind, _)| place(kind)).collect(),
            false => fresh.range(..=last).filter_map(place).collect(),
        };
        self.is_reopened = false;
        Turn { heads: heads.into() }
    }
}

impl Turn {
    /// The next job to look at.
    pub(super) fn next(&mut self) -> Option<(JobId, Kind)> {
        self.heads.pop().map(|Reverse((_, job, kind))| (job, kind))
    }

    /// The job that was looked at starts, and leaves its queue.
    pub(super) fn started(&mut self, queues: &mut ThreeQueues, job: JobId, kind: Kind) {
        queues.remove(job, kind);
        self.heads.extend(queues.place(kind));
    }

    /// The job that was looked at does not fit.
    pub(super) fn refused(&mut self, queues: &mut ThreeQueues, kind: Kind) {
        match queues.queueing.rule {
            Rule::Skip => return,
            Rule::Close => queues.closed.insert(queues.class(kind)),
            Rule::Stop => {
                queues.closed.extend([Class::Small, Class::Medium, Class::Large]);
                true
            }
        };
        self.heads.retain(|Reverse((_, _, kind))| queues.is_open(*kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(rule: Rule, sizes: &[u32], refused: &[u32]) -> Vec<u32> {
        let mut queues = ThreeQueues::new(Queueing { rule, ..Queueing::default() });
        let kind = |nodes| Kind { nodes, application: 0, is_moldable: true };
        for (job, nodes) in (0..).zip(sizes) {
            queues.insert(JobId(job), kind(*nodes));
        }
        let mut turn = queues.turn(u32::MAX);
        let mut seen = Vec::new();
        while let Some((job, kind)) = turn.next() {
            seen.push(job.0);
            if refused.contains(&job.0) {
                turn.refused(&mut queues, kind);
            } else {
                turn.started(&mut queues, job, kind);
            }
        }
        let before = queues.clone();
        assert!(queues.turn(u32::MAX).next().is_none(), "who was refused is not asked again");
        queues.insert(JobId(99), kind(sizes[refused.first().map_or(0, |job| *job as usize)]));
        assert_eq!(queues.turn(u32::MAX).next().is_some(), refused.is_empty());
        queues.reopen();
        assert_eq!(
            queues.turn(u32::MAX).next().is_some(),
            !before.kinds.is_empty() || refused.is_empty()
        );
        seen
    }

    /// Who is seen not to fit before the turn is refused like who is asked in it.
    #[test]
    fn who_cannot_fit_need_not_be_asked() {
        for rule in Rule::ALL {
            let sizes = [2, 64, 16, 4, 100, 63, 2, 64, 16];
            let fits = |kind: Kind| kind.nodes <= 20;
            let started = |early: bool| {
                let mut queues = ThreeQueues::new(Queueing { rule, ..Queueing::default() });
                for (job, nodes) in (0..).zip(sizes) {
                    let kind = Kind { nodes, application: 0, is_moldable: true };
                    queues.insert(JobId(job), kind);
                }
                let mut turn = queues.turn(if early { 20 } else { u32::MAX });
                let mut started = Vec::new();
                while let Some((job, kind)) = turn.next() {
                    if fits(kind) {
                        started.push(job);
                        turn.started(&mut queues, job, kind);
                    } else {
                        turn.refused(&mut queues, kind);
                    }
                }
                (started, queues)
            };
            assert_eq!(started(true), started(false));
        }
    }

    #[test]
    fn large_ones_first_then_as_they_came() {
        let sizes = [2, 64, 16, 4, 100, 63, 2, 64];
        assert_eq!(order(Rule::Skip, &sizes, &[]), [1, 4, 7, 0, 2, 3, 5, 6]);
        // Jobs 1 and 7 are of one kind, and so are 0 and 6.
        assert_eq!(order(Rule::Skip, &sizes, &[1, 0]), [1, 4, 0, 2, 3, 5]);
        // The large queue is closed by its first job, the medium one by job 2.
        assert_eq!(order(Rule::Close, &sizes, &[1, 2]), [1, 0, 2, 3, 6]);
        assert_eq!(order(Rule::Stop, &sizes, &[0]), [1, 4, 7, 0]);
    }

    #[test]
    fn sizes_are_two_numbers() {
        assert_eq!("4/64".parse(), Ok(Sizes::default()));
        assert_eq!(" 1 / 2 ".parse::<Sizes>().map(|sizes| sizes.to_string()), Ok("1/2".to_owned()));
        for wrong in ["4", "0/4", "64/4", "4/4", "a/b", "-1/3"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
