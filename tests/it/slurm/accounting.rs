//! The accounting of a real Slurm, imported: each run has the times and the nodes that Slurm says.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use busbar::slurm::model::JobState;
use busbar::workload::records::{Ending, Importer, Options};
use busbar::workload::swf::Record;
use busbar_needs::needs;

use super::{NOBODY, Running};
use crate::patience::wait_for;

/// What `sacct` says of one run, word for word.
#[derive(Debug, Default)]
struct Told {
    state: String,
    start: i64,
    end: i64,
    nodes: u32,
    processors: u32,
}

/// Runs `sacct` in the lab, with Unix time instead of local time if `is_unix`.
fn sacct(running: &Running, columns: &str, is_unix: bool) -> String {
    let mut command = Command::new("sacct");
    command.env("SLURM_CONF", running.lab.conf());
    command.env("TZ", "Europe/Berlin");
    if is_unix {
        command.env("SLURM_TIME_FORMAT", "%s");
    }
    command.args(["-a", "-D", "-P", "-S", "now-1days", "-o", columns]);
    let printed = command.output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    String::from_utf8(printed.stdout).unwrap()
}

/// The records of the log that is made of what `sacct --json` prints.
fn in_json(running: &Running) -> Vec<Record> {
    let mut command = Command::new("sacct");
    command.env("SLURM_CONF", running.lab.conf());
    let printed = command.args(["-a", "-D", "--json", "-S", "now-1days"]).output().unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let mut importer = Importer::new(Options::default()).unwrap();
    importer.read(printed.stdout.as_slice(), "dump.json").unwrap();
    importer.finish().unwrap().records().collect()
}

/// The runs of jobs that have started and ended, by number and start, as `sacct` tells them in Unix time.
fn told(dump: &str) -> BTreeMap<(u64, i64), Told> {
    let mut runs = BTreeMap::new();
    for line in dump.lines().skip(1) {
        let fields: Vec<&str> = line.split('|').collect();
        let [job, state, start, end, nodes, processors, list] = fields[..] else {
            panic!("{line}")
        };
        // Steps are not runs, and whoever has no times has not run.
        let (Ok(job), Ok(start), Ok(end)) = (job.parse(), start.parse(), end.parse()) else {
            continue;
        };
        let state = state.to_owned();
        let (nodes, processors) = (nodes.parse().unwrap(), processors.parse().unwrap());
        // Whoever is cancelled while it waits has a start in Unix time, but never had a node.
        if list != "None assigned" {
            runs.insert((job, start), Told { state, start, end, nodes, processors });
        }
    }
    runs
}

/// Waits until the database has as many runs that ended as there were.
fn await_ends(running: &Running, count: usize) -> BTreeMap<(u64, i64), Told> {
    wait_for("all ends", || {
        let told =
            told(&sacct(running, "JobIDRaw,State,Start,End,NNodes,AllocCPUS,NodeList", true));
        Some(told).filter(|told| told.len() >= count)
    })
}

#[needs(slurm, accounting)]
#[test]
fn each_run_of_a_real_slurm_is_imported() {
    let running = Running::start("4", "watch", &["--accounting"]);
    // What is cut short or queued again must have run for a moment to be a run: Slurm counts in seconds.
    let await_run = |job: u32| {
        running.await_job(job, "running since a second ago", |job| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            job.state == JobState::Running && job.started.is_some_and(|start| start + 1 < now)
        });
    };
    running.submit(&["-N2", "-t5", "--job-name=good_1", "--wrap", "sleep 2"], Some(NOBODY));
    running.submit(&["-N1", "-t5", "--array=1-3", "--job-name=part_7", "--wrap", "sleep 1"], None);
    running.submit(&["-N1", "-t5", "--job-name=bad", "--wrap", "sleep 1; exit 3"], None);
    let cancelled = running.submit(&["-N1", "-t300", "--wrap", "sleep infinity"], None);
    await_run(cancelled);
    // The second time it finds that there is nothing to wait for any more.
    let go = running.place().with_file_name("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.1; done; sleep 2", go.display());
    let again = running.submit(&["-N1", "-t300", "--requeue", "--wrap", &script], None);
    await_run(again);
    let never = running.submit(&["-N4", "-t300", "--wrap", "sleep 9"], None);
    let act = |program: &str, arguments: &[&str]| {
        let printed = running.lab.programs().run_as(program, arguments, None).unwrap();
        assert!(printed.status.success(), "{printed:?}");
    };
    act("scancel", &[&cancelled.to_string()]);
    act("scancel", &[&never.to_string()]);
    act("scontrol", &["requeue", &again.to_string()]);
    fs::write(go, "").unwrap();
    // Two of two nodes' and three of an array's, the failed, the cancelled, and two of the one queued again.
    let told = await_ends(&running, 8);

    let dump = running.place().with_file_name("dump.txt");
    let columns = "JobID,JobIDRaw,User,Account,Group,Partition,QOS,State,Submit,Eligible,Start,End,Elapsed,ElapsedRaw,\
        CPUTimeRAW,Timelimit,TimelimitRaw,NNodes,AllocNodes,NodeList,ReqNodes,NCPUS,AllocCPUS,ReqCPUS,AllocTRES,ReqTRES,\
        ConsumedEnergyRaw,ConsumedEnergy,AveCPUFreq,JobName,Comment,Reservation,ExitCode,Priority";
    for is_unix in [true, false] {
        fs::write(&dump, sacct(&running, columns, is_unix)).unwrap();
        let zone = Some("Europe/Berlin".to_owned());
        let mut importer = Importer::new(Options { zone, ..Options::default() }).unwrap();
        importer.read_path(&dump).unwrap();
        let import = importer.finish().unwrap();
        let intake = import.intake();
        assert_eq!(intake.records, intake.usable + intake.steps + intake.skipped(), "{intake:?}");
        assert_eq!(intake.skipped_malformed, 0, "{intake:?}");
        let found: BTreeMap<(i64, i64), _> =
            import.runs().iter().map(|run| ((run.start(), run.end()), run)).collect();
        assert_eq!(import.runs().len(), told.len(), "{told:?} {:?}", import.runs());
        for (key, run) in &told {
            let found = found.get(&(run.start, run.end));
            let found = found.unwrap_or_else(|| panic!("{key:?} {run:?} is not among {found:?}"));
            let same_size = import.runs().iter().any(|other| {
                (other.start(), other.end()) == (run.start, run.end)
                    && (other.nodes(), other.processors()) == (Some(run.nodes), run.processors)
            });
            assert!(same_size, "{run:?} {found:?}");
        }
        let count =
            |ending: Ending| import.runs().iter().filter(|run| run.ending() == ending).count();
        let completed = told.values().filter(|run| run.state == "COMPLETED").count();
        assert_eq!(count(Ending::Completed), completed);
        assert!(count(Ending::Cancelled) >= 1 && intake.skipped_never_started >= 1, "{intake:?}");
        assert!(intake.further_runs >= 1, "{intake:?}");
        // Slurm 22.05 leaves the name of a user who is not in its database out of its JSON, but not out of its lists.
        let but_users = |records: Vec<Record>| -> Vec<Record> {
            records.into_iter().map(|record| Record { user: -1, ..record }).collect()
        };
        assert_eq!(but_users(in_json(&running)), but_users(import.records().collect()));
    }
    running.down();
}
