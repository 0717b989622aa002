//! One client of an agent: it introduces itself, asks, and perhaps watches.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::sockopt;

use crate::agent::{Agent, Holder, Peer, Role, refusal};
use crate::config::UnixSpec;
use crate::link::{Link, LinkError, Socket};
use crate::server::strangers::{Crowd, Progress};
use crate::tls::{CONTROLLER, OBSERVER, carries};
use crate::wire::{
    Answer, LONGEST_NAME, LONGEST_REQUEST, Message, Numbered, PROTOCOL, Refusal, RefusalKind,
    Request, is_understood, version_text,
};

/// How long a client may take to introduce itself, with its handshake.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// How long a request may take from its first byte to its last, and an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where a client comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// From this node, as this user with this role.
    User(u32, Option<Role>),
    /// From another machine.
    Elsewhere(SocketAddr),
}

/// Whether a client was admitted by what it just said.
pub(super) enum Admission {
    /// Nothing has changed.
    Unchanged,
    /// It was admitted.
    Admitted,
    /// It was admitted, and means to control the node as this one.
    Controls(Holder),
}

/// A client.
pub(super) struct Connection {
    link: Link,
    origin: Origin,
    /// The client's identity, once it has introduced itself.
    peer: Option<Peer>,
    /// Whether it means to set caps.
    controls: bool,
    /// When it must have done what it is about to do.
    deadline: Option<Instant>,
    watch: Option<Watch>,
    is_over: bool,
    /// Why it was refused or ended, if an operator should know.
    complaint: Option<String>,
}

/// How often a client wants samples, and when the next one is due.
#[derive(Clone, Copy)]
struct Watch {
    period: Duration,
    next: Instant,
}

impl Connection {
    pub(super) fn new(
        socket: Socket,
        tls: Option<rustls::Connection>,
        origin: Origin,
        now: Instant,
    ) -> io::Result<Self> {
        let link = Link::new(socket, tls, LONGEST_REQUEST)?;
        let deadline = Some(now + INTRODUCTION);
        let (peer, watch) = (None, None);
        Ok(Connection {
            link,
            origin,
            peer,
            controls: false,
            deadline,
            watch,
            is_over: false,
            complaint: None,
        })
    }

    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.link.socket().as_fd()
    }

    pub(super) fn interest(&self) -> PollFlags {
        self.link.interest()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.peer.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Why it was refused or ended, if an operator should know.
    pub(super) fn complaint(&self) -> Option<String> {
        let reason = self.complaint.as_ref()?;
        Some(match (&self.peer, &self.origin) {
            (Some(peer), _) => format!("{} ({}): {reason}", peer.identity, peer.client),
            (None, Origin::User(user, _)) => format!("a client of user {user}: {reason}"),
            (None, Origin::Elsewhere(address)) => format!("a client from {address}: {reason}"),
        })
    }

    /// Whether it means to control the node.
    pub(super) fn is_controller(&self) -> bool {
        self.controls
    }

    /// Whether it means to control the node as this one.
    pub(super) fn controls_as(&self, holder: &Holder) -> bool {
        let own = self.peer.as_ref().map(Peer::holder);
        self.controls && !self.is_over && own.as_ref() == Some(holder)
    }

    /// With whom it counts as one, and how far it has got, if it has not shown yet who it is.
    pub(super) fn as_stranger(&self) -> Option<(Crowd, Progress)> {
        if self.is_admitted() {
            return None;
        }
        Some(match &self.origin {
            Origin::User(user, Some(_)) => (Crowd::User(*user), Progress::Known),
            Origin::User(_, None) => (Crowd::Outsiders, Progress::Silent),
            Origin::Elsewhere(address) => {
                let progress = match (self.link.is_secured(), self.link.is_greeted()) {
                    (true, _) => Progress::Known,
                    (false, true) => Progress::Begun,
                    (false, false) => Progress::Silent,
                };
                (Crowd::at(address.ip()), progress)
            }
        })
    }

    pub(super) fn close(&mut self) {
        self.is_over = true;
    }

    /// Disconnects it if it is late.
    pub(super) fn elapse(&mut self, now: Instant) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.is_over = true;
            self.complaint = Some(match self.peer {
                Some(_) => "it was too slow".to_owned(),
                None => "it did not introduce itself in time".to_owned(),
            });
        }
    }

    /// Refuses a client that is one too many.
    pub(super) fn turn_away(&mut self, most: usize) {
        let text = format!("the agent has {most} connections already");
        self.refuse(0, refusal(RefusalKind::TooMuch, text));
        self.is_over = true;
    }

    /// Sends a sample to a client that watches, if it is due.
    pub(super) fn sample(&mut self, sample: &Message, now: Instant) {
        let Some(watch) = &mut self.watch else { return };
        // A period of the agent is as good as the time until then.
        if now + watch.period / 4 < watch.next {
            return;
        }
        watch.next = now + watch.period;
        let sent = self.link.send(sample);
        self.note(sent);
    }

    /// Sends an event to a client that watches.
    pub(super) fn event(&mut self, event: &Message) {
        if self.watch.is_some() {
            let sent = self.link.send(event);
            self.note(sent);
        }
    }

    fn note(&mut self, done: Result<(), LinkError>) {
        let Err(error) = done else { return };
        self.is_over = true;
        // That a client goes is nothing to complain about.
        if !matches!(error, LinkError::Closed) {
            self.complaint.get_or_insert(error.to_string());
        }
    }

    /// Handles what has arrived.
    pub(super) fn serve(&mut self, agent: &mut Agent, now: Instant) -> Admission {
        let received = self.link.receive();
        let mut admission = Admission::Unchanged;
        loop {
            let line = match self.link.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(LinkError::Oversized(error)) => {
                    self.refuse(0, refusal(RefusalKind::TooMuch, error.to_string()));
                    self.is_over = true;
                    return admission;
                }
                Err(_) => {
                    self.is_over = true;
                    return admission;
                }
            };
            match serde_json::from_slice::<Numbered>(line) {
                Ok(Numbered { id, request }) => match self.peer.clone() {
                    None => admission = self.introduce(id, request, agent, now),
                    Some(peer) => self.answer(id, &peer, request, agent, now),
                },
                Err(error) => {
                    let text: String = error.to_string().chars().take(240).collect();
                    let text = format!("the request cannot be read: {text}");
                    self.refuse(0, refusal(RefusalKind::Malformed, text));
                    // Answers could not be told apart any more.
                    self.is_over = true;
                }
            }
            if self.is_over {
                return admission;
            }
        }
        let flushed = self.link.flush();
        self.note(received);
        self.note(flushed);
        self.watch_the_clock(now);
        admission
    }

    /// A client that has begun a request, or does not take its answers, has some time to go on.
    fn watch_the_clock(&mut self, now: Instant) {
        if self.peer.is_some() {
            let is_busy = self.link.is_begun() || !self.link.is_flushed();
            self.deadline = match is_busy {
                true => Some(self.deadline.unwrap_or(now + PATIENCE)),
                false => None,
            };
        }
    }

    /// Admits or refuses a client by its first request.
    fn introduce(
        &mut self,
        id: u64,
        request: Request,
        agent: &mut Agent,
        now: Instant,
    ) -> Admission {
        match self.admit(request, agent, now) {
            Ok(peer) => {
                let holder = peer.holder();
                self.peer = Some(peer);
                self.deadline = None;
                if let Socket::Tcp(stream) = self.link.socket() {
                    // Without it, a machine that is gone is noticed later.
                    let _ = keep_alive(stream);
                }
                let answer = Answer::Welcome {
                    protocol: version_text(PROTOCOL),
                    program: env!("CARGO_PKG_VERSION").to_owned(),
                    inventory: agent.inventory(),
                };
                self.send(id, answer);
                match self.controls {
                    true => Admission::Controls(holder),
                    false => Admission::Admitted,
                }
            }
            Err(refusal) => {
                self.refuse(id, refusal);
                self.is_over = true;
                Admission::Unchanged
            }
        }
    }

    fn admit(
        &mut self,
        request: Request,
        agent: &mut Agent,
        now: Instant,
    ) -> Result<Peer, Refusal> {
        let Request::Hello { protocol, client, control, instance } = request else {
            let text = "the first request must be hello";
            return Err(refusal(RefusalKind::Malformed, text));
        };
        if !is_understood(&protocol) {
            let own = version_text(PROTOCOL);
            let program = env!("CARGO_PKG_VERSION");
            let text = format!(
                "the client speaks protocol {protocol}, and this agent (busbar {program}) speaks {own}; \
                 install the same version on both sides"
            );
            return Err(refusal(RefusalKind::Version, text));
        }
        if client.len() > LONGEST_NAME {
            let text = format!("a client's name has at most {LONGEST_NAME} bytes");
            return Err(refusal(RefusalKind::TooMuch, text));
        }
        let (identity, role) = self.identify()?;
        if control && role != Role::Controller {
            let text = format!("{identity} has read-only access to this node");
            return Err(refusal(RefusalKind::Forbidden, text));
        }
        // Who came to look does not set caps by accident.
        let role = if control { role } else { Role::Observer };
        let peer = Peer { identity, instance, client, role };
        if control {
            agent.check_lease(&peer, now)?;
        }
        self.controls = control;
        Ok(peer)
    }

    /// Who the client is, by the kernel's word or by its certificate.
    fn identify(&self) -> Result<(String, Role), Refusal> {
        match &self.origin {
            Origin::User(user, Some(role)) => Ok((format!("user {user}"), *role)),
            Origin::User(user, None) => {
                let text = format!(
                    "user {user} may not use this agent; name the user under 'observers' or 'controllers' \
                     in its configuration"
                );
                Err(refusal(RefusalKind::Forbidden, text))
            }
            Origin::Elsewhere(address) => {
                let certificate = self.link.certificate().filter(|_| self.link.is_secured());
                let carries = |name| certificate.is_some_and(|der| carries(der, name));
                if carries(CONTROLLER) {
                    Ok((format!("certificate {CONTROLLER}"), Role::Controller))
                } else if carries(OBSERVER) {
                    Ok((format!("certificate {OBSERVER}"), Role::Observer))
                } else {
                    let text = format!(
                        "the certificate of {} is neither a controller's nor an observer's",
                        address.ip()
                    );
                    Err(refusal(RefusalKind::Forbidden, text))
                }
            }
        }
    }

    fn answer(&mut self, id: u64, peer: &Peer, request: Request, agent: &mut Agent, now: Instant) {
        if let Request::Watch { period } = request {
            let period = Duration::from_millis(period).max(agent.period());
            self.watch = Some(Watch { period, next: now });
        }
        let answer = agent.answer(peer, request, now);
        self.send(id, answer);
    }

    fn refuse(&mut self, id: u64, refusal: Refusal) {
        // The agent itself says once who is refused for another controller's lease.
        if refusal.kind != RefusalKind::Leased {
            self.complaint = Some(refusal.message.clone());
        }
        self.send(id, Answer::Refused(refusal));
    }

    fn send(&mut self, id: u64, answer: Answer) {
        let sent = self.link.send(&Message::Answer { id, answer: Box::new(answer) });
        self.note(sent);
    }
}

/// The user behind a connection on this node, and what the configuration lets it do.
pub(super) fn of_user(stream: &UnixStream, spec: &UnixSpec) -> io::Result<Origin> {
    let found = sockopt::socket_peercred(stream)?;
    let user = found.uid.as_raw();
    let is_own = user == rustix::process::geteuid().as_raw();
    // Whoever could open a socket of a group is a member.
    let role = if user == 0 || is_own || spec.controllers.contains(&user) {
        Some(Role::Controller)
    } else if spec.observers.contains(&user) || spec.group.is_some() {
        Some(Role::Observer)
    } else {
        None
    };
    Ok(Origin::User(user, role))
}

/// Has the system notice that the other machine is gone.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_secs(15))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5))?;
    sockopt::set_tcp_keepcnt(stream, 3)?;
    Ok(())
}
