//! Bytes into lines, and a line into a request: everything that a client can get wrong by itself.
//!
//! As long as lines end, a line that makes no sense has an answer, and the next one is read as if
//! nothing had been. A line that does not end within the limit cannot be told from the next request any
//! more, so that is the end of the connection.

use crate::wire::{Refusal, RefusalKind, Reply, Request};

/// The most characters of a parser's words that are passed on: they may quote what was sent.
const LONGEST_REASON: usize = 240;

/// Lines out of bytes that come in pieces. It holds one line that is not complete, and what came with
/// it.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// There is no line's end before this place.
    searched: usize,
    limit: usize,
}

/// A line is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oversized {
    /// How long it may be.
    pub limit: usize,
}

impl From<Oversized> for Refusal {
    fn from(oversized: Oversized) -> Self {
        let limit = oversized.limit;
        let message =
            format!("the request has more than {limit} bytes; the daemon reads no further");
        Refusal { kind: RefusalKind::TooMuch, message }
    }
}

impl Lines {
    /// Lines of at most so many bytes, the end of the line not counted.
    pub fn new(limit: usize) -> Self {
        Lines { bytes: Vec::new(), searched: 0, limit }
    }

    /// More bytes have come. Before that, [`next_line`](Self::next_line) has to be asked until there is
    /// no line left: then what is held is bounded by the limit and one piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
    }

    /// The next complete line, without its end.
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

    /// Whether a line has begun that has not ended.
    pub fn is_begun(&self) -> bool {
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
    let json = &mut serde_json::Deserializer::from_str(text);
    let request: Request = serde_path_to_error::deserialize(&mut *json).map_err(|error| {
        let path = error.path().to_string();
        malformed(match path.as_str() {
            "." | "?" => explain(error.inner()),
            path => format!("field '{}': {}", shortened(path), explain(error.inner())),
        })
    })?;
    json.end().map_err(|error| malformed(explain(&error)))?;
    request.check()?;
    Ok(request)
}

/// What a parser says, with the byte at which it says so: there is but one line.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let reason = shortened(text.strip_suffix(&place).unwrap_or(&text));
    match error.column() {
        0 => reason,
        byte => format!("{reason} (byte {byte} of the request)"),
    }
}

/// A text, cut where it gets too long.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// An answer as it goes over the wire: a line.
pub fn line_of(reply: &Reply) -> Vec<u8> {
    let mut line = serde_json::to_vec(reply).unwrap_or_else(|error| {
        // No reply holds what JSON cannot; if one ever does, the client is told so.
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
    use crate::job::{After, JobRequest, Program, Submission};
    use crate::wire::ForecastRequest;
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
            Request::Forecast(Box::new(ForecastRequest {
                budget: vec![(Span::from_secs(3600), "80%".to_owned())],
                ..ForecastRequest::default()
            })),
            Request::Status,
            Request::Stop,
        ]
    }

    #[test]
    fn every_request_is_read_as_it_was_written() {
        for request in requests() {
            let line = serde_json::to_vec(&request).unwrap();
            assert!(!line.contains(&b'\n'));
            assert_eq!(parse(&line), Ok(request));
        }
        assert_eq!(parse(b" \"queue\" \r"), Ok(Request::Queue));
        assert_eq!(parse(br#"{"budget":{}}"#), Ok(Request::Budget { set: None }));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, what) in [
            (&b""[..], "the line is empty"),
            (b"  \t", "the line is empty"),
            (b"{", "EOF while parsing"),
            (b"\"fly\"", "unknown variant `fly`, expected one of `submit`, `queue`"),
            (b"{\"show\":{}}", "field 'show': missing field `job`"),
            (
                b"{\"show\":{\"job\":\"x\"}}",
                "field 'show.job': invalid type: string \"x\", expected u64",
            ),
            (
                b"{\"show\":{\"job\":-1}}",
                "field 'show.job': invalid value: integer `-1`, expected u64",
            ),
            (b"{\"show\":{\"job\":1,\"jib\":2}}", "unknown field `jib`, expected `job`"),
            (b"{\"cancel\":{\"jobs\":[1,2,{}]}}", "field 'cancel.jobs[2]': invalid type: map"),
            (b"\"queue\" \"queue\"", "trailing characters (byte 9 of the request)"),
            (b"\"que\xffue\"", "byte 5 of the request is not UTF-8"),
            (b"\"que\0ue\"", "control character"),
            (b"\0", "expected value (byte 1 of the request)"),
        ] {
            let refusal = parse(line).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Malformed);
            assert!(refusal.message.contains(what), "{refusal}, not {what}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(parse(deep.as_bytes()).unwrap_err().kind, RefusalKind::Malformed);
        let long = format!("\"{}\"", "é".repeat(500_000));
        let message = parse(long.as_bytes()).unwrap_err().message;
        assert!(message.len() < 1000, "what is quoted is cut: {} bytes", message.len());
    }

    #[test]
    fn a_request_names_a_bounded_number_of_jobs() {
        for name in ["cancel", "hold", "release"] {
            let line = |count: usize| {
                format!("{{\"{name}\":{{\"jobs\":[{}]}}}}", vec!["1"; count].join(","))
            };
            assert!(parse(line(1000).as_bytes()).is_ok());
            let refusal = parse(line(1001).as_bytes()).unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::TooMuch);
            assert!(refusal.message.contains("1001 jobs, and may name at most 1000"), "{refusal}");
        }
        let line =
            format!("{{\"forecast\":{{\"budget\":[{}]}}}}", vec!["[0,\"1W\"]"; 1001].join(","));
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
        let line = prop::sample::select(requests()).prop_map(|r| serde_json::to_vec(&r).unwrap());
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
                        let again = serde_json::to_vec(&request).unwrap();
                        prop_assert_eq!(parse(&again), Ok(request));
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
