//! One agent as a controller sees it: not connected, on the way, or connected with requests under way.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustls::ClientConfig;

use super::{AgentId, Options, Report, Target, Ticket};
use crate::client::{Address, hello};
use crate::link::{Link, LinkError, Socket};
use crate::tls::server_name;
use crate::wire::{Answer, LONGEST_ANSWER, Message, Numbered, Refusal, RefusalKind, Request};

/// An agent.
pub(super) struct Peer {
    id: AgentId,
    target: Target,
    state: State,
    /// How long to wait after the next failure.
    pause: Duration,
    /// The reason that was reported last, if the agent is known to be down.
    told: Option<String>,
    next_id: u64,
    /// The agent is of a version that does not understand which of several controllers we are.
    is_older: bool,
}

enum State {
    /// Not connected until then.
    Resting(Instant),
    /// The system is to connect this socket, until the deadline.
    Connecting(OwnedFd, Instant),
    /// The agent is to admit us, until the deadline.
    Greeting(Link, Instant),
    /// Connected.
    Up(Link, VecDeque<Pending>),
}

/// A request that was sent.
struct Pending {
    id: u64,
    /// `None` if nobody wants to know the answer.
    ticket: Option<Ticket>,
    deadline: Instant,
}

/// Where reports go.
pub(super) type Sink<'a> = &'a mut dyn FnMut(Report);

impl Peer {
    pub(super) fn new(id: AgentId, target: Target, options: &Options) -> Self {
        let state = State::Resting(Instant::now());
        Peer {
            id,
            target,
            state,
            pause: options.first_pause,
            told: None,
            next_id: 1,
            is_older: false,
        }
    }

    /// What to wait for, if anything.
    pub(super) fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match &self.state {
            State::Resting(_) => None,
            State::Connecting(socket, _) => Some((socket.as_fd(), PollFlags::OUT)),
            State::Greeting(link, _) | State::Up(link, _) => {
                Some((link.socket().as_fd(), link.interest()))
            }
        }
    }

    /// When something is due even if nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Resting(until) => Some(*until),
            State::Connecting(_, until) | State::Greeting(_, until) => Some(*until),
            State::Up(_, pending) => pending.iter().map(|request| request.deadline).min(),
        }
    }

    /// The name that must be looked up before this agent can be connected, if it is time to connect.
    pub(super) fn name_to_resolve(&self, now: Instant) -> Option<&str> {
        match (&self.state, &self.target.address) {
            (State::Resting(until), Address::Tcp(place)) if *until <= now => {
                place.parse::<SocketAddr>().is_err().then_some(place)
            }
            _ => None,
        }
    }

    /// Keeps an agent waiting, because its name is being looked up.
    pub(super) fn rest_until(&mut self, until: Instant) {
        self.state = State::Resting(until);
    }

    /// Connects to the address that belongs to the agent's name, or reports why there is none.
    pub(super) fn resolved(
        &mut self,
        address: Result<SocketAddr, String>,
        options: &Options,
        report: Sink<'_>,
    ) {
        if !matches!(self.state, State::Resting(_)) {
            return;
        }
        match address.and_then(|address| connect_tcp(address).map_err(|error| error.to_string())) {
            Ok(socket) => {
                self.state = State::Connecting(socket, Instant::now() + options.connect_within);
            }
            Err(reason) => self.fail(&reason, options, report),
        }
    }

    /// Does what is due at this time.
    pub(super) fn elapse(&mut self, now: Instant, options: &Options, report: Sink<'_>) {
        match &self.state {
            State::Resting(until) if *until <= now => self.connect(options, report),
            State::Connecting(_, until) | State::Greeting(_, until) if *until <= now => {
                let seconds = options.connect_within.as_secs_f64();
                self.fail(&format!("it did not answer within {seconds} s"), options, report);
            }
            State::Up(_, pending) if pending.iter().any(|request| request.deadline <= now) => {
                self.fail("it did not answer in time", options, report);
            }
            _ => (),
        }
    }

    fn connect(&mut self, options: &Options, report: Sink<'_>) {
        match &self.target.address {
            Address::Unix(path) => match connect_unix(path) {
                Ok(stream) => self.greet(Socket::Unix(stream), options, report),
                Err(error) => {
                    let reason = format!("no agent listens on {}: {error}", path.display());
                    self.fail(&reason, options, report);
                }
            },
            Address::Tcp(place) => {
                let address = place.parse().map_err(|_| "its name has no address".to_owned());
                self.resolved(address, options, report);
            }
        }
    }

    /// Greets the agent on a socket that is connected.
    fn greet(&mut self, socket: Socket, options: &Options, report: Sink<'_>) {
        match self.link(socket, options) {
            Ok(link) => {
                self.state = State::Greeting(link, Instant::now() + options.connect_within);
            }
            Err(error) => self.fail(&error.to_string(), options, report),
        }
    }

    fn link(&self, socket: Socket, options: &Options) -> Result<Link, LinkError> {
        let tls = match socket {
            Socket::Unix(_) => None,
            Socket::Tcp(_) => Some(self.secure(options.keys.as_ref())?),
        };
        let mut link = Link::new(socket, tls, LONGEST_ANSWER)?;
        let instance = options.instance.clone().filter(|_| !self.is_older);
        let request = hello(&options.client, options.control, instance);
        link.send(&Numbered { id: 0, request })?;
        Ok(link)
    }

    fn secure(&self, keys: Option<&Arc<ClientConfig>>) -> Result<rustls::Connection, LinkError> {
        let keys =
            keys.ok_or_else(|| LinkError::Unacceptable("there are no keys for it".to_owned()))?;
        let name =
            server_name(&self.target.node).map_err(|e| LinkError::Unacceptable(e.to_string()))?;
        let connection = rustls::ClientConnection::new(keys.clone(), name);
        Ok(connection.map_err(|error| LinkError::Unacceptable(crate::tls::explain(&error)))?.into())
    }

    /// Sends a request. If the agent is not connected, it fails at once.
    pub(super) fn ask(
        &mut self,
        ticket: Option<Ticket>,
        request: Request,
        within: Duration,
        options: &Options,
        report: Sink<'_>,
    ) {
        let State::Up(link, pending) = &mut self.state else {
            if let Some(ticket) = ticket {
                let reason = match &self.told {
                    Some(reason) => format!("the agent is not connected: {reason}"),
                    None => "the agent is not connected yet".to_owned(),
                };
                report(Report::Failed { agent: self.id, ticket, unsent: true, reason });
            }
            return;
        };
        let id = self.next_id;
        self.next_id += 1;
        pending.push_back(Pending { id, ticket, deadline: Instant::now() + within });
        if let Err(error) = link.send(&Numbered { id, request }) {
            self.fail(&error.to_string(), options, report);
        }
    }

    /// Handles what the system says about the socket.
    pub(super) fn ready(&mut self, found: PollFlags, options: &Options, report: Sink<'_>) {
        if let State::Connecting(..) = &self.state {
            return self.connected(options, report);
        }
        let handled = match &mut self.state {
            State::Greeting(link, _) | State::Up(link, _) => exchange(link, found),
            State::Resting(_) | State::Connecting(..) => return,
        };
        // What arrived before a connection broke still counts.
        let read = self.take_messages(options, report);
        if read.is_ok() && matches!(self.state, State::Resting(_)) {
            return;
        }
        if let Err(error) = read.and(handled) {
            self.fail(&error.to_string(), options, report);
        }
    }

    /// The system has connected a socket, or failed to.
    fn connected(&mut self, options: &Options, report: Sink<'_>) {
        let rest = State::Resting(Instant::now());
        let State::Connecting(socket, _) = std::mem::replace(&mut self.state, rest) else { return };
        match rustix::net::sockopt::socket_error(&socket) {
            Ok(Ok(())) => self.greet(Socket::Tcp(TcpStream::from(socket)), options, report),
            Ok(Err(error)) | Err(error) => {
                let reason = format!("cannot connect: {}", io::Error::from(error));
                self.fail(&reason, options, report);
            }
        }
    }

    fn take_messages(&mut self, options: &Options, report: Sink<'_>) -> Result<(), LinkError> {
        loop {
            let (State::Greeting(link, _) | State::Up(link, _)) = &mut self.state else {
                return Ok(());
            };
            let Some(line) = link.next_line()? else { return Ok(()) };
            let message = serde_json::from_slice(line).map_err(|error| {
                LinkError::Unacceptable(format!(
                    "its message cannot be read ({error}); is it another version?"
                ))
            })?;
            self.take(message, options, report)?;
        }
    }

    fn take(
        &mut self,
        message: Message,
        options: &Options,
        report: Sink<'_>,
    ) -> Result<(), LinkError> {
        let agent = self.id;
        match (&mut self.state, message) {
            (State::Greeting(..), Message::Answer { answer, .. }) => match *answer {
                Answer::Welcome { inventory, .. } => self.admitted(inventory, options, report)?,
                Answer::Refused(Refusal { kind: RefusalKind::Malformed, .. })
                    if options.instance.is_some() && !self.is_older =>
                {
                    self.is_older = true;
                    self.state = State::Resting(Instant::now());
                }
                Answer::Refused(refusal) => return Err(LinkError::Unacceptable(refusal.message)),
                _ => {
                    return Err(LinkError::Unacceptable(
                        "its first answer is not 'welcome'".to_owned(),
                    ));
                }
            },
            (State::Up(_, pending), Message::Answer { id, answer }) => {
                // Answers come in the order of the requests.
                let request = pending.pop_front().filter(|request| request.id == id);
                let request = request.ok_or_else(|| {
                    LinkError::Unacceptable(format!(
                        "it answered request {id}, which was not asked"
                    ))
                })?;
                match (request.ticket, *answer) {
                    (Some(ticket), answer) => report(Report::Answered { agent, ticket, answer }),
                    (None, Answer::Refused(Refusal { kind, message })) => {
                        report(Report::Unleased { agent, reason: message.clone() });
                        if kind == RefusalKind::Leased {
                            return Err(LinkError::Unacceptable(message));
                        }
                    }
                    (None, _) => (),
                }
            }
            (_, Message::Event { at, event }) => report(Report::Event { agent, at, event }),
            (_, Message::Sample(sample)) => report(Report::Sample { agent, sample }),
            (State::Resting(_) | State::Connecting(..), Message::Answer { .. }) => (),
        }
        Ok(())
    }

    fn admitted(
        &mut self,
        inventory: crate::wire::Inventory,
        options: &Options,
        report: Sink<'_>,
    ) -> Result<(), LinkError> {
        if inventory.node != self.target.node {
            let (found, meant) = (&inventory.node, &self.target.node);
            let reason = format!("it is the agent of node '{found}', not of '{meant}'");
            return Err(LinkError::Unacceptable(reason));
        }
        let rest = State::Resting(Instant::now());
        let State::Greeting(link, _) = std::mem::replace(&mut self.state, rest) else {
            return Ok(());
        };
        self.state = State::Up(link, VecDeque::new());
        self.pause = options.first_pause;
        self.told = None;
        report(Report::Up { agent: self.id, inventory });
        if let Some(period) = options.watch {
            let period = u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
            self.ask(None, Request::Watch { period }, options.connect_within, options, report);
        }
        Ok(())
    }

    /// Gives a connection up, and fails all that is under way.
    fn fail(&mut self, reason: &str, options: &Options, report: Sink<'_>) {
        let rest = State::Resting(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(options.longest_pause);
        let agent = self.id;
        if let State::Up(_, pending) = std::mem::replace(&mut self.state, rest) {
            // It may be updated before it is there again.
            self.is_older = false;
            for ticket in pending.into_iter().filter_map(|request| request.ticket) {
                let reason = reason.to_owned();
                report(Report::Failed { agent, ticket, unsent: false, reason });
            }
        }
        if self.told.as_deref() != Some(reason) {
            self.told = Some(reason.to_owned());
            report(Report::Down { agent, reason: reason.to_owned() });
        }
    }
}

/// Sends and receives what is possible.
fn exchange(link: &mut Link, found: PollFlags) -> Result<(), LinkError> {
    if found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
        link.receive()?;
    }
    link.flush()
}

/// Connects to a socket on this machine. Where too many wait already, it fails instead of waiting, too.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

/// Begins to connect without waiting.
fn connect_tcp(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}
