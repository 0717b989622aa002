//! Reports to a service manager, if one has started the daemon: that it is ready, reloads or stops, and
//! that its loop is alive.
//!
//! This is the protocol of `sd_notify`: lines in datagrams to the socket in `$NOTIFY_SOCKET`. If
//! `$WATCHDOG_USEC` is set, the manager takes silence for that long for a hang. Reporting must never
//! block the daemon, so messages that cannot be sent are dropped.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How often the status is sent without a watchdog.
const USUAL: Duration = Duration::from_secs(10);

/// How long sending may block.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager, if there is one.
pub struct Service {
    manager: Option<(UnixDatagram, SocketAddr)>,
    has_watchdog: bool,
    /// How often the status is sent.
    every: Duration,
    told: Option<Instant>,
}

impl Service {
    /// No service manager.
    pub fn nobody() -> Self {
        Service { manager: None, has_watchdog: false, every: USUAL, told: None }
    }

    /// The service manager named in the environment.
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

    /// A service manager behind this socket; a name that begins with `@` is abstract.
    fn at(name: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        // Twice as often as recommended.
        let every = watchdog.map_or(USUAL, |time| time / 4);
        let has_watchdog = watchdog.is_some();
        Ok(Service { manager: Some((socket, address)), has_watchdog, every, told: None })
    }

    /// The longest time the loop may sleep.
    pub(crate) fn longest_rest(&self) -> Option<Duration> {
        self.has_watchdog.then_some(self.every)
    }

    /// Reports that the daemon is ready.
    pub(crate) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Reports a reload, which ends with [`ready`](Self::ready).
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Reports that the daemon is about to stop.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=stopping; jobs run on");
    }

    /// Reports that the loop is alive, with its status, if that is due.
    pub(crate) fn turned(&mut self, how: impl FnOnce() -> String) {
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
