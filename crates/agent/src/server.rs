//! The agent with its sockets: one thread that waits for clients, signals and its own period.
//!
//! Nothing blocks it but the hardware's own files. A client that is too slow, sends too much, or does not introduce
//! itself in time is disconnected. Who connects on this node is known by the kernel's word, who connects from
//! elsewhere by a certificate.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustls::ServerConfig;

use crate::agent::{Agent, Stopped};
use crate::changes::unix_millis;
use crate::client::timespec;
use crate::config::{Config, UnixSpec};
use crate::hardware::{self, Hardware};
use crate::link::Socket;
use crate::notify::Manager;
use crate::record::RecordError;
use crate::tls::TlsError;
use crate::wire::{Event, Inventory, Message, SetReport};

mod connection;
mod listen;
mod log;
mod strangers;

use connection::{Admission, Connection, Origin};
use listen::listen_unix;
use log::Log;
use strangers::{Crowd, Progress};

/// When the agent looks at the node for the first time after its start: soon, so that it knows what the node draws.
const FIRST_LOOK: Duration = Duration::from_millis(150);

/// How long nobody is let in when the system has no more files for the agent.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a controller has to release a node that is about to stop.
const FAREWELL: Duration = Duration::from_secs(2);

/// Why an agent cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The emulated tree cannot be driven.
    #[error("cannot use the emulated tree")]
    Emulation(#[source] io::Error),
    /// The record of the site's limits cannot be kept.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The keys cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A socket cannot be opened.
    #[error("cannot listen on {place}")]
    Listen {
        /// The path or address.
        place: String,
        /// The error that caused it.
        source: io::Error,
    },
    /// The system does not let the agent wait.
    #[error("cannot wait for clients")]
    Wait(#[source] io::Error),
}

/// An agent that listens.
pub struct Server {
    agent: Agent,
    unix: Option<(UnixListener, UnixSpec)>,
    tcp: Option<(TcpListener, Arc<ServerConfig>)>,
    connections: Vec<Connection>,
    most: usize,
    next_look: Instant,
    warnings: Vec<String>,
    log: Log,
    /// What is said of clients that were not admitted: apart, so that nobody can silence the rest.
    log_of_strangers: Log,
    /// Until when nobody is let in, because the system has no more files for the agent.
    closed_until: Option<Instant>,
    /// The time of the present turn of the loop, by which an emulated node advances: so what it is measured to draw
    /// is exactly what it drew.
    clock: Arc<Mutex<Instant>>,
}

impl Server {
    /// Finds the hardware, takes the node over, and listens.
    pub fn start(config: Config) -> Result<Self, ServeError> {
        let clock = Arc::new(Mutex::new(Instant::now()));
        let shown = clock.clone();
        let shown = Arc::new(move || *shown.lock().unwrap_or_else(PoisonError::into_inner));
        let found =
            hardware::discover_by(&config.hardware, shown).map_err(ServeError::Emulation)?;
        Server::with_hardware(config, found, clock)
    }

    fn with_hardware(
        config: Config,
        hardware: Hardware,
        clock: Arc<Mutex<Instant>>,
    ) -> Result<Self, ServeError> {
        // What can fail without touching the node comes first.
        let keys = config.tcp.as_ref().map(|tcp| tcp.keys.server(&config.node)).transpose()?;
        let warnings = config.tcp.iter().filter_map(|tcp| tcp.keys.server_warning(&config.node));
        let warnings = warnings.collect();
        let now = Instant::now();
        let most = config.connections;
        let (unix, tcp) = (config.unix.clone(), config.tcp.clone());
        let agent = Agent::start(config, hardware, now)?;
        let unix = match unix {
            Some(spec) => {
                let listener = listen_unix(&spec).map_err(|source| {
                    let place = spec.path.display().to_string();
                    ServeError::Listen { place, source }
                })?;
                Some((listener, spec))
            }
            None => None,
        };
        let tcp = match tcp.zip(keys) {
            Some((spec, keys)) => {
                let listener = TcpListener::bind(spec.address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                });
                let place = spec.address.to_string();
                Some((listener.map_err(|source| ServeError::Listen { place, source })?, keys))
            }
            None => None,
        };
        let connections = Vec::new();
        Ok(Server {
            agent,
            unix,
            tcp,
            connections,
            most,
            next_look: now + FIRST_LOOK,
            warnings,
            log: Log::default(),
            log_of_strangers: Log::default(),
            closed_until: None,
            clock,
        })
    }

    /// What the node has.
    pub fn inventory(&self) -> Inventory {
        self.agent.inventory()
    }

    /// The address for other machines, with the port that the system chose if none was named.
    pub fn tcp_address(&self) -> Option<std::net::SocketAddr> {
        self.tcp.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// What an operator should know.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Serves until `stop` becomes readable. Then the controller, if there is one, is told and has a moment to
    /// release the node.
    pub fn run(mut self, stop: &impl AsFd, mut manager: Manager) -> Result<Stopped, ServeError> {
        manager.ready();
        let mut farewell: Option<Instant> = None;
        loop {
            let now = self.turn();
            manager.alive(now);
            self.look(now);
            self.drop_late(now);
            if let Some(until) = farewell
                && (now >= until || !self.has_controller())
            {
                break;
            }
            let due = self.due(farewell, &manager);
            let is_stopped = self.wait(stop.as_fd(), farewell.is_none(), due)?;
            if is_stopped && farewell.is_none() {
                manager.stopping();
                farewell = Some(Instant::now() + FAREWELL);
                self.tell_all(&Event::Stopping);
            }
        }
        if let Some((_, spec)) = &self.unix {
            // That the path is gone already is no reason to fail.
            let _ = fs::remove_file(&spec.path);
        }
        Ok(self.agent.stop())
    }

    /// Begins a turn of the loop.
    fn turn(&self) -> Instant {
        let now = Instant::now();
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = now;
        now
    }

    /// Whether the controller that counts on the caps is connected.
    fn has_controller(&self) -> bool {
        let holder = self.agent.controller();
        holder.is_some_and(|holder| self.connections.iter().any(|it| it.controls_as(holder)))
    }

    /// When something is due even if nothing happens.
    fn due(&self, farewell: Option<Instant>, manager: &Manager) -> Instant {
        let late = self.connections.iter().filter_map(Connection::deadline);
        let others = farewell.into_iter().chain(manager.due()).chain(late).chain(self.closed_until);
        others.fold(self.next_look, Instant::min)
    }

    /// Looks after the node if that is due, and tells those who watch.
    fn look(&mut self, now: Instant) {
        if now < self.next_look {
            return;
        }
        let period = self.agent.period();
        // A look that is late does not make others follow faster.
        self.next_look = (self.next_look + period).max(now + period / 2);
        for event in self.agent.watch(now) {
            self.tell_all(&event);
        }
        let sample = Message::Sample(self.agent.sample());
        for client in &mut self.connections {
            client.sample(&sample, now);
        }
        self.drop_broken();
    }

    fn tell_all(&mut self, event: &Event) {
        self.log.say(&event.to_string());
        let message = Message::Event { at: unix_millis(), event: event.clone() };
        for client in &mut self.connections {
            client.event(&message);
        }
        self.drop_broken();
    }

    /// Disconnects those who are late with something.
    fn drop_late(&mut self, now: Instant) {
        for client in &mut self.connections {
            client.elapse(now);
        }
        self.drop_broken();
    }

    fn drop_broken(&mut self) {
        for client in self.connections.iter().filter(|client| client.is_over()) {
            if let Some(complaint) = client.complaint() {
                match client.is_admitted() {
                    true => self.log.say(&complaint),
                    false => self.log_of_strangers.say(&complaint),
                }
            }
        }
        self.connections.retain(|client| !client.is_over());
    }

    /// Waits until something happens or is due, and handles it. Returns whether the agent is to stop.
    fn wait(
        &mut self,
        stop: BorrowedFd<'_>,
        until_stopped: bool,
        due: Instant,
    ) -> Result<bool, ServeError> {
        let now = Instant::now();
        let rest = due.saturating_duration_since(now);
        let is_open = self.closed_until.is_none_or(|until| until <= now);
        let (mut is_stopped, mut knocks) = (false, false);
        let found: Vec<PollFlags> = {
            let mut waited = Vec::with_capacity(self.connections.len() + 3);
            for client in &self.connections {
                let interest = client.interest() | PollFlags::RDHUP;
                waited.push(PollFd::from_borrowed_fd(client.socket(), interest));
            }
            let listeners = waited.len();
            if let Some((listener, _)) = self.unix.as_ref().filter(|_| is_open) {
                waited.push(PollFd::new(listener, PollFlags::IN));
            }
            if let Some((listener, _)) = self.tcp.as_ref().filter(|_| is_open) {
                waited.push(PollFd::new(listener, PollFlags::IN));
            }
            let stops = waited.len();
            if until_stopped {
                waited.push(PollFd::from_borrowed_fd(stop, PollFlags::IN));
            }
            match poll(&mut waited, Some(&timespec(rest))) {
                Ok(_) => (),
                Err(rustix::io::Errno::INTR) => return Ok(false),
                Err(error) => return Err(ServeError::Wait(error.into())),
            }
            is_stopped |= waited[stops..].iter().any(|fd| !fd.revents().is_empty());
            knocks |= waited[listeners..stops].iter().any(|fd| !fd.revents().is_empty());
            waited[..listeners].iter().map(PollFd::revents).collect()
        };
        let now = self.turn();
        let gone = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        for (place, flags) in found.into_iter().enumerate() {
            // A controller that has gone counts on nothing that it asked for last, and has perhaps given that up long ago.
            if flags.intersects(gone) && self.connections[place].is_controller() {
                self.connections[place].close();
            } else if !flags.is_empty() {
                self.serve(place, now);
            }
        }
        self.drop_broken();
        for notice in self.agent.take_notices() {
            self.log.say(&notice);
        }
        if knocks {
            self.accept(now);
        }
        Ok(is_stopped)
    }

    /// Handles what a client sent.
    fn serve(&mut self, place: usize, now: Instant) {
        let client = &mut self.connections[place];
        match client.serve(&mut self.agent, now) {
            Admission::Unchanged => (),
            Admission::Admitted => {
                if self.connections.iter().filter(|other| other.is_admitted()).count() > self.most {
                    self.connections[place].turn_away(self.most);
                }
            }
            // A request that was delayed on an older connection cannot act any more.
            Admission::Controls(holder) => {
                for (other, client) in self.connections.iter_mut().enumerate() {
                    if other != place && client.controls_as(&holder) {
                        client.close();
                    }
                }
            }
        }
    }

    /// Lets in those who knock, as many at each socket as can be served before they are displaced.
    fn accept(&mut self, now: Instant) {
        self.closed_until = None;
        for knock in [Server::at_the_socket, Server::at_the_address] {
            for _ in 0..strangers::AT_ONCE {
                match knock(self) {
                    Ok((socket, tls, origin)) => {
                        if let Ok(connection) = Connection::new(socket, tls, origin, now) {
                            self.connections.push(connection);
                        }
                        if self.strangers().count() > strangers::MOST {
                            self.displace();
                        }
                    }
                    Err(error) if is_gone(&error) => (),
                    Err(error) if is_out_of_files(&error) && self.displace() => (),
                    Err(error) => {
                        if is_out_of_files(&error) {
                            self.closed_until = Some(now + PAUSE);
                        }
                        break;
                    }
                }
            }
        }
        self.drop_broken();
    }

    /// Those who have not shown yet who they are, in the order in which they came.
    fn strangers(&self) -> impl Iterator<Item = (usize, Crowd, Progress)> + Clone {
        let numbered = self.connections.iter().enumerate();
        numbered.filter_map(|(place, client)| {
            client.as_stranger().map(|(crowd, progress)| (place, crowd, progress))
        })
    }

    /// Makes room at the cost of a stranger. Returns whether there was one.
    fn displace(&mut self) -> bool {
        let displaced = strangers::displaced(self.strangers());
        displaced.map(|place| self.connections.remove(place)).is_some()
    }

    /// The next client that knocks at the socket on this node.
    fn at_the_socket(&self) -> io::Result<Newcomer> {
        let (listener, spec) = self.unix.as_ref().ok_or(io::ErrorKind::WouldBlock)?;
        let (stream, _) = listener.accept()?;
        let origin = connection::of_user(&stream, spec)?;
        Ok((Socket::Unix(stream), None, origin))
    }

    /// The next client that knocks at the address for other machines.
    fn at_the_address(&self) -> io::Result<Newcomer> {
        let (listener, keys) = self.tcp.as_ref().ok_or(io::ErrorKind::WouldBlock)?;
        let (stream, address) = listener.accept()?;
        let tls = rustls::ServerConnection::new(keys.clone()).map_err(io::Error::other)?;
        Ok((Socket::Tcp(stream), Some(tls.into()), Origin::Elsewhere(address)))
    }
}

/// A client that was let in.
type Newcomer = (Socket, Option<rustls::Connection>, Origin);

/// Whether a client gave up before it was let in, so that the next one can be.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted)
}

/// Whether the system has no more files for this process.
fn is_out_of_files(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let code = error.raw_os_error();
    [Errno::MFILE, Errno::NFILE].iter().any(|out| code == Some(out.raw_os_error()))
}

/// Restores the limits that the site had, while no agent runs, whoever counts on the caps.
pub fn restore(config: Config) -> Result<SetReport, ServeError> {
    let hardware = hardware::discover(&config.hardware).map_err(ServeError::Emulation)?;
    let mut agent = Agent::of_saved(config, hardware, Instant::now())?;
    Ok(agent.restore("an operator"))
}
