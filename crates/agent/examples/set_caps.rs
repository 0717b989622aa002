//! Measures how long it takes to set and confirm the caps of many emulated nodes:
//! `cargo run --release -p busbar-agent --example set_caps -- 64`.
//!
//! All agents are threads of this process, each with its own files, socket and state; the controller is the one
//! that a daemon uses.

use std::error::Error;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use busbar_agent::client::Address;
use busbar_agent::config::{Config, UnixSpec};
use busbar_agent::emulate::{self, Shape};
use busbar_agent::fleet::{AgentId, Fleet, Options, Report, Target};
use busbar_agent::notify::Manager;
use busbar_agent::server::Server;
use busbar_agent::wire::{Answer, Caps, Request};
use busbar_core::units::Watts;

fn main() -> Result<(), Box<dyn Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(64), |count| count.parse())?;
    let place = tempfile::tempdir()?;
    let mut targets = Vec::new();
    let mut running = Vec::new();
    for number in 0..count {
        let node = format!("n{number}");
        let folder = place.path().join(&node);
        emulate::create(&folder.join("tree"), Shape::default())?;
        let mut config = Config { node: node.clone(), ..Config::default() };
        config.state = folder.join("state");
        config.hardware.powercap = folder.join("tree");
        config.hardware.emulate = true;
        let path = folder.join("socket");
        let (controllers, observers) = (Vec::new(), Vec::new());
        config.unix = Some(UnixSpec { path: path.clone(), controllers, observers, group: None });
        let server = Server::start(config)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        let thread = thread.spawn(move || server.run(&stopped, Manager::default()).map(drop))?;
        running.push((stop, thread));
        targets.push(Target { node, address: Address::Unix(path) });
    }
    let (sender, reports) = channel();
    let fleet = Fleet::start(targets, Options::controller("set_caps"), move |report| {
        // The receiver lives as long as the fleet.
        let _ = sender.send(report);
    })?;
    let mut up = 0;
    while up < count {
        match reports.recv_timeout(Duration::from_secs(60))? {
            Report::Up { .. } => up += 1,
            Report::Down { reason, .. } => return Err(reason.into()),
            _ => (),
        }
    }
    let mut times = Vec::new();
    for round in 0..10 {
        let cap = Watts::from_watts(if round % 2 == 0 { 120 } else { 160 });
        let begin = Instant::now();
        let requests = (0..count).map(|place| (AgentId(place), Request::Set(Caps::Node { cap })));
        let mut left = fleet.ask_all(requests, Duration::from_secs(60));
        while !left.is_empty() {
            match reports.recv_timeout(Duration::from_secs(60))? {
                Report::Answered { ticket, answer: Answer::Set(report), .. }
                    if report.is_confirmed() =>
                {
                    left.remove(&ticket);
                }
                Report::Answered { answer: Answer::Set(report), .. } => {
                    return Err(format!("not confirmed: {report:?}").into());
                }
                Report::Failed { reason, .. } => return Err(reason.into()),
                _ => (),
            }
        }
        times.push(begin.elapsed());
        std::thread::sleep(Duration::from_millis(300));
    }
    times.sort();
    println!(
        "{count} nodes set and confirmed: median {:.1} ms, slowest of {} {:.1} ms",
        times[times.len() / 2].as_secs_f64() * 1e3,
        times.len(),
        times[times.len() - 1].as_secs_f64() * 1e3
    );
    // The process ends with its agents; the folders go with it.
    Ok(())
}
