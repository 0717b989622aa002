//! A group of processes that ends with this process, in whatever way that ends.
//!
//! A signal can reach a whole group of processes. But this process may be killed before it can send one, and a program
//! that hears of nothing runs on. So the group begins with a guard: a shell that does nothing but wait until its
//! input ends, which the kernel sees to when this process is gone, and then kills the group, itself included. Since
//! the guard leads the group and was not waited for before, nobody else can have the number of the group meanwhile.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The program of the guard.
pub(super) const GUARD: &str = "sh";

/// What the guard does. Programs may send signals to their whole group to end what they have started, and the guard
/// is not meant by that.
const SCRIPT: &str = "trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2; read -r _; kill -s KILL 0";

/// A group of processes, with its guard.
#[derive(Debug)]
pub(super) struct Group {
    guard: Child,
}

impl Group {
    /// A group with nobody in it but its guard.
    pub(super) fn start() -> io::Result<Self> {
        let guard = Command::new(GUARD)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Nobody unmounts or removes a folder in vain because of it.
            .current_dir("/")
            .process_group(0)
            .spawn()?;
        Ok(Group { guard })
    }

    /// The number of the group, for those who are to join it.
    pub(super) fn number(&self) -> i32 {
        self.guard.id().cast_signed()
    }

    /// Ends all processes of the group. Once the guard has been waited for, the number may be somebody else's.
    pub(super) fn kill(&mut self) {
        let Some(input) = self.guard.stdin.take() else { return };
        drop(input);
        // The guard may have been stopped together with the others, so the signal comes from outside, too.
        let signal = format!("kill -s KILL -- -{}", self.number());
        let _ = Command::new(GUARD).args(["-c", &signal]).stderr(Stdio::null()).status();
        let _ = self.guard.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
