//! Files where people put them: without an option, and known by what they hold.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::busbar;

fn json(arguments: &[&str], folder: &Path) -> Value {
    let printed = busbar(&[arguments, &["--json"]].concat(), folder);
    serde_json::from_str(&printed.unwrap_or_else(|why| panic!("{arguments:?}: {why}"))).unwrap()
}

/// The commands that take a workload, each with what makes it fast.
const COMMANDS: &[&[&str]] = &[
    &["simulate"],
    &["workload", "info"],
    &["compare", "--brief", "--policy", "easy", "--seeds", "1", "--budget", "80%"],
    &["plan", "--policy", "easy", "--seeds", "1"],
    &["whatif", "--policy", "easy-power", "--machine", "five"],
    &["tune-policy", "--present", "easy", "--policy", "share"],
];

/// A folder with a file of each kind. None is called by its kind.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let mut log = "; MaxProcs: 8\n".to_owned();
    let mut records = "JobID|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS\n".to_owned();
    let mut jobs = Vec::new();
    for job in 0..24 {
        let (submit, nodes) = (600 * job, 1 + job % 3);
        log += &format!("{job} {submit} 0 900 {nodes} -1 -1 {nodes} 3600 -1 1 1 1 1 1 1 -1 -1\n");
        let time =
            |minutes: u64| format!("2026-03-02T{:02}:{:02}:00", 8 + minutes / 60, minutes % 60);
        let (from, until) = (time(10 * job), time(10 * job + 15));
        records += &format!("{job}|COMPLETED|{from}|{from}|{until}|01:00:00|{nodes}|{nodes}\n");
        let begin = 1_772_438_400 + 600 * job;
        jobs.push(format!(
            r#"{{"job_id": {job}, "state": {{"current": ["COMPLETED"]}}, "required": {{"CPUs": {nodes}}},
                "allocation_nodes": {nodes}, "time": {{"submission": {begin}, "start": {begin}, "end": {}, "limit":
                {{"set": true, "infinite": false, "number": 60}}}}, "tres": {{"allocated":
                [{{"type": "cpu", "name": "", "count": {nodes}}}, {{"type": "node", "name": "", "count": {nodes}}}]}}}}"#,
            begin + 900
        ));
    }
    write("one", &log);
    write("two", &records);
    write("three", &format!("{{\"meta\": {{}}, \"jobs\": [{}]}}", jobs.join(",\n")));
    write("four", "policies = [\"easy\"]\nbudgets = [\"80%\"]\nworkloads = [\"one\"]\nseeds = 1\n");
    write("five", "nodes = 8\n[power]\nnode = \"100W\"\n");
    write("six", "time,budget\n0,60%\n");
    folder
}

#[test]
fn logs_and_records_are_read_without_an_option() {
    let folder = folder();
    for command in COMMANDS {
        let answer = |more: &[&str]| {
            let mut answer = json(&[command, more].concat(), folder.path());
            forget_times(&mut answer);
            answer
        };
        for file in ["one", "two", "three"] {
            let given = answer(&[file]);
            let jobs = given["jobs"].as_u64();
            assert!(jobs.is_none_or(|jobs| jobs == 24), "{command:?} {file}: {given}");
        }
        // The option means the same, and one of both is enough.
        assert_eq!(answer(&["two"]), answer(&["--workload", "two"]), "{command:?}");
        let both = [command, &["two", "--workload", "demo"][..]].concat();
        let refused = busbar(&both, folder.path()).unwrap_err();
        assert!(refused.contains("--workload") && refused.contains("FILE"), "{refused}");
    }
}

/// How long it took, and whether results were there before, are not the answer.
fn forget_times(answer: &mut Value) {
    match answer {
        Value::Object(members) => {
            let times = ["simulate_s", "wall_s", "jobs_per_s", "reused"];
            members.retain(|key, _| !times.contains(&key.as_str()));
            members.values_mut().for_each(forget_times);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_times),
        _ => {}
    }
}

#[test]
fn a_file_of_another_kind_is_told_who_wants_it() {
    let folder = folder();
    for command in COMMANDS {
        let refused =
            |file: &str| busbar(&[command, &[file][..]].concat(), folder.path()).unwrap_err();
        assert!(refused("five").contains("five is a machine file; name it with --machine"));
        assert!(refused("six").contains("six is limits over time; name it with --budget"));
        if command[0] != "compare" {
            assert!(refused("four").contains("four is an experiment; 'busbar compare' runs it"));
        }
        assert!(refused("none-such.swf").contains("no such file"), "{command:?}");
    }
    let solve = busbar(&["solve", "one"], folder.path()).unwrap_err();
    assert!(solve.contains("one is a log; 'busbar simulate'"), "{solve}");
}

#[test]
fn compare_takes_an_experiment_or_workloads() {
    let folder = folder();
    fn compare<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["compare", "--brief"], more].concat()
    }
    let experiment = json(&compare(&["four"]), folder.path());
    assert_eq!(experiment["rankings"][0]["workload"], "one");
    let several = compare(&["one", "two", "--policy", "easy", "--seeds", "1", "--budget", "80%"]);
    let both = json(&several, folder.path());
    let names: Vec<&Value> =
        both["rankings"].as_array().unwrap().iter().map(|each| &each["workload"]).collect();
    assert_eq!(names, ["one", "two"]);
    let mixed = busbar(&compare(&["one", "four"]), folder.path()).unwrap_err();
    assert!(mixed.contains("four is an experiment"), "{mixed}");
    // What was compared can be compared again from elsewhere.
    busbar(&[&several[..], &["--out", "results"]].concat(), folder.path()).unwrap();
    fs::create_dir(folder.path().join("elsewhere")).unwrap();
    let again = json(&compare(&["../results/experiment.toml"]), &folder.path().join("elsewhere"));
    assert_eq!(again["rankings"][1]["workload"], "two");
}

/// The time zone is one of records, wherever they are named.
#[test]
fn whatif_takes_a_zone_for_records_alone() {
    let folder = folder();
    let whatif = |file: &str| {
        let more = ["--zone", "Europe/Berlin", "--policy", "easy-power", "--machine", "five"];
        busbar(&[&["whatif", file], &more[..]].concat(), folder.path())
    };
    assert!(whatif("two").is_ok());
    let refused = whatif("one").unwrap_err();
    assert!(refused.contains("--zone is for accounting records, and one is a log"), "{refused}");
}

/// Files that Busbar writes itself are of the kind that reads them.
#[test]
fn what_is_written_is_recognised() {
    use busbar::workload::FileKind;
    let folder = folder();
    let kind = |name: &str| FileKind::of(&folder.path().join(name)).unwrap().unwrap();
    busbar(&["compare", "four", "--brief", "--out", "out"], folder.path()).unwrap();
    assert_eq!(kind("out/experiment.toml"), FileKind::Experiment);
    busbar(&["machine", "init", "--nodes", "8", "--out", "machine"], folder.path()).unwrap();
    assert_eq!(kind("machine"), FileKind::Machine);
    busbar(&["solve", "--random", "jobs=3", "--write-instance", "program"], folder.path()).unwrap();
    assert_eq!(kind("program"), FileKind::Program);
    busbar(&["workload", "generate", "lublin(jobs=9)", "--out", "packed.gz"], folder.path())
        .unwrap();
    assert_eq!(kind("packed.gz"), FileKind::Log);
    busbar(&["simulate", "one", "--out", "out"], folder.path()).unwrap();
    assert!(kind("out/summary.json").advice().contains("an answer of Busbar"));
    assert!(kind("out/jobs.csv").advice().contains("the jobs of a simulation"));
    assert_eq!(kind("out/schedule.swf"), FileKind::Log);
}
