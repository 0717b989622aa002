//! Files of a lab: whole, or not there.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::LabError;

/// Writes a whole file or nothing.
pub(super) fn write_file(path: &Path, text: &str, mode: u32) -> Result<(), LabError> {
    let part = path.with_extension("new");
    let write = || {
        fs::write(&part, text)?;
        fs::set_permissions(&part, fs::Permissions::from_mode(mode))?;
        fs::rename(&part, path)
    };
    write().map_err(|source| LabError::File { what: "write", path: path.to_owned(), source })
}

/// Removes a file if it is there.
pub(super) fn remove_file(path: &Path) -> Result<(), LabError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => {
            done.map_err(|source| LabError::File { what: "remove", path: path.to_owned(), source })
        }
    }
}
