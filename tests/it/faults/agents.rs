//! A daemon whose nodes have agents: 16 of them, each a process of its own with an emulated node, under several
//! policies, while limits fall and agents and daemons are killed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use busbar::live::job::{EventKind, NodeState};
use busbar::live::wire::{NodeLine, Reply, Request};
use busbar::units::Watts;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::served::{BUSBAR, Served};
use crate::patience::{wait_for, wait_or};

mod late;
mod relay;
mod restart;
mod rival;
mod storm;

use relay::Relay;

const NODES: usize = 16;

/// Each node has two packages of 40 to 100 W, which draw 10 W when they are idle.
const MACHINE: &str = "nodes = 16\n[power]\nnode = \"200W\"\nidle = \"20W\"\nrest = \"0W\"\n\
                       [caps]\nlevels = [\"80W\", \"120W\", \"160W\", \"200W\"]\n";

/// With BUSBAR_AGENTS=1, more jobs and more kills, which take minutes.
fn is_in_full() -> bool {
    std::env::var_os("BUSBAR_AGENTS").is_some_and(|value| value == "1")
}

/// How many kills of daemons and agents there are in a storm. BUSBAR_STORMS=N asks for so many.
fn kills_of_storms() -> u32 {
    let asked = std::env::var("BUSBAR_STORMS").ok();
    asked.map_or(12, |text| text.parse().expect("BUSBAR_STORMS is a number of kills, such as 250"))
}

/// How long a daemon waits for acts and agents, and they for it.
struct Terms {
    deadline: &'static str,
    lease: &'static str,
    within: &'static str,
}

/// Agents that are killed are missed at once, and those that are only slow are waited for.
const PATIENT: Terms = Terms { deadline: "15min", lease: "15min", within: "15min" };

/// Agents that are stopped or cut off are missed soon.
const STRICT: Terms = Terms { deadline: "5s", lease: "3s", within: "2s" };

/// The agents of 16 emulated nodes.
struct Cluster {
    served: Served,
    agents: Vec<Option<Child>>,
    /// The lines to the agents, if they can be cut.
    relays: Vec<Relay>,
}

impl Cluster {
    fn new(policy: &str, more: &str) -> Self {
        Cluster::reached_by(policy, more, "socket", PATIENT)
    }

    /// A cluster whose agents can be cut off.
    fn with_relays(policy: &str) -> Self {
        let mut cluster = Cluster::reached_by(policy, "", "relay", STRICT);
        let line = |number: usize| {
            let folder = cluster.folder(number);
            Relay::begin(&folder.join("relay"), folder.join("socket"))
        };
        cluster.relays = (0..NODES).map(line).collect();
        cluster
    }

    /// A cluster whose agents are reached by the file of this name in their folders.
    fn reached_by(policy: &str, more: &str, socket: &str, terms: Terms) -> Self {
        let served = Served::new(policy, "");
        let Terms { deadline, lease, within } = terms;
        let node = |number: usize| {
            format!(
                "{{ name = \"n{number}\", address = \"n{number}/{socket}\", demand = \"n{number}/tree/demand_uw\" }}"
            )
        };
        let nodes: Vec<String> = (0..NODES).map(node).collect();
        let config = format!(
            "state = \"state\"\nsocket = \"socket\"\nmachine = \"machine.toml\"\nbudget = \"2200W\"\n\
             policy = \"{policy}\"\n{more}\nperiod = \"200ms\"\n[engine]\ndeadline = \"{deadline}\"\n\
             [agents]\nlease = \"{lease}\"\nwithin = \"{within}\"\nnodes = [{}]\n[local]\npin = false\n",
            nodes.join(", ")
        );
        fs::write(served.path("machine.toml"), MACHINE).unwrap();
        fs::write(served.path("busbar.toml"), config).unwrap();
        let agents = (0..NODES).map(|_| None).collect();
        let mut cluster = Cluster { served, agents, relays: Vec::new() };
        for number in 0..NODES {
            let folder = cluster.folder(number);
            fs::create_dir(&folder).unwrap();
            let made = Command::new(BUSBAR)
                .args(["agent", "emulate", "create"])
                .arg(folder.join("tree"))
                .stdout(Stdio::null())
                .status();
            assert!(made.unwrap().success());
            let config = format!(
                "node = \"n{number}\"\nstate = \"{folder}/state\"\nperiod = \"100ms\"\n[hardware]\n\
                 powercap = \"{folder}/tree\"\nhwmon = \"{folder}/none\"\nemulate = true\n[gpu]\nnvml = false\n\
                 [caps]\nlease = \"15min\"\n[listen]\nsocket = \"{folder}/socket\"\n",
                folder = folder.display()
            );
            fs::write(folder.join("agent.toml"), config).unwrap();
            cluster.begin_agent(number);
        }
        cluster
    }

    fn folder(&self, number: usize) -> PathBuf {
        self.served.path(&format!("n{number}"))
    }

    fn begin_agent(&mut self, number: usize) {
        let log = self.folder(number).join("log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        let agent = Command::new(BUSBAR)
            .args(["agent", "run", "--config"])
            .arg(self.folder(number).join("agent.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.agents[number] = Some(agent.unwrap());
    }

    fn kill_agent(&mut self, number: usize) {
        let mut agent = self.agents[number].take().expect("an agent to kill");
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// The caps that nodes have, in watts, and whether a job wants to draw power there.
    fn nodes(&self) -> Vec<(u64, bool)> {
        let read = |number: usize, name: &str| -> u64 {
            let path = self.folder(number).join("tree").join(name);
            // A file that is being written may be empty for a moment.
            wait_for("a value of an emulated node", || {
                let text = fs::read_to_string(&path).unwrap();
                text.trim().parse().ok()
            })
        };
        let limit = "constraint_0_power_limit_uw";
        let node = |number: usize| {
            let caps = ["intel-rapl:0", "intel-rapl:1"];
            let cap: u64 = caps.iter().map(|zone| read(number, &format!("{zone}/{limit}"))).sum();
            (cap / 1_000_000, read(number, "demand_uw") > 0)
        };
        (0..NODES).map(node).collect()
    }

    fn submit(&self, nodes: u32, script: &str) -> u64 {
        match self.served.ask(&self.served.job(nodes, script)) {
            Reply::Submitted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    fn lines(&self) -> Vec<NodeLine> {
        match self.served.ask(&Request::Nodes) {
            Reply::Nodes(lines) => lines,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until all agents have answered and every node has the cap that the daemon says; those caps, in watts.
    fn settled(&self) -> Vec<u64> {
        wait_for("caps that are as the daemon says", || {
            let is_up = self.lines().iter().all(|line| line.state == NodeState::Up);
            self.caps_if_as_said().filter(|_| is_up)
        })
    }

    /// The caps of all nodes in watts, if they are those that the daemon says.
    fn caps_if_as_said(&self) -> Option<Vec<u64>> {
        // What a job adds to the 20 W that its node draws without it.
        let said = |line: &NodeLine| line.cap.map_or(80, |cap| cap.milliwatts() / 1000 + 20);
        let said: Vec<u64> = self.lines().iter().map(said).collect();
        let caps: Vec<u64> = self.nodes().iter().map(|(cap, _)| *cap).collect();
        (said == caps).then_some(caps)
    }

    /// What all nodes draw now, if nothing changed while this was read.
    fn drawn(&self) -> Option<u64> {
        let nodes = self.nodes();
        let draw = |(cap, wanted): &(u64, bool)| if *wanted { (*cap).min(200) } else { 20 };
        (self.nodes() == nodes).then(|| nodes.iter().map(draw).sum())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for agent in self.agents.iter_mut().flatten() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
    }
}

/// Many jobs on one to four nodes; what nodes draw is within the limit whenever it is looked at, also after it fell to
/// 60 %, an agent was lost and came back, and daemon and agents were killed several times. Every job runs once.
fn jobs_on_agents(policy: &str, seed: u64) {
    let (count, kills) = if is_in_full() { (200, 34) } else { (60, 6) };
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let mut cluster = Cluster::new(policy, "");
    cluster.served.begin_and_answer();
    let mut jobs = Vec::new();
    for _ in 0..count {
        let (nodes, tenths) = (numbers.random_range(1..=4), numbers.random_range(1..12));
        let script = format!(
            "echo $BUSBAR_JOB.$BUSBAR_ATTEMPT begins >> $RECORD; sleep 0.{tenths:02}; echo $BUSBAR_JOB.$BUSBAR_ATTEMPT ends >> $RECORD"
        );
        match cluster.served.ask(&cluster.served.job(nodes, &script)) {
            Reply::Submitted { job, .. } => jobs.push(job),
            other => panic!("{other:?}"),
        }
    }
    let (mut limit, mut looks) = (2200, 0);
    let mut look = |cluster: &Cluster, limit: u64| {
        if let Some(drawn) = cluster.drawn() {
            looks += 1;
            assert!(drawn <= limit, "{drawn} W of {limit} W\n{:?}", cluster.nodes());
        }
    };
    for step in 0..=3 * kills {
        if step == 10 {
            cluster.served.ask(&Request::Budget { set: Some("1320W".to_owned()) });
            // What is to be lowered is lowered soon, and then stays low.
            limit = 1320;
            wait_for("lower caps", || {
                cluster.caps_if_as_said()?;
                cluster.drawn().filter(|drawn| *drawn <= limit)
            });
        }
        if step > 0 && step % 3 == 0 {
            disturb(&mut cluster, &mut numbers);
        }
        look(&cluster, limit);
        sleep(Duration::from_millis(50));
    }
    let is_over = || {
        look(&cluster, limit);
        match cluster.served.ask(&Request::Queue) {
            Reply::Queue(lines) => lines.is_empty().then_some(()),
            other => panic!("{other:?}"),
        }
    };
    wait_or(is_over, || format!("an empty queue\n{}", cluster.served.log()));
    assert!(looks > 5, "{looks}");
    println!("{policy}: {count} jobs, {kills} kills, within the limit at {looks} looks");
    let record = fs::read_to_string(cluster.served.record()).unwrap();
    let mut written: BTreeMap<&str, u32> = BTreeMap::new();
    for line in record.lines() {
        let (attempt, word) = line.split_once(' ').unwrap();
        let (job, _) = attempt.split_once('.').unwrap();
        assert!(jobs.contains(&job.parse().unwrap()), "{line}");
        *written.entry(if word == "begins" { job } else { "" }).or_default() += 1;
    }
    let ends = written.remove("").unwrap_or(0);
    assert!(written.values().all(|times| *times == 1), "{written:?}");
    assert_eq!((written.len(), ends), (jobs.len(), jobs.len() as u32));
    // Nobody runs: all nodes are at their lowest cap.
    wait_for("nodes at their lowest cap", || {
        cluster.nodes().iter().all(|node| *node == (80, false)).then_some(())
    });
}

/// Kills the daemon or an agent, which then begins again.
fn disturb(cluster: &mut Cluster, numbers: &mut impl Rng) {
    match numbers.random_bool(0.3) {
        true => {
            cluster.served.kill();
            cluster.served.begin_and_answer();
        }
        false => {
            let number = numbers.random_range(0..NODES);
            cluster.kill_agent(number);
            sleep(Duration::from_millis(numbers.random_range(0..300)));
            cluster.begin_agent(number);
        }
    }
}

/// What a job was measured to consume is in the history, and is a run in the profile database. What nodes draw is
/// in the answers, and what is not known of a node that is down is left out.
#[test]
fn what_is_measured_is_shown_and_kept() {
    let mut cluster = Cluster::new("easy-power", "profiles = \"profiles.db\"");
    let machine = format!("sockets_per_node = 2\n{MACHINE}");
    fs::write(cluster.served.path("machine.toml"), machine).unwrap();
    let table = "application,nodes,cores,cap_w,time_s,power_w,origin\n\
                 EP,1,1,40,2,80,predicted\nEP,1,1,100,1,200,predicted\n";
    fs::write(cluster.served.path("rows.csv"), table).unwrap();
    let folder = cluster.served.path("");
    let busbar = |arguments: &[&str]| {
        let mut command = Command::new(BUSBAR);
        command.args(arguments).args(["--profiles", "profiles.db"]).current_dir(&folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    busbar(&["profile", "import", "rows.csv"]);
    cluster.served.begin_and_answer();
    wait_for("measured nodes", || {
        let measured = cluster.served.status().power.measured?;
        (measured.nodes == NODES as u32).then(|| assert!(measured.emulated))
    });
    let mut job = cluster.served.job(1, "while [ ! -e go ]; do sleep 0.05; done");
    if let Request::Submit(submission) = &mut job {
        submission.request.application = Some("EP".to_owned());
    }
    let Reply::Submitted { job, .. } = cluster.served.ask(&job) else { panic!("not submitted") };
    // It ends when it has been seen to draw something: twice what an idle node draws.
    wait_for("a node that draws power", || {
        let Reply::Nodes(nodes) = cluster.served.ask(&Request::Nodes) else { panic!("no nodes") };
        let mut drawn = nodes.iter().filter_map(|node| node.measured.as_ref());
        drawn.any(|drawn| drawn.power >= Watts::from_watts(40)).then_some(())
    });
    fs::write(cluster.served.path("go"), "").unwrap();
    let consumed = wait_for("what it consumed", || {
        let history = cluster.served.history();
        history.into_iter().find_map(|line| match line.event.kind {
            EventKind::Consumed { job: of, power, emulated, .. } if of == job => {
                Some((power, emulated))
            }
            _ => None,
        })
    });
    assert!(consumed.1);
    let watts = consumed.0.as_f64();
    // What it draws, with a little of what the idle node drew before and after.
    assert!(watts > 20.0 && watts <= 201.0, "{watts}");
    wait_for("a stored run", || {
        let export = busbar(&["profile", "export"]);
        export.contains("emulated").then_some(())
    });
    cluster.kill_agent(3);
    wait_for("a node that is down", || {
        let Reply::Nodes(nodes) = cluster.served.ask(&Request::Nodes) else { panic!("no nodes") };
        let node = &nodes[3];
        assert_eq!(node.name.as_deref(), Some("n3"));
        matches!(node.state, NodeState::Down { .. }).then(|| assert_eq!(node.measured, None))
    });
}

#[test]
fn rmap_on_agents() {
    jobs_on_agents("rmap-adaptive", 1);
}

#[test]
fn parm_on_agents() {
    jobs_on_agents("parm", 2);
}

#[test]
fn ppartition_on_agents() {
    jobs_on_agents("ppartition", 3);
}
