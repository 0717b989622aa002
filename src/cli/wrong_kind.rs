//! Files that were given to the wrong command: the error names the command or option that reads them.

use std::path::Path;

use anyhow::anyhow;

use crate::machine::Machine;
use crate::workload::FileKind;

/// What came of reading a file. If it could not be read because it is of another kind than those that are `wanted`, the
/// error says which command or option wants it.
pub(super) fn told<T, E: Into<anyhow::Error>>(
    read: Result<T, E>,
    path: &Path,
    is_wanted: impl Fn(FileKind) -> bool,
) -> anyhow::Result<T> {
    read.map_err(|error| match FileKind::of(path) {
        Ok(Some(kind)) if kind != FileKind::Unknown && !is_wanted(kind) => {
            anyhow!("{} {}", path.display(), kind.advice())
        }
        _ => error.into(),
    })
}

/// The machine that a text names, or the part of it that these partitions are.
pub(super) fn machine(text: &str, partitions: &[String]) -> anyhow::Result<Machine> {
    // A machine may be a table of curves, too.
    let is_wanted = |kind| matches!(kind, FileKind::Machine | FileKind::Toml | FileKind::Other(..));
    told(Machine::part_of(text, partitions), Path::new(text), is_wanted)
}
