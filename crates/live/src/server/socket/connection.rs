//! One connection: requests and answers in order, until the client disconnects or is too slow.
//!
//! Submissions that arrive together are passed on together, so that the daemon can write them in one
//! transaction. Any other request is answered before the next line is read, since answers may be long
//! and must not pile up.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{SendFlags, send};
use rustix::time::Timespec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant as Clock, timeout, timeout_at};

use super::frame::{Lines, line_of, parse};
use super::limits::Limits;
use crate::job::{Owner, Requester};
use crate::wire::{Answers, Message, Refusal, RefusalKind, Reply, Request, Waiting, answers};

/// The size of a read, in bytes.
const PIECE: usize = 16 * 1024;

/// How often a waiting client's connection is checked.
const LOOK: Duration = Duration::from_millis(200);

/// The place of a connection among the open ones.
#[derive(Debug)]
pub(super) struct Seat {
    /// Who is at the other end.
    pub(super) peer: Owner,
    /// Whether the client waits for an answer, or reads one.
    is_busy: AtomicBool,
    /// Tells that somebody else gets the place.
    displaced: Notify,
}

impl Seat {
    pub(super) fn new(peer: Owner) -> Self {
        Seat { peer, is_busy: AtomicBool::new(false), displaced: Notify::new() }
    }

    pub(super) fn is_busy(&self) -> bool {
        self.is_busy.load(Ordering::Relaxed)
    }

    pub(super) fn set_busy(&self, is_busy: bool) {
        self.is_busy.store(is_busy, Ordering::Relaxed);
    }

    /// Has the connection go.
    pub(super) fn displace(&self) {
        self.displaced.notify_one();
    }
}

/// Serves a client until it disconnects or exceeds a limit, or the daemon stops. An error means that the connection is
/// broken.
pub(super) async fn serve(
    stream: &mut UnixStream,
    seat: &Seat,
    limits: &Limits,
    stopping: &mut watch::Receiver<bool>,
    pass: impl Fn(Message),
) -> io::Result<()> {
    let waiting = Waiting::default();
    let mut lines = Lines::new(limits.request);
    let mut piece = vec![0; PIECE];
    let mut deadline = Clock::now() + limits.idle;
    let mut expected: Vec<Answers> = Vec::new();
    loop {
        let line = lines.next_line();
        if let Ok(Some(line)) = &line {
            let request = parse(line);
            let may_share = matches!(request, Ok(Request::Submit(_)));
            seat.set_busy(true);
            let (reply, answer) = answers();
            match request {
                Ok(request) => {
                    let (peer, gone) = (Requester::Full(seat.peer), waiting.gone());
                    pass(Message { request, peer, reply, gone });
                }
                Err(refusal) => _ = reply.send(Reply::Error(refusal)),
            }
            expected.push(answer);
            if may_share {
                continue;
            }
        }
        for answer in expected.drain(..) {
            let reply = hear(stream, answer).await?;
            write(stream, &reply, limits.answer).await?;
            // The next line may have arrived with this one; its time starts when it is read.
            let patience = if lines.is_begun() { limits.line } else { limits.idle };
            deadline = Clock::now() + patience;
        }
        seat.set_busy(false);
        match line {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(oversized) => {
                return write(stream, &Reply::Error(oversized.into()), limits.answer).await;
            }
        }
        let was_begun = lines.is_begun();
        let read = tokio::select! {
            biased;
            read = timeout_at(deadline, stream.read(&mut piece)) => read,
            // It ends as if the client had sent its last byte.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => Ok(Ok(0)),
            () = seat.displaced.notified() => {
                turn_away(stream, "closed to make room for other users; you have many connections");
                return Ok(());
            }
        };
        match read {
            Ok(Ok(0)) if was_begun => {
                let message = "the connection ended within a request; a request ends with its line";
                let refusal = refuse(RefusalKind::Malformed, message);
                return write(stream, &refusal, limits.answer).await;
            }
            Ok(Ok(0)) => return Ok(()),
            Ok(Ok(count)) => {
                lines.push(&piece[..count]);
                if !was_begun {
                    deadline = Clock::now() + limits.line;
                }
            }
            Ok(Err(error)) => return Err(error),
            Err(_) if was_begun => {
                let seconds = limits.line.as_secs_f64();
                let message = format!("the request was not complete within {seconds} s");
                return write(stream, &refuse(RefusalKind::TooMuch, &message), limits.answer).await;
            }
            Err(_) => return Ok(()),
        }
    }
}

/// Waits for an answer as long as the client is connected.
async fn hear(stream: &UnixStream, mut answer: Answers) -> io::Result<Reply> {
    loop {
        match timeout(LOOK, answer.recv()).await {
            Ok(reply) => return Ok(reply.unwrap_or_else(stopping)),
            Err(_) if has_hung_up(stream) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => (),
        }
    }
}

/// Whether the client has disconnected. One that only closed its sending side still waits.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut look = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut look, Some(&now)).is_ok() && look[0].revents().contains(PollFlags::HUP)
}

/// The answer if the loop has ended.
fn stopping() -> Reply {
    refuse(RefusalKind::Stopping, "the daemon is stopping; try again later")
}

/// A refusal as an answer.
fn refuse(kind: RefusalKind, message: &str) -> Reply {
    Reply::Error(Refusal { kind, message: message.to_owned() })
}

/// Tells the client why it has to go, if that does not block.
pub(super) fn turn_away(stream: &UnixStream, message: &str) {
    let line = line_of(&refuse(RefusalKind::Busy, message));
    let _ = send(stream, &line, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Writes a whole answer within a total time, so that a client that reads a byte now and then is
/// too slow, too.
async fn write(stream: &mut UnixStream, reply: &Reply, within: Duration) -> io::Result<()> {
    let line = line_of(reply);
    timeout(within, stream.write_all(&line)).await?
}
