//! The folder of a lab: what is where, and what the files say.
//!
//! | file | what it is |
//! |---|---|
//! | `lab.json` | what the lab has; that it is there says that the folder is a lab |
//! | `processes.json` | the processes that were started |
//! | `env` | for a shell: sets `SLURM_CONF` |
//! | `slurm.conf`, `gres.conf`, `job_submit.lua`, `prolog`, `epilog` | the cluster's configuration |
//! | `munge/`, `state/`, `spool/`, `log/` | of munge, slurmctld and the slurmds |
//! | `nodes/n1/` … | the emulated meter (`tree`), the configuration, state and socket of the agent, files in place of GPUs |

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpListener, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::files::write_file;
use super::process::{MARK, Ready, Wanted, path};
use super::{CONTROLLER, LabError, Plan, Record};
use crate::setup::{self, Mode, Site};

/// The longest path of a socket, with what is appended to the folder.
const LONGEST_FOLDER: usize = 70;

/// The processors of an emulated node without GPUs.
pub(crate) const CPUS: u32 = 4;

/// What an emulated node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeKind {
    /// The partition of Slurm for nodes of this kind alone, where there are several.
    partition: &'static str,
    cpus: u32,
    memory_mib: u32,
    gpus: u32,
}

/// What GPUs of an emulated node draw at most, and when they are idle.
const GPU_WATTS: (u32, u32) = (300, 25);

/// The kinds of nodes that a lab may have.
const PLAIN: NodeKind = NodeKind { partition: "cpu", cpus: CPUS, memory_mib: 1000, gpus: 0 };
const WITH_GPUS: NodeKind = NodeKind { partition: "gpu", cpus: 8, memory_mib: 2000, gpus: 4 };

impl NodeKind {
    /// What such a node draws at most.
    pub(super) fn watts(self) -> u32 {
        200 + self.gpus * GPU_WATTS.0
    }

    fn idle_watts(self) -> u32 {
        20 + self.gpus * GPU_WATTS.1
    }
}

/// The kind of a node, counted from 1.
pub(super) fn kind(plan: &Plan, node: u32) -> NodeKind {
    if plan.has_gpus(node) { WITH_GPUS } else { PLAIN }
}

/// What a job draws on each of its nodes unless somebody writes another number into `demand_w`.
const DEMAND_WATTS: u32 = 180;

/// What a job draws on each GPU of a node that it has for itself.
const GPU_DEMAND_WATTS: u32 = 270;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Prolog,
    Epilog,
}

/// What a job draws that has some processors of a node, of what a job draws that has all of them: Slurm says how many processors it
/// has of each of its nodes, in their order, such as `2(x3),1`. Of whom it does not say so, that job counts with all.
const OWN_PART: &str = r#". "$node/kind"
place=$(scontrol show hostnames "$SLURM_NODELIST" | grep -nx "$SLURMD_NODENAME" | cut -d: -f1)
own=$(echo "$SLURM_JOB_CPUS_PER_NODE" | tr , '\n' | awk -v at="${place:-0}" '
    { split($0, part, /[(x)]+/); at -= part[2] ? part[2] : 1; if (at <= 0) { print part[1]; exit } }')
[ -n "$place" ] || own=$cpus
most=$(($(cat "$LAB/demand_w") + gpus - idle))
exec 9>"$node/lock"
flock 9
echo $((most * 1000000 * ${own:-$cpus} / cpus)) >"$node/jobs/$SLURM_JOB_ID"
"#;

/// What a node draws: what it does when it is idle, and the parts of its jobs.
const SUM_OF_PARTS: &str = r#". "$node/kind"
demand=0
for job in "$node"/jobs/*; do
    [ -e "$job" ] && demand=$((demand + $(cat "$job")))
done
[ "$demand" -gt 0 ] && demand=$((demand + idle * 1000000))
"#;

/// Where things are.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    folder: PathBuf,
}

impl Layout {
    /// The layout of a folder, which need not exist.
    pub(crate) fn new(folder: &Path) -> Result<Self, LabError> {
        let failed = |source| LabError::File { what: "find", path: folder.to_owned(), source };
        let folder = std::path::absolute(folder).map_err(failed)?;
        // Links are followed as far as the folder exists, since munge judges the real path.
        let folder = folder.canonicalize().unwrap_or(folder);
        let text = folder.to_string_lossy().into_owned();
        let fits = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if text.len() > LONGEST_FOLDER || !text.chars().all(fits) {
            return Err(LabError::Unsuitable(format!(
                "the folder {text} cannot be a lab: its path may have {LONGEST_FOLDER} letters, digits and / . _ - +"
            )));
        }
        Ok(Layout { folder })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What the lab has.
    pub(crate) fn record(&self) -> PathBuf {
        self.at("lab.json")
    }

    /// The processes that were started.
    pub(crate) fn processes(&self) -> PathBuf {
        self.at("processes.json")
    }

    /// The cluster's configuration.
    pub(crate) fn conf(&self) -> PathBuf {
        self.at("slurm.conf")
    }

    /// A file for shells.
    pub(crate) fn environment(&self) -> PathBuf {
        self.at("env")
    }

    /// The folder of a node, counted from 1.
    pub(crate) fn node(&self, number: u32) -> PathBuf {
        self.folder.join("nodes").join(format!("n{number}"))
    }

    /// Writes everything that a lab needs before its processes start.
    pub(super) fn write(&self, record: &Record, site: &Site) -> Result<(), LabError> {
        let (plan, port) = (&record.plan, record.port);
        if fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(LabError::Unsuitable(format!(
                "the folder {} is not empty and not a lab; choose another one, or remove its contents",
                self.folder.display()
            )));
        }
        make_folder(&self.folder, 0o755)?;
        self.check_ancestors()?;
        for (name, mode) in
            [("munge", 0o711), ("state", 0o700), ("spool", 0o755), ("log", 0o755), ("nodes", 0o755)]
        {
            make_folder(&self.at(name), mode)?;
        }
        write_secret(&self.at("munge/key"))?;
        write_file(&self.at("job_submit.lua"), &setup::job_submit(site), 0o644)?;
        write_file(&self.at("prolog"), &self.hook(plan, When::Prolog), 0o755)?;
        write_file(&self.at("epilog"), &self.hook(plan, When::Epilog), 0o755)?;
        write_file(&self.at("demand_w"), &format!("{DEMAND_WATTS}\n"), 0o644)?;
        write_file(
            &self.at("env"),
            &format!(
                "{}export SLURM_CONF={}\nexport BUSBAR_SOCKET={}\n",
                plan.programs.as_ref().map_or(String::new(), |folder| format!(
                    "export PATH={0}/bin:{0}/sbin:$PATH\n",
                    folder.display()
                )),
                self.conf().display(),
                self.at("busbar.sock").display()
            ),
            0o644,
        )?;
        for number in 1..=plan.all_nodes() {
            make_folder(&self.at(&format!("spool/n{number}")), 0o755)?;
            make_folder(&self.node(number), 0o755)?;
            for gpu in 0..kind(plan, number).gpus {
                // Slurm only looks whether a device is there.
                write_file(&self.node(number).join(format!("device{gpu}")), "", 0o644)?;
            }
            if plan.has_parts() {
                make_folder(&self.node(number).join("jobs"), 0o755)?;
                let NodeKind { cpus, gpus, .. } = kind(plan, number);
                let text = format!(
                    "cpus={cpus}\nidle={}\ngpus={}\n",
                    kind(plan, number).idle_watts(),
                    gpus * GPU_DEMAND_WATTS
                );
                write_file(&self.node(number).join("kind"), &text, 0o644)?;
            }
            if let Some(busbar) = &plan.busbar {
                self.write_node(busbar, number, kind(plan, number))?;
            }
        }
        self.write_extras(plan, port)?;
        write_file(&self.at("machine.toml"), &machine(plan), 0o644)?;
        write_file(&self.at("busbar.toml"), &daemon(plan, site.mode), 0o644)?;
        if plan.gpu_nodes > 0 {
            write_file(&self.at("gres.conf"), &self.gres_conf(plan), 0o644)?;
        }
        write_file(&self.conf(), &self.slurm_conf(record, site), 0o644)
    }

    /// Which files stand for the GPUs of each node.
    fn gres_conf(&self, plan: &Plan) -> String {
        let gpus = |node: u32| (node, kind(plan, node).gpus);
        let lines = (1..=plan.all_nodes()).map(gpus).filter(|(_, gpus)| *gpus > 0);
        let line = |(node, gpus): (u32, u32)| {
            let folder = self.node(node);
            format!("NodeName=n{node} Name=gpu File={}/device[0-{}]\n", folder.display(), gpus - 1)
        };
        lines.map(line).collect()
    }

    /// The key of tokens, and a database with the configuration of slurmdbd.
    fn write_extras(&self, plan: &Plan, port: u16) -> Result<(), LabError> {
        if plan.extras.rest {
            write_secret(&self.at("state/jwt.key"))?;
        }
        if !plan.extras.accounting {
            return Ok(());
        }
        let password = random_word(&self.at("slurmdbd.conf"))?;
        let data = self.at("database");
        make_folder(&data, 0o700)?;
        let mut install = Command::new("mariadb-install-db");
        install.args([
            "--no-defaults",
            "--user=root",
            "--skip-test-db",
            "--auth-root-authentication-method=socket",
        ]);
        install.arg(format!("--datadir={}", data.display()));
        install.args(self.small_database());
        install.env("PATH", path(None)).stdin(Stdio::null());
        let made = install.output().map_err(|source| LabError::File {
            what: "make the database in",
            path: data.clone(),
            source,
        })?;
        if !made.status.success() {
            let said = [made.stdout, made.stderr].concat();
            let said = why_no_database(&String::from_utf8_lossy(&said));
            return Err(LabError::Unsuitable(format!("mariadb-install-db failed: {said}")));
        }
        let sql = format!(
            "CREATE DATABASE IF NOT EXISTS slurm_acct_db;\n\
             CREATE USER IF NOT EXISTS 'slurm'@'localhost' IDENTIFIED BY '{password}';\n\
             CREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY '{password}';\n\
             GRANT ALL ON slurm_acct_db.* TO 'slurm'@'localhost';\n\
             GRANT ALL ON slurm_acct_db.* TO 'slurm'@'127.0.0.1';\n"
        );
        write_file(&self.at("database.sql"), &sql, 0o600)?;
        let conf = format!(
            "AuthType=auth/munge\nAuthInfo=socket={folder}/munge/sock\nDbdHost=localhost\nDbdAddr=127.0.0.1\nDbdPort={dbd}\n\
             CommunicationParameters=NoInAddrAny\n\
             SlurmUser=root\nPidFile={folder}/state/slurmdbd.pid\nLogFile={folder}/log/slurmdbd.log\n\
             StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={database}\nStorageUser=slurm\n\
             StoragePass={password}\nStorageLoc=slurm_acct_db\n",
            folder = self.folder.display(),
            dbd = dbd_port(port, plan.all_nodes()),
            database = database_port(port, plan.all_nodes()),
        );
        write_file(&self.at("slurmdbd.conf"), &conf, 0o600)
    }

    /// What keeps a database small, so that several labs fit beside each other: no log of 96 MB, nothing in a folder that
    /// all share, and no queues of the kernel, of which there are only so many on a machine.
    fn small_database(&self) -> [String; 3] {
        [
            "--innodb-log-file-size=4M".to_owned(),
            "--innodb-use-native-aio=0".to_owned(),
            format!("--tmpdir={}", self.at("database").display()),
        ]
    }

    /// Removes the lab.
    pub(crate) fn remove(&self) -> Result<(), LabError> {
        fs::remove_dir_all(&self.folder).map_err(|source| LabError::File {
            what: "remove",
            path: self.folder.clone(),
            source,
        })
    }

    /// Munge refuses a socket that not everybody can reach.
    fn check_ancestors(&self) -> Result<(), LabError> {
        for folder in self.folder.ancestors() {
            let mode =
                fs::metadata(folder).map(|found| found.permissions().mode()).unwrap_or(0o755);
            if mode & 0o001 == 0 {
                return Err(LabError::Unsuitable(format!(
                    "munge needs a folder that all users may enter, and {} is not one; choose another folder for \
                    the lab",
                    folder.display()
                )));
            }
        }
        Ok(())
    }

    /// An emulated node with the configuration of its agent.
    fn write_node(&self, busbar: &Path, number: u32, kind: NodeKind) -> Result<(), LabError> {
        let folder = self.node(number);
        let mut create = Command::new(busbar);
        create.args(["agent", "emulate", "create"]).arg(folder.join("tree"));
        create.arg(format!("--gpus={}", kind.gpus));
        let made = create.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let is_made =
            made.map_err(|source| LabError::File { what: "run", path: busbar.to_owned(), source })?;
        if !is_made.success() {
            return Err(LabError::Unsuitable(format!(
                "'{} agent emulate create' failed; is it busbar, built with the feature agent?",
                busbar.display()
            )));
        }
        let config = format!(
            "node = \"n{number}\"\nstate = \"{folder}/state\"\nperiod = \"500ms\"\n[hardware]\n\
             powercap = \"{folder}/tree\"\nhwmon = \"{folder}/none\"\nemulate = true\n[gpu]\nnvml = false\n\
             [listen]\nsocket = \"{folder}/socket\"\n",
            folder = folder.display()
        );
        write_file(&folder.join("agent.toml"), &config, 0o644)
    }

    /// A prolog or epilog: it says what the jobs on the emulated node draw, in microwatts. A node whose
    /// agent does not answer gets no job.
    fn hook(&self, plan: &Plan, when: When) -> String {
        let mut text = format!(
            "#!/bin/sh\n# Written by 'busbar lab'.\n{programs}LAB={folder}\nnode=\"$LAB/nodes/$SLURMD_NODENAME\"\n",
            programs = plan
                .programs
                .as_ref()
                .map_or(String::new(), |folder| format!("PATH={}/bin:$PATH\n", folder.display())),
            folder = self.folder.display()
        );
        if let Some(busbar) = plan.busbar.as_ref().filter(|_| when == When::Prolog) {
            text += &format!(
                "'{}' agent status --socket \"$node/socket\" >/dev/null 2>&1 || {{\n    echo \"busbar: the agent of $SLURMD_NODENAME does not answer\" >&2\n    exit 1\n}}\n",
                busbar.display()
            );
        }
        if plan.busbar.is_none() {
            return text + "exit 0\n";
        }
        let demand = match (plan.has_parts(), when) {
            (true, When::Prolog) => format!("{OWN_PART}{SUM_OF_PARTS}"),
            (true, When::Epilog) => {
                format!(
                    "exec 9>\"$node/lock\"\nflock 9\nrm -f \"$node/jobs/$SLURM_JOB_ID\"\n{SUM_OF_PARTS}"
                )
            }
            (false, When::Prolog) => "demand=$(cat \"$LAB/demand_w\")000000\n".to_owned(),
            (false, When::Epilog) => "demand=0\n".to_owned(),
        };
        text += &demand;
        text + "printf '%s\\n' \"$demand\" >\"$node/tree/demand_uw.$$\" && mv \"$node/tree/demand_uw.$$\" \"$node/tree/demand_uw\"\nexit 0\n"
    }

    fn slurm_conf(&self, record: &Record, site: &Site) -> String {
        let (plan, port) = (&record.plan, record.port);
        let nodes = plan.all_nodes();
        let kinds: String =
            ranges(plan).map(|(kind, range)| nodes_of(plan, kind, range, port)).collect();
        let partitions = partitions(plan);
        let (select, gres) = match (plan.is_shared, plan.gpu_nodes) {
            // Memory that nobody asks for would be all of a node.
            (true, _) => {
                ("SelectTypeParameters=CR_CPU_Memory\nDefMemPerCPU=100\n", "GresTypes=gpu\n")
            }
            (false, 0) => ("SelectTypeParameters=CR_CPU\n", ""),
            (false, _) => ("SelectTypeParameters=CR_CPU\n", "GresTypes=gpu\n"),
        };
        let folder = self.folder.display();
        let accounting = match plan.extras.accounting {
            true => format!(
                "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=127.0.0.1\n\
                 AccountingStoragePort={}\nAccountingStoragePass={folder}/munge/sock\n",
                dbd_port(port, nodes)
            ),
            false => "AccountingStorageType=accounting_storage/none\n".to_owned(),
        };
        let tracked = match plan.extras.accounting && site.mode == Mode::Admit {
            true => format!("AccountingStorageTRES={}\n", setup::tracked_name(&site.licence)),
            false => String::new(),
        };
        let tokens = match plan.extras.rest {
            true => {
                format!("AuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key={folder}/state/jwt.key\n")
            }
            false => String::new(),
        };
        let plug_in = if site.mode == Mode::Watch { "" } else { "JobSubmitPlugins=lua\n" };
        format!(
            "# Written by 'busbar lab': a private Slurm on this machine. Not for production.\n\
             ClusterName=lab\n\
             SlurmctldHost=localhost(127.0.0.1)\n\
             SlurmctldPort={port}\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             SlurmUser=root\n\
             SlurmdUser=root\n\
             AuthType=auth/munge\n\
             AuthInfo=socket={folder}/munge/sock\n\
             CredType=cred/munge\n\
             StateSaveLocation={folder}/state\n\
             SlurmdSpoolDir={folder}/spool/%n\n\
             SlurmctldPidFile={folder}/state/slurmctld.pid\n\
             SlurmdPidFile={folder}/spool/%n/slurmd.pid\n\
             SlurmctldLogFile={folder}/log/slurmctld.log\n\
             SlurmdLogFile={folder}/log/slurmd.%n.log\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             {accounting}\
             {tracked}\
             {tokens}\
             SelectType=select/cons_tres\n\
             {select}\
             {gres}\
             SchedulerType=sched/backfill\n\
             SchedulerParameters=batch_sched_delay=0,bf_interval=1,permit_job_expansion\n\
             PriorityType=priority/basic\n\
             SlurmdParameters=config_overrides\n\
             MpiDefault=none\n\
             ReturnToService=2\n\
             SlurmdTimeout=30\n\
             MessageTimeout=60\n\
             TCPTimeout=60\n\
             BatchStartTimeout=300\n\
             MinJobAge=3600\n\
             KillWait=2\n\
             MaxJobCount=20000\n\
             {plug_in}\
             PrologFlags=Alloc\n\
             Prolog={folder}/prolog\n\
             Epilog={folder}/epilog\n\
             Licenses={licence}:{watts}\n\
             {kinds}\
             {partitions}",
            licence = site.licence,
            watts = site.watts,
        )
    }

    /// The processes of a lab, in the order in which they are started.
    pub(super) fn wanted(&self, record: &Record) -> Vec<Wanted> {
        let (plan, port) = (&record.plan, record.port);
        let environment = vec![
            (MARK.to_owned(), self.folder.clone().into_os_string()),
            ("PATH".to_owned(), path(plan.programs.as_deref())),
            ("SLURM_CONF".to_owned(), self.conf().into_os_string()),
        ];
        let log = |name: &str| self.folder.join("log").join(name);
        let wanted =
            |name: String, command: Vec<String>, log: PathBuf, ready: Option<Ready>| Wanted {
                name,
                command: command.into_iter().map(Into::into).collect(),
                environment: environment.clone(),
                log,
                ready,
            };
        let munge = |name: &str| format!("{}/munge/{name}", self.folder.display());
        let munged = vec![
            "munged".to_owned(),
            "--foreground".to_owned(),
            format!("--key-file={}", munge("key")),
            format!("--socket={}", munge("sock")),
            format!("--pid-file={}", munge("pid")),
            format!("--seed-file={}", munge("seed")),
        ];
        let ready = Some(Ready::File(self.at("munge/sock")));
        let mut all = vec![wanted("munged".to_owned(), munged, log("munged.out"), ready)];
        let conf = self.conf().display().to_string();
        let folder = self.folder.display();
        if plan.extras.accounting {
            let place = database_port(port, plan.all_nodes());
            let command = [
                "mariadbd".to_owned(),
                "--no-defaults".to_owned(),
                "--user=root".to_owned(),
                format!("--datadir={folder}/database"),
                format!("--socket={folder}/state/database.sock"),
                format!("--pid-file={folder}/state/database.pid"),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--port={place}"),
                format!("--init-file={folder}/database.sql"),
                "--innodb-lock-wait-timeout=900".to_owned(),
            ];
            let command = [&command[..], &self.small_database()].concat();
            let ready = Some(Ready::Port(place));
            all.push(wanted("mariadbd".to_owned(), command, log("mariadbd.out"), ready));
            let mut dbd = wanted(
                "slurmdbd".to_owned(),
                on_loopback(&["slurmdbd", "-D"]),
                log("slurmdbd.out"),
                Some(Ready::Port(dbd_port(port, plan.all_nodes()))),
            );
            // It looks for its configuration beside slurm.conf.
            dbd.environment.push(("HOME".to_owned(), "/root".into()));
            all.push(dbd);
        }
        let command = on_loopback(&[CONTROLLER, "-D", "-f", &conf]);
        all.push(wanted(CONTROLLER.to_owned(), command, log("slurmctld.out"), None));
        for number in 1..=plan.all_nodes() {
            let node = format!("n{number}");
            if let Some(busbar) = &plan.busbar {
                let config = self.node(number).join("agent.toml").display().to_string();
                let command = ["agent", "run", "--config", &config].map(str::to_owned);
                let command = [vec![busbar.display().to_string()], command.to_vec()].concat();
                let name = format!("agent.{node}");
                all.push(wanted(name.clone(), command, log(&format!("{name}.out")), None));
            }
            let command = on_loopback(&["slurmd", "-D", "-N", &node, "-f", &conf]);
            let name = format!("slurmd.{node}");
            all.push(wanted(name.clone(), command, log(&format!("{name}.out")), None));
        }
        if plan.extras.rest {
            let place = rest_port(port, plan.all_nodes());
            // It refuses to be root, and acts as whoever a token names.
            let address = format!("127.0.0.1:{place}");
            let command = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "slurmrestd",
                "-a",
                "rest_auth/jwt",
                "-f",
                &conf,
                &address,
            ];
            let mut command = command.map(str::to_owned).to_vec();
            if !plan.extras.accounting && record.version.has_separate_parsers() {
                // The others insist on slurmdbd.
                command.splice(5..5, ["-s".to_owned(), "openapi/v0.0.38".to_owned()]);
            }
            let ready = Some(Ready::Port(place));
            let mut rest = wanted("slurmrestd".to_owned(), command, log("slurmrestd.out"), ready);
            rest.environment.push(("SLURM_JWT".to_owned(), "daemon".into()));
            all.push(rest);
        }
        all
    }
}

/// The errors among what MariaDB says: the last of them only says that it gives up.
fn why_no_database(said: &str) -> String {
    let errors: Vec<&str> =
        said.lines().filter_map(|line| Some(line.split_once("[ERROR]")?.1.trim())).collect();
    match errors.is_empty() {
        true => said.trim().lines().last().unwrap_or("it says nothing").to_owned(),
        false => errors.join("; "),
    }
}

/// A daemon of Slurm, which listens on the address of this machine's name. Where that is another one than loopback, the
/// daemon gets a name of its own.
fn on_loopback(daemon: &[&str]) -> Vec<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let addresses = (name.trim(), 0).to_socket_addrs();
    let is_loopback = addresses.is_ok_and(|mut all| all.all(|address| address.ip().is_loopback()));
    let named: &[&str] = if is_loopback { &[] } else { &NAMED_LOCALHOST };
    named.iter().chain(daemon).map(|word| (*word).to_owned()).collect()
}

/// What runs a program on a machine that is called localhost.
const NAMED_LOCALHOST: [&str; 6] = [
    "unshare",
    "--uts",
    "sh",
    "-c",
    "echo localhost >/proc/sys/kernel/hostname && exec \"$@\"",
    "sh",
];

/// The number of ports of a lab: slurmctld, the nodes, slurmrestd, slurmdbd and its database, in this order.
pub(crate) fn ports(nodes: u32) -> u32 {
    nodes + 4
}

/// The port of slurmrestd.
pub(crate) fn rest_port(first: u16, nodes: u32) -> u16 {
    first + nodes as u16 + 1
}

fn dbd_port(first: u16, nodes: u32) -> u16 {
    first + nodes as u16 + 2
}

fn database_port(first: u16, nodes: u32) -> u16 {
    first + nodes as u16 + 3
}

/// The first of this many ports in a row that are free.
pub(crate) fn free_ports(count: u32) -> Result<u16, LabError> {
    // Below those that the kernel hands out; from a place that differs between processes.
    let (lowest, highest) = (15_000, 32_000 - count);
    let mut first = lowest + std::process::id().wrapping_mul(97) % (highest - lowest);
    for _ in 0..200 {
        let listen = |port: u32| TcpListener::bind(("127.0.0.1", port as u16));
        let held: Result<Vec<TcpListener>, io::Error> =
            (first..first + count).map(listen).collect();
        if held.is_ok() {
            return Ok(first as u16);
        }
        first = lowest + (first - lowest + count + 13) % (highest - lowest);
    }
    Err(LabError::Unsuitable(format!("there are no {count} free ports in a row below 32000")))
}

/// Numbers in a row, as Slurm writes them.
fn row(range: &RangeInclusive<u32>) -> String {
    match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("[{first}-{last}]"),
    }
}

/// The kinds of nodes of a lab, and which nodes are of which.
fn ranges(plan: &Plan) -> impl Iterator<Item = (NodeKind, RangeInclusive<u32>)> {
    let all = [(PLAIN, 1..=plan.nodes), (WITH_GPUS, plan.nodes + 1..=plan.all_nodes())];
    all.into_iter().filter(|(_, range)| !range.is_empty())
}

/// The line of slurm.conf for nodes of a kind.
fn nodes_of(plan: &Plan, kind: NodeKind, range: RangeInclusive<u32>, port: u16) -> String {
    let port = u32::from(port);
    let ports = row(&(port + range.start()..=port + range.end()));
    let NodeKind { cpus, memory_mib, gpus, .. } = kind;
    // Two packages, as their meters have.
    let sockets = match plan.has_parts() {
        true => format!(" Sockets=2 CoresPerSocket={} ThreadsPerCore=1", cpus / 2),
        false => String::new(),
    };
    let gres = if gpus == 0 { String::new() } else { format!(" Gres=gpu:{gpus}") };
    format!(
        "NodeName=n{} NodeAddr=127.0.0.1 Port={ports} CPUs={cpus}{sockets} RealMemory={memory_mib}{gres} State=UNKNOWN\n",
        row(&range)
    )
}

/// The lines of slurm.conf for partitions: one for all nodes, and one for each kind where there are several.
fn partitions(plan: &Plan) -> String {
    let whole = if plan.is_shared { "" } else { " OverSubscribe=EXCLUSIVE" };
    let line = |name: &str, nodes: &str, is_default: bool| {
        let default = if is_default { " Default=YES" } else { "" };
        format!("PartitionName={name} Nodes={nodes}{default} MaxTime=INFINITE{whole} State=UP\n")
    };
    if plan.gpu_nodes == 0 {
        return line("main", "ALL", true);
    }
    let kinds = ranges(plan);
    let kinds = kinds
        .map(|(kind, range)| line(kind.partition, &format!("n{}", row(&range)), kind == PLAIN));
    kinds.chain([line("all", "ALL", false)]).collect()
}

/// The machine that the nodes are, for the daemon. What 'busbar machine import --slurm' makes of such a lab has the same
/// partitions.
fn machine(plan: &Plan) -> String {
    let caps = "[caps]\nlevels = [\"80W\", \"120W\", \"160W\", \"200W\"]\n";
    let first = "# Written by 'busbar lab': nodes of two packages of 40 to 100 W each";
    let packages = "power.node = \"200W\"\npower.rest = \"0W\"\n";
    if plan.gpu_nodes == 0 && !plan.is_shared {
        let nodes = plan.nodes;
        return format!(
            "{first}.\nnodes = {nodes}\nsockets_per_node = 2\n{packages}power.idle = \"20W\"\n{caps}"
        );
    }
    let (most, idle) = GPU_WATTS;
    let mut text = format!("{first}, and GPUs of {idle} to {most} W each.\n");
    let is_only = plan.gpu_nodes == 0;
    for (kind, range) in ranges(plan) {
        let name = if is_only { "main".to_owned() } else { format!("{}-nodes", kind.partition) };
        let NodeKind { cpus, memory_mib, gpus, .. } = kind;
        text += &format!(
            "\n[[partition]]\nname = \"{name}\"\nnodes = {}\nprocessors_per_node = {cpus}\nsockets_per_node = 2\n\
             memory = \"{memory_mib}MiB\"\nshared = {}\n{packages}power.idle = \"{}W\"\n",
            range.count(),
            plan.is_shared,
            kind.idle_watts()
        );
        if gpus > 0 {
            text += &format!("power.gpus = {gpus}\npower.gpu = \"{most}W\"\n");
        }
    }
    if !is_only {
        let of = |name: &str, of: &str| {
            format!(
                "\n[[partition]]\nname = \"{name}\"\nof = [{of}]\nshared = {}\n",
                plan.is_shared
            )
        };
        text += &of("cpu", "\"cpu-nodes\"");
        text += &of("gpu", "\"gpu-nodes\"");
        text += &of("all", "\"cpu-nodes\", \"gpu-nodes\"");
    }
    text
}

/// The configuration of a daemon for the lab, which has power for two thirds of its nodes.
fn daemon(plan: &Plan, mode: Mode) -> String {
    let nodes = plan.all_nodes();
    let agent = |number: u32| {
        format!("  {{ name = \"n{number}\", address = \"nodes/n{number}/socket\" }},\n")
    };
    let agents: String = (1..=nodes).map(agent).collect();
    let agents = match plan.busbar {
        Some(_) => format!("[agents]\nlease = \"10s\"\nwithin = \"3s\"\nnodes = [\n{agents}]\n"),
        None => String::new(),
    };
    let mode = if mode == Mode::Admit { Mode::Admit } else { Mode::Steer };
    let names = format!("n{}", row(&(1..=nodes)));
    let programs = plan
        .programs
        .as_ref()
        .map_or(String::new(), |folder| format!("programs = \"{}/bin\"\n", folder.display()));
    format!(
        "# Written by 'busbar lab': busbar serve --config busbar.toml\n\
         state = \"busbar\"\nsocket = \"busbar.sock\"\nmachine = \"machine.toml\"\n\
         budget = \"67%\"\npolicy = \"share\"\nperiod = \"500ms\"\nsee_all = true\n\
         [engine]\nkind = \"slurm\"\ndeadline = \"15s\"\n\
         [slurm]\nmode = \"{mode}\"\nconf = \"slurm.conf\"\nnodes = \"{names}\"\nperiod = \"500ms\"\n{programs}{agents}"
    )
}

fn make_folder(path: &Path, mode: u32) -> Result<(), LabError> {
    let failed = |source| LabError::File { what: "make the folder", path: path.to_owned(), source };
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => (),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o755).create(path).map_err(failed)?;
        }
        done => done.map_err(failed)?,
    }
    // Whatever the umask is.
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)
}

/// A word that nobody can guess; `path` is what it is for.
fn random_word(path: &Path) -> Result<String, LabError> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|source| LabError::File { what: "write", path: path.to_owned(), source })?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a random key that nobody else can read.
fn write_secret(path: &Path) -> Result<(), LabError> {
    let write = || {
        let mut key = [0; 128];
        File::open("/dev/urandom")?.read_exact(&mut key)?;
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(&key)
    };
    write().map_err(|source| LabError::File { what: "write", path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use busbar_needs::needs;

    use super::*;

    #[test]
    fn a_database_that_cannot_be_made_says_why() {
        let said = "installing\n2026-11-18 23:19:06 0 [ERROR] InnoDB: Unable to create temporary file; errno: 28\n\
                    2026-11-18 23:19:06 0 [ERROR] Aborting\n\nSee https://mariadb.org\n";
        let why = "InnoDB: Unable to create temporary file; errno: 28; Aborting";
        assert_eq!(why_no_database(said), why);
        assert_eq!(why_no_database("no such program\n"), "no such program");
        assert_eq!(why_no_database(""), "it says nothing");
    }

    #[needs(mounts)]
    #[test]
    fn a_daemon_can_have_a_name_of_its_own() {
        let path = "/proc/sys/kernel/hostname";
        let before = fs::read_to_string(path).unwrap();
        let (program, arguments) = NAMED_LOCALHOST.split_first().unwrap();
        let printed = Command::new(program).args(arguments).args(["cat", path]).output().unwrap();
        let error = String::from_utf8_lossy(&printed.stderr);
        assert_eq!(String::from_utf8_lossy(&printed.stdout), "localhost\n", "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), before);
    }
}
