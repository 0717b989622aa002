//! What a service manager is told, if one has started the daemon: that it is ready, reads its
//! configuration again or stops, and, as long as its loop really turns, that it does.
//!
//! This is the protocol of `sd_notify`: lines in datagrams to the socket that `$NOTIFY_SOCKET` names. If
//! `$WATCHDOG_USEC` says so, silence for that long counts as being stuck. Nothing here may keep the daemon
//! from its work: what cannot be said is left out.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How often it is said how the daemon is, without a watchdog.
const USUAL: Duration = Duration::from_secs(10);

/// How long a service manager may keep the daemon waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// A service manager, or nobody.
pub struct Service {
    manager: Option<(UnixDatagram, SocketAddr)>,
    has_watchdog: bool,
    /// How often the manager is told that the loop turns.
    every: Duration,
    told: Option<Instant>,
}

impl Service {
    /// Nobody wants to know.
    pub fn nobody() -> Self {
        Service { manager: None, has_watchdog: false, every: USUAL, told: None }
    }

    /// Whoever is named in the environment.
    pub fn from_environment() -> Self {
        let variable = |name| std::env::var_os(name);
        let Some(name) = variable("NOTIFY_SOCKET") else { return Service::nobody() };
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let is_meant =
            number("WATCHDOG_PID").is_none_or(|meant| meant == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| is_meant && *micros > 0);
        match Service::at(&name, watchdog.map(Duration::from_micros)) {
            Ok(service) => service,
            Err(error) => {
                tracing::warn!(%error, socket = %name.display(), "cannot speak to the service manager");
                Service::nobody()
            }
        }
    }

    /// A manager behind this socket; a name that begins with `@` is an abstract one.
    fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        // Twice within half of the time after which it would count as stuck.
        let every = watchdog.map_or(USUAL, |time| time / 4);
        let has_watchdog = watchdog.is_some();
        Ok(Service { manager: Some((socket, address)), has_watchdog, every, told: None })
    }

    /// How long the loop may rest at most.
    pub(super) fn longest_rest(&self) -> Option<Duration> {
        self.has_watchdog.then_some(self.every)
    }

    /// It serves clients.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// It reads its configuration again; [`ready`](Self::ready) ends that.
    pub(super) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// It is about to end.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping; jobs run on");
    }

    /// The loop has turned once more. Says how it is, if it is time to.
    pub(super) fn turned(&mut self, how: impl FnOnce() -> String) {
        if self.manager.is_none() || self.told.is_some_and(|told| told.elapsed() < self.every) {
            return;
        }
        self.told = Some(Instant::now());
        let watchdog = if self.has_watchdog { "WATCHDOG=1\n" } else { "" };
        self.tell(&format!("{watchdog}STATUS={}", how()));
    }

    fn tell(&self, what: &str) {
        if let Some((socket, address)) = &self.manager
            && let Err(error) = socket.send_to_addr(what.as_bytes(), address)
        {
            tracing::debug!(%error, "the service manager does not listen");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(listener: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = listener.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut service = Service::at(path.as_os_str(), Some(Duration::from_secs(3600))).unwrap();
        assert_eq!(service.longest_rest(), Some(Duration::from_secs(900)));
        service.ready();
        assert_eq!(heard(&listener), "READY=1");
        service.reloading();
        assert!(heard(&listener).starts_with("RELOADING=1\nMONOTONIC_USEC="));
        service.turned(|| "fine".to_owned());
        assert_eq!(heard(&listener), "WATCHDOG=1\nSTATUS=fine");
        service.turned(|| panic!("it was said already"));
        service.stopping();
        assert!(heard(&listener).starts_with("STOPPING=1\n"));
        // That nobody listens any more is no reason to fail.
        drop(listener);
        service.ready();
    }

    #[test]
    fn a_socket_may_be_abstract() {
        let name = format!("busbar-service-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixDatagram::bind_addr(&address).unwrap();
        let mut service = Service::at(OsStr::new(&format!("@{name}")), None).unwrap();
        assert_eq!(service.longest_rest(), None);
        service.turned(|| "fine".to_owned());
        assert_eq!(heard(&listener), "STATUS=fine");
        assert!(Service::nobody().manager.is_none());
    }
}
