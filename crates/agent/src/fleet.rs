//! All agents of a cluster, for a controller: it asks without waiting, and hears what came of it.
//!
//! One thread keeps a connection to each agent, connects again when one breaks, and reports everything
//! through one function. Each request has a deadline. One that was not answered in time may have been
//! carried out or not, so a controller counts the higher of the old and the new cap until it is told
//! ([`Report::Failed`]); the connection is given up, and the inventory of the next one says what holds.
//!
//! Nothing renews leases by itself: a controller that hangs must lose them, so its own loop calls
//! [`Fleet::renew`].

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustls::ClientConfig;

use crate::client::Address;
use crate::instance::Instance;
use crate::wire::{Answer, Event, Inventory, Request, Sample};

mod peer;
mod poller;

/// The number of an agent in the list that a fleet was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentId(pub usize);

/// The number of a request, unique within a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// An agent of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The node's name, which a certificate must carry.
    pub node: String,
    /// Where its agent listens.
    pub address: Address,
}

/// How a fleet behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The controller's name, for the agents' logs.
    pub client: String,
    /// Whether caps will be set.
    pub control: bool,
    /// Which of several controllers with the same key this is; agents let only one of them set caps.
    pub instance: Option<Instance>,
    /// How often agents send samples, with every event; `None` if they send neither.
    pub watch: Option<Duration>,
    /// How long a connection may take, with its handshakes.
    pub connect_within: Duration,
    /// How long to wait after the first failure to connect. Each further failure doubles it, up to
    /// `longest_pause`.
    pub first_pause: Duration,
    /// How long to wait between attempts at most.
    pub longest_pause: Duration,
    /// The keys for agents on other machines.
    pub keys: Option<Arc<ClientConfig>>,
}

impl Options {
    /// The usual behaviour of a controller with this name.
    pub fn controller(client: &str) -> Self {
        Options {
            client: client.to_owned(),
            control: true,
            instance: None,
            watch: Some(Duration::from_secs(1)),
            connect_within: Duration::from_secs(5),
            first_pause: Duration::from_millis(100),
            longest_pause: Duration::from_secs(10),
            keys: None,
        }
    }
}

/// What happened with an agent. Reports of one agent come in the order in which things happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The agent is connected. All that was known of it before is replaced by this.
    Up {
        /// The agent.
        agent: AgentId,
        /// What its node has, and what holds now.
        inventory: Inventory,
    },
    /// The agent is not connected any more, or an attempt to connect failed. This is repeated only if the
    /// reason changes.
    Down {
        /// The agent.
        agent: AgentId,
        /// The reason, in words.
        reason: String,
    },
    /// The agent refused to renew the lease: another controller holds it. The connection is given up, and the agent
    /// stays [down](Report::Down) for as long as that is so.
    Unleased {
        /// The agent.
        agent: AgentId,
        /// The reason, in words.
        reason: String,
    },
    /// A request was answered, perhaps by a refusal.
    Answered {
        /// The agent.
        agent: AgentId,
        /// The request.
        ticket: Ticket,
        /// The answer.
        answer: Answer,
    },
    /// A request was not answered.
    Failed {
        /// The agent.
        agent: AgentId,
        /// The request.
        ticket: Ticket,
        /// Whether it was surely not carried out, because it was never sent.
        unsent: bool,
        /// The reason, in words.
        reason: String,
    },
    /// Something happened on a node.
    Event {
        /// The agent.
        agent: AgentId,
        /// When, in milliseconds since 1970 by the agent's clock.
        at: u64,
        /// The event.
        event: Event,
    },
    /// A measurement of a node.
    Sample {
        /// The agent.
        agent: AgentId,
        /// The measurement.
        sample: Sample,
    },
}

/// What the caller wants of the thread.
pub(crate) enum Command {
    /// Send these requests, each to be answered within the time.
    Ask { requests: Vec<(AgentId, Ticket, Request)>, within: Duration },
    /// Renew all leases.
    Renew { lease: Duration, within: Duration },
    /// Close all connections.
    Stop,
}

/// All agents of a cluster. Dropping it closes all connections.
#[derive(Debug)]
pub struct Fleet {
    commands: Sender<Command>,
    waker: UnixStream,
    next: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Starts to connect to agents. `report` is called by the fleet's own thread and must not block.
    pub fn start(
        targets: Vec<Target>,
        options: Options,
        report: impl FnMut(Report) + Send + 'static,
    ) -> io::Result<Self> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let (commands, incoming): (Sender<Command>, Receiver<Command>) = mpsc::channel();
        let report = Box::new(report);
        let ends = (waker.try_clone()?, woken);
        let thread = thread::Builder::new().name("fleet".to_owned()).spawn(move || {
            poller::Poller::new(targets, options, report, incoming, ends).run();
        })?;
        Ok(Fleet { commands, waker, next: AtomicU64::new(1), thread: Some(thread) })
    }

    /// Asks an agent for something.
    pub fn ask(&self, agent: AgentId, request: Request, within: Duration) -> Ticket {
        let ticket = Ticket(self.next.fetch_add(1, Ordering::Relaxed));
        self.tell(Command::Ask { requests: vec![(agent, ticket, request)], within });
        ticket
    }

    /// Asks several agents at once, each for its own. The tickets are in the order of the requests.
    pub fn ask_all(
        &self,
        requests: impl IntoIterator<Item = (AgentId, Request)>,
        within: Duration,
    ) -> BTreeMap<Ticket, AgentId> {
        let number = || Ticket(self.next.fetch_add(1, Ordering::Relaxed));
        let requests: Vec<_> =
            requests.into_iter().map(|(agent, request)| (agent, number(), request)).collect();
        let tickets = requests.iter().map(|(agent, ticket, _)| (*ticket, *agent)).collect();
        self.tell(Command::Ask { requests, within });
        tickets
    }

    /// Renews the leases of all agents that are connected. Only a refusal is reported
    /// ([`Report::Unleased`]); an agent that does not answer within the time is [down](Report::Down).
    pub fn renew(&self, lease: Duration, within: Duration) {
        self.tell(Command::Renew { lease, within });
    }

    fn tell(&self, command: Command) {
        // The thread ends only when the fleet is dropped, and a full pipe wakes it as well.
        let _ = self.commands.send(command);
        let _ = (&self.waker).write(&[1]);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.tell(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
