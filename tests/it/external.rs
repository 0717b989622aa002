//! Policies that are programs of their own: they decide as built-in ones do, and whatever they do wrong has a name.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use busbar_needs::needs;
use serde_json::Value;

use crate::patience::wait_until;

/// First come, first served: the built-in policy in another language.
const FCFS: &str = r#"
import json, sys
json.loads(sys.stdin.readline())
print('{"protocol": 1}', flush=True)
waiting = []
for line in sys.stdin:
    turn = json.loads(line)
    waiting += turn["arrived"]
    nodes, watts, start = turn["free_nodes"], turn["free_watts"], []
    while waiting:
        point = waiting[0]["points"][0]
        if point["nodes"] > nodes or point["watts"] > watts:
            break
        nodes, watts = nodes - point["nodes"], watts - point["watts"]
        start.append(waiting.pop(0)["job"])
    print(json.dumps({"start": start}), flush=True)
"#;

/// Starts every job as slowly as it can, and lets it go on as fast as it can from the next turn on.
const RAISE: &str = r#"
import json, sys
hello = json.loads(sys.stdin.readline())
assert hello["may"] == ["caps", "recaps"], hello
print('{"protocol": 1}', flush=True)
waiting, slow = [], []
for line in sys.stdin:
    turn = json.loads(line)
    assert not turn["refused"], turn
    gone = {job["job"] for job in turn["ended"]}
    change = [{"job": job, "point": 0} for job in slow if job not in gone]
    waiting += turn["arrived"]
    nodes, start, slow = turn["free_nodes"], [], []
    while waiting and waiting[0]["nodes"] <= nodes:
        job = waiting.pop(0)
        nodes -= job["nodes"]
        slow.append(job["job"])
        start.append({"job": job["job"], "point": len(job["points"]) - 1})
    print(json.dumps({"start": start, "change": change}), flush=True)
"#;

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_busbar")).args(arguments).current_dir(folder).output().unwrap()
}

fn answer(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A few jobs: what goes wrong goes wrong soon.
const FEW: &str = "lublin(jobs=50, load=0.9)";

/// What Busbar says about a run that does not get to its end.
fn complaint(policy: &str, folder: &Path) -> String {
    let output = busbar(&["simulate", "-w", FEW, "--budget", "60%", "--policy", policy], folder);
    assert!(!output.status.success(), "{policy}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

#[needs(python)]
#[test]
fn a_program_decides_as_the_built_in_policy_does() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fcfs.py"), FCFS).unwrap();
    let run = |policy: &str, out: &str| {
        let arguments = ["simulate", "--json", "-b", "60%", "-p", policy, "--out", out];
        let answer = answer(&busbar(&arguments, folder.path()));
        (answer["violations"].clone(), fs::read(folder.path().join(out).join("jobs.csv")).unwrap())
    };
    let external = run("external(python3 fcfs.py, wants=none, believes=rated)", "external");
    assert_eq!(external.0, 0);
    assert!(external.1 == run("fcfs", "built-in").1, "jobs.csv differs");
}

#[test]
fn the_guide_shows_the_example() {
    let read =
        |file: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let shown = format!("```python\n{}```", read("examples/external/first_fit.py"));
    assert!(read("docs/how-to/external-policy.md").contains(&shown));
}

/// The example of the documentation. With caps no job is too large for the budget, so all run; and because it
/// passes jobs that do not fit, jobs wait less than first come, first served.
#[needs(python)]
#[test]
fn the_example_runs_every_job() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/external/first_fit.py");
    let policy = format!("external(python3 {})", example.display());
    let folder = tempfile::tempdir().unwrap();
    let run = |policy: &str| {
        answer(&busbar(&["simulate", "--json", "-b", "60%", "-p", policy], folder.path()))
    };
    let (first_fit, fcfs) = (run(&policy), run("fcfs"));
    assert_eq!((&first_fit["violations"], &first_fit["completed"]), (&0.into(), &2000.into()));
    assert!(first_fit["mean_wait_s"].as_f64() < fcfs["mean_wait_s"].as_f64());
}

/// Caps may change while jobs run, if the program says so beforehand.
#[needs(python)]
#[test]
fn a_program_changes_running_jobs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("raise.py"), RAISE).unwrap();
    let arguments = [
        "simulate",
        "--json",
        "--out",
        "out",
        "-p",
        "external(python3 raise.py, wants=caps+recaps)",
    ];
    let answer = answer(&busbar(&arguments, folder.path()));
    assert_eq!((&answer["violations"], &answer["completed"]), (&0.into(), &2000.into()));
    let changes = fs::read_to_string(folder.path().join("out/changes.csv")).unwrap();
    assert!(changes.lines().count() > 1000, "{}", changes.lines().count());
}

/// The program asks for a job that was never submitted. The decision is named in the answer and told to the
/// program, which writes down what it is told.
#[test]
fn a_wrong_decision_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let script = "read -r hello; echo '{\"protocol\": 1}'; read -r first; echo '{\"start\": [4000000]}'\n\
                  read -r second; echo \"$second\" > second.json; echo '{\"wake_s\": 0}'\n\
                  while read -r line; do echo '{}'; done";
    fs::write(folder.path().join("wrong.sh"), script).unwrap();
    let output =
        busbar(&["simulate", "-w", FEW, "--policy", "external(sh wrong.sh)"], folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let named = "#4000000 was to start, but it is not waiting";
    assert!(text.contains(named) && text.contains("asked to be woken at 0 s"), "{text}");
    let second = fs::read_to_string(folder.path().join("second.json")).unwrap();
    let second: Value = serde_json::from_str(&second).unwrap();
    assert_eq!(second["refused"], serde_json::json!([{"job": 4_000_000, "why": named}]));
}

#[test]
fn whatever_ends_a_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let hello = "read -r hello; echo '{\"protocol\": 1}'; read -r first; ";
    for (number, (script, limit, parts)) in [
        (
            "echo 'no data' >&2; exit 3",
            "15min",
            &["at simulated time 0 s", "(exit status: 3)", "no data"][..],
        ),
        (
            &format!("{hello} exec sleep infinity"),
            "200ms",
            &["did not answer within 200ms", "flush"],
        ),
        ("exec sleep infinity", "200ms", &["did not answer within 200ms"]),
        (
            "read -r hello; echo good morning",
            "15min",
            &["answered 'good morning'", "must be {\"protocol\": 1}"],
        ),
        (
            "read -r hello; echo '{\"protocol\": 2}'",
            "15min",
            &["speaks version 2 of the protocol, and this Busbar version 1"],
        ),
        (
            &format!("{hello} echo '{{\"strat\": []}}'"),
            "15min",
            &["'{\"strat\": []}'", "unknown field `strat`"],
        ),
        (
            &format!("{hello} echo '{{\"start\": [{{\"job\": 0, \"point\": 99}}]}}'"),
            "15min",
            &["job 0 has the points 0 to "],
        ),
        (
            &format!("{hello} printf '{{}}\\n{{}}\\n'; cat >/dev/null"),
            "15min",
            &["'{}'", "exactly one line per question"],
        ),
        (
            &format!("{hello} exec <&-; echo '{{}}'; exec sleep infinity"),
            "15min",
            &["it still runs"],
        ),
        // What is written before anybody asks does not keep Busbar from noticing that nobody reads.
        ("exec yes '{\"protocol\": 1}'", "15min", &["exactly one line per question"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.sh");
        fs::write(folder.path().join(&name), script).unwrap();
        // None of those that go on for ever is waited for.
        let error = complaint(&format!("external(sh {name}, limit={limit})"), folder.path());
        for part in parts {
            assert!(error.contains(part), "{script}: {error}");
        }
    }
}

#[test]
fn programs_that_cannot_be_started_are_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain.py"), "print(1)").unwrap();
    let lost = folder.path().join("lost");
    fs::write(&lost, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&lost, fs::Permissions::from_mode(0o755)).unwrap();
    for (command, part) in [
        ("./nothing", "no such file"),
        ("no-such-program-anywhere", "no folder of PATH has it"),
        ("plain.py", "write ./plain.py"),
        ("./lost", "the interpreter in its first line (#!) does not exist"),
        ("./plain.py", "make it executable (chmod +x ./plain.py), or name its interpreter"),
    ] {
        let error = complaint(&format!("external({command})"), folder.path());
        assert!(error.contains(part) && error.contains(command), "{command}: {error}");
    }
}

/// An exception ends the run with its traceback and the instant; in a comparison the others go on.
#[needs(python)]
#[test]
fn an_exception_ends_the_run_with_its_traceback() {
    let folder = tempfile::tempdir().unwrap();
    let late = FCFS.replace(
        "    waiting += ",
        "    if turn['now_s'] > 9e3: raise ValueError('boom')\n    waiting += ",
    );
    fs::write(folder.path().join("late.py"), late).unwrap();
    let error = complaint("external(python3 late.py)", folder.path());
    let instant =
        error.split("failed at simulated time ").nth(1).and_then(|rest| rest.split(' ').next());
    assert!(instant.is_some_and(|seconds| seconds.parse::<f64>().unwrap() > 9e3), "{error}");
    for part in
        ["exit status: 1", "Traceback (most recent call last)", "late.py", "ValueError: boom"]
    {
        assert!(error.contains(part), "{error}");
    }
    let arguments = [
        "compare",
        "--no-cache",
        "--policy",
        "easy,external(python3 late.py)",
        "--budget",
        "60%",
        "--seeds",
        "1",
        "--workload",
        FEW,
    ];
    let output = busbar(&arguments, folder.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("1  easy"), "{text}");
    assert!(
        text.contains(": external(python3 late.py): the policy failed at simulated time "),
        "{text}"
    );
    assert!(text.contains("ValueError: boom"), "{text}");
}

/// Whether nothing is left of a process but perhaps its number, until its parent asks for it.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.map_or(true, |stat| stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X']))
}

/// A program has a child, and that has one, too. None of them is there when the run is over, in whatever way.
#[test]
fn nothing_is_left_of_what_a_program_has_started() {
    let family = "sleep infinity & echo $! >> pids; sh -c 'sleep infinity & echo $! >> pids; wait' & echo $! >> pids\n\
                  while [ $(wc -l < pids) -lt 3 ]; do sleep 0.01; done\n\
                  read -r hello; echo '{\"protocol\": 1}'\n";
    let waits = "read -r line; touch ready; sleep infinity";
    for (way, then, signal) in [
        ("ends", "while read -r line; do echo '{}'; done", None),
        ("ends with those it knows", "while read -r line; do echo '{}'; done; kill 0", None),
        ("fails", "read -r line; echo nonsense; wait", None),
        ("stops all", "read -r line; kill -s STOP 0", None),
        ("is ended", waits, Some("TERM")),
        ("is killed", waits, Some("KILL")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("pids"), "").unwrap();
        fs::write(path("policy.sh"), format!("{family}{then}")).unwrap();
        // Long enough for the family to be there, and for a busy machine.
        let limit = if way == "stops all" { "10s" } else { "1h" };
        let policy = format!("external(sh policy.sh, limit={limit})");
        let mut run = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["simulate", "-w", FEW, "--policy", &policy])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals to a whole group are not meant for this process.
            .process_group(0)
            .spawn()
            .unwrap();
        if let Some(signal) = signal {
            wait_until(way, || path("ready").exists());
            let kill = format!("kill -s {signal} {}", run.id());
            assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        }
        run.wait().unwrap();
        let pids = fs::read_to_string(path("pids")).unwrap();
        assert_eq!(pids.lines().count(), 3, "{way}: {pids}");
        wait_until(way, || pids.lines().all(is_gone));
    }
}

/// A program that goes on when its input has ended is ended, and nothing is left of it.
#[test]
fn nothing_is_left_of_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $$ > pid; read -r hello; echo '{\"protocol\": 1}'\n\
                  while read -r line; do echo '{}'; done; exec sleep infinity";
    fs::write(folder.path().join("stays.sh"), script).unwrap();
    busbar(&["simulate", "-w", FEW, "--policy", "external(sh stays.sh)"], folder.path());
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let stat = fs::read_to_string(Path::new("/proc").join(pid.trim()).join("comm"));
    assert!(stat.is_err(), "{stat:?} still runs");
}
