use super::*;

/// Lines of `scontrol -o -d show job` of 22.05.8, without what nobody reads.
fn line(number: u32, name: &str, nodes: &str) -> String {
    format!(
        "JobId={number} JobName={name} UserId=ann(1000) NodeList=n[1-2] NumNodes=2 CoreSpec=* JOB_GRES=(null)   {nodes} \
         MinCPUsNode=1 MinMemoryCPU=50M Features=(null) OverSubscribe=OK Comment=x Power= \n"
    )
}

#[test]
fn what_jobs_have_of_nodes_is_read() {
    let uneven =
        line(2, "b", "Nodes=n1 CPU_IDs=2-3 Mem=100 GRES=   Nodes=n2 CPU_IDs=0-2 Mem=150 GRES=");
    let even = line(
        12,
        "wrap",
        "Nodes=n[2-3] CPU_IDs=0-2,7 Mem=300 GRES=gpu:a100:2(IDX:0,3),fpga:1(IDX:0)",
    );
    let waits = "JobId=13 JobName=wrap JOB_GRES=(null) MinCPUsNode=2 MinMemoryCPU=100M\n";
    let found = details(&(uneven + &even + waits));
    let held =
        |node: &str, cpus, memory_mib, gpus| Held { node: node.to_owned(), cpus, memory_mib, gpus };
    assert_eq!(found[&2], [held("n1", 2, 100, 0), held("n2", 3, 150, 0)]);
    assert_eq!(found[&12], [held("n2", 4, 300, 2), held("n3", 4, 300, 2)]);
    assert_eq!(found.len(), 2, "who waits has nothing");
}

/// Each of these would have fewer processors than it has.
#[test]
fn what_users_may_have_made_up_is_not_known() {
    let true_one = "Nodes=n1 CPU_IDs=0-3 Mem=100 GRES=";
    let false_one = "JOB_GRES=(null) Nodes=n1 CPU_IDs=0 Mem=1 GRES= MinCPUsNode=1";
    assert!(details(&line(7, false_one, true_one)).is_empty(), "in its name");
    let of_another = format!("x\nJobId=8 JobName=y {false_one}");
    let printed = line(7, &of_another, true_one) + &line(8, "z", true_one);
    assert!(details(&printed).is_empty(), "in a line of its name");
    assert_eq!(details(&line(8, "z", true_one))[&8][0].cpus, 4);
    let in_comment = line(7, "x", true_one).replace("Comment=x", &format!("Comment={false_one}"));
    assert!(details(&in_comment).is_empty());
    for wrong in ["CPU_IDs=3-0", "CPU_IDs=", "CPU_IDs=a", "CPU_IDs=0-4294967295"] {
        let found = details(&line(7, "x", &format!("Nodes=n1 {wrong} Mem=9.5G GRES=shard:2")));
        let Held { cpus, memory_mib, gpus, .. } = found[&7][0];
        assert_eq!((cpus, memory_mib, gpus), (UNKNOWN, UNKNOWN, UNKNOWN), "{wrong}");
    }
}

#[test]
fn gpus_are_counted_in_every_form() {
    for (list, count) in [
        ("", Some(0)),
        ("N/A", Some(0)),
        ("gres:gpu:2", Some(2)),
        ("gres/gpu:2", Some(2)),
        ("gres/gpu=2", Some(2)),
        ("gpu", Some(1)),
        ("gres:gpu:a100", Some(1)),
        ("gres/gpu:a100:3,gres/gpu:v100:1", Some(4)),
        ("gpu:2(IDX:0,2)", Some(2)),
        ("gres:fpga:2", Some(0)),
        ("gres/shard:3", None),
        ("gres:mps:50", None),
        ("gpu:a100:many", None),
        ("gpu:4294967295,gpu:1", None),
    ] {
        assert_eq!(gpus(list), count, "{list}");
    }
}

#[test]
fn requests_are_those_of_a_node() {
    let asked = Asked {
        nodes: 2,
        cpus: 5,
        tasks: Some(5),
        memory: AskedMemory::OfProcessor(50),
        gres: ["", "", "", ""],
        is_exclusive: false,
    };
    let part = |asked: Asked<'_>| asked.part();
    let of = |cpus, memory_mib, gpus| Part { cpus, memory_mib, gpus, is_exclusive: false };
    assert_eq!(
        part(asked),
        of(3, 150, 0),
        "three processors on each of two nodes are enough for five"
    );
    assert_eq!(part(Asked { memory: AskedMemory::OfNode(70), ..asked }), of(3, 70, 0));
    assert_eq!(part(Asked { gres: ["gres:gpu:2", "", "", ""], ..asked }).gpus, 2);
    assert_eq!(part(Asked { gres: ["", "gres:gpu:3", "", ""], ..asked }).gpus, 2);
    assert_eq!(part(Asked { gres: ["", "", "gres:gpu:1", ""], ..asked }).gpus, 3);
    let unknown = [
        Asked { gres: ["", "", "gres:gpu:1", ""], tasks: None, ..asked },
        Asked { gres: ["", "", "", "gres:gpu:1"], ..asked },
        Asked { gres: ["gres:shard:1", "", "", ""], ..asked },
        Asked { cpus: UNKNOWN, ..asked },
        Asked { is_exclusive: true, ..asked },
    ];
    assert!(unknown.into_iter().all(|asked| part(asked).is_whole()));
    assert_eq!(part(Asked { memory: AskedMemory::All, ..asked }).memory_mib, UNKNOWN);
}

/// What 22.05.8 printed of jobs with these options.
#[test]
fn memory_is_that_of_a_node_or_of_a_processor() {
    use AskedMemory::{All, OfNode, OfProcessor};
    for (least, in_all, cpus, expected) in [
        ("300M", "cpu=2,mem=300M,node=1,billing=2", 2, OfNode(300)),
        ("50M", "cpu=5,mem=250M,node=2,billing=5", 5, OfProcessor(50)),
        ("100M", "cpu=9,mem=900M,node=1,billing=9", 9, OfProcessor(100)),
        ("0", "cpu=2,mem=1000M,node=1,billing=2", 2, All),
        ("100M", "", 2, OfProcessor(100)),
        ("many", "mem=1000M", 2, All),
    ] {
        assert_eq!(memory(least, in_all, cpus), expected, "{least} {in_all}");
    }
    assert_eq!((mebibytes("2G"), mebibytes("1.50G"), mebibytes("7K")), (Some(2048), None, None));
}
