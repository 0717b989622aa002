use std::collections::BTreeSet;
use std::fmt;

use super::*;
use crate::cluster::Cluster;
use crate::commands::Commands;
use crate::json::Answer;
use crate::listing::{Listing, Record};
use crate::model::{Exit, Hold, Job, JobRef, JobState, Licence, Node, Partition, Reservation};
use crate::text;
use crate::unread::UNKNOWN;

/// The recorded answers, by release.
fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| Recording::read(folder).unwrap()).collect()
}

impl Recording {
    fn asked(&self, reading: Reading) -> &str {
        self.answer(reading).unwrap_or_else(|| panic!("{} has no {reading:?}", self.version))
    }

    fn json(&self, reading: Reading) -> Answer {
        Answer::read(reading.file(), self.asked(reading)).unwrap()
    }

    /// What both forms say, which must be the same, and all of it read. The older versions have only one.
    fn both<T: Record + Clone + PartialEq + fmt::Debug>(
        &self,
        text: Listing<T>,
        json: Reading,
        read: impl Fn(&Answer) -> Result<Listing<T>, SlurmError>,
    ) -> Vec<T> {
        assert!(text.unread.is_empty(), "{}: {:?}", self.version, text.unread);
        if json.is_known_to(self.version) {
            let json = read(&self.json(json)).unwrap();
            assert!(json.unread.is_empty(), "{}: {:?}", self.version, json.unread);
            let sorted = |listing: &Listing<T>| {
                let mut all = listing.read.clone();
                all.sort_by_key(Record::key);
                all
            };
            assert_eq!(sorted(&text), sorted(&json), "{}", self.version);
        }
        text.read
    }

    fn jobs(&self) -> Vec<Job> {
        // Why a job runs is one thing at one call and another at the next.
        let settled = |mut jobs: Listing<Job>| {
            jobs.read.iter_mut().filter(|job| job.has_nodes()).for_each(|job| job.reason = None);
            jobs
        };
        let text = settled(format().read(self.asked(Reading::Jobs)));
        self.both(text, Reading::JobsInJson, |answer| answer.jobs().map(settled))
    }

    fn nodes(&self) -> Vec<Node> {
        self.both(text::nodes(self.asked(Reading::Nodes)), Reading::NodesInJson, Answer::nodes)
    }

    fn partitions(&self) -> Vec<Partition> {
        let text = text::partitions(self.asked(Reading::Partitions));
        self.both(text, Reading::PartitionsInJson, Answer::partitions)
    }

    fn licences(&self) -> Vec<Licence> {
        let text = text::licences(self.asked(Reading::Licences));
        self.both(text, Reading::LicencesInJson, Answer::licences)
    }

    fn reservations(&self) -> Vec<Reservation> {
        let text = text::reservations(self.asked(Reading::Reservations));
        self.both(text, Reading::ReservationsInJson, Answer::reservations)
    }
}

#[test]
fn recorded_are_the_releases_that_busbar_names() {
    let found: Vec<(u16, u16)> =
        recordings().iter().map(|of| (of.version.major, of.version.minor)).collect();
    assert_eq!(
        found,
        Version::RECORDED,
        "Version::RECORDED and the folders in crates/slurm/recorded"
    );
    for needed in [(22, 5), (26, 5)] {
        assert!(found.contains(&needed), "{needed:?}");
    }
}

/// Each version answers each call that it knows.
#[test]
fn every_recorded_call_succeeded() {
    for recording in recordings() {
        let made: BTreeSet<Reading> = recording.calls.iter().map(|entry| entry.reading).collect();
        let version = recording.version;
        let known = Reading::ALL.into_iter().filter(|reading| reading.is_known_to(version));
        assert_eq!(made, known.collect(), "{version}");
        for Entry { call, exit, error, .. } in &recording.calls {
            assert_eq!((*exit, error.as_str()), (Some(0), ""), "{version}: {call}");
        }
        assert_eq!(recording.asked(Reading::Version).parse(), Ok(version));
        let configuration = recording.asked(Reading::Configuration);
        for key in ["SlurmUser", "MinJobAge", "JobSubmitPlugins", "SLURM_CONF", "PrologFlags"] {
            assert!(configuration.contains(&format!("{key} ")), "{version}: {key}");
        }
    }
}

/// What every version says about jobs of every kind, made by `recorded/make-jobs.sh`.
#[test]
fn recorded_jobs_are_understood() {
    for recording in recordings() {
        let version = recording.version;
        let jobs = recording.jobs();
        let count = |is: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| is(job)).count();
        let running: Vec<&Job> =
            jobs.iter().filter(|job| job.nodes_min == 2 && job.has_nodes()).collect();
        let [running] = running[..] else { panic!("{version}: {running:?}") };
        assert_eq!(
            (running.nodes.to_string().as_str(), running.limit_minutes),
            ("n[1-2]", Some(300))
        );
        assert_eq!(running.licences, [("power".to_owned(), 400)].into(), "{version}");
        assert!(running.started.is_some() && running.submitted.is_some());
        let comment = running.comment.as_deref().unwrap();
        assert!(
            comment.starts_with("busbar app=lulesh slowdown=10% nodes=1-3;comment"),
            "{comment}"
        );
        let dependency = format!("afterok:{}(unfulfilled)", running.id);
        assert_eq!(count(&|job| job.dependency.as_ref() == Some(&dependency)), 1);
        for state in [JobState::Suspended, JobState::Cancelled, JobState::Completed] {
            assert_eq!(count(&|job| job.state == state), 1, "{version}: {state:?}");
        }
        let failed = jobs.iter().filter(|job| job.state == JobState::Failed);
        let exits: Vec<Exit> = failed.map(|job| job.exit.unwrap()).collect();
        assert!(exits.contains(&Exit { code: 3, signal: 0 }), "{version}: {exits:?}");
        assert!(exits.contains(&Exit { code: 0, signal: 9 }), "{version}: {exits:?}");
        assert_eq!(count(&|job| job.hold == Some(Hold::Slurm)), 1);
        let marked: Vec<&Job> = jobs.iter().filter(|job| job.admin_comment.is_some()).collect();
        let [marked] = marked[..] else { panic!("{version}: {marked:?}") };
        assert_eq!((marked.hold, marked.limit_minutes), (Some(Hold::Admin), Some(36 * 60)));
        assert_eq!((marked.nodes_min, marked.nodes_max, marked.required.len()), (2, 4, 1));
        assert_eq!(count(&|job| job.het.is_some()), 2);
        assert_eq!(count(&|job| job.state.is_waiting() && job.limit_minutes.is_none()), 1);
        assert!(count(&|job| job.state.is_waiting() && job.eligible > job.submitted) >= 2);
        // Elements of an array, together and each by itself.
        let elements = format().read(recording.asked(Reading::Elements));
        assert!(elements.unread.is_empty(), "{version}: {:?}", elements.unread);
        let tasks = |jobs: &[Job]| -> BTreeSet<u32> {
            let arrays = jobs.iter().filter_map(|job| job.array.as_ref());
            arrays.flat_map(|array| array.tasks.numbers()).collect()
        };
        assert_eq!(tasks(&jobs), (1..=5).collect(), "{version}");
        assert_eq!(tasks(&elements), (1..=5).collect(), "{version}");
        assert!(
            elements.iter().all(|job| job.array.as_ref().is_none_or(|a| a.tasks.only().is_some()))
        );
    }
}

#[test]
fn recorded_nodes_partitions_licences_and_reservations_are_understood() {
    for recording in recordings() {
        let version = recording.version;
        let nodes = recording.nodes();
        assert_eq!(nodes.len(), 8);
        assert!(
            nodes.iter().all(|node| node.cpus == 4 && node.partitions == ["main"]),
            "{version}"
        );
        assert!(
            nodes[0].state.is_busy() && nodes[0].state.is_usable() && nodes[0].cpus_in_use == 4
        );
        assert_eq!(
            (nodes[7].state.is_usable(), nodes[7].reason.as_deref()),
            (false, Some("busbar: no agent"))
        );
        let partitions = recording.partitions();
        assert_eq!((partitions.len(), partitions[0].nodes.len()), (1, 8));
        assert!(partitions[0].is_up && partitions[0].most_minutes.is_none());
        let licences = recording.licences();
        let numbers = (licences[0].total, licences[0].used, licences[0].reserved);
        assert_eq!((licences[0].name.as_str(), numbers), ("power", (1600, 400, 100)), "{version}");
        let reservations = recording.reservations();
        let names: BTreeSet<&str> = reservations.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["busbar", "maintenance"].into());
        let of = |name: &str| reservations.iter().find(|one| one.name == name).unwrap();
        assert_eq!(of("busbar").licences, [("power".to_owned(), 100)].into());
        assert_eq!(
            (of("maintenance").nodes.to_string().as_str(), of("maintenance").users.len()),
            ("n7", 1)
        );
        assert!(of("maintenance").begins < of("maintenance").ends);
    }
}

/// A call that is missing in the list would not be recorded.
#[test]
fn slurms_programs_are_called_by_the_list_alone() {
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None if path.is_dir() && !path.ends_with("tests") => sources(&path, found),
                Some(extension) if extension == "rs" && !path.ends_with("tests.rs") => {
                    found.push(path)
                }
                _ => (),
            }
        }
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&workspace.join("src"), &mut files);
    for crate_of in fs::read_dir(workspace.join("crates")).unwrap() {
        sources(&crate_of.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 100);
    let programs =
        ["scontrol", "squeue", "scancel", "salloc", "sbatch", "sinfo", "sacctmgr", "sdiag", "srun"];
    for path in files.iter().filter(|path| !path.ends_with("slurm/src/calls.rs")) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for program in programs {
            let calls = [format!("(\"{program}\", &["), format!("Command::new(\"{program}\")")];
            let found = calls.iter().any(|call| code.contains(call));
            assert!(!found, "{} calls {program} without crates/slurm/src/calls.rs", path.display());
        }
    }
    let all: BTreeSet<&str> = Reading::ALL.iter().map(|reading| reading.file()).collect();
    assert_eq!(all.len(), Reading::ALL.len());
}

/// A cluster that is a few scripts.
fn scripts(folder: &Path, jobs: &str) -> Programs {
    use std::os::unix::fs::PermissionsExt;
    fs::write(folder.join("jobs"), jobs).unwrap();
    let squeue = "#!/bin/sh\ncase $1 in --json) echo '{\"jobs\": [{\"job_id\": 7, \"name\": \"secret\", \"user_name\": \"ann\", \
        \"comment\": \"busbar app=x; secret\", \"command\": \"/home/ann/secret\", \"job_state\": [\"RUNNING\"], \
        \"later\": {\"key\": \"secret\"}, \"nodes\": \"n1\"}]}';; *) cat \"$(dirname \"$0\")/jobs\";; esac\n";
    let scontrol = "#!/bin/sh\ncase \"$*\" in\n--version) echo slurm 22.05.8;;\n*node) echo 'NodeName=n1 CPUAlloc=1 CPUTot=4 \
        NodeAddr=10.9.8.7 OS=Linux secret #1 State=DOWN Partitions=main Reason=ann broke it x=y [ann@1795034049] Comment=secret';;\n\
        *config) printf 'ClusterName = secret\\nSlurmctldHost[0] = secret(10.9.8.7)\\nSlurmUser = ann(7)\\nMinJobAge = 300 sec\\n\
        Prolog = /home/ann/prolog\\n';;\n*reservation) echo secret >&2; exit 1;;\nesac\n";
    for (name, text) in [("squeue", squeue), ("scontrol", scontrol)] {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Programs::default().in_folder(folder)
}

/// What cannot be read in text is read in JSON.
#[test]
fn the_other_form_tells_what_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let commands = Commands::new(scripts(folder.path(), "7|nonsense"));
    let jobs = commands.jobs().unwrap();
    assert_eq!((jobs.len(), jobs[0].id, jobs[0].nodes.to_string().as_str()), (1, 7, "n1"));
    assert!(jobs[0].has_nodes() && jobs.lost == 0);
    // A version that refuses the question in this form may answer it in the other.
    let squeue = folder.path().join("squeue");
    let text = fs::read_to_string(&squeue).unwrap();
    let refusing = "echo 'squeue: error: Invalid job format specification: Comment' >&2; exit 1";
    fs::write(&squeue, text.replace("cat \"$(dirname \"$0\")/jobs\"", refusing)).unwrap();
    assert_eq!(commands.jobs().unwrap().read, jobs.read);
    // There is no other form of nodes on 22.05.
    assert_eq!(commands.nodes().unwrap().len(), 1);
}

/// Slurm says nothing when a job is held that has begun meanwhile.
#[test]
fn a_job_that_runs_is_not_held() {
    let folder = tempfile::tempdir().unwrap();
    let commands = Commands::new(scripts(folder.path(), "7|nonsense"));
    let error = commands.hold(&[JobRef::whole(7)]).unwrap_err();
    assert!(error.to_string().contains("they have no admin hold"), "{error}");
}

#[test]
fn names_are_replaced_unless_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let (separator, end) = ("|00busbar00|", "|00busbar00!\n");
    let fields = text::FIELDS.map(|field| match field {
        "UserName" | "Account" => "ann",
        "Name" | "Comment" => "secret",
        "State" => "RUNNING",
        "NodeList" => "n1",
        _ => "7",
    });
    let jobs = fields.join(separator) + end + "8|00busbar00|secret" + end;
    let programs = scripts(folder.path(), &jobs);
    let into = folder.path().join("answers");
    record(&programs, &into, false).unwrap();
    let error = record(&programs, &into, false).unwrap_err();
    assert!(error.to_string().contains("is not empty"), "{error}");
    for entry in fs::read_dir(&into).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for word in ["secret", "ann", "10.9.8.7", "/home"] {
            assert!(!text.contains(word), "{word} is in {}: {text}", path.display());
        }
    }
    let recording = Recording::read(&into).unwrap();
    let jobs = format().read(recording.asked(Reading::Jobs));
    assert_eq!((jobs[0].user.as_str(), jobs[0].nodes.len(), jobs.unread.len()), ("user1", 1, 1));
    assert!(recording.asked(Reading::JobsInJson).contains("busbar app=x;comment"));
    assert!(recording.asked(Reading::Configuration).contains("SlurmUser = user1(7)"));
    let failed =
        recording.calls.iter().find(|entry| entry.reading == Reading::Reservations).unwrap();
    assert_eq!(failed.exit, Some(1));
    let named = folder.path().join("named");
    record(&programs, &named, true).unwrap();
    assert!(Recording::read(&named).unwrap().asked(Reading::Jobs).contains("secret"));
}

/// What jobs ask for of shared nodes, and have of them, as their options say (`recorded-shared/make-jobs.sh`). What Slurm says of
/// each node is what its jobs have.
#[test]
fn recorded_parts_of_nodes_are_understood() {
    use crate::parts::{self, Held, Part};
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded-shared/22.05");
    let recording = Recording::read(&folder).unwrap();
    let jobs = format().read_with_parts(recording.asked(Reading::JobsWithParts));
    assert!(jobs.unread.is_empty(), "{:?}", jobs.unread);
    let json = recording.json(Reading::JobsInJson).jobs_with_parts().unwrap();
    let details = parts::details(recording.asked(Reading::PartsOfJobs));
    let part = |cpus, memory_mib, gpus| Part { cpus, memory_mib, gpus, is_exclusive: false };
    let asked = [
        (1, part(2, 300, 0)),
        (2, part(3, 150, 0)),
        (3, part(3, 300, 2)),
        (4, part(1, 100, 3)),
        (5, part(2, 200, 2)),
        (6, Part { is_exclusive: true, ..part(4, 400, 0) }),
        (7, part(3, 300, 0)),
        (8, part(2, UNKNOWN, 0)),
        (9, part(2, 200, 0)),
        // One processor on each of two sockets.
        (10, part(2, 200, UNKNOWN)),
    ];
    for (id, part) in asked {
        let of = |jobs: &Listing<Job>| jobs.iter().find(|job| job.id == id).unwrap().clone();
        assert_eq!(of(&jobs).part, Some(part), "job {id}");
        // This version leaves out in JSON what words there are for nobody else on the nodes.
        let is_exclusive = part.is_exclusive;
        let in_json = of(&json).part.map(|part| Part { is_exclusive, ..part });
        assert_eq!((in_json, of(&json).held), (Some(part), None), "job {id}");
    }
    let nodes = text::nodes(recording.asked(Reading::Nodes));
    for node in nodes.iter() {
        let here = details.values().flatten().filter(|held| held.node == node.name);
        let sum = here.fold((0, 0, 0), |sum, held: &Held| {
            (sum.0 + held.cpus, sum.1 + held.memory_mib, sum.2 + held.gpus)
        });
        assert_eq!(
            (node.cpus_in_use, node.memory_in_use_mib, node.gpus_in_use),
            sum,
            "{}",
            node.name
        );
    }
    let running: BTreeSet<u32> =
        jobs.iter().filter(|job| job.has_nodes()).map(|job| job.id).collect();
    assert_eq!(running, details.keys().copied().collect());
}

/// From 24.11 on, JSON says what jobs have of their nodes; the cluster gave whole ones, of 4 processors, and does not count memory.
#[test]
fn recorded_parts_in_json_are_understood() {
    for recording in recordings() {
        let jobs = recording.json(Reading::JobsInJson).jobs_with_parts().unwrap();
        let says = recording.version >= "24.11.0".parse().unwrap();
        for job in jobs.iter().filter(|job| job.has_nodes()) {
            let part = job.part.unwrap();
            assert!(part.is_whole() || part.cpus == 4, "{}: {job:?}", recording.version);
            let held = job
                .held
                .as_ref()
                .map(|held| (held.len(), held[0].cpus, held[0].memory_mib, held[0].gpus));
            assert_eq!(held, says.then_some((job.nodes.len(), 4, 0, 0)), "{}", recording.version);
        }
    }
}
