//! A long day of short jobs: what a daemon needs depends on how many jobs there are at once, and not on how
//! many there ever were.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::job::{End, Requester};
use busbar::live::server::socket::Client;
use busbar::live::wire::{ClientGone, Message, Reply, Request, answers};
use busbar::units::Span;

use super::by_hand::{ByHand, ROOT, daily, submission};
use super::served::Served;
use super::{bytes_of_state, kills_asked_for};

/// So many jobs may wait at the same time.
const MOST_WAITING: usize = 50;

/// What a daemon has of the machine.
#[derive(Clone, Copy, Debug)]
struct Needs {
    /// Memory, in KiB.
    memory: u64,
    descriptors: usize,
    /// Bytes of the database and its log.
    state: u64,
}

fn needs(served: &Served) -> Needs {
    let process = served.process();
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let memory = memory.trim().trim_end_matches(" kB").parse().unwrap();
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    Needs { memory, descriptors, state: bytes_of_state(&served.database()) }
}

/// Runs so many jobs, and returns the most files of attempts that were ever seen.
fn run(served: &Served, jobs: u32) -> usize {
    let mut client = Client::connect(&served.socket()).unwrap();
    let request = served.job(1, "exit 0");
    let mut most = 0;
    for job in 0..jobs {
        let reply = client.ask(&request).unwrap();
        assert!(matches!(reply, Reply::Submitted { .. }), "{reply:?}");
        most = most.max(served.attempts().len());
        while job % 10 == 0
            && let Reply::Status(status) = client.ask(&Request::Status).unwrap()
            && status.waiting > MOST_WAITING
        {
            sleep(Duration::from_millis(20));
        }
    }
    drop(client);
    served.drain();
    served.assert_nothing_is_left();
    most
}

#[test]
fn real_jobs() {
    let jobs = kills_asked_for().map_or(300, |kills| 25 * kills);
    let mut served = Served::new("easy", "retention = \"1min\"\n[log]\nlevel = \"warn\"");
    served.begin_and_answer();
    let began = Instant::now();
    let most = run(&served, jobs / 3);
    let first = needs(&served);
    let most = most.max(run(&served, jobs - jobs / 3));
    let took = began.elapsed().as_secs_f64();
    let last = needs(&served);
    println!(
        "{jobs} real jobs in {took:.1} s; after a third of them {first:?}, in the end {last:?}; at \
         most {most} files of attempts; longest cycle {} ms",
        served.status().longest_cycle / 1000
    );
    assert!(last.memory < first.memory + 8 * 1024, "{first:?}, {last:?}");
    assert!(last.descriptors <= first.descriptors + 4, "{first:?}, {last:?}");
    assert!(last.state < 32 << 20, "{last:?}");
    served.stop();
}

/// An hour in which 4 jobs end every 10 s, and whoever is over is kept for a minute: the file is as large as
/// it was after the first third.
#[test]
fn old_jobs_make_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = ByHand::new(folder.path(), "easy", &daily(&[(0, "400W")]));
    day.retention = Span::from_secs(60);
    day.begin();
    let database = folder.path().join("busbar.db");
    let mut after_a_third = 0;
    for round in 0..360 {
        let (reply, mut replies) = answers();
        let message = |_| Message {
            request: Request::Submit(Box::new(submission(1, 60))),
            peer: Requester::Full(ROOT),
            reply: reply.clone(),
            gone: ClientGone::default(),
        };
        let messages = (0..4).map(message).collect();
        day.daemon.as_mut().unwrap().cycle(messages).unwrap();
        let mut replies = std::iter::from_fn(|| replies.try_recv().ok());
        assert!(replies.all(|reply| matches!(reply, Reply::Submitted { .. })));
        for attempt in day.engine.running() {
            assert!(day.engine.end(attempt, End::Exited(0)));
        }
        day.pass(10);
        if round == 120 {
            after_a_third = fs::metadata(&database).unwrap().len();
        }
    }
    day.end();
    let last = fs::metadata(&database).unwrap().len();
    println!("1440 jobs by hand: {after_a_third} bytes after a third, {last} in the end");
    assert!(last <= after_a_third * 5 / 4, "{after_a_third}, {last}");
}

/// A day with many large jobs, and quiet ones after it: the room that they took is given back, a little in
/// each cycle.
#[test]
fn a_great_day_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let mut day = ByHand::new(folder.path(), "easy", &daily(&[(0, "400W")]));
    day.retention = Span::from_secs(60);
    day.begin();
    for _ in 0..10 {
        let (reply, _answers) = answers();
        let message = |_| {
            let mut job = submission(1, 60);
            job.request.held = true;
            job.program.environment.push(("LARGE".to_owned(), "x".repeat(50_000)));
            Message {
                request: Request::Submit(Box::new(job)),
                peer: Requester::Full(ROOT),
                reply: reply.clone(),
                gone: ClientGone::default(),
            }
        };
        day.daemon.as_mut().unwrap().cycle((0..20).map(message).collect()).unwrap();
    }
    day.ask(Request::Cancel { jobs: (1..=200).collect() });
    day.end();
    day.begin();
    let database = folder.path().join("busbar.db");
    let large = fs::metadata(&database).unwrap().len();
    for _ in 0..60 {
        day.pass(10);
    }
    day.end();
    let small = fs::metadata(&database).unwrap().len();
    println!("200 jobs of 50 kB: {large} bytes, and {small} when they are forgotten");
    assert!(large > 8 << 20 && small < 2 << 20, "{large}, {small}");
}
