//! The command line: golden sessions, and results that repeat to the byte.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn sessions() {
    let cases = trycmd::TestCases::new();
    cases.case("tests/cmd/*.trycmd").case("tests/cmd/*.toml");
    #[cfg(feature = "slurm")]
    cases.case("tests/cmd/slurm/*.trycmd");
}

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_busbar")).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let sources = ["demo", "lublin(jobs=3000, load=1.2)"];
    for source in sources {
        for policy in ["fcfs", "easy", "conservative", "easy-power", "pb-guided"] {
            let run = |out: &str| {
                let arguments =
                    ["simulate", "-w", source, "-p", policy, "-b", "80%", "--json", "--out", out];
                let output = busbar(&arguments, folder.path());
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                let mut answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                for timing in ["simulate_s", "wall_s", "jobs_per_s"] {
                    assert!(answer.as_object_mut().unwrap().remove(timing).is_some());
                }
                answer
            };
            assert_eq!(run("a"), run("b"));
            for file in ["jobs.csv", "power.csv", "schedule.swf", "summary.json"] {
                let read = |out: &str| fs::read(folder.path().join(out).join(file)).unwrap();
                assert_eq!(read("a"), read("b"), "{file} under {policy}");
            }
        }
    }
}

/// In the world of its paper, a policy that knows gears says how fast jobs ran; one whose paper has tables cannot run there,
/// and rules of the common world do not hold.
#[test]
fn the_world_of_a_paper() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &str| {
        let all = format!("simulate --world paper --budget 60% --json {words}");
        busbar(&all.split(' ').collect::<Vec<&str>>(), folder.path())
    };
    let output = run("--policy pb-guided");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answer["mean_frequency_ghz"].as_f64().unwrap() < 2.3, "{answer}");
    assert!(answer["energy_vs_nominal"].as_f64().unwrap() < 1.0, "{answer}");
    assert!(answer.get("assumed").is_none(), "{answer}");
    for (words, said) in [
        ("--policy rmap-naive", "tables"),
        ("--policy easy --allow caps", "common world"),
        ("--policy easy --believe exact", "common world"),
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(said), "{words}: {error}");
    }
}

/// The keys that scripts rely on.
#[test]
fn the_answer_has_its_keys() {
    let folder = tempfile::tempdir().unwrap();
    let output = busbar(&["simulate", "--json"], folder.path());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let keys = "policy workload nodes jobs completed killed rejected dropped backfilled makespan_s \
                mean_wait_s mean_turnaround_s mean_bsld max_bsld utilisation budget_w peak_power_w \
                mean_power_w energy_j violations decisions simulate_s wall_s jobs_per_s \
                mean_frequency_ghz energy_vs_nominal oversized";
    for key in keys.split_whitespace() {
        assert!(answer.get(key).is_some(), "{key} is missing");
    }
}

/// Without logs, generated workloads stand in and say so; every finding has its keys.
#[test]
fn a_reproduction_needs_no_logs() {
    let folder = tempfile::tempdir().unwrap();
    let output = busbar(&["reproduce", "pb-guided", "--json"], folder.path());
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["paper"], "pb-guided");
    assert!(answer["notes"][0].as_str().unwrap().starts_with("stand-ins"));
    let findings = answer["findings"].as_array().unwrap();
    assert!(findings.len() > 100);
    for finding in findings {
        let keys: Vec<&String> = finding.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "agreeing",
                "deviation",
                "experiment",
                "measured",
                "metric",
                "published",
                "unit",
                "workload"
            ],
            "{finding}"
        );
        assert!(finding["workload"].as_str().unwrap().ends_with("(stand-in)"));
    }
    let text = busbar(&["reproduce", "pb-guided"], folder.path()).stdout;
    assert!(String::from_utf8(text).unwrap().contains("note: stand-ins: no logs were given"));
}

/// A schedule is a log like any other, and its waits are those of the run.
#[test]
fn a_schedule_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let output = busbar(&["simulate", "--out", "run"], folder.path());
    assert!(output.status.success());
    let output = busbar(&["workload", "info", "-w", "run/schedule.swf", "--json"], folder.path());
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["jobs"], 2000);
    assert_eq!(info["intake"]["usable"], 2000);
}

#[test]
fn nothing_is_written_when_the_input_is_bad() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.swf"), "1 0 -1 90 8 -1 -1 x\n").unwrap();
    let output = busbar(&["simulate", "-w", "bad.swf", "--out", "run"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(!folder.path().join("run").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let output = busbar(&["simulate", "--out", "file/run"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("cannot write file/run"), "{error}");
}

/// The figures of a trace that was written as a log are those of the trace, whatever the policy.
#[test]
fn an_exported_trace_is_the_same_workload() {
    let folder = tempfile::tempdir().unwrap();
    let trace = "rmap(trace=random, jobs=40, seed=3)";
    let output = busbar(&["workload", "generate", trace, "--out", "r.swf.gz"], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for policy in ["rmap-traditional", "rmap-naive", "rmap-adaptive(slowdown=10%)", "easy"] {
        let figures = |source: &str| {
            let arguments = [
                "simulate",
                "-w",
                source,
                "-p",
                policy,
                "-b",
                "8kW",
                "--profiles",
                "cab",
                "--json",
            ];
            let output = busbar(&arguments, folder.path());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let mut answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            for other in ["simulate_s", "wall_s", "jobs_per_s", "workload", "intake"] {
                answer.as_object_mut().unwrap().remove(other);
            }
            answer
        };
        assert_eq!(figures(trace), figures("r.swf.gz"), "{policy}");
    }
}

/// A folder of tasks with their machines can be read again, however few machines there are: of some types
/// there are none then.
#[test]
fn a_small_site_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    for machines in [1, 10, 13, 25, 30] {
        let generator = format!("essc(tasks=200, machines={machines}, hours=4)");
        let output = busbar(&["workload", "generate", &generator, "--out", "site"], folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let completed = |source: &str| {
            let arguments = [
                "simulate", "-p", "utility", "-w", source, "--period", "2..4", "--energy", "1GJ",
                "--json",
            ];
            let output = busbar(&arguments, folder.path());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(answer["nodes"], machines);
            (answer["completed"].clone(), answer["energy_j"].clone(), answer["tasks"].clone())
        };
        assert_eq!(completed(&generator), completed("site"), "{machines} machines");
    }
}

/// With profiles all policies run the applications that have some, in one table; and which profiles is said.
#[test]
fn applications_with_profiles_are_the_same_for_all_policies() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = busbar(arguments, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&["profile", "generate", "cab"]);
    run(&["workload", "generate", "rmap(trace=random, jobs=20)", "--out", "log.swf"]);
    let compare =
        ["compare", "-w", "log.swf", "-b", "8kW", "--profiles", "profiles.db", "--no-cache"];
    let both = [&compare[..], &["-p", "rmap-adaptive,easy,rmap-naive"]].concat();
    let answer: serde_json::Value =
        serde_json::from_str(&run(&[&both[..], &["--json", "--out", "out"]].concat())).unwrap();
    let names = |rows: &serde_json::Value| -> Vec<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["policy"].as_str().unwrap().to_owned()).collect()
    };
    let mut ranked = names(&answer["rankings"][0]["rows"]);
    ranked.sort();
    assert_eq!(ranked, ["easy", "rmap-adaptive", "rmap-naive"]);
    for run in answer["runs"].as_array().unwrap() {
        assert_eq!(run["profiles"], "profiles.db", "{run}");
    }
    let said = "each job's profiled application is chosen at random if the log does not name it";
    let assumed = answer["assumptions"].as_array().unwrap();
    assert!(assumed.iter().any(|line| line.as_str().unwrap().contains(said)), "{assumed:?}");
    assert!(run(&both).contains(said));
    // A trace of applications has profiles in any case, and others beside it have not.
    let trace =
        ["compare", "-w", "rmap(jobs=20)", "-w", "demo", "-b", "8kW", "--no-cache", "--json"];
    let trace = [&trace[..], &["-p", "easy,rmap-naive", "--jobs", "..20", "--brief"]].concat();
    let answer: serde_json::Value = serde_json::from_str(&run(&trace)).unwrap();
    for run in answer["runs"].as_array().unwrap() {
        let expected = (run["workload"] != "demo").then_some("profiles.db");
        assert_eq!(run["profiles"].as_str(), expected, "{run}");
    }
}

/// A machine or a feed that is far too large for the jobs is told.
#[test]
fn what_looks_like_a_mistake_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let stdout = |arguments: &[&str]| {
        let output = busbar(arguments, folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&stdout(&[arguments, &["--json"]].concat())).unwrap()
    };
    let larger = "the machine has 12800 processors, 50 times the 256 of the workload's own machine";
    let waits = "no job ever has to wait";
    let notes = |answer: &serde_json::Value| answer["notes"].to_string();
    let text = stdout(&["simulate", "--machine", "12800"]);
    assert!(text.contains(&format!("note  {larger}")) && text.contains(waits), "{text}");
    let answer = json(&["simulate", "--machine", "12800"]);
    assert!(notes(&answer).contains(larger) && notes(&answer).contains(waits), "{answer}");
    assert_eq!(json(&["simulate"])["notes"], serde_json::Value::Null);

    let compare = ["compare", "-p", "easy", "-b", "60%,none", "--no-cache"];
    let usual = [&compare[..], &["-b", "60%"]].concat();
    assert_eq!(json(&usual)["notes"], serde_json::json!([]));
    let large = [&compare[..], &["--machine", "12800"]].concat();
    assert!(stdout(&large).contains(&format!("note: demo: {larger}")));
    assert!(notes(&json(&large)).contains("demo, budget 60%, none: no job ever has to wait"));

    let plan = ["plan", "--policy", "easy", "--seeds", "1", "--no-cache"];
    assert_eq!(json(&plan)["notes"], serde_json::json!([]));
    let huge = [&plan[..], &["--budget", "4MW", "--out", "plan"]].concat();
    let text = stdout(&huge);
    assert!(text.contains("4.00 MW, which supplies 40000 nodes at full power"), "{text}");
    assert!(json(&huge)["recommendation"].as_str().unwrap().contains(waits));
    // What is written is what is printed, and the curves have a row for each point.
    let read = |name: &str| fs::read_to_string(folder.path().join("plan").join(name)).unwrap();
    let written: serde_json::Value = serde_json::from_str(&read("plan.json")).unwrap();
    assert_eq!(written, json(&huge));
    for (name, quantity, key) in
        [("nodes.csv", "nodes", "by_nodes"), ("budgets.csv", "budget_w", "by_budget")]
    {
        let rows = read(name);
        let heading = "mean_turnaround_s,deviation_s,undone,knee,enough,recommended";
        assert_eq!(rows.lines().next(), Some(format!("{quantity},{heading}").as_str()));
        let points = written[key]["points"].as_array().unwrap();
        assert_eq!(rows.lines().count(), 1 + points.len());
        for (row, point) in rows.lines().skip(1).zip(points) {
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields[0].parse::<f64>().unwrap(), point["at"].as_f64().unwrap());
            assert_eq!(fields[1].parse::<f64>().ok(), point["figure"]["mean"].as_f64());
        }
    }
}

/// A budget above all that the machine can draw, and days that look like hours, are told. 256 nodes of 100 W draw 25.6 kW.
#[test]
fn a_budget_that_is_probably_a_mistake_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let notes = |arguments: &[&str]| {
        let output = busbar(&[arguments, &["--jobs", "..50", "--json"]].concat(), folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["notes"].to_string()
    };
    let nothing = "has no effect: the machine draws 25600W at most";
    let simulated = notes(&["simulate", "--budget", "120%"]);
    assert!(simulated.contains(&format!("the budget of 30720W {nothing}")), "{simulated}");
    assert!(!notes(&["simulate", "--budget", "100%"]).contains("limits nothing"));
    // With a fifth more nodes under the same watts, it is just what they draw: 308 nodes, rounded up.
    assert!(!notes(&["simulate", "--budget", "120%", "--enlarge", "20%"]).contains("nothing"));
    let compare = ["compare", "-p", "easy", "--seeds", "1", "--no-cache", "--brief", "--budget"];
    let compared = notes(&[&compare[..], &["60%,1MW"]].concat());
    assert!(compared.contains(&format!("demo, budget 1000000W: the budget of 1000000W {nothing}")));
    assert!(!compared.contains("demo, budget 60%: the budget"), "{compared}");
    let hours = notes(&[
        "simulate",
        "--start",
        "2026-11-02 00:00 UTC",
        "--budget",
        "weekdays 12-18: 60%, else 100%",
    ]);
    assert!(hours.contains("for hours write 12:00-18:00"), "{hours}");
}

/// Figures of a run in which no job ran are empty: the answer is there, with an error beside it and in the exit code.
#[test]
fn a_run_without_jobs_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // The only job needs four nodes, and the machine has two.
    let log = "1 0 -1 600 4 -1 -1 4 900 -1 1 1 -1 1 -1 -1 -1 -1\n";
    fs::write(folder.path().join("one.swf"), log).unwrap();
    let run = ["simulate", "--workload", "one.swf", "--machine", "2"];
    let output = busbar(&run, folder.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 completed, 1 rejected"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "error: no job ran: 1 rejected: larger than the machine\n");
    let output = busbar(&[&run[..], &["--json", "--out", "out"]].concat(), folder.path());
    assert_eq!(output.status.code(), Some(2));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["completed"], &answer["rejected"]), (&0.into(), &1.into()));
    let error: serde_json::Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["message"], "no job ran: 1 rejected: larger than the machine");
    assert!(folder.path().join("out/summary.json").exists());
    let compare =
        ["compare", "-w", "one.swf", "-m", "2", "-p", "easy,fcfs", "--no-cache", "--brief"];
    let output = busbar(&compare, folder.path());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("no job ran under any policy and budget"), "{said}");
}

/// The same text means the same to every command.
#[test]
fn budgets_times_and_lists_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("feed.csv"), "0,60%\n3600,none\n").unwrap();
    fs::write(folder.path().join("out.csv"), "0,0,\n").unwrap();
    let run = |arguments: &[&str]| -> Result<serde_json::Value, String> {
        let output = busbar(arguments, folder.path());
        match output.status.success() {
            true => Ok(serde_json::from_slice(&output.stdout).unwrap()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    let unlimited = run(&["simulate", "--budget", "none", "--json"]).unwrap();
    assert_eq!(unlimited["budget_w"], serde_json::Value::Null);
    assert!(run(&["simulate", "--budget", "feed.csv", "--json"]).is_ok());
    let refused = run(&["plan", "--budget", "none", "--json"]).unwrap_err();
    assert!(refused.contains("a plan needs a limit"), "{refused}");
    for threshold in ["600", "600s", "10m", "10min"] {
        let answer = run(&["simulate", "--bsld-threshold", threshold, "--json"]).unwrap();
        assert_eq!(answer["bsld_threshold_s"], 600.0, "{threshold}");
    }
    let policy = |text: &str| run(&["simulate", "-p", text, "--jobs", "..50", "--json"]).unwrap();
    assert_eq!(policy("parm(guard=30m)")["policy"], "parm(guard=1800s)");
    assert_eq!(policy("parm(guard=1h30m)")["policy"], "parm(guard=5400s)");

    let compare = |more: &[&str]| {
        run(&[&["compare", "--jobs", "..100", "--no-cache", "--json"], more].concat()).unwrap()
    };
    let answer = compare(&[
        "-p",
        "easy,pb-guided(lower=50%, upper=80%)",
        "-p",
        "fcfs",
        "-b",
        "60%,none",
        "--nodes",
        "256,300",
        "--outages",
        "out.csv",
        "--seeds",
        "1",
    ]);
    assert_eq!(answer["rankings"].as_array().unwrap().len(), 4);
    assert_eq!(answer["rankings"][0]["rows"].as_array().unwrap().len(), 3);
    // With a node out of service for good, no job has all 256.
    let whole = compare(&["-p", "easy", "-b", "none"]);
    let broken = compare(&["-p", "easy", "-b", "none", "--outages", "out.csv"]);
    let peak = |answer: &serde_json::Value| answer["runs"][0]["peak_believed_w"].as_f64().unwrap();
    assert!(peak(&whole) > peak(&broken), "{} {}", peak(&whole), peak(&broken));
    let beyond = run(&["compare", "--nodes", "0", "--outages", "out.csv"]);
    assert!(beyond.is_err());
}

/// Every reader of text gives a line of a megabyte up, and names the file and the line.
#[test]
fn a_line_without_end_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("\n# {}\n", "x".repeat(1 << 20));
    fs::write(folder.path().join("long.csv"), &long).unwrap();
    fs::write(folder.path().join("long.swf"), &long).unwrap();
    for arguments in [
        &["simulate", "-w", "long.swf"][..],
        &["workload", "info", "-w", "long.swf"],
        &["simulate", "-b", "long.csv"],
        &["simulate", "--outages", "long.csv"],
        &["simulate", "--terms", "long.csv"],
        &["simulate", "-p", "ppartition", "--machine", "long.csv"],
        &["tune", "--machine", "long.csv", "--power", "1kW"],
        &["profile", "import", "long.csv"],
    ] {
        let output = busbar(arguments, folder.path());
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        assert!(message.contains("long."), "{arguments:?}: {message}");
        assert!(message.contains("line 2 has more than 65536 bytes"), "{arguments:?}: {message}");
    }
}

/// Three jobs on nodes of 48 processors, of which two were measured: 300 W and 350 W a node. Whoever takes processors for
/// nodes finds a few watts each, less than an idle node draws. All commands say the same of them.
#[test]
fn what_was_measured_is_said_by_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let heading =
        "JobIDRaw|User|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|JobName";
    let job = |number: u32, hour: u32, nodes: u32, joules: &str| {
        let (from, until) =
            (format!("2024-03-15T{hour:02}:00:00"), format!("2024-03-15T{:02}:00:00", hour + 1));
        let processors = 48 * nodes;
        format!(
            "{number}|ada|COMPLETED|{from}|{from}|{until}|02:00:00|{nodes}|{processors}|{joules}|cp2k"
        )
    };
    let records =
        [heading.to_owned(), job(1, 8, 2, "2160000"), job(2, 10, 1, "1260000"), job(3, 12, 4, "")];
    fs::write(folder.path().join("march.txt"), records.join("\n")).unwrap();
    let machine = "nodes = 8\nprocessors_per_node = 48\n[power]\nnode = \"400W\"\nidle = \"90W\"\n";
    fs::write(folder.path().join("site.toml"), machine).unwrap();
    let source = "records(file=march.txt, zone=UTC)";
    let workload =
        ["--workload", source, "--machine", "site.toml", "--budget", "80%", "--policy", "easy"];
    let unmeasured = "what 1 of 3 jobs draw was not measured, and is that of their applications\n";
    // Nothing is known of the first two but the rated power: 400 W where 300 W and 350 W were drawn.
    let predicted = "power off by a factor of 1.14 (median) and 1.33 (90th percentile) for 2 jobs, too low for 0.0 % of them";
    for command in [
        &["simulate"][..],
        &["compare", "--brief", "--seeds", "1"],
        &["plan", "--seeds", "1"],
        &["whatif"],
    ] {
        let cache: &[&str] = if command[0] == "simulate" { &[] } else { &["--no-cache"] };
        let output = busbar(&[command, &workload, cache].concat(), folder.path());
        let text = String::from_utf8_lossy(&output.stdout);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(unmeasured), "{command:?}: {text}{why}");
        assert_eq!(text.matches(predicted).count(), 1, "{command:?}: {text}");
    }
}
