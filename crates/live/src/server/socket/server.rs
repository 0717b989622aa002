//! The daemon's side of the socket: who may connect, and how often.
//!
//! Any user of the machine may connect; the kernel tells the server who they are, which decides what
//! they may do. So that nobody can block others by holding connections open, each user has a limited
//! number, an idle connection is closed for a user with fewer connections, and some places are reserved
//! for operators. Each request is sent to the daemon's loop as a [`Message`], and the answer comes back
//! on the channel in it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as Clock};

use busbar_trust::{Setting, TrustError, TrustedFolder};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::net::sockopt::socket_peercred;

use super::connection::{refuse, serve};
use super::frame::line_of;
use crate::host::file_identity::{FileIdentity, file_identity};
use crate::job::Owner;
use crate::wire::{Message, RefusalKind};

/// The pause after a connection could not be accepted because the machine is out of resources.
const PAUSE: Duration = Duration::from_millis(50);

/// What names the socket.
const SOCKET: Setting = Setting("'socket = …' in the configuration, or --socket");

/// Users for whom connections are reserved. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Operators(Arc<RwLock<Vec<u32>>>);

impl Operators {
    /// Replaces the list.
    pub fn set(&self, users: Vec<u32>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = users;
    }

    fn contains(&self, user: u32) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&user)
    }
}

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest request, in bytes.
    pub request: usize,
    /// The largest number of connections.
    pub connections: usize,
    /// The largest number of connections of one user, except the daemon's own.
    pub connections_of_user: usize,
    /// Additional connections for operators only.
    pub kept_for_operators: usize,
    /// The operators.
    pub operators: Operators,
    /// The time limit from the first to the last byte of a request.
    pub line: Duration,
    /// How long a connection may be silent.
    pub idle: Duration,
    /// How long a client may take to read an answer.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            request: 1 << 20,
            connections: 64,
            connections_of_user: 16,
            kept_for_operators: 8,
            operators: Operators::default(),
            line: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            answer: Duration::from_secs(10),
        }
    }
}

/// Why a server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Another daemon listens there.
    #[error("another daemon listens on {}; stop it with 'busbar stop', or name another socket", path.display())]
    Another {
        /// The path of the socket.
        path: PathBuf,
    },
    /// There is a file that is not a socket.
    #[error("{} is there and is no socket; remove it, or name another socket", path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// The path is too long for a socket.
    #[error("the path of the socket, {}, is too long; a socket's path has at most 107 bytes", path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
    },
    /// Another user could replace the socket.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// A file or folder cannot be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// The operation, to be read after "cannot".
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A listening socket. Dropping it removes the socket.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    /// The identity of the socket's file.
    identity: FileIdentity,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    /// Held as long as the server exists, so that two daemons that start together do not replace
    /// each other's socket.
    lock: File,
}

/// Connections that are served but not closed yet: clients see that they are closed when this is
/// dropped, which tells them that the daemon has stopped.
#[derive(Debug, Default)]
pub struct Parting {
    _streams: Vec<UnixStream>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    open: Mutex<Open>,
    /// Signals the end of a connection.
    closed: Condvar,
}

/// The open connections.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: BTreeMap<u64, Connection>,
    /// The listener to use after the current one is shut down.
    successor: Option<UnixListener>,
    is_stopping: bool,
}

#[derive(Debug)]
struct Connection {
    peer: Owner,
    stream: UnixStream,
    /// Whether the client waits for an answer, or reads one.
    is_busy: Arc<AtomicBool>,
}

impl Open {
    /// The number of connections of a user.
    fn of_user(&self, user: u32) -> usize {
        self.streams.values().filter(|other| other.peer.user == user).count()
    }

    /// Closes the oldest idle connection of the user with the most connections, to make room for a
    /// user who has `theirs` and so would have fewer. Returns whether there was one.
    fn make_room(&mut self, theirs: usize) -> bool {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for connection in self.streams.values() {
            *counts.entry(connection.peer.user).or_default() += 1;
        }
        let idle = self.streams.iter().filter(|(_, one)| !one.is_busy.load(Ordering::Relaxed));
        let found = idle
            .map(|(number, one)| (counts[&one.peer.user], *number))
            .filter(|(count, _)| *count > theirs + 1)
            // The largest count, then the oldest.
            .min_by_key(|(count, number)| (usize::MAX - count, *number));
        let Some(connection) = found.and_then(|(_, number)| self.streams.remove(&number)) else {
            return false;
        };
        let ends = connection.stream.try_clone();
        turn_away(
            connection.stream,
            "closed to make room for other users; you have many connections",
        );
        // Its thread ends when it notices.
        let _ = ends.and_then(|stream| stream.shutdown(Shutdown::Both));
        true
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
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| BindError::File { what, path, source }
        };
        // Other users must reach the socket, but must not be able to replace it.
        let folder = TrustedFolder::around(folder_of(path), 0o755, SOCKET)?;
        let lock = lock(path, &folder)?;
        let (listener, identity) = listen(path)?;
        let shared =
            Arc::new(Shared { limits, open: Mutex::default(), closed: Condvar::default() });
        let own = listener.try_clone().map_err(failed("listen on", path))?;
        let accepting = thread::Builder::new()
            .name("accept".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.accept(own, &loop_end)
            })
            .map_err(failed("listen on", path))?;
        let path = path.to_owned();
        Ok(Server { path, listener, identity, shared, accepting: Some(accepting), lock })
    }

    /// Listens again if the socket's file was removed; returns whether that was so. The folder is
    /// created again only if `may_make_folder`. Open connections are not affected.
    pub fn restore(&mut self, may_make_folder: bool) -> Result<bool, BindError> {
        if file_identity(&self.path) == Some(self.identity) {
            return Ok(false);
        }
        let failed =
            |source| BindError::File { what: "listen again on", path: self.path.clone(), source };
        let folder = folder_of(&self.path);
        if !may_make_folder && !folder.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "its folder is gone")));
        }
        let folder = TrustedFolder::around(folder, 0o755, SOCKET)?;
        let held = self.lock.metadata().map_err(failed)?;
        if file_identity(&folder.path().join(lock_of(&self.path))) != Some((held.dev(), held.ino()))
        {
            self.lock = lock(&self.path, &folder)?;
        }
        let (listener, identity) = listen(&self.path)?;
        self.shared.open().successor = Some(listener.try_clone().map_err(failed)?);
        let before = std::mem::replace(&mut self.listener, listener);
        self.identity = identity;
        let _ = rustix::net::shutdown(&before, rustix::net::Shutdown::Both);
        Ok(true)
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        self.shared.open().streams.len()
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
        self.shared.open().is_stopping = true;
        // The file is removed first, so that no new client finds the daemon.
        if file_identity(&self.path) == Some(self.identity) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        let _ = accepting.join();
        let until = Clock::now() + self.shared.limits.answer;
        let mut open = self.shared.open();
        let streams = open.streams.values();
        let parting = streams.filter_map(|connection| connection.stream.try_clone().ok()).collect();
        for Connection { stream, .. } in open.streams.values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
        while !open.streams.is_empty() {
            let left = until.saturating_duration_since(Clock::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.closed.wait_timeout(open, left);
            open = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        for Connection { stream, .. } in open.streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        Parting { _streams: parting }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// The folder of a socket.
fn folder_of(path: &Path) -> &Path {
    let named = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    named.unwrap_or(Path::new("."))
}

/// Creates a socket of this name that all users may use.
fn listen(path: &Path) -> Result<(UnixListener, FileIdentity), BindError> {
    let failed = |what| move |source| BindError::File { what, path: path.to_owned(), source };
    make_way(path)?;
    let listener = UnixListener::bind(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => BindError::TooLong { path: path.to_owned() },
        _ => failed("listen on")(source),
    })?;
    fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(failed("let others use"))?;
    let gone = || failed("listen on")(io::ErrorKind::NotFound.into());
    let identity = file_identity(path).ok_or_else(gone)?;
    Ok((listener, identity))
}

/// The name of the lock beside a socket.
fn lock_of(path: &Path) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    name
}

/// Takes the lock beside the socket. Its file is never removed, since a lock on a removed file
/// excludes nobody.
fn lock(path: &Path, folder: &TrustedFolder) -> Result<File, BindError> {
    let name = lock_of(path);
    let failed = |source| BindError::File { what: "lock", path: folder.path().join(&name), source };
    let file = folder.file(&name, OFlags::WRONLY)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BindError::Another { path: path.to_owned() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// Removes the socket of a dead daemon.
fn make_way(path: &Path) -> Result<(), BindError> {
    let failed = |what| move |source| BindError::File { what, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            Err(BindError::NotASocket { path: path.to_owned() })
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            Err(BindError::Another { path: path.to_owned() })
        }
        Ok(_) => fs::remove_file(path).map_err(failed("replace")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(failed("look at")(error)),
    }
}

impl Shared {
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept<T: From<Message> + Send + 'static>(
        self: Arc<Self>,
        mut listener: UnixListener,
        loop_end: &Sender<T>,
    ) {
        loop {
            let error = match listener.accept() {
                Ok((stream, _)) => {
                    self.admit(stream, loop_end);
                    continue;
                }
                Err(error) => error,
            };
            let mut open = self.open();
            if open.is_stopping {
                return;
            }
            if let Some(successor) = open.successor.take() {
                listener = successor;
                continue;
            }
            drop(open);
            tracing::warn!(%error, "cannot accept a connection");
            thread::sleep(PAUSE);
        }
    }

    /// Gives a connection a thread of its own, or refuses it.
    fn admit<T: From<Message> + Send + 'static>(
        self: &Arc<Self>,
        stream: UnixStream,
        loop_end: &Sender<T>,
    ) {
        let guest = match peer(&stream).map_err(short).and_then(|peer| self.let_in(&stream, peer)) {
            Ok(guest) => guest,
            Err(message) => return turn_away(stream, &message),
        };
        let loop_end = loop_end.clone();
        let thread = thread::Builder::new().name("connection".to_owned());
        let spawned = thread.spawn(move || {
            // A broken connection needs nothing else.
            let Guest { shared, peer, is_busy, .. } = &guest;
            if let Err(error) = serve(&stream, *peer, &shared.limits, is_busy, &loop_end) {
                tracing::debug!(%error, "a client went without its answer");
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a connection");
        }
    }

    /// Registers a connection, or returns why it is refused.
    fn let_in(self: &Arc<Self>, stream: &UnixStream, peer: Owner) -> Result<Guest, String> {
        let mut open = self.open();
        if open.is_stopping {
            return Err("the daemon is about to stop; try again later".to_owned());
        }
        let Limits { connections, connections_of_user, kept_for_operators, .. } = self.limits;
        let theirs = open.of_user(peer.user);
        if theirs >= connections_of_user && peer.user != rustix::process::getuid().as_raw() {
            return Err(format!("you have {theirs} connections already; close some"));
        }
        let kept = if self.limits.operators.contains(peer.user) { kept_for_operators } else { 0 };
        if open.streams.len() >= connections + kept && !open.make_room(theirs) {
            let count = open.streams.len();
            return Err(format!("there are {count} connections already; try again later"));
        }
        let number = open.next;
        open.next += 1;
        let is_busy = Arc::new(AtomicBool::new(false));
        let stream = stream.try_clone().map_err(short)?;
        open.streams.insert(number, Connection { peer, stream, is_busy: Arc::clone(&is_busy) });
        Ok(Guest { shared: Arc::clone(self), peer, number, is_busy })
    }
}

/// The user at the other end, as the kernel knows it.
fn peer(stream: &UnixStream) -> io::Result<Owner> {
    let peer = socket_peercred(stream)?;
    Ok(Owner { user: peer.uid.as_raw(), group: peer.gid.as_raw() })
}

/// The message for a machine that is out of resources.
fn short(error: io::Error) -> String {
    format!("the daemon cannot take a connection: {error}; try again later")
}

/// Tells the client why it is refused, if that does not block.
fn turn_away(mut stream: UnixStream, message: &str) {
    let line = line_of(&refuse(RefusalKind::Busy, message));
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&line));
}

/// Unregisters a connection when it is dropped.
struct Guest {
    shared: Arc<Shared>,
    peer: Owner,
    number: u64,
    is_busy: Arc<AtomicBool>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.shared.open().streams.remove(&self.number);
        self.shared.closed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn shared(limits: Limits) -> Arc<Shared> {
        Arc::new(Shared { limits, open: Mutex::default(), closed: Condvar::default() })
    }

    /// Four users hold open all connections that they may. Operators come in, and so does whoever has fewer.
    #[test]
    fn who_only_holds_connections_open_makes_way() {
        let limits = Limits { kept_for_operators: 2, ..Limits::default() };
        let own = rustix::process::getuid().as_raw();
        let [ann, bob, cid, dan, eve, operator] = [1, 2, 3, 4, 5, 6].map(|user| own + user);
        limits.operators.set(vec![operator]);
        let shared = shared(limits);
        let mut ends = Vec::new();
        let mut enter = |user| {
            let (stream, other) = UnixStream::pair().unwrap();
            let guest = shared.let_in(&stream, Owner { user, group: 0 })?;
            ends.push(other);
            Ok::<_, String>(guest)
        };
        let mut guests: Vec<Guest> = Vec::new();
        for user in [ann, bob, cid, dan] {
            guests.extend((0..16).map(|_| enter(user).unwrap()));
        }
        // Places are kept for operators, and nobody has to go.
        guests.extend([operator, operator].map(|user| enter(user).unwrap()));
        assert_eq!(shared.open().streams.len(), 66);
        // One more, and somebody who has none: each takes the place of a silent one, the oldest of a user
        // who has most of them.
        guests.extend([operator, eve].map(|user| enter(user).unwrap()));
        let counts = [ann, bob, cid, dan, eve, operator].map(|user| shared.open().of_user(user));
        assert_eq!(counts, [15, 15, 16, 16, 1, 3]);
        // Whoever waits for an answer does not make way.
        guests.iter().for_each(|guest| guest.is_busy.store(true, Ordering::Relaxed));
        assert!(enter(eve).is_err_and(|message| message.contains("there are 66 connections")));
        drop(guests);
        assert_eq!(shared.open().streams.len(), 0, "all are gone, and those who made way once");
        let mut told = String::new();
        ends[0].read_to_string(&mut told).unwrap();
        assert!(told.contains("closed to make room for other users"), "{told}");
    }

    #[test]
    fn one_user_does_not_take_all_connections() {
        let shared = shared(Limits { connections: 5, connections_of_user: 2, ..Limits::default() });
        let (stream, _other) = UnixStream::pair().unwrap();
        let own = rustix::process::getuid().as_raw();
        let enter = |user| shared.let_in(&stream, Owner { user, group: 0 });
        let (first, _second) = (enter(own + 1).unwrap(), enter(own + 1).unwrap());
        assert!(enter(own + 1).is_err_and(|message| message.contains("you have 2 connections")));
        let _other_user = enter(own + 2).unwrap();
        let _daemons_own = (enter(own).unwrap(), enter(own).unwrap());
        assert!(enter(own).is_err_and(|message| message.contains("there are 5 connections")));
        drop(first);
        let _third = enter(own + 1).unwrap();
        shared.open().is_stopping = true;
        assert!(enter(own + 2).is_err_and(|message| message.contains("about to stop")));
    }
}
