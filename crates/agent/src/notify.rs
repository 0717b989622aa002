//! Reports to the service manager that started the agent: that it is ready, alive, or about to stop.
//!
//! This is the protocol of `sd_notify`: lines in datagrams to the socket in `$NOTIFY_SOCKET`. If
//! `$WATCHDOG_USEC` is set, the manager takes silence for that long for a hang. A report that cannot be sent
//! is dropped.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// The service manager, if there is one.
#[derive(Debug, Default)]
pub struct Manager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often the agent must say that it is alive.
    every: Option<Duration>,
    told: Option<Instant>,
}

impl Manager {
    /// The service manager that is named in the environment.
    pub fn from_environment() -> Self {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_meant =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        let name = std::env::var_os("NOTIFY_SOCKET");
        let manager =
            name.and_then(|name| Manager::at(&name, watchdog.map(Duration::from_micros)).ok());
        manager.unwrap_or_default()
    }

    /// A service manager behind this socket; a name that begins with `@` is abstract.
    fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let every = watchdog.map(|time| time / 4);
        Ok(Manager { socket: Some((socket, address)), every, told: None })
    }

    /// When the agent must say again that it is alive.
    pub(crate) fn due(&self) -> Option<Instant> {
        let every = self.every?;
        Some(self.told.map_or_else(Instant::now, |told| told + every))
    }

    /// Reports that the agent listens.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Reports that the agent is about to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Reports that the agent's loop turns, if that is due.
    pub(crate) fn alive(&mut self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.told = Some(now);
            self.tell("WATCHDOG=1");
        }
    }

    fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(what.as_bytes(), address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let heard = || {
            let mut buffer = [0; 64];
            let length = listener.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        let mut manager = Manager::at(path.as_os_str(), Some(Duration::from_secs(40))).unwrap();
        manager.ready();
        assert_eq!(heard(), "READY=1");
        let now = Instant::now() + Duration::from_secs(1);
        manager.alive(now);
        assert_eq!(heard(), "WATCHDOG=1");
        assert_eq!(manager.due(), Some(now + Duration::from_secs(10)));
        manager.alive(now);
        manager.stopping();
        assert_eq!(heard(), "STOPPING=1", "it was not due");
        assert_eq!(Manager::default().due(), None);
    }
}
