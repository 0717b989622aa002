//! The site of the lab: 64 nodes of three kinds, who may use them, and what comes first.

use std::fmt::Write;

/// What differs between the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Names the run.
    pub(crate) name: &'static str,
    /// The seed of its workload.
    pub(crate) seed: u64,
    /// About how many jobs are submitted.
    pub(crate) jobs: u32,
    /// During so many seconds.
    pub(crate) during: f64,
    /// `SchedulerParameters`, beside what all runs have.
    pub(crate) scheduler: &'static str,
    /// Lines of `slurm.conf` about priorities.
    pub(crate) priority: &'static str,
    /// The processors that the account `teaching` may have at a time. Without them, there are no limits, no preemption, no
    /// arrays and no dependencies.
    pub(crate) teaching: Option<u32>,
}

/// The scheduling interval of a run, in seconds: `bf_interval`.
impl Settings {
    pub(crate) fn interval(&self) -> i64 {
        let word = self.scheduler.split(',').find_map(|word| word.strip_prefix("bf_interval="));
        word.and_then(|word| word.parse().ok()).expect("bf_interval is among the parameters")
    }
}

/// The runs. The first has priorities and shares alone. The last two were recorded before and looked at after the simulation was finished.
pub(crate) const RUNS: [Settings; 4] = [
    Settings {
        name: "priorities",
        seed: 11,
        jobs: 550,
        during: 600.0,
        scheduler: "bf_interval=10,bf_resolution=10,bf_window=60,bf_max_job_test=500,bf_continue",
        priority: "PriorityCalcPeriod=1\nPriorityDecayHalfLife=15\nPriorityMaxAge=0:20:00\n\
                   PriorityWeightAge=2000\nPriorityWeightFairshare=10000\nPriorityWeightJobSize=1000\n\
                   PriorityWeightPartition=1000\nPriorityWeightQOS=4000\n",
        teaching: None,
    },
    Settings {
        name: "fair-tree",
        seed: 43,
        jobs: 1500,
        during: 1800.0,
        scheduler: "bf_interval=10,bf_resolution=10,bf_window=60,bf_max_job_test=500,bf_continue",
        priority: "PriorityCalcPeriod=1\nPriorityDecayHalfLife=15\nPriorityMaxAge=0:20:00\n\
                   PriorityWeightAge=2000\nPriorityWeightFairshare=10000\nPriorityWeightJobSize=1000\n\
                   PriorityWeightPartition=1000\nPriorityWeightQOS=4000\n",
        teaching: Some(48),
    },
    Settings {
        name: "classic",
        seed: 2005,
        jobs: 1500,
        during: 1800.0,
        scheduler: "bf_interval=8,bf_resolution=5,bf_window=30,bf_max_job_test=100,bf_max_job_user=20",
        priority: "PriorityFlags=NO_FAIR_TREE\nPriorityCalcPeriod=1\nPriorityDecayHalfLife=10\nPriorityMaxAge=0:15:00\n\
                   PriorityWeightAge=3000\nPriorityWeightFairshare=6000\nPriorityWeightJobSize=500\n\
                   PriorityWeightPartition=2000\nPriorityWeightQOS=3000\nPriorityFavorSmall=YES\n",
        teaching: Some(72),
    },
    Settings {
        name: "assoc-limit",
        seed: 777,
        jobs: 1500,
        during: 1800.0,
        scheduler: "bf_interval=5,bf_resolution=10,bf_window=60,bf_max_job_test=300,bf_continue,assoc_limit_stop,default_queue_depth=50",
        priority: "PriorityCalcPeriod=1\nPriorityDecayHalfLife=20\nPriorityMaxAge=0:10:00\n\
                   PriorityWeightAge=4000\nPriorityWeightFairshare=8000\nPriorityWeightJobSize=2000\n\
                   PriorityWeightPartition=500\nPriorityWeightQOS=2000\n",
        teaching: Some(64),
    },
];

/// The nodes of the three kinds.
pub(crate) const WHOLE_NODES: u32 = 48;
pub(crate) const SHARED_NODES: u32 = 12;
pub(crate) const GPU_NODES: u32 = 4;
/// Processors of a node of each kind.
pub(crate) const SHARED_CPUS: u32 = 8;
pub(crate) const GPUS: u32 = 4;

/// A user: the name on any Debian, the account that is charged by default, and how much is submitted.
pub(crate) struct User {
    pub(crate) name: &'static str,
    pub(crate) account: &'static str,
    pub(crate) shares: u32,
    pub(crate) part: f64,
}

const fn user(name: &'static str, account: &'static str, shares: u32, part: f64) -> User {
    User { name, account, shares, part }
}

/// Users who are on every Debian; nobody of them is a person.
pub(crate) const USERS: [User; 6] = [
    user("games", "physics", 2, 0.26),
    user("news", "physics", 1, 0.12),
    user("mail", "physics", 1, 0.16),
    user("uucp", "biology", 1, 0.2),
    user("list", "biology", 1, 0.12),
    user("backup", "teaching", 1, 0.14),
];

/// The shares of the accounts.
pub(crate) const ACCOUNTS: [(&str, u32); 3] = [("physics", 5), ("biology", 3), ("teaching", 2)];

/// What `slurm.conf` of a lab becomes: its own lines without those that the site has instead.
pub(crate) fn conf(of_lab: &str, settings: &Settings) -> String {
    const OWN: [&str; 13] = [
        "SchedulerType",
        "SchedulerParameters",
        "PriorityType",
        "SelectTypeParameters",
        "Prolog",
        "Epilog",
        "PrologFlags",
        "Licenses",
        "NodeName",
        "PartitionName",
        "MinJobAge",
        "SlurmctldDebug",
        "JobRequeue",
    ];
    let key = |line: &str| line.split('=').next().unwrap_or_default().to_owned();
    let kept = of_lab.lines().filter(|line| !OWN.contains(&key(line).as_str()));
    let mut text: String = kept.map(|line| format!("{line}\n")).collect();
    let ports = of_lab.lines().find(|line| line.starts_with("NodeName")).expect("a lab has nodes");
    let ports = ports.split_whitespace().find_map(|word| word.strip_prefix("Port=[")).unwrap();
    let first: u32 = ports.split('-').next().unwrap().parse().unwrap();
    let mut nodes = |from: u32, to: u32, what: &str| {
        let (low, high) = (first + from - 1, first + to - 1);
        let _ = writeln!(
            text,
            "NodeName=n[{from}-{to}] NodeAddr=127.0.0.1 Port=[{low}-{high}] {what} State=UNKNOWN"
        );
    };
    let (shared, gpu) = (WHOLE_NODES + 1, WHOLE_NODES + SHARED_NODES + 1);
    let last = gpu + GPU_NODES - 1;
    nodes(1, 32, "CPUs=4 RealMemory=8000 Weight=1");
    nodes(33, WHOLE_NODES, "CPUs=4 RealMemory=8000 Weight=5");
    nodes(shared, gpu - 1, "CPUs=8 RealMemory=16000");
    nodes(gpu, last, "CPUs=8 RealMemory=16000 Gres=gpu:4");
    let _ = write!(
        text,
        "PartitionName=batch Nodes=n[1-{WHOLE_NODES}] Default=YES MaxTime=10 OverSubscribe=EXCLUSIVE PriorityJobFactor=10 PriorityTier=1 State=UP\n\
         PartitionName=short Nodes=n[33-{WHOLE_NODES}] MaxTime=1 OverSubscribe=EXCLUSIVE PriorityJobFactor=20 PriorityTier=3 State=UP\n\
         PartitionName=shared Nodes=n[{shared}-{}] MaxTime=10 PriorityJobFactor=10 PriorityTier=1 State=UP\n\
         PartitionName=gpu Nodes=n[{gpu}-{last}] MaxTime=10 PriorityJobFactor=30 PriorityTier=2 State=UP\n",
        gpu - 1,
    );
    let _ = write!(
        text,
        "SchedulerType=sched/backfill\n\
         SchedulerParameters={}\n\
         PriorityType=priority/multifactor\n{}\
         SelectTypeParameters=CR_CPU_Memory\n\
         DefMemPerCPU=1000\n\
         GresTypes=gpu\n\
         AccountingStorageTRES=gres/gpu\n\
         AccountingStorageEnforce=associations,limits,qos\n\
         AccountingStoreFlags=job_comment\n\
         PreemptType=preempt/qos\n\
         PreemptMode=REQUEUE\n\
         JobRequeue=1\n\
         MinJobAge=36000\n\
         SlurmctldDebug=verbose\n\
         DebugFlags=Backfill\n\
         LogTimeFormat=iso8601_ms\n",
        settings.scheduler, settings.priority,
    );
    text
}

/// `gres.conf`: GPUs are files, as Slurm 22.05 wants a device for each.
pub(crate) fn gres(folder: &str) -> String {
    format!("Name=gpu File={folder}/gpu[0-{}]\n", GPUS - 1)
}

/// The calls of `sacctmgr` that make accounts, users and qualities of service.
pub(crate) fn accounting(settings: &Settings) -> Vec<String> {
    let mut calls = Vec::new();
    let mut call = |text: String| calls.push(text);
    for (name, priority, limits) in [
        ("normal", 100, "MaxTRESPerUser=cpu=96 MaxJobsPerUser=30"),
        ("high", 400, "MaxJobsPerUser=3 MaxWall=00:05:00"),
        ("scavenger", 0, "UsageFactor=0.25 PreemptMode=requeue MaxTRESPerAccount=cpu=120"),
        ("urgent", 1000, "GrpTRES=cpu=48 MaxJobsPerUser=4 Preempt=scavenger"),
    ] {
        // `normal` is there from the beginning.
        if name != "normal" {
            call(format!("add qos {name}"));
        }
        let limits = if settings.teaching.is_some() { limits } else { "" };
        call(format!("modify qos {name} set Priority={priority} {limits}").trim_end().to_owned());
    }
    for (name, shares) in ACCOUNTS {
        call(format!("add account {name} Fairshare={shares}"));
    }
    for user in &USERS {
        call(format!("add user {} Account={} Fairshare={}", user.name, user.account, user.shares));
    }
    call("add user news Account=teaching Fairshare=1".to_owned());
    call("modify account root set qos=normal,high,urgent,scavenger DefaultQOS=normal".to_owned());
    let Some(teaching) = settings.teaching else { return calls };
    let mut call = |text: String| calls.push(text);
    call(format!("modify account teaching set GrpTRES=cpu={teaching}"));
    call("modify account biology set GrpJobs=24".to_owned());
    call("modify user list where account=biology set MaxJobs=8".to_owned());
    calls
}
