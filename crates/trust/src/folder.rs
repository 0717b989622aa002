//! Folders that only this process's user and root can change.
//!
//! Symbolic links on the way to a folder are followed if they belong to the same users; within the folder none is
//! followed. Files in it are opened relative to the open folder, and checked.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, fchmod, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::TrustError;
use crate::judgement::{Facts, Role};
use crate::setting::Setting;

#[cfg(test)]
mod tests;

/// The largest number of symbolic links on the way to a folder, as in the kernel.
const MOST_LINKS: u32 = 40;

/// When a file that was replaced must be on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Now,
    /// When the system gets to it.
    Later,
}

/// A folder that only this process's user and root can change, held open. Clones share it.
#[derive(Clone, Debug)]
pub struct TrustedFolder {
    /// The path without symbolic links.
    path: PathBuf,
    folder: Arc<File>,
    setting: Setting,
}

impl TrustedFolder {
    /// Opens a folder of Busbar's own. It is created, with those above it, if it does not exist.
    pub fn of(path: &Path, mode: u32, setting: Setting) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, Some(mode), Role::Own, setting)
    }

    /// Opens a folder of Busbar's own that must exist.
    pub fn existing(path: &Path, setting: Setting) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, None, Role::Own, setting)
    }

    /// Opens a folder that Busbar shares with others, such as `/tmp`, where nobody can replace
    /// another user's files. It is created, with those above it, if it does not exist.
    pub fn around(path: &Path, mode: u32, setting: Setting) -> Result<Self, TrustError> {
        TrustedFolder::enter(path, Some(mode), Role::Around, setting)
    }

    /// Walks to a folder step by step. Each step is checked before the next, so that folders are
    /// created only where nobody else could interfere; without a mode none is created.
    fn enter(
        path: &Path,
        mode: Option<u32>,
        role: Role,
        setting: Setting,
    ) -> Result<Self, TrustError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TrustError::File { what, path, source }
        };
        let whole = std::path::absolute(path).map_err(failed("find", path))?;
        let mut rest = steps(&whole);
        let mut here = PathBuf::from("/");
        let mut links = 0;
        while let Some(step) = rest.pop_front() {
            if step == ".." {
                here.pop();
                continue;
            }
            // `here` is always a folder.
            let above = here.symlink_metadata().map_err(failed("look at", &here))?;
            Facts::from(&above).judge(&here, Role::Around, setting)?;
            let next = here.join(&step);
            match next.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    Facts::from(&found).judge(&next, Role::Around, setting)?;
                    links += 1;
                    if links > MOST_LINKS {
                        let source = io::Error::other("there are too many symbolic links");
                        return Err(failed("find", path)(source));
                    }
                    let target = fs::read_link(&next).map_err(failed("look at", &next))?;
                    if target.is_absolute() {
                        here = PathBuf::from("/");
                    }
                    for step in steps(&target).into_iter().rev() {
                        rest.push_front(step);
                    }
                }
                Ok(_) => here = next,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let Some(mode) = mode else { return Err(failed("find", path)(error)) };
                    match DirBuilder::new().mode(mode).create(&next) {
                        Ok(()) if rest.is_empty() => {
                            let made = TrustedFolder::open(next, role, setting)?;
                            // Independent of the umask.
                            made.allow(mode)?;
                            return Ok(made);
                        }
                        Ok(()) => here = next,
                        // Another process created it; it is checked now.
                        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                            rest.push_front(step);
                        }
                        Err(error) => return Err(failed("make the folder", &next)(error)),
                    }
                }
                Err(error) => return Err(failed("look at", &next)(error)),
            }
        }
        TrustedFolder::open(here, role, setting)
    }

    fn open(path: PathBuf, role: Role, setting: Setting) -> Result<Self, TrustError> {
        let folder = open_folder(CWD, &path, &path)?;
        let found = folder.metadata().map_err(|source| {
            let path = path.clone();
            TrustError::File { what: "look at", path, source }
        })?;
        Facts::from(&found).judge(&path, role, setting)?;
        Ok(TrustedFolder { path, folder: Arc::new(folder), setting })
    }

    fn allow(&self, mode: u32) -> Result<(), TrustError> {
        fchmod(&self.folder, Mode::from_raw_mode(mode))
            .map_err(|error| self.failed("set the permissions of", "")(error.into()))
    }

    /// The path without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// An error with an entry; without a name, with the folder itself.
    fn failed<T: AsRef<Path>>(
        &self,
        what: &'static str,
        name: T,
    ) -> impl Fn(io::Error) -> TrustError + use<T> {
        let name = name.as_ref();
        let path = match name.as_os_str().is_empty() {
            true => self.path.clone(),
            false => self.path.join(name),
        };
        move |source| TrustError::File { what, path: path.clone(), source }
    }

    /// Opens a subfolder with these permissions; it is created if it does not exist.
    pub fn folder(&self, name: &str, mode: u32) -> Result<TrustedFolder, TrustError> {
        match mkdirat(&self.folder, name, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(self.failed("make the folder", name)(error.into())),
        }
        let subfolder = self.existing_folder(name)?;
        // Independent of the umask.
        subfolder.allow(mode)?;
        Ok(subfolder)
    }

    /// Opens a subfolder that must exist.
    pub fn existing_folder(&self, name: impl AsRef<Path>) -> Result<TrustedFolder, TrustError> {
        self.check(&name)?;
        let path = self.path.join(&name);
        let folder = Arc::new(open_folder(&self.folder, name.as_ref(), &path)?);
        Ok(TrustedFolder { path, folder, setting: self.setting })
    }

    /// Opens a file to write to; it is created if it does not exist, readable by the owner only.
    pub fn file(&self, name: impl AsRef<Path>, how: OFlags) -> Result<File, TrustError> {
        let opened = self.open_file("write to", name.as_ref(), how | OFlags::CREATE)?;
        opened.ok_or_else(|| self.failed("write to", name)(io::ErrorKind::NotFound.into()))
    }

    /// Opens a file to read, if it exists.
    pub fn existing_file(&self, name: impl AsRef<Path>) -> Result<Option<File>, TrustError> {
        self.open_file("read", name.as_ref(), OFlags::RDONLY)
    }

    /// Opens a file, if it exists.
    fn open_file(
        &self,
        what: &'static str,
        name: &Path,
        how: OFlags,
    ) -> Result<Option<File>, TrustError> {
        let path = self.path.join(name);
        // Before it is opened, since that would wait for the other end of a pipe, or cut a file.
        if let Some(found) = self.facts(name)? {
            found.judge_file(&path, self.setting)?;
        }
        let how = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, how, Mode::RUSR | Mode::WUSR) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) if !how.contains(OFlags::CREATE) => return Ok(None),
            Err(error) => return Err(self.failed(what, name)(error.into())),
        };
        let found = file.metadata().map_err(self.failed(what, name))?;
        Facts::from(&found).judge_file(&path, self.setting)?;
        Ok(Some(file))
    }

    /// Puts a whole file with these permissions in the place of another, or leaves that one.
    pub fn replace(
        &self,
        name: &str,
        content: &[u8],
        mode: u32,
        durability: Durability,
    ) -> Result<(), TrustError> {
        let part = format!("{name}.new");
        let write = || {
            // What was left by a process that was interrupted.
            match unlinkat(&self.folder, &part, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(&self.folder, &part, how, Mode::from_raw_mode(mode))?;
            let mut file = File::from(file);
            file.write_all(content)?;
            if durability == Durability::Now {
                file.sync_all()?;
            }
            renameat(&self.folder, &part, &self.folder, name)?;
            match durability {
                Durability::Now => self.folder.sync_all(),
                Durability::Later => Ok(()),
            }
        };
        write().map_err(self.failed("write", name))
    }

    /// What the system says of an entry, if it exists.
    fn facts(&self, name: &Path) -> Result<Option<Facts>, TrustError> {
        match statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed("look at", name)(error.into())),
        }
    }

    /// Checks whether an entry can be trusted, if it exists.
    pub fn check(&self, name: impl AsRef<Path>) -> Result<(), TrustError> {
        let name = name.as_ref();
        let judge =
            |found: Facts| found.judge_entry(&self.path.join(name), Role::Own, self.setting);
        self.facts(name)?.map_or(Ok(()), judge)
    }

    /// Checks whether all entries can be trusted, those included that are not Busbar's.
    pub fn check_all(&self) -> Result<(), TrustError> {
        self.check_entries(Role::Own).map(drop)
    }

    /// Checks whether all entries can be trusted, and those of subfolders.
    pub fn check_with_subfolders(&self) -> Result<(), TrustError> {
        for (name, found) in self.check_entries(Role::Own)? {
            if found.is_folder() {
                let is_open = found.is_open_to_others();
                let role = if is_open { Role::Own } else { Role::OutOfReach };
                self.existing_folder(&name)?.check_entries(role)?;
            }
        }
        Ok(())
    }

    /// Checks all entries, and returns them.
    fn check_entries(&self, role: Role) -> Result<Vec<(PathBuf, Facts)>, TrustError> {
        let failed = |error: Errno| self.failed("look into", "")(error.into());
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = PathBuf::from(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
            // It may be gone by now.
            let Some(found) = self.facts(&name)?.filter(|_| !is_itself(&name)) else { continue };
            found.judge_entry(&self.path.join(&name), role, self.setting)?;
            entries.push((name, found));
        }
        Ok(entries)
    }
}

/// Whether an entry of a folder is the folder itself, or the one above it.
fn is_itself(name: &Path) -> bool {
    [".", ".."].iter().any(|other| name.as_os_str() == *other)
}

/// The steps of a path.
fn steps(path: &Path) -> VecDeque<OsString> {
    let step = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(step).collect()
}

fn open_folder(at: impl std::os::fd::AsFd, name: &Path, path: &Path) -> Result<File, TrustError> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, how, Mode::empty()).map(File::from).map_err(|error| {
        let path = path.to_owned();
        TrustError::File { what: "open the folder", path, source: error.into() }
    })
}
