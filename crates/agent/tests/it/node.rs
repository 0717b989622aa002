//! An agent in a thread of its own, on an emulated node in a temporary folder.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use busbar_agent::Stopped;
use busbar_agent::client::{Address, Client, ClientError};
use busbar_agent::config::{Config, UnixSpec};
use busbar_agent::emulate::{self, Shape};
use busbar_agent::notify::Manager;
use busbar_agent::server::Server;
use busbar_core::units::Watts;

/// After so long nobody expects any more that something comes, on the slowest of machines.
pub(crate) const PATIENCE: Duration = Duration::from_secs(900);

/// A node with its agent.
pub(crate) struct Node {
    pub(crate) place: tempfile::TempDir,
    pub(crate) config: Config,
    running: Option<(UnixStream, JoinHandle<Stopped>)>,
}

pub(crate) fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

/// The configuration of an emulated node, which is made.
pub(crate) fn emulated(place: &std::path::Path, name: &str) -> Config {
    let root = place.join("tree");
    emulate::create(&root, Shape::default()).unwrap();
    emulate::set_demand(&root, watts(180)).unwrap();
    let mut config = Config { node: name.to_owned(), ..Config::default() };
    config.state = place.join("state");
    config.period = Duration::from_millis(100);
    config.hardware.powercap = root;
    config.hardware.emulate = true;
    let (controllers, observers) = (Vec::new(), Vec::new());
    config.unix =
        Some(UnixSpec { path: place.join("socket"), controllers, observers, group: None });
    config
}

impl Node {
    pub(crate) fn start(name: &str) -> Self {
        Node::with(name, |_| ())
    }

    pub(crate) fn with(name: &str, change: impl FnOnce(&mut Config)) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut config = emulated(place.path(), name);
        change(&mut config);
        let mut node = Node { place, config, running: None };
        node.run();
        node
    }

    /// Starts the agent, and remembers the port that it got.
    pub(crate) fn run(&mut self) {
        let server = Server::start(self.config.clone()).unwrap();
        if let (Some(tcp), Some(address)) = (&mut self.config.tcp, server.tcp_address()) {
            tcp.address = address;
        }
        let (stop, stopped) = UnixStream::pair().unwrap();
        let thread = std::thread::spawn(move || server.run(&stopped, Manager::default()).unwrap());
        self.running = Some((stop, thread));
    }

    pub(crate) fn stop(&mut self) -> Stopped {
        let (mut stop, thread) = self.running.take().unwrap();
        stop.write_all(&[1]).unwrap();
        thread.join().unwrap()
    }

    pub(crate) fn address(&self) -> Address {
        Address::Unix(self.socket())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.place.path().join("socket")
    }

    pub(crate) fn connect(&self, control: bool) -> Result<Client, ClientError> {
        Client::connect(&self.address(), &self.config.node, None, "test", control, PATIENCE)
    }

    /// The limits in the tree itself, in watts.
    pub(crate) fn limits(&self) -> [u64; 2] {
        [0, 1].map(|zone| {
            let file = format!("intel-rapl:{zone}/constraint_0_power_limit_uw");
            let text = fs::read_to_string(self.config.hardware.powercap.join(file)).unwrap();
            text.trim().parse::<u64>().unwrap() / 1_000_000
        })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.stop();
        }
    }
}
