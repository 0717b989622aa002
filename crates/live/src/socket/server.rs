//! The daemon's side of the socket: who may come in, and how many.
//!
//! Anybody on the machine may connect; what they may do is decided by who they are, which the kernel
//! says of the other end of a connection. So that nobody is kept out by others who only hold connections open,
//! a user has a bounded number of them, one that waits for nothing makes way for a user who has fewer, and
//! some places are kept for operators. The server asks nothing of the daemon but a channel: each
//! request goes there as a [`Message`], and the answer comes back on the channel in it.

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

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::net::sockopt::socket_peercred;

use super::connection::{refuse, serve};
use super::frame::line_of;
use crate::job::Owner;
use crate::trusted_folder::{TrustError, TrustedFolder};
use crate::wire::{RefusalKind, Reply, Request};

/// How long to wait after a connection could not be accepted, which is when the machine is out of
/// something.
const PAUSE: Duration = Duration::from_millis(50);

/// A request on its way to the daemon's loop, which sends one answer.
#[derive(Debug)]
pub struct Message {
    /// What is asked.
    pub request: Request,
    /// By whom.
    pub peer: Owner,
    /// Where the answer goes. Whoever asked may be gone by then.
    pub reply: Sender<Reply>,
    /// That they are, for those whose answer takes long.
    pub gone: ClientGone,
}

/// Whether whoever asked is gone, so that nobody waits for the answer any more. Copies are the same.
#[derive(Clone, Debug, Default)]
pub struct ClientGone(Arc<AtomicBool>);

impl ClientGone {
    /// They are.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether they are.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Users for whom places are kept. Copies are the same.
#[derive(Clone, Debug, Default)]
pub struct Operators(Arc<RwLock<Vec<u32>>>);

impl Operators {
    /// These users, from now on.
    pub fn set(&self, users: Vec<u32>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = users;
    }

    fn contains(&self, user: u32) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&user)
    }
}

/// How much a server bears.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most bytes of a request.
    pub request: usize,
    /// The most connections at once.
    pub connections: usize,
    /// The most connections of one user, unless it is the one the daemon runs as.
    pub connections_of_user: usize,
    /// Connections beyond the most, for operators alone.
    pub kept_for_operators: usize,
    /// Who these are.
    pub operators: Operators,
    /// How long a request may take from its first byte to its last.
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
    /// There is one already.
    #[error("another daemon listens on {}; stop it with 'busbar stop', or name another socket", path.display())]
    Another {
        /// Where.
        path: PathBuf,
    },
    /// Something else has the name.
    #[error("{} is there and is no socket; remove it, or name another socket", path.display())]
    NotASocket {
        /// What.
        path: PathBuf,
    },
    /// The name is too long for the kernel.
    #[error("the path of the socket, {}, is too long; a socket's path has at most 107 bytes", path.display())]
    TooLong {
        /// Which.
        path: PathBuf,
    },
    /// Somebody else could put a socket in its place.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// A file or folder cannot be used.
    #[error("cannot {what} {}", path.display())]
    File {
        /// What was to be done.
        what: &'static str,
        /// With which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// A socket that is listened on. When it is dropped, it is gone.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    listener: UnixListener,
    /// Which file its name stands for.
    identity: Identity,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    /// Held as long as the server lives, so that two daemons that begin together do not take the socket
    /// from each other.
    lock: File,
}

/// The device of a file, and its number there.
type Identity = (u64, u64);

/// Connections that are over but for their end: clients see that they are closed when this is dropped.
/// Whoever waits for a daemon to end waits for that.
#[derive(Debug, Default)]
pub struct Parting {
    _streams: Vec<UnixStream>,
}

#[derive(Debug)]
struct Shared {
    limits: Limits,
    open: Mutex<Open>,
    /// A connection is over.
    closed: Condvar,
}

/// The connections that are open.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    streams: BTreeMap<u64, Connection>,
    /// What is to be listened on from now on, when the one before it is shut down.
    successor: Option<UnixListener>,
    is_stopping: bool,
}

#[derive(Debug)]
struct Connection {
    peer: Owner,
    stream: UnixStream,
    /// Whether it waits for an answer, or reads one.
    is_busy: Arc<AtomicBool>,
}

impl Open {
    /// How many connections a user has.
    fn of_user(&self, user: u32) -> usize {
        self.streams.values().filter(|other| other.peer.user == user).count()
    }

    /// Closes a connection that waits for nothing, the oldest of the user who has most of them, so that
    /// another user with so many, and with fewer than that, may come in. Says whether there was one.
    fn make_room(&mut self, theirs: usize) -> bool {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        for connection in self.streams.values() {
            *counts.entry(connection.peer.user).or_default() += 1;
        }
        let idle = self.streams.iter().filter(|(_, one)| !one.is_busy.load(Ordering::Relaxed));
        let found = idle
            .map(|(number, one)| (counts[&one.peer.user], *number))
            .filter(|(count, _)| *count > theirs + 1)
            // The largest count, and the first of them.
            .min_by_key(|(count, number)| (usize::MAX - count, *number));
        let Some(connection) = found.and_then(|(_, number)| self.streams.remove(&number)) else {
            return false;
        };
        let ends = connection.stream.try_clone();
        turn_away(connection.stream, "closed to make room for others; you have many connections");
        // Its thread ends when it sees that.
        let _ = ends.and_then(|stream| stream.shutdown(Shutdown::Both));
        true
    }
}

impl Server {
    /// Listens on a socket of this name from now on. Requests go to the other end of the channel. The
    /// socket of a daemon that is dead is replaced.
    pub fn bind<T: From<Message> + Send + 'static>(
        path: &Path,
        limits: Limits,
        loop_end: Sender<T>,
    ) -> Result<Self, BindError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| BindError::File { what, path, source }
        };
        // Others have to get to the socket, and must not be able to put their own in its place.
        let folder = TrustedFolder::around(folder_of(path), 0o755)?;
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

    /// Listens under its name again if somebody has removed its file; says whether that was so. The
    /// folder is made again only if that is wanted. Connections that are open are not affected.
    pub fn restore(&mut self, may_make_folder: bool) -> Result<bool, BindError> {
        if identity(&self.path) == Some(self.identity) {
            return Ok(false);
        }
        let failed =
            |source| BindError::File { what: "listen again on", path: self.path.clone(), source };
        let folder = folder_of(&self.path);
        if !may_make_folder && !folder.exists() {
            return Err(failed(io::Error::new(io::ErrorKind::NotFound, "its folder is gone")));
        }
        let folder = TrustedFolder::around(folder, 0o755)?;
        let held = self.lock.metadata().map_err(failed)?;
        if identity(&folder.path().join(lock_of(&self.path))) != Some((held.dev(), held.ino())) {
            self.lock = lock(&self.path, &folder)?;
        }
        let (listener, identity) = listen(&self.path)?;
        self.shared.open().successor = Some(listener.try_clone().map_err(failed)?);
        let before = std::mem::replace(&mut self.listener, listener);
        self.identity = identity;
        let _ = rustix::net::shutdown(&before, rustix::net::Shutdown::Both);
        Ok(true)
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.open().streams.len()
    }

    /// Lets nobody in any more, and waits until those who are here have read their answers, but not
    /// longer than they may take. Requests that the loop has not answered are answered only when it drops
    /// them, so its end of the channel should be gone by now. Clients see that they are disconnected when
    /// what is returned is dropped. Dropping the server does the same.
    pub fn stop(mut self) -> Parting {
        self.close()
    }

    fn close(&mut self) -> Parting {
        let Some(accepting) = self.accepting.take() else { return Parting::default() };
        self.shared.open().is_stopping = true;
        // The file goes first: who looks for a daemon from now on finds none.
        if identity(&self.path) == Some(self.identity) {
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

fn identity(path: &Path) -> Option<Identity> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Makes a socket of this name, for everybody to use.
fn listen(path: &Path) -> Result<(UnixListener, Identity), BindError> {
    let failed = |what| move |source| BindError::File { what, path: path.to_owned(), source };
    make_way(path)?;
    let listener = UnixListener::bind(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => BindError::TooLong { path: path.to_owned() },
        _ => failed("listen on")(source),
    })?;
    fs::set_permissions(path, Permissions::from_mode(0o666)).map_err(failed("let others use"))?;
    let gone = || failed("listen on")(io::ErrorKind::NotFound.into());
    let identity = identity(path).ok_or_else(gone)?;
    Ok((listener, identity))
}

/// The name of the lock beside a socket.
fn lock_of(path: &Path) -> OsString {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    name
}

/// Takes the lock beside the socket. It is never removed: whoever holds a lock of a file that is gone
/// keeps nobody out.
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

/// Removes the socket of a daemon that is dead.
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

    /// Gives a connection a thread of its own, or turns it away.
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
            // With whoever cannot be spoken to any more, there is nothing left to do.
            let Guest { shared, peer, is_busy, .. } = &guest;
            if let Err(error) = serve(&stream, *peer, &shared.limits, is_busy, &loop_end) {
                tracing::debug!(%error, "a client went without its answer");
            }
        });
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a connection");
        }
    }

    /// Notes that a connection is open, or says why it may not be.
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

/// Who is at the other end, as the kernel knows.
fn peer(stream: &UnixStream) -> io::Result<Owner> {
    let peer = socket_peercred(stream)?;
    Ok(Owner { user: peer.uid.as_raw(), group: peer.gid.as_raw() })
}

/// The machine is out of something.
fn short(error: io::Error) -> String {
    format!("the daemon cannot take a connection: {error}; try again later")
}

/// Says why, if that can be said without waiting.
fn turn_away(mut stream: UnixStream, message: &str) {
    let line = line_of(&refuse(RefusalKind::Busy, message));
    let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(&line));
}

/// A connection that is open as long as this is there.
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
        assert!(told.contains("closed to make room for others"), "{told}");
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
