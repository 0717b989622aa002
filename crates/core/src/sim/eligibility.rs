//! When jobs become eligible: what has to happen to others first, begin times, and holds.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use crate::job::UserId;
use crate::structure::{Held, Need, Ties, When};
use crate::units::{Instant, JobId, Span};

/// Who is held back.
pub(super) struct Eligibility {
    waiting: HashMap<JobId, Waiting>,
    /// Who waits for something to happen to a job: which need of whom.
    heard_by: HashMap<JobId, Vec<(JobId, usize)>>,
    /// When begin times and delays have passed, and holds end.
    timers: BinaryHeap<Reverse<(Instant, JobId)>>,
    /// Jobs of one user and one name, as far as they matter.
    names: HashMap<JobId, (Option<UserId>, u32)>,
    /// Those of a name that are submitted and not over.
    alive: HashMap<(Option<UserId>, u32), Alive>,
    /// Those that failed when they really ran.
    failed: BTreeSet<JobId>,
    /// Whether those whose dependency cannot be fulfilled are cancelled.
    cancels: bool,
    /// How many were submitted and are held back.
    held: usize,
    /// What is to be told to others.
    news: Vec<(JobId, Fate)>,
}

/// What happens to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It starts.
    Started,
    /// It ended, well or not.
    Ended { well: bool },
    /// It was cancelled or refused before it started, which is no good end.
    Gone,
    /// A node that it ran on failed, and it waits again.
    ThrownOut,
    /// It waits for ever.
    Never,
}

/// What became of a job that was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may start from now on.
    Eligible,
    /// It never may.
    Never,
}

/// Jobs of a name, in order.
#[derive(Default)]
struct Alive {
    /// All that are submitted and not over.
    all: BTreeSet<JobId>,
    /// Those of them that run.
    running: BTreeSet<JobId>,
}

struct Waiting {
    held: Held,
    needs: Vec<State>,
    is_submitted: bool,
}

/// How far one need of a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many jobs have to do something, and some of them failed already.
    Open { left: usize, failed: bool },
    /// It is fulfilled from then on.
    Fulfilled(Instant),
    /// It cannot be fulfilled.
    Impossible,
}

impl Eligibility {
    pub(super) fn of(ties: Ties, cancels: bool) -> Self {
        let mut heard_by: HashMap<JobId, Vec<(JobId, usize)>> = HashMap::new();
        let mut waiting = HashMap::new();
        let mut ids: Vec<JobId> = ties.of_jobs.keys().copied().collect();
        ids.sort_unstable();
        let mut of_jobs = ties.of_jobs;
        for id in ids {
            let Some(held) = of_jobs.remove(&id) else { continue };
            let mut needs = Vec::new();
            for (place, need) in held.needs.iter().enumerate() {
                let left = match need {
                    Need::Alone => 0,
                    Need::Jobs { jobs, .. } => {
                        for job in jobs {
                            heard_by.entry(*job).or_default().push((id, place));
                        }
                        jobs.len()
                    }
                };
                needs.push(State::Open { left, failed: false });
            }
            waiting.insert(id, Waiting { held, needs, is_submitted: false });
        }
        Eligibility {
            waiting,
            heard_by,
            timers: BinaryHeap::new(),
            names: ties.names,
            alive: HashMap::new(),
            failed: ties.failed.into_iter().collect(),
            cancels,
            held: 0,
            news: Vec::new(),
        }
    }

    /// When somebody may become eligible next who waits for no other job.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        if !self.news.is_empty() {
            return Some(now);
        }
        self.timers.peek().map(|next| next.0.0.max(now))
    }

    /// How many jobs were submitted and are held back.
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Whether a job ended well that ran to its end.
    pub(super) fn ends_well(&self, job: JobId) -> bool {
        !self.failed.contains(&job)
    }

    /// A job is submitted. Says whether it is eligible; if not, it is judged when [asked](Self::due).
    pub(super) fn submit(&mut self, job: JobId, now: Instant) -> bool {
        if let Some(name) = self.names.get(&job) {
            self.alive.entry(*name).or_default().all.insert(job);
        }
        let Some(waiting) = self.waiting.get_mut(&job) else { return true };
        waiting.is_submitted = true;
        self.held += 1;
        self.timers.push(Reverse((now, job)));
        false
    }

    /// Something happens to a job. Jobs that wait for it are judged when [asked](Self::due).
    pub(super) fn tell(&mut self, job: JobId, fate: Fate) {
        if self.heard_by.contains_key(&job) || self.names.contains_key(&job) {
            self.news.push((job, fate));
        }
    }

    /// The next job whose waiting is over, with what became of it.
    pub(super) fn due(&mut self, now: Instant) -> Option<(JobId, Verdict)> {
        loop {
            while let Some((job, fate)) = self.news.pop() {
                self.hear(job, fate, now);
            }
            let next = self.timers.peek().filter(|next| next.0.0 <= now)?.0.1;
            self.timers.pop();
            if let Some(verdict) = self.judge(next, now) {
                return Some((next, verdict));
            }
        }
    }

    /// Tells those who wait for a job what happened to it.
    fn hear(&mut self, job: JobId, fate: Fate, now: Instant) {
        for (other, place) in self.heard_by.get(&job).cloned().unwrap_or_default() {
            let Some(waiting) = self.waiting.get_mut(&other) else { continue };
            let Need::Jobs { when, delay, .. } = waiting.held.needs[place] else { continue };
            let state = &mut waiting.needs[place];
            *state = state.after(when, delay, fate, now);
            if !matches!(state, State::Open { .. }) && waiting.is_submitted {
                self.timers.push(Reverse((now, other)));
            }
        }
        let Some(name) = self.names.get(&job) else { return };
        let alive = self.alive.entry(*name).or_default();
        match fate {
            Fate::Started => _ = alive.running.insert(job),
            Fate::ThrownOut => _ = alive.running.remove(&job),
            Fate::Ended { .. } | Fate::Gone => {
                alive.all.remove(&job);
                alive.running.remove(&job);
            }
            Fate::Never => {}
        }
        // The first one may be alone now, if it waits at all.
        if let Some(first) = alive.all.first().copied()
            && self.waiting.contains_key(&first)
        {
            self.timers.push(Reverse((now, first)));
        }
    }

    /// What becomes of a job that was submitted and held back; nothing while it has to wait on.
    fn judge(&mut self, job: JobId, now: Instant) -> Option<Verdict> {
        let waiting = self.waiting.get(&job).filter(|waiting| waiting.is_submitted)?;
        let Waiting { held, needs, .. } = waiting;
        let is_alone = || {
            let alive = self.names.get(&job).and_then(|name| self.alive.get(name));
            alive.is_none_or(|alive| alive.running.is_empty() && alive.all.first() == Some(&job))
        };
        let from = held.needs.iter().zip(needs).map(|(need, state)| match (need, state) {
            (Need::Alone, _) => is_alone().then_some(Instant::ZERO).ok_or(false),
            (_, State::Fulfilled(at)) => Ok(*at),
            (_, State::Impossible) => Err(true),
            (_, State::Open { .. }) => Err(false),
        });
        let from: Vec<Result<Instant, bool>> = from.collect();
        let is_impossible = |need: &Result<Instant, bool>| *need == Err(true);
        let (from, never) = match held.any && !from.is_empty() {
            true => {
                (from.iter().filter_map(|need| need.ok()).min(), from.iter().all(is_impossible))
            }
            false => (
                from.iter()
                    .copied()
                    .try_fold(Instant::ZERO, |latest, need| Some(latest.max(need.ok()?))),
                from.iter().any(is_impossible),
            ),
        };
        if never {
            return Some(self.settle(job, Verdict::Never));
        }
        let mut at = from?.max(held.begin.unwrap_or(Instant::ZERO)).max(now);
        for hold in &held.holds {
            if hold.contains(&at) {
                at = hold.end;
            }
        }
        if at > now {
            if at < Instant::NEVER {
                self.timers.push(Reverse((at, job)));
            }
            return None;
        }
        Some(self.settle(job, Verdict::Eligible))
    }

    fn settle(&mut self, job: JobId, verdict: Verdict) -> Verdict {
        self.waiting.remove(&job);
        self.held -= 1;
        if verdict == Verdict::Never {
            let fate = if self.cancels { Fate::Gone } else { Fate::Never };
            self.tell(job, fate);
        }
        verdict
    }
}

impl State {
    /// What becomes of a need when something happens to one of its jobs. That one starts is told once.
    fn after(self, when: When, delay: Span, fate: Fate, now: Instant) -> State {
        let State::Open { left, failed } = self else { return self };
        let (counts, fails) = match (when, fate) {
            (_, Fate::Never) => return State::Impossible,
            (_, Fate::ThrownOut) => return self,
            (When::Started, Fate::Started | Fate::Gone) => (true, false),
            // Who starts is heard of again at the end, and who ends has been heard of at the start.
            (When::Started, Fate::Ended { .. }) | (_, Fate::Started) => return self,
            (_, Fate::Ended { well }) => (true, !well),
            (_, Fate::Gone) => (true, true),
        };
        let (left, failed) = (left - usize::from(counts), failed || fails);
        if left > 0 {
            return State::Open { left, failed };
        }
        let is_fulfilled = match when {
            When::Started | When::Ended => true,
            When::EndedWell | When::Corresponding => !failed,
            When::Failed => failed,
        };
        if is_fulfilled { State::Fulfilled(now + delay) } else { State::Impossible }
    }
}
