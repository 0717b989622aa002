//! A command inside another program, such as Python.
//!
//! The program runs a command and captures its output and warnings. It may stop the command. Both belong to the
//! thread that called the command; threads that the command starts use the value of [`goes_on`].

use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::volume::{self, Volume};

/// Whether a command should continue; called repeatedly, from several threads.
pub type GoesOn = Arc<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// The captured output of a command.
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

/// Runs a function for a host, and returns its result with the captured output.
pub(super) fn hosted<T>(goes_on: GoesOn, act: impl FnOnce() -> T) -> (T, Said) {
    HOST.set(Some(Host { said: Said::default(), goes_on }));
    let done = act();
    (done, HOST.take().map(|host| host.said).unwrap_or_default())
}

/// Passes output to the host; returns whether there is one.
pub(super) fn hears(tell: impl FnOnce(&mut Said)) -> bool {
    HOST.with_borrow_mut(|host| host.as_mut().map(|host| tell(&mut host.said)).is_some())
}

/// Whether a command runs inside another program.
pub(super) fn is_there() -> bool {
    HOST.with_borrow(Option::is_some)
}

/// The function that says whether to continue; without a host, always.
pub(super) fn goes_on() -> GoesOn {
    let asked = HOST.with_borrow(|host| host.as_ref().map(|host| Arc::clone(&host.goes_on)));
    asked.unwrap_or_else(|| Arc::new(|| ControlFlow::Continue(())))
}

/// Whether standard error is a terminal, so that a progress bar is useful.
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
