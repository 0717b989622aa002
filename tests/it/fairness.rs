//! Users beside each other: what they may see of each other's jobs, and that none keeps others waiting. A whole
//! daemon with its file, which is asked by several users; nothing is run.

use std::path::Path;

use busbar::live::control::active_budget::ActiveBudget;
use busbar::live::control::clock::Hand;
use busbar::live::control::daemon::{Daemon, LoopOptions};
use busbar::live::control::schedule::{Allowance, ScheduleSpec};
use busbar::live::control::setup::Setup;
use busbar::live::engine::{AtOnce, Recording, USUAL_DEADLINE};
use busbar::live::job::{Attempt, End, EventKind, JobRequest, Owner, Program, Requester};
use busbar::live::store::Store;
use busbar::live::wire::finished::{By, Finished, FinishedQuery, UsageQuery};
use busbar::live::wire::{
    Answers, ClientGone, ForecastRequest, JobDetails, Message, RefusalKind, Reply, Request, State,
    Submission, answers,
};
use busbar::machine::{Details, Machine};
use busbar::units::Span;
use busbar::world::Repertoire;
use jiff::tz::TimeZone;

const ROOT: Owner = Owner { user: 0, group: 0 };
const ANN: Owner = Owner { user: 1001, group: 1001 };
const BOB: Owner = Owner { user: 1002, group: 1002 };

/// What of Ann's job nobody else is told.
const SECRETS: [&str; 4] = ["ann's name", "/home/ann", "--token=hush", "out-of-ann"];

/// The account of Ann's jobs, which nobody else is told either.
const ACCOUNT: &str = "ann's account";

struct Site {
    daemon: Daemon,
    engine: Recording,
}

impl Site {
    /// A daemon with its state in this folder.
    fn new(folder: &Path, setup: Setup) -> Self {
        let (store, engine) = (Store::open(folder).unwrap(), Recording::new());
        let clock = Hand::default().clock(None);
        let rules = LoopOptions {
            period: Span::from_secs(1),
            deadline: USUAL_DEADLINE,
            retention: Span::from_secs(3600),
            cluster: None,
            runs: None,
            reload: Box::new(|_| Err("there is no configuration".to_owned())),
        };
        let schedule = ScheduleSpec::Always(Allowance::Unlimited);
        let feed = ActiveBudget::new(
            schedule.resolve(&setup.machine, &TimeZone::UTC).unwrap(),
            &setup.machine,
        );
        let runs_on = AtOnce::boxed(engine.clone());
        let daemon = Daemon::begin(setup, feed, store, runs_on, rules, clock).unwrap();
        Site { daemon, engine }
    }

    /// A cycle in which these are asked; where their answers will be.
    fn cycle(&mut self, asked: Vec<(Requester, Request)>) -> Vec<Answers> {
        let (messages, answers) = asked
            .into_iter()
            .map(|(peer, request)| {
                let (reply, answer) = answers();
                (Message { request, peer, reply, gone: ClientGone::default() }, answer)
            })
            .unzip();
        self.daemon.cycle(messages).unwrap();
        answers
    }

    fn ask(&mut self, peer: Owner, request: Request) -> Reply {
        self.ask_as(Requester::Full(peer), request)
    }

    fn ask_as(&mut self, peer: Requester, request: Request) -> Reply {
        self.cycle(vec![(peer, request)]).remove(0).blocking_recv().unwrap()
    }
}

fn setup(policy: &str) -> Setup {
    let machine = Machine { details: Details::ideal(), ..Machine::of_processors(4).unwrap() };
    Setup::new(&machine, Repertoire::BuiltIn, policy.parse().unwrap()).unwrap()
}

fn submission(nodes: u32) -> Submission {
    Submission {
        array: None,
        request: JobRequest {
            name: SECRETS[0].to_owned(),
            nodes,
            moldable: None,
            time: Span::from_secs(60),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: Some(ACCOUNT.to_owned()),
            part: Default::default(),
        },
        program: Program {
            command: vec!["/home/ann/solve".to_owned(), SECRETS[2].to_owned()],
            folder: SECRETS[1].into(),
            environment: Vec::new(),
            output: SECRETS[3].into(),
            errors: None,
        },
    }
}

fn submit(nodes: u32) -> Request {
    Request::Submit(Box::new(submission(nodes)))
}

/// Everything that can be asked about jobs, as one text.
fn all_that_is_told(site: &mut Site, peer: Requester) -> String {
    let asked = [
        Request::Queue,
        Request::Show { job: 1 },
        Request::Show { job: 2 },
        Request::Show { job: 3 },
        Request::History { job: None, after: None, limit: None },
        Request::Finished(Box::new(FinishedQuery { all: true, ..FinishedQuery::default() })),
        Request::Usage(UsageQuery { since: Some(0), until: Some(0), ..UsageQuery::default() }),
        Request::Forecast(Box::default()),
        Request::Nodes,
        Request::Budget { set: None },
        Request::Status,
    ];
    let told = asked.map(|request| match site.ask_as(peer, request) {
        Reply::Error(refusal) => panic!("{refusal}"),
        reply => serde_json::to_string(&reply).unwrap(),
    });
    told.concat()
}

/// A job that is over, as it could not be run, one that runs, and one that waits.
fn three_jobs(folder: &Path, setup: Setup) -> Site {
    let mut site = Site::new(folder, setup);
    site.ask(ANN, submit(4));
    let attempt = Attempt { job: 1, number: 1 };
    assert!(site.engine.end(attempt, End::Failed("cannot run /home/ann/solve".to_owned())));
    site.ask(ANN, submit(4));
    site.ask(ANN, submit(4));
    site
}

#[test]
fn only_owners_and_operators_see_names_commands_and_paths() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = three_jobs(folder.path(), setup("easy"));
    for peer in [Requester::Full(ANN), Requester::Ordinary(ANN), Requester::Full(ROOT)] {
        let told = all_that_is_told(&mut site, peer);
        for secret in SECRETS.into_iter().chain(["cannot run /home/ann/solve"]) {
            assert!(told.contains(secret), "{peer:?} sees no {secret}: {told}");
        }
    }
    for peer in [Requester::Full(BOB), Requester::Ordinary(ROOT), Requester::Anybody] {
        let told = all_that_is_told(&mut site, peer);
        for secret in SECRETS.into_iter().chain(["ann", "solve"]) {
            assert!(!told.contains(secret), "{peer:?} sees {secret}: {told}");
        }
    }
    // What others need to know.
    let Reply::Queue(lines) = site.ask(BOB, Request::Queue) else { panic!() };
    let seen: Vec<_> = lines.iter().map(|line| (line.job, line.user, line.nodes)).collect();
    assert_eq!(seen, [(2, ANN.user, 4), (3, ANN.user, 4)]);
    assert!(lines[0].power.is_some() && lines[0].started.is_some() && lines[1].reason.is_some());
    let Reply::Show(details) = site.ask(BOB, Request::Show { job: 1 }) else { panic!() };
    let JobDetails { private, end, ended, owner, .. } = *details;
    assert_eq!((private, owner), (None, ANN));
    assert!(matches!(end, Some(End::Failed(_))) && ended.is_some());
    let asked = Request::History { job: Some(1), after: None, limit: None };
    let Reply::History(lines) = site.ask(BOB, asked) else { panic!() };
    let last = &lines.last().unwrap().event.kind;
    assert!(matches!(last, EventKind::Ended { job: 1, .. }), "{last:?}");
    // The name of the job in question is whose it is who asks.
    let question =
        ForecastRequest { job: Some(submission(1).request), ..ForecastRequest::default() };
    let Reply::Forecast(forecast) = site.ask(BOB, Request::Forecast(Box::new(question))) else {
        panic!()
    };
    let names: Vec<_> = forecast.jobs.iter().map(|line| line.name.as_deref()).collect();
    assert_eq!(names, [None, None, Some(SECRETS[0])]);
}

/// Finished jobs are those of whoever asks, or all for operators; accounts are their users' own.
#[test]
fn finished_jobs_and_accounts_are_told_to_those_who_may_know() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = three_jobs(folder.path(), setup("easy"));
    let [ann, bob, root] = [ANN, BOB, ROOT].map(Requester::Full);
    let list = |site: &mut Site, peer, query: FinishedQuery| match site
        .ask_as(peer, Request::Finished(Box::new(query)))
    {
        Reply::Finished(Finished { jobs, next: None }) => jobs,
        other => panic!("{other:?}"),
    };
    let usual = FinishedQuery::default;
    let count = |site: &mut Site, peer, query| list(site, peer, query).len();
    for (peer, jobs) in [(ann, 1), (bob, 0), (root, 1), (Requester::Anybody, 1)] {
        assert_eq!(count(&mut site, peer, usual()), jobs, "{peer:?}");
        let all = FinishedQuery { all: true, ..usual() };
        assert_eq!(count(&mut site, peer, all), 1, "{peer:?}");
        // Who guesses an account does not learn that they are right.
        let account = Some(ACCOUNT.to_owned());
        let guessed = FinishedQuery { all: true, account, ..usual() };
        let may_know = usize::from(peer == ann || peer == root);
        assert_eq!(count(&mut site, peer, guessed), may_know, "{peer:?}");
    }
    let seen = list(&mut site, root, usual()).remove(0);
    assert_eq!((seen.job, seen.state, seen.exit_code), (1, State::Failed, None));
    assert_eq!(seen.account.as_deref(), Some(ACCOUNT));
    let job = FinishedQuery { all: true, job: Some(1), states: vec![State::Completed], ..usual() };
    assert_eq!(count(&mut site, root, job), 0);

    // The wall of this test begins with 1970, or near it.
    let by = |by| UsageQuery { by, since: Some(0), until: Some(0) };
    let sums = |site: &mut Site, peer, query| match site.ask_as(peer, Request::Usage(query)) {
        Reply::Usage(usage) => Ok(usage.sums),
        Reply::Error(refusal) => Err(refusal.kind),
        other => panic!("{other:?}"),
    };
    for peer in [ann, bob, root, Requester::Anybody] {
        let users = sums(&mut site, peer, by(By::User)).unwrap();
        let users: Vec<_> = users.iter().map(|sum| (sum.user, sum.jobs)).collect();
        assert_eq!(users, [(Some(ANN.user), 1)], "{peer:?}");
    }
    for peer in [ann, root] {
        let accounts = sums(&mut site, peer, by(By::Account)).unwrap();
        assert_eq!(accounts[0].account.as_deref(), Some(ACCOUNT), "{peer:?}");
    }
    assert_eq!(sums(&mut site, bob, by(By::Account)), Ok(Vec::new()));
    let nobody = sums(&mut site, Requester::Anybody, by(By::Account));
    assert_eq!(nobody, Err(RefusalKind::Forbidden));
    // A request reads a bounded period.
    let long = UsageQuery { since: Some(0), until: Some(400 * 86_400), by: By::User };
    assert_eq!(sums(&mut site, root, long), Err(RefusalKind::Malformed));
}

#[test]
fn a_key_of_the_configuration_lets_everybody_see() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = three_jobs(folder.path(), Setup { see_all: true, ..setup("easy") });
    let told = all_that_is_told(&mut site, Requester::Full(BOB));
    assert!(SECRETS.into_iter().all(|secret| told.contains(secret)), "{told}");
}

/// A forecast that takes long: so many jobs wait that it would take minutes.
fn long_forecast(folder: &Path) -> (Site, Answers) {
    // It is not given up for being long.
    let setup = Setup { forecast_time: Span::from_secs(36_000), ..setup("conservative") };
    let mut site = Site::new(folder, setup);
    let many = (0..10_000).map(|place| (Requester::Full(ANN), submit(1 + place % 3))).collect();
    site.cycle(many);
    let forecast =
        site.cycle(vec![(Requester::Full(ANN), Request::Forecast(Box::default()))]).remove(0);
    (site, forecast)
}

#[test]
fn nobody_waits_behind_somebodys_forecast() {
    let folder = tempfile::tempdir().unwrap();
    let (mut site, mut forecast) = long_forecast(folder.path());
    // One of a user at a time.
    let Reply::Error(refusal) = site.ask(ANN, Request::Forecast(Box::default())) else { panic!() };
    assert_eq!(refusal.kind, RefusalKind::TooMuch);
    let asked = Request::History { job: Some(1), after: None, limit: None };
    assert!(matches!(site.ask(BOB, asked), Reply::History(_)));
    assert!(matches!(site.ask(ROOT, Request::Stop), Reply::Stopping));
    assert!(forecast.is_empty(), "the forecast is not done yet");
    site.daemon.close().unwrap();
    match forecast.blocking_recv().unwrap() {
        Reply::Error(refusal) => assert_eq!(refusal.kind, RefusalKind::Stopping),
        other => panic!("{other:?}"),
    }
}

/// Also a daemon that begins again knows how much is kept of whose jobs, to the byte.
#[test]
fn bytes_are_counted_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let most_bytes_per_user = 2 * submission(4).bytes();
    let setup = || Setup { most_bytes_per_user, ..setup("easy") };
    let mut site = Site::new(folder.path(), setup());
    assert!(matches!(site.ask(ANN, submit(4)), Reply::Submitted { job: 1, .. }));
    site.daemon.close().unwrap();
    let mut site = Site::new(folder.path(), setup());
    assert!(matches!(site.ask(ANN, submit(4)), Reply::Submitted { job: 2, .. }));
    match site.ask(ANN, submit(4)) {
        Reply::Error(refusal) => assert_eq!(refusal.kind, RefusalKind::Full),
        other => panic!("{other:?}"),
    }
    assert!(matches!(site.ask(BOB, submit(4)), Reply::Submitted { job: 3, .. }));
}
