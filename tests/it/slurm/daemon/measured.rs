//! How fast a lower budget reaches the nodes, and what an idle daemon costs, on a lab of 64 nodes. Nothing is judged by these
//! times; they are printed, on request:
//!
//! `BUSBAR_SLURM_TRIAL=1 cargo test --all-features --test it slurm::daemon::measured -- --nocapture`

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::wire::Request;
use busbar::slurm::model::JobState;
use busbar_needs::needs;

use super::served::Served;

const NODES: u32 = 64;

/// Budgets in watts between which all nodes get other caps.
const HIGH: u64 = 12_000;
const LOW: u64 = 8_000;

/// How often the budget falls.
const FALLS: usize = 10;

/// How long an idle daemon is watched.
const IDLE: Duration = Duration::from_secs(60);

/// The processor time of a process in clock ticks, and that of its children that have ended: of Slurm's programs.
fn ticks(process: u32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, after) = text.rsplit_once(')').unwrap();
    let field = |number: usize| -> u64 {
        // The state, which is the third, comes first here.
        after.split_whitespace().nth(number - 3).unwrap().parse().unwrap()
    };
    (field(14) + field(15), field(16) + field(17))
}

#[needs(slurm, trial)]
#[test]
fn a_falling_budget_and_an_idle_daemon() {
    let mut served = Served::idle(NODES, "steer", "share", &[]);
    served.begin();
    served.wait("looks", || (served.looks() > 5).then_some(()));
    let process = served.status().process;
    let (before, begun) = (ticks(process), Instant::now());
    sleep(IDLE);
    let (after, took) = (ticks(process), begun.elapsed().as_secs_f64());
    // Linux counts in hundredths of a second, wherever programs can see it.
    let share = |before: u64, after: u64| (after - before) as f64 / took;
    println!(
        "an idle daemon with {NODES} agents takes {:.2} % of a core, and Slurm's programs that it asks {:.2} %",
        share(before.0, after.0),
        share(before.1, after.1)
    );

    let job = served.running.submit(&["-N64", "-t300", "--wrap", "sleep infinity"], None);
    served.running.await_job(job, "running", |job| job.state == JobState::Running);
    let caps = || served.nodes().iter().map(|(cap, _)| cap).sum::<u64>();
    let mut times = Vec::new();
    for _ in 0..FALLS {
        served.ask(&Request::Budget { set: Some(format!("{HIGH}W")) });
        served.wait("high caps", || (caps() > LOW).then_some(()));
        let begun = Instant::now();
        served.ask(&Request::Budget { set: Some(format!("{LOW}W")) });
        served.wait("low caps", || (caps() <= LOW).then_some(()));
        times.push(begun.elapsed());
    }
    times.sort();
    println!(
        "from 'budget' to the last of {NODES} lower caps: {:.0} ms in the middle of {FALLS} falls, {:.0} ms at most",
        times[FALLS / 2].as_secs_f64() * 1000.0,
        times[FALLS - 1].as_secs_f64() * 1000.0
    );
}
