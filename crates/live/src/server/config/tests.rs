use std::error::Error as _;

use jiff::civil::Time;
use proptest::prelude::*;

use super::*;
use busbar_core::budget::Limit;
use busbar_core::units::{Share, Watts};

fn around() -> Environment {
    Environment {
        user: 1000,
        processors: 6,
        home: Some("/home/u".into()),
        ..Environment::default()
    }
}

fn read(text: &str) -> Result<Config, String> {
    let chain = |error: ConfigError| match error.source() {
        Some(why) => format!("{error}: {why}"),
        None => error.to_string(),
    };
    file::parse(text, Path::new("busbar.toml"), &around()).map_err(chain)
}

/// A configuration as if it had been read from nowhere.
fn unsaid(config: Config) -> Config {
    Config { source: Source::default(), ..config }
}

/// The keys of a table, as the complaint about an unknown one lists them.
fn valid_keys(text: &str) -> Vec<String> {
    let error = read(text).unwrap_err();
    let list = error.split_once("expected one of ").or(error.split_once("expected "));
    list.unwrap_or_else(|| panic!("{error}"))
        .1
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// All keys there are, with the words that must stand on a page about them.
fn all_keys() -> Vec<(Option<&'static str>, String)> {
    let mut keys = Vec::new();
    for (table, wrong) in [
        (None, "no_such_key = 1"),
        (Some("limits"), "[limits]\nno_such_key = 1"),
        (Some("jobs"), "[jobs]\nno_such_key = 1"),
        (Some("log"), "[log]\nno_such_key = 1"),
        (Some("engine"), "[engine]\nno_such_key = 1"),
        (Some("agents"), "[agents]\nno_such_key = 1"),
        (Some("slurm"), "[slurm]\nno_such_key = 1"),
        (Some("local"), "[local]\nno_such_key = 1"),
        (Some("tune"), "[tune]\nno_such_key = 1"),
        (Some("daily"), "[[daily]]\nno_such_key = 1"),
    ] {
        keys.extend(valid_keys(wrong).into_iter().map(|key| (table, key)));
    }
    assert!(keys.len() > 20, "{keys:?}");
    keys
}

#[test]
fn the_template_says_what_holds_anyway() {
    assert_eq!(unsaid(read(Config::template()).unwrap()), Config::default_in(&around()));
    assert_eq!(unsaid(read("").unwrap()), Config::default_in(&around()));
}

#[test]
fn the_template_has_every_key_and_what_is_behind_a_hash_can_be_read_too() {
    for (table, key) in all_keys() {
        let says = |line: &str| {
            let line = line.trim_start_matches('#');
            line.starts_with(&format!("{key} = "))
                || ["[KEY]", "[[KEY]]"]
                    .map(|form| form.replace("KEY", &key))
                    .contains(&line.to_owned())
        };
        assert!(Config::template().lines().any(says), "{table:?} {key}");
    }
    let is_key = |line: &str| line.starts_with('#') && !line.starts_with("# ");
    let uncover = |line: &str| if is_key(line) { line[1..].to_owned() } else { line.to_owned() };
    // There is either a budget or a profile of the day.
    let lines = Config::template().lines().filter(|line| !line.starts_with("budget = "));
    let text = lines.map(uncover).collect::<Vec<_>>().join("\n");
    let config = read(&text).unwrap();
    assert_eq!(config.state, Path::new("/var/lib/busbar"));
    assert_eq!(config.machine, "8");
    assert_eq!(config.local.cpus, [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
    let ScheduleSpec::Daily(steps) = &config.budget else { panic!("{:?}", config.budget) };
    let limit = |percent| Allowance::Limited(Limit::Share(Share::percent(percent)));
    let at = |hour| Time::constant(hour, 0, 0, 0);
    assert_eq!(steps[..], [(at(6), limit(100)), (at(22), limit(60))]);
}

#[test]
fn the_page_has_every_key() {
    let page = include_str!("../../../../../docs/reference/configuration.md");
    for (table, key) in all_keys() {
        let whole = table.map_or(key.clone(), |table| format!("{table}.{key}"));
        assert!(
            page.contains(&format!("| `{whole}` |")),
            "docs/reference/configuration.md lacks `{whole}`"
        );
    }
    // The template is there as it is.
    assert!(
        page.contains(Config::template()),
        "docs/reference/configuration.md has another template"
    );
}

#[test]
fn every_key_is_read_and_what_is_shown_is_read_again() {
    let text = "\
state = 'here'
socket = '/tmp/b.sock'
machine = 'cab'
policy = 'pb-guided(bsld_lower=4)'
budget = '6500W'
profiles = 'cab'
period = '500ms'
takeover = '10s'
last_resort = 'suspend'
switch_off = 'idle for 10min, keep 1 spare'
kill_after = '1s'
retention = '2h'
operators = ['root', 1234]
see_all = true
[limits]
jobs = 5
jobs_per_user = 4
array = 6
bytes_per_user = 2000000
request_bytes = 5000
connections = 3
forecast_time = '5s'
[jobs]
umask = '027'
ulimits = { nofile = 2048, core = '0:unlimited' }
[log]
level = 'debug'
format = 'json'
[local]
pin = true
cpus = ['0-2,9', '4']
cgroups = false
[tune]
at = '03:00'
jobs = 700
policies = ['easy', 'share(order=aged)']
";
    let config = read(text).unwrap();
    let tune = &config.tune;
    assert_eq!((tune.at, tune.jobs), (Some(Time::constant(3, 0, 0, 0)), 700));
    assert_eq!(tune.policies[1].to_string(), "share(order=aged)");
    let here = std::env::current_dir().unwrap().join("here");
    assert_eq!((&config.state, config.socket.to_str()), (&here, Some("/tmp/b.sock")));
    assert_eq!((config.machine.as_str(), config.profiles.as_deref()), ("cab", Some("cab")));
    assert_eq!(config.policy.to_string(), "pb-guided(bsld_lower=4)");
    let limit = Limit::Power(Watts::from_watts(6500));
    assert_eq!(config.budget, ScheduleSpec::Always(Allowance::Limited(limit)));
    assert_eq!((config.period, config.kill_after), (Span::from_millis(500), Span::from_secs(1)));
    assert_eq!(config.takeover, Span::from_secs(10));
    assert_eq!(
        (config.retention, config.last_resort),
        (Span::from_secs(7200), LastResort::Suspend)
    );
    assert_eq!(config.operators, [0, 1234]);
    assert!(config.see_all);
    let limits = Limits {
        jobs: 5,
        jobs_per_user: 4,
        array: 6,
        bytes_per_user: 2_000_000,
        request_bytes: 5000,
        connections: 3,
        forecast_time: Span::from_secs(5),
    };
    assert_eq!(config.limits, limits);
    assert_eq!(config.jobs.umask.to_string(), "027");
    let ulimits: Vec<String> =
        config.jobs.ulimits.iter().map(|(ulimit, bounds)| format!("{ulimit} {bounds}")).collect();
    assert_eq!(ulimits, ["core 0:unlimited", "nofile 2048"]);
    assert!(!config.local.cgroups);
    assert_eq!(config.log, Log { level: Level::Debug, format: Format::Json });
    assert_eq!(config.local.cpus, [vec![0, 1, 2, 9], vec![4]]);
    assert_eq!(config.source.place("limits.jobs").line, Some(16));
    assert_eq!(unsaid(read(&config.to_toml()).unwrap()), unsaid(config));
    for text in [
        "",
        "[local]\npin = false",
        "budget = 'feed.csv'\nmachine = 'big.toml'",
        "[[daily]]\nfrom = '7:05'\nbudget = 'none'\n[[daily]]\nfrom = '22:00:30'\nbudget = '1kW'",
    ] {
        let config = read(text).unwrap();
        assert_eq!(unsaid(read(&config.to_toml()).unwrap()), unsaid(config), "{text}");
    }
}

#[test]
fn mistakes_are_named_with_file_line_and_field() {
    for (text, what) in [
        (
            "\npolcy = 'easy'",
            "line 2, field 'polcy': unknown field `polcy`, expected one of `state`",
        ),
        (
            "[limits]\njob = 1",
            "line 2, field 'limits.job': unknown field `job`, expected one of `jobs`",
        ),
        (
            "\npolicy = 'eazy'",
            "line 2, field 'policy': unknown policy 'eazy'; did you mean 'easy'? valid policies: fcfs",
        ),
        (
            "policy = 3",
            "line 1, field 'policy': invalid type: integer `3`, expected text in quotes",
        ),
        (
            "budget = '80'",
            "line 1, field 'budget': budget '80': '80' has no unit; did you mean 80%",
        ),
        (
            "budget = 80",
            "line 1, field 'budget': invalid type: integer `80`, expected text in quotes",
        ),
        ("\nperiod = '1'", "line 2, field 'period': '1' has no known unit; write a length of time"),
        ("takeover = '9ms'", "line 1, field 'takeover': 9ms is out of range; write 1s to 1h"),
        ("period = '99ms'", "line 1, field 'period': 99ms is out of range; write 100ms to 1min"),
        (
            "switch_off = 'now'",
            "line 1, field 'switch_off': 'now' is not a rule for switching nodes off; write 'idle for 10min, keep \
            5 spare'",
        ),
        ("kill_after = '2h'", "line 1, field 'kill_after': 2h is out of range; write 1s to 1h"),
        ("retention = '1s'", "line 1, field 'retention': 1s is out of range; write 1min to 3650d"),
        (
            "last_resort = 'pray'",
            "field 'last_resort': unknown variant `pray`, expected one of `hold`",
        ),
        (
            "[jobs]\numask = '8'",
            "line 2, field 'jobs.umask': '8' is not a umask; write three octal",
        ),
        (
            "[jobs.ulimits]\nnofile = 'x'",
            "line 2, field 'jobs.ulimits.nofile': 'x' is not a limit; write a number or",
        ),
        ("[jobs.ulimits]\nfiles = 1", "unknown variant `files`, expected one of `as`, `core`"),
        (
            "operators = [\n'root',\n'n o'\n]",
            "line 3, field 'operators[1]': there is no user 'n o'",
        ),
        ("operators = [-1]", "line 1, field 'operators[0]': -1 is below zero"),
        (
            "[limits]\n\njobs = 0",
            "line 3, field 'limits.jobs': 0 is out of range; write 1 to 1000000",
        ),
        (
            "[limits]\nforecast_time = '2h'",
            "line 2, field 'limits.forecast_time': 2h is out of range; write 1s to 1h",
        ),
        ("limits.connections = 9999", "line 1, field 'limits.connections': 9999 is out of range"),
        ("[log]\nlevel = 'loud'", "line 2, field 'log.level': unknown variant `loud`"),
        (
            "[local]\ncpus = ['3-1']",
            "line 2, field 'local.cpus[0]': '3-1' is not a list of processors",
        ),
        (
            "[local]\ncpus = ['0-99999999']",
            "line 2, field 'local.cpus[0]': '0-99999999' is not a list",
        ),
        ("[local]\npin = false\ncpus = ['1']", "line 3, field 'local.cpus': 'local.pin' is false"),
        ("state = ''", "line 1, field 'state': the path is empty"),
        ("state = '~/b'", "line 1, field 'state': '~/b': write the full path"),
        ("daily = []", "line 1, field 'daily': the list is empty"),
        (
            "[[daily]]\nfrom = '25:00'\nbudget = '1kW'",
            "line 2, field 'daily[0].from': '25:00' is no",
        ),
        (
            "[[daily]]\nfrom = '2:00'\nbudget = '1'",
            "line 3, field 'daily[0].budget': '1' has no unit; did you mean 1%",
        ),
        ("[[daily]]\nfrom = '2:00'", "field 'daily[0]': missing field `budget`"),
        (
            "budget = '1kW'\n[[daily]]\nfrom = '2:00'\nbudget = '1kW'",
            "line 2, field 'daily': 'budget' is given, too; keep one of them",
        ),
        ("policy = = 3", "line 1: "),
        ("policy = 'easy'\npolicy = 'fcfs'", "line 2: duplicate key"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("busbar.toml, line "), "{text}: {error}");
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn paths_are_seen_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name);
    std::fs::write(inside("feed.csv"), "22:00,60%\n").unwrap();
    std::fs::write(inside("two"), "nodes = 2\n").unwrap();
    let text = "machine = 'two'\nbudget = 'feed.csv'\nstate = 's'\nprofiles = 'p.db'\n";
    std::fs::write(inside("busbar.toml"), text).unwrap();
    let config = Config::load(&inside("busbar.toml")).unwrap();
    assert_eq!(config.budget, ScheduleSpec::File(inside("feed.csv")));
    assert_eq!(
        (config.machine.as_str(), &config.state),
        (inside("two").to_str().unwrap(), &inside("s"))
    );
    assert_eq!(config.profiles.as_deref(), inside("p.db").to_str());
    let config = Config { profiles: None, ..config };
    assert_eq!(config.resolve().unwrap().setup.machine.nodes, 2);
    // Who has no folder for sockets has it beside the state.
    assert_eq!(read("state = '/s'").unwrap().socket, Path::new("/s/socket"));
    let missing = Config::load(&inside("gone.toml")).unwrap_err();
    assert!(missing.to_string().contains("busbar config init writes one"), "{missing}");
}

#[test]
fn what_this_machine_does_not_have_is_named() {
    let prepare = |text: &str| {
        let config = file::parse(text, Path::new("busbar.toml"), &around()).unwrap();
        config.resolve().map_err(|error| match error.source() {
            Some(why) => format!("{error}: {why}"),
            None => error.to_string(),
        })
    };
    for (text, what) in [
        (
            "\npolicy = 'utility(environment=queued)'",
            "line 2, field 'policy': the policy 'utility(environment=queued)' cannot be used here: jobs of several nodes",
        ),
        // A program cannot decide live, and is never started.
        (
            "\npolicy = 'external(./mine)'",
            "line 2, field 'policy': 'external(./mine)' works only in simulations",
        ),
        (
            "[tune]\npolicies = ['easy', 'external(./mine)']",
            "field 'tune.policies[1]': 'external(./mine)' works only in simulations",
        ),
        (
            "machine = 'catalyst'\npolicy = 'uniform(cap=1W)'",
            "line 2, field 'policy': the policy 'uniform(cap=1W)' cannot be used here: a node of this machine \
            cannot be capped",
        ),
        (
            "machine = 4\nprofiles = 'cab'",
            "line 2, field 'profiles': the profile of 'SPhot' has rows with",
        ),
        (
            "machine = 'catalyst'\nprofiles = 'cab'",
            "line 2, field 'profiles': both the machine's curves and the profiles describe",
        ),
        ("policy = 'rmap-naive'\nprofiles = 'gone.db'", "line 2, field 'profiles': "),
        ("policy = 'easy'\nsite = 'gone.toml'", "line 2, field 'site': cannot read "),
        ("machine = 'many'", "line 1, field 'machine': machine 'many': write a number"),
        ("machine = 0", "line 1, field 'machine': a machine needs at least one node"),
        ("\nbudget = '0%'", "line 2, field 'budget': a budget of 0W leaves no power for jobs"),
        ("budget = 'gone.csv'", "line 1, field 'budget': cannot read the budget file"),
        (
            "[[daily]]\nfrom = '3:00'\nbudget = '1kW'\n[[daily]]\nfrom = '2:00'\nbudget = '1kW'",
            "line 1, field 'daily': 02:00 does not come after 03:00",
        ),
        (
            "machine = 3\nlocal.cpus = ['0']",
            "field 'local.cpus': there are 1 lists of processors for 3",
        ),
        (
            "machine = 1\nlocal.cpus = ['8191']",
            "line 2, field 'local.cpus[0]': processor 8191 does not exist",
        ),
    ] {
        let error = prepare(text).unwrap_err();
        assert!(error.starts_with("busbar.toml, line ") && error.contains(what), "{text}: {error}");
    }
    let long = format!("socket = '/{}'", "s".repeat(107));
    assert!(prepare(&long).unwrap_err().contains("the path has 108 bytes"));

    let ready = prepare("machine = 100\npolicy = 'pb-guided'\nbudget = '50%'").unwrap();
    let remarks = ready.remarks.join("\n");
    for what in ["is assumed, 100W each", "bsld_lower=auto", "state: the folder /home/u"] {
        assert!(remarks.contains(what), "{remarks}");
    }
    assert_eq!(ready.schedule.at(jiff::Timestamp::UNIX_EPOCH), Watts::from_watts(5000));
    // A hundred nodes have the processors of this machine in turn.
    let cpus = ready.cpus.unwrap();
    assert!(cpus.len() == 100 && cpus.iter().all(|cpus| cpus.len() == 1));
    let usable = cpus.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(cpus[0], cpus[usable]);
    assert_eq!(prepare("local.pin = false").unwrap().cpus, None);

    let ready = prepare("machine = 'cab'\npolicy = 'rmap-adaptive'\nprofiles = 'cab'").unwrap();
    assert_eq!(ready.profiles, 8);
}

/// Ten nodes of 100 W, and two that are not the daemon's: a budget in percent is one of all twelve, and what the two may draw
/// is never handed out.
#[test]
fn nodes_of_others_are_counted_with_their_highest_draw() {
    let limit = |text: &str| {
        let config = file::parse(text, Path::new("busbar.toml"), &around()).unwrap();
        let ready = config.resolve_beside(2).unwrap();
        let idle = ready.setup.machine.node().idle * 10;
        let aside = ready.setup.machine.floor().saturating_sub(idle);
        (ready.schedule.at(jiff::Timestamp::UNIX_EPOCH), aside)
    };
    let watts = Watts::from_watts;
    assert_eq!(limit("machine = 10\nbudget = '50%'"), (watts(600), watts(200)));
    let others = "machine = 10\nbudget = '50%'\nslurm.others = '300W'";
    assert_eq!(limit(others), (watts(800), watts(600)));
    let none = "machine = 10\nbudget = '700W'\nslurm.others = '0W'";
    assert_eq!(limit(none), (watts(700), Watts::ZERO));
    let idle = read("machine = 10").unwrap().resolve().unwrap().setup.machine.floor().milliwatts();
    let config = read(&format!("machine = 10\nbudget = '{}W'", idle / 1000 + 100)).unwrap();
    assert!(config.resolve().is_ok());
    let why = config.resolve_beside(2).unwrap_err().source().unwrap().to_string();
    assert!(why.contains("leaves no power for jobs"), "{why}");
}

proptest! {
    /// Whatever a file holds, it is read, or its mistake has a place.
    #[test]
    fn no_file_is_too_odd(
        kept in prop::collection::vec(prop::bool::weighted(0.97), Config::template().len()),
        noise in ".{0,40}",
        at in 0_usize..120,
    ) {
        let letters = Config::template().chars().zip(kept);
        let mut lines: Vec<String> = letters
            .filter_map(|(letter, kept)| kept.then_some(letter))
            .collect::<String>()
            .lines()
            .map(str::to_owned)
            .collect();
        lines.insert(at.min(lines.len()), noise.clone());
        for text in [lines.join("\n"), noise] {
            match read(&text) {
                Ok(config) => prop_assert_eq!(
                    unsaid(read(&config.to_toml()).unwrap()),
                    unsaid(config)
                ),
                Err(error) => prop_assert!(error.starts_with("busbar.toml, line "), "{}", error),
            }
        }
    }
}

/// Nodes that are real are not switched in emulation.
#[test]
fn only_nodes_of_this_computer_are_switched() {
    let rule = "machine = 2\nswitch_off = 'idle for 10min, keep 1 spare'\n";
    let config = read(rule).unwrap();
    let expected = SwitchOff { after: Span::from_secs(600), spare: 1 };
    assert_eq!(config.switch_off, Some(expected));
    assert!(config.to_toml().contains("switch_off = \"idle for 10min, keep 1 spare\""));
    let resolved = config.resolve().unwrap();
    let says = |words: &str| resolved.remarks.iter().any(|remark| remark.contains(words));
    assert!(says("only in emulation") && says("5W each, with 1min to stop and 5min to start"));
    let refused = |more: &str| {
        let error = read(&(rule.to_owned() + more)).unwrap().resolve().unwrap_err();
        format!("{error}: {}", error.source().unwrap())
    };
    let slurm = refused("engine.kind = 'slurm'");
    assert!(slurm.contains("line 2, field 'switch_off'"), "{slurm}");
    assert!(slurm.contains("does not switch the nodes of a Slurm cluster"), "{slurm}");
    let agents = "agents.nodes = [{ name = 'a', address = '/a' }, { name = 'b', address = '/b' }]";
    let agents = refused(agents);
    assert!(agents.contains("does not switch nodes that have agents"), "{agents}");
}

#[test]
fn slurmrestd_is_on_this_machine_unless_it_is_said_otherwise() {
    let read = |text: &str| read(&format!("[slurm]\n{text}"));
    let config = read("rest = 'http://localhost:6820'\nrest_token = 'token'").unwrap();
    let rest = config.slurm.rest.as_ref().unwrap();
    assert_eq!((rest.user.as_str(), rest.plain), ("root", false));
    assert!(rest.token.as_ref().unwrap().ends_with("token"));
    for (text, reason) in [
        ("rest = 'http://head:6820'", "cross the network unencrypted"),
        ("rest = 'https://head:6820'", "is not an address of slurmrestd"),
        ("rest_user = 'ann'", "set slurm.rest"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let config = read("rest = 'http://head:6820'\nrest_plain = true\nrest_user = 'ann'").unwrap();
    let shown = config.to_toml();
    assert!(shown.contains("rest = \"http://head:6820\""), "{shown}");
}
