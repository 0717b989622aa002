//! A command inside another program, such as Python.
//!
//! The program asks a command, and takes what that would print and warn of instead of letting it reach a terminal. It
//! may break the command off. Both belong to the thread on which the command was called; threads that the command
//! starts ask through what [`goes_on`] returns.

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::volume::{self, Volume};

/// Whether a command shall go on; asked now and then, from several threads.
pub type GoesOn = Arc<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// What a command would have printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) printed: String,
    pub(super) warnings: Vec<String>,
}

struct Host {
    said: Said,
    goes_on: GoesOn,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Does something for a host, and returns what was said meanwhile beside what came of it.
pub(super) fn hosted<T>(goes_on: GoesOn, act: impl FnOnce() -> T) -> (T, Said) {
    HOST.set(Some(Host { said: Said::default(), goes_on }));
    let done = act();
    (done, HOST.take().map(|host| host.said).unwrap_or_default())
}

/// Lets the host hear something; says whether there is one.
pub(super) fn hears(tell: impl FnOnce(&mut Said)) -> bool {
    HOST.with_borrow_mut(|host| host.as_mut().map(|host| tell(&mut host.said)).is_some())
}

/// Whether a command runs inside another program.
pub(super) fn is_there() -> bool {
    HOST.with_borrow(Option::is_some)
}

/// What to ask whether to go on; without a host, a command does.
pub(super) fn goes_on() -> GoesOn {
    let asked = HOST.with_borrow(|host| host.as_ref().map(|host| Arc::clone(&host.goes_on)));
    asked.unwrap_or_else(|| Arc::new(|| ControlFlow::Continue(())))
}

/// Whether a person watches standard error, so that a bar can show how far a command is.
pub(super) fn is_watched() -> bool {
    io::stderr().is_terminal() && !is_there() && volume::asked() > Volume::Quiet
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said inside is kept, what is said before and after is not.
    #[test]
    fn a_host_hears_what_is_said_while_it_asks() {
        let tell = |text: &str| hears(|said| said.printed.push_str(text));
        assert!(!tell("before"));
        let stop: GoesOn = Arc::new(|| ControlFlow::Break(()));
        let (was_heard, said) = hosted(stop, || tell("inside") && goes_on()().is_break());
        assert!(was_heard);
        assert_eq!(said, Said { printed: "inside".to_owned(), warnings: Vec::new() });
        assert!(!tell("after"));
        assert!(goes_on()().is_continue());
    }
}
