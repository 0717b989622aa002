//! As much of HTTP as slurmrestd needs: one request a connection, within a time.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::error::SlurmError;

/// The longest answer that is read.
const MOST: usize = 512 << 20;

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
pub struct Token {
    /// The name of the user.
    pub user: String,
    /// The token, as `scontrol token` prints it after the equals sign.
    pub token: String,
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

/// A stream of either kind.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(address: &Address, within: Duration) -> io::Result<Self> {
        match address {
            Address::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
            Address::Tcp(place) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in place.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, within) {
                        Ok(stream) => return Ok(Stream::Tcp(stream)),
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Sets how long one read or write may take.
    fn limit(&self, left: Duration) -> io::Result<()> {
        let left = Some(left.max(Duration::from_millis(1)));
        match self {
            Stream::Unix(stream) => {
                stream.set_read_timeout(left).and_then(|()| stream.set_write_timeout(left))
            }
            Stream::Tcp(stream) => {
                stream.set_read_timeout(left).and_then(|()| stream.set_write_timeout(left))
            }
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
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
    let deadline = Instant::now() + patience;
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
    stream.limit(patience).map_err(failed)?;
    stream.send(request.as_bytes()).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match parse(&bytes, false) {
            Ok(Some(response)) => return Ok(response),
            Ok(None) => (),
            Err(reason) => return Err(SlurmError::Unreadable { what, reason }),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SlurmError::Timeout { what, within: patience });
        }
        stream.limit(left).map_err(failed)?;
        match stream.receive(&mut buffer) {
            Ok(0) => break,
            Ok(count) if bytes.len() + count > MOST => {
                return Err(SlurmError::Unreadable {
                    what,
                    reason: format!("{count} bytes too many"),
                });
            }
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(failed(error)),
        }
    }
    match parse(&bytes, true) {
        Ok(Some(response)) => Ok(response),
        Ok(None) if bytes.is_empty() => {
            Err(SlurmError::Unreachable { what, text: "the connection was closed".to_owned() })
        }
        Ok(None) => {
            Err(SlurmError::Unreadable { what, reason: "the answer is not complete".to_owned() })
        }
        Err(reason) => Err(SlurmError::Unreadable { what, reason }),
    }
}

/// The answer in some bytes, if it is complete; `is_all` says that no more will come.
fn parse(bytes: &[u8], is_all: bool) -> Result<Option<Response>, String> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let rest = &bytes[end + 4..];
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let status =
        first.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let Some(status) = status else {
        return Err(format!("'{}' is not HTTP", first.chars().take(60).collect::<String>()));
    };
    let (mut length, mut is_chunked) = (None, false);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        match name.trim().to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<usize>().ok(),
            "transfer-encoding" => is_chunked = value.trim().eq_ignore_ascii_case("chunked"),
            _ => (),
        }
    }
    let body = match (is_chunked, length) {
        (true, _) => unchunk(rest)?,
        (false, Some(length)) => rest.get(..length).map(<[u8]>::to_vec),
        (false, None) if is_all => Some(rest.to_vec()),
        (false, None) => None,
    };
    Ok(body.map(|body| Response { status, body: String::from_utf8_lossy(&body).into_owned() }))
}

/// The body of an answer in chunks, if it is complete.
fn unchunk(mut rest: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut body = Vec::new();
    loop {
        let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16)
            .map_err(|_| format!("'{digits}' is not the length of a chunk"))?;
        let begin = end + 2;
        let Some(chunk) = size.checked_add(begin).and_then(|end| rest.get(begin..end)) else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(chunk);
        match rest.get(begin + size + 2..) {
            Some(after) => rest = after,
            None => return Ok(None),
        }
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

    #[test]
    fn answers_are_read_in_parts() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end], false), Ok(None));
        }
        let expected = Response { status: 200, body: "{}".to_owned() };
        assert_eq!(parse(whole, false), Ok(Some(expected.clone())));
        let chunked =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x\r\n}\r\n0\r\n\r\n";
        assert_eq!(parse(chunked, false), Ok(Some(expected.clone())));
        assert_eq!(parse(&chunked[..chunked.len() - 8], false), Ok(None));
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\n\r\n{}", true), Ok(Some(expected)));
        assert!(parse(b"SSH-2.0\r\n\r\n", false).is_err());
        assert!(
            parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", false).is_err()
        );
        assert_eq!(
            parse(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                false
            ),
            Ok(None)
        );
    }
}
