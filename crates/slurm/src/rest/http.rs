//! As much of HTTP as slurmrestd needs: one request a connection, within a time.
//!
//! It is written here because a client that takes Unix sockets would bring a runtime, and is longer to set up than this is:
//! an answer is a head and a length, or chunks.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::error::SlurmError;

/// The longest answer that is read, and the longest line of its head.
const MOST: u64 = 512 << 20;
const LONGEST_LINE: u64 = 64 << 10;

/// Where slurmrestd listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On this machine.
    Unix(PathBuf),
    /// As `host:port`.
    Tcp(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(place) => f.write_str(place),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    /// Reads `http://host:6820` and `/run/slurmrestd/socket`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') {
            return Ok(Address::Unix(text.into()));
        }
        let place = text.strip_prefix("http://").map(|place| place.trim_end_matches('/'));
        let port =
            place.and_then(|place| place.rsplit_once(':')).map(|(_, port)| port.parse::<u16>());
        match (place, port) {
            (Some(place), Some(Ok(_))) if !place.contains('/') => {
                Ok(Address::Tcp(place.to_owned()))
            }
            _ => Err(format!(
                "'{text}' is not an address of slurmrestd; write http://localhost:6820 or the path of a socket"
            )),
        }
    }
}

impl Address {
    /// Whether what is said stays on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Unix(_) => true,
            Address::Tcp(place) => {
                let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
                let host = host.trim_start_matches('[').trim_end_matches(']');
                host == "localhost"
                    || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        }
    }

    /// The address as a configuration has it.
    pub fn written(&self) -> String {
        match self {
            Address::Unix(path) => path.display().to_string(),
            Address::Tcp(place) => format!("http://{place}"),
        }
    }
}

/// Who asks, and the token that proves it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// The name of the user.
    pub(crate) user: String,
    /// The token, as `scontrol token` prints it after the equals sign.
    pub(crate) token: String,
}

impl fmt::Debug for Token {
    /// Shows the user alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token of {}", self.user)
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        })
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) body: String,
}

/// A connection, of which all reads and writes together may take until a deadline.
struct Stream {
    socket: Socket,
    deadline: Instant,
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(address: &Address, within: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + within;
        let socket = match address {
            Address::Unix(path) => UnixStream::connect(path).map(Socket::Unix)?,
            Address::Tcp(place) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                let connected = place.to_socket_addrs()?.find_map(|address| {
                    let connected = TcpStream::connect_timeout(&address, within);
                    connected.map_err(|error| last = error).ok()
                });
                connected.map(Socket::Tcp).ok_or(last)?
            }
        };
        Ok(Stream { socket, deadline })
    }

    /// The time that is left; an error if there is none.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // A timeout of zero would mean no timeout.
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.socket {
            Socket::Unix(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(into)),
            Socket::Tcp(stream) => stream.set_read_timeout(left).and_then(|()| stream.read(into)),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left()?;
        match &mut self.socket {
            Socket::Unix(stream) => {
                stream.set_write_timeout(left).and_then(|()| stream.write(bytes))
            }
            Socket::Tcp(stream) => {
                stream.set_write_timeout(left).and_then(|()| stream.write(bytes))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends a request and returns the answer, whatever its status.
pub(super) fn ask(
    address: &Address,
    token: Option<&Token>,
    method: Method,
    path: &str,
    body: Option<&str>,
    patience: Duration,
) -> Result<Response, SlurmError> {
    let what = format!("{method} {path} on {address}");
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json\r\n"
    );
    if let Some(Token { user, token }) = token {
        if user.chars().chain(token.chars()).any(char::is_control) {
            return Err(SlurmError::Unreadable {
                what,
                reason: "the token or its user contains a line break".to_owned(),
            });
        }
        head += &format!("X-SLURM-USER-NAME: {user}\r\nX-SLURM-USER-TOKEN: {token}\r\n");
    }
    let body = body.unwrap_or_default();
    if !body.is_empty() {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    let request = head + "\r\n" + body;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            SlurmError::Timeout { what: what.clone(), within: patience }
        }
        _ => SlurmError::Unreachable { what: what.clone(), text: error.to_string() },
    };
    let mut stream = Stream::connect(address, patience).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    read(stream).map_err(|problem| match problem {
        Problem::Io(error) => failed(error),
        Problem::Silent => {
            let text = "the connection was closed".to_owned();
            SlurmError::Unreachable { what: what.clone(), text }
        }
        Problem::Wrong(reason) => SlurmError::Unreadable { what: what.clone(), reason },
    })
}

/// Why there is no answer.
#[derive(Debug)]
enum Problem {
    /// The connection failed, or took too long.
    Io(io::Error),
    /// It was closed without a byte.
    Silent,
    /// The answer cannot be read.
    Wrong(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Problem::Io(error)
    }
}

fn incomplete() -> Problem {
    Problem::Wrong("the answer is not complete".to_owned())
}

/// Reads an answer, each byte of it once.
fn read(stream: impl Read) -> Result<Response, Problem> {
    let mut stream = BufReader::new(stream.take(MOST));
    let answer = read_within(&mut stream);
    match stream.get_ref().limit() {
        0 => Err(Problem::Wrong(format!("it has more than {MOST} bytes"))),
        _ => answer,
    }
}

fn read_within(stream: &mut impl BufRead) -> Result<Response, Problem> {
    if stream.fill_buf()?.is_empty() {
        return Err(Problem::Silent);
    }
    let first = line(stream)?;
    let status =
        first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let Some(status) = status else {
        let first: String = first.chars().take(60).collect();
        return Err(Problem::Wrong(format!("'{first}' is not HTTP")));
    };
    let (mut length, mut is_chunked) = (None, false);
    loop {
        let line = line(stream)?;
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        match name.trim().to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<u64>().ok(),
            "transfer-encoding" => is_chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => (),
        }
    }
    let mut body = Vec::new();
    match (is_chunked, length) {
        (true, _) => read_chunks(stream, &mut body)?,
        (false, Some(length)) => read_exactly(stream, length, &mut body)?,
        (false, None) => _ = stream.read_to_end(&mut body)?,
    }
    Ok(Response { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// The next line, without its end.
fn line(stream: &mut impl BufRead) -> Result<String, Problem> {
    let mut line = Vec::new();
    stream.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    let text = line.strip_suffix(b"\n").ok_or_else(incomplete)?;
    Ok(String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned())
}

fn read_exactly(stream: &mut impl Read, length: u64, body: &mut Vec<u8>) -> Result<(), Problem> {
    let count = stream.take(length).read_to_end(body)?;
    if count as u64 == length { Ok(()) } else { Err(incomplete()) }
}

fn read_chunks(stream: &mut impl BufRead, body: &mut Vec<u8>) -> Result<(), Problem> {
    loop {
        let line = line(stream)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16)
            .map_err(|_| Problem::Wrong(format!("'{digits}' is not the length of a chunk")))?;
        if size == 0 {
            return Ok(());
        }
        read_exactly(stream, size, body)?;
        self::line(stream)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        for (text, is_local) in [
            ("http://localhost:6820", true),
            ("http://127.0.0.1:6820", true),
            ("http://[::1]:6820", true),
            ("/run/slurmrestd/socket", true),
            ("http://head:6820", false),
            ("http://127.0.0.1.example.org:6820", false),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.is_local(), address.written().as_str()), (is_local, text));
        }
        for text in
            ["", "head:6820", "https://head:6820", "http://head", "http://head:x", "http://a/b:1"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    /// A stream that brings one byte at a time, and counts them.
    struct Dribbling<'a>(&'a [u8], &'a mut usize);

    impl Read for Dribbling<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(&mut into[..1])?;
            *self.1 += count;
            Ok(count)
        }
    }

    #[test]
    fn answers_are_read_in_parts() {
        let mut expected = Some(Response { status: 200, body: "{}".to_owned() });
        for whole in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x\r\n}\r\n0\r\n",
        ] {
            let whole = whole.as_bytes();
            for end in 1..whole.len() - 1 {
                assert!(matches!(read(&whole[..end]), Err(Problem::Wrong(_))), "{end}");
            }
            let mut count = 0;
            assert_eq!(read(Dribbling(whole, &mut count)).ok(), expected);
            assert_eq!(count, whole.len());
        }
        assert_eq!(read(&b"HTTP/1.0 200 OK\r\n\r\n{}"[..]).ok(), expected.take());
        assert!(matches!(read(&b""[..]), Err(Problem::Silent)));
        let wrong = |text: &str| match read(text.as_bytes()) {
            Err(Problem::Wrong(reason)) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong("SSH-2.0\r\n\r\n"), "'SSH-2.0' is not HTTP");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(wrong(&format!("{chunked}x\r\n")), "'x' is not the length of a chunk");
        let endless = format!("{chunked}ffffffffffffffff\r\n{{}}");
        assert_eq!(wrong(&endless), "the answer is not complete");
    }
}
