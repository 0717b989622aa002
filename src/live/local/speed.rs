//! How fast a job is believed to be, in a file that the job can read: one number, `0.85`, of its speed on
//! the nodes it asks for without a cap. An application that is only emulated follows it; see
//! `busbar work`.
//!
//! It is beside the folder of the attempt, not in it: the job may read it as whoever it runs, and
//! nothing else.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::units::parse_decimal;

/// What the variable is called that tells a job where the file is. Every process of an attempt begins
/// with it, so it is also what distinguishes them from all others.
pub const VARIABLE: &str = "BUSBAR_SPEED_FILE";

/// As fast as without a cap.
pub const FULL: u32 = 1_000_000;

/// The file that belongs to the folder of an attempt.
pub(super) fn file_of(folder: &Path) -> PathBuf {
    let mut path = OsString::from(folder);
    path.push(".speed");
    path.into()
}

/// Writes a speed, in millionths; whoever reads meanwhile sees the old one or the new one.
pub(super) fn write(path: &Path, millionths: u32) -> io::Result<()> {
    let mut beside = OsString::from(path);
    beside.push(".unfinished");
    fs::write(&beside, format!("{}.{:06}\n", millionths / FULL, millionths % FULL))?;
    fs::set_permissions(&beside, Permissions::from_mode(0o644))?;
    fs::rename(&beside, path)
}

/// Reads a speed, in millionths.
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
    fn speeds_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = file_of(&folder.path().join("7.1"));
        assert_eq!(path.file_name().unwrap(), "7.1.speed");
        for speed in [0, 1, 850_000, FULL, 1_234_567, u32::MAX] {
            write(&path, speed).unwrap();
            assert_eq!(read(&path).unwrap(), speed);
        }
        fs::write(&path, "0.85\n").unwrap();
        assert_eq!(read(&path).unwrap(), 850_000);
        for wrong in ["", "fast", "-1", "1e3", "0.0000001", "99999999"] {
            fs::write(&path, wrong).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.to_string().contains("is not a speed"), "{wrong}: {error}");
        }
    }
}
