//! Jobs that are held back, by others or by limits, against a plain simulator that looks at every job at every instant.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use busbar_core::calendar::RunDates;
use busbar_core::job::{Entry, GroupId, Job, UserId};
use busbar_core::limits::{Exceeded, Limits};
use busbar_core::machine::Machine;
use busbar_core::policy::{Easy, Fcfs, Policy};
use busbar_core::priority::{LogNames, SiteFile};
use busbar_core::sim::{Record, Run, Simulation, State};
use busbar_core::structure::{ArrayTask, Dependency, Needs, On, Structure, When};
use busbar_core::units::{Instant, Span};
use busbar_core::workload::Workload;
use proptest::prelude::*;

/// A job by its numbers, the first of which is its place and 1.
#[derive(Clone, Debug)]
struct Asked {
    submit: u32,
    nodes: u32,
    requested: u32,
    runs: u32,
    user: u32,
    group: u32,
    qos: u16,
    partition: u16,
    structure: Structure,
}

impl Asked {
    fn new(submit: u32, nodes: u32, runs: u32) -> Self {
        let structure = Structure::default();
        Asked {
            submit,
            nodes,
            requested: runs,
            runs,
            user: 1,
            group: 1,
            qos: 1,
            partition: 1,
            structure,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Structure)) -> Self {
        change(&mut self.structure);
        self
    }
}

fn limits(text: &str) -> Limits {
    let file = SiteFile::from_text(Path::new("site.toml"), text.to_owned()).unwrap();
    file.limits(LogNames::default(), &RunDates::unknown()).unwrap()
}

fn workload(jobs: &[Asked]) -> Workload {
    let made = jobs.iter().zip(1..).map(|(asked, number)| {
        let (submit, requested) =
            (Instant::from_secs(asked.submit), Span::from_secs(asked.requested));
        let job = Job {
            user: NonZeroU32::new(asked.user).map(UserId),
            group: NonZeroU32::new(asked.group).map(GroupId),
            entry: Entry { queue: asked.qos, partition: asked.partition },
            ..Job::new(number, submit, asked.nodes, requested)
        };
        (job, Span::from_secs(asked.runs))
    });
    let mut workload = Workload::new("tied", made);
    workload.set_structure(|job| Some(jobs[job.number as usize - 1].structure.clone()));
    workload
}

fn run(nodes: u32, jobs: &[Asked], limits: &Limits, policy: &mut dyn Policy) -> Run {
    let machine = Machine::of_processors(nodes).unwrap();
    let run = Simulation::new(&machine, &workload(jobs)).limits(Some(limits)).run(policy);
    assert_eq!(run.violations, 0, "{:?}", run.first_violations);
    run
}

/// When each job starts, in seconds.
fn starts(nodes: u32, jobs: &[Asked], site: &str) -> Vec<Option<u64>> {
    let run = run(nodes, jobs, &limits(site), &mut Easy::default());
    run.records.iter().map(start).collect()
}

fn start(record: &Record) -> Option<u64> {
    record.state.has_run().then(|| record.start.millis() / 1000)
}

fn needs(text: &str) -> Needs {
    text.parse().unwrap()
}

#[test]
fn jobs_wait_for_what_they_depend_on() {
    let failed = |structure: &mut Structure| structure.failed = true;
    let on = |text: &str| {
        let needs = needs(text);
        Asked::new(0, 1, 5).with(|structure| structure.needs = needs)
    };
    let jobs = [
        Asked::new(0, 1, 10),
        Asked::new(0, 1, 20).with(failed),
        on("after:1+1"),
        on("afterok:1"),
        on("afterany:1,afterany:2"),
        on("afternotok:2"),
        on("afterok:1?afterok:2"),
        on("afterok:2"),
        on("afternotok:1"),
        on("afterany:8"),
    ];
    let expected = [0, 0, 60, 10, 20, 20, 10].map(Some).into_iter().chain([None; 3]);
    assert_eq!(starts(9, &jobs, ""), expected.collect::<Vec<_>>());
    // Slurm cancels them where it is told to, and then whoever waits for their ends goes on.
    let killing = starts(9, &jobs, "[jobs]\nkill_invalid_depend = true\n");
    assert_eq!(killing[7..], [None, None, Some(20)]);
}

#[test]
fn begin_times_and_holds_are_kept() {
    let second = Instant::from_secs;
    let jobs = [
        Asked::new(0, 1, 10).with(|structure| structure.begin = Some(second(30u32))),
        Asked::new(0, 1, 10).with(|structure| {
            structure.holds = vec![second(5u32)..second(50u32), second(0u32)..second(7u32)];
        }),
        Asked::new(0, 1, 10).with(|structure| {
            structure.holds = vec![second(0u32)..Instant::NEVER];
        }),
    ];
    assert_eq!(starts(4, &jobs, ""), [Some(30), Some(50), None]);
    let run = run(4, &jobs, &Limits::default(), &mut Easy::default());
    assert_eq!(run.unfinished, 1);
    assert_eq!(run.eligible, [second(30u32), second(50u32)]);
}

#[test]
fn singletons_and_arrays_run_one_after_another() {
    let named = |singleton: bool| {
        Asked::new(0, 1, 10).with(|structure| {
            structure.name = Some(7);
            if singleton {
                structure.needs = needs("singleton");
            }
        })
    };
    let jobs = [named(false), named(true), named(true), Asked::new(1, 1, 10)];
    assert_eq!(starts(4, &jobs, ""), [0, 10, 20, 1].map(Some));
    let task = |task: u32| {
        Asked::new(0, 1, 10).with(|structure| {
            structure.array = Some(ArrayTask { array: 100, task, at_most: Some(2) });
        })
    };
    let after = Asked::new(0, 1, 1).with(|structure| structure.needs = needs("afterok:100"));
    let second = Asked::new(0, 1, 1).with(|structure| structure.needs = needs("afterok:100_1"));
    let jobs = [task(0), task(1), task(2), task(3), task(4), after, second];
    assert_eq!(starts(9, &jobs, ""), [0, 0, 10, 10, 20, 30, 10].map(Some));
    // Each task waits for that of its number.
    let corresponding = |number: u32| {
        Asked::new(0, 1, 1).with(|structure| {
            structure.needs = needs("aftercorr:100");
            structure.array = Some(ArrayTask { array: 200, task: number, at_most: None });
        })
    };
    let jobs = [task(0), task(1), task(2), corresponding(0), corresponding(2)];
    assert_eq!(starts(9, &jobs, ""), [0, 0, 10, 10, 20].map(Some));
}

/// A workload that begins after the jobs that others depend on says when those became eligible.
#[test]
fn what_is_not_there_does_not_count_but_its_time_does() {
    let jobs = [
        Asked::new(0, 1, 10).with(|structure| structure.needs = needs("afterok:99")),
        Asked::new(0, 1, 10).with(|structure| {
            structure.needs = needs("afterok:99");
            structure.eligible = Some(Instant::from_secs(40u32));
        }),
    ];
    assert_eq!(starts(4, &jobs, ""), [Some(0), Some(40)]);
}

const SITE: &str = r#"
    [[account]]
    name = "1"
    grp_tres = "cpu=6"
    max_jobs = 2

    [[account]]
    name = "2"
    max_submit = 2

    [[user]]
    name = "1"
    account = "1"

    [[user]]
    name = "2"
    account = "1"
    max_jobs = 1
    max_wall = "1min"

    [[qos]]
    name = "2"
    max_jobs_per_user = 3
    max_tres_per_job = "node=3"
    grp_jobs = 4
"#;

#[test]
fn limits_of_accounts_and_users() {
    // Two at a time, as the account says; six processors together.
    let jobs =
        [Asked::new(0, 1, 10), Asked::new(0, 1, 10), Asked::new(0, 1, 10), Asked::new(0, 5, 10)];
    assert_eq!(starts(9, &jobs, SITE), [0, 0, 10, 10].map(Some));
    let large =
        [Asked::new(0, 3, 10), Asked { user: 2, ..Asked::new(0, 4, 10) }, Asked::new(0, 3, 10)];
    assert_eq!(starts(9, &large, SITE), [0, 10, 0].map(Some));
    // A user's own limit counts before that of the account.
    let own = [1, 2, 3].map(|submit| Asked { user: 2, ..Asked::new(submit, 1, 10) });
    assert_eq!(starts(9, &own, SITE), [1, 11, 21].map(Some));
    // What a quality of service says counts instead.
    let better = [0; 5].map(|submit| Asked { qos: 2, ..Asked::new(submit, 1, 10) });
    assert_eq!(starts(9, &better, SITE), [0, 0, 0, 10, 10].map(Some));
}

#[test]
fn who_is_over_a_limit_for_ever_is_refused() {
    let jobs = [
        Asked { user: 2, requested: 61, ..Asked::new(0, 1, 10) },
        Asked { user: 2, requested: 60, ..Asked::new(0, 1, 10) },
        Asked::new(0, 7, 10),
        Asked { qos: 2, ..Asked::new(0, 4, 10) },
        Asked { user: 5, group: 2, ..Asked::new(0, 1, 10) },
        Asked { user: 5, group: 2, ..Asked::new(0, 1, 10) },
        Asked { user: 5, group: 2, ..Asked::new(1, 1, 10) },
        Asked { user: 5, group: 2, ..Asked::new(10, 1, 10) },
    ];
    let run = run(9, &jobs, &limits(SITE), &mut Fcfs);
    let refused = |place: usize| match run.records[place].state {
        State::Rejected(rejection) => rejection.reason(),
        State::Completed => "completed",
        _ => "something else",
    };
    let [submitted, size, wall, _] = Exceeded::ALL.map(Exceeded::reason);
    let done = "completed";
    let expected = [wall, done, size, size, done, done, submitted, done];
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(refused), expected);
}

/// Those who ask for less than a partition requires are refused, and a partition's own quality of service counts first.
#[test]
fn partitions_have_limits() {
    let site = r#"
        [[partition]]
        name = "2"
        qos = "9"
        min_nodes = 2
        max_wall = "100s"
        [[qos]]
        name = "9"
        grp_tres = "node=4"
        [[qos]]
        name = "2"
        grp_tres = "node=2"
    "#;
    let inside = |nodes| Asked { partition: 2, qos: 2, ..Asked::new(0, nodes, 10) };
    let jobs = [inside(2), inside(2), inside(2), inside(1), Asked { requested: 101, ..inside(2) }];
    assert_eq!(starts(9, &jobs, site), [Some(0), Some(0), Some(10), None, None]);
    let outside = [0; 2].map(|submit| Asked { qos: 2, ..Asked::new(submit, 2, 10) });
    assert_eq!(starts(9, &outside, site), [0, 10].map(Some));
}

#[test]
fn jobs_may_run_on_beyond_their_limits() {
    let long = |runs| Asked { requested: 10, ..Asked::new(0, 1, runs) };
    let jobs = [long(12), long(30), long(15), Asked::new(0, 3, 5)];
    let ends = |site: &str| {
        let run = run(3, &jobs, &limits(site), &mut Easy::default());
        run.records
            .iter()
            .map(|record| (record.end.millis() / 1000, record.state))
            .collect::<Vec<_>>()
    };
    use State::{Completed, Killed};
    assert_eq!(ends(""), [(10, Killed), (10, Killed), (10, Killed), (15, Completed)]);
    let over = ends("[jobs]\nover_time_limit = \"5s\"\n");
    assert_eq!(over, [(12, Completed), (15, Killed), (15, Completed), (20, Completed)]);
}

/// Six of nine nodes from 100 s to 200 s. Whoever would run into that has room on three.
#[test]
fn reservations_keep_nodes_free() {
    let named =
        |nodes| format!("[[reservation]]\nname = \"4\"\n{nodes}start = \"100\"\nend = \"200\"\n");
    let inside = |submit, nodes, runs| {
        Asked::new(submit, nodes, runs).with(|structure| structure.reservation = Some(4))
    };
    let jobs = [
        // Just ends before it.
        Asked::new(0, 9, 100),
        // Too wide beside it, and one that is not.
        Asked::new(0, 4, 101),
        Asked::new(0, 3, 101),
        // Its own jobs: six nodes, until it ends.
        inside(0, 6, 60),
        inside(0, 3, 60),
        inside(110, 3, 40),
    ];
    let expected = [Some(0), Some(200), Some(100), Some(100), None, Some(160)];
    assert_eq!(starts(9, &jobs, &named("nodes = 6\n")), expected);
    // Maintenance of all nodes: who asks for too much waits, though the nodes are free.
    let jobs = [Asked::new(50, 1, 50), Asked::new(50, 1, 51), Asked::new(60, 2, 5)];
    assert_eq!(starts(9, &jobs, &named("")), [50, 200, 60].map(Some));
    let why = |text: &str| {
        SiteFile::from_text(Path::new("site.toml"), text.to_owned()).unwrap_err().to_string()
    };
    let backwards = "[[reservation]]\nname = \"m\"\nstart = \"9\"\nend = \"9\"\n";
    assert_eq!(why(backwards), "site.toml, line 1: the reservation 'm' ends before it begins");
    let odd = "[[reservation]]\nname = \"m\"\nstart = \"tomorrow\"\nend = \"9\"\n";
    assert!(why(odd).starts_with("site.toml, line 3: 'start' is 'tomorrow'"));
}

/// What a plain simulator knows of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plain {
    Coming,
    Held,
    Eligible(u64),
    Running {
        start: u64,
        end: u64,
    },
    Over {
        start: u64,
        well: bool,
    },
    /// Refused, or cancelled.
    Gone,
    /// Refused because it could never run; in Slurm it waits for ever, and counts as submitted.
    Refused,
    Never,
}

/// First come, first served, with every job looked at again at every instant. Whoever is over a limit is passed over.
struct PlainSite {
    nodes: u32,
    kills: bool,
    user_jobs: BTreeMap<u32, u32>,
    group_nodes: BTreeMap<u32, u32>,
    qos_jobs: BTreeMap<u16, u32>,
    user_submits: BTreeMap<u32, u32>,
}

impl PlainSite {
    fn text(&self) -> String {
        let mut text = format!("[jobs]\nkill_invalid_depend = {}\n", self.kills);
        for (group, nodes) in &self.group_nodes {
            text += &format!("[[account]]\nname = \"{group}\"\ngrp_tres = \"node={nodes}\"\n");
        }
        for user in 1..=3 {
            for group in self.group_nodes.keys() {
                text += &format!("[[user]]\nname = \"{user}\"\naccount = \"{group}\"\n");
            }
        }
        // By user, in all accounts: through one quality of service for each user.
        for (qos, most) in &self.qos_jobs {
            text += &format!("[[qos]]\nname = \"{qos}\"\ngrp_jobs = {most}\n");
            if let Some(most) = self.user_jobs.get(&u32::from(*qos)) {
                text += &format!("max_jobs_per_user = {most}\n");
            }
            if let Some(most) = self.user_submits.get(&u32::from(*qos)) {
                text += &format!("max_submit_per_user = {most}\n");
            }
        }
        text
    }

    /// The account to which a job is charged: that of its user, where the site does not know its own.
    fn group(&self, job: &Asked) -> u32 {
        let first = self.group_nodes.keys().next().copied().unwrap_or(job.group);
        if self.group_nodes.contains_key(&job.group) { job.group } else { first }
    }

    /// What holds a job back, at an instant: nothing, or when it may be asked about again, or for ever.
    fn verdict(&self, jobs: &[Asked], states: &[Plain], place: usize, now: u64) -> Option<Plain> {
        let structure = &jobs[place].structure;
        let of = |on: On| -> Vec<usize> {
            let is_it = |other: &usize| match on.task {
                Some(_) => unreachable!("tasks are not drawn"),
                None => *other as u64 + 1 == on.number,
            };
            (0..jobs.len()).filter(|other| is_it(other) && *other != place).collect()
        };
        let one = |dependency: &Dependency| -> Result<bool, ()> {
            let Dependency::After { when, on, .. } = *dependency else {
                let same = |other: &usize| {
                    *other != place
                        && jobs[*other].structure.name == structure.name
                        && jobs[*other].user == jobs[place].user
                };
                let blocks = |other: usize| match states[other] {
                    Plain::Running { .. } => true,
                    Plain::Held | Plain::Eligible(_) => other < place,
                    // Waits for ever, and is still there.
                    Plain::Never => other < place,
                    _ => false,
                };
                return Ok(!(0..jobs.len()).filter(same).any(blocks));
            };
            let Some(other) = of(on).first().copied() else { return Ok(true) };
            Ok(match (&states[other], when) {
                (Plain::Never, _) => return Err(()),
                (Plain::Coming | Plain::Held | Plain::Eligible(_), _) => false,
                (Plain::Running { .. }, when) => when == When::Started,
                (
                    Plain::Over { .. } | Plain::Gone | Plain::Refused,
                    When::Started | When::Ended,
                ) => true,
                (Plain::Over { well, .. }, When::EndedWell) => {
                    if !well {
                        return Err(());
                    }
                    true
                }
                (Plain::Over { well, .. }, _) => {
                    if *well {
                        return Err(());
                    }
                    true
                }
                (Plain::Gone | Plain::Refused, When::EndedWell) => return Err(()),
                (Plain::Gone | Plain::Refused, _) => true,
            })
        };
        let all: Vec<Result<bool, ()>> = structure.needs.list().iter().map(one).collect();
        let (fulfilled, never) = match structure.needs.is_any() {
            true => (all.contains(&Ok(true)), all.iter().all(|need| need.is_err())),
            false => (all.iter().all(|need| *need == Ok(true)), all.contains(&Err(()))),
        };
        if never {
            return Some(if self.kills { Plain::Gone } else { Plain::Never });
        }
        let begun = structure.begin.is_none_or(|begin| begin.millis() / 1000 <= now);
        (fulfilled && begun).then_some(Plain::Eligible(now))
    }

    fn is_over_limit(&self, jobs: &[Asked], states: &[Plain], place: usize) -> bool {
        let running = |wanted: &dyn Fn(&Asked) -> bool| -> Vec<&Asked> {
            let all = jobs.iter().zip(states);
            let run =
                all.filter(|(job, state)| matches!(state, Plain::Running { .. }) && wanted(job));
            run.map(|(job, _)| job).collect()
        };
        let job = &jobs[place];
        let of_qos = running(&|other| other.qos == job.qos);
        let of_user = running(&|other| other.qos == job.qos && other.user == job.user);
        let group = self.group(job);
        let of_group = running(&|other| self.group(other) == group);
        let used: u32 = of_group.iter().map(|other| other.nodes).sum();
        let mut array: Vec<u32> = Vec::new();
        if let Some(ArrayTask { array: number, at_most: Some(most), .. }) = job.structure.array {
            let tasks =
                running(&|other| other.structure.array.is_some_and(|other| other.array == number));
            array.push(u32::from(tasks.len() as u32 >= most));
        }
        let is_full =
            |limit: Option<&u32>, count: usize| limit.is_some_and(|most| count as u32 >= *most);
        is_full(self.qos_jobs.get(&job.qos), of_qos.len())
            || is_full(
                self.user_jobs
                    .get(&u32::from(job.qos))
                    .filter(|_| self.qos_jobs.contains_key(&job.qos)),
                of_user.len(),
            )
            || self.group_nodes.get(&group).is_some_and(|most| used + job.nodes > *most)
            || array.contains(&1)
    }

    fn run(&self, jobs: &[Asked]) -> Vec<Plain> {
        let mut states = vec![Plain::Coming; jobs.len()];
        for now in 0..1200u64 {
            for place in 0..jobs.len() {
                if let Plain::Running { start, end } = states[place]
                    && end == now
                {
                    let well =
                        !jobs[place].structure.failed && jobs[place].runs <= jobs[place].requested;
                    states[place] = Plain::Over { start, well };
                }
            }
            for place in 0..jobs.len() {
                if u64::from(jobs[place].submit) != now {
                    continue;
                }
                let job = &jobs[place];
                let counts = |other: usize| {
                    let is_there = matches!(
                        states[other],
                        Plain::Held
                            | Plain::Eligible(_)
                            | Plain::Running { .. }
                            | Plain::Never
                            | Plain::Refused
                    );
                    is_there && jobs[other].user == job.user && jobs[other].qos == job.qos
                };
                let submitted = (0..place).filter(|other| counts(*other)).count();
                let most = self.user_submits.get(&u32::from(job.qos));
                let most = most.filter(|_| self.qos_jobs.contains_key(&job.qos));
                let is_small = job.nodes <= self.nodes
                    && self.group_nodes.get(&self.group(job)).is_none_or(|most| job.nodes <= *most);
                states[place] = match most.is_none_or(|most| (submitted as u32) < *most) {
                    false => Plain::Gone,
                    true if is_small => Plain::Held,
                    true => Plain::Refused,
                };
            }
            // Whoever starts may let others go on at once.
            loop {
                let before = states.clone();
                loop {
                    let held = (0..jobs.len()).filter(|place| states[*place] == Plain::Held);
                    let judged = held.filter_map(|place| {
                        Some((place, self.verdict(jobs, &states, place, now)?))
                    });
                    let Some((place, verdict)) = judged.collect::<Vec<_>>().into_iter().next()
                    else {
                        break;
                    };
                    states[place] = verdict;
                }
                for place in 0..jobs.len() {
                    if !matches!(states[place], Plain::Eligible(_))
                        || self.is_over_limit(jobs, &states, place)
                    {
                        continue;
                    }
                    let used: u32 = jobs
                        .iter()
                        .zip(&states)
                        .filter(|(_, state)| matches!(state, Plain::Running { .. }))
                        .map(|(job, _)| job.nodes)
                        .sum();
                    if used + jobs[place].nodes > self.nodes {
                        break;
                    }
                    let end = now + u64::from(jobs[place].runs.min(jobs[place].requested));
                    states[place] = Plain::Running { start: now, end };
                }
                if states == before {
                    break;
                }
            }
        }
        states
    }
}

fn asked(count: u32) -> impl Strategy<Value = Asked> {
    let size = (0u32..60, 1u32..5, 1u32..30, 1u32..30);
    let whose = (1u32..4, 1u32..3, 1u16..4);
    let when = prop_oneof![
        Just(When::Started),
        Just(When::EndedWell),
        Just(When::Ended),
        Just(When::Failed)
    ];
    let dependency = prop_oneof![
        3 => (when, 1..=u64::from(count)).prop_map(|(when, number)| Dependency::After {
            when,
            delay: Span::ZERO,
            on: On { number, task: None },
        }),
        1 => Just(Dependency::Singleton),
    ];
    let needs = (prop::collection::vec(dependency, 0..3), any::<bool>());
    let array = prop::option::weighted(0.3, (300u64..302, 1u32..3));
    let rest = (
        needs,
        array,
        prop::option::weighted(0.2, 0u32..80),
        1u32..3,
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.6),
    );
    (size, whose, rest).prop_map(|(size, whose, rest)| {
        let (submit, nodes, requested, runs) = size;
        let (user, group, qos) = whose;
        let ((list, any), array, begin, name, failed, is_free) = rest;
        let list = if is_free { Vec::new() } else { list };
        let any = any && list.len() > 1;
        let structure = Structure {
            needs: Needs::new(list, any),
            // The tasks of an array share its limit, and depend on nobody.
            array: array.map(|(array, most)| ArrayTask { array, task: 0, at_most: Some(most) }),
            begin: begin.map(Instant::from_secs),
            name: Some(name),
            failed,
            ..Structure::default()
        };
        Asked { submit, nodes, requested, runs, user, group, qos, partition: 0, structure }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// First come, first served, start for start.
    #[test]
    fn jobs_start_as_in_a_plain_simulator(
        mut jobs in prop::collection::vec(asked(25), 1..25),
        kills in any::<bool>(),
        (users, groups) in (prop::collection::btree_map(1u32..4, 1u32..4, 0..4), prop::collection::btree_map(1u32..3, 2u32..7, 0..3)),
        (qos, submits) in (prop::collection::btree_map(1u16..4, 1u32..5, 0..4), prop::collection::btree_map(1u32..4, 1u32..6, 0..4)),
    ) {
        jobs.sort_by_key(|job| job.submit);
        // All tasks of an array have one limit.
        let mut most = BTreeMap::new();
        for job in &mut jobs {
            if let Some(task) = &mut job.structure.array {
                task.at_most = Some(*most.entry(task.array).or_insert(task.at_most.unwrap()));
            }
        }
        let site = PlainSite { nodes: 8, kills, user_jobs: users, group_nodes: groups, qos_jobs: qos, user_submits: submits };
        let expected = site.run(&jobs);
        let run = run(site.nodes, &jobs, &limits(&site.text()), &mut Fcfs);
        for (place, (state, record)) in expected.iter().zip(&run.records).enumerate() {
            let expected = match state {
                Plain::Over { start, .. } => Some(*start),
                _ => None,
            };
            prop_assert_eq!(start(record), expected, "job {} of {:#?}\n{}\n{:#?}", place + 1, jobs, site.text(), record);
        }
    }

    /// Whatever the policy, no limit is passed, and whoever can run does.
    #[test]
    fn no_limit_is_passed(
        mut jobs in prop::collection::vec(asked(25), 1..25),
        qos in prop::collection::btree_map(1u16..4, 1u32..4, 1..4),
    ) {
        jobs.sort_by_key(|job| job.submit);
        for job in &mut jobs {
            job.structure = Structure::default();
        }
        let site = PlainSite { nodes: 8, kills: false, user_jobs: BTreeMap::new(), group_nodes: BTreeMap::new(), qos_jobs: qos, user_submits: BTreeMap::new() };
        let run = run(site.nodes, &jobs, &limits(&site.text()), &mut Easy::default());
        let instants: BTreeSet<Instant> = run.records.iter().map(|record| record.start).collect();
        for at in instants {
            for (qos, most) in &site.qos_jobs {
                let running = jobs.iter().zip(&run.records).filter(|(job, record)| {
                    job.qos == *qos && record.state.has_run() && record.start <= at && at < record.end
                });
                prop_assert!(running.count() as u32 <= *most);
            }
        }
        prop_assert!(run.records.iter().all(|record| record.state.has_run()));
    }
}
