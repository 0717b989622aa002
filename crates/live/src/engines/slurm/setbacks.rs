//! Jobs that were released, and that Slurm did not place.
//!
//! Slurm's reason is the truth: constraints, reservations, nodes that are busy with others' jobs, limits of an account. Such a job
//! is held again, so that its power is free for others, and waits beside the daemon's queue. It is offered again when what it
//! needs could be there, as far as nodes tell, and after a pause that grows. A job that only competes with others for nodes must
//! not lose for ever: after some times it stays released, and Slurm keeps nodes for it in its own order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use busbar_slurm::model::{Job, Node};

/// How often a job is held again that competes with others for nodes.
const MOST_TIMES: u32 = 5;

/// The longest pause before a job is offered again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What to do with a job that was released and waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Slurm may still place it.
    Wait,
    /// It is to be held again, for this reason.
    TakeBack(String),
    /// It stays released from now on.
    Stay,
}

/// All jobs that were not placed.
pub(super) struct Setbacks {
    of: BTreeMap<String, Setback>,
    /// How long Slurm may take to place a job without giving a reason for its wait.
    patience: Duration,
}

struct Setback {
    times: u32,
    last: Instant,
    stays: bool,
}

impl Setbacks {
    pub(super) fn new(patience: Duration) -> Self {
        Setbacks { of: BTreeMap::new(), patience }
    }

    /// How long a job waits that Slurm has considered and not placed; and the first pause before it is tried again.
    fn short(&self) -> Duration {
        self.patience / 5
    }

    /// What to do with a job that was released so long ago.
    pub(super) fn decide(&mut self, handle: &str, job: &Job, waited: Duration) -> Decision {
        // What it said of the hold says nothing of the nodes.
        let said = job.reason.as_deref();
        let reason = said.filter(|reason| !reason.starts_with("JobHeld"));
        if job.hold.is_some() {
            return Decision::TakeBack(text(said));
        }
        let longest = if reason.is_some() { self.short() } else { self.patience };
        if waited < longest {
            return Decision::Wait;
        }
        match self.of.get_mut(handle) {
            Some(setback) if competes(reason) && setback.stays => Decision::Wait,
            Some(setback) if competes(reason) && setback.times >= MOST_TIMES => {
                setback.stays = true;
                Decision::Stay
            }
            _ => Decision::TakeBack(text(reason)),
        }
    }

    /// A job was held again.
    pub(super) fn note(&mut self, handle: &str) {
        let last = Instant::now();
        let setback =
            self.of.entry(handle.to_owned()).or_insert(Setback { times: 0, last, stays: false });
        (setback.times, setback.last, setback.stays) = (setback.times + 1, last, false);
    }

    /// A job was placed.
    pub(super) fn forget(&mut self, handle: &str) {
        self.of.remove(handle);
    }

    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.of.retain(|handle, _| is_there(handle));
    }

    /// Whether a job may be offered again: it has paused, and there may be nodes for it.
    pub(super) fn may_start(&self, handle: &str, job: &Job, nodes: &[Node]) -> bool {
        self.has_paused(handle) && may_have_nodes(job, nodes)
    }

    /// Whether a job that was not placed has waited for long enough.
    pub(super) fn has_paused(&self, handle: &str) -> bool {
        self.of.get(handle).is_none_or(|setback| {
            let factor = 1u32.checked_shl(setback.times.saturating_sub(1)).unwrap_or(u32::MAX);
            setback.last.elapsed() >= self.short().saturating_mul(factor).min(LONGEST_PAUSE)
        })
    }
}

/// Whether a job waits because others have what it needs, or come first.
fn competes(reason: Option<&str>) -> bool {
    matches!(reason, None | Some("Resources" | "Priority"))
}

fn text(reason: Option<&str>) -> String {
    format!("Slurm did not place it: {}", reason.unwrap_or("no reason given"))
}

/// Whether there may be nodes for a job: those that it must get, and as many as it needs, are idle, in its partition, and not
/// reserved for others. Slurm may know of more that is missing.
fn may_have_nodes(job: &Job, nodes: &[Node]) -> bool {
    let may_have = |node: &&Node| {
        let is_idle = node.state.is_usable() && !node.state.is_busy();
        let is_reserved = node.state.has("RESERVED") && job.reservation.is_none();
        let shares = |partition: &String| job.partitions.contains(partition);
        is_idle
            && !is_reserved
            && (node.partitions.is_empty() || node.partitions.iter().any(shares))
    };
    let names: BTreeSet<&str> =
        nodes.iter().filter(may_have).map(|node| node.name.as_str()).collect();
    let has_required = job.required.names().iter().all(|name| names.contains(name.as_str()));
    has_required && names.len() >= job.nodes_min.max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::slurm::tests::held;
    use busbar_slurm::model::NodeState;

    fn released(reason: Option<&str>) -> Job {
        Job { hold: None, reason: reason.map(str::to_owned), ..held(7) }
    }

    #[test]
    fn who_competes_stays_released_in_the_end() {
        let mut setbacks = Setbacks::new(Duration::from_secs(20));
        let (soon, late) = (Duration::from_secs(4), Duration::from_secs(20));
        let (unknown, busy, other) =
            (released(None), released(Some("Resources")), released(Some("BadConstraints")));
        assert_eq!(setbacks.decide("7", &unknown, soon), Decision::Wait);
        assert!(matches!(setbacks.decide("7", &unknown, late), Decision::TakeBack(_)));
        assert_eq!(setbacks.decide("7", &busy, soon / 2), Decision::Wait);
        for _ in 0..MOST_TIMES {
            assert!(matches!(setbacks.decide("7", &busy, soon), Decision::TakeBack(_)));
            setbacks.note("7");
        }
        assert_eq!(setbacks.decide("7", &busy, soon), Decision::Stay);
        assert_eq!(setbacks.decide("7", &busy, late), Decision::Wait, "that is said once");
        let Decision::TakeBack(reason) = setbacks.decide("7", &other, soon) else { panic!() };
        assert_eq!(reason, "Slurm did not place it: BadConstraints", "nobody has what it needs");
        assert!(matches!(setbacks.decide("7", &held(7), soon / 9), Decision::TakeBack(_)));
    }

    #[test]
    fn nodes_tell_whether_a_job_may_start() {
        let node = |name: &str, state: &str| Node {
            name: name.to_owned(),
            state: NodeState::of_words(state.split('+')),
            partitions: vec!["main".to_owned()],
            ..Node::default()
        };
        let two = |one: &str, other: &str| [node("n1", one), node("n2", other)];
        let job = held(7);
        assert!(may_have_nodes(&job, &two("IDLE", "IDLE")));
        assert!(!may_have_nodes(&job, &two("IDLE", "MIXED")));
        assert!(!may_have_nodes(&job, &two("IDLE", "IDLE+DRAIN")));
        assert!(!may_have_nodes(&job, &two("IDLE", "IDLE+RESERVED")));
        let elsewhere = Job { partitions: vec!["other".to_owned()], ..held(7) };
        assert!(!may_have_nodes(&elsewhere, &two("IDLE", "IDLE")));
        let one = Job { nodes_min: 1, required: "n2".parse().unwrap(), ..held(7) };
        assert!(may_have_nodes(&one, &two("MIXED", "IDLE")));
        assert!(!may_have_nodes(&one, &two("IDLE", "MIXED")));
        let reserved = Job { reservation: Some("mine".to_owned()), ..held(7) };
        assert!(may_have_nodes(&reserved, &two("IDLE+RESERVED", "IDLE+RESERVED")));
    }
}
