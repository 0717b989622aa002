//! The program, as somebody types it.

use std::path::Path;
use std::process::Command;

/// What the program prints if it succeeds, and what it complains about otherwise. Results are kept in the folder.
pub(crate) fn busbar(arguments: &[&str], folder: &Path) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    let cache = folder.join("cache");
    let output =
        command.args(arguments).env("XDG_CACHE_HOME", cache).current_dir(folder).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}
