//! Comparisons in shards: several processes make the runs, and meet in the cache.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_busbar");

/// A comparison of eight runs and those that say what freedoms and knowledge are worth.
const SWEEP: &str = "policies = [\"easy\", \"share\"]\nbudgets = [\"60%\", \"80%\"]\n\
                     workloads = [\"lublin(jobs=60)\"]\nseeds = 2\nmachine = \"64\"\n";

fn busbar(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["compare", "sweep.toml"]).args(arguments).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    for name in ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN"] {
        command.env_remove(name);
    }
    command
}

fn printed(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The answer without what depends on when and where the runs were made.
fn answer(text: &str) -> (Value, u64) {
    let mut answer: Value = serde_json::from_str(text).unwrap();
    let reused = answer["reused"].as_u64().unwrap();
    for key in ["reused", "wall_s"] {
        answer.as_object_mut().unwrap().remove(key);
    }
    (answer, reused)
}

#[test]
fn shards_at_the_same_time_make_what_one_comparison_makes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sweep.toml"), SWEEP).unwrap();
    let (whole, reused) =
        answer(&printed(busbar(folder.path(), &["--no-cache", "--json"]).spawn().unwrap()));
    assert_eq!(reused, 0);
    // All at once, and one of them twice, as a scheduler that repeats a job does; one by its place in a job array.
    let shard = |shard: &str| busbar(folder.path(), &["--cache", "c", "--json", "--shard", shard]);
    let mut third = shard("slurm");
    third.env("SLURM_ARRAY_TASK_ID", "12").env("SLURM_ARRAY_TASK_COUNT", "3");
    third.env("SLURM_ARRAY_TASK_MIN", "10");
    let running: Vec<Child> = [shard("1/3"), shard("2/3"), shard("2/3"), third]
        .iter_mut()
        .map(|command| command.spawn().unwrap())
        .collect();
    let counts: Vec<u64> = running
        .into_iter()
        .map(|child| {
            let made: Value = serde_json::from_str(&printed(child)).unwrap();
            made["made"].as_u64().unwrap() + made["reused"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(counts[1], counts[2]);
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    let last = busbar(folder.path(), &["--cache", "c", "--json"]).spawn().unwrap();
    let (together, reused) = answer(&printed(last));
    assert_eq!(together, whole, "where the runs were made does not matter");
    assert_eq!(reused, 8, "no run is made again");
}

/// What is said beside the answer: warnings as usual, nothing with --quiet, and what is done with --verbose.
#[test]
fn as_much_is_said_as_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let sweep =
        SWEEP.replace("seeds = 2", "seeds = 1").replace("\"share\"", "\"external(./none)\"");
    fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    let said = |more: &[&str]| {
        let shard = ["--brief", "--cache", "c", "--shard", "1/1"];
        let output = busbar(folder.path(), &[&shard[..], more].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(!output.stdout.is_empty(), "the answer is there all the same");
        String::from_utf8(output.stderr).unwrap()
    };
    let usual = said(&[]);
    assert!(usual.contains("warning: the runs of external(./none) cannot be cached"), "{usual}");
    assert!(!usual.contains("note:"), "{usual}");
    assert_eq!(said(&["--quiet"]), "");
    let verbose = said(&["--verbose"]);
    assert!(verbose.contains("note: the cache is c"), "{verbose}");
    let run = "note: easy on lublin(jobs=60), budget 60%, seed 1: result taken from the cache";
    assert!(verbose.contains(run) && verbose.contains("warning:"), "{verbose}");
}

#[test]
fn a_shard_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sweep.toml"), SWEEP).unwrap();
    let refused = |arguments: &[&str]| {
        let output = busbar(folder.path(), arguments)
            .env_remove("HOME")
            .env_remove("XDG_CACHE_HOME")
            .output()
            .unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for (arguments, why) in [
        (&["--shard", "4"][..], "'4' is not a shard; write I/N"),
        (&["--shard", "0/4"], "from 1/4 to 4/4"),
        (&["--shard", "1/4", "--no-cache"], "cannot be used with"),
        (&["--shard", "1/4"], "name one with --cache"),
        (&["--shard", "slurm", "--cache", "c"], "submit it with sbatch --array=1-N"),
    ] {
        let said = refused(arguments);
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}

/// The commands of the example for Snakemake, with its placeholders filled in as Snakemake does.
#[test]
fn the_commands_of_the_snakefile_work() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/snakemake");
    let text = fs::read_to_string(example.join("Snakefile")).unwrap();
    let mut lines = text.lines().map(str::trim);
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        if line == "shell:" {
            commands.push(lines.next().unwrap().trim_matches('"').to_owned());
        }
    }
    let [comparison, shard] = &commands[..] else { panic!("{commands:?}") };
    let folder = tempfile::tempdir().unwrap();
    fs::copy(example.join("experiment.toml"), folder.path().join("experiment.toml")).unwrap();
    let path = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap_or_default());
    let run = |command: &str| {
        assert!(!command.contains('{'), "{command}");
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for number in ["1", "2", "3"] {
        let command = shard
            .replace("{input}", "experiment.toml")
            .replace("{threads}", "1")
            .replace("{wildcards.shard}", number)
            .replace("{SHARDS}", "3");
        assert!(run(&command).starts_with(&format!("shard {number}/3: ")));
    }
    let said = run(&comparison.replace("{input[0]}", "experiment.toml"));
    assert!(said.contains("8 of them from the cache"), "{said}");
    for file in ["report.html", "results.csv"] {
        assert!(folder.path().join("results").join(file).is_file(), "{file}");
    }
}
