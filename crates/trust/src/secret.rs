//! Files that nobody but their owner may read, such as private keys.
//!
//! They may lie anywhere and behind links, where the site's own tools put them; what counts is the file that is read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a secret is not used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another user owns it.
    #[error(
        "the private key {} belongs to user {owner}, who could act in its name; use a new one that belongs to user {user} or \
         root, with mode 0600",
        path.display()
    )]
    Owner {
        /// The file.
        path: PathBuf,
        /// The owner's user ID.
        owner: u32,
        /// The user ID of this process.
        user: u32,
    },
    /// Others can read it.
    #[error(
        "the private key {path} can be read or written by others (mode {mode:04o}), who could act in its name; run: \
         chmod 600 {path}, and make a new key if others had access",
        path = path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// Reads a private key, if it belongs to this process's user or to root, and nobody else can read it.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, SecretError> {
    let unreadable = |source| SecretError::Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    // What is checked is the file that is read, whatever its name means by then.
    let found = file.metadata().map_err(unreadable)?;
    let (owner, user) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != 0 && owner != user {
        return Err(SecretError::Owner { path: path.to_owned(), owner, user });
    }
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Exposed { path: path.to_owned(), mode });
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(unreadable)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_secret_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "secret").unwrap();
        let allow = |mode| fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        for mode in [0o644, 0o640, 0o604, 0o620, 0o601] {
            allow(mode);
            let error = read_secret(&path).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(&format!("chmod 600 {}", path.display())), "{said}");
        }
        for mode in [0o600, 0o400] {
            allow(mode);
            assert_eq!(read_secret(&path).unwrap(), b"secret");
        }
        // As certbot does it.
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(read_secret(&link).unwrap(), b"secret");
        allow(0o644);
        assert!(matches!(read_secret(&link), Err(SecretError::Exposed { .. })));
        let missing = read_secret(&folder.path().join("missing"));
        assert!(matches!(missing, Err(SecretError::Unreadable { .. })));
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can give a file to somebody else");
            return;
        }
        allow(0o600);
        chown(&path, Some(65_533), None).unwrap();
        let said = read_secret(&path).unwrap_err().to_string();
        assert!(said.contains("belongs to user 65533") && said.contains("mode 0600"), "{said}");
    }
}
