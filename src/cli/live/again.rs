//! Asking again: a daemon that is busy is asked a little later, and one that is started again is waited
//! for.

use std::thread::sleep;
use std::time::Duration;

use super::Daemon;
use crate::cli::warn;
use crate::live::socket::ClientError;
use crate::live::wire::{Refusal, RefusalKind, Reply, Request};
use crate::mixing::mixed;

/// How long a command waits in all for a daemon that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two tries: first and last.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses that grow. Commands that begin together do not try again together: each pause is between a half
/// and all of its length, as the seed says.
struct Pauses {
    seed: u64,
    length: Duration,
}

impl Pauses {
    fn new(seed: u64) -> Self {
        Pauses { seed, length: SHORTEST }
    }

    /// Those of this process.
    fn own() -> Self {
        Pauses::new(std::process::id().into())
    }

    /// The next one.
    fn pause(&mut self) -> Duration {
        let length = self.length;
        self.length = (length * 3 / 2).min(LONGEST);
        // Neighbours in numbers of processes are far apart.
        self.seed = mixed(self.seed);
        let share = self.seed >> 48;
        length / 2 + length / 2 * share as u32 / (1 << 16)
    }
}

/// Asks until the daemon is not busy, or has been for too long. Whoever is told that it is busy has not
/// been heard, so nothing is asked twice. Anything else, no answer included, is for the caller: then
/// nobody knows whether the request was heard.
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
                error.context(format!("the daemon was busy for {seconds} s, and nothing was done"))
            });
        }
        let pause = pauses.pause();
        rest(pause);
        waited += pause;
    }
}

/// Whether a daemon that says this, or nothing, may answer later.
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

/// Somebody who asks the same daemon again and again, and outlives it: once it has answered, it is waited
/// for whenever it is away, and standard error says so. What is asked must do no harm if it is heard twice.
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
