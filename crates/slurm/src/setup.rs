//! What a site installs so that Busbar can work on its cluster: `job_submit.lua`, prolog and epilog, lines
//! of `slurm.conf` and drop-ins for systemd.
//!
//! **In mode `steer`** every job of a steered partition is held at submission. The hold that a plug-in can
//! set is one that users can release, and there is no way to set an admin hold there. So the plug-in marks
//! the job in its administrator's comment ([`MARK`]), which users cannot change, and `slurm_job_modify`
//! turns what users do into wishes: `scontrol hold` writes [`WAIT`] into the job's comment, `scontrol
//! release` takes it out, and the job stays held until Busbar releases it. The daemon may make it an admin
//! hold afterwards ([`Cluster::hold`](crate::cluster::Cluster::hold)).
//!
//! **In mode `admit`** every job gets licences, one for each watt that it may draw.
//!
//! The file [`Site::off_file`] says what the plug-in does without a new configuration ([`Switch`]): nothing, after `busbar slurm
//! release-all`; or what it does in mode `admit`, if the site wants that while no daemon is there ([`Fail`]).

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::model::Job;
use crate::version::Version;

mod layers;

pub(crate) use layers::RESOURCE;
pub use layers::{Layer, resources};

/// The administrator's comment of a job that is Busbar's to release. After a colon it may say why the job waits ([`remark`]).
pub const MARK: &str = "busbar";

/// The part of a job's comment by which its user asks Busbar not to start it.
pub const WAIT: &str = "busbar-wait";

/// The most characters of a text that is written into a comment.
const LONGEST_TEXT: usize = 300;

/// The file beside `slurm.conf` that switches the plug-in off.
pub const OFF_FILE: &str = "busbar.off";

/// The number at the top of the plug-in; it grows when the plug-in changes.
pub(crate) const LUA_VERSION: u32 = 5;

/// How Busbar works on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It reads and says what it would have done.
    Watch,
    /// It decides when and where each job starts.
    Steer,
    /// Slurm decides; Busbar gives every job its watts.
    Admit,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Watch => "watch",
            Mode::Steer => "steer",
            Mode::Admit => "admit",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "watch" => Ok(Mode::Watch),
            "steer" => Ok(Mode::Steer),
            "admit" => Ok(Mode::Admit),
            _ => Err(format!("'{text}' is not a mode; valid: watch, steer and admit")),
        }
    }
}

/// What happens in mode `steer` to jobs that wait while no daemon is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fail {
    /// They go on waiting.
    #[default]
    Wait,
    /// Slurm starts them within the last budget, as in mode `admit`.
    Admit,
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fail::Wait => "wait",
            Fail::Admit => "admit",
        })
    }
}

impl FromStr for Fail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "wait" => Ok(Fail::Wait),
            "admit" => Ok(Fail::Admit),
            _ => Err(format!("jobs cannot '{text}' while no daemon is there; write wait or admit")),
        }
    }
}

/// The values that differ between sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// How Busbar works there.
    pub mode: Mode,
    /// What happens while no daemon is there, in mode `steer`.
    pub fail: Fail,
    /// The partitions that are Busbar's; all if none is named.
    pub partitions: Vec<String>,
    /// The watts that the licences stand for, in mode `admit`.
    pub watts: u64,
    /// The name of the licence.
    pub licence: String,
    /// Nodes that share a limit of their own, in mode `admit` on versions with hierarchical resources.
    pub layers: Vec<Layer>,
    /// What slurmdbd keeps account of besides its usual resources (`AccountingStorageTRES`); `None` if there is no slurmdbd.
    pub tracked: Option<Vec<String>>,
    /// The watts of a node in partitions that are not named below.
    pub node_watts: u32,
    /// The watts of a node, by partition.
    pub partition_watts: BTreeMap<String, u32>,
    /// The watts of a node under an application, by its name.
    pub app_watts: BTreeMap<String, u32>,
    /// The processors of a node: how many nodes a job gets that only says its tasks. 0: one node a task.
    pub node_cpus: u32,
    /// The watts of a GPU, by its type, and under the empty name those of types that are not named. GPUs are not counted if there
    /// is nothing here.
    pub gpu_watts: BTreeMap<String, u32>,
    /// The GPUs of a node, which count if a request for GPUs cannot be read.
    pub node_gpus: u32,
    /// Whether jobs share nodes, in mode `steer`; otherwise each has whole ones.
    pub is_shared: bool,
    /// Users besides root who may change everything, by number.
    pub operators: Vec<u32>,
    /// The file that switches the plug-in off.
    pub off_file: PathBuf,
    /// The program `busbar`, for the prolog.
    pub busbar: PathBuf,
    /// The agent's socket on each node, for the prolog.
    pub agent_socket: PathBuf,
}

impl Site {
    /// A site with the usual values.
    pub fn new(mode: Mode) -> Self {
        Site {
            mode,
            fail: Fail::Wait,
            partitions: Vec::new(),
            watts: 0,
            licence: "power".to_owned(),
            layers: Vec::new(),
            tracked: None,
            node_watts: 200,
            partition_watts: BTreeMap::new(),
            app_watts: BTreeMap::new(),
            node_cpus: 0,
            gpu_watts: BTreeMap::new(),
            node_gpus: 0,
            is_shared: false,
            operators: Vec::new(),
            off_file: Path::new("/etc/slurm").join(OFF_FILE),
            busbar: "/usr/bin/busbar".into(),
            agent_socket: "/run/busbar-agent/socket".into(),
        }
    }

    /// What is wrong with the names and numbers, if something is. Names go into Lua, so they must be plain.
    pub fn mistake(&self) -> Option<String> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        let is_plain = |name: &&String| !name.is_empty() && name.chars().all(fits);
        let kinds = self.gpu_watts.keys().filter(|kind| !kind.is_empty());
        let names = self.partitions.iter().chain(self.partition_watts.keys());
        let names = names.chain(self.app_watts.keys()).chain(kinds);
        let path_fits = |path: &&PathBuf| {
            path.to_str().is_some_and(|text| text.chars().all(|c| fits(c) || c == '/'))
        };
        if let Some(name) = names.chain([&self.licence]).find(|name| !is_plain(name)) {
            return Some(format!(
                "'{name}' cannot be the name of a partition, application, GPU or licence; use letters, digits and . _ - +"
            ));
        }
        if let Some(path) = [&self.off_file, &self.busbar, &self.agent_socket]
            .into_iter()
            .find(|path| !path_fits(path))
        {
            return Some(format!(
                "the path {} may have letters, digits and / . _ - + only",
                path.display()
            ));
        }
        if self.fail == Fail::Admit && self.mode != Mode::Steer {
            return Some("only in mode steer may Slurm have to go on by itself".to_owned());
        }
        if self.is_shared && self.mode != Mode::Steer {
            return Some(
                "only in mode steer may jobs share nodes: in mode admit Slurm counts the watts of whole nodes".to_owned(),
            );
        }
        if self.mode != Mode::Admit && !self.layers.is_empty() {
            return Some("layers are for mode admit".to_owned());
        }
        if !self.layers.is_empty() && self.licence == RESOURCE {
            return Some(format!("the licence cannot have the name of the layers, '{RESOURCE}'"));
        }
        if let Some(mistake) = layers::mistake(&self.layers) {
            return Some(mistake);
        }
        match self.may_admit() {
            true if self.node_watts == 0 => Some("a node must have watts".to_owned()),
            true if self.watts == 0 => Some("the watts of the feed are missing".to_owned()),
            true if !self.gpu_watts.is_empty() && self.node_gpus == 0 => {
                Some("the number of GPUs of a node is missing; give it with --node-gpus".to_owned())
            }
            false if !self.gpu_watts.is_empty() => {
                Some("the watts of GPUs are for mode admit".to_owned())
            }
            _ => None,
        }
    }

    /// Whether Slurm starts jobs within watts, always or while no daemon is there.
    pub fn may_admit(&self) -> bool {
        self.mode == Mode::Admit || self.fail == Fail::Admit
    }
}

/// Whether a job is Busbar's to release, and its user has nothing against it.
pub fn is_ready(job: &Job) -> bool {
    is_marked(job) && job.hold.is_some() && !is_kept_back(job)
}

/// Whether the plug-in has marked a job as Busbar's.
pub fn is_marked(job: &Job) -> bool {
    let after = job.admin_comment.as_deref().and_then(|text| text.strip_prefix(MARK));
    after.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// The administrator's comment of a marked job about which there is something to say.
pub fn remark(text: &str) -> String {
    format!("{MARK}: {}", plain(text).trim_end())
}

/// Whether the mark of a job says something.
pub fn has_remark(job: &Job) -> bool {
    is_marked(job) && job.admin_comment.as_deref() != Some(MARK)
}

/// A text as it can stand in a comment.
pub fn plain(text: &str) -> String {
    let fits = |c: char| if c.is_control() || "\"'`".contains(c) { ' ' } else { c };
    text.chars().map(fits).take(LONGEST_TEXT).collect()
}

/// Whether the user of a marked job asks Busbar not to start it.
pub fn is_kept_back(job: &Job) -> bool {
    let comment = job.comment.as_deref().unwrap_or("");
    comment.split(';').any(|part| part.trim() == WAIT)
}

/// The plug-in of a site; in mode `watch` one that does nothing.
pub fn job_submit(site: &Site) -> String {
    let quoted = |names: &[String]| {
        names.iter().map(|name| format!("[\"{name}\"] = true")).collect::<Vec<_>>().join(", ")
    };
    let table = |watts: &BTreeMap<String, u32>| {
        watts
            .iter()
            .map(|(name, watts)| format!("[\"{name}\"] = {watts}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let operators = site.operators.iter().map(|uid| format!("[{uid}] = true")).collect::<Vec<_>>();
    let values = [
        ("@VERSION@", LUA_VERSION.to_string()),
        ("@MODE@", site.mode.to_string()),
        ("@FAIL@", site.fail.to_string()),
        ("@OFF@", site.off_file.display().to_string()),
        ("@MARK@", MARK.to_owned()),
        ("@WAIT@", WAIT.to_owned()),
        ("@PARTITIONS@", quoted(&site.partitions)),
        ("@ALL@", site.partitions.is_empty().to_string()),
        ("@LICENCE@", site.licence.clone()),
        ("@LAYERED@", if site.layers.is_empty() { "" } else { RESOURCE }.to_owned()),
        ("@NODE_WATTS@", site.node_watts.to_string()),
        ("@NODE_CPUS@", site.node_cpus.to_string()),
        ("@NODE_GPUS@", site.node_gpus.to_string()),
        ("@GPU_WATTS@", table(&site.gpu_watts)),
        ("@PARTITION_WATTS@", table(&site.partition_watts)),
        ("@APP_WATTS@", table(&site.app_watts)),
        ("@SHARED@", site.is_shared.to_string()),
        ("@OPERATORS@", operators.join(", ")),
    ];
    let mut text = include_str!("setup/job_submit.lua").to_owned();
    for (key, value) in values {
        text = text.replace(key, &value);
    }
    text
}

/// The prolog: a node whose agent does not answer gets no job. Slurm then drains the node and queues the
/// job again.
pub fn prolog(site: &Site) -> String {
    format!(
        "#!/bin/sh\n\
         # Busbar's prolog: before a job's first instruction the agent of the node must answer, as it holds the cap.\n\
         # If this fails, Slurm drains the node and queues the job again.\n\
         said=on\n\
         [ -e '{off}' ] && read -r said < '{off}'\n\
         case \"$said\" in on|admit) ;; *) exit 0 ;; esac\n\
         for try in 1 2 3; do\n    \
             '{busbar}' agent status --socket '{socket}' >/dev/null 2>&1 && exit 0\n    \
             sleep 1\n\
         done\n\
         echo \"busbar: the agent of $SLURMD_NODENAME does not answer on {socket}\" >&2\n\
         exit 1\n",
        busbar = site.busbar.display(),
        socket = site.agent_socket.display(),
        off = site.off_file.display()
    )
}

/// The epilog: nothing has to be done on the node, as the daemon lifts the cap when it sees the end of the
/// job.
pub fn epilog() -> String {
    "#!/bin/sh\n\
     # Busbar's epilog. The daemon lowers or lifts the cap of the node when Slurm reports the end of the job, and the\n\
     # agent does so by itself if the daemon is silent for longer than its lease. Nothing is to be done here.\n\
     exit 0\n"
        .to_owned()
}

/// The lines for `slurm.conf`.
pub fn conf_lines(site: &Site, version: Version, prolog: &Path, epilog: &Path) -> String {
    let mut text = String::new();
    if site.mode == Mode::Watch {
        return "# Mode watch needs nothing in slurm.conf.\n".to_owned();
    }
    text += "JobSubmitPlugins=lua\n";
    text +=
        &format!("PrologFlags=Alloc\nProlog={}\nEpilog={}\n", prolog.display(), epilog.display());
    match site.mode {
        Mode::Admit => {
            text += &format!(
                "# One licence is one watt; the daemon moves the budget by a reservation.\nLicenses={}:{}\n",
                site.licence, site.watts
            );
            text += &tracked_line(site);
            if version.has_hierarchical_resources() && site.layers.is_empty() {
                text += "# This version can limit racks or rows as well: busbar slurm setup --layer 'n[1-8]=4kW' writes resources.yaml.\n";
            }
        }
        _ => {
            if site.fail == Fail::Admit {
                text += &format!(
                    "# Within these Slurm goes on by itself while no daemon is there; one licence is one watt.\nLicenses={}:{}\n",
                    site.licence, site.watts
                );
            }
            text += "# For jobs that change their size (with slurmdbd):\n\
                     #   SchedulerParameters=...,permit_job_expansion\n";
        }
    }
    if site.is_shared {
        text += "# Jobs share nodes: processors, memory and GPUs are given to them one by one.\n\
                 #   SelectType=select/cons_tres\n#   SelectTypeParameters=CR_Core_Memory\n";
        return text;
    }
    text += &format!(
        "# Each job has its nodes for itself, since caps are per node. In the lines of Busbar's partitions:\n\
         #   PartitionName=... {}\n",
        version.whole_nodes()
    );
    text
}

/// The line by which accounting knows watts. Without slurmdbd, slurmctld does not start with it.
fn tracked_line(site: &Site) -> String {
    let watts = tracked_name(&site.licence);
    match &site.tracked {
        Some(tracked) => {
            let others = tracked.iter().filter(|name| **name != watts).cloned();
            let all: Vec<String> = others.chain([watts.clone()]).collect();
            let line = format!("AccountingStorageTRES={}\n", all.join(","));
            format!(
                "# Watts in sacct, and in limits of accounts and QOS (AccountingStorageEnforce=limits).\n{line}"
            )
        }
        None => format!(
            "# With slurmdbd, AccountingStorageTRES={watts} shows watts in sacct; without it slurmctld does not start with that line.\n"
        ),
    }
}

/// What accounting calls a licence.
pub(crate) fn tracked_name(licence: &str) -> String {
    format!("license/{licence}")
}

/// A drop-in for a unit of systemd: its path below `/etc/systemd/system`, and its text.
pub fn drop_ins(site: &Site) -> Vec<(&'static str, String)> {
    let agent = "[Unit]\n# The prolog asks the agent, so it is there first.\nWants=busbar-agent.service\nAfter=busbar-agent.service\n";
    let daemon = "[Unit]\n# The daemon speaks to slurmctld, and waits for it if it restarts.\nWants=slurmctld.service\nAfter=slurmctld.service munge.service\n";
    match site.mode {
        Mode::Watch => vec![("busbar.service.d/slurm.conf", daemon.to_owned())],
        _ => vec![
            ("slurmd.service.d/busbar.conf", agent.to_owned()),
            ("busbar.service.d/slurm.conf", daemon.to_owned()),
        ],
    }
}

/// What the plug-in does, which stands in the first line of [`Site::off_file`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// What it is for. Without the file it is so, too.
    On,
    /// Nothing: the cluster was given back to Slurm.
    Off,
    /// What it does in mode `admit`, as no daemon is there ([`Fail::Admit`]).
    Admit,
}

impl Switch {
    /// What a file says. One that cannot be understood switches the plug-in off.
    pub fn read(file: &Path) -> Switch {
        match fs::read_to_string(file) {
            Ok(text) => match text.lines().next() {
                Some("on") => Switch::On,
                Some("admit") => Switch::Admit,
                _ => Switch::Off,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Switch::On,
            Err(_) => Switch::Off,
        }
    }

    /// Writes it into a file.
    pub fn write(self, file: &Path) -> io::Result<()> {
        let text = match self {
            Switch::On => SWITCHED_ON,
            Switch::Off => {
                "off\nBusbar's job_submit.lua does nothing while the first line is not 'on'.\n"
            }
            Switch::Admit => {
                "admit\nNo daemon of Busbar is there, and Slurm starts jobs within watts until one is.\n"
            }
        };
        match say(file, text) {
            Err(error) if Switch::read(file) != self => Err(error),
            _ => Ok(()),
        }
    }
}

/// The whole file while the plug-in does what it is for.
pub(crate) const SWITCHED_ON: &str =
    "on\nBusbar's job_submit.lua works; 'busbar slurm release-all' switches it off here.\n";

fn say(file: &Path, text: &str) -> io::Result<()> {
    let part = file.with_extension("new");
    fs::write(&part, text)?;
    fs::rename(&part, file)
}

#[cfg(test)]
mod tests;
