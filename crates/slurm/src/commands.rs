//! A cluster through Slurm's commands: the way that works on every version and needs nothing but the
//! programs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, JOBS_AT_ONCE, JobUpdate};
use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::json::Answer;
use crate::model::{
    Amounts, Hold, Job, JobRef, JobState, Licence, Node, Partition, Reservation, write_amounts,
};
use crate::program::Programs;
use crate::text::{self, JobFormat};
use crate::version::Version;

/// How long Slurm may take to find nodes by which a job grows.
const GROWING: Duration = Duration::from_secs(10);

/// So many jobs are read one by one.
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
    pub fn jobs_by_json(&self) -> Result<Vec<Job>, SlurmError> {
        let arguments = ["--json", "-a", "-t", "all"];
        Answer::read("squeue --json", &self.programs.ask("squeue", &arguments)?)?.jobs()
    }

    /// One value of the cluster's configuration (`scontrol show config`), by its key.
    pub fn configuration(&self) -> Result<Vec<(String, String)>, SlurmError> {
        let printed = self.programs.ask("scontrol", &["show", "config"])?;
        let pair = |line: &str| {
            let (key, value) = line.split_once('=')?;
            Some((key.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(printed.lines().filter_map(pair).collect())
    }

    fn control(&self, arguments: &[&str]) -> Result<String, SlurmError> {
        self.programs.ask("scontrol", arguments)
    }

    fn read_jobs(&self, which: &[&str]) -> Result<Vec<Job>, SlurmError> {
        let format = JobFormat::new()?;
        let argument = format.argument();
        let mut arguments = vec!["-h", "-a", "-t", "all", "-O", argument.as_str()];
        arguments.extend(which);
        format.read(&self.programs.ask("squeue", &arguments)?)
    }

    /// Asks for changes of a job, without looking whether they were made.
    fn change(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        let mut arguments = vec!["update".to_owned(), format!("jobid={job}")];
        if let Some((fewest, most)) = update.nodes {
            arguments.push(format!("NumNodes={fewest}-{most}"));
        }
        if let Some(required) = &update.required {
            arguments.push(format!("NodeList={required}"));
        }
        if let Some(minutes) = update.limit_minutes {
            arguments.push(format!("TimeLimit={minutes}"));
        }
        if let Some(comment) = &update.comment {
            arguments.push(format!("Comment={comment}"));
        }
        if let Some(comment) = &update.admin_comment {
            arguments.push(format!("AdminComment={comment}"));
        }
        if let Some(licences) = &update.licences {
            arguments.push(format!("Licenses={}", write_amounts(licences)));
        }
        self.control(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).map(|_| ())
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
        act: &str,
        jobs: &[JobRef],
        is_wrong: impl Fn(&Job) -> bool,
        found: &str,
    ) -> Result<(), SlurmError> {
        let mut refusal = None;
        for some in jobs.chunks(JOBS_AT_ONCE) {
            if let Err(error) = self.control(&[act, &names(some)]) {
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
            (false, None) => Err(not_done(format!("{act} {}", names(&left)), found.to_owned())),
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
            let found = self.read_jobs(&["-j", &names(some)])?;
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

fn names(jobs: &[JobRef]) -> String {
    jobs.iter().map(JobRef::to_string).collect::<Vec<_>>().join(",")
}

fn not_done(what: String, found: String) -> SlurmError {
    SlurmError::NotDone { what, found }
}

impl Cluster for Commands {
    fn version(&self) -> Result<Version, SlurmError> {
        let text = self.control(&["--version"])?;
        text.parse().map_err(|error| SlurmError::Unreadable {
            what: "scontrol --version".to_owned(),
            reason: format!("{error}"),
        })
    }

    fn nodes(&self) -> Result<Vec<Node>, SlurmError> {
        text::nodes(&self.control(&["-a", "-o", "show", "node"])?)
    }

    fn partitions(&self) -> Result<Vec<Partition>, SlurmError> {
        text::partitions(&self.control(&["-a", "-o", "show", "partition"])?)
    }

    fn jobs(&self) -> Result<Vec<Job>, SlurmError> {
        self.read_jobs(&[])
    }

    fn job(&self, job: JobRef) -> Result<Vec<Job>, SlurmError> {
        let jobs = self.read_jobs(&["-j", &job.to_string()])?;
        match jobs.is_empty() {
            true => Err(SlurmError::NoSuchJob { what: format!("job {job}") }),
            false => Ok(jobs),
        }
    }

    fn licences(&self) -> Result<Vec<Licence>, SlurmError> {
        text::licences(&self.control(&["-o", "show", "licenses"])?)
    }

    fn reservations(&self) -> Result<Vec<Reservation>, SlurmError> {
        text::reservations(&self.control(&["-o", "show", "reservation"])?)
    }

    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        let is_free =
            |job: &Job| job.state.is_waiting() && matches!(job.hold, None | Some(Hold::User));
        self.for_jobs("hold", jobs, is_free, "no admin hold is on them")
    }

    fn hold_unread(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        jobs.chunks(JOBS_AT_ONCE)
            .try_for_each(|some| self.control(&["hold", &names(some)]).map(|_| ()))
    }

    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.for_jobs("release", jobs, |job| job.hold.is_some(), "they are still held")
    }

    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        let is_other = |job: &Job| job.state.is_waiting() && job.hold != Some(Hold::User);
        self.for_jobs("uhold", &[job], is_other, "no user hold is on it")
    }

    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        if update.is_empty() {
            return Ok(());
        }
        self.change(job, update)?;
        match self.job(job)?.iter().find_map(|job| update.difference(job)) {
            None => Ok(()),
            Some(found) => Err(not_done(format!("update job {job}"), found)),
        }
    }

    fn start_all(&self, jobs: &[(JobRef, JobUpdate)]) -> Vec<Result<(), SlurmError>> {
        if let [(job, update)] = jobs {
            return vec![self.start(*job, update)];
        }
        let mut done: Vec<Result<(), SlurmError>> =
            jobs.iter().map(|(job, update)| self.change(*job, update)).collect();
        // Slurm tells of one job at once, and of several only by way of all.
        let found = match jobs.len() {
            ..=FEW_JOBS => jobs.iter().try_fold(Vec::new(), |mut all, (job, _)| {
                all.extend(self.read_jobs(&["-j", &job.to_string()])?);
                Ok(all)
            }),
            _ => self.jobs(),
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
            if self.control(&["release", &names(some)]).is_err() {
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
        self.programs.ask("scancel", &[&job.to_string()])?;
        self.await_job(&format!("cancel job {job}"), job, |job| {
            let is_ending = job.state == JobState::Completing || job.state.has_ended();
            (!is_ending).then(|| format!("it is {:?}", job.state))
        })
    }

    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError> {
        self.control(&["requeuehold", &job.to_string()])?;
        let what = format!("requeue job {job}");
        self.await_job(&what, job, |job| {
            (!job.state.is_waiting()).then(|| format!("it is {:?}", job.state))
        })?;
        // The hold that this leaves is one that the user can release.
        self.hold(&[job])?;
        // Slurm would not start the job for two minutes. If it is started in the second in which it was
        // ended, its nodes take it for the one that was killed, and it is lost.
        self.control(&["update", &format!("jobid={job}"), "StartTime=now+2"]).map(|_| ())
    }

    fn suspend(&self, job: JobRef) -> Result<(), SlurmError> {
        if self.one(job)?.state == JobState::Suspended {
            return Ok(());
        }
        self.control(&["suspend", &job.to_string()])?;
        self.await_job(&format!("suspend job {job}"), job, |job| {
            (job.state != JobState::Suspended).then(|| format!("it is {:?}", job.state))
        })
    }

    fn resume(&self, job: JobRef) -> Result<(), SlurmError> {
        if self.one(job)?.state == JobState::Running {
            return Ok(());
        }
        self.control(&["resume", &job.to_string()])?;
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
        self.control(&["update", &format!("jobid={job}"), &format!("NodeList={nodes}")])?;
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
        let user = format!("--uid={}", before.uid);
        let (count, list) = (format!("-N{0}-{0}", more.len()), more.to_string());
        let dependency = format!("--dependency=expand:{}", before.id);
        let partition = format!("--partition={}", before.partitions.join(","));
        let wait = format!("--immediate={}", GROWING.as_secs());
        let arguments = [
            "--no-shell",
            "--exclusive",
            &count,
            "-w",
            &list,
            &dependency,
            &partition,
            &wait,
            "-J",
            "busbar-expand",
            &user,
        ];
        // The helper must belong to the user of the job, and be submitted by somebody whom the plug-in
        // does not hold up.
        let printed = self.programs.run("salloc", &arguments)?;
        let said = format!("{}\n{}", printed.error, printed.out);
        let number = said.split("Granted job allocation ").nth(1).and_then(|rest| {
            rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u32>().ok()
        });
        let (true, Some(helper)) = (printed.status.success(), number) else {
            return Err(SlurmError::from_text(&what, &said));
        };
        let helper = JobRef::whole(helper);
        let merged =
            self.control(&["update", &format!("jobid={helper}"), "NumNodes=0"]).and_then(|_| {
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
        let (names, why) =
            (format!("nodename={nodes}"), format!("reason={}", reason.replace(['\n', '['], " ")));
        self.control(&["update", &names, "state=drain", &why])?;
        self.check_nodes("drain", nodes, |node| node.state.has("DRAIN"))
    }

    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError> {
        self.control(&["update", &format!("nodename={nodes}"), "state=undrain"])?;
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
        let present = self.reservations()?.into_iter().find(|other| other.name == name);
        if present.as_ref().is_some_and(|present| present.licences == wanted) {
            return Ok(());
        }
        let (named, amounts) =
            (format!("reservationname={name}"), format!("licenses={}", write_amounts(&wanted)));
        match present {
            Some(_) => self.control(&["update", &named, &amounts])?,
            None => self.control(&[
                "create",
                "reservation",
                &named,
                "user=root",
                &amounts,
                "starttime=now",
                "duration=UNLIMITED",
                "flags=ANY_NODES,IGNORE_JOBS",
            ])?,
        };
        let found = self.reservations()?.into_iter().find(|other| other.name == name);
        match found {
            Some(found) if found.licences == wanted => Ok(()),
            found => {
                let found = found.map_or("there is none".to_owned(), |found| {
                    format!("it holds '{}'", write_amounts(&found.licences))
                });
                Err(not_done(format!("reserve {}", write_amounts(&wanted)), found))
            }
        }
    }

    fn remove_reservation(&self, name: &str) -> Result<(), SlurmError> {
        let is_there = |all: Vec<Reservation>| all.iter().any(|other| other.name == name);
        if !is_there(self.reservations()?) {
            return Ok(());
        }
        match self.control(&["delete", &format!("reservationname={name}")]) {
            Ok(_) | Err(SlurmError::NotFound { .. }) => (),
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
