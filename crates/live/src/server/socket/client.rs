//! The client's side of the socket: one request at a time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::wire::{Reply, Request, Sent};

/// How long a client waits to send a request, and for the answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens on the socket.
    #[error("no daemon listens on {}; start one with: busbar serve --background", path.display())]
    NoDaemon {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The socket cannot be used.
    #[error("cannot use the socket {}", path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The daemon did not answer.
    #[error(
        "the daemon on {} did not answer; 'busbar status' shows whether it runs, and 'busbar queue' whether a \
        request was carried out",
        path.display()
    )]
    Silent {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The answer cannot be read.
    #[error(
        "the daemon on {} gave an answer that cannot be read; is it another version?",
        path.display()
    )]
    Unreadable {
        /// The path of the socket.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
}

impl Client {
    /// Connects to the daemon that listens on this socket.
    pub fn connect(path: &Path) -> Result<Self, ClientError> {
        let failed = |source: io::Error| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ClientError::NoDaemon { path, source }
                }
                _ => ClientError::Socket { path, source },
            }
        };
        let stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Client { path: path.to_owned(), stream: BufReader::new(stream) })
    }

    /// Sends a request and waits for the answer. A refusal is an answer, too ([`Reply::Error`]).
    pub fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        let unreadable = |source| ClientError::Unreadable { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(&Sent::new(request)).map_err(unreadable)?;
        line.push(b'\n');
        let sent = self.stream.get_mut().write_all(&line);
        // A daemon that refuses a connection says so without reading the request.
        let mut answer = Vec::new();
        let read = self.stream.read_until(b'\n', &mut answer);
        let is_whole = answer.last() == Some(&b'\n');
        if is_whole {
            return serde_json::from_slice(&answer).map_err(unreadable);
        }
        let cause = match (sent, read) {
            (_, Err(error)) | (Err(error), Ok(_)) => error,
            (Ok(()), Ok(_)) => io::ErrorKind::UnexpectedEof.into(),
        };
        Err(ClientError::Silent { path: self.path.clone(), source: plain(cause) })
    }
}

impl Client {
    /// Waits until the daemon closes the connection. When a daemon stops, it does this last, after
    /// releasing its socket and state.
    pub fn wait_for_end(mut self) -> Result<(), ClientError> {
        let mut unread = [0; 512];
        loop {
            match self.stream.read(&mut unread) {
                Ok(0) => return Ok(()),
                Ok(_) => continue,
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => continue,
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                        let text = format!("it has not stopped within {} s", PATIENCE.as_secs());
                        let source = io::Error::new(io::ErrorKind::TimedOut, text);
                        return Err(ClientError::Silent { path: self.path, source });
                    }
                    _ => return Ok(()),
                },
            }
        }
    }
}

/// Words a socket error for users: "broken pipe" would be taken for the command's own output.
fn plain(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => {
            io::Error::new(ConnectionReset, "it closed the connection")
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let text = format!("no answer within {} s", PATIENCE.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, text)
        }
        _ => error,
    }
}
