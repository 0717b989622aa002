//! What earlier releases wrote is still read, and what scripts read is still written.
//!
//! `tests/compat/` has a folder for each release with files of that release: those that users write, and the answers
//! that it gave in JSON. Every file is read here, and every key of an old answer has to be in that of today, with a
//! value of the same type. Keys may be added. A key that has another name now is listed here, with the number of
//! the form in which it has.
//!
//! An answer that is missing is written by `BUSBAR_BLESS=1 cargo test --test it compatible`. One that is there is
//! never written again: if it does not fit any more, a promise was broken.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A command in the folder of a release, and the answer it gave then.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "simulate.json",
        &[
            "simulate",
            "-w",
            "jobs.swf",
            "-m",
            "cluster.toml",
            "-b",
            "feed.csv",
            "-p",
            "easy-power",
            "--outages",
            "outages.csv",
            "--terms",
            "terms.csv",
            "--price",
            "prices.csv repeat",
            "--carbon",
            "380g/kWh",
            "--json",
        ],
    ),
    ("compare.json", &["compare", "experiment.toml", "--no-cache", "--json"]),
    (
        "plan.json",
        &[
            "plan",
            "-w",
            "jobs.swf",
            "-m",
            "cluster.toml",
            "-b",
            "60%",
            "-p",
            "easy",
            "--seeds",
            "1",
            "--json",
        ],
    ),
    (
        "whatif.json",
        &[
            "whatif",
            "--sacct",
            "records.txt",
            "--zone",
            "Europe/Berlin",
            "-m",
            "cluster.toml",
            "-b",
            "60%",
            "-p",
            "easy-power",
            "--no-cache",
            "--json",
        ],
    ),
    (
        "tune-policy.json",
        &[
            "tune-policy",
            "-w",
            "jobs.swf",
            "-m",
            "cluster.toml",
            "-b",
            "60%",
            "--present",
            "easy",
            "--policy",
            "easy(order=aged)",
            "--json",
        ],
    ),
    ("solve.json", &["solve", "problem.json", "--json"]),
    ("profiles.json", &["profile", "show", "SP-MZ", "--profiles", "profiles.db", "--json"]),
    ("curves.json", &["machine", "show", "curves.csv", "--json"]),
];

/// Keys that have another name in a later form of the answers (`format`), by the last parts of their paths.
const RENAMED: &[(u64, &str, &str)] = &[
    (2, "/energy_by_state/running", "running_j"),
    (2, "/energy_by_state/idle", "idle_j"),
    (2, "/energy_by_state/starting", "starting_j"),
    (2, "/energy_by_state/stopping", "stopping_j"),
    (2, "/energy_by_state/off", "off_j"),
    (2, "/energy_by_state/base", "base_j"),
    (2, "/solve_ms", "solve_s"),
    (2, "/watts_used", "power_used_w"),
    (2, "/chosen/0/cap", "cap_w"),
];

/// Commands that read a file of a release and say nothing that is compared.
const READ: &[&[&str]] = &[
    &["machine", "check", "cluster.toml"],
    #[cfg(feature = "live")]
    &["config", "check", "busbar.toml"],
];

/// What is written as JSON, and the record of it: a summary, and what an external policy is told.
const WRITTEN: &[(&str, &str)] = &[
    ("out/summary.json", "summary.json"),
    ("told-hello.json", "external-hello.json"),
    ("told-turn.json", "external-turn.json"),
];

/// Tables, and the record of their columns, which may be added to at the end.
const TABLES: &[(&str, &str)] =
    &[("out/jobs.csv", "jobs.columns.csv"), ("out/power.csv", "power.columns.csv")];

#[test]
fn files_of_earlier_releases_are_read_and_their_answers_have_their_keys() {
    let mut releases = 0;
    for release in fs::read_dir(root().join("tests/compat")).unwrap() {
        let release = release.unwrap().path();
        // Nothing is written beside the files of a release: some commands keep side files.
        let folder = tempfile::tempdir().unwrap();
        for file in fs::read_dir(&release).unwrap() {
            let file = file.unwrap().path();
            fs::copy(&file, folder.path().join(file.file_name().unwrap())).unwrap();
        }
        for (name, command) in ANSWERS {
            check(&release.join(name), &run(command, folder.path()));
        }
        for command in READ {
            run(command, folder.path());
        }
        let simulate = ["simulate", "-w", "jobs.swf", "-m", "cluster.toml", "-b", "60%"];
        run(&[&simulate[..], &["--out", "out"]].concat(), folder.path());
        run(&[&simulate[..], &["-p", "external(sh external.sh)"]].concat(), folder.path());
        for (name, record) in WRITTEN {
            let found = fs::read_to_string(folder.path().join(name)).unwrap();
            check(&release.join(record), &found);
        }
        for (name, record) in TABLES {
            let found = fs::read_to_string(folder.path().join(name)).unwrap();
            let columns = found.lines().next().unwrap_or_default().to_owned() + "\n";
            let old = recorded(&release.join(record), &columns);
            assert!(
                columns.trim_end().starts_with(old.trim_end()),
                "{name} had the columns {old}and has {columns}"
            );
        }
        releases += 1;
    }
    assert!(releases > 0);
}

/// An answer of today has the keys of the recorded one.
fn check(record: &Path, found: &str) {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let mut missing = Vec::new();
    let (old, new) = (parse(&recorded(record, found)), parse(found));
    compare(&old, &new, &Place::root(&old, &new), &mut missing);
    assert!(missing.is_empty(), "{}: {missing:#?}", record.display());
}

#[test]
fn a_key_that_is_gone_is_noticed() {
    let old = serde_json::json!({"a": 1, "b": [{"c": "x"}], "d": null, "e": {"f": true}});
    let check = |new: Value| {
        let mut missing = Vec::new();
        compare(&old, &new, &Place::root(&old, &new), &mut missing);
        missing
    };
    assert!(
        check(
            serde_json::json!({"a": 2.5, "b": [{"c": "y"}, {}], "d": 3, "e": {"f": false, "g": 0}})
        )
        .is_empty()
    );
    assert_eq!(
        check(serde_json::json!({"a": 1, "b": [{}], "d": 3, "e": {"f": 1}})),
        ["/b/0/c is gone", "/e/f was true and is 1"]
    );
    assert_eq!(
        check(serde_json::json!({"a": null, "b": [], "d": 3, "e": {"f": true}})),
        ["/b is empty"]
    );
}

/// A key may have another name, but only in answers that say that their form is a later one.
#[test]
fn a_key_with_another_name_needs_a_later_form() {
    let old = serde_json::json!({"format": 1, "energy_by_state": {"off": 5}});
    let check = |new: Value| {
        let mut missing = Vec::new();
        compare(&old, &new, &Place::root(&old, &new), &mut missing);
        missing
    };
    let renamed = serde_json::json!({"off_j": 0.000005});
    assert_eq!(
        check(serde_json::json!({"format": 1, "energy_by_state": renamed})),
        ["/energy_by_state/off is gone"]
    );
    assert!(check(serde_json::json!({"format": 2, "energy_by_state": renamed})).is_empty());
    assert_eq!(
        check(serde_json::json!({"format": 2, "energy_by_state": {"off_j": "5"}})),
        ["/energy_by_state/off was 5 and is \"5\""]
    );
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &[&str], folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(command)
        .current_dir(folder)
        .env_remove("BUSBAR_CONFIG")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// What was recorded, or what is recorded now.
fn recorded(file: &Path, found: &str) -> String {
    if !file.exists() && std::env::var_os("BUSBAR_BLESS").is_some() {
        fs::write(file, found).unwrap();
    }
    fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
}

/// Whether everything that was there still is, with values of the same type. What may be missing may come and go: a
/// value that was or is null says nothing. Of lists, the first entries are compared.
fn compare(old: &Value, new: &Value, place: &Place, missing: &mut Vec<String>) {
    let path = &place.path;
    match (old, new) {
        (Value::Null, _) | (_, Value::Null) => (),
        (Value::Object(old), Value::Object(new)) => {
            for (key, old) in old {
                let below = place.below(key);
                match new.get(key).or_else(|| new.get(below.new_name()?)) {
                    Some(new) => compare(old, new, &below, missing),
                    None => missing.push(format!("{path}/{key} is gone")),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => match (old.first(), new.first()) {
            (Some(old), Some(new)) => compare(old, new, &place.below("0"), missing),
            (Some(_), None) => missing.push(format!("{path} is empty")),
            (None, _) => (),
        },
        (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_))
        | (Value::Bool(_), Value::Bool(_)) => (),
        _ => missing.push(format!("{path} was {old} and is {new}")),
    }
}

/// Where in an answer something is, and which forms the old and the new answer have.
struct Place {
    path: String,
    forms: std::ops::RangeInclusive<u64>,
}

impl Place {
    fn root(old: &Value, new: &Value) -> Self {
        // Answers that did not say their form had the first one.
        let form = |answer: &Value| answer["format"].as_u64().unwrap_or(1);
        Place { path: String::new(), forms: form(old) + 1..=form(new) }
    }

    fn below(&self, key: &str) -> Self {
        Place { path: format!("{}/{key}", self.path), forms: self.forms.clone() }
    }

    /// The name that the key at this place has in a later form.
    fn new_name(&self) -> Option<&'static str> {
        let renamed = |(form, path, _): &&(u64, &str, &'static str)| {
            self.forms.contains(form) && self.path.ends_with(path)
        };
        RENAMED.iter().find(renamed).map(|(_, _, name)| *name)
    }
}
