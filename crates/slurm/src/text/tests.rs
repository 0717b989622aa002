use super::*;
use crate::model::Hold;

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

fn read(changes: &[(&str, &str)]) -> Result<Job, SlurmError> {
    let mut jobs = JobFormat::with_word("w").read(&printed(changes))?;
    assert_eq!(jobs.len(), 1);
    Ok(jobs.remove(0))
}

#[test]
fn a_held_job_is_read() {
    let job = read(&[("admin_comment", "busbar")]).unwrap();
    assert_eq!((job.id, job.user.as_str(), job.uid), (11, "ann", 1000));
    assert_eq!((job.state, job.hold), (JobState::Pending, Some(Hold::Admin)));
    assert_eq!((job.nodes_min, job.nodes_max, job.limit_minutes), (1, 3, Some(5)));
    assert_eq!((job.submitted, job.started), (Some(1_794_879_569), None));
    assert_eq!((job.account, job.array, job.het), (None, None, None));
    assert_eq!(job.admin_comment.as_deref(), Some("busbar"));
    assert!(job.may_requeue);
    let job = read(&[("Reason", "JobHeldUser")]).unwrap();
    assert_eq!(job.hold, Some(Hold::User));
    let job = read(&[("Reason", "job requeued in held state")]).unwrap();
    assert_eq!(job.hold, Some(Hold::Slurm));
    let job = read(&[("Reason", "Priority"), ("PriorityLong", "4294901759")]).unwrap();
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
    let job = read(&running).unwrap();
    assert_eq!(job.nodes.names(), ["n1", "n2"]);
    // What it asked for does not count any more.
    assert_eq!((job.nodes_min, job.nodes_max), (2, 2));
    assert_eq!((job.reason, job.limit_minutes), (None, Some(36 * 60 + 1)));
    assert_eq!(job.licences["power"], 400);
    let job =
        read(&[("TimeLimit", "UNLIMITED"), ("State", "FAILED"), ("exit_code", "768")]).unwrap();
    assert_eq!((job.limit_minutes, job.exit.code), (None, 3));
}

#[test]
fn elements_of_arrays_and_components_are_read() {
    let job = read(&[("ArrayJobID", "6"), ("JobID", "6"), ("ArrayTaskID", "3-5%2")]).unwrap();
    assert_eq!(job.reference().to_string(), "6");
    assert_eq!(job.array.unwrap().tasks.to_string(), "3-5%2");
    let job = read(&[("ArrayJobID", "6"), ("JobID", "9"), ("ArrayTaskID", "2")]).unwrap();
    assert_eq!(job.reference().to_string(), "6_2");
    let job = read(&[("HetJobID", "11"), ("HetJobOffset", "0")]).unwrap();
    assert_eq!(job.het, Some(HetPart { job: 11, offset: 0 }));
}

#[test]
fn users_cannot_forge_fields() {
    let text = "x| y |State=RUNNING\n12|q|13|q!\n, JobState=RUNNING";
    let job = read(&[("Comment", text), ("Name", "a|b\n")]).unwrap();
    assert_eq!((job.comment.as_deref(), job.name.as_str()), (Some(text), "a|b\n"));
    assert_eq!(job.state, JobState::Pending);
}

#[test]
fn what_does_not_fit_is_refused() {
    let format = JobFormat::with_word("w");
    assert!(format.read("").unwrap().is_empty());
    assert!(format.read("\n").unwrap().is_empty());
    for (text, reason) in [
        ("1|w|2|w!\n".to_owned(), "2 fields instead of 31"),
        (printed(&[]) + "12|w|", "in the middle of a job"),
        (printed(&[("NodeList", "n[1")]), "job 11: NodeList is 'n[1'"),
        (printed(&[("NumNodes", "many")]), "job 11: NumNodes is 'many'"),
        (printed(&[("ArrayTaskID", "1-...")]), "job 11: ArrayTaskID"),
    ] {
        let error = format.read(&text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(JobFormat::new().unwrap().argument().starts_with("JobID:0|"));
}

#[test]
fn nodes_are_read() {
    let text = "NodeName=n4 Arch=x86_64 CPUAlloc=4 CPUEfctv=4 CPUTot=8 NodeAddr=127.0.0.1 OS=Linux 6.1 #1 SMP @0  \
                State=ALLOCATED+DRAIN ThreadsPerCore=1 Partitions=main,free  BootTime=1794806949 CapWatts=n/a \
                Reason=busbar: no agent State=IDLE [root@1794879586]\n\
                NodeName=n5 CPUAlloc=0 CPUTot=8 NodeAddr=n5 State=DOWN* Partitions=main\n";
    let nodes = nodes(text).unwrap();
    assert_eq!(nodes.len(), 2);
    assert_eq!((nodes[0].cpus, nodes[0].cpus_in_use), (8, 4));
    assert_eq!(nodes[0].state.to_string(), "ALLOCATED+DRAIN");
    assert_eq!(nodes[0].reason.as_deref(), Some("busbar: no agent State=IDLE"));
    assert_eq!(nodes[0].partitions, ["main", "free"]);
    assert_eq!(
        (nodes[1].address.as_str(), nodes[1].state.to_string().as_str()),
        ("n5", "DOWN+NOT_RESPONDING")
    );
    assert!(super::nodes("NodeName=n1 CPUTot=2\n").is_err());
}

#[test]
fn partitions_licences_and_reservations_are_read() {
    let text = "PartitionName=main AllowGroups=ALL Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n[1-4] State=UP\n\
                PartitionName=free Default=NO MaxTime=01:00:00 Nodes=(null) State=DOWN\n";
    let partitions = partitions(text).unwrap();
    assert_eq!((partitions[0].nodes.len(), partitions[0].most_minutes), (4, None));
    assert!(partitions[0].is_up && partitions[0].is_default);
    assert_eq!((partitions[1].is_up, partitions[1].most_minutes), (false, Some(60)));
    let licences =
        licences("LicenseName=power Total=10000 Used=750 Free=9250 Reserved=8000 Remote=no\n")
            .unwrap();
    assert_eq!((licences[0].total, licences[0].used, licences[0].reserved), (10_000, 750, 8000));
    let text = "ReservationName=busbar StartTime=1794879586 EndTime=1826415586 Duration=365-00:00:00 Nodes=(null) NodeCnt=0 \
                Flags=IGNORE_JOBS,ANY_NODES TRES=(null) Users=root Licenses=power:9000 State=ACTIVE\n";
    let reservations = reservations(text).unwrap();
    assert_eq!(reservations[0].licences["power"], 9000);
    assert_eq!(
        (reservations[0].begins, reservations[0].users[0].as_str()),
        (Some(1_794_879_586), "root")
    );
    assert!(super::reservations("No reservations in the system\n").unwrap().is_empty());
    assert!(super::licences("No licenses configured in Slurm.\n").unwrap().is_empty());
}
