//! Where things usually are, by who asks and by what the environment says.

use std::path::{Path, PathBuf};

/// What the usual configuration depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Who runs the program.
    pub user: u32,
    /// How many processors it may use.
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
    /// Those of this process.
    pub fn here() -> Self {
        let given = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        // The XDG Base Directory Specification takes a relative path for none.
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

    /// Where state is kept: for root in `/var/lib`, for others where they keep such things. For who has
    /// no home, in the folder where the program runs.
    pub fn usual_state(&self) -> PathBuf {
        if self.user == 0 {
            return "/var/lib/busbar".into();
        }
        let states = self.state_home.clone();
        let states = states.or_else(|| Some(self.home.as_ref()?.join(".local/state")));
        states.unwrap_or_default().join("busbar")
    }

    /// Where clients reach the daemon that keeps its state in this folder.
    pub fn usual_socket(&self, state: &Path) -> PathBuf {
        match (&self.socket, &self.runtime) {
            (Some(socket), _) => socket.clone(),
            _ if self.user == 0 => "/run/busbar/socket".into(),
            (None, Some(runtime)) => runtime.join("busbar/socket"),
            (None, None) => state.join("socket"),
        }
    }

    /// The configuration that is read if none is named: what `$BUSBAR_CONFIG` says, or else the file of
    /// root or of the user if there is one.
    pub fn usual_file(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| self.own_file().filter(|path| path.exists()))
    }

    /// Where a user's own configuration would be.
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
        assert_eq!(root.usual_state(), Path::new("/var/lib/busbar"));
        assert_eq!(root.usual_socket(Path::new("/st")), Path::new("/run/busbar/socket"));
        assert_eq!(root.own_file().unwrap(), Path::new("/etc/busbar.toml"));

        let user = Environment { user: 1000, home: Some("/home/u".into()), ..root };
        assert_eq!(user.usual_state(), Path::new("/home/u/.local/state/busbar"));
        assert_eq!(user.usual_socket(Path::new("/st")), Path::new("/st/socket"));
        assert_eq!(user.own_file().unwrap(), Path::new("/home/u/.config/busbar/busbar.toml"));

        let told = Environment {
            state_home: Some("/s".into()),
            config_home: Some("/c".into()),
            runtime: Some("/r".into()),
            ..user
        };
        assert_eq!(told.usual_state(), Path::new("/s/busbar"));
        assert_eq!(told.usual_socket(Path::new("/st")), Path::new("/r/busbar/socket"));
        assert_eq!(told.own_file().unwrap(), Path::new("/c/busbar/busbar.toml"));

        let named =
            Environment { socket: Some("here".into()), config: Some("gone.toml".into()), ..told };
        assert_eq!(named.usual_socket(Path::new("/st")), Path::new("here"));
        // What was named is read, or it is an error.
        assert_eq!(named.usual_file(), Some("gone.toml".into()));

        let nobody = Environment { user: 65534, ..Environment::default() };
        assert_eq!(nobody.usual_state(), Path::new("busbar"));
        assert_eq!(nobody.usual_file(), None);
    }
}
