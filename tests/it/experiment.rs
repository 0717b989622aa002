//! Comparisons: the same answer on any number of cores, after an interruption, and from a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::patience::{wait_for, wait_until};

fn busbar(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    command.args(arguments).current_dir(folder).env("XDG_CACHE_HOME", folder.join("xdg"));
    command
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The answer, how many results were known before, and without what differs from time to time.
fn compared(arguments: &[&str], folder: &Path) -> (Value, u64) {
    let mut answer = answer(&busbar(arguments, folder).output().unwrap());
    let object = answer.as_object_mut().unwrap();
    assert!(object.remove("wall_s").is_some());
    let reused = object.remove("reused").unwrap().as_u64().unwrap();
    (answer, reused)
}

/// Every policy, with a workload that depends on the seed and one that has applications.
const ALL: [&str; 11] = [
    "compare",
    "-w",
    "lublin(jobs=60, processors=64)",
    "-w",
    "rmap(jobs=20)",
    "--allow",
    "caps,sizes",
    "-b",
    "70%",
    "-b",
    "none",
];

#[test]
fn the_number_of_cores_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let arguments: Vec<&str> = ALL.iter().chain(more).copied().collect();
        compared(&arguments, folder.path())
    };
    let (one, reused) = run(&["--json", "--no-cache", "--threads", "1"]);
    assert_eq!(reused, 0);
    for threads in ["2", "5"] {
        assert_eq!(run(&["--json", "--no-cache", "--threads", threads]).0, one);
    }
    assert!(!folder.path().join("xdg").exists(), "nothing is kept");
    // What is kept is what was worked out, to the last bit.
    let (kept, _) = run(&["--json"]);
    assert_eq!(kept, one);
    let runs = one["runs"].as_array().unwrap();
    let (known, reused) = run(&["--json"]);
    assert_eq!(known, one);
    let ran = runs.iter().filter(|run| run["reason"].is_null()).count();
    assert_eq!(reused as usize, ran);
    assert!(ran > 20 && ran < runs.len(), "some run, and some cannot: {ran} of {}", runs.len());
    // Whoever cannot run is told so on each workload and budget, and is in no ranking.
    for ranking in one["rankings"].as_array().unwrap() {
        let named = |list: &str| {
            let list = ranking[list].as_array().unwrap();
            list.iter().map(|row| row["policy"].as_str().unwrap()).collect::<BTreeSet<_>>()
        };
        let (rows, cannot) = (named("rows"), named("cannot_run"));
        assert!(rows.is_disjoint(&cannot));
        assert_eq!(rows.len() + cannot.len(), busbar::policy::PolicySpec::compared().len());
    }
}

/// The entries of a cache that are in their place.
fn entries(cache: &Path) -> Vec<PathBuf> {
    let Ok(folders) = fs::read_dir(cache) else { return Vec::new() };
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    let files = files.map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

/// 60 runs of some hundredths of a second each on one core; some are there when it is killed.
#[test]
fn a_comparison_that_was_killed_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let arguments = [
        "compare",
        "-w",
        "lublin(jobs=4000, load=0.9)",
        "-p",
        "easy",
        "-p",
        "conservative",
        "-b",
        "80%",
        "--seeds",
        "30",
        "--threads",
        "1",
        "--brief",
        "--json",
    ];
    let kept: Vec<&str> = arguments.iter().copied().chain(["--cache", "cache"]).collect();
    // It is to be killed in the middle. Whoever is held up meanwhile comes too late, and tries again.
    let there = wait_for("a kill in the middle", || {
        let _ = fs::remove_dir_all(&cache);
        let mut command = busbar(&kept, folder.path());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("some results", || {
            entries(&cache).len() >= 5 || child.try_wait().unwrap().is_some()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        Some(entries(&cache).len() as u64).filter(|there| (5..60).contains(there))
    });
    let (resumed, reused) = compared(&kept, folder.path());
    assert_eq!(reused, there, "no finished run is done again");
    let fresh: Vec<&str> = arguments.iter().copied().chain(["--no-cache"]).collect();
    assert_eq!(resumed, compared(&fresh, folder.path()).0);

    // One entry that is damaged, and one that belongs to another run: both are noticed.
    let entries = entries(&cache);
    assert_eq!(entries.len(), 60);
    let content = fs::read(&entries[0]).unwrap();
    fs::write(&entries[0], &content[..content.len() / 2]).unwrap();
    let (repaired, reused) = compared(&kept, folder.path());
    assert_eq!((repaired, reused), (resumed, 59));
}

#[test]
fn what_is_written_reproduces_itself() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("lab")).unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("lab/feed.csv", "0,100%\n3600,70%\n");
    write("lab/cluster.toml", "nodes = 64\n[power]\nnode = '350W'\n");
    write(
        "lab/exp.toml",
        "policies = ['easy', 'pb-guided(lower=50%, beta=known)', 'uniform']\nallow = 'caps'\n\
         budgets = ['feed.csv', '60%']\nworkloads = ['lublin(jobs=60)']\nseeds = [3, 4]\n\
         machine = 'cluster.toml'\n",
    );
    let run = |experiment: &str, out: &str| {
        let arguments = ["compare", experiment, "--out", out, "--no-cache"];
        let output = busbar(&arguments, folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains('\x1b'), "no colours where there is no terminal");
        let cannot = "cannot run on lublin(jobs=60): uniform: it requires nodes";
        assert!(text.contains(cannot), "{text}");
    };
    run("lab/exp.toml", "one");
    run("one/experiment.toml", "two");
    for file in ["results.csv", "experiment.toml", "report.html"] {
        let read = |out: &str| fs::read(folder.path().join(out).join(file)).unwrap();
        assert!(read("one") == read("two"), "{file} differs");
    }
    let table = fs::read_to_string(folder.path().join("one/results.csv")).unwrap();
    assert!(table.starts_with("workload,budget,nodes,policy,seed,reason,"), "{table}");
    // Three policies under two budgets with two seeds; uniform has a reason instead of figures.
    assert_eq!(table.lines().count(), 1 + 3 * 2 * 2);
    assert_eq!(table.lines().filter(|line| line.contains(",uniform,")).count(), 4);
    assert!(table.contains("\"pb-guided(lower=50%, beta=known)\""));
}

/// Mistakes are found before anything runs: no cache is made, no folder of results.
#[test]
fn nothing_runs_when_the_experiment_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    for (text, what) in [
        (
            "policies = ['easy']\nbudgets = ['0W']",
            "exp.toml, line 2: a budget of 0W leaves no power",
        ),
        ("\nworkloads = ['demo', 'lublin(jobs=0)']", "exp.toml, line 2: workload 'lublin'"),
        ("budgets = ['feed.csv']", "exp.toml, line 1: cannot read the budget file"),
        ("nodes = [0]", "exp.toml, line 1: a machine needs at least one node"),
        ("policies = ['eazy']", "exp.toml, line 1: unknown policy 'eazy'"),
        (
            "policies = [\n'easy',\n'fcfs', 'easy()']",
            "exp.toml, line 3: 'easy' is given twice; keep one",
        ),
        ("\nseeds = [1, 7, 1]", "exp.toml, line 2: 1 is given twice; keep one"),
    ] {
        fs::write(folder.path().join("exp.toml"), text).unwrap();
        let output =
            busbar(&["compare", "exp.toml", "--out", "out"], folder.path()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(what), "{text}: {error}");
        assert!(matches!(output.status.code(), Some(1 | 2)), "{text}");
        assert!(output.stdout.is_empty());
        assert!(!folder.path().join("out").exists() && !folder.path().join("xdg").exists());
    }
}

#[test]
fn a_plan_has_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["plan", "-w", "lublin(jobs=200, processors=64)", "--seeds", "2", "--json"];
    let plan = answer(&busbar(&arguments, folder.path()).output().unwrap());
    // 60 % of 64 nodes of 100 W feed 38 of them at full power.
    assert_eq!((&plan["budget_w"], &plan["fed_nodes"]), (&3840.0.into(), &38.into()));
    assert_eq!(plan["by_nodes"]["points"][0]["at"], 38.0);
    let points = plan["by_nodes"]["points"].as_array().unwrap();
    assert!(points.iter().any(|point| point["at"] == 64.0), "the machine as it is");
    assert!(plan["recommendation"].as_str().unwrap().starts_with("Under 3.84 kW, take "));
    assert!(plan["assumptions"].as_array().unwrap().len() > 2);
    assert!(plan["by_budget"]["points"].as_array().unwrap().len() >= 8);
}

/// What the shell and the manual are told comes from the same definitions as --help.
#[test]
fn shells_and_the_manual_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = busbar(&["completions", shell], folder.path()).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["compare", "rank-by", "simulate"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
    let output = busbar(&["man", "--out", "man"], folder.path()).output().unwrap();
    assert!(output.status.success());
    for page in ["busbar", "busbar-compare", "busbar-plan", "busbar-workload-generate"] {
        let text = fs::read_to_string(folder.path().join(format!("man/{page}.1"))).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(&page.replace('-', "\\-")), "{text}");
    }
    // What nobody types has no page.
    for hidden in ["busbar-warden", "busbar-job-exec"] {
        assert!(!folder.path().join(format!("man/{hidden}.1")).exists(), "{hidden}");
    }
}
