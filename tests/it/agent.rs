//! The node agent as a process: how it starts, stops and outlives its own end.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use busbar::agent::client::{Address, Client};
use busbar::agent::wire::{Answer, Caps, Request};
use busbar::units::Watts;
use busbar_needs::needs;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::patience::PATIENCE;

const CONFIGURATION: &str = r#"
node = "n1"
state = "state"
[hardware]
powercap = "tree"
emulate = true
[listen]
socket = "socket"
"#;

/// An emulated node in a temporary folder.
struct Node(tempfile::TempDir);

impl Node {
    fn new() -> Self {
        let node = Node(tempfile::tempdir().unwrap());
        fs::write(node.0.path().join("agent.toml"), CONFIGURATION).unwrap();
        assert!(node.busbar(&["emulate", "create", "tree"]).status.success());
        assert!(node.busbar(&["emulate", "demand", "tree", "180W"]).status.success());
        node
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.arg("agent").args(arguments).current_dir(self.0.path());
        command
    }

    fn busbar(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts the agent, and waits until it says that it is ready.
    fn start(&self) -> Child {
        let place = self.0.path().join("notify");
        let _ = fs::remove_file(&place);
        let manager = UnixDatagram::bind(&place).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = self.command(&["run", "--config", "agent.toml"]);
        let child = command.env("NOTIFY_SOCKET", &place).stderr(Stdio::piped()).spawn().unwrap();
        let mut heard = [0; 64];
        let count = loop {
            match manager.recv(&mut heard) {
                // A process that was held up hears that first.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => break count.unwrap(),
            }
        };
        assert_eq!(&heard[..count], b"READY=1");
        child
    }

    fn connect(&self) -> Client {
        let address = Address::Unix(self.0.path().join("socket"));
        Client::connect(&address, "n1", None, "test", true, PATIENCE).unwrap()
    }

    fn limits_in_milliwatts(&self) -> [u64; 2] {
        [0, 1].map(|zone| {
            let file = format!("tree/intel-rapl:{zone}/constraint_0_power_limit_uw");
            let text = fs::read_to_string(self.0.path().join(file)).unwrap();
            text.trim().parse::<u64>().unwrap() / 1000
        })
    }

    /// The limits in the tree itself, in watts.
    fn limits(&self) -> [u64; 2] {
        self.limits_in_milliwatts().map(|limit| limit / 1000)
    }
}

fn set(client: &mut Client, watts: u32) {
    let request = Request::Set(Caps::Node { cap: Watts::from_watts(watts) });
    let Answer::Set(report) = client.ask(request).unwrap() else { panic!() };
    assert!(report.is_confirmed());
}

/// Ends an agent as a service manager does, and returns what it said.
fn terminate(child: Child) -> String {
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    text(&output)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

#[test]
fn caps_outlive_a_killed_agent_and_end_with_a_stopped_one() {
    let node = Node::new();
    let mut agent = node.start();
    set(&mut node.connect(), 120);
    assert_eq!(node.limits(), [60, 60]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(node.limits(), [60, 60]);
    // The next one knows the caps and who counts on them, and keeps them when it is stopped.
    let agent = node.start();
    let status = text(&node.busbar(&["status", "--config", "agent.toml"]));
    assert!(status.contains("120W counted, caps from 80W to 200W"), "{status}");
    assert!(status.contains("controlled by user"), "{status}");
    assert!(status.contains("node n1 (emulated): "), "{status}");
    let said = terminate(agent);
    assert!(said.contains("the caps stay, because user"), "{said}");
    assert_eq!(node.limits(), [60, 60]);
    // A node that was released has its own limits again.
    let agent = node.start();
    assert!(matches!(node.connect().ask(Request::Release), Ok(Answer::Set(_))));
    assert!(terminate(agent).contains("the site's own limits are restored"));
    assert_eq!(node.limits(), [100, 100]);
}

#[test]
fn an_operator_restores_limits_without_an_agent() {
    let node = Node::new();
    let mut agent = node.start();
    set(&mut node.connect(), 120);
    let output = text(&node.busbar(&["restore", "--config", "agent.toml"]));
    assert!(output.contains("another agent uses"), "{output}");
    agent.kill().unwrap();
    agent.wait().unwrap();
    let output = text(&node.busbar(&["restore", "--config", "agent.toml"]));
    assert_eq!(output, "restored 2 limits\n");
    assert_eq!(node.limits(), [100, 100]);
}

#[needs(root)]
#[test]
fn other_users_are_refused_by_the_kernels_word() {
    let node = Node::new();
    fs::set_permissions(node.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let agent = node.start();
    let program = Path::new(env!("CARGO_BIN_EXE_busbar"));
    let copy = node.0.path().join("busbar");
    // Other users may not reach the folder of the build.
    fs::copy(program, &copy).unwrap();
    let mut command = Command::new(copy);
    command.args(["agent", "status", "--socket", "socket"]).current_dir(node.0.path()).uid(65_534);
    // A process that another test just starts may have inherited the copy while it was written.
    let output = loop {
        match command.output() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => continue,
            output => break output.unwrap(),
        }
    };
    assert_eq!(output.status.code(), Some(2));
    let output = text(&output);
    assert!(output.contains("user 65534 may not use this agent"), "{output}");
    terminate(agent);
}

/// What an ordinary user has prepared, so that an agent of root's writes their limits and to their files.
#[needs(root)]
#[test]
fn what_somebody_else_prepared_is_not_used() {
    let node = Node::new();
    let path = |name: &str| node.0.path().join(name);
    let mut agent = node.start();
    set(&mut node.connect(), 120);
    agent.kill().unwrap();
    agent.wait().unwrap();
    let known = fs::read_to_string(path("state/limits.json")).unwrap();
    let forged = known.replace("100000000", "900000000");
    assert_ne!(forged, known);
    fs::write(path("state/limits.json"), forged).unwrap();
    let refused = |what: &str| {
        chown(path(what), Some(65_533), None).unwrap();
        for command in ["restore", "run"] {
            let output = node.busbar(&[command, "--config", "agent.toml"]);
            let said = text(&output);
            assert!(!output.status.success(), "{command}: {said}");
            assert!(said.contains(&format!("{what} belongs to user 65533")), "{said}");
            // A new folder would hold nothing that could be restored.
            let is_restored = command == "restore" && what == "state";
            let advice = if is_restored { "setpriv" } else { "name a new folder with" };
            assert!(said.contains(advice), "{command} {what}: {said}");
            assert!(!said.contains("chown"), "{said}");
        }
        chown(path(what), Some(0), None).unwrap();
        assert_eq!(node.limits(), [60, 60], "nothing was written");
    };
    for what in ["state", "state/limits.json", "state/changes.log", "state/lock"] {
        refused(what);
    }
    for what in ["tree", "tree/intel-rapl:0", "tree/intel-rapl:0/enabled", "tree/demand_uw"] {
        refused(what);
    }
    fs::write(path("state/limits.json"), known).unwrap();
    // A link in the place of a file of the agent's, as it would be after 'chown -R'.
    fs::write(path("target"), "as it was").unwrap();
    for what in ["state/changes.log", "state/limits.json.new", "tree/intel-rapl:0/enabled.new"] {
        let _ = fs::remove_file(path(what));
        symlink(path("target"), path(what)).unwrap();
        let output = node.busbar(&["restore", "--config", "agent.toml"]);
        let said = text(&output);
        assert!(!output.status.success(), "{what}: {said}");
        assert!(said.contains(&format!("{what} is a symbolic link")), "{said}");
        fs::remove_file(path(what)).unwrap();
    }
    // Nor is a socket made where somebody else could put a link in its place, whose permissions the agent would change.
    fs::create_dir(path("run")).unwrap();
    chown(path("run"), Some(65_533), None).unwrap();
    let configuration = CONFIGURATION.replace("\"socket\"", "\"run/socket\"");
    fs::write(path("agent.toml"), configuration).unwrap();
    let output = node.busbar(&["run", "--config", "agent.toml"]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("run belongs to user 65533"), "{said}");
    assert_eq!(fs::read_to_string(path("target")).unwrap(), "as it was");
    assert_eq!(node.limits(), [60, 60]);
}

#[test]
fn a_fault_of_the_hardware_reaches_the_operator() {
    let node = Node::new();
    let mut agent = node.start();
    let fault = ["emulate", "fault", "tree", "intel-rapl:1", "vanished"];
    assert!(node.busbar(&fault).status.success());
    let mut said = BufReader::new(agent.stderr.take().unwrap()).lines();
    let is_told = said.any(|line| line.unwrap().starts_with("package-1 is lost: "));
    assert!(is_told, "the agent ended instead");
    let status = text(&node.busbar(&["status", "--config", "agent.toml"]));
    assert!(status.contains("draws unknown (package-1"), "{status}");
    terminate(agent);
}

#[test]
fn mistakes_are_named() {
    let node = Node::new();
    for (arguments, expected) in [
        (&["run", "--config", "none.toml"][..], "cannot read the configuration none.toml"),
        (&["status", "--config", "agent.toml"], "no agent listens on"),
        (&["status", "--connect", "n1:1"], "--keys"),
        (&["keys", "keys", "--node", "a b"], "'a b' cannot be the name of a node"),
        (&["emulate", "create", "tree"], "the folder is not empty"),
        (&["emulate", "demand", ".", "100W"], ". is not an emulated node"),
        (&["emulate", "demand", "tree", "100"], "has no known unit of power"),
        (&["emulate", "fault", "tree", "gpu:0", "stuck"], "has no zone 'gpu:0'"),
        (&["emulate", "fault", "tree", "intel-rapl:0", "tired"], "there is no fault 'tired'"),
    ] {
        let output = node.busbar(arguments);
        assert!(!output.status.success());
        let output = text(&output);
        assert!(output.contains(expected), "{output}, not {expected}");
    }
    assert!(!node.0.path().join("keys").exists(), "nothing half-written");
}

/// Sets caps until the agent is gone, and returns what must be counted for the node then, in milliwatts: what was
/// told last, or the higher of that and a request that was not answered.
fn set_until_killed(mut client: Client, seed: u64) -> u64 {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut believed = client.inventory().counted;
    loop {
        let cap = Watts::from_milliwatts(random.random_range(80_000..200_000));
        match client.ask(Request::Set(Caps::Node { cap })) {
            Ok(Answer::Set(report)) => believed = report.counted,
            Ok(other) => panic!("{other:?}"),
            Err(_) => return believed.max(cap).milliwatts(),
        }
    }
}

#[test]
fn random_kills_leave_no_limit_above_what_is_believed() {
    let node = Node::new();
    let mut random = Pcg64Mcg::seed_from_u64(19);
    let mut believed = 200_000;
    for round in 0..25 {
        let mut agent = node.start();
        let client = node.connect();
        let counted = client.inventory().counted.milliwatts();
        assert!(
            counted <= believed,
            "{counted} mW hold after a restart, {believed} mW were believed"
        );
        let controller = std::thread::spawn(move || set_until_killed(client, round));
        std::thread::sleep(Duration::from_micros(random.random_range(0..40_000)));
        agent.kill().unwrap();
        agent.wait().unwrap();
        believed = controller.join().unwrap();
        let holds: u64 = node.limits_in_milliwatts().iter().sum();
        assert!(holds <= believed, "{holds} mW hold, {believed} mW are believed");
    }
    // The site's limits have survived all of it.
    assert!(node.busbar(&["restore", "--config", "agent.toml"]).status.success());
    assert_eq!(node.limits(), [100, 100]);
}

/// A program under three caps twice: every run is stored with what it took and drew, and afterwards the node has the
/// limits that it had.
#[test]
fn a_program_is_run_under_several_caps() {
    let node = Node::new();
    let _agent = Running(node.start());
    let before = node.limits();
    let run = |arguments: &[&str], script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.args(["profile", "run", "--socket", "socket"]).args(arguments);
        command.args(["--", "sh", "-c", script]).current_dir(node.0.path());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    // Faster under a higher cap; a busy machine may make any of them slower than that.
    let script = "case $BUSBAR_CAP_WATTS in 50) sleep 0.8;; 60) sleep 0.6;; *) sleep 0.5;; esac";
    let least = [(50.0, 0.8), (60.0, 0.6), (80.0, 0.5)];
    let began = Instant::now();
    let arguments = ["--app", "EP", "--caps", "50,60,80", "--repeat", "2", "--cores", "4"];
    let (code, shown, said) = run(&[&arguments[..], &["--json"]].concat(), script);
    let took = began.elapsed().as_secs_f64();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.lines().count(), 6, "{said}");
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let mut runs = Vec::new();
    for row in shown["rows"].as_array().unwrap() {
        if row["origin"] == "predicted" {
            continue;
        }
        assert_eq!((&row["nodes"], &row["cores"]), (&1.into(), &4.into()));
        assert_eq!(row["origin"], "emulated");
        let [cap, time, power] =
            ["cap_w", "time_s", "power_w"].map(|key| row[key].as_f64().unwrap());
        // Two packages that want 90 W each draw what their caps allow; a little earlier and later, less.
        assert!((cap..=2.0 * cap + 1.0).contains(&power), "{row}");
        runs.push((cap, time));
    }
    assert_eq!(runs.len(), least.len(), "{runs:?}");
    for (run, least) in runs.iter().zip(least) {
        assert!(run.0 == least.0 && run.1 >= least.1, "{runs:?}");
    }
    // Each is the mean of two runs, one after another.
    let all: f64 = runs.iter().map(|run| 2.0 * run.1).sum();
    assert!(all <= took, "{runs:?} in {took} s");
    assert_eq!(node.limits(), before);

    let (code, shown, _) = run(&["--app", "EP", "--caps", "60", "--cores", "4"], "true");
    assert_eq!(code, Some(0));
    assert!(shown.contains("time (s)") && shown.contains("emulated"), "{shown}");
    // What fails is not stored, and what cannot be set is refused before anything runs.
    let (code, _, said) = run(&["--app", "EP", "--caps", "70", "--cores", "4"], "exit 3");
    assert_eq!(code, Some(2));
    assert!(said.contains("ended with exit status: 3 under 70W; this run is not stored"), "{said}");
    let (_, _, said) = run(&["--app", "EP", "--caps", "60,5000", "--cores", "4"], "touch ran");
    assert!(said.contains("5000W is outside the range of package-0"), "{said}");
    assert!(!node.0.path().join("ran").exists());
    assert_eq!(node.limits(), before);
}

/// An agent that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
