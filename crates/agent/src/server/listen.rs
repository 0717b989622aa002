//! The socket on the node.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use busbar_trust::{Setting, TrustedFolder};

use crate::config::UnixSpec;

/// What names the socket.
const SOCKET: Setting = Setting("'listen.socket = …' in the agent's configuration");

/// Opens the socket on this node. One that nobody listens on any more is replaced.
pub(super) fn listen_unix(spec: &UnixSpec) -> io::Result<UnixListener> {
    // Others may reach the socket, and nobody else may put something in its place, whose permissions would be changed.
    let folder = spec.path.parent().filter(|folder| !folder.as_os_str().is_empty());
    TrustedFolder::around(folder.unwrap_or(Path::new(".")), 0o755, SOCKET)?;
    remove_stale(&spec.path)?;
    let listener = UnixListener::bind(&spec.path)?;
    listener.set_nonblocking(true)?;
    // Who may do what is decided by who connects, unless a group is named.
    let mode = match spec.group {
        Some(group) => {
            std::os::unix::fs::chown(&spec.path, None, Some(group))?;
            0o660
        }
        None => 0o666,
    };
    fs::set_permissions(&spec.path, fs::Permissions::from_mode(mode))?;
    Ok(listener)
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path) {
        Ok(_) => {
            let text = "another agent listens there; stop it first";
            Err(io::Error::new(io::ErrorKind::AddrInUse, text))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(_) => Ok(()),
    }
}
