//! The names of users, added to the daemon's answers. The daemon's loop knows numbers only, since it must not wait for a
//! directory service; the threads that wait for its answers may.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use busbar_live::job::EventKind;
use busbar_live::server::users;
use busbar_live::wire::{HistoryLine, JobLine, Reply};

/// How long a name is believed.
const FRESH: Duration = Duration::from_secs(600);

/// The most names that are kept.
const MOST: usize = 10_000;

/// Names by number, each looked up once in a while.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<u32, (Instant, Option<String>)>>);

impl Names {
    /// The name of a user, if the system knows it. This may wait for a directory service.
    pub(crate) fn of(&self, user: u32) -> Option<String> {
        let now = Instant::now();
        if let Some((asked, name)) = self.known().get(&user)
            && now - *asked < FRESH
        {
            return name.clone();
        }
        // Others are not kept waiting meanwhile.
        let name = users::name_of(user);
        let mut known = self.known();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(user, (now, name.clone()));
        name
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<u32, (Instant, Option<String>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the names of all users that an answer is about.
    pub(crate) fn add_to(&self, reply: &mut Reply) {
        match reply {
            Reply::Queue(jobs) => jobs.iter_mut().for_each(|job| self.add_to_job(job)),
            Reply::Array(array) => array.elements.iter_mut().for_each(|job| self.add_to_job(job)),
            Reply::Show(details) => {
                self.add_to_job(&mut details.line);
                details.by_name = details.by.and_then(|user| self.of(user));
            }
            Reply::History(lines) => lines.iter_mut().for_each(|line| self.add_to_line(line)),
            Reply::Finished(finished) => {
                finished.jobs.iter_mut().for_each(|job| job.user_name = self.of(job.user));
            }
            Reply::Usage(usage) => {
                for sum in &mut usage.sums {
                    sum.user_name = sum.user.and_then(|user| self.of(user));
                }
            }
            _ => (),
        }
    }

    fn add_to_job(&self, job: &mut JobLine) {
        job.user_name = self.of(job.user);
    }

    fn add_to_line(&self, line: &mut HistoryLine) {
        let by = match &line.event.kind {
            EventKind::Held { by, .. } | EventKind::Ending { by, .. } => *by,
            EventKind::Ended { outcome, .. } => outcome.by,
            _ => None,
        };
        line.by_name = by.and_then(|user| self.of(user));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_names_that_the_system_knows() {
        let names = Names::default();
        assert_eq!(names.of(0).as_deref(), Some("root"));
        assert_eq!(names.of(u32::MAX - 7), None);
        assert_eq!(names.known().len(), 2, "what is not known is not asked for again either");
        let line = r#"{"line":1,"wall_s":0,"at_s":0,"what":{"held":{"job":1,"held":true,"by":0}}}"#;
        let mut reply = Reply::History(vec![serde_json::from_str(line).unwrap()]);
        names.add_to(&mut reply);
        let Reply::History(lines) = reply else { panic!() };
        assert_eq!(lines[0].by_name.as_deref(), Some("root"));
    }
}
