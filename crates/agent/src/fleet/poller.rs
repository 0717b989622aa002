//! The thread that waits for all agents at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::peer::Peer;
use super::{AgentId, Command, Options, Report, Target};
use crate::client::timespec;
use crate::wire::Request;

/// The longest sleep, if nothing is due.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// How long a name may take to be looked up before that is tried again.
const LOOKUP: Duration = Duration::from_secs(30);

/// An address that was looked up, or why there is none.
type Resolved = (usize, Result<SocketAddr, String>);

pub(super) struct Poller {
    peers: Vec<Peer>,
    options: Options,
    report: Box<dyn FnMut(Report) + Send>,
    commands: Receiver<Command>,
    woken: UnixStream,
    waker: UnixStream,
    resolved: (Sender<Resolved>, Receiver<Resolved>),
}

impl Poller {
    pub(super) fn new(
        targets: Vec<Target>,
        options: Options,
        report: Box<dyn FnMut(Report) + Send>,
        commands: Receiver<Command>,
        (waker, woken): (UnixStream, UnixStream),
    ) -> Self {
        let peers = targets.into_iter().enumerate();
        let peers = peers.map(|(id, target)| Peer::new(AgentId(id), target, &options)).collect();
        Poller { peers, options, report, commands, woken, waker, resolved: channel() }
    }

    /// Runs until the fleet is dropped.
    pub(super) fn run(mut self) {
        loop {
            if self.obey().is_break() {
                return;
            }
            let now = Instant::now();
            self.resolve(now);
            for peer in &mut self.peers {
                peer.elapse(now, &self.options, &mut self.report);
            }
            self.wait();
        }
    }

    /// Does what the caller wants.
    fn obey(&mut self) -> std::ops::ControlFlow<()> {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Ask { requests, within }) => {
                    for (agent, ticket, request) in requests {
                        let (options, report) = (&self.options, &mut self.report);
                        match self.peers.get_mut(agent.0) {
                            Some(peer) => peer.ask(Some(ticket), request, within, options, report),
                            None => {
                                let reason = "there is no such agent".to_owned();
                                report(Report::Failed { agent, ticket, unsent: true, reason });
                            }
                        }
                    }
                }
                Ok(Command::Renew { lease, within }) => {
                    let lease = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
                    for peer in &mut self.peers {
                        let request = Request::Renew { lease };
                        peer.ask(None, request, within, &self.options, &mut self.report);
                    }
                }
                Ok(Command::Stop) => return std::ops::ControlFlow::Break(()),
                Err(_) => return std::ops::ControlFlow::Continue(()),
            }
        }
    }

    /// Has names looked up elsewhere, since that may take long, and hears what came of it.
    fn resolve(&mut self, now: Instant) {
        while let Ok((place, address)) = self.resolved.1.try_recv() {
            self.peers[place].resolved(address, &self.options, &mut self.report);
        }
        for (place, peer) in self.peers.iter_mut().enumerate() {
            let Some(name) = peer.name_to_resolve(now).map(str::to_owned) else { continue };
            let found = self.resolved.0.clone();
            let Ok(waker) = self.waker.try_clone() else { continue };
            peer.rest_until(now + LOOKUP);
            // If there is no thread to be had, it is tried again.
            let _ = thread::Builder::new().name("lookup".to_owned()).spawn(move || {
                let address = name.to_socket_addrs().map_err(|error| error.to_string());
                let address = address
                    .and_then(|mut all| all.next().ok_or_else(|| "no address".to_owned()))
                    .map_err(|reason| format!("cannot look up '{name}': {reason}"));
                let _ = found.send((place, address));
                let _ = (&waker).write(&[1]);
            });
        }
    }

    /// Waits until something happens or is due, and handles it.
    fn wait(&mut self) {
        let now = Instant::now();
        let due = self.peers.iter().filter_map(Peer::deadline).min();
        let rest = due.map_or(LONGEST_REST, |due| due.saturating_duration_since(now));
        let found: Vec<(usize, PollFlags)> = {
            let mut places = Vec::with_capacity(self.peers.len());
            let mut waited = Vec::with_capacity(self.peers.len() + 1);
            waited.push(PollFd::from_borrowed_fd(self.woken.as_fd(), PollFlags::IN));
            for (place, peer) in self.peers.iter().enumerate() {
                if let Some((socket, flags)) = peer.interest() {
                    places.push(place);
                    waited.push(PollFd::from_borrowed_fd(socket, flags));
                }
            }
            if poll(&mut waited, Some(&timespec(rest.min(LONGEST_REST)))).is_err() {
                return;
            }
            let flags = waited[1..].iter().map(PollFd::revents);
            places.into_iter().zip(flags).filter(|(_, flags)| !flags.is_empty()).collect()
        };
        let mut drained = [0; 256];
        while matches!((&self.woken).read(&mut drained), Ok(count) if count == drained.len()) {}
        for (place, flags) in found {
            self.peers[place].ready(flags, &self.options, &mut self.report);
        }
    }
}
