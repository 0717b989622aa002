//! The daemon's side of the socket: who may connect, and how often.
//!
//! Any user of the machine may connect; the kernel tells the server who they are, which decides what
//! they may do. So that nobody can block others by holding connections open, each user has a limited
//! number, an idle connection is closed for a user with fewer connections, and some places are reserved
//! for operators. Each request is sent to the daemon's loop as a [`Message`], and the answer comes back
//! on the channel in it.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use tokio::net;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::connection::{Seat, serve, turn_away};
use super::limits::Limits;
use super::path::{BindError, SocketFile};
use crate::job::Owner;
use crate::wire::Message;

/// The threads that serve. Clients wait for the daemon's loop, and these for clients.
const THREADS: usize = 2;

/// The pause after a connection could not be accepted because the machine is out of resources.
const PAUSE: Duration = Duration::from_millis(50);

/// A listening socket. Dropping it removes the socket.
pub struct Server {
    file: SocketFile,
    shared: Arc<Shared>,
    runtime: Runtime,
    /// The task that accepts connections; none once the server is stopped.
    accepting: Option<Accepting>,
}

/// A task that accepts connections, and what tells it that nobody else can come, because its socket was removed.
struct Accepting {
    task: JoinHandle<()>,
    replace: oneshot::Sender<()>,
}

/// Connections that are served but not closed yet: clients see that they are closed when this is
/// dropped, which tells them that the daemon has stopped.
#[derive(Debug, Default)]
pub struct Parting {
    _streams: Vec<UnixStream>,
}

struct Shared {
    limits: Limits,
    /// Passes a request to the daemon's loop. If that has ended, no answer comes.
    pass: Box<dyn Fn(Message) + Send + Sync>,
    open: Mutex<Open>,
    /// Tells each connection that the daemon stops.
    stopping: watch::Sender<bool>,
    /// Signals the end of a connection.
    closed: Notify,
}

/// The open connections.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    seats: BTreeMap<u64, Arc<Seat>>,
    /// Those that were served to their end when the daemon stopped.
    parting: Vec<UnixStream>,
}

impl Open {
    /// The number of connections of a user.
    fn of_user(&self, user: u32) -> usize {
        self.seats.values().filter(|other| other.peer.user == user).count()
    }

    /// Has the oldest idle connection go of the user with the most connections, to make room for a
    /// user who has `theirs` and so would have fewer. Returns whether there was one.
    fn make_room(&mut self, theirs: usize) -> bool {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for seat in self.seats.values() {
            *counts.entry(seat.peer.user).or_default() += 1;
        }
        let idle = self.seats.iter().filter(|(_, seat)| !seat.is_busy());
        let found = idle
            .map(|(number, seat)| (counts[&seat.peer.user], *number))
            .filter(|(count, _)| *count > theirs + 1)
            // The largest count, then the oldest.
            .min_by_key(|(count, number)| (usize::MAX - count, *number));
        let displaced = found.and_then(|(_, number)| self.seats.remove(&number));
        displaced.inspect(|seat| seat.displace()).is_some()
    }
}

impl Server {
    /// Listens on a socket of this name, and sends requests to the channel. The socket of a dead
    /// daemon is replaced.
    pub fn bind<T: From<Message> + Send + 'static>(
        path: &Path,
        limits: Limits,
        loop_end: Sender<T>,
    ) -> Result<Self, BindError> {
        let failed = |source| BindError::File { what: "listen on", path: path.to_owned(), source };
        let (file, listener) = SocketFile::new(path)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("socket")
            .enable_all()
            .build()
            .map_err(failed)?;
        let shared = Arc::new(Shared::new(limits, move |message| {
            let _ = loop_end.send(T::from(message));
        }));
        let mut server = Server { file, shared, runtime, accepting: None };
        server.accept(listener).map_err(failed)?;
        Ok(server)
    }

    /// Accepts connections from now on, and no more at a listener from before.
    fn accept(&mut self, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let _inside = self.runtime.enter();
        let listener = net::UnixListener::from_std(listener)?;
        let (replace, replaced) = oneshot::channel();
        let task = self.runtime.spawn(Arc::clone(&self.shared).accept(listener, replaced));
        if let Some(before) = self.accepting.replace(Accepting { task, replace }) {
            // It is gone only if the server is.
            let _ = before.replace.send(());
        }
        Ok(())
    }

    /// Listens again if the socket's file was removed; returns whether that was so. The folder is
    /// created again only if `may_make_folder`. Open connections are not affected.
    pub(crate) fn restore(&mut self, may_make_folder: bool) -> Result<bool, BindError> {
        let Some(listener) = self.file.restore(may_make_folder)? else { return Ok(false) };
        self.accept(listener).map_err(|source| self.file.failed("listen again on", source))?;
        Ok(true)
    }

    /// The number of open connections.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> usize {
        self.shared.open().seats.len()
    }

    /// Accepts no more connections, and waits until clients have read their answers or their time
    /// is over. Pending requests are answered only when the loop drops them, so its end of the
    /// channel should be gone. Clients see the disconnection when the returned value is dropped.
    /// Dropping the server does the same.
    pub fn stop(mut self) -> Parting {
        self.close()
    }

    fn close(&mut self) -> Parting {
        let Some(accepting) = self.accepting.take() else { return Parting::default() };
        // The file is removed first, so that no new client finds the daemon.
        self.file.remove();
        accepting.task.abort();
        self.shared.stopping.send_replace(true);
        let all_gone =
            async { timeout(self.shared.limits.answer, self.shared.until_empty()).await };
        // Whoever is not served by then is disconnected with the runtime.
        let _ = self.runtime.block_on(all_gone);
        Parting { _streams: std::mem::take(&mut self.shared.open().parting) }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("file", &self.file).finish_non_exhaustive()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn new(limits: Limits, pass: impl Fn(Message) + Send + Sync + 'static) -> Self {
        Shared {
            limits,
            pass: Box::new(pass),
            open: Mutex::default(),
            stopping: watch::Sender::new(false),
            closed: Notify::new(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(
        self: Arc<Self>,
        listener: net::UnixListener,
        mut replaced: oneshot::Receiver<()>,
    ) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = &mut replaced => break,
            };
            match accepted {
                Ok((stream, _)) => self.admit(stream),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                }
            }
        }
        if let Err(error) = self.accept_last(listener) {
            tracing::warn!(%error, "cannot accept the last connections of a socket that was removed");
        }
    }

    /// Accepts those who connected before the socket was removed, and have not been accepted yet.
    fn accept_last(self: &Arc<Self>, listener: net::UnixListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    self.admit(net::UnixStream::from_std(stream)?);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Serves a connection, or refuses it.
    fn admit(self: &Arc<Self>, stream: net::UnixStream) {
        match peer(&stream).map_err(short).and_then(|peer| self.let_in(peer)) {
            Ok(guest) => drop(tokio::spawn(guest.attend(stream))),
            Err(message) => turn_away(&stream, &message),
        }
    }

    /// Registers a connection, or returns why it is refused.
    fn let_in(self: &Arc<Self>, peer: Owner) -> Result<Guest, String> {
        let mut open = self.open();
        if *self.stopping.borrow() {
            return Err("the daemon is stopping; try again later".to_owned());
        }
        let Limits { connections, connections_of_user, kept_for_operators, .. } = self.limits;
        let theirs = open.of_user(peer.user);
        if theirs >= connections_of_user && peer.user != rustix::process::getuid().as_raw() {
            return Err(format!("you already have {theirs} connections; close some"));
        }
        let kept = if self.limits.operators.contains(peer.user) { kept_for_operators } else { 0 };
        if open.seats.len() >= connections + kept && !open.make_room(theirs) {
            let count = open.seats.len();
            return Err(format!("there are already {count} connections; try again later"));
        }
        let number = open.next;
        open.next += 1;
        let seat = Arc::new(Seat::new(peer));
        open.seats.insert(number, Arc::clone(&seat));
        Ok(Guest { shared: Arc::clone(self), number, seat })
    }

    /// Waits until no connection is open.
    async fn until_empty(&self) {
        loop {
            let closed = self.closed.notified();
            if self.open().seats.is_empty() {
                return;
            }
            closed.await;
        }
    }
}

/// The user at the other end, as the kernel knows it.
fn peer(stream: &net::UnixStream) -> io::Result<Owner> {
    let peer = socket_peercred(stream)?;
    Ok(Owner { user: peer.uid.as_raw(), group: peer.gid.as_raw() })
}

/// The message for a machine that is out of resources.
fn short(error: io::Error) -> String {
    format!("the daemon cannot take a connection: {error}; try again later")
}

/// Unregisters a connection when it is dropped.
struct Guest {
    shared: Arc<Shared>,
    number: u64,
    seat: Arc<Seat>,
}

impl Guest {
    /// Serves the connection until its end.
    async fn attend(self, mut stream: net::UnixStream) {
        let Shared { limits, pass, stopping, .. } = &*self.shared;
        let mut stopping = stopping.subscribe();
        let served = serve(&mut stream, &self.seat, limits, &mut stopping, pass).await;
        // A broken connection needs nothing else.
        if let Err(error) = served {
            tracing::debug!(%error, "an answer could not be sent to a client");
        }
        if *stopping.borrow()
            && let Ok(stream) = stream.into_std()
        {
            self.shared.open().parting.push(stream);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.open().seats.remove(&self.number);
        self.shared.closed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    fn shared(limits: Limits) -> Arc<Shared> {
        Arc::new(Shared::new(limits, drop))
    }

    /// Four users hold open all connections that they may. Operators come in, and so does whoever has fewer.
    #[test]
    fn who_only_holds_connections_open_makes_way() {
        let limits = Limits { kept_for_operators: 2, ..Limits::default() };
        let own = rustix::process::getuid().as_raw();
        let [ann, bob, cid, dan, eve, operator] = [1, 2, 3, 4, 5, 6].map(|user| own + user);
        limits.operators.set(vec![operator]);
        let shared = shared(limits);
        let enter = |user| {
            let guest = shared.let_in(Owner { user, group: 0 })?;
            Ok::<_, String>(guest)
        };
        let mut guests: Vec<Guest> = Vec::new();
        for user in [ann, bob, cid, dan] {
            guests.extend((0..16).map(|_| enter(user).unwrap()));
        }
        // Places are kept for operators, and nobody has to go.
        guests.extend([operator, operator].map(|user| enter(user).unwrap()));
        assert_eq!(shared.open().seats.len(), 66);
        // One more, and somebody who has none: each takes the place of a silent one, the oldest of a user
        // who has most of them.
        guests.extend([operator, eve].map(|user| enter(user).unwrap()));
        let counts = [ann, bob, cid, dan, eve, operator].map(|user| shared.open().of_user(user));
        assert_eq!(counts, [15, 15, 16, 16, 1, 3]);
        // Whoever waits for an answer does not make way.
        guests.iter().for_each(|guest| guest.seat.set_busy(true));
        assert!(
            enter(eve).is_err_and(|message| message.contains("there are already 66 connections"))
        );
        // Whoever makes way is told so.
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let told = runtime.block_on(async {
            let (stream, mut other) = net::UnixStream::pair().unwrap();
            guests.remove(0).attend(stream).await;
            let mut told = String::new();
            other.read_to_string(&mut told).await.unwrap();
            told
        });
        drop(guests);
        assert_eq!(shared.open().seats.len(), 0, "all are gone, and those who made way once");
        assert!(told.contains("closed to make room for other users"), "{told}");
    }

    #[test]
    fn one_user_does_not_take_all_connections() {
        let shared = shared(Limits { connections: 5, connections_of_user: 2, ..Limits::default() });
        let own = rustix::process::getuid().as_raw();
        let enter = |user| shared.let_in(Owner { user, group: 0 });
        let (first, _second) = (enter(own + 1).unwrap(), enter(own + 1).unwrap());
        assert!(
            enter(own + 1).is_err_and(|message| message.contains("you already have 2 connections"))
        );
        let _other_user = enter(own + 2).unwrap();
        let _daemons_own = (enter(own).unwrap(), enter(own).unwrap());
        assert!(
            enter(own).is_err_and(|message| message.contains("there are already 5 connections"))
        );
        drop(first);
        let _third = enter(own + 1).unwrap();
        shared.stopping.send_replace(true);
        assert!(enter(own + 2).is_err_and(|message| message.contains("is stopping")));
    }
}
