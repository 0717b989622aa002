//! A daemon that is killed at random moments under load, and wardens that are killed with it.
//!
//! Four clients submit small jobs all the time and note which were accepted. Another one cancels, holds and
//! releases some, and sets the budget. Each job writes a line when it begins and one when it ends. In the end
//! what the daemon has written down, what clients were told and what jobs wrote must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use busbar::live::job::{End, EndReason, Scope};
use busbar::live::server::socket::Client;
use busbar::live::wire::{JobLine, RefusalKind, Reply, Request, State};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::books::Books;
use super::kills_asked_for;
use super::served::{Served, kill, words};
use crate::patience::wait_for;

/// So many jobs may wait before clients that submit take a rest.
const MOST_WAITING: usize = 60;

/// What clients know in the end.
#[derive(Default)]
struct Told {
    /// Jobs that were accepted.
    accepted: Mutex<BTreeSet<u64>>,
    /// Jobs that somebody wanted to cancel, whether or not the daemon lived to hear it.
    cancelled: Mutex<BTreeSet<u64>>,
    /// The longest cycle that any daemon told of, in microseconds.
    longest_cycle: Mutex<u64>,
    is_over: AtomicBool,
}

impl Told {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }
}

/// A client that finds the daemon again whenever it is gone.
struct Persistent {
    socket: PathBuf,
    client: Option<Client>,
}

impl Persistent {
    /// Asks once. None if there is no answer; then nobody knows whether it was heard.
    fn ask(&mut self, request: &Request) -> Option<Reply> {
        if self.client.is_none() {
            self.client = Client::connect(&self.socket).ok();
        }
        let answer = self.client.as_mut().and_then(|client| client.ask(request).ok());
        if answer.is_none() {
            self.client = None;
            sleep(Duration::from_millis(2));
        }
        answer
    }
}

/// Says when it begins and ends, and sleeps for so many milliseconds in between.
fn script(millis: u32) -> String {
    let seconds = f64::from(millis) / 1000.0;
    format!(
        "echo $BUSBAR_JOB.$BUSBAR_ATTEMPT begins >> $RECORD; sleep {seconds}; \
         echo $BUSBAR_JOB.$BUSBAR_ATTEMPT ends >> $RECORD"
    )
}

fn submit_all_the_time(mut client: Persistent, jobs: &[Request], told: &Told) {
    for request in jobs.iter().cycle() {
        if !told.goes_on() {
            break;
        }
        match client.ask(request) {
            Some(Reply::Submitted { job, .. }) => {
                assert!(told.accepted.lock().unwrap().insert(job), "{job} was accepted twice");
            }
            Some(other) => panic!("{other:?}"),
            None => (),
        }
        sleep(Duration::from_millis(2));
        while told.goes_on()
            && let Some(Reply::Status(status)) = client.ask(&Request::Status)
        {
            let mut longest = told.longest_cycle.lock().unwrap();
            *longest = status.longest_cycle.max(*longest);
            drop(longest);
            if status.waiting < MOST_WAITING {
                break;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

fn meddle_all_the_time(
    mut client: Persistent,
    feeds: &[(&str, Range<u32>)],
    told: &Told,
    mut random: Pcg64Mcg,
) {
    while told.goes_on() {
        sleep(Duration::from_millis(random.random_range(20..80)));
        let Some(Reply::Queue(lines)) = client.ask(&Request::Queue) else { continue };
        let Some(request) = meddling(&lines, feeds, &mut random) else { continue };
        if let Request::Cancel { jobs } = &request {
            told.cancelled.lock().unwrap().extend(jobs);
        }
        match client.ask(&request) {
            // Whoever was to be held may run or be over by now.
            Some(Reply::Done(answers)) => {
                for refusal in answers.into_iter().filter_map(|answer| answer.refusal) {
                    let is_late = [RefusalKind::Unknown, RefusalKind::Impossible];
                    assert!(is_late.contains(&refusal.kind), "{refusal:?}");
                }
            }
            Some(Reply::Budget(_)) | None => (),
            Some(other) => panic!("{other:?}"),
        }
    }
}

/// Something to do to one of these jobs, or to all of them.
fn meddling(
    lines: &[JobLine],
    feeds: &[(&str, Range<u32>)],
    random: &mut Pcg64Mcg,
) -> Option<Request> {
    let mut one = |wanted: &dyn Fn(State) -> bool| {
        let found: Vec<&JobLine> = lines.iter().filter(|line| wanted(line.state)).collect();
        (!found.is_empty()).then(|| vec![found[random.random_range(0..found.len())].job])
    };
    let jobs =
        [one(&|_| true), one(&|state| state == State::Waiting), one(&|state| state == State::Held)];
    let [any, waiting, held] = jobs;
    Some(match random.random_range(0..10) {
        0 => Request::Cancel { jobs: any? },
        1..=2 => Request::Hold { jobs: waiting? },
        3..=6 => Request::Release { jobs: held? },
        7 | 8 if !feeds.is_empty() => {
            let (feed, nodes) = &feeds[random.random_range(0..feeds.len())];
            let watts = random.random_range(1..=nodes.len() * 4) * 25;
            let to = if watts < 100 { "configured".to_owned() } else { format!("{watts}W") };
            Request::Limit { of: Scope::Feed((*feed).to_owned()), to }
        }
        _ => {
            let watts = [100, 200, 350, 400, 500, 800][random.random_range(0..6)];
            Request::Budget { set: Some(format!("{watts}W")) }
        }
    })
}

/// Kills daemons under load, and returns what clients were told and how long restarts took.
fn under_load(
    served: &mut Served,
    feeds: &[(&str, Range<u32>)],
    kills: u32,
    seed: u64,
) -> (Told, Vec<Duration>) {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut job = || served.job(random.random_range(1..=3), &script(random.random_range(20..200)));
    let jobs: Vec<Request> = (0..97).map(|_| job()).collect();
    let client = || Persistent { socket: served.socket(), client: None };
    let (submitting, meddling) = ([client(), client(), client(), client()], client());
    let (told, mut restarts) = (Told::default(), Vec::new());
    thread::scope(|scope| {
        let (jobs, told) = (&jobs, &told);
        for client in submitting {
            scope.spawn(move || submit_all_the_time(client, jobs, told));
        }
        let meddlers = Pcg64Mcg::seed_from_u64(seed + 1);
        scope.spawn(move || meddle_all_the_time(meddling, feeds, told, meddlers));
        let ends = Ends(&told.is_over);
        for _ in 0..kills {
            // Half of them while it finds its jobs again, half while it serves.
            match random.random_bool(0.5) {
                true => served.begin(),
                false => restarts.push(served.begin_and_answer()),
            }
            sleep(Duration::from_millis(random.random_range(5..400)));
            served.kill();
        }
        restarts.push(served.begin_and_answer());
        drop(ends);
    });
    (told, restarts)
}

/// Whatever happens, clients end.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everything that is still held back may run.
fn let_go(served: &Served, feeds: &[(&str, Range<u32>)]) {
    served.ask(&Request::Budget { set: Some("configured".to_owned()) });
    for (feed, _) in feeds {
        let (of, to) = (Scope::Feed((*feed).to_owned()), "configured".to_owned());
        served.ask(&Request::Limit { of, to });
    }
    let Reply::Queue(lines) = served.ask(&Request::Queue) else { panic!("no queue") };
    let held = lines.iter().filter(|line| line.state == State::Held);
    served.ask(&Request::Release { jobs: held.map(|line| line.job).collect() });
    served.drain();
}

/// How many times each attempt has written each word.
fn record(served: &Served) -> BTreeMap<(u64, &'static str), Vec<u32>> {
    let mut written: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for line in fs::read_to_string(served.record()).unwrap().lines() {
        let (attempt, word) = line.split_once(' ').unwrap();
        let (job, attempt) = attempt.split_once('.').unwrap();
        let word = if word == "begins" { "begins" } else { "ends" };
        written.entry((job.parse().unwrap(), word)).or_default().push(attempt.parse().unwrap());
    }
    written
}

fn check(served: &Served, told: &Told, books: &Books) {
    let written = record(served);
    let of = |job, word| written.get(&(job, word)).map_or(&[][..], Vec::as_slice);
    for job in told.accepted.lock().unwrap().iter() {
        assert!(books.jobs.contains_key(job), "job {job} was accepted and is lost");
    }
    let cancelled = told.cancelled.lock().unwrap();
    for (job, account) in &books.jobs {
        let outcome = account.outcome.as_ref().expect("everybody is over");
        let (begins, ends) = (of(*job, "begins"), of(*job, "ends"));
        let what = format!("job {job}, {begins:?}, {ends:?}: {outcome:?}");
        assert!(begins.len() <= 1 && ends.len() <= 1, "it ran twice: {what}");
        assert!(begins.iter().all(|attempt| *attempt == account.attempts), "{what}");
        if outcome.succeeded() {
            assert_eq!((begins.len(), ends.len()), (1, 1), "it did not run: {what}");
        } else {
            assert_eq!(outcome.reason, Some(EndReason::Cancelled), "{what}");
            assert!(cancelled.contains(job), "nobody wanted that: {what}");
        }
    }
    for (job, _) in written.keys() {
        assert!(books.jobs.contains_key(job), "nobody knows of job {job}, which ran");
    }
}

fn killed_under_load(policy: &str, last_resort: &str, seed: u64) {
    killed_below_feeds(policy, last_resort, &[], seed);
}

/// The same below feeds with these nodes, each of which may carry what its nodes can draw.
fn killed_below_feeds(policy: &str, last_resort: &str, feeds: &[(&str, Range<u32>)], seed: u64) {
    let kills = kills_asked_for().unwrap_or(10);
    let more = format!("period = \"200ms\"\nlast_resort = \"{last_resort}\"");
    let mut served = Served::new(policy, &more);
    served.add_feeds(feeds);
    let (told, restarts) = under_load(&mut served, feeds, kills, seed);
    let_go(&served, feeds);
    let lines = served.history();
    let books = Books::add_up_below(feeds, &lines, 8).unwrap();
    check(&served, &told, &books);
    let status = served.status();
    assert_eq!((status.power.held.milliwatts(), status.nodes), (0, (8, 8)));
    served.assert_nothing_is_left();
    served.stop();

    let good = books.jobs.values().filter(|job| job.outcome.as_ref().unwrap().succeeded()).count();
    println!(
        "{policy}, last resort {last_resort}: {kills} kills, {} jobs accepted, {good} completed, \
         {} cancelled, {} attempts withdrawn; {} lines of history, {} changes of what jobs had, \
         {} suspensions, {} times over a limit that fell ({} of feeds), at most {} W; longest restart {} ms, \
         longest cycle {} ms",
        told.accepted.lock().unwrap().len(),
        books.jobs.len() - good,
        books.withdrawn,
        lines.len(),
        books.changed,
        books.suspended,
        books.shortages + books.shortages_below,
        books.shortages_below,
        books.peak as f64 / 1000.0,
        restarts.iter().max().unwrap().as_millis(),
        *told.longest_cycle.lock().unwrap() / 1000,
    );
}

#[test]
fn killed_under_easy() {
    killed_under_load("easy", "hold", 1);
}

#[test]
fn killed_under_easy_power() {
    killed_under_load("easy-power", "suspend", 2);
}

#[test]
fn killed_under_share() {
    killed_under_load("share", "hold", 3);
}

/// A row of four nodes, two of which are a rack, and another row.
const FEEDS: [(&str, Range<u32>); 3] = [("row", 0..4), ("rack", 0..2), ("other", 4..8)];

#[test]
fn killed_below_feeds_under_easy_power() {
    killed_below_feeds("easy-power", "suspend", &FEEDS, 4);
}

#[test]
fn killed_below_feeds_under_easy() {
    killed_below_feeds("easy", "hold", &FEEDS, 5);
}

/// What an operator has set of a feed is there again, and keeps jobs from its nodes, until it is taken back.
#[test]
fn limits_of_feeds_survive() {
    let mut served = Served::new("easy", "");
    served.add_feeds(&FEEDS);
    served.begin_and_answer();
    let limit = |feed: &str, to: &str| Request::Limit {
        of: Scope::Feed(feed.to_owned()),
        to: to.to_owned(),
    };
    assert!(matches!(served.ask(&limit("row", "100W")), Reply::Budget(_)));
    assert!(matches!(served.ask(&limit("other", "0W")), Reply::Budget(_)));
    let Reply::Error(refusal) = served.ask(&limit("rows", "100W")) else { panic!("no such feed") };
    assert_eq!(
        refusal.message,
        "there is no feed 'rows'; did you mean 'row'? The machine has row, other, rack"
    );
    let Reply::Error(refusal) = served.ask(&limit("row", "much")) else { panic!("no limit") };
    assert!(refusal.message.contains("feed 'row': the limit: "), "{}", refusal.message);
    served.kill();
    served.begin_and_answer();
    let seen = || {
        let feeds = served.status().power.feeds.into_iter();
        let seen = feeds.map(|feed| (feed.name, feed.limit.unwrap(), feed.set_by_operator));
        seen.collect::<Vec<_>>()
    };
    let watts = busbar::units::Watts::from_watts;
    let feed = |name: &str, limit, by_operator| (name.to_owned(), watts(limit), by_operator);
    assert_eq!(seen(), [feed("row", 100, true), feed("other", 0, true), feed("rack", 200, false)]);
    // One job fits below the row, and none elsewhere.
    let (one, two) = (served.submit("sleep infinity"), served.submit("exit 0"));
    let state = |job| match served.ask(&Request::Show { job }) {
        Reply::Show(shown) => (shown.line.state, shown.line.reason),
        other => panic!("{other:?}"),
    };
    wait_for("that one runs", || (state(one).0 == State::Running).then_some(()));
    assert_eq!(state(two), (State::Waiting, Some("for power of its feeds".to_owned())));
    served.ask(&limit("other", "configured"));
    wait_for("that the other has run", || (state(two).0 == State::Completed).then_some(()));
    served.ask(&Request::Cancel { jobs: vec![one] });
    served.drain();
    Books::add_up_below(&FEEDS, &served.history(), 8).unwrap();
    served.stop();
}

/// The daemon and the warden of a job are killed: nobody saw how the job ended, so it is lost, its processes
/// are ended, and its node and its power are free for the next one.
#[test]
fn killed_with_the_wardens() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let job = served.submit("sleep infinity & sleep infinity");
    let is_warden = |number: &i32| words(*number).get(1).is_some_and(|word| word == "warden");
    // A warden, and what it watches over: a shell and those that sleep.
    let wardens = wait_for("that it runs", || {
        let processes = served.jobs_processes();
        let (wardens, others): (Vec<i32>, Vec<i32>) = processes.into_iter().partition(is_warden);
        let sleeps = |number: &&i32| words(**number).first().is_some_and(|word| word == "sleep");
        (others.iter().filter(sleeps).count() == 2).then_some(wardens)
    });
    assert_eq!(wardens.len(), 1);
    served.kill();
    kill(wardens[0]);
    served.begin_and_answer();
    served.drain();
    served.assert_nothing_is_left();
    let Reply::Show(shown) = served.ask(&Request::Show { job }) else { panic!("it is kept") };
    assert_eq!((shown.line.state, shown.end, shown.attempts), (State::Lost, Some(End::Lost), 1));
    let status = served.status();
    assert_eq!((status.nodes, status.power.held.milliwatts()), ((8, 8), 0));
    let next = served.submit("exit 0");
    served.drain();
    let Reply::Show(shown) = served.ask(&Request::Show { job: next }) else { panic!("it is kept") };
    assert_eq!(shown.line.state, State::Completed);
    Books::add_up(&served.history(), 8).unwrap();
    served.stop();
}
