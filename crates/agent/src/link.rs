//! One connection without blocking: a Unix socket, or TCP with TLS, that carries lines in both directions.
//!
//! Agent and client use the same link. What is to be sent is buffered up to a limit; a peer that lets
//! it grow beyond is too slow and is disconnected.
//!
//! It is written over `poll` and not over tokio, as the daemon's socket is: an agent does one thing at a time in one order, in
//! which a controller that is gone is closed before anything that it sent last is done, and the program with privileges stays
//! small.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;
use serde::Serialize;

use crate::frame::{Lines, Oversized};
use crate::tls;

/// The size of a read, in bytes.
const PIECE: usize = 16 * 1024;

/// How much may wait to be sent, in bytes.
const MOST_UNSENT: usize = 1024 * 1024;

/// Why a link is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The peer closed the connection.
    #[error("the other side closed the connection")]
    Closed,
    /// The peer does not read what is sent to it.
    #[error("the other side does not read its messages")]
    TooSlow,
    /// A message is too long.
    #[error(transparent)]
    Oversized(#[from] Oversized),
    /// The peer's certificate, its answer or its refusal ends the connection.
    #[error("{0}")]
    Unacceptable(String),
    /// The network failed.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A stream that does not block.
#[derive(Debug)]
pub(crate) enum Socket {
    /// On this node.
    Unix(UnixStream),
    /// From another machine.
    Tcp(TcpStream),
}

impl Read for &Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).read(into),
            Socket::Tcp(stream) => (&mut &*stream).read(into),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).write(bytes),
            Socket::Tcp(stream) => (&mut &*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Socket,
    tls: Option<Box<rustls::Connection>>,
    lines: Lines,
    unsent: Vec<u8>,
    /// The peer has sent its last byte.
    is_at_end: bool,
}

impl Link {
    /// A link over a socket, which is made not to block, with lines of at most `limit` bytes.
    pub(crate) fn new(
        socket: Socket,
        tls: Option<rustls::Connection>,
        limit: usize,
    ) -> io::Result<Self> {
        match &socket {
            Socket::Unix(stream) => stream.set_nonblocking(true)?,
            Socket::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                // A request is small, and somebody waits for it.
                stream.set_nodelay(true)?;
            }
        }
        let tls = tls.map(Box::new);
        Ok(Link { socket, tls, lines: Lines::new(limit), unsent: Vec::new(), is_at_end: false })
    }

    /// What to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        let tls_writes = self.tls.as_ref().is_some_and(|tls| tls.wants_write());
        match tls_writes || !self.unsent.is_empty() {
            true => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        }
    }

    /// The socket, to wait for.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether the handshake of TLS is over, or there is none.
    pub(crate) fn is_secured(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| !tls.is_handshaking())
    }

    /// Whether the peer has begun a handshake that makes sense.
    pub(crate) fn is_greeted(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.negotiated_cipher_suite().is_some())
    }

    /// The peer's certificate, once the handshake is over.
    pub(crate) fn certificate(&self) -> Option<&[u8]> {
        let chain = self.tls.as_ref()?.peer_certificates()?;
        chain.first().map(|certificate| certificate.as_ref())
    }

    /// Whether the peer has begun a line that is not complete.
    pub(crate) fn is_begun(&self) -> bool {
        self.lines.is_begun()
    }

    /// Whether all was sent.
    pub(crate) fn is_flushed(&self) -> bool {
        self.unsent.is_empty() && self.tls.as_ref().is_none_or(|tls| !tls.wants_write())
    }

    /// Reads what has arrived.
    pub(crate) fn receive(&mut self) -> Result<(), LinkError> {
        let mut piece = [0; PIECE];
        let Some(tls) = &mut self.tls else {
            match without_blocking((&self.socket).read(&mut piece))? {
                Some(0) => self.is_at_end = true,
                Some(count) => self.lines.push(&piece[..count]),
                None => (),
            }
            return Ok(());
        };
        match without_blocking(tls.read_tls(&mut &self.socket))? {
            Some(0) => self.is_at_end = true,
            Some(_) => {
                if let Err(error) = tls.process_new_packets() {
                    // The alert tells the peer; whether it arrives changes nothing.
                    let _ = tls.write_tls(&mut &self.socket);
                    return Err(LinkError::Unacceptable(tls::explain(&error)));
                }
            }
            None => return Ok(()),
        }
        loop {
            match tls.reader().read(&mut piece) {
                Ok(0) => {
                    self.is_at_end = true;
                    return Ok(());
                }
                Ok(count) => self.lines.push(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The connection was cut without a farewell.
                Err(_) => {
                    self.is_at_end = true;
                    return Ok(());
                }
            }
        }
    }

    /// The next line that has arrived. After the last one of a peer that has gone it is
    /// [`LinkError::Closed`].
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, LinkError> {
        let is_at_end = self.is_at_end;
        match self.lines.next_line()? {
            None if is_at_end => Err(LinkError::Closed),
            line => Ok(line),
        }
    }

    /// Sends a message as soon as the peer takes it.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<(), LinkError> {
        serde_json::to_writer(&mut self.unsent, message).map_err(io::Error::from)?;
        self.unsent.push(b'\n');
        match self.unsent.len() > MOST_UNSENT {
            true => Err(LinkError::TooSlow),
            false => self.flush(),
        }
    }

    /// Sends what the peer takes now.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        let Some(tls) = &mut self.tls else {
            while !self.unsent.is_empty() {
                match without_blocking((&self.socket).write(&self.unsent))? {
                    Some(count) => drop(self.unsent.drain(..count)),
                    None => break,
                }
            }
            return Ok(());
        };
        loop {
            // TLS keeps what is written before the handshake is over, up to a limit of its own.
            if !self.unsent.is_empty() && !tls.is_handshaking() {
                let count = tls.writer().write(&self.unsent)?;
                self.unsent.drain(..count);
            }
            if !tls.wants_write() {
                return Ok(());
            }
            if without_blocking(tls.write_tls(&mut &self.socket))?.is_none() {
                return Ok(());
            }
        }
    }
}

/// What an operation did; `None` if it would have blocked.
fn without_blocking(done: io::Result<usize>) -> Result<Option<usize>, LinkError> {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, Interrupted, WouldBlock};
    match done {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.kind() {
            WouldBlock | Interrupted => Ok(None),
            BrokenPipe | ConnectionReset => Err(LinkError::Closed),
            _ => Err(error.into()),
        },
    }
}
