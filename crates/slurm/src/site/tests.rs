use std::path::Path;

use super::*;

fn site(files: &[(&str, &str)]) -> Result<Site, String> {
    let mut reader = SiteReader::default();
    for (file, text) in files {
        reader.read(file, text).map_err(|error| error.to_string())?;
    }
    reader.finish(&[]).map_err(|error| error.to_string())
}

/// Two kinds as `scontrol show node` prints them without `-o`, with what may stand in its way: a kernel with a hash, and
/// a reason with a key in it.
const NODES: &str = "\
NodeName=cpu1 Arch=x86_64 CoresPerSocket=24
   CPUAlloc=4 CPUEfctv=96 CPUTot=96 CPULoad=0.10
   AvailableFeatures=ib,avx512
   ActiveFeatures=ib,avx512
   Gres=(null)
   NodeAddr=cpu1 NodeHostName=cpu1 Version=23.11.4
   OS=Linux 5.15.0-91-generic #101-Ubuntu SMP Tue Nov 14 13:30:08 UTC 2023
   RealMemory=256000 AllocMem=0 FreeMem=20000 Sockets=2 Boards=1
   State=DOWN+DRAIN ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=short,long
   Reason=lost Sockets=1 of two [root@2024-01-01T00:00:00]

NodeName=cpu2 CPUTot=96 CPULoad=0.10 AvailableFeatures=avx512,ib Gres=(null) OS=Linux 5.15 #101 RealMemory=256000 Sockets=2 State=IDLE Partitions=short,long
NodeName=gpu1 CPUTot=64 AvailableFeatures=(null) Gres=gpu:a100:4(S:0-1),shard:8 RealMemory=512000 Sockets=2 State=IDLE Partitions=gpu
";

const PARTITIONS: &str = "\
PartitionName=short AllowGroups=ALL
   MaxTime=01:00:00 Nodes=cpu[1-2] TotalCPUs=192 TotalNodes=2 State=UP
PartitionName=long Nodes=cpu[1-2] TotalNodes=2
PartitionName=gpu Nodes=gpu1 TotalNodes=1
PartitionName=empty Nodes=(null) TotalNodes=0
";

fn shape(
    sockets: u32,
    processors: u32,
    memory_mib: u64,
    gpus: &[(&str, u32)],
    features: &[&str],
) -> Shape {
    Shape {
        sockets,
        processors,
        memory_mib,
        gpus: gpus.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
        features: features.iter().map(|feature| (*feature).to_owned()).collect(),
        weight: 1,
    }
}

fn kinds(site: &Site) -> Vec<(String, Shape)> {
    site.kinds.iter().map(|kind| (kind.nodes.to_string(), kind.shape.clone())).collect()
}

fn partitions(site: &Site) -> Vec<(&str, String)> {
    site.partitions.iter().map(|part| (part.name.as_str(), part.nodes.to_string())).collect()
}

#[test]
fn what_scontrol_prints() {
    let found = site(&[("nodes.txt", NODES), ("partitions.txt", PARTITIONS)]).unwrap();
    let expected = [
        ("cpu[1-2]".to_owned(), shape(2, 96, 256_000, &[], &["avx512", "ib"])),
        ("gpu1".to_owned(), shape(2, 64, 512_000, &[("a100", 4)], &[])),
    ];
    assert_eq!(kinds(&found), expected);
    let expected = [("short", "cpu[1-2]"), ("long", "cpu[1-2]"), ("gpu", "gpu1")];
    assert_eq!(partitions(&found), expected.map(|(name, nodes)| (name, nodes.to_owned())));
    // Nodes name their partitions themselves, in the order of the alphabet.
    let alone = site(&[("nodes.txt", NODES)]).unwrap();
    assert_eq!(partitions(&alone)[0], ("gpu", "gpu1".to_owned()));
    assert_eq!(alone.partitions.len(), 3);
}

#[test]
fn configuration() {
    let slurm = "\
# The cluster
ClusterName=alps  # its name
SelectType=select/cons_tres
NodeName=DEFAULT Boards=1 SocketsPerBoard=2 CoresPerSocket=24 ThreadsPerCore=2
NodeName=DEFAULT RealMemory=256000
nodename=cpu[1-2] feature=ib \\
    State=UNKNOWN
NodeName=gpu[1-2] CPUs=64 Sockets=1 Gres=gpu:4
NodeName=later[1-9] State=FUTURE
NodeSet=accelerated Nodes=gpu[1-2]
NodeSet=fast Feature=ib
PartitionName=DEFAULT Nodes=ALL State=UP
PartitionName=all Default=YES
PartitionName=gpu Nodes=accelerated
PartitionName=ib Nodes=fast
";
    let gres = "AutoDetect=off\nNodeName=gpu1 Name=gpu Type=h100 File=/dev/nvidia[0-3]\nNodeName=gpu2 AutoDetect=nvml\n";
    let topology = "SwitchName=leaf1 Nodes=cpu[1-2]\nSwitchName=spine Switches=leaf1\n";
    let all = [("slurm.conf", slurm), ("gres.conf", gres), ("topology.conf", topology)];
    let found = site(&all).unwrap();
    assert_eq!(found.name.as_deref(), Some("alps"));
    let expected = [
        ("cpu[1-2]".to_owned(), shape(2, 96, 256_000, &[], &["ib"])),
        ("gpu1".to_owned(), shape(1, 64, 256_000, &[("h100", 4)], &[])),
        ("gpu2".to_owned(), shape(1, 64, 256_000, &[("", 4)], &[])),
    ];
    assert_eq!(kinds(&found), expected);
    let expected = [("all", "cpu[1-2],gpu[1-2]"), ("gpu", "gpu[1-2]"), ("ib", "cpu[1-2]")];
    assert_eq!(partitions(&found), expected.map(|(name, nodes)| (name, nodes.to_owned())));
    assert_eq!(found.switches.len(), 1);
    // What was found on the nodes counts, in whichever order it is given.
    let live = "NodeName=cpu1 CPUTot=48 Sockets=2 RealMemory=1000 Gres=(null)";
    for files in [[("a", live), all[0]], [all[0], ("a", live)]] {
        let found = site(&files).unwrap();
        let cpu1 = found.kinds.iter().find(|kind| kind.nodes.names().contains(&"cpu1".to_owned()));
        assert_eq!(cpu1.unwrap().shape.processors, 48);
    }
}

/// Text and JSON of a version give the same site. Names and sizes are those of the lab: eight nodes of four processors.
#[test]
fn recorded_answers_of_all_versions() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
    for version in ["22.05", "23.11", "24.11", "25.11", "26.05"] {
        let read = |file: &str| std::fs::read_to_string(folder.join(version).join(file));
        let text = [read("nodes.txt").unwrap(), read("partitions.txt").unwrap()];
        let in_text = site(&[("nodes.txt", &text[0]), ("partitions.txt", &text[1])]).unwrap();
        let expected = [("n[1-8]".to_owned(), shape(4, 4, 1000, &[], &[]))];
        assert_eq!(kinds(&in_text), expected, "{version}");
        assert_eq!(partitions(&in_text), [("main", "n[1-8]".to_owned())], "{version}");
        if let (Ok(nodes), Ok(partitions)) = (read("nodes.json"), read("partitions.json")) {
            let in_json =
                site(&[("nodes.json", &nodes), ("partitions.json", &partitions)]).unwrap();
            assert_eq!((in_json.kinds, in_json.partitions), (in_text.kinds, in_text.partitions));
        }
    }
}

#[test]
fn gpus_in_all_forms() {
    let read = |text: &str| gpus(text).map(|gpus| gpus.into_iter().collect::<Vec<_>>());
    let one = |kind: &str, count| Ok(vec![(kind.to_owned(), count)]);
    assert_eq!(read("gpu:a100:4(S:0-1)"), one("a100", 4));
    assert_eq!([read("gpu:2"), read("gpu")], [one("", 2), one("", 1)]);
    assert_eq!([read("gpu:v100"), read("gpu:no_consume:3")], [one("v100", 1), one("", 3)]);
    assert_eq!(read("gpu:a:1(S:0,1),gpu:b:2,shard:8").unwrap().len(), 2);
    assert_eq!(
        [read(""), read("(null)"), read("craynetwork:4")],
        [Ok(vec![]), Ok(vec![]), Ok(vec![])]
    );
    assert!(read("gpu:a:many").unwrap_err().contains("'many' is not a number"));
}

#[test]
fn mistakes_are_named() {
    let error = |text: &str| site(&[("f", text)]).unwrap_err();
    assert_eq!(
        error("ClusterName=x\nNodeName=n1 CPUs=many"),
        "f, line 2: 'CPUs' is 'many', which is not a number"
    );
    assert!(error("NodeName=n[1-").starts_with("f, line 1: 'NodeName': the list of nodes"));
    assert!(error("hello").starts_with("f: it has no nodes, partitions or switches"));
    assert!(error("{\"jobs\": []}").contains("no list 'nodes' or 'partitions'"));
    assert!(error("{\"nodes\":\n [}").starts_with("f, line 2: it is not JSON"));
    assert!(error("{\"nodes\": [{\"name\": \"n1\"}]}").contains("node n1: 'cpus' is missing"));
    assert!(error("PartitionName=a Nodes=n1").contains("no node is described"));
    let unknown = error("NodeName=n1 CPUs=4\n\nPartitionName=a Nodes=n[1-2]");
    assert_eq!(
        unknown,
        "f, line 3: 'Nodes' of the partition 'a' has 'n2', of which no record tells"
    );
    let mut reader = SiteReader::default();
    reader.read("f", "NodeName=n1 CPUs=4\nPartitionName=a Nodes=n1").unwrap();
    let error = reader.finish(&["b".to_owned()]).unwrap_err().to_string();
    assert_eq!(error, "the cluster: there is no partition 'b'; there are a");
}
