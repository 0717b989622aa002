//! What a site's file says, and what becomes of it for a log.

use std::num::NonZeroU32;
use std::path::Path;

use busbar_core::calendar::{Calendar, NoCalendar, RunDates};
use busbar_core::fairshare::{FairShare, Rule, Shares};
use busbar_core::job::{Entry, GroupId, Job, UserId};
use busbar_core::priority::{
    Billing, LogNames, Members, Points, Priorities, Settings, SiteFile, Totals, Weights,
};
use busbar_core::units::{Instant, Span};

fn site(text: &str) -> Result<SiteFile, String> {
    SiteFile::from_text(Path::new("site.toml"), text.to_owned()).map_err(|why| why.to_string())
}

fn priorities(text: &str, log: LogNames<'_>) -> Priorities {
    site(text).unwrap().priorities(log, &RunDates::unknown()).unwrap()
}

fn job(group: u32, user: u32) -> Job {
    Job {
        user: NonZeroU32::new(user).map(UserId),
        group: NonZeroU32::new(group).map(GroupId),
        ..Job::new(1, Instant::ZERO, 4, Span::from_secs(60))
    }
}

const TOTALS: Totals = Totals { nodes: 16, processors: 16 };

/// The association of a job, by its index.
fn charged(priorities: &Priorities, shares: &mut FairShare, job: &Job) -> usize {
    Members::of(priorities).association(shares, job).index()
}

#[test]
fn an_empty_file_says_what_is_usual() {
    let empty = priorities("", LogNames::default());
    assert_eq!(*empty.settings(), Settings::default());
    assert_eq!(empty.names_nobody(&[job(1, 1)]), None);
    let fixed = empty.fixed(&job(0, 1), Shares::ROOT, TOTALS);
    // A quarter of the machine.
    assert_eq!(fixed.sum(), Points::whole(250));
}

#[test]
fn settings_are_those_of_the_file() {
    let text = r#"
        [priority]
        fair_share = "classic"
        dampening = 3
        calc_period = "2min"
        half_life = "none"
        max_age = "14d"
        favor_small = true
        [priority.weights]
        age = 10
        fair_share = 20
        qos = 30
        [priority.billing]
        cpu = 0.5
        node = 2.0
    "#;
    let found = priorities(text, LogNames::default());
    let settings = found.settings();
    let expected = Weights { age: 10, fair_share: 20, qos: 30, ..Weights::default() };
    assert_eq!((settings.weights, settings.rule), (expected, Rule::Classic { dampening: 3 }));
    assert_eq!((settings.decay.half_life, settings.favors_small), (None, true));
    let [period, max_age] = [120, 14 * 24 * 3600].map(Span::from_secs);
    assert_eq!((settings.decay.period, settings.max_age), (period, max_age));
    assert_eq!(settings.billing, Billing { cpu: 500, node: 2000 });
    // Two of four nodes: half of the charge of four processors, and two nodes.
    assert_eq!(settings.billing.of(&job(0, 1), 2), 2 * 500 + 2 * 2000);
}

/// Accounts in any order, users of one and of several accounts, and users that nobody knows.
#[test]
fn jobs_are_charged_to_their_associations() {
    let text = r#"
        [[account]]
        name = "10"
        parent = "20"
        [[account]]
        name = "20"
        shares = 3
        [[user]]
        name = "1"
        account = "10"
        [[user]]
        name = "1"
        account = "20"
        [[user]]
        name = "2"
    "#;
    let priorities = priorities(text, LogNames::default());
    let mut shares = priorities.fair_share();
    // The root, two accounts, then users in the order of the file.
    for ((group, user), expected) in
        [((10, 1), 3), ((20, 1), 4), ((0, 1), 3), ((30, 1), 3), ((0, 2), 5), ((10, 2), 5)]
    {
        let found = charged(&priorities, &mut shares, &job(group, user));
        assert_eq!(found, expected, "user {user} of account {group}");
    }
    assert_eq!(shares.shares().len(), 6);
    let mut members = Members::of(&priorities);
    let new = members.association(&mut shares, &job(10, 9));
    assert_eq!((new.index(), shares.shares().parent(new)), (6, Some(Shares::ROOT)));
    assert_eq!(members.association(&mut shares, &job(20, 9)), new);
    assert!(priorities.names_nobody(&[job(0, 9)]).is_some());
    assert!(priorities.names_nobody(&[job(0, 9), job(0, 2)]).is_none());
}

#[test]
fn names_are_those_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("site.toml");
    std::fs::write(folder.path().join("names.csv"), "kind,number,name\nuser,7,al\ngroup,3,x\n")
        .unwrap();
    let text = r#"
        names = "names.csv"
        [[account]]
        name = "x"
        [[user]]
        name = "al"
        account = "x"
        [priority.weights]
        qos = 1000
        partition = 100
        [[qos]]
        name = "high"
        priority = 40
        [[qos]]
        name = "low"
        priority = 10
        [[partition]]
        name = "gpu"
        priority = 5
        [[partition]]
        name = "debug"
        tier = 2
    "#;
    std::fs::write(&path, text).unwrap();
    let queues = [(1, "low".to_owned()), (2, "high".to_owned())];
    let partitions = [(1, "gpu".to_owned()), (2, "debug".to_owned())];
    let log = LogNames { queues: &queues, partitions: &partitions, ..LogNames::default() };
    let site = SiteFile::read(&path).unwrap();
    let priorities = site.priorities(log, &RunDates::unknown()).unwrap();
    let mut shares = priorities.fair_share();
    let association = Members::of(&priorities).association(&mut shares, &job(3, 7));
    assert_eq!(association.index(), 2);
    let fixed = |queue: i64, partition: i64| {
        let job = Job { entry: Entry::of(queue, partition), ..job(3, 7) };
        priorities.fixed(&job, association, TOTALS)
    };
    assert_eq!(fixed(2, 1).qos, Points::whole(1000));
    assert_eq!(fixed(1, 1).qos, Points::whole(250));
    assert_eq!(fixed(1, 1).partition, Points::whole(100));
    assert_eq!((fixed(0, 0).qos, fixed(-1, 70_000).partition), (Points(0), Points(0)));
    // A tier is more than all weights together: 1000, 10000, 1000, 100 and 1000.
    assert_eq!(fixed(0, 2).tier, Points::whole(13_101));
    // Another table of names is another site.
    std::fs::write(folder.path().join("names.csv"), "kind,number,name\nuser,8,al\n").unwrap();
    assert_ne!(SiteFile::read(&path).unwrap(), site);
}

/// What users had used before the first job counts.
#[test]
fn usage_from_before_counts() {
    let text = "[[user]]\nname = \"1\"\nusage = 3600.0\n[[user]]\nname = \"2\"\n";
    let priorities = priorities(text, LogNames::default());
    let mut shares = priorities.fair_share();
    shares.advance(Instant::from_secs(1000));
    let mut members = Members::of(&priorities);
    let users = [1, 2].map(|user| members.association(&mut shares, &job(0, user)));
    assert_eq!(users.map(|user| shares.factor(user)), [0.5, 1.0]);
    assert!((shares.used(users[0]) - 3600.0).abs() < 1e-9);
}

/// In Berlin, from a Wednesday in January on.
#[test]
fn resets_are_by_the_calendar() {
    let resets = |reset: &str| {
        let site = site(&format!("[priority]\nreset = \"{reset}\"\n")).unwrap();
        let calendar = Calendar::of_header(Some(1_768_388_400), Some("Europe/Berlin")).unwrap();
        let until = Instant::from_millis(400 * 24 * 3_600_000);
        let dates = RunDates { calendar: Ok(calendar.clone()), until };
        let found = site.priorities(LogNames::default(), &dates).unwrap();
        let resets = &found.settings().decay.resets;
        let shown = resets.iter().take(2).map(|at| calendar.shown(*at));
        (resets.len(), shown.collect::<Vec<_>>().join(", "))
    };
    let of = |count: usize, shown: &str| (count, shown.to_owned());
    assert_eq!(resets("daily"), of(400, "2026-01-15 00:00, 2026-01-16 00:00"));
    assert_eq!(resets("weekly"), of(57, "2026-01-18 00:00, 2026-01-25 00:00"));
    assert_eq!(resets("monthly"), of(13, "2026-02-01 00:00, 2026-03-01 00:00"));
    assert_eq!(resets("quarterly"), of(4, "2026-04-01 00:00, 2026-07-01 00:00"));
    assert_eq!(resets("yearly"), of(1, "2027-01-01 00:00"));
    assert_eq!(resets("none"), of(0, ""));
    let undated = site("[priority]\nreset = \"monthly\"\n").unwrap();
    let dates = RunDates { calendar: Err(NoCalendar::NotSaid), until: Instant::ZERO };
    let why = undated.priorities(LogNames::default(), &dates).unwrap_err().to_string();
    assert!(why.starts_with("site.toml: reset = \"monthly\": the start date"), "{why}");
}

#[test]
fn mistakes_say_where_and_what_to_do() {
    for (text, expected) in [
        ("[priority]\nmaxage = \"7d\"\n", "unknown field `maxage`"),
        ("[priority]\n\nmax_age = \"7\"\n", "site.toml, line 3: 'max_age': "),
        ("[priority]\nmax_age = \"500ms\"\n", "line 2: 'max_age': it is at least 1s"),
        ("[priority]\nfair_share = \"tree\"\n", "line 2: 'fair_share': write fair-tree or classic"),
        ("[priority]\ndampening = 2\n", "is for fair_share = \"classic\"; leave it out"),
        ("[priority]\nfair_share = \"classic\"\ndampening = 0\n", "line 3: 'dampening' is 0"),
        ("[priority]\nhalf_life = \"1min\"\n", "'half_life' is less than 'calc_period'"),
        ("[priority]\nreset = \"hourly\"\n", "'hourly'; write none, daily, weekly"),
        ("[priority.weights]\nage = -1\n", "site.toml: "),
        ("[priority.billing]\ncpu = -1.0\n", "line 2: 'billing.cpu' is -1"),
        ("[[account]]\nname = \"a\"\nparent = \"b\"\n", "line 1: the account 'a' is below 'b'"),
        ("[[account]]\nname = \"a\"\nparent = \"a\"\n", "the account 'a' is below itself"),
        ("[[account]]\nname = \"root\"\n", "'root' is always there"),
        (
            "[[account]]\nname = \"a\"\n\n[[account]]\nname = \"a\"\n",
            "line 4: the account 'a' is there twice",
        ),
        ("[[user]]\nname = \"u\"\naccount = \"a\"\n", "which is no [[account]]"),
        ("[[user]]\nname = \"u\"\n[[user]]\nname = \"u\"\n", "line 3: the user 'u' is twice"),
        ("[[user]]\nname = \"u\"\nusage = -1.0\n", "'usage' of the user 'u' is -1"),
        ("[[qos]]\nname = \"q\"\ntier = 1\n", "'tier' is for [[partition]]"),
        ("[[qos]]\nname = \"q\"\n[[qos]]\nname = \"q\"\n", "the qos 'q' is there twice"),
        ("names = \"nowhere.csv\"\n", "cannot read the table of names"),
        ("[priority\n", "site.toml: "),
    ] {
        let why = site(text).expect_err(text);
        assert!(why.contains(expected), "{text}: {why}");
    }
}
