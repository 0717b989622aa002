//! A real daemon, in a process of its own, behind its socket: submissions, answers, commands, memory.
//!
//! One job has the whole machine and sleeps, and all others wait.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant as Moment};

use busbar::live::server::socket::Client;
use busbar::live::wire::{Reply, Request, Sent, Status};
use busbar::units::Span;

use crate::story::submission;
use crate::{QUEUED, Times, met, resident};

/// Nodes of the machine.
const NODES: u32 = 16;

pub(crate) fn measure(quick: bool) {
    let daemon = Served::start();
    println!("\n### Submissions to a daemon of its own\n");
    println!(
        "| how | jobs | a second | goal | met | of plain appends |\n|---|---:|---:|---:|---:|---:|"
    );
    let plain = plain_appends(&daemon.folder.path().join("plain"));
    daemon.submit_one_by_one(1);
    let mut total = 1;
    let mut row = |how: &str, jobs: usize, submit: &dyn Fn(usize)| {
        let begun = Moment::now();
        submit(jobs);
        let rate = jobs as f64 / begun.elapsed().as_secs_f64();
        let reached = met(rate >= 500.0);
        println!("| {how} | {jobs} | {rate:.0} | ≥ 500 | {reached} | {:.2} × |", rate / plain);
        total += jobs;
    };
    row("one connection, one after another, empty file", 1_000, &|jobs| {
        daemon.submit_one_by_one(jobs);
    });
    row("four connections", 4_000, &|jobs| {
        scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| daemon.submit_one_by_one(jobs / 4));
            }
        });
    });
    row("one connection, without waiting for answers", 4_000, &|jobs| daemon.pour(jobs));
    row("one connection, one after another, long queue", 1_000, &|jobs| {
        daemon.submit_one_by_one(jobs);
    });
    println!(
        "\nPlain appends: 4 KiB at the end of a file, each on the disk before the next: {plain:.0} a \
         second."
    );
    assert_eq!(daemon.status().waiting, QUEUED, "one runs");
    assert_eq!(daemon.status().running, 1);

    println!("\n### Answers with {QUEUED} jobs in the queue\n");
    println!("| what | median ms | worst | goal | met |\n|---|---:|---:|---:|---:|");
    let repeats = if quick { 5 } else { 30 };
    let answer = |what: &str, ask: &dyn Fn()| {
        let time = |_| {
            let begun = Moment::now();
            ask();
            begun.elapsed().as_secs_f64() * 1e3
        };
        let times = Times::new((0..repeats).map(time).collect());
        let (median, worst) = (times.percent(50), times.worst());
        println!("| {what} | {median:.1} | {worst:.1} | < 200 | {} |", met(worst < 200.0));
    };
    answer("the request `queue`, read and understood", &|| {
        let Reply::Queue(lines) = daemon.ask(&Request::Queue) else { panic!("no queue") };
        assert_eq!(lines.len(), QUEUED + 1);
    });
    answer("`busbar queue`", &|| daemon.command(&["queue"], QUEUED));
    answer("`busbar queue --json`", &|| daemon.command(&["queue", "--json"], 0));
    answer("`busbar queue`, sixteen at once", &|| {
        scope(|threads| {
            for _ in 0..16 {
                threads.spawn(|| daemon.command(&["queue"], QUEUED));
            }
        });
    });
    answer("`busbar status`", &|| daemon.command(&["status"], 1));
    println!("\nThe longest of the last cycles: {:.1} ms.", daemon.longest());
    let at_ten_thousand = resident(daemon.child.id());

    println!("\n### Cancelling 1000 of {QUEUED} jobs\n");
    println!("| how | seconds | longest cycle, ms |\n|---|---:|---:|");
    let jobs: Vec<u64> = (2..=1001).map(|place| place * 4).collect();
    let begun = Moment::now();
    daemon.cancel(&jobs);
    println!("| in one request | {:.2} | {:.1} |", begun.elapsed().as_secs_f64(), daemon.longest());
    let begun = Moment::now();
    let jobs: Vec<u64> = (2..=1001).map(|place| place * 4 + 1).collect();
    jobs.iter().for_each(|job| daemon.cancel(&[*job]));
    println!("| one by one | {:.2} | {:.1} |", begun.elapsed().as_secs_f64(), daemon.longest());

    println!("\n### Memory of the daemon\n");
    println!(
        "| jobs in the queue | resident MiB |\n|---:|---:|\n| {QUEUED} | {at_ten_thousand:.1} |"
    );
    let many = if quick { 2 * QUEUED } else { 10 * QUEUED };
    daemon.pour(many - daemon.status().waiting);
    println!("| {many} | {:.1} |", resident(daemon.child.id()));
    println!("\nThe longest cycle on the way: {:.1} ms.", daemon.longest());
}

/// How many times a second a disk takes 4 KiB at the end of a file.
fn plain_appends(path: &Path) -> f64 {
    let mut file = fs::File::create(path).expect("a file");
    let (begun, times) = (Moment::now(), 200);
    for _ in 0..times {
        file.write_all(&[1; 4096]).and_then(|()| file.sync_data()).expect("room on the disk");
    }
    f64::from(times) / begun.elapsed().as_secs_f64()
}

/// A daemon in a process of its own.
pub(crate) struct Served {
    child: Child,
    socket: PathBuf,
    web: SocketAddr,
    folder: tempfile::TempDir,
}

impl Served {
    pub(crate) fn start() -> Self {
        let web = free_address();
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name| folder.path().join(name);
        let (config, socket) = (place("busbar.toml"), place("socket"));
        let text = format!(
            "state = {:?}\nsocket = {socket:?}\nmachine = {NODES}\npolicy = \"easy\"\n\
             kill_after = \"1s\"\n[limits]\njobs = 200000\njobs_per_user = 200000\n\
             [log]\nlevel = \"error\"\n[web]\nlisten = \"{web}\"\n",
            place("state")
        );
        fs::write(&config, text).expect("a configuration");
        let child = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .spawn()
            .expect("a daemon");
        while Client::connect(&socket).is_err() {
            sleep(Duration::from_millis(10));
        }
        Served { child, socket, web, folder }
    }

    /// Where its web interface is.
    pub(crate) fn web(&self) -> SocketAddr {
        self.web
    }

    /// Submits a job and withdraws it, for so long and at least so often.
    pub(crate) fn submit_and_cancel(&self, time: Duration, times: usize) {
        let mut client = Client::connect(&self.socket).expect("a daemon");
        let (begun, mut done) = (Moment::now(), 0);
        while done < times || begun.elapsed() < time {
            let reply = client.ask(&sleeper()).expect("an answer");
            let Reply::Submitted { job, .. } = reply else { panic!("{reply:?}") };
            let reply = client.ask(&Request::Cancel { jobs: vec![job] }).expect("an answer");
            assert!(matches!(reply, Reply::Done(_)), "{reply:?}");
            done += 1;
        }
    }

    fn ask(&self, request: &Request) -> Reply {
        let mut client = Client::connect(&self.socket).expect("a daemon");
        client.ask(request).expect("an answer")
    }

    pub(crate) fn status(&self) -> Box<Status> {
        match self.ask(&Request::Status) {
            Reply::Status(status) => status,
            reply => panic!("{reply:?}"),
        }
    }

    fn longest(&self) -> f64 {
        self.status().longest_cycle as f64 / 1e3
    }

    pub(crate) fn submit_one_by_one(&self, jobs: usize) {
        let mut client = Client::connect(&self.socket).expect("a daemon");
        for _ in 0..jobs {
            let reply = client.ask(&sleeper()).expect("an answer");
            assert!(matches!(reply, Reply::Submitted { .. }), "{reply:?}");
        }
    }

    /// Submits without waiting for answers, which come meanwhile.
    pub(crate) fn pour(&self, jobs: usize) {
        let stream = UnixStream::connect(&self.socket).expect("a daemon");
        let mut line = serde_json::to_vec(&Sent::new(&sleeper())).expect("a request");
        line.push(b'\n');
        scope(|threads| {
            threads.spawn(|| (0..jobs).for_each(|_| (&stream).write_all(&line).expect("a reader")));
            let answers = BufReader::new(&stream).lines().take(jobs);
            for answer in answers {
                let answer = answer.expect("an answer");
                assert!(answer.starts_with("{\"submitted\""), "{answer}");
            }
        });
    }

    fn cancel(&self, jobs: &[u64]) {
        let Reply::Done(answers) = self.ask(&Request::Cancel { jobs: jobs.to_vec() }) else {
            panic!("nothing cancelled")
        };
        assert!(answers.iter().all(|answer| answer.refusal.is_none()));
    }

    /// Runs a command to its end; it says at least so many lines.
    fn command(&self, arguments: &[&str], lines: usize) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        let output = command.args(arguments).arg("--socket").arg(&self.socket).output();
        let output = output.expect("a command");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.iter().filter(|byte| **byte == b'\n').count() >= lines);
    }
}

impl Drop for Served {
    /// Leaves no process behind, also if something went wrong.
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&self.socket) {
            let until = Moment::now() + Duration::from_secs(20);
            while let Ok(Reply::Queue(lines)) = client.ask(&Request::Queue)
                && !lines.is_empty()
                && Moment::now() < until
            {
                // All at once: whoever is left out would start.
                let jobs = lines.iter().map(|line| line.job).collect();
                let _ = client.ask(&Request::Cancel { jobs });
                sleep(Duration::from_millis(50));
            }
            let _ = client.ask(&Request::Stop);
        }
        let until = Moment::now() + Duration::from_secs(10);
        while Moment::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address at which nobody listens.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

/// A job that wants the whole machine.
fn sleeper() -> Request {
    Request::Submit(Box::new(submission(NODES, Span::from_secs(86_400), None)))
}
