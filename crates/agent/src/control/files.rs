//! Reads and writes the small text files in which a kernel shows its hardware.
//!
//! [`Files`] is a trait so that an emulator can answer instead, with time that advances when somebody
//! looks, and with errors that no plain file gives. The controls do not know the difference.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::ControlError;

/// More than any file of this kind holds, in bytes.
const LONGEST: usize = 4096;

/// Access to the files of a kernel, or of an emulator.
pub trait Files: Send + Sync {
    /// Reads a file.
    fn read(&self, path: &Path) -> io::Result<String>;

    /// Writes to a file that exists.
    fn write(&self, path: &Path, text: &str) -> Result<(), WriteError>;

    /// Checks whether a file could be written, without writing.
    fn check_rights(&self, path: &Path) -> io::Result<()>;

    /// The names in a folder, in order.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// Why a file could not be written, and at which step: who may not open a file lacks rights, and who may, but
/// cannot write, meets a lock.
#[derive(Debug)]
pub enum WriteError {
    /// It could not be opened.
    Open(io::Error),
    /// It was opened, and what was written was refused.
    Write(io::Error),
}

/// The files of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemFiles;

impl Files for SystemFiles {
    fn read(&self, path: &Path) -> io::Result<String> {
        let mut bytes = [0; LONGEST];
        // The kernel gives a value in one piece.
        let count = fs::File::open(path)?.read(&mut bytes)?;
        String::from_utf8(bytes[..count].to_vec()).map_err(io::Error::other)
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), WriteError> {
        // It is never created: a zone that vanished stays so.
        let file = OpenOptions::new().write(true).truncate(true).open(path);
        let mut file = file.map_err(WriteError::Open)?;
        // The kernel takes a value in one piece.
        match file.write(text.as_bytes()) {
            Ok(count) if count == text.len() => Ok(()),
            Ok(_) => Err(WriteError::Write(io::ErrorKind::WriteZero.into())),
            Err(error) => Err(WriteError::Write(error)),
        }
    }

    fn check_rights(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).open(path).map(drop)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(path)? {
            names.extend(entry?.file_name().into_string());
        }
        names.sort();
        Ok(names)
    }
}

/// A folder of such files.
#[derive(Clone)]
pub(crate) struct Folder {
    files: std::sync::Arc<dyn Files>,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new(files: std::sync::Arc<dyn Files>, path: PathBuf) -> Self {
        Folder { files, path }
    }

    fn place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// The text of a file without spaces around it; `None` if there is no such file in the folder.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ControlError> {
        match self.files.read(&self.path.join(name)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(self.failed("read", name, &error)),
        }
    }

    /// The number in a file; `None` if there is no such file in the folder.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ControlError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ControlError::Nonsense {
            place: self.place(name),
            text: text.chars().take(40).collect(),
        })
    }

    /// The number in a file that must be there.
    pub(crate) fn needed(&self, name: &str) -> Result<u64, ControlError> {
        self.number(name)?.ok_or_else(|| ControlError::Gone { place: self.place(name) })
    }

    /// Writes a number.
    pub(crate) fn write(&self, name: &str, value: u64) -> Result<(), ControlError> {
        match self.files.write(&self.path.join(name), &format!("{value}\n")) {
            Ok(()) => Ok(()),
            Err(WriteError::Write(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(ControlError::Locked { place: self.place(name) })
            }
            Err(WriteError::Open(error) | WriteError::Write(error)) => {
                Err(self.failed("write", name, &error))
            }
        }
    }

    /// Checks whether a file could be written, without writing.
    pub(crate) fn check_rights(&self, name: &str) -> Result<(), ControlError> {
        let checked = self.files.check_rights(&self.path.join(name));
        checked.map_err(|error| self.failed("write", name, &error))
    }

    fn failed(&self, action: &'static str, name: &str, error: &io::Error) -> ControlError {
        let place = self.place(name);
        if is_gone(error) {
            return ControlError::Gone { place };
        }
        match error.kind() {
            io::ErrorKind::PermissionDenied => ControlError::Denied { action, place },
            _ => ControlError::Refused { action, place, reason: error.to_string() },
        }
    }
}

/// Whether a file, or the device behind it, is not there.
fn is_gone(error: &io::Error) -> bool {
    let device = rustix::io::Errno::NODEV.raw_os_error();
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(device)
}
