//! A command beside Python: the interpreter is free for other threads meanwhile, and Ctrl-C ends the command.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use busbar::cli::GoesOn;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often the interpreter is asked whether somebody wants to interrupt.
const WAKE: Duration = Duration::from_millis(50);

/// Does some work on a thread of its own.
///
/// # Errors
///
/// What a signal handler raises, such as `KeyboardInterrupt`; the work has ended by then.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(GoesOn) -> T + Send,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let goes_on: GoesOn = Arc::new(move || match stopped.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    thread::scope(|scope| {
        let (sender, mut receiver) = channel();
        let worker = scope.spawn(move || {
            // The thread stays known to the interpreter, which makes each call of a policy cheaper.
            let done = Python::attach(|py| py.detach(|| work(goes_on)));
            // Whoever waits is there until this is sent.
            let _ = sender.send(done);
        });
        let receiver = &mut receiver;
        loop {
            match py.detach(|| next(receiver, WAKE)) {
                Ok(done) => return Ok(done),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(interrupt) = py.check_signals() {
                        stop.store(true, Ordering::Relaxed);
                        let _ = py.detach(|| next(receiver, Duration::MAX));
                        return Err(interrupt);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return match worker.join() {
                        Err(panic) => resume_unwind(panic),
                        Ok(()) => {
                            Err(PyRuntimeError::new_err("the command ended without an answer"))
                        }
                    };
                }
            }
        }
    })
}

/// Waits for an answer. Whoever waits has the receiver alone, so that this may be done without the interpreter.
fn next<T>(receiver: &mut Receiver<T>, most: Duration) -> Result<T, RecvTimeoutError> {
    receiver.recv_timeout(most)
}
