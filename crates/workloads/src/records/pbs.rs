//! The accounting log of PBS Professional and OpenPBS: `date;type;job;key=value key=value …`.
//!
//! Records of type `E` are ends of jobs, and those of type `R` ends of runs after which a job is queued again. All
//! others (submissions, starts, deletions, licences, reservations) are about no run that has ended. Times inside are
//! Unix time; the date in front is local, and not used.

use super::collector::Collector;
use super::entry::{Entry, State};
use super::error::{Defect, shown};
use super::id::Id;
use super::quantity::{count, seconds, whole};
use super::reader::{Read, Reader, Trouble};
use super::run::Ending;

/// Reads an accounting log.
#[derive(Debug)]
pub(super) struct Pbs;

/// Whether a line is a record of such a log.
pub(super) fn is_record(line: &[u8]) -> bool {
    let form = b"dd/dd/dddd dd:dd:dd;";
    let fits = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    };
    line.len() > form.len() + 2
        && line.iter().zip(form).all(fits)
        && line[form.len()].is_ascii_alphabetic()
        && line[form.len() + 1] == b';'
}

impl Reader for Pbs {
    fn take(&mut self, line: &[u8], into: &mut Collector) -> Result<Read, Trouble> {
        if !is_record(line) {
            return Err(Defect::Form("the line is not date;type;job;…").into());
        }
        if !matches!(line[20], b'E' | b'R') {
            into.intake.skipped_other += 1;
            return Ok(Read::Record);
        }
        let rest = &line[22..];
        let job =
            memchr::memchr(b';', rest).ok_or(Defect::Form("there is no ';' after the job"))?;
        let (job, attributes) = (&rest[..job], &rest[job + 1..]);
        let id = read_id(job).map_err(|()| Defect::Unreadable { field: "job", text: shown(job) });
        let attributes = Attributes::read(attributes);
        // The whole of an array is no run, but each of its tasks is. Older versions do not say when a job ran that
        // is queued again.
        let has_times =
            !attributes.start.is_empty() && (line[20] == b'E' || !attributes.end.is_empty());
        let Some(id) = id?.filter(|_| has_times) else {
            into.intake.skipped_other += 1;
            return Ok(Read::Record);
        };
        let entry = attributes.entry(id, into)?;
        into.take(&entry)?;
        Ok(Read::Record)
    }
}

/// `123.server`, or a task of an array, `123[4].server`. Nothing for the whole of an array, `123[].server`, and for
/// reservations, `R123.server`.
fn read_id(text: &[u8]) -> Result<Option<Id>, ()> {
    let name = &text[..memchr::memchr(b'.', text).unwrap_or(text.len())];
    let number = |text: &[u8]| whole(text).and_then(|number| u32::try_from(number).ok()).ok_or(());
    let Some(bracket) = memchr::memchr(b'[', name) else {
        let is_reservation = name.first().is_some_and(|first| matches!(first, b'R' | b'S' | b'M'));
        return if is_reservation { Ok(None) } else { Ok(Some(Id::plain(number(name)?))) };
    };
    let index = name[bracket + 1..].strip_suffix(b"]").ok_or(())?;
    if index.is_empty() {
        return Ok(None);
    }
    Ok(Some(Id::part(number(&name[..bracket])?, number(index)?)))
}

/// The attributes of a job that are used.
#[derive(Debug, Default)]
struct Attributes<'a> {
    user: &'a [u8],
    group: &'a [u8],
    account: &'a [u8],
    job_name: &'a [u8],
    queue: &'a [u8],
    created: &'a [u8],
    queued: &'a [u8],
    start: &'a [u8],
    end: &'a [u8],
    hosts: &'a [u8],
    node_count: &'a [u8],
    processors: &'a [u8],
    place: &'a [u8],
    wall_time: &'a [u8],
    used_wall_time: &'a [u8],
    exit_status: &'a [u8],
    reservation: &'a [u8],
}

impl<'a> Attributes<'a> {
    fn read(text: &'a [u8]) -> Self {
        let mut found = Attributes::default();
        for (key, value) in pairs(text) {
            let field = match key {
                b"user" => &mut found.user,
                b"group" => &mut found.group,
                b"account" | b"project" if found.account.is_empty() => &mut found.account,
                b"jobname" => &mut found.job_name,
                b"queue" => &mut found.queue,
                b"ctime" => &mut found.created,
                b"qtime" => &mut found.queued,
                b"start" => &mut found.start,
                b"end" => &mut found.end,
                b"exec_host" => &mut found.hosts,
                b"Resource_List.nodect" => &mut found.node_count,
                b"Resource_List.ncpus" => &mut found.processors,
                b"Resource_List.place" => &mut found.place,
                b"Resource_List.walltime" => &mut found.wall_time,
                b"resources_used.walltime" => &mut found.used_wall_time,
                b"Exit_status" => &mut found.exit_status,
                b"resvID" | b"resvname" => &mut found.reservation,
                _ => continue,
            };
            *field = value;
        }
        found
    }

    fn entry(&self, id: Id, into: &mut Collector) -> Result<Entry<'a>, Defect> {
        let ending = match self.exit_status {
            b"0" => Ending::Completed,
            _ => Ending::Failed,
        };
        let mut entry = Entry::new(Some(id), State::Ended(ending));
        entry.submit = into.time("ctime", self.created)?;
        if entry.submit.is_none() {
            entry.submit = into.time("qtime", self.queued)?;
        }
        entry.start = into.time("start", self.start)?;
        entry.end = into.time("end", self.end)?;
        entry.elapsed = seconds(self.used_wall_time);
        entry.limit = seconds(self.wall_time).filter(|limit| *limit > 0);
        let hosts = Hosts::read(self.hosts);
        entry.nodes = count(self.node_count).or(hosts.nodes);
        entry.processors = count(self.processors).or(hosts.processors);
        entry.is_exclusive = memchr::memmem::find(self.place, b"excl").is_some();
        entry.reservation = self.reservation;
        entry.user = self.user;
        // An account that nobody named is written like this.
        let is_account = !self.account.is_empty() && self.account != b"_pbs_project_default";
        entry.group = if is_account { self.account } else { self.group };
        entry.job_name = self.job_name;
        entry.queue = self.queue;
        Ok(entry)
    }
}

/// The pairs of a line, separated by blanks. A value in double quotes may have blanks.
fn pairs(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_ascii_start();
            if rest.is_empty() {
                return None;
            }
            let end = memchr::memchr2(b'=', b' ', rest).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let Some(value) = after.strip_prefix(b"=") else {
                rest = after;
                continue;
            };
            let (value, after) = match value.strip_prefix(b"\"") {
                Some(quoted) => {
                    let end = memchr::memchr(b'"', quoted).unwrap_or(quoted.len());
                    (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
                }
                None => value.split_at(memchr::memchr(b' ', value).unwrap_or(value.len())),
            };
            rest = after;
            return Some((key, value));
        }
    })
}

/// What the list of hosts says: `n1/0*36+n2/0*36`, with the processors of each after the star.
#[derive(Debug, Default)]
struct Hosts {
    nodes: Option<u32>,
    processors: Option<u32>,
}

impl Hosts {
    fn read(text: &[u8]) -> Self {
        if text.is_empty() {
            return Hosts::default();
        }
        let mut names: Vec<&[u8]> = Vec::new();
        let mut processors = 0u32;
        for part in text.split(|byte| *byte == b'+') {
            let slash = memchr::memchr(b'/', part).unwrap_or(part.len());
            let star = memchr::memchr(b'*', part);
            processors = processors
                .saturating_add(star.and_then(|star| count(&part[star + 1..])).unwrap_or(1));
            names.push(&part[..slash]);
        }
        names.sort_unstable();
        names.dedup();
        Hosts { nodes: Some(names.len() as u32), processors: Some(processors) }
    }
}
