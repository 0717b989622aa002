//! Starts a daemon from its configuration: database, engine, socket and signals around the loop.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use busbar_agent::client::Address;
use busbar_agent::fleet::{self, Target};
use busbar_agent::keys;
use busbar_agent::tls::TlsError;
use busbar_core::freedom::Freedom;
use busbar_core::machine::{Kinds, Machine};
use busbar_slurm::cluster::Cluster;
use busbar_slurm::commands::Commands;
use busbar_slurm::error::SlurmError;
use busbar_slurm::listing::Listing;
use busbar_slurm::program::Programs;
use busbar_slurm::rest::{Address as RestAddress, Credentials, Rest};
use busbar_slurm::setup::{self as site, Fail};
use busbar_trust::TrustError;
pub use busbar_trust::TrustedFolder;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::config::{Config, ConfigError, EngineKind, Resolved, RestConfig};
use super::door::Door;
use super::instance;
use super::socket::{BindError, Limits, Operators, Server};
use crate::control::active_budget::ActiveBudget;
use crate::control::clock::Clock;
use crate::control::daemon::{Daemon, DaemonError, Look, LoopOptions, Wake};
use crate::control::setup::Setup;
use crate::engine::{AtOnce, EmulatedPower, Engine};
use crate::engines::capped::Capped;
use crate::engines::local::Local;
use crate::engines::local::group::Groups;
use crate::engines::slurm::{Fenced, Slurm};
use crate::engines::{capped, slurm};
use crate::host::service::Service;
use crate::job::{Attempt, Entry};
use crate::store::{Lease, STATE, Saved, Store, StoreError};

/// Why a daemon cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another user could change a folder of the daemon.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// A folder cannot be used.
    #[error("cannot use the folder {}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Jobs are running that the database does not know.
    #[error(
        "jobs run that are not in the state ({strays}; job.attempt), so their power would not be counted; the \
        file is probably older than they are. End their processes, which are listed in {}, or restore the newer file, and start again",
        path.display()
    )]
    Strays {
        /// Their attempts.
        strays: String,
        /// The folder with the files of all attempts.
        path: PathBuf,
    },
    /// The path of the program, which is needed to start wardens, is not known.
    #[error("cannot find the path of this program, which has to supervise jobs")]
    Program(#[source] io::Error),
    /// The keys for agents cannot be used.
    #[error(transparent)]
    Keys(TlsError),
    /// Slurm cannot be read.
    #[error(transparent)]
    Slurm(#[from] SlurmError),
    /// Slurm's nodes are not those of the machine.
    #[error("{0}")]
    Nodes(String),
    /// A server beside the socket cannot start.
    #[error(transparent)]
    Beside(BoxedError),
    /// Agents cannot be spoken to.
    #[error("cannot start the connections to agents")]
    Agents(#[source] io::Error),
    /// Signals cannot be received.
    #[error("cannot listen to signals")]
    Signals(#[source] io::Error),
    /// The socket cannot be used.
    #[error(transparent)]
    Socket(#[from] BindError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The loop failed.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
}

/// An error of a server that this crate does not know.
type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The subfolder of the state folder that holds the files of attempts.
const ATTEMPTS: &str = "jobs";

/// The setup with the rules from the configuration.
fn setup(config: &Config, resolved: &Resolved) -> Setup {
    let mut operators = config.operators.clone();
    let own = rustix::process::geteuid().as_raw();
    operators.extend([0, own]);
    let Setup { machine, decider, .. } = resolved.setup.clone();
    Setup {
        machine,
        decider,
        kill_after: config.kill_after,
        switch_off: config.switch_off,
        last_resort: config.last_resort,
        only_user: Some(own).filter(|user| *user != 0),
        operators,
        see_all: config.see_all,
        most_jobs: config.limits.jobs as usize,
        most_jobs_per_user: config.limits.jobs_per_user as usize,
        most_elements: config.limits.array as usize,
        most_bytes_per_user: config.limits.bytes_per_user.into(),
        forecast_time: config.limits.forecast_time,
        tune: config.tune.nightly(),
    }
}

/// Opens the state folder, and creates it if necessary. Nothing in it may be somebody else's, whoever is to read it: the
/// daemon, the web server, or a command.
pub fn state_folder(path: &Path) -> Result<TrustedFolder, ServeError> {
    // Jobs of other users must reach their speed files below root's state folder, but may not list
    // it.
    let mode = if rustix::process::geteuid().is_root() { 0o711 } else { 0o700 };
    let folder = TrustedFolder::of(path, mode, STATE)?;
    folder.check_all()?;
    Ok(folder)
}

/// The engine for local jobs, with its files in the state folder. Refuses to start if jobs are running that
/// the database does not know.
fn start_engine(
    config: &Config,
    resolved: &Resolved,
    state: &TrustedFolder,
    saved: &Saved,
) -> Result<Local, ServeError> {
    let program =
        std::env::current_exe().and_then(fs::canonicalize).map_err(ServeError::Program)?;
    let attempts = state.folder(ATTEMPTS, 0o711)?;
    attempts.check_with_subfolders()?;
    let attempts = attempts.path().to_owned();
    let cpus = resolved.cpus.clone().unwrap_or_default();
    let failed = |source| ServeError::Folder { path: attempts.clone(), source };
    let mut engine = Local::new(attempts.clone(), program, cpus).map_err(failed)?;
    engine.hand_down(config.jobs.inheritance());
    if let Err(error) = engine.adopt_orphans() {
        tracing::warn!(%error, "processes that lose their warden cannot be adopted");
    }
    match config.local.cgroups.then(|| Groups::find(&attempts)).flatten() {
        Some(groups) => {
            tracing::info!(below = %groups.base().display(), "jobs have control groups");
            engine.use_groups(groups);
        }
        None => tracing::info!("jobs have no control groups; their processes are found one by one"),
    }
    for notice in engine.notices() {
        tracing::warn!("{notice}");
    }
    let known = saved.jobs.iter().map(Entry::attempt);
    let strays = engine.forget_others(&known.collect()).map_err(failed)?;
    if !strays.is_empty() {
        let strays = strays.iter().map(Attempt::to_string).collect::<Vec<_>>().join(", ");
        return Err(ServeError::Strays { strays, path: attempts });
    }
    if let Err(error) = engine.forget_other_groups() {
        tracing::warn!(%error, "control groups that are left over cannot be removed");
    }
    Ok(engine)
}

/// Slurm's commands, as the configuration says.
pub(super) fn cluster(config: &Config) -> Commands {
    let slurm = &config.slurm;
    let within = Duration::from_millis(slurm.within.millis());
    let mut programs = Programs::default().with_patience(within);
    if let Some(conf) = &slurm.conf {
        programs = programs.with_conf(conf);
    }
    if let Some(folder) = &slurm.programs {
        programs = programs.in_folder(folder);
    }
    Commands::new(programs)
}

/// What people call the cluster, where that is not the name of its machine: Slurm's name of it, or the name of this
/// computer if the machine is only a number of nodes.
fn cluster_name(config: &Config, cluster: Option<&Commands>) -> Option<String> {
    let of_slurm = cluster.and_then(|cluster| {
        let values = cluster.configuration();
        let values =
            values.inspect_err(|error| tracing::warn!(%error, "the cluster's name cannot be read"));
        let mut values = values.ok()?.into_iter();
        values.find_map(|(key, value)| key.eq_ignore_ascii_case("ClusterName").then_some(value))
    });
    let host = || {
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Some(name).filter(|name| !name.is_empty())
    };
    let is_number = config.machine.bytes().all(|byte| byte.is_ascii_digit());
    of_slurm.or_else(|| is_number.then(host).flatten())
}

/// The nodes of a cluster.
struct SlurmNodes {
    /// The names of those that are Busbar's, in the order of their numbers.
    ours: Vec<String>,
    /// How many others there are.
    others: u32,
}

/// Asks Slurm for its nodes. Who names them all in the configuration can do without an answer for a while.
fn slurm_nodes(config: &Config, cluster: &Commands) -> Result<SlurmNodes, ServeError> {
    let slurm = &config.slurm;
    let all = match cluster.nodes() {
        Err(error) if !slurm.nodes.is_empty() => {
            tracing::error!(%error, "Slurm cannot be read; nodes that are not Busbar's are not counted until then");
            Listing::default()
        }
        all => all?,
    };
    let ours = match slurm.nodes.is_empty() {
        false => slurm.nodes.clone(),
        true => {
            let is_ours = |partition: &String| slurm.partitions.contains(partition);
            let ours = all
                .iter()
                .filter(|node| slurm.partitions.is_empty() || node.partitions.iter().any(is_ours));
            ours.map(|node| node.name.clone()).collect()
        }
    };
    let names: HashSet<&str> = ours.iter().map(String::as_str).collect();
    let others = slurm::count_others(&all, |name| names.contains(name));
    Ok(SlurmNodes { ours, others })
}

/// The engine for jobs on a Slurm cluster.
fn slurm(
    config: &Config,
    setup: &Setup,
    (cluster, nodes): (Commands, SlurmNodes),
    lease: Lease,
    sender: Sender<Wake>,
) -> Result<Slurm, ServeError> {
    let slurm = &config.slurm;
    // Somebody may have given the cluster back to Slurm before.
    if let Some(folder) = slurm.conf.as_ref().and_then(|conf| conf.parent())
        && let Err(error) = site::Switch::On.write(&folder.join(site::OFF_FILE))
    {
        tracing::warn!(%error, folder = %folder.display(), "job_submit.lua cannot be switched on");
    }
    config.check_nodes(&nodes.ours, setup.machine.nodes as usize).map_err(ServeError::Nodes)?;
    let terms = slurm::Terms {
        mode: slurm.mode,
        partitions: slurm.partitions.clone(),
        nodes: nodes.ours,
        others: nodes.others,
        licence: slurm.licence.clone(),
        fails_to_admit: slurm.fail == Fail::Admit,
        period: Duration::from_millis(slurm.period.millis()),
        // The daemon hears of it before it gives up by itself.
        patience: Duration::from_millis(config.engine.deadline.millis()) * 2 / 3,
        placing: placing(&setup.machine),
        resizes: setup.decider.spec().wants().has(Freedom::Resizes),
    };
    // The loop may be over already.
    let wake = move || _ = sender.send(Wake::Nudge);
    let engine = match &slurm.rest {
        Some(RestConfig { address, user, token, .. }) => {
            // A socket knows who asks, unless it is told otherwise.
            let is_known = matches!(address, RestAddress::Unix(_)) && token.is_none();
            let credentials = (!is_known).then(|| Credentials::new(user, token.clone()));
            let rest = Rest::new(address.clone(), credentials, cluster);
            Slurm::start(Fenced::new(rest, lease), terms, wake)
        }
        None => Slurm::start(Fenced::new(cluster, lease), terms, wake),
    };
    engine.map_err(ServeError::Agents)
}

/// Who chooses the nodes of jobs on such a machine: Slurm, unless it makes a difference to the daemon which they are.
fn placing(machine: &Machine) -> slurm::Placing {
    let is_shared = |kinds: &Kinds| kinds.partitions().iter().any(|partition| partition.shared);
    match (&machine.kinds, &machine.feeds) {
        (Some(kinds), _) if is_shared(kinds) => slurm::Placing::InParts,
        (None, None) => slurm::Placing::BySlurm,
        _ => slurm::Placing::Whole,
    }
}

/// The engine with the agents of its nodes, if there are any.
fn with_agents(
    engine: Box<dyn Engine>,
    config: &Config,
    state: &TrustedFolder,
    machine: &Machine,
    sender: Sender<Wake>,
) -> Result<Box<dyn Engine>, ServeError> {
    let agents = &config.agents;
    if agents.nodes.is_empty() {
        return Ok(engine);
    }
    let keys = agents.keys.as_ref().map(|folder| keys::files(folder, "controller").client());
    let keys = keys.transpose().map_err(ServeError::Keys)?;
    let nodes = agents.nodes.iter().map(|node| capped::Node {
        target: Target {
            node: node.name.clone(),
            address: match node.address.contains('/') {
                true => Address::Unix(node.address.clone().into()),
                false => Address::Tcp(node.address.clone()),
            },
        },
        demand: node.demand.clone(),
    });
    let node = machine.node();
    let levels = machine.details.levels.clone().unwrap_or_default();
    let terms = capped::Terms {
        lease: Duration::from_millis(agents.lease.millis()),
        within: Duration::from_millis(agents.within.millis()),
        lowest: levels.first().copied().unwrap_or(node.highest),
        node,
    };
    let instance = Some(instance::kept_in(state)?);
    let options = fleet::Options { keys, instance, ..fleet::Options::controller("busbar") };
    // The loop may be over already.
    let wake = move || _ = sender.send(Wake::Nudge);
    let capped = Capped::new(engine, nodes.collect(), terms, options, wake);
    Ok(Box::new(capped.map_err(ServeError::Agents)?))
}

/// What serves the daemon's clients beside its socket.
#[derive(Debug)]
pub struct Beside<T> {
    /// The server, which ends when it is dropped.
    pub server: T,
    /// The address of the web page, if there is one.
    pub page: Option<String>,
}

/// Waits until no other daemon leads that has the same state, and takes its place.
pub fn stand_by(config: &Config) -> Result<Lease, ServeError> {
    config.check_takeover()?;
    let state = state_folder(&config.state)?;
    let mut service = Service::from_environment();
    service.ready();
    let mut leader = None;
    let length = Duration::from_millis(config.takeover.millis());
    let lease = Store::stand_by(&state, length, |host| {
        if leader.as_deref() != Some(host) {
            tracing::info!(state = %state.path().display(), "on standby; the daemon on {host} leads");
            leader = Some(host.to_owned());
        }
        service.turned(|| format!("on standby; the daemon on {host} leads"));
    })?;
    tracing::info!("this daemon leads now");
    Ok(lease)
}

/// Runs a daemon until it is told to stop, with the lease of one that [stood by](stand_by), if it did. `again` reads the
/// configuration again. `beside` starts what else serves the daemon's clients, and may keep files in the state folder; what it
/// returns is dropped when the daemon stops.
pub fn serve<T>(
    config: &Config,
    lease: Option<Lease>,
    again: impl Fn() -> Result<Config, String> + 'static,
    beside: impl FnOnce(Door, TrustedFolder) -> Result<Beside<T>, BoxedError>,
) -> Result<(), ServeError> {
    let on_slurm = match config.engine.kind {
        EngineKind::Local => None,
        EngineKind::Slurm => {
            let cluster = cluster(config);
            let nodes = slurm_nodes(config, &cluster)?;
            Some((cluster, nodes))
        }
    };
    let others = on_slurm.as_ref().map_or(0, |(_, nodes)| nodes.others);
    let resolved = config.resolve_beside(others)?;
    for remark in &resolved.remarks {
        tracing::warn!("{remark}");
    }
    let state = state_folder(&config.state)?;
    let length = Duration::from_millis(config.takeover.millis());
    let lease = lease.map_or_else(|| Store::lease_in(&state, length), Ok)?;
    // Until the loop begins, which does so itself.
    let keeper = lease.keep();
    let store = Store::lead(&state, lease)?;
    let saved = store.load()?;
    let clock = Clock::begin(saved.last.as_ref());
    let operators = Operators::default();
    let options = LoopOptions {
        period: config.period,
        deadline: config.engine.deadline,
        retention: config.retention,
        cluster: cluster_name(config, on_slurm.as_ref().map(|(cluster, _)| cluster)),
        runs: config.profile_database(),
        reload: Box::new({
            let operators = operators.clone();
            move |others| {
                let config = again()?;
                let resolved = config.resolve_beside(others).map_err(|error| error.to_string())?;
                let setup = setup(&config, &resolved);
                operators.set(setup.operators.clone());
                Ok((setup, resolved.schedule))
            }
        }),
    };
    let budget = ActiveBudget::new(resolved.schedule.clone(), &resolved.setup.machine);
    let setup = setup(config, &resolved);
    operators.set(setup.operators.clone());
    let (sender, inbox) = channel();
    let engine: Box<dyn Engine> = match on_slurm {
        None => {
            let local = AtOnce::boxed(start_engine(config, &resolved, &state, &saved)?);
            // Nodes with agents are real, and nobody switches those in emulation.
            match config.agents.nodes.is_empty() {
                true => Box::new(EmulatedPower::of(local)),
                false => local,
            }
        }
        Some(on_slurm) => {
            let lease = store.lease().clone();
            Box::new(slurm(config, &setup, on_slurm, lease, sender.clone())?)
        }
    };
    let engine = with_agents(engine, config, &state, &setup.machine, sender.clone())?;
    let mut daemon = Daemon::begin(setup, budget, store, engine, options, clock)?;
    let signals = listen(sender.clone())?;
    let limits = Limits {
        request: config.limits.request_bytes as usize,
        connections: config.limits.connections as usize,
        operators,
        ..Limits::default()
    };
    let mut server = Server::bind(&config.socket, limits, sender.clone())?;
    let beside = beside(Door::new(sender), state).map_err(ServeError::Beside)?;
    daemon.has_page_at(beside.page.clone());
    tracing::info!(
        socket = %config.socket.display(),
        machine = %resolved.setup.machine.name,
        policy = %config.policy,
        "busbar is running"
    );
    daemon.announce_to(Service::from_environment());
    let mut in_the_way = None;
    drop(keeper);
    let result = daemon.run(&inbox, |why| restore(&mut server, why, &mut in_the_way));
    signals.close();
    // Requests that are still pending get no answer.
    drop(inbox);
    drop(beside);
    let parting = server.stop();
    daemon.close()?;
    tracing::info!("busbar has stopped; jobs continue");
    // The client that asked for the stop now sees that another daemon can start.
    drop(parting);
    Ok(result?)
}

/// Restores the socket if it was removed. Problems are logged once.
fn restore(server: &mut Server, why: Look, in_the_way: &mut Option<String>) {
    let now = match server.restore(why == Look::Asked) {
        Ok(false) => None,
        Ok(true) => {
            tracing::warn!("the socket was removed; it was created again");
            None
        }
        Err(error) => {
            let source = std::error::Error::source(&error);
            Some(source.map_or(error.to_string(), |source| format!("{error}: {source}")))
        }
    };
    if let Some(error) = now.as_ref().filter(|error| in_the_way.as_ref() != Some(*error)) {
        tracing::error!(error, "clients cannot reach the daemon");
    }
    *in_the_way = now;
}

/// Forwards signals to the loop.
fn listen(sender: Sender<Wake>) -> Result<Handle, ServeError> {
    let mut signals =
        Signals::new([SIGCHLD, SIGHUP, SIGINT, SIGTERM]).map_err(ServeError::Signals)?;
    let handle = signals.handle();
    thread::spawn(move || {
        for signal in signals.forever() {
            let wake = match signal {
                SIGCHLD => Wake::Nudge,
                SIGHUP => Wake::Reload,
                _ => Wake::Stop,
            };
            if sender.send(wake).is_err() {
                break;
            }
        }
    });
    Ok(handle)
}
