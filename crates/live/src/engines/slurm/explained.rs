//! Why jobs wait, written where their users look: into the administrator's comment, behind Busbar's mark.
//!
//! The daemon [says](Explained::hear) now and then why each job waits. A [look](Explained::look) at the cluster finds those whose
//! comment says something else, the oldest first, and a few of these are [written](Explained::write) after it, while there is nothing
//! else to do. What Slurm shows is what counts, so that nothing is written again after a restart, and what could not be written is tried again later.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use busbar_slurm::cluster::{Cluster, JobUpdate};
use busbar_slurm::model::{Job, JobRef};
use busbar_slurm::setup::{self, MARK};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use super::known::{KnownJobs, Stage};
use crate::engine::Wait;

/// The most jobs whose comments are written after a look.
const AT_ONCE: usize = 20;

/// The most different comments that are written after a look, each by a command of its own.
const COMMANDS: usize = 4;

/// The shortest time between two changes of a comment, so that reasons which come and go do not keep slurmctld busy.
const PAUSE: Duration = Duration::from_secs(60);

/// The seconds to which expected times are rounded up, and by which one must have moved to be written again.
const STEP: i64 = 300;

/// What jobs say.
#[derive(Default)]
pub(super) struct Explained {
    /// Why jobs wait, as the daemon said last.
    waits: BTreeMap<String, Wait>,
    /// What was written last about jobs.
    written: BTreeMap<String, Written>,
    /// The jobs whose comment says more than the mark, as far as is known.
    telling: BTreeSet<String>,
    /// The comments that are to be written, with their jobs.
    to_write: BTreeMap<String, BTreeMap<JobRef, String>>,
    /// Whether the last comment could not be written.
    is_failing: bool,
}

/// A comment that was written or found.
struct Written {
    /// What it says; `None` for the mark alone.
    wait: Option<Wait>,
    comment: String,
    at: Instant,
}

impl Explained {
    /// Why all jobs wait.
    pub(super) fn hear(&mut self, waits: BTreeMap<String, Wait>) {
        self.waits = waits;
    }

    /// A job is released; returns whether its comment has to be the mark alone again.
    pub(super) fn take_back(&mut self, handle: &str) -> bool {
        // If it waits again, it does for another reason.
        self.waits.remove(handle);
        self.written.remove(handle);
        self.to_write.values_mut().for_each(|jobs| jobs.retain(|_, other| other != handle));
        self.telling.remove(handle)
    }

    /// Finds the jobs that say something else than they are to say.
    pub(super) fn look(
        &mut self,
        seen: &BTreeMap<String, (JobRef, &Job)>,
        known: &KnownJobs,
        is_complete: bool,
    ) {
        if is_complete {
            self.written.retain(|handle, _| seen.contains_key(handle));
        }
        let tells = seen.iter().filter(|(_, (_, job))| setup::has_remark(job));
        self.telling = tells.map(|(handle, _)| handle.clone()).collect();
        let marked = seen.iter().filter(|(_, (_, job))| setup::is_marked(job));
        let mut marked: Vec<(JobRef, &String, &Job)> =
            marked.map(|(handle, (reference, job))| (*reference, handle, *job)).collect();
        marked.sort_by_key(|(reference, ..)| *reference);
        self.to_write.clear();
        let mut count = 0;
        for (reference, handle, job) in marked {
            let stage = known.get(handle).map(|known| &known.stage);
            if let Some((comment, wait)) = self.news(handle, job, stage) {
                let is_another = !self.to_write.contains_key(&comment);
                if count == AT_ONCE || is_another && self.to_write.len() == COMMANDS {
                    break;
                }
                count += 1;
                if wait.is_some() {
                    self.telling.insert(handle.clone());
                }
                self.note(handle, wait, comment.clone());
                let jobs = self.to_write.entry(comment).or_default();
                jobs.insert(reference, handle.clone());
            }
        }
    }

    /// The comment that a job is to have instead of the one that it has, and what that says.
    fn news(
        &mut self,
        handle: &str,
        job: &Job,
        stage: Option<&Stage>,
    ) -> Option<(String, Option<Wait>)> {
        let wait = match stage {
            // A start writes the comment as well.
            Some(Stage::Recalled | Stage::Starting { .. } | Stage::Released(_)) => return None,
            // Elements that wait together stay one entry.
            Some(Stage::Waiting | Stage::Aside) if is_of_many(job) => return None,
            // What the daemon has not spoken of yet stays as it is.
            Some(Stage::Waiting | Stage::Aside) => Some(self.waits.get(handle)?),
            Some(Stage::Running { .. }) => None,
            // Its user keeps it back, or somebody else started it.
            None if job.has_nodes() || job.state.is_waiting() && setup::is_kept_back(job) => None,
            None => return None,
        };
        let said = job.admin_comment.as_deref();
        if let Some(last) = self.written.get(handle) {
            let is_right = is_close(last.wait.as_ref(), wait) && said == Some(&last.comment);
            if is_right || last.at.elapsed() < PAUSE {
                return None;
            }
        }
        let wait = wait.cloned();
        let comment =
            wait.as_ref().map_or_else(|| MARK.to_owned(), |wait| comment(wait, &Zoned::now()));
        if said != Some(&comment) {
            return Some((comment, wait));
        }
        // A mark alone need not be remembered.
        if wait.is_some() {
            self.note(handle, wait, comment);
        }
        None
    }

    /// A job says this now.
    fn note(&mut self, handle: &str, wait: Option<Wait>, comment: String) {
        let last = Written { wait, comment, at: Instant::now() };
        self.written.insert(handle.to_owned(), last);
    }

    /// Whether there is something to be written.
    pub(super) fn has_news(&self) -> bool {
        !self.to_write.is_empty()
    }

    /// Writes one comment that the last look has found missing, without reading it again: the next look does.
    pub(super) fn write(&mut self, cluster: &impl Cluster) {
        let Some((comment, jobs)) = self.to_write.pop_first() else { return };
        let jobs: Vec<JobRef> = jobs.into_keys().collect();
        if jobs.is_empty() {
            return;
        }
        let update = JobUpdate { admin_comment: Some(comment), ..JobUpdate::default() };
        let done = cluster.update_unread(&jobs, &update);
        if let (Err(error), false) = (&done, self.is_failing) {
            // Perhaps only because a job has ended.
            tracing::warn!(%error, "the reasons of waiting jobs in Slurm cannot be read; retrying");
        }
        self.is_failing = done.is_err();
    }
}

/// Whether a job is one of several elements of an array that are one entry in Slurm.
fn is_of_many(job: &Job) -> bool {
    job.array.as_ref().is_some_and(|array| array.tasks.only().is_none())
}

/// Whether two reasons are the same for those who read them.
fn is_close(one: Option<&Wait>, other: Option<&Wait>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => {
            let is_same_time = match (one.expected, other.expected) {
                (Some(one), Some(other)) => one.abs_diff(other) <= STEP.unsigned_abs(),
                (one, other) => one == other,
            };
            one.reason == other.reason && is_same_time
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// The comment of a job that waits.
fn comment(wait: &Wait, now: &Zoned) -> String {
    let Wait { reason, expected } = wait;
    let goes_on = ["for ", "after ", "until "].iter().any(|word| reason.starts_with(word));
    let waits = if goes_on { "waits" } else { "waits;" };
    let at = expected.and_then(|at| clock(at, now));
    let expected = at.map_or(String::new(), |at| format!(", expected {at}"));
    setup::remark(&format!("{waits} {reason}{expected}"))
}

/// A time on the clock of the daemon's host, with its date if that is not today.
fn clock(seconds: i64, now: &Zoned) -> Option<String> {
    let rounded = seconds.checked_add(STEP - 1)?.div_euclid(STEP) * STEP;
    let zone: TimeZone = now.time_zone().clone();
    let at = Timestamp::from_second(rounded).ok()?.to_zoned(zone);
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    Some(at.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(reason: &str, expected: Option<i64>) -> Wait {
        Wait { reason: reason.to_owned(), expected }
    }

    /// Noon of 1 January 1970.
    fn noon() -> Zoned {
        Timestamp::from_second(12 * 3600).unwrap().to_zoned(TimeZone::UTC)
    }

    #[test]
    fn a_comment_is_a_sentence_behind_the_mark() {
        let text = |reason: &str, expected| comment(&wait(reason, expected), &noon());
        assert_eq!(text("for nodes", None), "busbar: waits for nodes");
        let at = 14 * 3600 + 15 * 60 + 1;
        assert_eq!(text("for power", Some(at)), "busbar: waits for power, expected 14:20");
        assert_eq!(
            text("for power", Some(at + 86_400)),
            "busbar: waits for power, expected 1970-01-02 14:20"
        );
        assert_eq!(text("power is short", None), "busbar: waits; power is short");
        assert_eq!(text("it's \"so\"\n", None), "busbar: waits; it s  so");
    }

    #[test]
    fn times_that_hardly_move_are_no_news() {
        let close = |one: &Wait, other: &Wait| is_close(Some(one), Some(other));
        let power = |expected| wait("for power", expected);
        assert!(close(&power(Some(1000)), &power(Some(1300))));
        assert!(!close(&power(Some(1000)), &power(Some(1301))));
        assert!(!close(&power(Some(1000)), &power(None)));
        assert!(!close(&power(None), &wait("for nodes", None)));
        assert!(is_close(None, None) && !is_close(None, Some(&power(None))));
    }
}
