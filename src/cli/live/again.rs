//! Retries: for a daemon that is busy, or is being restarted.

use std::thread::sleep;
use std::time::Duration;

use super::Daemon;
use crate::cli::warn;
use crate::live::server::socket::ClientError;
use crate::live::wire::{Refusal, RefusalKind, Reply, Request};
use crate::mixing::mixed;

/// How long a command waits in all for a busy daemon.
const PATIENCE: Duration = Duration::from_secs(30);

/// The shortest and the longest pause between two tries.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Growing pauses. Each is between half and all of its length, depending on the seed, so that
/// commands that start together do not retry together.
struct Pauses {
    seed: u64,
    length: Duration,
}

impl Pauses {
    fn new(seed: u64) -> Self {
        Pauses { seed, length: SHORTEST }
    }

    /// Pauses seeded with the ID of this process.
    fn own() -> Self {
        Pauses::new(std::process::id().into())
    }

    /// The next pause.
    fn pause(&mut self) -> Duration {
        let length = self.length;
        self.length = (length * 3 / 2).min(LONGEST);
        // Adjacent process IDs give very different seeds.
        self.seed = mixed(self.seed);
        let share = self.seed >> 48;
        length / 2 + length / 2 * share as u32 / (1 << 16)
    }
}

/// Repeats a request until the daemon is not busy, or has been for too long. A busy daemon has not
/// read the request, so nothing is done twice. Any other error is returned, since the request may
/// have been read.
pub(super) fn while_busy(ask: impl FnMut() -> anyhow::Result<Reply>) -> anyhow::Result<Reply> {
    try_again(ask, Pauses::own(), sleep)
}

fn try_again(
    mut ask: impl FnMut() -> anyhow::Result<Reply>,
    mut pauses: Pauses,
    mut rest: impl FnMut(Duration),
) -> anyhow::Result<Reply> {
    let mut waited = Duration::ZERO;
    loop {
        let answer = ask();
        let is_busy = |refusal: &Refusal| refusal.kind == RefusalKind::Busy;
        let busy =
            answer.as_ref().err().and_then(|error| error.downcast_ref()).is_some_and(is_busy);
        if !busy {
            return answer;
        }
        if waited >= PATIENCE {
            let seconds = PATIENCE.as_secs();
            return answer.map_err(|error| {
                error.context(format!(
                    "the daemon was busy for {seconds} s; the request was not carried out"
                ))
            });
        }
        let pause = pauses.pause();
        rest(pause);
        waited += pause;
    }
}

/// Whether the daemon may answer later after this error.
pub(super) fn may_come_back(error: &anyhow::Error) -> bool {
    if let Some(refusal) = error.downcast_ref::<Refusal>() {
        use RefusalKind::{Busy, Stopping, TooMuch};
        return matches!(refusal.kind, Stopping | Busy | TooMuch);
    }
    use ClientError::{NoDaemon, Silent, Socket, Unreadable};
    match error.downcast_ref::<ClientError>() {
        Some(NoDaemon { .. } | Silent { .. }) => true,
        Some(Socket { .. } | Unreadable { .. }) | None => false,
    }
}

/// Repeats a request to a daemon that may be restarted: once it has answered, it is waited for
/// whenever it is away, with a message on standard error. The request must be harmless if it is
/// read twice.
pub(super) struct Watcher<'a> {
    daemon: &'a Daemon,
    has_answered: bool,
}

impl<'a> Watcher<'a> {
    pub(super) fn of(daemon: &'a Daemon) -> Self {
        Watcher { daemon, has_answered: false }
    }

    pub(super) fn ask(&mut self, request: &Request) -> anyhow::Result<Reply> {
        let (mut is_away, mut pauses) = (false, Pauses::own());
        loop {
            match self.daemon.ask(request) {
                Err(error) if self.has_answered && may_come_back(&error) => {
                    if !is_away {
                        warn(&format!("{error:#}; waiting for the daemon"));
                        is_away = true;
                    }
                    sleep(pauses.pause());
                }
                answer => {
                    if is_away && answer.is_ok() {
                        warn("the daemon is back");
                    }
                    self.has_answered = true;
                    return answer;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(kind: RefusalKind) -> anyhow::Error {
        Refusal { kind, message: "there are 64 connections already".to_owned() }.into()
    }

    #[test]
    fn pauses_grow_and_differ() {
        for seed in 1..200 {
            let (mut length, mut pauses) = (SHORTEST, Pauses::new(seed));
            for _ in 0..30 {
                let pause = pauses.pause();
                assert!(length / 2 <= pause && pause <= length, "{pause:?} of {length:?}");
                length = (length * 3 / 2).min(LONGEST);
            }
        }
        let firsts = (1..=100).map(|seed| Pauses::new(seed).pause());
        let different: std::collections::BTreeSet<Duration> = firsts.collect();
        assert!(different.len() > 90, "{different:?}");
    }

    #[test]
    fn only_a_busy_daemon_is_asked_again() {
        let mut asked = 0;
        let answer = try_again(
            || {
                asked += 1;
                if asked < 5 { Err(refusal(RefusalKind::Busy)) } else { Ok(Reply::Stopping) }
            },
            Pauses::new(1),
            |_| (),
        );
        assert_eq!((answer.unwrap(), asked), (Reply::Stopping, 5));
        // It may have been heard.
        let source = std::io::ErrorKind::UnexpectedEof.into();
        let silent = || ClientError::Silent { path: "socket".into(), source };
        let mut errors = vec![refusal(RefusalKind::Full), refusal(RefusalKind::TooMuch)];
        errors.push(silent().into());
        for error in errors {
            let mut error = Some(error);
            try_again(|| Err(error.take().expect("asked once")), Pauses::new(1), |_| ())
                .unwrap_err();
        }
    }

    #[test]
    fn patience_ends() {
        let mut rested = Duration::ZERO;
        let error =
            try_again(|| Err(refusal(RefusalKind::Busy)), Pauses::new(1), |pause| rested += pause);
        let said = format!("{:#}", error.unwrap_err());
        assert!(said.contains("busy for 30 s") && said.contains("64 connections"), "{said}");
        assert!(rested >= PATIENCE && rested <= PATIENCE + LONGEST, "{rested:?}");
    }
}
