//! Reports to the service manager that started the agent, or the daemon: that it is ready, alive, or about to stop.
//!
//! This is the protocol of `sd_notify`: lines in datagrams to the socket in `$NOTIFY_SOCKET`. If
//! `$WATCHDOG_USEC` is set, the manager takes silence for that long for a hang. A report that cannot be sent
//! is dropped. The crate `sd-notify` is not used, since it waits for a manager that does not listen.

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
    /// The service manager that is named in the environment, if one is.
    pub fn from_environment() -> io::Result<Self> {
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_meant =
            number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        match std::env::var_os("NOTIFY_SOCKET") {
            Some(name) => Manager::at(&name, watchdog.map(Duration::from_micros)),
            None => Ok(Manager::default()),
        }
    }

    /// A service manager behind this socket; a name that begins with `@` is abstract.
    pub fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let every = watchdog.map(|time| time / 4);
        Ok(Manager { socket: Some((socket, address)), every, told: None })
    }

    /// The same, which waits so long for a manager that does not listen.
    pub fn with_patience(self, patience: Duration) -> io::Result<Self> {
        if let Some((socket, _)) = &self.socket {
            socket.set_nonblocking(false)?;
            socket.set_write_timeout(Some(patience))?;
        }
        Ok(self)
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.socket.is_some()
    }

    /// How often it is to hear that the service is alive, if it watches for that: twice as often as recommended.
    pub fn every(&self) -> Option<Duration> {
        self.every
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

    /// Says something, in lines.
    pub fn tell(&self, what: &str) {
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
        // That nobody listens any more is no reason to fail.
        drop(listener);
        manager.ready();
    }

    #[test]
    fn a_socket_may_be_abstract() {
        let name = format!("busbar-service-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        let manager = Manager::at(OsStr::new(&format!("@{name}")), None).unwrap();
        assert_eq!(manager.every(), None);
        manager.ready();
        let mut buffer = [0; 64];
        let length = listener.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
    }
}
