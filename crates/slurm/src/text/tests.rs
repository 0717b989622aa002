use super::*;
use proptest::prelude::*;

use crate::model::Hold;
use crate::parts::Part;

/// What `squeue` of 22.05 prints for one job, with values by field.
fn printed(changes: &[(&str, &str)]) -> String {
    let usual = |field: &str| match field {
        "JobID" | "ArrayJobID" => "11",
        "ArrayTaskID" | "HetJobID" | "HetJobOffset" => "N/A",
        "UserName" => "ann",
        "UserID" => "1000",
        "Partition" => "main",
        "State" => "PENDING",
        "Reason" => "JobHeldAdmin",
        "NumNodes" | "NumCPUs" | "Requeue" => "1",
        "MaxNodes" => "3",
        "SubmitTime" => "1794879569",
        "EligibleTime" | "StartTime" | "EndTime" => "N/A",
        "TimeLimit" => "5:00",
        "PriorityLong" | "exit_code" | "RestartCnt" => "0",
        "NodeList" | "ReqNodes" => "",
        "Name" => "wrap",
        _ => "(null)",
    };
    let values = FIELDS.map(|field| {
        changes.iter().find(|(name, _)| *name == field).map_or(usual(field), |(_, value)| value)
    });
    values.join("|w|") + "|w!\n"
}

fn read(changes: &[(&str, &str)]) -> Job {
    let mut jobs = JobFormat::with_word("w").read(&printed(changes));
    assert_eq!(jobs.read.len(), 1, "{:?}", jobs.unread);
    jobs.read.remove(0)
}

#[test]
fn a_held_job_is_read() {
    let job = read(&[("admin_comment", "busbar")]);
    assert_eq!((job.id, job.user.as_str(), job.uid), (11, "ann", 1000));
    assert_eq!((job.state, job.hold), (JobState::Pending, Some(Hold::Admin)));
    assert_eq!((job.nodes_min, job.nodes_max, job.limit_minutes), (1, 3, Some(5)));
    assert_eq!((job.submitted, job.started), (Some(1_794_879_569), None));
    assert_eq!((job.account, job.array, job.het), (None, None, None));
    assert_eq!(job.admin_comment.as_deref(), Some("busbar"));
    assert!(job.may_requeue);
    let job = read(&[("Reason", "JobHeldUser")]);
    assert_eq!(job.hold, Some(Hold::User));
    let job = read(&[("Reason", "job requeued in held state")]);
    assert_eq!(job.hold, Some(Hold::Slurm));
    let job = read(&[("Reason", "Priority"), ("PriorityLong", "4294901759")]);
    assert_eq!((job.hold, job.reason.as_deref()), (None, Some("Priority")));
}

#[test]
fn a_running_job_is_read() {
    let running = [
        ("State", "RUNNING"),
        ("Reason", "None"),
        ("NodeList", "n[1-2]"),
        ("NumNodes", "2"),
        ("Licenses", "power:400"),
        ("TimeLimit", "1-12:00:30"),
    ];
    let job = read(&running);
    assert_eq!(job.nodes.names(), ["n1", "n2"]);
    // What it asked for does not count any more.
    assert_eq!((job.nodes_min, job.nodes_max), (2, 2));
    assert_eq!((job.reason, job.limit_minutes), (None, Some(36 * 60 + 1)));
    assert_eq!(job.licences["power"], 400);
    let job = read(&[("TimeLimit", "UNLIMITED"), ("State", "FAILED"), ("exit_code", "768")]);
    assert_eq!((job.limit_minutes, job.exit), (None, Some(Exit { code: 3, signal: 0 })));
}

/// What one version prints as a number, another prints as code and signal. Whoever prints something else again still
/// has jobs.
#[test]
fn exits_are_read_as_any_version_prints_them() {
    for (text, exit) in [
        ("0", Some((0, 0))),
        ("9", Some((0, 9))),
        ("768", Some((3, 0))),
        ("3:0", Some((3, 0))),
        ("0:9", Some((0, 9))),
        ("", None),
        ("3:0:1", None),
    ] {
        let job = read(&[("exit_code", text), ("State", "FAILED")]);
        assert_eq!(job.exit.map(|exit| (exit.code, exit.signal)), exit, "{text}");
    }
}

#[test]
fn elements_of_arrays_and_components_are_read() {
    let job = read(&[("ArrayJobID", "6"), ("JobID", "6"), ("ArrayTaskID", "3-5%2")]);
    assert_eq!(job.reference().to_string(), "6");
    assert_eq!(job.array.unwrap().tasks.to_string(), "3-5%2");
    let job = read(&[("ArrayJobID", "6"), ("JobID", "9"), ("ArrayTaskID", "2")]);
    assert_eq!(job.reference().to_string(), "6_2");
    let job = read(&[("HetJobID", "11"), ("HetJobOffset", "0")]);
    assert_eq!(job.het, Some(HetPart { job: 11, offset: 0 }));
}

#[test]
fn users_cannot_forge_fields() {
    let text = "x| y |State=RUNNING\n12|q|13|q!\n, JobState=RUNNING";
    let job = read(&[("Comment", text), ("Name", "a|b\n")]);
    assert_eq!((job.comment.as_deref(), job.name.as_str()), (Some(text), "a|b\n"));
    assert_eq!(job.state, JobState::Pending);
}

/// One field or one job that cannot be read hides nothing else, and what is unknown is never zero.
#[test]
fn what_cannot_be_read_is_unknown_and_hides_nothing() {
    let format = JobFormat::with_word("w");
    assert_eq!((format.read(""), format.read("\n")), (Listing::default(), Listing::default()));
    let whole = printed(&[("JobID", "12")]);
    for (text, reason) in [
        ("1|w|2|w!\n".to_owned(), "job 1: it has 2 fields instead of 31"),
        ("12|w|".to_owned(), "in the middle of a job"),
        (printed(&[("ArrayTaskID", "1-...")]), "job 11: ArrayTaskID is '1-...'"),
        (printed(&[("JobID", "")]), "job : JobID is ''"),
    ] {
        let jobs = format.read(&(whole.clone() + &text));
        assert_eq!(jobs.read.iter().map(|job| job.id).collect::<Vec<_>>(), [12]);
        assert_eq!((jobs.unread.len(), jobs.lost), (1, 1));
        assert!(jobs.unread[0].to_string().contains(reason), "{}", jobs.unread[0]);
    }
    for (field, value) in [
        ("NumNodes", "many"),
        ("NodeList", "n[1"),
        ("ReqNodes", "]"),
        ("UserID", "ann"),
        ("TimeLimit", "soon"),
        ("Licenses", "power:much"),
        ("PriorityLong", "-1"),
        ("State", ""),
        ("SubmitTime", "2026-11-18T05:44:44"),
    ] {
        let jobs = format.read(&(printed(&[(field, value)]) + &whole));
        assert_eq!(jobs.read.iter().map(|job| job.id).collect::<Vec<_>>(), [11, 12]);
        assert_eq!((&jobs.read[0].unread[..], jobs.lost), (&[field.to_owned()][..], 0));
        assert!(jobs.read[1].unread.is_empty());
        let expected = format!("job 11: {field} is '{value}'");
        assert_eq!(jobs.unread[0].to_string(), expected);
    }
    let job = read(&[("NumNodes", "many"), ("UserID", "x"), ("NumCPUs", "")]);
    assert_eq!(
        (job.nodes_min, job.nodes_max, job.uid, job.cpus),
        (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    );
    // It is held as far as its reason says, if the priority does not.
    assert_eq!(read(&[("PriorityLong", "x")]).hold, Some(Hold::Admin));
    assert!(JobFormat::new().unwrap().argument().starts_with("JobID:0|"));
}

/// A job that has nodes has them whatever else of it cannot be read, and in whichever state it is.
#[test]
fn a_job_with_nodes_keeps_them() {
    let nodes = [("NodeList", "n[1-2]"), ("NumNodes", "?"), ("UserID", "?"), ("TimeLimit", "?")];
    for state in ["RUNNING", "UNHEARD_OF", ""] {
        let job = read(&[&nodes[..], &[("State", state), ("ArrayTaskID", "?")]].concat());
        assert!(job.has_nodes() && !job.state.has_ended(), "{state}");
        assert_eq!((job.nodes.len(), job.nodes_min), (2, 2));
    }
    assert!(!read(&[("State", "UNHEARD_OF")]).has_nodes());
}

#[test]
fn nodes_are_read() {
    let text = "NodeName=n4 Arch=x86_64 CPUAlloc=4 CPUEfctv=4 CPUTot=8 NodeAddr=127.0.0.1 OS=Linux 6.1 #1 SMP @0  \
                State=ALLOCATED+DRAIN ThreadsPerCore=1 Partitions=main,free  BootTime=1794806949 CapWatts=n/a \
                Reason=busbar: no agent State=IDLE [root@1794879586]\n\
                NodeName=n5 CPUAlloc=0 CPUTot=8 NodeAddr=n5 State=DOWN* Partitions=main\n";
    let nodes = nodes(text);
    assert_eq!(nodes.len(), 2);
    assert_eq!((nodes[0].cpus, nodes[0].cpus_in_use), (8, 4));
    assert_eq!(nodes[0].state.to_string(), "ALLOCATED+DRAIN");
    assert_eq!(nodes[0].reason.as_deref(), Some("busbar: no agent State=IDLE"));
    assert_eq!(nodes[0].partitions, ["main", "free"]);
    assert_eq!(
        (nodes[1].address.as_str(), nodes[1].state.to_string().as_str()),
        ("n5", "DOWN+NOT_RESPONDING")
    );
    let unclear = super::nodes(
        "NodeName=n1 CPUTot=2\nNodeName= State=IDLE\nNodeName=n2 CPUTot=4 CPUAlloc=0 State=IDLE\n",
    );
    assert_eq!(unclear.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
    assert!(!unclear[0].state.is_usable() && unclear[0].cpus_in_use == UNKNOWN);
    let unread: Vec<String> = unclear.unread.iter().map(Unread::to_string).collect();
    let expected = [
        "node n1: CPUAlloc cannot be read",
        "node n1: State cannot be read",
        "node: NodeName is ''",
    ];
    assert_eq!(unread, expected);
}

#[test]
fn partitions_licences_and_reservations_are_read() {
    let text = "PartitionName=main AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[1-4] State=UP\n\
                PartitionName=free Default=NO MaxTime=01:00:00 Nodes=(null) State=DOWN\n";
    let partitions = partitions(text);
    assert_eq!((partitions[0].nodes.len(), partitions[0].most_minutes), (4, None));
    assert!(partitions[0].is_up);
    assert_eq!((partitions[1].is_up, partitions[1].most_minutes), (false, Some(60)));
    let licences =
        licences("LicenseName=power Total=10000 Used=750 Free=9250 Reserved=8000 Remote=no\n");
    assert_eq!((licences[0].total, licences[0].used, licences[0].reserved), (10_000, 750, 8000));
    let text = "ReservationName=busbar StartTime=1794879586 EndTime=1826415586 Duration=365-00:00:00 Nodes=(null) NodeCnt=0 \
                Flags=IGNORE_JOBS,ANY_NODES TRES=(null) Users=root Licenses=power:9000 State=ACTIVE\n";
    let reservations = reservations(text);
    assert_eq!(reservations[0].licences["power"], 9000);
    assert_eq!(
        (reservations[0].begins, reservations[0].users[0].as_str()),
        (Some(1_794_879_586), "root")
    );
    assert!(super::reservations("No reservations in the system\n").is_empty());
    assert!(super::licences("No licenses configured in Slurm.\n").is_empty());
    // Numbers of licences are a budget: one that is not known is none.
    let text = "LicenseName=a Total=? Used=0 Reserved=0\nLicenseName=b Total=3 Used=0 Reserved=0\n";
    let licences = super::licences(text);
    assert_eq!((licences.len(), licences[0].name.as_str()), (1, "b"));
    assert_eq!(licences.unread[0].to_string(), "licence a: Total is '?'");
}

proptest! {
    /// Whatever is done to one record, the others are read, and nobody panics.
    #[test]
    fn mutilated_answers_hide_nothing(
        lines in prop::collection::vec(".{0,60}", 0..4),
        cut in 0usize..400,
        insert in "[|=, a-zA-Z0-9\\[\\]!:-]{0,12}",
        place in 0usize..3,
    ) {
        let format = JobFormat::with_word("w");
        let mut records: Vec<String> = ["11", "12", "13"].map(|id| printed(&[("JobID", id)])).to_vec();
        let broken = &mut records[place];
        let at = (0..=cut.min(broken.len())).rev().find(|at| broken.is_char_boundary(*at)).unwrap_or(0);
        // What separates jobs cannot be in what users write.
        let end = broken.len() - "|w!\n".len();
        broken.replace_range(at.min(end)..(at + 7).min(end), &insert);
        let jobs = format.read(&records.concat());
        for (id, _) in [11, 12, 13].into_iter().zip(0..).filter(|(_, other)| *other != place) {
            prop_assert!(jobs.iter().any(|job| job.id == id && job.unread.is_empty()));
        }
        let whole = "NodeName=n1 CPUAlloc=0 CPUTot=4 State=IDLE Partitions=main\n";
        let text = lines.concat().replace('\n', " ") + "\n" + whole + &lines.join("\n") + "\n" + whole;
        prop_assert!(super::nodes(&text).iter().filter(|node| node.name == "n1" && node.cpus == 4).count() >= 2);
        for printed in [&text, &insert] {
            super::partitions(printed);
            super::licences(printed);
            super::reservations(printed);
        }
    }
}

/// What 22.05.8 prints of a job on shared nodes, before all other fields.
#[test]
fn a_job_on_shared_nodes_is_read() {
    let read = |parts: [&str; 8], changes: &[(&str, &str)]| {
        let fields = parts.join("|w|");
        let format = JobFormat::with_word("w");
        let printed = format!("{fields}|w|{}", printed(changes));
        let mut jobs = format.read_with_parts(&printed);
        assert!(jobs.unread.is_empty(), "{:?}", jobs.unread);
        jobs.read.remove(0)
    };
    let usual =
        ["3", "100M", "cpu=3,mem=300M,node=1,billing=3", "gres:gpu:2", "N/A", "N/A", "N/A", "OK"];
    let job = read(usual, &[("NumCPUs", "3")]);
    let part = Part { cpus: 3, memory_mib: 300, gpus: 2, is_exclusive: false };
    assert_eq!((job.part, job.cpus), (Some(part), 3));
    let with = |place: usize, text: &'static str| {
        let mut parts = usual;
        parts[place] = text;
        read(parts, &[("NumCPUs", "3")]).part.unwrap()
    };
    assert!(with(7, "NO").is_whole() && with(7, "USER").is_whole() && !with(7, "YES").is_whole());
    assert!(with(3, "gres:gpu:a100:many").is_whole(), "nobody knows how many");
    assert_eq!(with(1, "1.5G").memory_mib, UNKNOWN);
    // Of a job without these fields nothing is known.
    assert!(JobFormat::with_word("w").read_with_parts(&printed(&[])).read.is_empty());
}

/// A node with GPUs, as `scontrol -o -d show node` of 22.05.8 prints it.
#[test]
fn a_node_with_gpus_is_read() {
    let line = "NodeName=n5 Arch=x86_64 CoresPerSocket=1 CPUAlloc=7 CPUEfctv=8 CPUTot=8 CPULoad=2.90 Gres=gpu:4 GresDrain=N/A \
                GresUsed=gpu:3(IDX:0-2) NodeAddr=127.0.0.1 RealMemory=2000 AllocMem=700 State=MIXED Partitions=gpu,all ";
    let node = nodes(line).read.remove(0);
    assert_eq!(
        (node.cpus, node.cpus_in_use, node.memory_mib, node.memory_in_use_mib),
        (8, 7, 2000, 700)
    );
    assert_eq!((node.gpus, node.gpus_in_use), (4, 3));
    let node = nodes(&line.replace("GresUsed=gpu:3(IDX:0-2)", "")).read.remove(0);
    assert_eq!((node.gpus, node.gpus_in_use), (4, UNKNOWN), "unknown is not none");
}
