//! A whole daemon, loop, file and all, with a clock that is moved by hand and jobs that are simulated.

use std::path::{Path, PathBuf};

use busbar::budget::Budget;
use busbar::live::control::active_budget::ActiveBudget;
use busbar::live::control::clock::{Clock, Hand};
use busbar::live::control::daemon::{Daemon, DaemonError, LoopOptions};
use busbar::live::control::decider::Site;
use busbar::live::control::schedule::{Schedule, ScheduleSpec};
use busbar::live::control::setup::Setup;
use busbar::live::engine::{AtOnce, EmulatedPower, Engine, USUAL_DEADLINE};
use busbar::live::engines::replay::{Naming, Real, Replay};
use busbar::live::job::{Owner, Program, Requester};
use busbar::live::store::{Query, Store};
use busbar::live::wire::{ClientGone, Message, Reply, Request, answers};
use busbar::machine::{Machine, check_text};
use busbar::policy::PolicySpec;
use busbar::priority::SiteFile;
use busbar::units::{Instant, JobId, Span};
use busbar::workload::Workload;
use busbar::world::Repertoire;
use jiff::tz::TimeZone;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;
use tempfile::TempDir;

use super::expected::{simulated, truth, workload};
use super::workload::{ALICE, Planned, Times, jobs};
use super::{Told, assert_same, cases, is_in_full};

/// Jobs of minutes, which come faster than the machine can take them.
const MINUTES: Times = Times { gap: 60_000, run: (10_000, 900_000), slack: (0, 900_000) };

/// The same jobs with pauses, in which nobody needs some of the nodes.
const PAUSES: Times = Times { gap: 600_000, ..MINUTES };

/// A share of what the machine draws at most: hours from the beginning, and hundredths.
type Shares<'a> = &'a [(u32, u32)];

fn schedule(folder: &TempDir, setup: &Setup, shares: Shares<'_>) -> (Schedule, Budget) {
    let path = folder.path().join("budget.csv");
    let mut text = "time,budget\n".to_owned();
    let mut steps = Vec::new();
    for &(hours, hundredths) in shares {
        let limit = setup.machine.max_power().milliwatts() * u64::from(hundredths) / 100;
        text += &format!("1970-01-{:02}T{:02}:00:00Z,{limit}mW\n", 1 + hours / 24, hours % 24);
        let limit = format!("{limit}mW").parse().unwrap();
        steps.push((Instant::from_secs(hours * 3600), limit));
    }
    std::fs::write(&path, text).unwrap();
    let spec = ScheduleSpec::File(path);
    (spec.resolve(&setup.machine, &TimeZone::UTC).unwrap(), Budget::from_steps(steps).unwrap())
}

/// When daemons die.
#[derive(Clone, Copy, Debug)]
enum Deaths {
    Never,
    /// Before a cycle in which something happens.
    AtEvents,
    /// At any time.
    Anytime,
}

/// A machine on which one daemon after another works.
struct Served<'a> {
    setup: &'a Setup,
    schedule: Schedule,
    folder: &'a TempDir,
    engine: Replay,
    hand: Hand,
    now: Instant,
}

impl Served<'_> {
    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn daemon(&self) -> Daemon {
        let by_hand = self.hand.clock(None);
        let engine = AtOnce::boxed(self.engine.clone());
        let engine = EmulatedPower::by_clock(engine, move || by_hand.now());
        self.begin(Box::new(engine)).unwrap()
    }

    fn begin(&self, engine: Box<dyn Engine>) -> Result<Daemon, DaemonError> {
        let store = Store::open(&self.state()).unwrap();
        let clock: Clock = self.hand.clock(store.load().unwrap().last.as_ref());
        let rules = LoopOptions {
            period: Span::from_secs(1),
            deadline: USUAL_DEADLINE,
            retention: Span::FOREVER,
            cluster: None,
            runs: None,
            reload: Box::new(|_| Err("there is no configuration".to_owned())),
        };
        let feed = ActiveBudget::new(self.schedule.clone(), &self.setup.machine);
        Daemon::begin(self.setup.clone(), feed, store, engine, rules, clock)
    }

    fn go_to(&mut self, at: Instant) {
        self.hand.advance(at.since(self.now));
        self.engine.advance(at);
        self.now = at;
    }

    /// Sends jobs through daemons; how many there were.
    fn run(&mut self, jobs: &[Planned], deaths: Deaths, numbers: &mut Pcg64Dxsm) -> usize {
        let mut daemon = self.daemon();
        let mut daemons = 1;
        let mut coming = jobs.iter().peekable();
        let mut cycles = 0;
        loop {
            let submit = coming.peek().map(|job| job.submit);
            let times = [submit, self.engine.next_end(), daemon.next_deadline()];
            let Some(next) = times.into_iter().flatten().min() else {
                break;
            };
            cycles += 1;
            assert!(
                cycles < 100_000,
                "{}: it goes on and on at {next:?}",
                self.setup.decider.spec()
            );
            let dies = !matches!(deaths, Deaths::Never) && numbers.random_range(0..10) == 0;
            let wait = next.since(self.now).millis();
            if dies && matches!(deaths, Deaths::Anytime) && wait > 1 {
                let at = self.now + Span::from_millis(numbers.random_range(1..wait));
                self.go_to(at);
                drop(daemon);
                daemon = self.daemon();
                daemons += 1;
                daemon.cycle(Vec::new()).unwrap();
                continue;
            }
            self.go_to(next);
            if dies {
                drop(daemon);
                daemon = self.daemon();
                daemons += 1;
            }
            let mut requests = Vec::new();
            while let Some(job) = coming.next_if(|job| job.submit <= next) {
                let (reply, _) = answers();
                let request = Request::Submit(Box::new(job.submission(program())));
                requests.push(Message {
                    request,
                    peer: Requester::Full(job.by.unwrap_or(ALICE)),
                    reply,
                    gone: ClientGone::default(),
                });
            }
            daemon.cycle(requests).unwrap();
        }
        daemon.close().unwrap();
        daemons
    }
}

/// The workloads that are tried.
fn seeds() -> std::ops::RangeInclusive<u64> {
    if is_in_full() { 1..=5 } else { 1..=1 }
}

/// Whether jobs change in these workloads. Those of `uniform` could, if a limit changed.
fn adjusts(setup: &Setup) -> bool {
    let spec = setup.decider.spec();
    ["parm", "ppartition"].contains(&spec.name()) || spec.name() == "share" && !is_static(spec)
}

/// Whether `share` leaves running jobs alone.
fn is_static(share: &PolicySpec) -> bool {
    ["use=caps", "use=sizes"].iter().any(|limit| share.to_string().contains(limit))
}

fn program() -> Program {
    Program {
        command: vec!["true".to_owned()],
        folder: "/".into(),
        environment: Vec::new(),
        output: "out".into(),
        errors: None,
    }
}

/// Each job by one of four users, one of whom is in two accounts, and one of whom the site does not know.
fn spread_over_users(planned: Vec<Planned>) -> Vec<Planned> {
    let by = |(place, mut job): (usize, Planned)| {
        let user = 1000 + [0, 1, 0, 2, 1, 3, 0][place % 7];
        job.by = Some(Owner { user, group: user });
        job.request.account = (place % 3 > 0).then(|| ["physics", "biology"][place % 2].to_owned());
        job
    };
    planned.into_iter().enumerate().map(by).collect()
}

/// A site with shares, where what was used soon counts less.
fn site() -> Site {
    let text = "priority = { calc_period = '10min', half_life = '2h', max_age = '1d', weights = { age = 4000 } }\n\
                account = [{ name = 'physics', shares = 3 }, { name = 'biology' }]\n\
                user = [{ name = '1000', account = 'physics', usage = 3600 }, { name = '1000', account = 'biology' },\n\
                        { name = '1001', account = 'biology', shares = 2 }, { name = '1002', account = 'physics' }]\n";
    let file = SiteFile::from_text(Path::new("site.toml"), text.to_owned()).unwrap();
    Site::of(file, |name| name.parse().ok()).unwrap()
}

/// Users with shares: who has used less comes first, as in the simulation, also if the daemon dies now and then.
#[test]
fn shares_order_jobs_as_in_the_simulation() {
    let plain = Machine::of_processors(16).unwrap();
    let mut orders = Vec::new();
    for policy in ["easy(order=fcfs)", "easy(order=multifactor)", "pb-guided(order=multifactor)"] {
        let policy: PolicySpec = policy.parse().unwrap();
        let setup = Setup::new(&plain, Repertoire::of(&[]), policy.clone()).unwrap();
        let setup = Setup { decider: setup.decider.at_site(site()), ..setup };
        for seed in seeds() {
            let (told, daemons) = assert_replays(&setup, &[(0, 70)], Deaths::AtEvents, seed);
            assert!(daemons > 5, "{daemons} daemons");
            orders.push(told.order());
        }
    }
    assert!(orders[0] != orders[orders.len() / 3], "shares make a difference");
}

/// Asserts that daemons decide as the simulator does.
fn assert_replays(setup: &Setup, shares: Shares<'_>, deaths: Deaths, seed: u64) -> (Told, usize) {
    assert_replays_in(MINUTES, setup, shares, deaths, seed)
}

fn assert_replays_in(
    times: Times,
    setup: &Setup,
    shares: Shares<'_>,
    deaths: Deaths,
    seed: u64,
) -> (Told, usize) {
    // What is written need not outlive the machine; in memory it is written faster.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (schedule, budget) = schedule(&folder, setup, shares);
    let planned = spread_over_users(jobs(setup, 200, times, seed));
    let known = workload(&planned, ALICE, setup);
    let truth = truth(setup, &known);
    let expected = simulated(setup, &budget, &known, truth.as_ref());

    let real = |(id, job): (u32, &busbar::job::Job)| {
        let run_time = known.run_time(JobId(id));
        (job.number, Real { id: JobId(id), job: *job, run_time })
    };
    let names_nodes = setup.decider.policy().names_nodes();
    let naming = if names_nodes { Naming::Named } else { Naming::Counted };
    let engine = Replay::new(truth, naming, (0..).zip(known.jobs()).map(real));
    let (_, hand) = Clock::by_hand();
    let mut machine = Served { setup, schedule, folder: &folder, engine, hand, now: Instant::ZERO };
    let daemons = machine.run(&planned, deaths, &mut Pcg64Dxsm::seed_from_u64(seed));
    let store = Store::open(&machine.state()).unwrap();
    let all = Query { limit: u32::MAX, ..Query::default() };
    let told = Told::of(&store.history(all).unwrap(), names_nodes);
    let what = format!("{} with {shares:?}, {deaths:?}, seed {seed}", setup.decider.spec());
    assert_same(&told, &expected, &what);
    assert_eq!(told.order().len(), 200, "{what}: how many start");
    (told, daemons)
}

/// Every policy: the same decisions in the same order at the same instants, and so the same ends.
#[test]
fn every_policy_decides_as_in_the_simulation() {
    for setup in cases() {
        for seed in seeds() {
            let (told, _) = assert_replays(&setup, &[(0, 70)], Deaths::Never, seed);
            let is_in_turn = told.order().is_sorted();
            assert_eq!(
                is_in_turn,
                setup.decider.spec().name() == "fcfs",
                "{}: in turn",
                setup.decider.spec()
            );
            assert_eq!(told.changes() > 0, adjusts(&setup), "{}: changes", setup.decider.spec());
            println!(
                "{}: {} starts, {} changes",
                setup.decider.spec(),
                told.order().len(),
                told.changes()
            );
        }
    }
}

/// Nodes of two kinds, some of which jobs share: as on nodes that are alike.
const SITE: &str = "processors_per_node = 8\n[power]\nnode = '400W'\nidle = '80W'\n\
    [[partition]]\nname = 'own'\nnodes = 3\n\
    [[partition]]\nname = 'cpu'\nnodes = 4\nshared = true\nmemory = '16GiB'\n\
    [[partition]]\nname = 'gpu'\nnodes = 3\nprocessors_per_node = 4\nshared = true\npower.node = '900W'\n\
    power.gpus = 2\npower.gpu = '300W'\n\
    [[partition]]\nname = 'any'\nof = ['gpu', 'cpu']\nshared = true\n";

#[test]
fn jobs_on_parts_of_nodes_start_as_in_the_simulation() {
    let machine = check_text(SITE, "site", Path::new("")).unwrap().choose(&[]).unwrap();
    for policy in [
        "fcfs",
        "easy",
        "conservative",
        "slurm",
        "easy-power",
        "pb-guided(bsld_lower=5)",
        "parm(flex=none)",
        "utility",
        "share",
        "share(use=caps)",
        "share(use=recaps)",
        "ppartition",
        "uniform",
        "rmap-adaptive",
    ] {
        let setup = Setup::new(&machine, Repertoire::of(&[]), policy.parse().unwrap()).unwrap();
        let changing = [(0, 60), (1, 90), (2, 50), (4, 100), (7, 55), (9, 80), (30, 60)];
        for seed in seeds() {
            assert_replays(&setup, &[(0, 70)], Deaths::Never, seed);
            assert_replays(&setup, &changing, Deaths::Never, seed);
            if ["fcfs", "easy", "easy-power"].contains(&policy) {
                assert_replays(&setup, &[(0, 70)], Deaths::Anytime, seed);
            }
        }
    }
}

/// Limits that are known beforehand: higher and lower, every few hours.
#[test]
fn budgets_that_change_change_nothing_of_that() {
    let shares = [(0, 60), (1, 90), (2, 50), (4, 100), (7, 55), (9, 80), (30, 60)];
    for setup in cases() {
        for seed in seeds() {
            assert_replays(&setup, &shares, Deaths::Never, seed);
        }
    }
}

/// Nodes are switched off and on at the same instants, or jobs would start at others. Where nodes have names, the simulator
/// does not say which of those that are stopping is off first.
#[test]
fn nodes_are_switched_as_in_the_simulation() {
    let names_nodes = |setup: &Setup| setup.decider.policy().names_nodes();
    for setup in cases().into_iter().filter(|setup| !names_nodes(setup)) {
        let switch_off = Some("idle for 2min, keep 1 spare".parse().unwrap());
        let setup = Setup { switch_off, ..setup };
        for seed in seeds() {
            let replayed =
                |setup: &Setup| assert_replays_in(PAUSES, setup, &[(0, 70)], Deaths::Never, seed).0;
            let plain = Setup { switch_off: None, ..setup.clone() };
            let makes_a_difference = replayed(&setup) != replayed(&plain);
            assert!(makes_a_difference, "{}: no node was switched", setup.decider.spec());
        }
    }
}

#[test]
fn an_engine_that_cannot_switch_nodes_is_not_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let switch_off = Some("idle for 2min".parse().unwrap());
    let setup = Setup { switch_off, ..cases().remove(0) };
    let (schedule, _) = schedule(&folder, &setup, &[(0, 100)]);
    let engine = Replay::new(truth(&setup, &Workload::new("nobody", [])), Naming::Counted, []);
    let (_, hand) = Clock::by_hand();
    let machine =
        Served { setup: &setup, schedule, folder: &folder, engine, hand, now: Instant::ZERO };
    let refused = machine.begin(AtOnce::boxed(machine.engine.clone())).err().unwrap();
    assert!(refused.to_string().contains("switch_off: this engine cannot switch"), "{refused}");
}

/// Policies that keep nothing in mind but what they see do not notice when the daemon dies.
#[test]
fn daemons_that_die_change_nothing_of_that() {
    for setup in cases() {
        let spec = setup.decider.spec();
        let deaths = match spec.name() {
            "fcfs" | "easy" | "easy-power" => Deaths::Anytime,
            "pb-guided" | "rmap-traditional" | "rmap-naive" | "rmap-adaptive" => Deaths::AtEvents,
            // History remembers what the store does, but not how jobs were slowed.
            "share" if is_static(spec) && !spec.to_string().contains("history") => Deaths::AtEvents,
            // Plans and measures of progress are made anew.
            _ => continue,
        };
        for seed in seeds() {
            let (_, daemons) = assert_replays(&setup, &[(0, 70)], deaths, seed);
            assert!(daemons > 10, "{}: {daemons} daemons", setup.decider.spec());
        }
    }
}

/// A limit falls to less than a job needs, and in the same instant the job is submitted: in the simulator it
/// is turned away, and here it is told so.
#[test]
fn who_comes_with_a_lower_limit_meets_it() {
    let folder = tempfile::tempdir().unwrap();
    let setup = cases().remove(0);
    let (schedule, _) = schedule(&folder, &setup, &[(0, 100), (1, 30)]);
    let mut job = jobs(&setup, 1, MINUTES, 1).remove(0);
    job.request.nodes = setup.machine.nodes;
    job.request.moldable = None;
    let engine = Replay::new(truth(&setup, &Workload::new("nobody", [])), Naming::Counted, []);
    let (_, hand) = Clock::by_hand();
    let mut machine =
        Served { setup: &setup, schedule, folder: &folder, engine, hand, now: Instant::ZERO };
    let mut daemon = machine.daemon();
    daemon.cycle(Vec::new()).unwrap();
    machine.go_to(Instant::from_secs(3600));
    let (reply, mut answers) = answers();
    let request = Request::Submit(Box::new(job.submission(program())));
    daemon
        .cycle(vec![Message {
            request,
            peer: Requester::Full(ALICE),
            reply,
            gone: ClientGone::default(),
        }])
        .unwrap();
    let answer = answers.blocking_recv().unwrap();
    assert!(matches!(&answer, Reply::Submitted { remark: Some(_), .. }), "{answer:?}");
}
