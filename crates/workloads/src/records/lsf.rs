//! The file `lsb.acct` of LSF: one line for each job that has finished, of type `"JOB_FINISH"`.
//!
//! Fields are separated by blanks, and texts are in double quotes, with quotes in them written twice. Their order is
//! the one in IBM's documentation of `lsb.acct`. Lists have their length in front, so a field has no fixed place
//! behind the first of them.

use std::borrow::Cow;

use super::collector::Collector;
use super::entry::{Entry, State};
use super::error::{Defect, shown};
use super::id::Id;
use super::quantity::{count, whole};
use super::reader::{Read, Reader, Trouble};
use super::run::Ending;

/// Reads the file of finished jobs.
#[derive(Debug)]
pub(super) struct Lsf;

/// The record of a job that has finished.
const FINISH: &[u8] = b"\"JOB_FINISH\"";

/// Whether a line is a record of such a file.
pub(super) fn is_record(line: &[u8]) -> bool {
    const OTHERS: [&[u8]; 2] = [b"\"EVENT_ADRSV_FINISH\"", b"\"JOB_RESIZE\""];
    line.starts_with(FINISH) || OTHERS.iter().any(|other| line.starts_with(other))
}

impl Reader for Lsf {
    fn take(&mut self, line: &[u8], into: &mut Collector) -> Result<Read, Trouble> {
        if !line.starts_with(FINISH) {
            if !is_record(line) {
                return Err(Defect::Form("the line is not a record of lsb.acct").into());
            }
            into.intake.skipped_other += 1;
            return Ok(Read::Record);
        }
        let finish = Finish::read(&mut Fields(line))?;
        let entry = finish.entry(into)?;
        into.take(&entry)?;
        Ok(Read::Record)
    }
}

/// What is used of a finished job.
#[derive(Debug, Default)]
struct Finish<'a> {
    finished: &'a [u8],
    job: u32,
    index: u32,
    requested: Option<u32>,
    submitted: &'a [u8],
    started: &'a [u8],
    user: Cow<'a, [u8]>,
    queue: Cow<'a, [u8]>,
    name: Cow<'a, [u8]>,
    project: Cow<'a, [u8]>,
    reservation: Cow<'a, [u8]>,
    processors: u32,
    nodes: u32,
    is_done: bool,
    limit: Option<u32>,
}

impl<'a> Finish<'a> {
    /// Reads the fields in their order. What comes after the limit is not used.
    fn read(fields: &mut Fields<'a>) -> Result<Self, Defect> {
        let mut finish = Finish::default();
        // The type, and the version.
        fields.skip(2)?;
        finish.finished = fields.plain()?;
        finish.job = fields.number("jobId")?;
        // The user's number, and options.
        fields.skip(2)?;
        finish.requested = count(fields.plain()?);
        finish.submitted = fields.plain()?;
        // When it may begin and must have ended.
        fields.skip(2)?;
        finish.started = fields.plain()?;
        finish.user = fields.text()?;
        finish.queue = fields.text()?;
        // Requirements, dependencies, a command, a host, a folder, three files, the script.
        fields.skip(9)?;
        let asked = fields.number("numAskedHosts")?;
        fields.skip(asked)?;
        finish.read_hosts(fields)?;
        finish.is_done = match fields.plain()? {
            b"64" => true,
            b"32" => false,
            other => return Err(Defect::Unreadable { field: "jStatus", text: shown(other) }),
        };
        // A factor.
        fields.skip(1)?;
        finish.name = fields.text()?;
        // The command, nineteen figures of use, a mailbox.
        fields.skip(21)?;
        finish.project = fields.text()?;
        // The exit status, the most processors, a shell, an event.
        fields.skip(4)?;
        finish.index = fields.number("idx")?;
        // Older versions end before the limit: then it is not known.
        finish.limit = finish.read_limit(fields).ok().flatten();
        Ok(finish)
    }

    /// The hosts, each as often as it has slots, or once with their number in front: `16*host`.
    fn read_hosts(&mut self, fields: &mut Fields<'a>) -> Result<(), Defect> {
        let listed = fields.number("numExHosts")?;
        let mut names: Vec<Cow<'a, [u8]>> = Vec::new();
        for _ in 0..listed {
            let name = fields.text()?;
            let star = memchr::memchr(b'*', &name);
            let slots = star.and_then(|star| count(&name[..star]));
            self.processors = self.processors.saturating_add(slots.unwrap_or(1));
            names.push(match (star, slots) {
                (Some(star), Some(_)) => name[star + 1..].to_vec().into(),
                _ => name,
            });
        }
        names.sort_unstable();
        names.dedup();
        self.nodes = names.len() as u32;
        Ok(())
    }

    /// The limit in seconds, behind two lists. It is −1 if there is none.
    fn read_limit(&mut self, fields: &mut Fields<'a>) -> Result<Option<u32>, Defect> {
        // Memory, swap, two spooled files.
        fields.skip(4)?;
        self.reservation = fields.text()?;
        // From the service class to the time of the last change of size.
        fields.skip(16)?;
        // A reservation with a long name, and the description of the job. Two texts and a number follow each
        // other nowhere else, so this is where the reader finds out whether it has counted right.
        fields.quoted()?;
        fields.quoted()?;
        let extensions = fields.number("submitEXT")?;
        fields.skip(extensions.saturating_mul(2))?;
        let hosts = fields.number("numHostRusage")?;
        fields.skip(hosts.saturating_mul(5))?;
        // More options.
        fields.skip(1)?;
        Ok(count(fields.plain()?))
    }

    fn entry(&self, into: &mut Collector) -> Result<Entry<'_>, Defect> {
        let ending = if self.is_done { Ending::Completed } else { Ending::Failed };
        // Tasks of an array are counted from 1.
        let id = match self.index {
            0 => Id::plain(self.job),
            index => Id::part(self.job, index),
        };
        let mut entry = Entry::new(Some(id), State::Ended(ending));
        let known = |text: &'a [u8]| if text == b"0" { b"".as_slice() } else { text };
        entry.submit = into.time("submitTime", known(self.submitted))?;
        entry.start = into.time("startTime", known(self.started))?;
        entry.end = into.time("event time", known(self.finished))?;
        entry.limit = self.limit;
        let used = |number: u32| (number > 0).then_some(number);
        entry.processors = used(self.processors).or(self.requested);
        entry.nodes = used(self.nodes);
        entry.user = &self.user;
        entry.group = &self.project;
        entry.job_name = &self.name;
        entry.queue = &self.queue;
        entry.reservation = &self.reservation;
        Ok(entry)
    }
}

/// The fields of a line, from left to right.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Cow<'a, [u8]>, Defect> {
        let text = self.0.trim_ascii_start();
        let Some(quoted) = text.strip_prefix(b"\"") else {
            if text.is_empty() {
                return Err(Defect::Form(
                    "the line ends before all fields are there: it is cut off",
                ));
            }
            let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
            self.0 = &text[end..];
            return Ok(text[..end].into());
        };
        let (mut field, mut rest) = (Cow::Borrowed(b"".as_slice()), quoted);
        loop {
            let cut = Defect::Form("a quote is opened and not closed: the line is cut off");
            let end = memchr::memchr(b'"', rest).ok_or(cut)?;
            match field.is_empty() {
                true => field = Cow::Borrowed(&rest[..end]),
                false => field.to_mut().extend_from_slice(&rest[..end]),
            }
            let Some(twice) = rest[end + 1..].strip_prefix(b"\"") else {
                self.0 = &rest[end + 1..];
                return Ok(field);
            };
            field.to_mut().push(b'"');
            rest = twice;
        }
    }

    fn text(&mut self) -> Result<Cow<'a, [u8]>, Defect> {
        self.next()
    }

    /// A text that is in quotes, as texts are.
    fn quoted(&mut self) -> Result<Cow<'a, [u8]>, Defect> {
        match self.0.trim_ascii_start().first() {
            Some(b'"') => self.next(),
            _ => Err(Defect::Form("a number stands where a text should")),
        }
    }

    /// A field that needs no quotes.
    fn plain(&mut self) -> Result<&'a [u8], Defect> {
        match self.next()? {
            Cow::Borrowed(field) => Ok(field),
            Cow::Owned(_) => Err(Defect::Form("a text stands where a number should")),
        }
    }

    fn number(&mut self, field: &'static str) -> Result<u32, Defect> {
        let text = self.plain()?;
        let number = whole(text).and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| Defect::Unreadable { field, text: shown(text) })
    }

    fn skip(&mut self, count: u32) -> Result<(), Defect> {
        (0..count).try_for_each(|_| self.next().map(|_| ()))
    }
}
