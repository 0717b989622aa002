//! Files that only their owner may read, such as private keys. Root may also share one with a group, as Debian
//! (`ssl-cert`) and systemd (`LoadCredential=`) do for a process that is not root's.
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
         root",
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
        "the private key {} can be read or written by others (mode {mode:04o}), who could act in its name; {}, and make a \
         new key if others had access",
        path.display(),
        advice(path, *is_own)
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Whether it belongs to this process's user.
        is_own: bool,
    },
}

/// How to hide a secret from others, and not from this process.
fn advice(path: &Path, is_own: bool) -> String {
    match is_own {
        true => format!("run: chmod 600 {}", path.display()),
        false => "let root write it, a group of Busbar's user read it, and nobody else do either \
                  (mode 0640)"
            .to_owned(),
    }
}

/// Reads a private key, if it belongs to this process's user or to root, and nobody else can read it but a group that
/// root shares it with.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, SecretError> {
    let unreadable = |source| SecretError::Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    // What is checked is the file that is read, whatever its name means by then.
    let found = file.metadata().map_err(unreadable)?;
    judge(path, found.uid(), found.mode() & 0o7777, rustix::process::geteuid().as_raw())?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(unreadable)?;
    Ok(text)
}

/// Whether a file with this owner and these permissions can be a secret of a process of this user.
fn judge(path: &Path, owner: u32, mode: u32, user: u32) -> Result<(), SecretError> {
    let is_own = owner == user;
    if owner != 0 && !is_own {
        return Err(SecretError::Owner { path: path.to_owned(), owner, user });
    }
    // What is root's can only be read because root has shared it.
    let hidden = if is_own { 0o077 } else { 0o037 };
    match mode & hidden {
        0 => Ok(()),
        _ => Err(SecretError::Exposed { path: path.to_owned(), mode, is_own }),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use busbar_needs::needs;

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
    }

    #[needs(root)]
    #[test]
    fn a_secret_of_somebody_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "secret").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(65_533), None).unwrap();
        let said = read_secret(&path).unwrap_err().to_string();
        assert!(
            said.contains("belongs to user 65533") && said.contains("user 0 or root"),
            "{said}"
        );
    }

    #[test]
    fn root_may_share_a_secret_with_a_group() {
        let path = Path::new("/run/credentials/key");
        for mode in [0o640, 0o440, 0o600, 0o400] {
            judge(path, 0, mode, 1001).unwrap();
        }
        for mode in [0o660, 0o644, 0o604, 0o650, 0o641] {
            let said = judge(path, 0, mode, 1001).unwrap_err().to_string();
            assert!(said.contains("0640") && !said.contains("chmod 600"), "{said}");
        }
        // Whoever owns it needs no group.
        for owner in [0, 1001] {
            let said = judge(path, owner, 0o640, owner).unwrap_err().to_string();
            assert!(said.contains("chmod 600 /run/credentials/key"), "{said}");
        }
        assert!(matches!(judge(path, 1002, 0o640, 1001), Err(SecretError::Owner { .. })));
        assert!(matches!(judge(path, 1001, 0o640, 0), Err(SecretError::Owner { .. })));
    }
}
