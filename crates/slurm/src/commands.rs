//! A cluster through Slurm's commands: the way that works on every version and needs nothing but the
//! programs.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::calls::{self, Act, Call, Reading};
use crate::cluster::{Cluster, JOBS_AT_ONCE, JobUpdate};
use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::json::Answer;
use crate::listing::{Listing, Record};
use crate::model::{
    Amounts, Hold, Job, JobRef, JobState, Licence, Node, Partition, Reservation, write_amounts,
};
use crate::parts::{self, Held};
use crate::program::Programs;
use crate::text::{self, JobFormat};
use crate::version::Version;

/// How long Slurm may take to find nodes by which a job grows.
const GROWING: Duration = Duration::from_secs(10);

/// This many jobs are read one by one.
const FEW_JOBS: usize = 10;

/// A cluster through `squeue`, `scontrol`, `scancel` and `salloc`.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    programs: Programs,
}

impl Commands {
    /// A cluster through these programs.
    pub fn new(programs: Programs) -> Self {
        Commands { programs }
    }

    /// The programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The jobs by `squeue --json`, for tests and for versions whose text is not understood.
    pub fn jobs_by_json(&self) -> Result<Listing<Job>, SlurmError> {
        self.answer(Reading::JobsInJson)?.jobs()
    }

    /// One value of the cluster's configuration (`scontrol show config`), by its key.
    pub fn configuration(&self) -> Result<Vec<(String, String)>, SlurmError> {
        let printed = self.ask(Reading::Configuration)?;
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(printed.lines().filter_map(pair).collect())
    }

    /// What a call prints that has nothing to do with jobs.
    pub fn ask(&self, reading: Reading) -> Result<String, SlurmError> {
        self.programs.make(&reading.call(&JobFormat::new()?))
    }

    fn act(&self, act: Act<'_>) -> Result<(), SlurmError> {
        self.programs.make(&act.call()).map(|_| ())
    }

    fn answer(&self, reading: Reading) -> Result<Answer, SlurmError> {
        Answer::read(&reading.call(&JobFormat::new()?).to_string(), &self.ask(reading)?)
    }

    /// What was read in text; what of it could not be read is read again in JSON where the version has that. A version that
    /// does not know what it is asked for in text may still know the other form.
    fn mended<T: Record>(
        &self,
        in_text: Result<Listing<T>, SlurmError>,
        json: Reading,
        read: impl Fn(&Answer) -> Result<Listing<T>, SlurmError>,
    ) -> Result<Listing<T>, SlurmError> {
        let found = match in_text {
            Ok(found) if found.unread.is_empty() => return Ok(found),
            Err(error) if !matches!(error, SlurmError::Refused { .. }) => return Err(error),
            found => found,
        };
        let in_json = match self.version() {
            Ok(version) if json.is_known_to(version) => {
                self.answer(json).and_then(|answer| read(&answer))
            }
            _ => return found,
        };
        match (found, in_json) {
            (Ok(found), Ok(other)) => Ok(found.mended_by(other)),
            (Err(_), Ok(other)) => Ok(other),
            (found, Err(_)) => found,
        }
    }

    /// Gives running jobs what they have of their nodes. Whoever of them has ended meanwhile has nothing, and what cannot be read is
    /// not known; either counts as whole nodes.
    fn with_details(&self, mut jobs: Listing<Job>) -> Result<Listing<Job>, SlurmError> {
        if !jobs.iter().any(|job| job.has_nodes() && job.held.is_none()) {
            return Ok(jobs);
        }
        let mut details = match self.ask(Reading::PartsOfJobs) {
            Ok(printed) => parts::details(&printed),
            // A version that has another form of it.
            Err(SlurmError::Refused { .. }) => return Ok(jobs),
            Err(error) => return Err(error),
        };
        for job in jobs.read.iter_mut().filter(|job| job.has_nodes()) {
            let held = details.remove(&job.id);
            let is_whole = |held: &Vec<Held>| {
                HostList::new(held.iter().map(|held| held.node.as_str())).is_same_set(&job.nodes)
            };
            job.held = held.filter(is_whole);
        }
        Ok(jobs)
    }

    fn jobs_of(&self, reading: Reading) -> Result<Listing<Job>, SlurmError> {
        let format = JobFormat::new()?;
        let printed = self.programs.make(&reading.call(&format));
        self.mended(printed.map(|printed| format.read(&printed)), Reading::JobsInJson, Answer::jobs)
    }

    /// Some jobs. Of a job that cannot be read in full, the other form tells among all others.
    fn jobs_named(&self, jobs: &[JobRef]) -> Result<Vec<Job>, SlurmError> {
        let format = JobFormat::new()?;
        let printed = self.programs.make(&calls::jobs_named(&format, jobs));
        let found = printed.map(|printed| format.read(&printed));
        let mut found = self.mended(found, Reading::JobsInJson, Answer::jobs)?.read;
        let is_meant = |job: &Job| {
            let whole = job.array.as_ref().map_or(job.id, |array| array.job);
            jobs.iter().any(|meant| match meant.task {
                // The element may be one of several that wait together.
                Some(task) => job.array.as_ref().is_some_and(|array| {
                    array.job == meant.job && array.tasks.numbers().any(|number| number == task)
                }),
                None => {
                    [whole, job.id].contains(&meant.job)
                        || job.het.is_some_and(|het| het.job == meant.job)
                }
            })
        };
        found.retain(is_meant);
        Ok(found)
    }

    /// Submits a job with these arguments of `sbatch`, and returns what that prints.
    pub fn submit(&self, arguments: &[&str]) -> Result<String, SlurmError> {
        self.programs.make(&Act::Submit(arguments).call())
    }

    /// The one entry of a job that is no whole array.
    fn one(&self, job: JobRef) -> Result<Job, SlurmError> {
        let mut jobs = self.job(job)?;
        match (jobs.pop(), jobs.is_empty()) {
            (Some(only), true) => Ok(only),
            (last, _) => {
                let count = jobs.len() + usize::from(last.is_some());
                let what = format!("job {job}");
                let reason = format!("it has {count} entries, as an array has; name one element");
                Err(SlurmError::Unreadable { what, reason })
            }
        }
    }

    /// Waits until a job is as it should be, for as long as a program may take.
    fn await_job(
        &self,
        what: &str,
        job: JobRef,
        is_so: impl Fn(&Job) -> Option<String>,
    ) -> Result<(), SlurmError> {
        let deadline = Instant::now() + self.programs.patience();
        loop {
            let Some(found) = self.job(job)?.iter().find_map(&is_so) else { return Ok(()) };
            if Instant::now() >= deadline {
                return Err(SlurmError::NotDone { what: what.to_owned(), found });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a command of `scontrol` for many jobs, some hundred at a time, and looks afterwards which of
    /// them are not as they should be.
    ///
    /// For an array Slurm reports an error if one of its elements has ended, although the others were
    /// done. So what it says counts only if something is wrong afterwards, or a job is missing.
    fn for_jobs(
        &self,
        act: impl Fn(&[JobRef]) -> Call,
        jobs: &[JobRef],
        is_wrong: impl Fn(&Job) -> bool,
        found: &str,
    ) -> Result<(), SlurmError> {
        let mut refusal = None;
        for some in jobs.chunks(JOBS_AT_ONCE) {
            if let Err(error) = self.programs.make(&act(some)) {
                refusal.get_or_insert(error);
            }
        }
        if refusal.as_ref().is_some_and(|error| !matches!(error, SlurmError::Refused { .. })) {
            return refusal.map_or(Ok(()), Err);
        }
        let left = self.remaining(jobs, is_wrong)?;
        match (left.is_empty(), refusal) {
            (true, _) => Ok(()),
            (false, Some(refusal)) => Err(refusal),
            (false, None) => Err(not_done(act(&left).to_string(), found.to_owned())),
        }
    }

    /// The jobs among some that are not as they should be.
    fn remaining(
        &self,
        jobs: &[JobRef],
        is_wrong: impl Fn(&Job) -> bool,
    ) -> Result<Vec<JobRef>, SlurmError> {
        let mut wrong = Vec::new();
        for some in jobs.chunks(JOBS_AT_ONCE) {
            let found = self.jobs_named(some)?;
            let is_meant = |job: &Job| {
                let whole = job.array.as_ref().map_or(job.id, |array| array.job);
                some.contains(&job.reference()) || some.contains(&JobRef::whole(whole))
            };
            let found = found.iter().filter(|job| is_meant(job) && is_wrong(job));
            wrong.extend(found.map(Job::reference));
        }
        Ok(wrong)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn not_done(what: String, found: String) -> SlurmError {
    SlurmError::NotDone { what, found }
}

impl Cluster for Commands {
    fn version(&self) -> Result<Version, SlurmError> {
        let text = self.ask(Reading::Version)?;
        text.parse().map_err(|error| SlurmError::Unreadable {
            what: "scontrol --version".to_owned(),
            reason: format!("{error}"),
        })
    }

    fn nodes(&self) -> Result<Listing<Node>, SlurmError> {
        let in_text = self.ask(Reading::Nodes).map(|printed| text::nodes(&printed));
        self.mended(in_text, Reading::NodesInJson, Answer::nodes)
    }

    fn partitions(&self) -> Result<Listing<Partition>, SlurmError> {
        let in_text = self.ask(Reading::Partitions).map(|printed| text::partitions(&printed));
        self.mended(in_text, Reading::PartitionsInJson, Answer::partitions)
    }

    fn jobs(&self) -> Result<Listing<Job>, SlurmError> {
        self.jobs_of(Reading::Jobs)
    }

    fn jobs_with_parts(&self) -> Result<Listing<Job>, SlurmError> {
        let format = JobFormat::new()?;
        let printed = self.programs.make(&Reading::JobsWithParts.call(&format));
        let printed = printed.map(|printed| format.read_with_parts(&printed));
        self.with_details(self.mended(printed, Reading::JobsInJson, Answer::jobs_with_parts)?)
    }

    fn job(&self, job: JobRef) -> Result<Vec<Job>, SlurmError> {
        let jobs = self.jobs_named(&[job])?;
        match jobs.is_empty() {
            true => Err(SlurmError::NoSuchJob { what: format!("job {job}") }),
            false => Ok(jobs),
        }
    }

    fn licences(&self) -> Result<Listing<Licence>, SlurmError> {
        let in_text = self.ask(Reading::Licences).map(|printed| text::licences(&printed));
        self.mended(in_text, Reading::LicencesInJson, Answer::licences)
    }

    fn reservations(&self) -> Result<Listing<Reservation>, SlurmError> {
        let in_text = self.ask(Reading::Reservations).map(|printed| text::reservations(&printed));
        self.mended(in_text, Reading::ReservationsInJson, Answer::reservations)
    }

    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        // Slurm takes the hold of a job that began a moment ago, too, for when it is queued again; it runs on.
        let is_free =
            |job: &Job| !job.state.is_waiting() || matches!(job.hold, None | Some(Hold::User));
        self.for_jobs(|some| Act::Hold(some).call(), jobs, is_free, "they have no admin hold")
    }

    fn hold_unread(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        jobs.chunks(JOBS_AT_ONCE).try_for_each(|some| self.act(Act::Hold(some)))
    }

    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.for_jobs(
            |some| Act::Release(some).call(),
            jobs,
            |job| job.hold.is_some(),
            "they are still held",
        )
    }

    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        let is_other = |job: &Job| job.state.is_waiting() && job.hold != Some(Hold::User);
        self.for_jobs(|_| Act::HoldForUser(job).call(), &[job], is_other, "no user hold is on it")
    }

    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        if update.is_empty() {
            return Ok(());
        }
        self.act(Act::Update(&[job], update))?;
        match self.job(job)?.iter().find_map(|job| update.difference(job)) {
            None => Ok(()),
            Some(found) => Err(not_done(format!("update job {job}"), found)),
        }
    }

    fn update_unread(&self, jobs: &[JobRef], update: &JobUpdate) -> Result<(), SlurmError> {
        let some = jobs.chunks(JOBS_AT_ONCE).map(|some| self.act(Act::Update(some, update)));
        some.fold(Ok(()), Result::and)
    }

    fn start_all(&self, jobs: &[(JobRef, JobUpdate)]) -> Vec<Result<(), SlurmError>> {
        if let [(job, update)] = jobs {
            return vec![self.start(*job, update)];
        }
        let mut done: Vec<Result<(), SlurmError>> =
            jobs.iter().map(|(job, update)| self.act(Act::Update(&[*job], update))).collect();
        // Slurm tells of one job at once, and of several only by way of all.
        let found = match jobs.len() {
            ..=FEW_JOBS => jobs.iter().try_fold(Vec::new(), |mut all, (job, _)| {
                all.extend(self.jobs_named(&[*job])?);
                Ok(all)
            }),
            // Elements of an array that wait are one entry otherwise, and none of them would be found.
            _ => self.jobs_of(Reading::Elements).map(|found| found.read),
        };
        let found = found.map(|found| {
            found.into_iter().map(|job| (job.reference(), job)).collect::<HashMap<_, _>>()
        });
        for ((job, update), done) in jobs.iter().zip(&mut done).filter(|(_, done)| done.is_ok()) {
            let what = || format!("update job {job}");
            *done = match found.as_ref().map(|found| found.get(job)) {
                Ok(Some(found)) => {
                    update.difference(found).map_or(Ok(()), |found| Err(not_done(what(), found)))
                }
                Ok(None) => Err(SlurmError::NoSuchJob { what: what() }),
                Err(error) => Err(not_done(what(), error.to_string())),
            };
        }
        let changed = jobs.iter().zip(&done).filter(|(_, done)| done.is_ok());
        let changed: Vec<JobRef> = changed.map(|((job, _), _)| *job).collect();
        for some in changed.chunks(JOBS_AT_ONCE) {
            // Of several jobs, Slurm may refuse one, so each is tried by itself.
            if self.act(Act::Release(some)).is_err() {
                for ((job, _), done) in jobs.iter().zip(&mut done) {
                    if some.contains(job) {
                        *done = self.release(&[*job]);
                    }
                }
            }
        }
        done
    }

    fn cancel(&self, job: JobRef) -> Result<(), SlurmError> {
        // It reports success for a job that does not exist, so the job is read afterwards.
        self.act(Act::Cancel(&[job]))?;
        self.await_job(&format!("cancel job {job}"), job, |job| {
            let is_ending = job.state == JobState::Completing || job.state.has_ended();
            (!is_ending).then(|| format!("it is {:?}", job.state))
        })
    }

    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError> {
        self.act(Act::RequeueHold(job))?;
        let what = format!("requeue job {job}");
        self.await_job(&what, job, |job| {
            (!job.state.is_waiting()).then(|| format!("it is {:?}", job.state))
        })?;
        // The hold that this leaves is one that the user can release.
        self.hold(&[job])?;
        // Slurm would not start the job for two minutes. If it is started in the second in which it was
        // ended, its nodes take it for the one that was killed, and it is lost.
        self.act(Act::DelayStart(job))
    }

    fn suspend(&self, job: JobRef) -> Result<(), SlurmError> {
        if self.one(job)?.state == JobState::Suspended {
            return Ok(());
        }
        self.act(Act::Suspend(job))?;
        self.await_job(&format!("suspend job {job}"), job, |job| {
            (job.state != JobState::Suspended).then(|| format!("it is {:?}", job.state))
        })
    }

    fn resume(&self, job: JobRef) -> Result<(), SlurmError> {
        if self.one(job)?.state == JobState::Running {
            return Ok(());
        }
        self.act(Act::Resume(job))?;
        self.await_job(&format!("resume job {job}"), job, |job| {
            (job.state == JobState::Suspended).then(|| "it is still suspended".to_owned())
        })
    }

    fn shrink(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        let what = format!("shrink job {job} to {nodes}");
        let before = self.one(job)?;
        if before.nodes.is_same_set(nodes) {
            return Ok(());
        }
        let stranger = nodes.names().iter().find(|name| !before.nodes.names().contains(name));
        if nodes.is_empty() || stranger.is_some() {
            let text = match stranger {
                Some(name) => format!("the job does not have node {name}"),
                None => "a job needs at least one node".to_owned(),
            };
            return Err(SlurmError::Refused { what, text });
        }
        let fewer = JobUpdate { required: Some(nodes.clone()), ..JobUpdate::default() };
        self.act(Act::Update(&[job], &fewer))?;
        self.await_job(&what, job, |job| {
            (!job.nodes.is_same_set(nodes)).then(|| format!("it has {}", job.nodes))
        })
    }

    fn expand(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        let what = format!("expand job {job} by {nodes}");
        let before = self.one(job)?;
        let more = nodes.names().iter().filter(|name| !before.nodes.names().contains(name));
        let more = HostList::new(more.cloned());
        if more.is_empty() {
            return Ok(());
        }
        // The helper must belong to the user of the job, and be submitted by somebody whom the plug-in
        // does not hold up.
        let printed = self.programs.try_to(&Act::Allocate(&before, &more, GROWING).call())?;
        let said = format!("{}\n{}", printed.error, printed.out);
        let number = said.split("Granted job allocation ").nth(1).and_then(|rest| {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok()
        });
        let (true, Some(helper)) = (printed.status.success(), number) else {
            return Err(SlurmError::from_text(&what, &said));
        };
        let helper = JobRef::whole(helper);
        let merged = self.act(Act::Merge(helper)).and_then(|()| {
            self.await_job(&what, job, |job| {
                let is_there = more.names().iter().all(|name| job.nodes.names().contains(name));
                (!is_there).then(|| format!("it has {}", job.nodes))
            })
        });
        // Its nodes are the job's now, or are given back.
        let cancelled = self.cancel(helper);
        merged?;
        match cancelled {
            Err(SlurmError::NoSuchJob { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn drain(&self, nodes: &HostList, reason: &str) -> Result<(), SlurmError> {
        self.act(Act::Drain(nodes, reason))?;
        self.check_nodes("drain", nodes, |node| node.state.has("DRAIN"))
    }

    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError> {
        self.act(Act::Undrain(nodes))?;
        self.check_nodes("undrain", nodes, |node| !node.state.has("DRAIN"))
    }

    fn reserve(&self, name: &str, licences: &Amounts) -> Result<(), SlurmError> {
        let wanted: Amounts = licences
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(name, count)| (name.clone(), *count))
            .collect();
        if wanted.is_empty() {
            return self.remove_reservation(name);
        }
        let find = || -> Result<Option<Reservation>, SlurmError> {
            Ok(self.reservations()?.into_iter().find(|other| other.name == name))
        };
        let present = find()?;
        if present.as_ref().is_some_and(|present| present.keeps(&wanted, now())) {
            return Ok(());
        }
        self.act(match present {
            Some(present) => Act::Renew(name, &wanted, present.has_begun(now())),
            None => Act::Reserve(name, &wanted),
        })?;
        match find()? {
            Some(found) if found.keeps(&wanted, now()) => Ok(()),
            found => {
                let found = found.map_or("there is none".to_owned(), |found| {
                    let (licences, users) = (write_amounts(&found.licences), found.users.join(","));
                    format!("it holds '{licences}' for {users} until {:?}", found.ends)
                });
                Err(not_done(format!("reserve {}", write_amounts(&wanted)), found))
            }
        }
    }

    fn remove_reservation(&self, name: &str) -> Result<(), SlurmError> {
        let is_there = |all: Listing<Reservation>| all.iter().any(|other| other.name == name);
        if !is_there(self.reservations()?) {
            return Ok(());
        }
        match self.act(Act::RemoveReservation(name)) {
            Ok(()) | Err(SlurmError::NotFound { .. }) => (),
            Err(error) => return Err(error),
        }
        match is_there(self.reservations()?) {
            false => Ok(()),
            true => {
                Err(not_done(format!("delete reservation {name}"), "it is still there".to_owned()))
            }
        }
    }
}

impl Commands {
    fn check_nodes(
        &self,
        act: &str,
        nodes: &HostList,
        is_right: impl Fn(&Node) -> bool,
    ) -> Result<(), SlurmError> {
        let all = self.nodes()?;
        let wrong = all.iter().find(|node| nodes.names().contains(&node.name) && !is_right(node));
        match wrong {
            None => Ok(()),
            Some(node) => {
                Err(not_done(format!("{act} {nodes}"), format!("{} is {}", node.name, node.state)))
            }
        }
    }
}
