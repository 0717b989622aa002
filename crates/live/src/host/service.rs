//! Reports to a service manager, if one has started the daemon: that it is ready, reloads or stops, and
//! that its loop is alive. Reporting must never block the daemon, so messages that cannot be sent are dropped.

use std::time::{Duration, Instant};

use busbar_agent::notify::Manager;
use rustix::time::{ClockId, clock_gettime};

/// How often the status is sent without a watchdog.
const USUAL: Duration = Duration::from_secs(10);

/// How long sending may block.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager, if there is one.
pub(crate) struct Service {
    manager: Manager,
    told: Option<Instant>,
}

impl Service {
    /// No service manager.
    pub(crate) fn nobody() -> Self {
        Service::of(Manager::default())
    }

    /// The service manager named in the environment.
    pub(crate) fn from_environment() -> Self {
        let manager = Manager::from_environment();
        let manager = manager.and_then(|manager| manager.with_patience(PATIENCE));
        Service::of(manager.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot reach the service manager in NOTIFY_SOCKET");
            Manager::default()
        }))
    }

    fn of(manager: Manager) -> Self {
        Service { manager, told: None }
    }

    /// The longest time the loop may sleep.
    pub(crate) fn longest_rest(&self) -> Option<Duration> {
        self.manager.every()
    }

    /// Reports that the daemon is ready.
    pub(crate) fn ready(&self) {
        self.manager.tell("READY=1");
    }

    /// Reports a reload, which ends with [`ready`](Self::ready).
    pub(crate) fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.manager.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
    }

    /// Reports that the daemon is about to stop.
    pub(crate) fn stopping(&self) {
        self.manager.tell("STOPPING=1\nSTATUS=stopping; jobs continue");
    }

    /// Reports that the loop is alive, with its status, if that is due.
    pub(crate) fn turned(&mut self, how: impl FnOnce() -> String) {
        let every = self.longest_rest();
        let is_due = self.told.is_none_or(|told| told.elapsed() >= every.unwrap_or(USUAL));
        if !self.manager.is_there() || !is_due {
            return;
        }
        self.told = Some(Instant::now());
        let watchdog = if every.is_some() { "WATCHDOG=1\n" } else { "" };
        self.manager.tell(&format!("{watchdog}STATUS={}", how()));
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

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
        let service = |watchdog| Service::of(Manager::at(path.as_os_str(), watchdog).unwrap());
        service(None).turned(|| "fine".to_owned());
        assert_eq!(heard(&listener), "STATUS=fine");
        let mut service = service(Some(Duration::from_secs(3600)));
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
        Service::nobody().turned(|| panic!("nobody listens"));
    }
}
