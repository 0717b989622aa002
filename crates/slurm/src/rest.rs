//! A cluster through slurmrestd, on a unix socket or by TCP with a token (JWT), which is renewed in time ([`Credentials`]).
//!
//! Reading, updates, releases and cancellations go through slurmrestd. What it cannot do on all versions
//! (holds that users cannot release, suspension, sizes of running jobs, nodes, reservations) goes through
//! [`Commands`], which a site with slurmrestd has, too. The data parser is negotiated: the newest that
//! both sides know.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, JobUpdate};
use crate::commands::Commands;
use crate::error::SlurmError;
use crate::hosts::HostList;
use crate::json::Answer;
use crate::listing::Listing;
use crate::model::{Amounts, Job, JobRef, Licence, Node, Partition, Reservation, write_amounts};
use crate::version::Version;

mod http;
mod token;

pub use http::Address;
use http::Method;
pub use token::Credentials;

/// The data parsers that Busbar understands, newest first, as numbers of `v0.0.N`. Others are not asked for.
const PARSERS: std::ops::RangeInclusive<u16> = 38..=45;

/// A cluster through slurmrestd.
#[derive(Debug)]
pub struct Rest {
    address: Address,
    /// None on a socket that knows who asks.
    credentials: Option<Credentials>,
    patience: Duration,
    /// The data parser that was agreed on, once somebody has answered.
    parser: Cell<Option<u16>>,
    commands: Commands,
}

impl Rest {
    /// A cluster whose slurmrestd is asked when something is to be read; it need not run yet.
    pub fn new(address: Address, credentials: Option<Credentials>, commands: Commands) -> Self {
        let patience = commands.programs().patience();
        Rest { address, credentials, patience, parser: Cell::new(None), commands }
    }

    /// Agrees on a data parser: the newest that both sides know.
    fn agree(&self) -> Result<u16, SlurmError> {
        let mut last = None;
        for parser in PARSERS.rev() {
            match self.ask_by(parser, Method::Get, "ping", None) {
                Ok(_) => {
                    self.parser.set(Some(parser));
                    return Ok(parser);
                }
                // Nobody is there, or the token is wrong: another parser does not help.
                Err(error)
                    if error.is_uncertain() || matches!(error, SlurmError::Denied { .. }) =>
                {
                    return Err(error);
                }
                Err(error) => last = Some(error),
            }
        }
        let reason = last.map(|error| error.to_string()).unwrap_or_default();
        let parsers = format!("v0.0.{} to v0.0.{}", PARSERS.start(), PARSERS.end());
        let what = format!("slurmrestd on {}", self.address);
        Err(SlurmError::Unreadable {
            what,
            reason: format!("it has none of the data parsers {parsers} ({reason})"),
        })
    }

    /// The data parser that both sides know, as the number of `v0.0.N`.
    pub fn parser(&self) -> Result<u16, SlurmError> {
        self.parser.get().map_or_else(|| self.agree(), Ok)
    }

    fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, SlurmError> {
        let answer = self.ask_by(self.parser()?, method, path, body);
        if matches!(answer, Err(SlurmError::NotFound { .. })) {
            // After an upgrade it may have others.
            self.parser.set(None);
        }
        answer
    }

    fn ask_by(
        &self,
        parser: u16,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, SlurmError> {
        let whole = format!("/slurm/v0.0.{parser}/{path}");
        let what = format!("{method} {whole}");
        let body = body.map(Value::to_string);
        let token = self.credentials.as_ref().map(|of| of.token(&self.commands)).transpose()?;
        let answer = http::ask(
            &self.address,
            token.as_ref(),
            method,
            &whole,
            body.as_deref(),
            self.patience,
        )?;
        let (status, body) = (answer.status, answer.body);
        // Newer versions say 511 where the token is not accepted.
        if [401, 403, 511].contains(&status) {
            if let Some((credentials, token)) = self.credentials.as_ref().zip(token) {
                credentials.refused(&token);
            }
            let text = format!("slurmrestd answers {status}");
            return Err(SlurmError::Denied { what, text });
        }
        // A refusal has another status in newer versions, and the errors in any.
        match Answer::read(&what, &body) {
            Ok(read) if (200..300).contains(&status) => Ok(read),
            Ok(_) => {
                Err(SlurmError::Refused { what, text: format!("slurmrestd answers {status}") })
            }
            Err(SlurmError::Unreadable { .. }) if !(200..300).contains(&status) => {
                let text = format!("slurmrestd answers {status}");
                Err(SlurmError::NotFound { what, text })
            }
            Err(error) => Err(error),
        }
    }

    fn get(&self, path: &str) -> Result<Answer, SlurmError> {
        self.ask(Method::Get, path, None)
    }

    /// Changes a job by some keys.
    fn post(&self, job: JobRef, keys: Map<String, Value>) -> Result<(), SlurmError> {
        self.ask(Method::Post, &format!("job/{job}"), Some(&Value::Object(keys))).map(|_| ())
    }
}

/// Whether a data parser can change the administrator's comment of a job. Others refuse all of an update that has one.
fn takes_marks(parser: u16) -> bool {
    parser > 38
}

/// The keys of an update, as far as the data parser has them. Lists are texts, which every data parser takes.
fn keys(update: &JobUpdate, parser: u16) -> Map<String, Value> {
    let mut keys = Map::new();
    if let Some((fewest, most)) = update.nodes {
        // Numbers in a list are accepted by old versions, and ignored.
        keys.insert("nodes".to_owned(), json!(format!("{fewest}-{most}")));
    }
    if let Some((in_all, of_node)) = update.cpus {
        keys.insert("minimum_cpus".to_owned(), json!(in_all));
        keys.insert("minimum_cpus_per_node".to_owned(), json!(of_node));
    }
    if let Some(required) = &update.required {
        let key = if parser <= 38 { "nodelist" } else { "required_nodes" };
        keys.insert(key.to_owned(), json!(required.to_string()));
    }
    if let Some(minutes) = update.limit_minutes {
        let value = match parser {
            ..=38 => json!(minutes),
            _ => json!({ "set": true, "infinite": false, "number": minutes }),
        };
        keys.insert("time_limit".to_owned(), value);
    }
    if let Some(comment) = &update.comment {
        keys.insert("comment".to_owned(), json!(comment));
    }
    if let Some(comment) = update.admin_comment.as_ref().filter(|_| takes_marks(parser)) {
        keys.insert("admin_comment".to_owned(), json!(comment));
    }
    if let Some(licences) = &update.licences {
        keys.insert("licenses".to_owned(), json!(write_amounts(licences)));
    }
    keys
}

impl Cluster for Rest {
    fn version(&self) -> Result<Version, SlurmError> {
        let unknown = || SlurmError::Unreadable {
            what: "ping".to_owned(),
            reason: "the version of Slurm is missing".to_owned(),
        };
        self.get("ping")?.version().ok_or_else(unknown)
    }

    fn nodes(&self) -> Result<Listing<Node>, SlurmError> {
        self.get("nodes")?.nodes()
    }

    fn partitions(&self) -> Result<Listing<Partition>, SlurmError> {
        self.get("partitions")?.partitions()
    }

    fn jobs(&self) -> Result<Listing<Job>, SlurmError> {
        self.get("jobs")?.jobs()
    }

    fn jobs_with_parts(&self) -> Result<Listing<Job>, SlurmError> {
        self.get("jobs")?.jobs_with_parts()
    }

    fn job(&self, job: JobRef) -> Result<Vec<Job>, SlurmError> {
        let mut jobs = self.get(&format!("job/{job}"))?.jobs()?.read;
        // Some versions answer with the whole array.
        if let Some(task) = job.task {
            let is_meant = |found: &Job| {
                let array = found.array.as_ref();
                array.is_some_and(|array| {
                    array.job == job.job && array.tasks.numbers().any(|number| number == task)
                })
            };
            jobs.retain(is_meant);
        }
        match jobs.is_empty() {
            true => Err(SlurmError::NoSuchJob { what: format!("job {job}") }),
            false => Ok(jobs),
        }
    }

    fn licences(&self) -> Result<Listing<Licence>, SlurmError> {
        match self.get("licenses") {
            // Not every data parser tells of them.
            Err(SlurmError::NotFound { .. }) => self.commands.licences(),
            answer => answer?.licences(),
        }
    }

    fn reservations(&self) -> Result<Listing<Reservation>, SlurmError> {
        match self.get("reservations") {
            Err(SlurmError::NotFound { .. }) => self.commands.reservations(),
            answer => answer?.reservations(),
        }
    }

    fn hold(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.commands.hold(jobs)
    }

    fn hold_unread(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        self.commands.hold_unread(jobs)
    }

    fn release(&self, jobs: &[JobRef]) -> Result<(), SlurmError> {
        for job in jobs {
            self.post(*job, Map::from_iter([("hold".to_owned(), json!(false))]))?;
            if self.job(*job)?.iter().any(|job| job.hold.is_some()) {
                let found = "it is still held".to_owned();
                return Err(SlurmError::NotDone { what: format!("release job {job}"), found });
            }
        }
        Ok(())
    }

    fn hold_for_user(&self, job: JobRef) -> Result<(), SlurmError> {
        self.commands.hold_for_user(job)
    }

    fn update(&self, job: JobRef, update: &JobUpdate) -> Result<(), SlurmError> {
        if update.is_empty() {
            return Ok(());
        }
        let parser = self.parser()?;
        if !takes_marks(parser) && update.admin_comment.is_some() {
            let admin_comment = update.admin_comment.clone();
            let mark = JobUpdate { admin_comment, ..JobUpdate::default() };
            self.commands.update_unread(&[job], &mark)?;
        }
        let keys = keys(update, parser);
        if !keys.is_empty() {
            self.post(job, keys)?;
        }
        match self.job(job)?.iter().find_map(|job| update.difference(job)) {
            None => Ok(()),
            Some(found) => Err(SlurmError::NotDone { what: format!("update job {job}"), found }),
        }
    }

    fn update_unread(&self, jobs: &[JobRef], update: &JobUpdate) -> Result<(), SlurmError> {
        // One command for all of them, where slurmrestd takes one job at a time.
        self.commands.update_unread(jobs, update)
    }

    fn cancel(&self, job: JobRef) -> Result<(), SlurmError> {
        self.ask(Method::Delete, &format!("job/{job}"), None)?;
        match self.job(job)?.iter().find(|job| job.state.is_waiting()) {
            None => Ok(()),
            Some(_) => Err(SlurmError::NotDone {
                what: format!("cancel job {job}"),
                found: "it still waits".to_owned(),
            }),
        }
    }

    fn requeue_hold(&self, job: JobRef) -> Result<(), SlurmError> {
        self.commands.requeue_hold(job)
    }

    fn suspend(&self, job: JobRef) -> Result<(), SlurmError> {
        self.commands.suspend(job)
    }

    fn resume(&self, job: JobRef) -> Result<(), SlurmError> {
        self.commands.resume(job)
    }

    fn shrink(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.commands.shrink(job, nodes)
    }

    fn expand(&self, job: JobRef, nodes: &HostList) -> Result<(), SlurmError> {
        self.commands.expand(job, nodes)
    }

    fn drain(&self, nodes: &HostList, reason: &str) -> Result<(), SlurmError> {
        self.commands.drain(nodes, reason)
    }

    fn undrain(&self, nodes: &HostList) -> Result<(), SlurmError> {
        self.commands.undrain(nodes)
    }

    fn reserve(&self, name: &str, licences: &Amounts) -> Result<(), SlurmError> {
        self.commands.reserve(name, licences)
    }

    fn remove_reservation(&self, name: &str) -> Result<(), SlurmError> {
        self.commands.remove_reservation(name)
    }
}

#[cfg(test)]
mod tests;
