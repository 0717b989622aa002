//! Default places of files, by user and environment.

use std::path::{Path, PathBuf};

/// The part of the process environment that the defaults depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The user ID of the process.
    pub user: u32,
    /// The number of processors that the process may use.
    pub processors: u32,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// `$XDG_STATE_HOME`.
    pub state_home: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `$BUSBAR_SOCKET`.
    pub socket: Option<PathBuf>,
    /// `$BUSBAR_CONFIG`.
    pub config: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process.
    pub fn here() -> Self {
        let given = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        // The XDG Base Directory Specification ignores relative paths.
        let absolute = |name: &str| given(name).filter(|path| path.is_absolute());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Environment {
            user: rustix::process::geteuid().as_raw(),
            processors: u32::try_from(processors).unwrap_or(1),
            home: absolute("HOME"),
            state_home: absolute("XDG_STATE_HOME"),
            config_home: absolute("XDG_CONFIG_HOME"),
            runtime: absolute("XDG_RUNTIME_DIR"),
            socket: given("BUSBAR_SOCKET"),
            config: given("BUSBAR_CONFIG"),
        }
    }

    /// The default state folder: `/var/lib` for root, the user's state folder for others, or the
    /// current folder for users without a home.
    pub(crate) fn default_state(&self) -> PathBuf {
        if self.user == 0 {
            return "/var/lib/busbar".into();
        }
        let states = self.state_home.clone();
        let states = states.or_else(|| Some(self.home.as_ref()?.join(".local/state")));
        states.unwrap_or_default().join("busbar")
    }

    /// The default socket of a daemon with this state folder.
    pub(crate) fn default_socket(&self, state: &Path) -> PathBuf {
        match (&self.socket, &self.runtime) {
            (Some(socket), _) => socket.clone(),
            _ if self.user == 0 => "/run/busbar/socket".into(),
            (None, Some(runtime)) => runtime.join("busbar/socket"),
            (None, None) => state.join("socket"),
        }
    }

    /// The configuration file that is read if none is named: `$BUSBAR_CONFIG`, or else the file of
    /// root or of the user if it exists.
    pub(crate) fn default_file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| self.own_file().filter(|path| path.exists()))
    }

    /// The place of the user's own configuration file.
    fn own_file(&self) -> Option<PathBuf> {
        if self.user == 0 {
            return Some("/etc/busbar.toml".into());
        }
        let configs = self.config_home.clone();
        let configs = configs.or_else(|| Some(self.home.as_ref()?.join(".config")))?;
        Some(configs.join(Path::new("busbar/busbar.toml")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_where_one_would_look_for_them() {
        let root = Environment { home: Some("/root".into()), ..Environment::default() };
        assert_eq!(root.default_state(), Path::new("/var/lib/busbar"));
        assert_eq!(root.default_socket(Path::new("/st")), Path::new("/run/busbar/socket"));
        assert_eq!(root.own_file().unwrap(), Path::new("/etc/busbar.toml"));

        let user = Environment { user: 1000, home: Some("/home/u".into()), ..root };
        assert_eq!(user.default_state(), Path::new("/home/u/.local/state/busbar"));
        assert_eq!(user.default_socket(Path::new("/st")), Path::new("/st/socket"));
        assert_eq!(user.own_file().unwrap(), Path::new("/home/u/.config/busbar/busbar.toml"));

        let told = Environment {
            state_home: Some("/s".into()),
            config_home: Some("/c".into()),
            runtime: Some("/r".into()),
            ..user
        };
        assert_eq!(told.default_state(), Path::new("/s/busbar"));
        assert_eq!(told.default_socket(Path::new("/st")), Path::new("/r/busbar/socket"));
        assert_eq!(told.own_file().unwrap(), Path::new("/c/busbar/busbar.toml"));

        let named =
            Environment { socket: Some("here".into()), config: Some("gone.toml".into()), ..told };
        assert_eq!(named.default_socket(Path::new("/st")), Path::new("here"));
        // What was named is read, or it is an error.
        assert_eq!(named.default_file(), Some("gone.toml".into()));

        let nobody = Environment { user: 65534, ..Environment::default() };
        assert_eq!(nobody.default_state(), Path::new("busbar"));
        assert_eq!(nobody.default_file(), None);
    }
}
