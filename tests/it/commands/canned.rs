//! A daemon that has its answers ready, and remembers what it was asked.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, mpsc};

use busbar::live::engine::EnginePace;
use busbar::live::job::{
    After, Allotment, ChangeReason, End, EndReason, Event, EventKind, JobOutcome, JobRequest,
    NodeState, Owner,
};
use busbar::live::server::socket::{Limits, Server};
use busbar::live::wire::finished::{
    By, Finished, FinishedJob, FinishedQuery, Place, Usage, UsageSum,
};
use busbar::live::wire::{
    Answer, CycleTimes, Forecast, ForecastLine, HistoryLine, JobDetails, JobLine, LimitFrom,
    Message, NodeLine, PowerState, Private, Refusal, RefusalKind, Reply, Request, State, Status,
    Submission,
};
use busbar::units::{Instant, Joules, Span, Watts};
use tempfile::TempDir;

/// 2026-01-02 03:04:05 in UTC.
const THEN: i64 = 1_767_323_045;

/// A daemon that answers by a rule, and remembers what it was asked.
pub(super) struct Daemon {
    pub(super) folder: TempDir,
    pub(super) asked: Arc<Mutex<Vec<Request>>>,
    /// Until it is asked to stop.
    server: Arc<Mutex<Option<Server>>>,
}

impl Daemon {
    pub(super) fn new(answer: impl Fn(&Request) -> Reply + Send + 'static) -> Self {
        Daemon::with(Limits::default(), answer)
    }

    /// One that bears so much.
    pub(super) fn with(
        limits: Limits,
        answer: impl Fn(&Request) -> Reply + Send + 'static,
    ) -> Self {
        Daemon::at(tempfile::tempdir().unwrap(), limits, answer)
    }

    /// One in this folder.
    pub(super) fn at(
        folder: TempDir,
        limits: Limits,
        answer: impl Fn(&Request) -> Reply + Send + 'static,
    ) -> Self {
        let (sender, messages) = mpsc::channel::<Message>();
        let server = Server::bind(&folder.path().join("socket"), limits, sender).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let server = Arc::new(Mutex::new(Some(server)));
        let (remembered, running) = (Arc::clone(&asked), Arc::clone(&server));
        std::thread::spawn(move || {
            for message in messages {
                remembered.lock().unwrap().push(message.request.clone());
                let answer = answer(&message.request);
                let is_last = answer == Reply::Stopping;
                // Whoever asked may have gone.
                let _ = message.reply.send(answer);
                if is_last {
                    drop(running.lock().unwrap().take().map(Server::stop));
                }
            }
        });
        Daemon { folder, asked, server }
    }

    /// It is gone, and leaves its folder.
    pub(super) fn stop(self) -> TempDir {
        drop(self.server.lock().unwrap().take().map(Server::stop));
        self.folder
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command that speaks to this daemon.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env("BUSBAR_SOCKET", self.path("socket"))
            .env("TZ", "UTC")
            .env("ONE_VARIABLE", "of many");
        command
    }

    /// What a command prints that ends well.
    pub(super) fn prints(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        assert_eq!(errors, "", "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How a command fails: its exit code, and what it says.
    pub(super) fn fails(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    pub(super) fn last(&self) -> Request {
        self.asked.lock().unwrap().last().cloned().expect("something was asked")
    }

    pub(super) fn last_submission(&self) -> Submission {
        match self.last() {
            Request::Submit(submission) => *submission,
            other => panic!("{other:?}"),
        }
    }
}

fn watts(watts: u32) -> Watts {
    Watts::from_watts(watts)
}

fn running() -> JobLine {
    JobLine {
        job: 7,
        name: Some("solve\u{1b}[2J".to_owned()),
        user: 0,
        user_name: None,
        state: State::Running,
        reason: None,
        nodes: 3,
        on: vec![0, 1, 5],
        power: Some(watts(290)),
        needs: None,
        speed: Some(850_000),
        submitted: THEN,
        started: Some(THEN + 1),
        ran: Some(Span::from_millis(65_900)),
        time: Span::from_secs(3600),
        array: None,
        handle: None,
        priority: None,
        partition: None,
        part: None,
    }
}

fn waiting() -> JobLine {
    JobLine {
        job: 12,
        name: Some("sweep".to_owned()),
        user: 4_000_000_000,
        user_name: None,
        state: State::Waiting,
        reason: Some("for power".to_owned()),
        nodes: 4,
        on: Vec::new(),
        power: None,
        needs: None,
        speed: None,
        submitted: THEN,
        started: None,
        ran: None,
        time: Span::from_secs(90_000),
        array: None,
        handle: None,
        priority: None,
        partition: None,
        part: None,
    }
}

pub(super) fn details(state: State, end: Option<End>, why: Option<EndReason>) -> JobDetails {
    JobDetails {
        line: JobLine { state, ..running() },
        owner: Owner { user: 0, group: 0 },
        private: Some(Private {
            request: JobRequest {
                name: "solve".to_owned(),
                nodes: 2,
                moldable: Some((1, 4)),
                time: Span::from_secs(3600),
                application: Some("CoMD".to_owned()),
                slowdown: Some("10%".to_owned()),
                after: vec![After { job: 3, any: false }, After { job: 4, any: true }],
                held: false,
                account: None,
                part: Default::default(),
            },
            command: ["sh", "-c", "sleep 1; true"].map(str::to_owned).to_vec(),
            folder: "/home/ada".into(),
            output: "/home/ada/busbar-7.out".into(),
            errors: "/home/ada/busbar-7.out".into(),
        }),
        attempts: 1,
        end,
        end_reason: why,
        ended: None,
        by: (why == Some(EndReason::Cancelled)).then_some(0),
        by_name: None,
        energy: Some(Joules::from_joules(1500)),
    }
}

fn power() -> PowerState {
    PowerState {
        limit: Some(watts(1000)),
        base: watts(100),
        held: watts(290),
        free: Some(watts(610)),
        set_by_operator: true,
        to_come: vec![
            LimitFrom { at: THEN + 3600, limit: Some(watts(800)) },
            LimitFrom { at: THEN + 7200, limit: None },
        ],
        notice: None,
        emulated: true,
        measured: None,
        feeds: Vec::new(),
    }
}

pub(super) fn history() -> Vec<HistoryLine> {
    let allotment = Allotment {
        nodes: vec![(0, watts(100)), (1, watts(100))],
        cores: 4,
        cap: watts(100),
        time: Span::from_secs(60),
        power: watts(200),
        speed: 1_000_000,
        part: None,
    };
    let slower = Allotment { power: watts(150), speed: 712_000, ..allotment.clone() };
    let outcome = JobOutcome {
        start: Some(Instant::ZERO),
        end: Instant::from_secs(9),
        how: Some(End::Signalled(15)),
        reason: Some(EndReason::TimeLimit),
        energy: Joules::ZERO,
        nodes: vec![0, 1],
        by: None,
        full_speed: None,
    };
    let cancelled = JobOutcome {
        reason: Some(EndReason::Cancelled),
        how: None,
        by: Some(0),
        ..outcome.clone()
    };
    let happenings = [
        EventKind::Began { version: "0.1.0".to_owned(), policy: "easy".to_owned() },
        EventKind::Limit { power: Some(watts(1000)), base: watts(100) },
        EventKind::Submitted { job: 7, element: None },
        EventKind::Started { job: 7, attempt: 1, allotment },
        EventKind::Changed { job: 7, allotment: slower, reason: ChangeReason::Squeezed },
        EventKind::Ending { job: 7, reason: EndReason::TimeLimit, forced: false, by: None },
        EventKind::Ended { job: 7, outcome },
        EventKind::Held { job: 8, held: true, by: Some(0) },
        EventKind::Held { job: 8, held: false, by: Some(4_000_000_000) },
        EventKind::Held { job: 8, held: true, by: None },
        EventKind::Ended { job: 8, outcome: cancelled },
        EventKind::Ending { job: 9, reason: EndReason::Cancelled, forced: false, by: Some(0) },
    ];
    let line = |(line, what): (u64, EventKind)| {
        let event = Event { at: Instant::from_secs(line as u32), kind: what };
        HistoryLine { line, wall: (THEN + line as i64) * 1000, event, by_name: None }
    };
    (0..).zip(happenings).map(line).collect()
}

/// Two jobs that are over, in two parts.
fn finished(query: &FinishedQuery) -> Finished {
    let completed = FinishedJob {
        job: 7,
        array: None,
        handle: None,
        name: Some("solve\u{1b}[2J".to_owned()),
        user: 0,
        user_name: None,
        account: Some("physics".to_owned()),
        state: State::Completed,
        reason: None,
        exit_code: Some(0),
        signal: None,
        submitted: THEN,
        started: Some(THEN + 1),
        ended: THEN + 3601,
        elapsed: Span::from_secs(3600),
        nodes: 3,
        on: vec![0, 1, 5],
        energy: Joules::from_joules(1_500_000),
        measured: None,
        emulated: false,
    };
    let cancelled = FinishedJob {
        job: 8,
        name: None,
        user: 4_000_000_000,
        account: None,
        state: State::Cancelled,
        reason: Some("cancelled".to_owned()),
        exit_code: None,
        signal: Some(15),
        elapsed: Span::from_secs(61),
        energy: Joules::ZERO,
        ended: THEN + 3700,
        ..completed.clone()
    };
    match query.before {
        None => Finished { jobs: vec![cancelled], next: Some(Place { ended: 5, job: 8 }) },
        Some(_) => Finished { jobs: vec![completed], next: None },
    }
}

/// Two users, or two accounts.
fn usage(by: By) -> Usage {
    let sum = |user: u32, account: Option<&str>, jobs, joules| UsageSum {
        user: (by == By::User).then_some(user),
        account: account.filter(|_| by == By::Account).map(str::to_owned),
        jobs,
        node_time: Span::from_secs(7200),
        energy: Joules::from_joules(joules),
        ..UsageSum::default()
    };
    let (first_day, last_day) = ("2026-01-01".to_owned(), "2026-01-02".to_owned());
    let sums = vec![sum(0, Some("physics"), 3, 3000), sum(4_000_000_000, None, 1, 1000)];
    Usage { first_day, last_day, sums }
}

fn forecast() -> Forecast {
    let line = |job, name: &str, start, end| ForecastLine {
        job,
        name: Some(name.to_owned()),
        start,
        end,
        nodes: 2,
        power: Some(watts(200)),
        reason: None,
        array: None,
    };
    let never = ForecastLine {
        power: None,
        reason: Some("more power than the limit".to_owned()),
        ..line(Some(12), "sweep", None, None)
    };
    Forecast {
        jobs: vec![
            line(Some(7), "solve", Some(THEN), Some(THEN + 3600)),
            never,
            line(None, "this job", Some(THEN + 3600), Some(THEN + 5400)),
        ],
        peak: watts(400),
        power: Vec::new(),
        limits: Vec::new(),
        all_over: THEN + 5400,
        assumptions: vec!["jobs take all of the time they ask for".to_owned()],
    }
}

pub(super) fn refusal(kind: RefusalKind, message: &str) -> Refusal {
    Refusal { kind, message: message.to_owned() }
}

/// A daemon with two jobs.
pub(super) fn canned(request: &Request) -> Reply {
    match request {
        Request::Submit(_) => Reply::Submitted { job: 12, remark: None },
        Request::Queue => Reply::Queue(vec![running(), waiting()]),
        Request::Show { job: 7 } => Reply::Show(Box::new(details(State::Running, None, None))),
        Request::Show { job } => {
            Reply::Error(refusal(RefusalKind::Unknown, &format!("there is no job {job}")))
        }
        Request::Cancel { jobs } | Request::Hold { jobs } | Request::Release { jobs } => {
            let answer = |&job: &u64| Answer {
                job,
                refusal: (job != 7)
                    .then(|| refusal(RefusalKind::Forbidden, "it belongs to another user")),
                asked: false,
            };
            Reply::Done(jobs.iter().map(answer).collect())
        }
        Request::Nodes => {
            let node = |node, job: Option<u64>, cap| NodeLine {
                node,
                name: None,
                job,
                cap,
                state: NodeState::Up,
                switched: None,
                measured: None,
                part: None,
            };
            let held = |number| node(number, Some(7), Some(watts(100)));
            Reply::Nodes(vec![held(0), held(1), node(2, None, None), node(3, None, None), held(4)])
        }
        Request::Budget { .. } | Request::Limit { .. } => Reply::Budget(power()),
        Request::History { .. } => Reply::History(history()),
        Request::Finished(query) => Reply::Finished(finished(query)),
        Request::Usage(query) => Reply::Usage(usage(query.by)),
        Request::Forecast(_) => Reply::Forecast(forecast()),
        Request::Status => Reply::Status(Box::new(Status {
            version: "0.1.0".to_owned(),
            protocol: busbar::live::wire::PROTOCOL,
            process: 4711,
            host: "atlas".to_owned(),
            policy: "easy".to_owned(),
            freedoms: Vec::new(),
            engine: "local".to_owned(),
            machine: "demo".to_owned(),
            cluster: "demo".to_owned(),
            nodes: (6, 3),
            switched: 0,
            waiting: 1,
            running: 1,
            unconfirmed: 0,
            power: power(),
            since: THEN,
            now: Instant::from_secs(5),
            cycles: 1234,
            longest_cycle: 12_345,
            cycle_times: CycleTimes::default(),
            engine_pace: Some(EnginePace {
                looks: 17,
                longest_look: 234_567,
                longest_own_look: 8_900,
                longest_act: 456_700,
                longest_own_act: 1_200,
            }),
            page: Some("http://127.0.0.1:7411/".to_owned()),
            notices: vec!["the disk is nearly full".to_owned()],
            predictions: None,
            proposal: None,
        })),
        Request::Stop => Reply::Stopping,
    }
}
