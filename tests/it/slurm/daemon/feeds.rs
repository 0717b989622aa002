//! Feeds on a real Slurm: the daemon chooses nodes, and below each feed no more is drawn than it may carry.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::wire::{Reply, Request};
use busbar_needs::needs;

use super::served::{Served, jobs};
use crate::patience::PATIENCE;

/// Two rows of four nodes of 200 W, and what each may carry at first.
const ROWS: [(&str, std::ops::Range<usize>); 2] = [("row1", 0..4), ("row2", 4..8)];
const LIMIT: u64 = 600;

/// What the nodes of a row draw, if nothing changed while this was read.
fn drawn(served: &Served, row: &std::ops::Range<usize>) -> Option<u64> {
    let nodes = served.nodes();
    let draw = |(cap, is_busy): &(u64, bool)| if *is_busy { (*cap).min(180) } else { 20 };
    (served.nodes() == nodes).then(|| nodes[row.clone()].iter().map(draw).sum())
}

/// Moves the limit of a row, and waits until it holds.
fn limit(served: &Served, row: usize, watts: u64) {
    let (name, nodes) = &ROWS[row];
    let of = busbar::live::job::Scope::Feed((*name).to_owned());
    let reply = served.ask(&Request::Limit { of, to: format!("{watts}W") });
    assert!(matches!(reply, Reply::Budget(_)), "{reply:?}");
    let looks = served.looks();
    served.wait("less below the feed", || {
        (served.looks() > looks + 2 && drawn(served, nodes)? <= watts).then_some(())
    });
}

/// The limit of one row falls and rises again while jobs of one to four whole nodes run: neither row is ever over, each job runs
/// once, and the other row goes on.
#[needs(slurm)]
#[test]
fn rows_are_kept_within_their_limits() {
    let mut served = Served::idle(8, "steer", "share", &[]);
    let machine = served.running.place().join("machine.toml");
    let mut text = fs::read_to_string(&machine).unwrap();
    for (name, nodes) in &ROWS {
        text += &format!(
            "\n[[feed]]\nname = \"{name}\"\nlimit = \"{LIMIT}W\"\nnodes = \"{}-{}\"\n",
            nodes.start,
            nodes.end - 1
        );
    }
    fs::write(machine, text).unwrap();
    served.begin();
    let numbers = served.submit(&jobs(40, 7));
    let mut limits = [LIMIT, LIMIT];
    let (mut looks, mut ended, mut since) = (0, 0, Instant::now());
    let mut most = [0, 0];
    for look in 1.. {
        let change = match look {
            15 => Some((1, 250)),
            40 => Some((1, 500)),
            55 => Some((0, 300)),
            70 => Some((0, LIMIT)),
            _ => None,
        };
        if let Some((row, watts)) = change {
            // A higher limit holds at once, a lower one when those who run have been lowered.
            limit(&served, row, watts);
            limits[row] = watts;
        }
        for (row, (name, nodes)) in ROWS.iter().enumerate() {
            let Some(drawn) = drawn(&served, nodes) else { continue };
            looks += 1;
            most[row] = most[row].max(drawn);
            let log = || served.log();
            assert!(drawn <= limits[row], "{name}: {drawn} W of {} W\n{}", limits[row], log());
        }
        if look > 70 && served.ended() >= numbers.len() {
            break;
        }
        if served.ended() > ended {
            (ended, since) = (served.ended(), Instant::now());
        }
        assert!(since.elapsed() < PATIENCE, "{:?}\n{}", served.queue(), served.log());
        sleep(Duration::from_millis(100));
    }
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&numbers);
    println!("{looks} looks, at most {most:?} W of {LIMIT} W");
    assert!(looks > 50, "{looks}");
}

/// Where Slurm starts jobs by itself it does not know what feeds may carry, so that the daemon does not begin.
#[needs(slurm)]
#[test]
fn feeds_are_refused_where_slurm_starts_jobs() {
    let served = Served::idle(2, "admit", "share", &[]);
    let machine = served.running.place().join("machine.toml");
    let text = fs::read_to_string(&machine).unwrap();
    let feed = "\n[[feed]]\nname = \"row1\"\nlimit = \"300W\"\nnodes = \"0-1\"\n";
    fs::write(machine, text + feed).unwrap();
    let checked = std::process::Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["config", "check"])
        .arg(served.config())
        .output()
        .unwrap();
    let said = crate::slurm::text(&checked);
    assert!(!checked.status.success(), "{said}");
    assert!(said.contains("field 'slurm.mode'") && said.contains("[[feed]]"), "{said}");
}
