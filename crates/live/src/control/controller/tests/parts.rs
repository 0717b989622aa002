//! Nodes of several kinds, and nodes that jobs share: who has which part of a node, and what is refused.

use std::collections::BTreeSet;
use std::path::Path;

use super::random::{last_resort, step, tell_with};
use super::*;
use crate::job::{PartRequest, Place};
use busbar_core::machine::check_text;

/// Two shared nodes with four processors, and one with two processors and two GPUs; one node of four processors that nobody shares.
const SITE: &str = "processors_per_node = 4\n[power]\nnode = '100W'\nidle = '20W'\n\
    [[partition]]\nname = 'cpu'\nnodes = 2\nshared = true\nmemory = '16GiB'\n\
    [[partition]]\nname = 'gpu'\nnodes = 1\nprocessors_per_node = 2\nshared = true\npower.node = '200W'\n\
    power.gpus = 2\npower.gpu = '60W'\n\
    [[partition]]\nname = 'own'\nnodes = 1\n\
    [[partition]]\nname = 'any'\nof = ['gpu', 'cpu']\nshared = true\n";

/// The same below a row with a rack.
const FED: &str = "[[feed]]\nname = 'row'\nlimit = 'none'\nnodes = 'cpu[0],gpu'\n\
    [[feed]]\nname = 'rack'\nlimit = 'none'\nparent = 'row'\nnodes = 'cpu[1]'\n";

fn on(policy: &str) -> Setup {
    described(policy, SITE)
}

fn described(policy: &str, text: &str) -> Setup {
    thread_local!(static KNOWN: RefCell<BTreeMap<String, Setup>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        let new = || {
            let machine = check_text(text, "m", Path::new("")).unwrap().choose(&[]).unwrap();
            Setup::new(&machine, Repertoire::of(&[]), policy.parse().unwrap()).unwrap()
        };
        known.entry(format!("{policy} {text}")).or_insert_with(new).clone()
    })
}

/// Makes of a request of a random story one of parts of nodes: which, its number of nodes and its time say.
pub(super) fn ask(request: &mut JobRequest) {
    let (nodes, dice) = (request.nodes, request.time.millis() / 1000);
    let partition = [None, Some("cpu"), Some("gpu"), Some("own"), Some("any")][dice as usize % 5];
    let gpus = (dice % 5 == 2 && nodes % 2 == 0).then_some(1);
    request.part = PartRequest {
        partition: partition.map(str::to_owned),
        processors: (dice % 7 != 0).then_some(nodes),
        gpus,
        memory_mib: (dice % 3 == 0 && partition == Some("cpu")).then_some(5 << 10),
        exclusive: dice % 11 == 0,
    };
    request.nodes = 1;
}

fn asking(part: PartRequest, seconds: u32) -> Submission {
    let mut submission = submission(1, seconds);
    submission.request.part = part;
    submission
}

fn of(partition: &str, processors: u32) -> PartRequest {
    let partition = Some(partition.to_owned());
    PartRequest { partition, processors: Some(processors), ..PartRequest::default() }
}

impl World {
    /// What jobs that run have of nodes is there, and nobody else has it.
    pub(super) fn check_parts(&self) {
        let Some(kinds) = &self.controller.setup.machine.kinds else { return };
        let sizes = kinds.groups().iter().enumerate().flat_map(|(place, group)| {
            group.nodes.clone().map(move |node| (node, kinds.kind_of(place).size))
        });
        let mut free: BTreeMap<u32, NodeSize> = sizes.collect();
        let mut cores: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut gpus: BTreeSet<(u32, u32)> = BTreeSet::new();
        for entry in self.controller.jobs.values() {
            let Some(run) = entry.run() else { continue };
            let part = run.allotment.part.as_ref().expect("it has a part of each node");
            for node in run.allotment.node_numbers() {
                let size = free.get_mut(&node).unwrap();
                let left = |has: u32, takes: u32| {
                    has.checked_sub(takes).unwrap_or_else(|| panic!("too much of node {node}"))
                };
                size.processors = left(size.processors, part.processors);
                size.gpus = left(size.gpus, part.gpus);
                if part.memory_mib > 0 {
                    size.memory_mib = left(size.memory_mib, part.memory_mib);
                }
                let Some(Place { cores: its_cores, gpus: its_gpus }) = run.allotment.place_on(node)
                else {
                    continue;
                };
                assert_eq!(its_cores.len(), part.processors as usize, "job {}", entry.number);
                assert_eq!(its_gpus.len(), part.gpus as usize, "job {}", entry.number);
                for core in its_cores {
                    assert!(cores.insert((node, *core)), "core {core} of node {node} is taken");
                }
                for gpu in its_gpus {
                    assert!(gpus.insert((node, *gpu)), "GPU {gpu} of node {node} is taken");
                }
            }
        }
    }
}

#[test]
fn jobs_share_a_node_and_each_has_processors_of_its_own() {
    let mut world = World::new(on("easy"), Budget::unlimited());
    for processors in [1, 2, 3] {
        world.submit(at(0), asking(of("cpu", processors), 100));
    }
    world.cycle(at(0));
    let has = |world: &World, job: u64| {
        let allotment = world.controller.jobs[&job].run().unwrap().allotment.clone();
        let places = allotment.part.clone().unwrap().places;
        (allotment.node_numbers(), places.into_iter().map(|place| place.cores).collect::<Vec<_>>())
    };
    assert_eq!(has(&world, 1), (vec![0], vec![vec![0]]));
    assert_eq!(has(&world, 2), (vec![0], vec![vec![1, 2]]));
    assert_eq!(has(&world, 3), (vec![1], vec![vec![0, 1, 2]]), "one is left of the first node");
    // The first gives its processor back, and somebody gets it beside the last one.
    world.end(at(10), first(1), End::Exited(0));
    world.submit(at(10), asking(of("cpu", 2), 100));
    world.cycle(at(10));
    assert_eq!(has(&world, 4), (vec![0], vec![vec![0, 3]]));
    let node = &world.controller.nodes()[0];
    let part = node.part.as_ref().unwrap();
    assert_eq!((part.jobs.as_slice(), part.processors, part.free_processors), (&[2, 4][..], 4, 0));
    assert_eq!(node.cap, None, "the cap of a shared node is nobody's alone");
}

#[test]
fn a_new_daemon_knows_who_has_which_part() {
    let mut world = World::new(on("easy"), Budget::unlimited());
    world.submit(at(0), asking(PartRequest { gpus: Some(1), ..of("gpu", 1) }, 100));
    world.submit(at(0), asking(of("cpu", 3), 100));
    world.cycle(at(0));
    let before = world.controller.jobs.clone();
    world.restart(at(5));
    assert_eq!(world.controller.jobs, before);
    world.submit(at(6), asking(PartRequest { gpus: Some(1), ..of("gpu", 1) }, 100));
    world.cycle(at(6));
    let gpus = |job: u64| {
        let run = world.controller.jobs[&job].run().unwrap();
        run.allotment.part.as_ref().unwrap().places[0].gpus.clone()
    };
    assert_eq!([gpus(1), gpus(3)], [vec![0], vec![1]]);
    world.check_parts();
}

#[test]
fn what_no_node_has_is_refused_with_what_is_missing() {
    let mut world = World::new(on("easy"), Budget::unlimited());
    let mut refused = |part: PartRequest| {
        let submission = asking(part, 100);
        world.controller.submit(at(0), ALICE, submission, &|_| None).unwrap_err().message
    };
    let said = refused(PartRequest { memory_mib: Some(20 << 10), ..of("cpu", 1) });
    assert!(said.starts_with("--mem: no node can hold the job"), "{said}");
    assert!(said.ends_with("asks for 20480 MiB (memory of a node), and partition 'cpu' has 16384 MiB, 4096 MiB too few"), "{said}");
    let said = refused(PartRequest { gpus: Some(3), ..of("gpu", 1) });
    assert!(
        said.contains("asks for 3 (GPUs of a node), and partition 'gpu' has 2, 1 too few"),
        "{said}"
    );
    let said = refused(of("own", 9));
    assert!(
        said.contains("asks for 3 (nodes of one kind), and partition 'own' has 1, 2 too few"),
        "{said}"
    );
    let said = refused(of("cpi", 1));
    assert!(
        said.starts_with("-p cpi: the machine has no such partition; did you mean 'cpu'?"),
        "{said}"
    );
    let alike = World::new(setup("easy"), Budget::unlimited());
    let request = asking(of("cpu", 1), 1).request;
    let said = alike.controller.check_request(&request).unwrap_err().message;
    assert!(said.starts_with("-p: this machine has nodes of one kind"), "{said}");
}

#[test]
fn who_wants_nodes_alone_waits_for_them() {
    let mut world = World::new(on("fcfs"), Budget::unlimited());
    world.submit(at(0), asking(of("cpu", 1), 100));
    world.submit(at(0), asking(PartRequest { exclusive: true, ..of("cpu", 1) }, 100));
    world.submit(at(0), asking(PartRequest { exclusive: true, ..of("cpu", 1) }, 100));
    world.cycle(at(0));
    assert_eq!(world.on.values().cloned().collect::<Vec<_>>(), [vec![0], vec![1]]);
    assert_eq!(world.state(3, at(0)), (State::Waiting, Some("for nodes".to_owned())));
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::default() })]

    /// The stories of machines of one kind, on nodes that jobs share.
    #[test]
    fn stories_on_shared_nodes(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("conservative"), Just("slurm"), Just("easy-power"),
            Just("pb-guided(bsld_lower=5)"), Just("parm(flex=none)"), Just("share"),
            Just("share(use=caps, order=history)"), Just("share(use=recaps)"),
            Just("ppartition"), Just("uniform"), Just("uniform(cap=min)"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell_with(Setup { last_resort, ..on(policy) }, &steps);
    }

    /// The same below feeds.
    #[test]
    fn stories_on_shared_nodes_below_feeds(
        policy in prop_oneof![
            Just("fcfs"), Just("easy"), Just("easy-power"), Just("pb-guided(bsld_lower=5)"),
            Just("share(use=recaps)"), Just("uniform"),
        ],
        last_resort in last_resort(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        tell_with(Setup { last_resort, ..described(policy, &format!("{SITE}{FED}")) }, &steps);
    }
}
