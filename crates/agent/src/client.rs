//! One connection to one agent, for commands: it asks, and waits for the answer.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, poll};
use rustix::time::Timespec;
use rustls::ClientConfig;

use crate::instance::Instance;
use crate::link::{Link, LinkError, Socket};
use crate::tls::{TlsError, server_name};
use crate::wire::{
    Answer, Inventory, LONGEST_ANSWER, Message, Numbered, PROTOCOL, Refusal, Request, version_text,
};

/// Where an agent listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On this machine.
    Unix(PathBuf),
    /// On another machine, as `host:port`.
    Tcp(String),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Unix(path) => path.display().fmt(f),
            Address::Tcp(place) => f.write_str(place),
        }
    }
}

/// A connection to an agent that has admitted this client.
#[derive(Debug)]
pub struct Client {
    address: Address,
    link: Link,
    patience: Duration,
    next_id: u64,
    inventory: Inventory,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens.
    #[error("no agent listens on {address}; start one with: busbar agent run")]
    NoAgent {
        /// The place.
        address: Address,
        /// The system's error.
        source: io::Error,
    },
    /// The keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// TCP without keys.
    #[error("an agent on another machine ({0}) wants keys: --authority, --certificate and --key")]
    NoKeys(Address),
    /// The connection broke.
    #[error("the connection to the agent on {address} broke: {reason}")]
    Broken {
        /// The place.
        address: Address,
        /// The reason, in words.
        reason: String,
    },
    /// The answer did not come in time.
    #[error("the agent on {address} did not answer within {seconds} s")]
    Silent {
        /// The place.
        address: Address,
        /// How long the client waited.
        seconds: f64,
    },
    /// The agent refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Client {
    /// Connects and waits to be admitted. `node` is the name that the agent's certificate must carry;
    /// `control` says whether caps will be set.
    pub fn connect(
        address: &Address,
        node: &str,
        keys: Option<&Arc<ClientConfig>>,
        name: &str,
        control: bool,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let refused = |source| ClientError::NoAgent { address: address.clone(), source };
        let broken = |error: LinkError| broken(address, &error);
        let (socket, tls) = match address {
            Address::Unix(path) => {
                (Socket::Unix(UnixStream::connect(path).map_err(refused)?), None)
            }
            Address::Tcp(place) => {
                let keys = keys.ok_or_else(|| ClientError::NoKeys(address.clone()))?;
                let stream = connect_tcp(place, patience).map_err(refused)?;
                let tls = rustls::ClientConnection::new(keys.clone(), server_name(node)?).map_err(
                    |error| broken(LinkError::Unacceptable(crate::tls::explain(&error))),
                )?;
                (Socket::Tcp(stream), Some(tls.into()))
            }
        };
        let mut link =
            Link::new(socket, tls, LONGEST_ANSWER).map_err(|error| broken(error.into()))?;
        let id = 0;
        link.send(&Numbered { id, request: hello(name, control, None) }).map_err(broken)?;
        match wait(&mut link, address, patience)? {
            Message::Answer { answer, .. } => match *answer {
                Answer::Welcome { inventory, .. } => {
                    let address = address.clone();
                    Ok(Client { address, link, patience, next_id: 1, inventory })
                }
                Answer::Refused(refusal) => Err(refusal.into()),
                other => Err(unexpected(address, &other)),
            },
            other => Err(unexpected(address, &other)),
        }
    }

    /// The inventory at the time of the connection.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Asks, and waits for the answer. Events and samples that come before it are dropped.
    pub fn ask(&mut self, request: Request) -> Result<Answer, ClientError> {
        let id = self.next_id;
        self.next_id += 1;
        let sent = self.link.send(&Numbered { id, request });
        sent.map_err(|error| broken(&self.address, &error))?;
        let deadline = Instant::now() + self.patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match wait(&mut self.link, &self.address, left)? {
                Message::Answer { id: of, answer } if of == id => match *answer {
                    Answer::Refused(refusal) => return Err(refusal.into()),
                    answer => return Ok(answer),
                },
                _ => continue,
            }
        }
    }

    /// The next message, of whatever kind.
    pub fn next(&mut self, within: Duration) -> Result<Message, ClientError> {
        wait(&mut self.link, &self.address, within)
    }
}

/// The first request of a connection.
pub(crate) fn hello(client: &str, control: bool, instance: Option<Instance>) -> Request {
    let protocol = version_text(PROTOCOL);
    Request::Hello { protocol, client: client.to_owned(), control, instance }
}

fn connect_tcp(place: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn wait(link: &mut Link, address: &Address, within: Duration) -> Result<Message, ClientError> {
    let deadline = Instant::now() + within;
    loop {
        let failed = |error: &LinkError| broken(address, error);
        link.flush().map_err(|error| failed(&error))?;
        match link.next_line() {
            Ok(Some(line)) => {
                return serde_json::from_slice(line).map_err(|error| unexpected(address, &error));
            }
            Ok(None) => (),
            Err(error) => return Err(failed(&error)),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let seconds = within.as_secs_f64();
            return Err(ClientError::Silent { address: address.clone(), seconds });
        }
        let interest = link.interest();
        let mut waited = [PollFd::new(link.socket(), interest)];
        match poll(&mut waited, Some(&timespec(left))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(failed(&io::Error::from(error).into())),
        }
        link.receive().map_err(|error| failed(&error))?;
    }
}

/// A duration as the system calls take it, rounded up so that nobody wakes too early.
pub(crate) fn timespec(duration: Duration) -> Timespec {
    let millis = duration.as_millis().min(3_600_000) as i64 + 1;
    Timespec { tv_sec: millis / 1000, tv_nsec: (millis % 1000) * 1_000_000 }
}

fn broken(address: &Address, error: &LinkError) -> ClientError {
    ClientError::Broken { address: address.clone(), reason: error.to_string() }
}

fn unexpected(address: &Address, what: &dyn std::fmt::Debug) -> ClientError {
    let text: String = format!("{what:?}").chars().take(80).collect();
    let reason = format!("its answer has an unknown form ({text}); is it another version?");
    ClientError::Broken { address: address.clone(), reason }
}
