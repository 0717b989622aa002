//! One connection: requests and answers in order, until the client disconnects or is too slow.
//!
//! Submissions that arrive together are passed on together, so that the daemon can write them in one
//! transaction. Any other request is answered before the next line is read, since answers may be long
//! and must not pile up.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant as Clock};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::frame::{Lines, line_of, parse};
use super::server::Limits;
use crate::job::{Owner, Requester};
use crate::wire::{ClientGone, Message, Refusal, RefusalKind, Reply, Request};

/// The size of a read, in bytes.
const PIECE: usize = 16 * 1024;

/// How often a waiting client's connection is checked.
const LOOK: Duration = Duration::from_millis(200);

/// Serves a client until it disconnects or exceeds a limit. An error means that the connection is
/// broken.
pub(super) fn serve<T: From<Message>>(
    stream: &UnixStream,
    peer: Owner,
    limits: &Limits,
    is_busy: &AtomicBool,
    loop_end: &Sender<T>,
) -> io::Result<()> {
    let gone = ClientGone::default();
    let served = serve_until(stream, peer, limits, is_busy, &gone, loop_end);
    // In any case.
    gone.set();
    served
}

fn serve_until<T: From<Message>>(
    stream: &UnixStream,
    peer: Owner,
    limits: &Limits,
    is_busy: &AtomicBool,
    gone: &ClientGone,
    loop_end: &Sender<T>,
) -> io::Result<()> {
    let mut lines = Lines::new(limits.request);
    let mut piece = vec![0; PIECE];
    let mut deadline = Clock::now() + limits.idle;
    let mut expected: Vec<Receiver<Reply>> = Vec::new();
    loop {
        let line = lines.next_line();
        if let Ok(Some(line)) = &line {
            let request = parse(line);
            let may_share = matches!(request, Ok(Request::Submit(_)));
            is_busy.store(true, Ordering::Relaxed);
            expected.push(match request {
                Ok(request) => ask(request, peer, gone, loop_end),
                Err(refusal) => known(Reply::Error(refusal)),
            });
            if may_share {
                continue;
            }
        }
        for answer in expected.drain(..) {
            write(stream, &hear(stream, &answer)?, limits.answer)?;
            // The next line may have arrived with this one; its time starts when it is read.
            let patience = if lines.is_begun() { limits.line } else { limits.idle };
            deadline = Clock::now() + patience;
        }
        is_busy.store(false, Ordering::Relaxed);
        match line {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            Err(oversized) => return write(stream, &Reply::Error(oversized.into()), limits.answer),
        }
        let was_begun = lines.is_begun();
        match read(stream, &mut piece, deadline) {
            Ok(0) if was_begun => {
                let message = "the connection ended within a request; a request ends with its line";
                return write(stream, &refuse(RefusalKind::Malformed, message), limits.answer);
            }
            Ok(0) => return Ok(()),
            Ok(count) => {
                lines.push(&piece[..count]);
                if !was_begun {
                    deadline = Clock::now() + limits.line;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut && was_begun => {
                let seconds = limits.line.as_secs_f64();
                let message = format!("the request was not complete within {seconds} s");
                return write(stream, &refuse(RefusalKind::TooMuch, &message), limits.answer);
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Passes a request to the daemon's loop. If the loop has ended, no answer comes.
fn ask<T: From<Message>>(
    request: Request,
    peer: Owner,
    gone: &ClientGone,
    loop_end: &Sender<T>,
) -> Receiver<Reply> {
    let (reply, answer) = mpsc::channel();
    let _ = loop_end
        .send(Message { request, peer: Requester::Full(peer), reply, gone: gone.clone() }.into());
    answer
}

/// Waits for an answer as long as the client is connected.
fn hear(stream: &UnixStream, answer: &Receiver<Reply>) -> io::Result<Reply> {
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(reply) => return Ok(reply),
            Err(RecvTimeoutError::Disconnected) => return Ok(stopping()),
            Err(RecvTimeoutError::Timeout) if has_hung_up(stream) => {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            Err(RecvTimeoutError::Timeout) => (),
        }
    }
}

/// Whether the client has disconnected. One that only closed its sending side still waits.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut look = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut look, Some(&now)).is_ok() && look[0].revents().contains(PollFlags::HUP)
}

/// An answer that does not need the loop.
fn known(answer: Reply) -> Receiver<Reply> {
    let (reply, known) = mpsc::channel();
    let _ = reply.send(answer);
    known
}

/// The answer if the loop has ended.
fn stopping() -> Reply {
    refuse(RefusalKind::Stopping, "the daemon is about to stop; try again later")
}

/// A refusal as an answer.
pub(super) fn refuse(kind: RefusalKind, message: &str) -> Reply {
    Reply::Error(Refusal { kind, message: message.to_owned() })
}

/// The time left until a deadline; an error if there is none.
fn left(deadline: Clock) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Clock::now());
    // A timeout of zero would mean no timeout.
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Reads available bytes, or waits for some until the deadline.
fn read(mut stream: &UnixStream, piece: &mut [u8], deadline: Clock) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(piece) {
            Err(error) if may_go_on(&error) => continue,
            answer => return answer,
        }
    }
}

/// Writes a whole answer within a total time, so that a client that reads a byte now and then is
/// too slow, too.
fn write(mut stream: &UnixStream, reply: &Reply, within: Duration) -> io::Result<()> {
    let line = line_of(reply);
    let deadline = Clock::now() + within;
    let mut rest = &line[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(deadline)?))?;
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => rest = &rest[count..],
            Err(error) if may_go_on(&error) => continue,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether to try again; the deadline decides when to stop.
fn may_go_on(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
