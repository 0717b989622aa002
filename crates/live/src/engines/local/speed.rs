//! The predicted speed of a job, in a file that the job can read: a number such as `0.85`, relative to
//! the speed on the nodes it asks for without a cap. Emulated applications (`busbar work`) follow it.
//!
//! The file is beside the folder of the attempt, so that the job can read it and nothing else.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::job::Allotment;
use busbar_core::units::parse_decimal;

/// The environment variable with the path of the file. Every process of an attempt starts with it,
/// so it also identifies them.
pub const VARIABLE: &str = "BUSBAR_SPEED_FILE";

/// As fast as without a cap.
pub const FULL: u32 = Allotment::FULL_SPEED;

/// The suffixes of the file and of one that is being written.
const ENDING: &str = ".speed";
const UNFINISHED: &str = ".unfinished";

/// Its permissions: the job, which may be another user's, reads it.
const MODE: u32 = 0o644;

/// The speed file of an attempt's folder.
pub(super) fn file_of(folder: &Path) -> PathBuf {
    with(folder, ENDING)
}

/// The folder that a speed file belongs to, finished or not; other names are returned as they are.
pub(super) fn folder_of(name: &str) -> &str {
    let finished = name.strip_suffix(UNFINISHED).unwrap_or(name);
    finished.strip_suffix(ENDING).unwrap_or(name)
}

fn with(path: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(ending);
    path.into()
}

/// Writes a speed in millionths. The file is replaced atomically.
pub(super) fn write(path: &Path, millionths: u32) -> io::Result<()> {
    let beside = with(path, UNFINISHED);
    let text = format!("{}.{:06}\n", millionths / FULL, millionths % FULL);
    // What was left by a daemon that was killed.
    let _ = fs::remove_file(&beside);
    // At no time may others write to it, whatever the umask is.
    let written = File::options().write(true).create_new(true).mode(MODE).open(&beside);
    let written = written
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.set_permissions(Permissions::from_mode(MODE))
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // An unfinished file is of no use.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Removes the file and an unfinished one.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = fs::remove_file(with(path, UNFINISHED));
}

/// Reads a speed in millionths.
pub fn read(path: &Path) -> io::Result<u32> {
    let text = fs::read_to_string(path)?;
    let millionths = parse_decimal(text.trim(), u64::from(FULL)).ok();
    millionths.and_then(|millionths| u32::try_from(millionths).ok()).ok_or_else(|| {
        let message = format!("'{}' is not a speed; it is a number such as 0.85", text.trim());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_finished_belongs_to_its_folder() {
        for name in ["7.1", "7.1.speed", "7.1.speed.unfinished"] {
            assert_eq!(folder_of(name), "7.1");
        }
        assert_eq!(folder_of("7.1.unfinished"), "7.1.unfinished");
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(&folder.path().join("7.1"));
        // What it would be renamed to is in the way.
        fs::create_dir(&path).unwrap();
        write(&path, FULL).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    }

    #[test]
    fn speeds_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(&folder.path().join("7.1"));
        assert_eq!(path.file_name().unwrap(), "7.1.speed");
        for speed in [0, 1, 850_000, FULL, 1_234_567, u32::MAX] {
            write(&path, speed).unwrap();
            assert_eq!(read(&path).unwrap(), speed);
        }
        // What was left is not written to.
        let target = folder.path().join("target");
        fs::write(&target, "as it was").unwrap();
        std::os::unix::fs::symlink(&target, with(&path, UNFINISHED)).unwrap();
        write(&path, FULL).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
        assert_eq!(path.symlink_metadata().unwrap().permissions().mode() & 0o7777, MODE);
        fs::write(&path, "0.85\n").unwrap();
        assert_eq!(read(&path).unwrap(), 850_000);
        for wrong in ["", "fast", "-1", "1e3", "0.0000001", "99999999"] {
            fs::write(&path, wrong).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("is not a speed"), "{wrong}: {error}");
        }
    }
}
