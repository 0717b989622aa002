//! Submits a workload to the lab at its times, and keeps what Slurm says of it afterwards.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::site::{Settings, accounting};
use super::workload::Submission;

/// What is kept of a run, packed.
pub(crate) const KEPT: [&str; 9] = [
    "sacct.txt",
    "config.txt",
    "nodes.txt",
    "partitions.txt",
    "reservations.txt",
    "associations.txt",
    "qos.txt",
    "looks.txt",
    "sdiag.txt",
];

/// Seconds between two looks at shares and factors.
const LOOK: u64 = 60;

/// Slurm's programs, for the lab with this `slurm.conf`.
pub(crate) struct Cluster<'a> {
    pub(crate) conf: &'a Path,
}

impl Cluster<'_> {
    /// What a program prints; the reason if it fails.
    pub(crate) fn ask(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(program);
        command.args(arguments).env("SLURM_CONF", self.conf).env("TZ", "UTC").env("LC_ALL", "C");
        let output = command.output().map_err(|error| format!("{program}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!(
                "{program} {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }

    fn tell(&self, program: &str, arguments: &[&str]) -> String {
        self.ask(program, arguments).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes accounts, users and qualities of service.
    pub(crate) fn account(&self, settings: &Settings) {
        for call in accounting(settings) {
            let words: Vec<&str> = ["-i"].into_iter().chain(call.split(' ')).collect();
            self.tell("sacctmgr", &words);
        }
    }

    /// Submits one job, or one array, and returns its number.
    fn submit(&self, submission: &Submission, numbers: &[Option<u32>]) -> Result<u32, String> {
        let user = format!("--uid={}", submission.user);
        let mut words = vec!["--parsable", "-o/dev/null", "-D/", &user];
        let after = submission.after.as_ref().and_then(|(kind, of)| {
            let of: Vec<String> =
                of.iter().filter_map(|at| numbers[*at]).map(|number| number.to_string()).collect();
            match (*kind, of.is_empty()) {
                ("singleton", _) => Some("-dsingleton".to_owned()),
                (_, true) => None,
                (kind, false) => Some(format!("-d{kind}:{}", of.join(":"))),
            }
        });
        words.extend(after.as_deref());
        words.extend(submission.arguments.iter().map(String::as_str));
        let printed = self.ask("sbatch", &words)?;
        let number = printed.trim().split(';').next().unwrap_or_default();
        number.parse().map_err(|_| format!("sbatch: {printed}"))
    }
}

/// Submits everything, waits until nothing can run any more, and writes what there is to know into a folder.
pub(crate) fn drive(
    cluster: &Cluster<'_>,
    settings: &Settings,
    workload: &[Submission],
    folder: &Path,
) {
    fs::create_dir_all(folder).unwrap();
    let began = Instant::now();
    let from = cluster.tell("date", &["+%Y-%m-%dT%H:%M:%S"]);
    let mut numbers: Vec<Option<u32>> = Vec::new();
    let mut late: f64 = 0.0;
    let mut looks = String::new();
    let mut next_look = 0;
    let mut look = |cluster: &Cluster<'_>, seconds: u64| {
        if seconds < next_look {
            return;
        }
        next_look = seconds + LOOK;
        let now = cluster.tell("date", &["+%Y-%m-%dT%H:%M:%S"]);
        let shares = cluster.tell("sshare", &["-a", "-l", "-P"]);
        let _ = write!(looks, "# {}{shares}", now);
    };
    let during = settings.during;
    let reserve_at = during * 0.25;
    let mut is_reserved = false;
    for submission in workload {
        loop {
            let now = began.elapsed().as_secs_f64();
            if !is_reserved && now >= reserve_at {
                is_reserved = true;
                // Announced longer before than jobs may take, so that nobody is on its nodes.
                let start = (during * 0.25).max(310.0) as u64;
                let minutes = (during / 600.0).ceil() as u64;
                let start = format!("starttime=now+{start}");
                let length = format!("duration={minutes}");
                cluster.tell(
                    "scontrol",
                    &[
                        "create",
                        "reservation",
                        "reservationname=maintenance",
                        "user=root",
                        "nodes=n[1-8,49-50]",
                        "flags=maint",
                        &start,
                        &length,
                    ],
                );
                let shown = cluster.tell("scontrol", &["show", "reservation"]);
                fs::write(folder.join("reservations.txt"), shown).unwrap();
            }
            let left = submission.at - now;
            if left <= 0.0 {
                late = late.max(-left);
                break;
            }
            if left > 0.5 {
                look(cluster, now as u64);
            }
            sleep(Duration::from_secs_f64(left.min(1.0)));
        }
        match cluster.submit(submission, &numbers) {
            Ok(number) => numbers.push(Some(number)),
            Err(error) => {
                eprintln!("{error}");
                numbers.push(None);
            }
        }
    }
    // Where nothing runs, what waits for other jobs waits forever.
    loop {
        look(cluster, began.elapsed().as_secs());
        let live = cluster.tell("squeue", &["-h", "-r", "-o", "%T %r"]);
        let waits_for_others = |line: &&str| line.contains("Dependency");
        let left = live.lines().filter(|line| !waits_for_others(line)).count();
        if left == 0 {
            break;
        }
        eprintln!("{:.0} s: {left} jobs are left", began.elapsed().as_secs_f64());
        sleep(Duration::from_secs(5));
    }
    let _ = cluster.ask("scancel", &["--state=PENDING", "-p", "batch,short,shared,gpu"]);
    for part in ["batch", "short", "shared", "gpu"] {
        let _ = cluster.ask("scancel", &["--state=PENDING", "-p", part]);
    }
    // Usage is entered once in a period, and the database is written to a little later.
    sleep(Duration::from_secs(65));
    look(cluster, u64::MAX - LOOK);
    let keep = |name: &str, program: &str, arguments: &[&str]| {
        fs::write(folder.join(name), cluster.tell(program, arguments)).unwrap();
    };
    keep("config.txt", "scontrol", &["show", "config"]);
    keep("nodes.txt", "scontrol", &["show", "node"]);
    keep("partitions.txt", "scontrol", &["show", "partition"]);
    keep("associations.txt", "sacctmgr", &["show", "assoc", "tree", "-P"]);
    keep("qos.txt", "sacctmgr", &["show", "qos", "-P"]);
    keep("sdiag.txt", "sdiag", &[]);
    let columns = "JobID,JobIDRaw,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,\
        NNodes,NodeList,ReqCPUS,AllocCPUS,ReqTRES,AllocTRES,Reason,Flags,Priority,Restarts,Reservation,JobName,ExitCode,SubmitLine";
    let sacct = |columns: &str| {
        cluster.ask("sacct", &["-a", "-D", "-X", "-P", "-S", from.trim(), "-o", columns])
    };
    let records = sacct(columns).or_else(|_| sacct(&columns.replace("Restarts,", "")));
    fs::write(folder.join("sacct.txt"), records.unwrap()).unwrap();
    fs::write(folder.join("looks.txt"), looks).unwrap();
    let about = format!(
        "run = \"{}\"\nseed = {}\nfrom = \"{}\"\nsubmissions = {}\nrefused = {}\nlatest_submission_s = {late:.2}\nseconds = {:.0}\n",
        settings.name,
        settings.seed,
        from.trim(),
        workload.len(),
        numbers.iter().filter(|number| number.is_none()).count(),
        began.elapsed().as_secs_f64(),
    );
    fs::write(folder.join("about.toml"), about).unwrap();
}
