//! The commands around the daemon, against a daemon that has its answers ready: what is asked of it, what
//! is shown to people, and what to programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use canned::Daemon;

mod arrays;
mod asked;
mod canned;
mod printed;
mod refused;
mod waited;

/// Lines without the blanks at their ends, as editors like them.
fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).collect()
}

#[track_caller]
fn assert_prints(daemon: &Daemon, arguments: &[&str], expected: &str) {
    let printed = daemon.prints(arguments);
    assert_eq!(lines(&printed), lines(expected.trim_start_matches('\n')), "{arguments:?}");
}

fn write_script(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
