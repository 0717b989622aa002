//! Splits bytes into lines, and reads a line as a request.
//!
//! A line that cannot be read is answered with an error, and the next one is read normally. A line that
//! exceeds the limit cannot be told from the next request, so it ends the connection.

use serde::Deserialize as _;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

use crate::wire::{PROTOCOL, Protocol, Refusal, RefusalKind, Reply, Request};

/// The longest quoted error of the JSON parser, in characters; it may quote the request.
const LONGEST_REASON: usize = 240;

/// The largest number of unknown fields that are ignored in a request.
const MOST_UNKNOWN: usize = 64;

/// Collects bytes into lines. It holds one incomplete line, and what arrived with it.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// There is no newline before this position.
    searched: usize,
    limit: usize,
}

/// A line exceeds the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversized {
    /// The limit in bytes.
    pub limit: usize,
}

impl From<Oversized> for Refusal {
    fn from(oversized: Oversized) -> Self {
        let limit = oversized.limit;
        let message = format!("the request has more than {limit} bytes");
        Refusal { kind: RefusalKind::TooMuch, message }
    }
}

impl Lines {
    /// Lines of at most `limit` bytes without the newline.
    pub fn new(limit: usize) -> Self {
        Lines { bytes: Vec::new(), searched: 0, limit }
    }

    /// Adds bytes. [`next_line`](Self::next_line) must have returned `None` before, so that memory
    /// is bounded by the limit and one piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete line, without the newline.
    pub fn next_line(&mut self) -> Result<Option<Vec<u8>>, Oversized> {
        let Some(place) = memchr::memchr(b'\n', &self.bytes[self.searched..]) else {
            self.searched = self.bytes.len();
            return match self.bytes.len() > self.limit {
                true => Err(Oversized { limit: self.limit }),
                false => Ok(None),
            };
        };
        let length = self.searched + place;
        if length > self.limit {
            return Err(Oversized { limit: self.limit });
        }
        let rest = self.bytes.split_off(length + 1);
        let mut line = std::mem::replace(&mut self.bytes, rest);
        line.truncate(length);
        self.searched = 0;
        Ok(Some(line))
    }

    /// Whether there is an incomplete line.
    pub(crate) fn is_begun(&self) -> bool {
        !self.bytes.is_empty()
    }
}

/// Reads a line as a request, or says what is wrong with it and where.
pub fn parse(line: &[u8]) -> Result<Request, Refusal> {
    let malformed = |message: String| Refusal { kind: RefusalKind::Malformed, message };
    let text = std::str::from_utf8(line).map_err(|error| {
        malformed(format!("byte {} of the request is not UTF-8", error.valid_up_to() + 1))
    })?;
    if text.trim().is_empty() {
        return Err(malformed("the line is empty; a request is a line of JSON".to_owned()));
    }
    let mut value: Value =
        serde_json::from_str(text).map_err(|error| malformed(explain(&error)))?;
    let stated = value.as_object_mut().and_then(|fields| fields.remove("protocol"));
    let protocol = match stated {
        Some(protocol) => Protocol::deserialize(protocol)
            .map_err(|error| malformed(format!("field 'protocol': {}", explain(&error))))?,
        None => Protocol::FIRST,
    };
    if let Some(mismatch) = protocol.mismatch() {
        return Err(malformed(mismatch));
    }
    let request = understood(value, protocol)?;
    Request::check(&request)?;
    Ok(request)
}

/// Reads a request of a version. Unknown fields of a newer minor version are ignored.
fn understood(mut value: Value, protocol: Protocol) -> Result<Request, Refusal> {
    let malformed = |message| Refusal::new(RefusalKind::Malformed, message);
    for _ in 0..MOST_UNKNOWN {
        let error = match serde_path_to_error::deserialize::<_, Request>(&value) {
            Ok(request) => return Ok(request),
            Err(error) => error,
        };
        let is_unknown = error.inner().to_string().starts_with("unknown field");
        if !(is_unknown && protocol.minor > PROTOCOL.minor && remove(&mut value, error.path())) {
            return Err(malformed(located(&error)));
        }
    }
    Err(malformed(format!("the request has more than {MOST_UNKNOWN} unknown fields")))
}

/// Removes the field at a path; returns whether it was there.
fn remove(mut value: &mut Value, path: &Path) -> bool {
    let mut segments = path.iter().peekable();
    while let Some(segment) = segments.next() {
        let next = match segment {
            Segment::Map { key } | Segment::Enum { variant: key } => {
                let Some(fields) = value.as_object_mut() else { return false };
                if segments.peek().is_none() {
                    return fields.remove(key).is_some();
                }
                fields.get_mut(key)
            }
            Segment::Seq { index } => value.get_mut(*index),
            Segment::Unknown => None,
        };
        let Some(next) = next else { return false };
        value = next;
    }
    false
}

/// A parser's error with the field it is about.
fn located(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    match error.path().to_string().as_str() {
        "." | "?" => explain(error.inner()),
        path => format!("field '{}': {}", shortened(path), explain(error.inner())),
    }
}

/// A parser's error with the position in the line.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = shortened(text.strip_suffix(&place).unwrap_or(&text));
    match error.column() {
        0 => reason,
        byte => format!("{reason} (byte {byte} of the request)"),
    }
}

/// Cuts a text that is too long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An answer as a line of JSON.
pub fn line_of(reply: &Reply) -> Vec<u8> {
    let mut line = serde_json::to_vec(reply).unwrap_or_else(|error| {
        // Every reply can be written as JSON; if one ever cannot, the client is told.
        let message = format!("the daemon could not write its answer: {error}");
        let refusal = Refusal { kind: RefusalKind::Unwritten, message };
        serde_json::to_vec(&Reply::Error(refusal)).unwrap_or_default()
    });
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{After, JobRequest, Program};
    use crate::wire::finished::{By, FinishedQuery, Place, UsageQuery};
    use crate::wire::{BudgetChange, ForecastRequest, Sent, State, Submission};
    use busbar_core::units::Span;
    use proptest::prelude::*;

    fn submission() -> Request {
        Request::Submit(Box::new(Submission {
            request: JobRequest {
                name: "β \"quoted\"\n".to_owned(),
                nodes: 2,
                moldable: Some((1, 4)),
                time: Span::from_secs(60),
                application: Some("CoMD".to_owned()),
                slowdown: Some("10%".to_owned()),
                after: vec![After { job: 3, any: true }],
                held: false,
                account: None,
                part: Default::default(),
            },
            program: Program {
                command: vec!["sh".to_owned(), "-c".to_owned(), "exit 3".to_owned()],
                folder: "/tmp".into(),
                environment: vec![("PATH".to_owned(), "/bin".to_owned())],
                output: "busbar-%j.out".into(),
                errors: None,
            },
            array: None,
        }))
    }

    fn requests() -> Vec<Request> {
        vec![
            submission(),
            Request::Queue,
            Request::Show { job: u64::MAX },
            Request::Cancel { jobs: vec![1, 2] },
            Request::Hold { jobs: vec![] },
            Request::Release { jobs: vec![9] },
            Request::Nodes,
            Request::Budget { set: Some("5kW".to_owned()) },
            Request::History { job: None, after: Some(7), limit: Some(50) },
            Request::Finished(Box::new(FinishedQuery {
                user: Some(7),
                account: Some("physics".to_owned()),
                states: vec![State::TimedOut],
                before: Some(Place { ended: 12, job: 3 }),
                ..FinishedQuery::default()
            })),
            Request::Usage(UsageQuery { by: By::Account, since: Some(-1), until: None }),
            Request::Forecast(Box::new(ForecastRequest {
                budget: vec![BudgetChange {
                    after: Span::from_millis(3_600_500),
                    limit: "80%".to_owned(),
                }],
                ..ForecastRequest::default()
            })),
            Request::Status,
            Request::Stop,
        ]
    }

    /// A line as this program sends it.
    fn sent(request: &Request) -> Vec<u8> {
        serde_json::to_vec(&Sent::new(request)).unwrap()
    }

    /// A line of the present version.
    fn line(rest: &str) -> String {
        format!(r#"{{"protocol":"{PROTOCOL}",{rest}}}"#)
    }

    #[test]
    fn every_request_is_read_as_it_was_written() {
        for request in requests() {
            let line = sent(&request);
            assert!(!line.contains(&b'\n'));
            assert_eq!(parse(&line), Ok(request));
        }
        assert_eq!(parse(br#" {"queue":null,"protocol":"2.0"} "#), Ok(Request::Queue));
        assert_eq!(parse(line(r#""budget":{}"#).as_bytes()), Ok(Request::Budget { set: None }));
    }

    /// What clients of version 1 sent, and what this program sends to a daemon of another version.
    #[test]
    fn a_client_of_another_version_is_told_what_to_update() {
        let refused = |line: &str| parse(line.as_bytes()).unwrap_err();
        for (line, stated) in [
            (r#""queue""#, "1.0"),
            (r#"{"show":{"job":7}}"#, "1.0"),
            (r#"{"forecast":{"budget":[[3600000,"80%"]],"job":null,"percent":null}}"#, "1.0"),
            (r#"{"protocol":"1.1","show":{"job":7}}"#, "1.1"),
        ] {
            let refusal = refused(line);
            assert_eq!(refusal.kind, RefusalKind::Malformed);
            let message = refusal.message;
            assert!(
                message.contains(&format!("of protocol {stated}, and this daemon")),
                "{message}"
            );
            assert!(message.contains("the client is older than the daemon"), "{message}");
            assert!(
                message.contains("use the busbar that is installed with the daemon"),
                "{message}"
            );
            assert!(message.contains("power in watts"), "{message}");
        }
        let newer = refused(r#"{"protocol":"3.0","show":{"job":7}}"#).message;
        assert!(newer.contains("of protocol 3.0"), "{newer}");
        assert!(newer.contains("update the daemon and restart it"), "{newer}");
        let wrong = refused(r#"{"protocol":2,"show":{"job":7}}"#).message;
        assert!(wrong.contains("field 'protocol': invalid type: integer `2`"), "{wrong}");
    }

    /// Version 1 had other units: a field of it is never taken for one of this version.
    #[test]
    fn keys_have_their_units() {
        let mut value: Value = serde_json::from_slice(&sent(&submission())).unwrap();
        let wish = value["submit"]["wish"].as_object_mut().unwrap();
        assert_eq!(wish.remove("time_s"), Some(60.into()));
        wish.insert("time".to_owned(), 60_000.into());
        let message = parse(value.to_string().as_bytes()).unwrap_err().message;
        assert!(message.contains("unknown field `time`"), "{message}");
        assert!(message.contains("`time_s`"), "{message}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, what) in [
            (&b""[..], "the line is empty"),
            (b"  \t", "the line is empty"),
            (b"{", "EOF while parsing"),
            (b"\"queue\" \"queue\"", "trailing characters (byte 9 of the request)"),
            (b"\"que\xffue\"", "byte 5 of the request is not UTF-8"),
            (b"\"que\0ue\"", "control character"),
            (b"\0", "expected value (byte 1 of the request)"),
        ] {
            let refusal = parse(line).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Malformed);
            assert!(refusal.message.contains(what), "{refusal}, not {what}");
        }
        for (rest, what) in [
            (r#""fly":{}"#, "unknown variant `fly`, expected one of `submit`, `queue`"),
            (r#""show":{}"#, "field 'show': missing field `job`"),
            (r#""show":{"job":"x"}"#, "field 'show.job': invalid type: string \"x\", expected u64"),
            (r#""show":{"job":-1}"#, "field 'show.job': invalid value: integer `-1`, expected u64"),
            (r#""show":{"job":1,"jib":2}"#, "unknown field `jib`, expected `job`"),
            (r#""cancel":{"jobs":[1,2,{}]}"#, "field 'cancel.jobs[2]': invalid type: map"),
        ] {
            let refusal = parse(line(rest).as_bytes()).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Malformed);
            assert!(refusal.message.contains(what), "{refusal}, not {what}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err().kind, RefusalKind::Malformed);
        let long = line(&format!("\"{}\":{{}}", "é".repeat(500_000)));
        let message = parse(long.as_bytes()).unwrap_err().message;
        assert!(message.len() < 1000, "what is quoted is cut: {} bytes", message.len());
    }

    #[test]
    fn a_newer_client_of_the_same_major_version_is_understood() {
        let show = Ok(Request::Show { job: 7 });
        assert_eq!(parse(br#"{"protocol":"2.0","show":{"job":7}}"#), show);
        let newer = br#"{"protocol":"2.9","show":{"job":7,"depth":[1],"colour":"red"}}"#;
        assert_eq!(parse(newer), show);
        let Request::Submit(mut submission) = submission() else { panic!() };
        let mut value = serde_json::to_value(Request::Submit(submission.clone())).unwrap();
        value["protocol"] = "2.2".into();
        value["submit"]["wish"]["gpus"] = 2.into();
        value["submit"]["wish"]["after"][0]["delay"] = 5.into();
        value["submit"]["program"]["shell"] = "sh".into();
        // Missing fields have defaults.
        value["submit"]["wish"].as_object_mut().unwrap().remove("slowdown");
        submission.request.slowdown = None;
        assert_eq!(parse(value.to_string().as_bytes()), Ok(Request::Submit(submission)));

        let refused = |line: &str| parse(line.as_bytes()).unwrap_err().message;
        let same = refused(r#"{"protocol":"2.0","show":{"job":7,"colour":"red"}}"#);
        assert!(same.contains("unknown field `colour`"), "{same}");
        let wrong = refused(r#"{"protocol":"2.2","show":{"job":"x"}}"#);
        assert!(wrong.contains("field 'show.job': invalid type"), "{wrong}");
    }

    #[test]
    fn a_request_names_a_bounded_number_of_jobs() {
        for name in ["cancel", "hold", "release"] {
            let naming = |count: usize| {
                line(&format!("\"{name}\":{{\"jobs\":[{}]}}", vec!["1"; count].join(",")))
            };
            assert!(parse(naming(1000).as_bytes()).is_ok());
            let refusal = parse(naming(1001).as_bytes()).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::TooMuch);
            assert!(refusal.message.contains("1001 jobs, and may name at most 1000"), "{refusal}");
        }
        let changes = vec![r#"{"in_s":0,"limit":"1W"}"#; 1001].join(",");
        let line = line(&format!("\"forecast\":{{\"budget\":[{changes}]}}"));
        let refusal = parse(line.as_bytes()).unwrap_err();
        assert!(refusal.message.contains("1001 changes of the budget"), "{refusal}");
    }

    #[test]
    fn lines_have_a_limit() {
        let mut lines = Lines::new(4);
        assert_eq!(lines.next_line(), Ok(None));
        assert!(!lines.is_begun());
        lines.push(b"abcd\n\nab");
        assert_eq!(lines.next_line(), Ok(Some(b"abcd".to_vec())));
        assert_eq!(lines.next_line(), Ok(Some(Vec::new())));
        assert_eq!(lines.next_line(), Ok(None));
        assert!(lines.is_begun());
        lines.push(b"cd");
        assert_eq!(lines.next_line(), Ok(None), "four bytes are not too many");
        lines.push(b"e");
        assert_eq!(lines.next_line(), Err(Oversized { limit: 4 }));
        let mut lines = Lines::new(4);
        lines.push(b"abcde\n");
        assert_eq!(lines.next_line(), Err(Oversized { limit: 4 }));
    }

    /// Requests with some of their bytes changed, cut out or doubled.
    fn mutated() -> impl Strategy<Value = Vec<u8>> {
        let line = prop::sample::select(requests()).prop_map(|request| sent(&request));
        let edits =
            prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..6);
        (line, edits).prop_map(|(mut line, edits)| {
            for (place, byte, kind) in edits {
                let place = place.index(line.len().max(1));
                match kind {
                    _ if line.is_empty() => line.push(byte),
                    0 => line[place] = byte,
                    1 => drop(line.remove(place)),
                    2 => line.insert(place, byte),
                    _ => line.extend_from_within(place..),
                }
            }
            line
        })
    }

    proptest! {
        /// However bytes are cut into pieces, the lines are those of the whole, up to the first that is
        /// too long; each has an answer that can be sent, and what was read is written as it was read.
        #[test]
        fn any_bytes_are_lines_and_answers(
            parts in prop::collection::vec(
                prop_oneof![mutated(), prop::collection::vec(any::<u8>(), 0..40)], 0..6),
            limit in prop_oneof![1..60usize, Just(1 << 20)],
            piece in 1..50usize,
        ) {
            let bytes = parts.join(&b'\n');
            let mut expected = Vec::new();
            let mut oversized = false;
            let mut whole: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            let rest = whole.pop().unwrap();
            for line in &whole {
                oversized |= line.len() > limit;
                if oversized { break }
                expected.push(line.to_vec());
            }
            oversized |= rest.len() > limit;

            let mut lines = Lines::new(limit);
            let mut found = Vec::new();
            let mut ended = false;
            'bytes: for piece in bytes.chunks(piece) {
                lines.push(piece);
                loop {
                    match lines.next_line() {
                        Ok(Some(line)) => found.push(line),
                        Ok(None) => break,
                        Err(_) => { ended = true; break 'bytes }
                    }
                }
                prop_assert!(lines.bytes.len() <= limit, "what is held is bounded");
            }
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(ended, oversized);
            for line in found {
                match parse(&line) {
                    Ok(request) => {
                        prop_assert_eq!(parse(&sent(&request)), Ok(request));
                    }
                    Err(refusal) => {
                        prop_assert!(!refusal.message.is_empty() && refusal.message.len() < 2000);
                        let answer = line_of(&Reply::Error(refusal));
                        prop_assert_eq!(answer.iter().filter(|byte| **byte == b'\n').count(), 1);
                    }
                }
            }
        }
    }
}
