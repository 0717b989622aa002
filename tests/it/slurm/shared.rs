//! A real Slurm with two kinds of nodes, GPUs, and nodes that jobs share: what is read of it, and what it is told.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use busbar::slurm::cluster::{Cluster, JobUpdate};
use busbar::slurm::model::{JobRef, JobState};
use busbar::slurm::parts::{Held, Part};
use busbar_needs::needs;

use super::{Running, hosts, text};
use crate::patience::wait_until;

fn held(node: &str, cpus: u32, memory_mib: u32, gpus: u32) -> Held {
    Held { node: node.to_owned(), cpus, memory_mib, gpus }
}

/// Four nodes of 4 processors and 1000 MiB, two of 8 processors, 2000 MiB and 4 GPUs; a processor comes with 100 MiB.
#[needs(slurm)]
#[test]
fn jobs_on_shared_nodes_are_read_and_placed_part_by_part() {
    let running = Running::start("4", "watch", &["--gpu-nodes", "2", "--shared"]);
    super::assert_on_loopback(&running.lab);
    let cluster = &running.cluster;
    let sleep = "sleep infinity";
    let submit =
        |arguments: &[&str]| running.submit(&[arguments, &["--wrap", sleep]].concat(), None);
    let part = |cpus, memory_mib, gpus| Part { cpus, memory_mib, gpus, is_exclusive: false };
    let asked = [
        (submit(&["-n2", "-N1", "--mem=300"]), part(2, 300, 0)),
        (submit(&["-n5", "-N2", "--mem-per-cpu=50"]), part(3, 150, 0)),
        (submit(&["-pgpu", "-n3", "--gres=gpu:2"]), part(3, 300, 2)),
        (submit(&["-pgpu", "-n1", "--gpus=3"]), part(1, 100, 3)),
        (submit(&["-pgpu", "-n2", "-N1", "--gpus-per-task=1"]), part(2, 200, 2)),
        (submit(&["-n1", "--exclusive"]), Part { is_exclusive: true, ..part(4, 400, 0) }),
    ];
    let jobs = asked.map(|(job, _)| job);
    for job in jobs {
        running.await_job(job, "running", |job| job.state == JobState::Running);
    }
    let listing = cluster.jobs_with_parts().unwrap();
    assert!(listing.unread.is_empty(), "{:?}", listing.unread);
    let found = |number: u32| listing.iter().find(|job| job.id == number).unwrap();
    for (job, part) in asked {
        assert_eq!(found(job).part, Some(part), "job {job}");
    }
    // Slurm says of each node what a job has of it, and of each node what all of them have.
    let mut of_nodes: BTreeMap<String, (u32, u32, u32)> = BTreeMap::new();
    for job in listing.iter() {
        for held in job.held.iter().flatten() {
            let sum = of_nodes.entry(held.node.clone()).or_default();
            *sum = (sum.0 + held.cpus, sum.1 + held.memory_mib, sum.2 + held.gpus);
        }
    }
    let nodes = cluster.nodes().unwrap();
    let shapes: Vec<_> = nodes.iter().map(|node| (node.cpus, node.memory_mib, node.gpus)).collect();
    assert_eq!(shapes, [[(4, 1000, 0); 4].as_slice(), &[(8, 2000, 4); 2]].concat());
    for node in nodes.iter() {
        let sum = of_nodes.get(&node.name).copied().unwrap_or_default();
        assert_eq!(
            (node.cpus_in_use, node.memory_in_use_mib, node.gpus_in_use),
            sum,
            "{}",
            node.name
        );
    }
    assert_eq!(found(jobs[0]).held, Some(vec![held("n1", 2, 300, 0)]));
    let uneven: u32 = found(jobs[1]).held.iter().flatten().map(|held| held.cpus).sum();
    assert_eq!((uneven, found(jobs[1]).held.as_ref().unwrap().len()), (5, 2));
    // The emulated meters draw as much, if not less is allowed: 160 W more than an idle node for all 4 processors of a node.
    for (node, kind) in [(1, (20_u64, 160_u64, 4_u64)), (5, (120, 1140, 8))] {
        let (idle, most, cpus) = kind;
        let path = running.lab.tree(node).join("demand_uw");
        let used = of_nodes[&format!("n{node}")].0;
        let expected = 1_000_000 * idle + 1_000_000 * most * u64::from(used) / cpus;
        wait_until("what the node would draw", || {
            let said: u64 = fs::read_to_string(&path).unwrap().trim().parse().unwrap();
            // Each of its jobs is rounded down.
            (expected - 3..=expected).contains(&said)
        });
    }

    // One that waits gets the same part of each of the nodes that are chosen for it.
    for job in jobs {
        cluster.cancel(JobRef::whole(job)).unwrap();
        running.await_job(job, "over", |job| job.state.has_ended());
    }
    let first = submit(&["-n3", "-N1", "-wn2"]);
    running.await_job(first, "running", |job| job.state == JobState::Running);
    let second = JobRef::whole(running.submit(&["-H", "-N2", "-n5", "--wrap", sleep], None));
    let update = |of_node: u32, nodes: &str| JobUpdate {
        nodes: Some((2, 2)),
        cpus: Some((2 * of_node, of_node)),
        required: Some(hosts(nodes)),
        ..JobUpdate::default()
    };
    cluster.start(second, &update(3, "n3,n4")).unwrap();
    running.await_job(second.job, "running", |job| job.state == JobState::Running);
    let listing = cluster.jobs_with_parts().unwrap();
    let job = listing.iter().find(|job| job.id == second.job).unwrap();
    assert_eq!(job.held, Some(vec![held("n3", 3, 300, 0), held("n4", 3, 300, 0)]));
    // Where there is too little left of one of them, it waits.
    let third = JobRef::whole(running.submit(&["-H", "-N2", "-n4", "--wrap", sleep], None));
    cluster.start(third, &update(2, "n1,n2")).unwrap();
    running.await_job(third.job, "without nodes", |job| job.reason.as_deref() == Some("Resources"));
    cluster.cancel(JobRef::whole(first)).unwrap();
    running.await_job(third.job, "running", |job| job.state == JobState::Running);
    running.down();
}

/// What is made of the description of such a lab is what the lab has a machine file of: only Slurm does not know watts.
#[needs(slurm)]
#[test]
fn a_machine_file_is_made_of_a_lab_with_two_kinds_of_nodes() {
    let running = Running::start("2", "watch", &["--gpu-nodes", "1", "--shared", "--no-agents"]);
    let import = |out: &str| {
        let made = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["machine", "import", "--slurm", "--conf"])
            .arg(running.place().join("slurm.conf"))
            .args(["--out", out])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", text(&made));
    };
    let path = running.folder.path().join("machine.toml");
    import(path.to_str().unwrap());
    let file = fs::read_to_string(path).unwrap();
    let without_power = |file: &str| -> Vec<String> {
        let lines = file.lines().map(|line| line.split(" #").next().unwrap().trim());
        let is_kept =
            |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("power.");
        lines.filter(is_kept).map(str::to_owned).collect()
    };
    let expected = "name = \"lab\"
        [[partition]]
        name = \"cpu-nodes\"
        nodes = 2
        processors_per_node = 4
        sockets_per_node = 2
        memory = \"1000MiB\"
        shared = true
        [[partition]]
        name = \"gpu-nodes\"
        nodes = 1
        processors_per_node = 8
        sockets_per_node = 2
        memory = \"2000MiB\"
        gpus = 4
        shared = true
        [[partition]]
        name = \"cpu\"
        of = [\"cpu-nodes\"]
        shared = true
        [[partition]]
        name = \"gpu\"
        of = [\"gpu-nodes\"]
        shared = true
        [[partition]]
        name = \"all\"
        of = [\"cpu-nodes\", \"gpu-nodes\"]
        shared = true";
    assert_eq!(without_power(&file), without_power(expected), "{file}");
    running.down();
}
