//! What puts a job before others at a site: its age, its user's fair share, its size, and so on.
//!
//! The priority of a job is a sum of points. Each factor is from 0 to 1, and counts with its weight, as in Slurm's
//! multifactor priority. Points are in steps of 2⁻²⁰ ([`Points`]): they are added and compared as integers.

use std::collections::HashMap;

#[doc(hidden)]
mod scheduler;
mod site;

use crate::fairshare::{AssociationId, Decay, FairShare, Rule, Shares};
use crate::job::{GroupId, Job, UserId};
use crate::units::{Instant, Span};

#[doc(hidden)]
pub use scheduler::Scheduler;
pub(crate) use scheduler::Setting;
pub use site::{LogNames, SiteError, SiteFile};

/// Points of priority, in steps of 2⁻²⁰.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Points(pub i64);

impl Points {
    const BITS: u32 = 20;

    /// So many points.
    pub fn whole(points: i64) -> Self {
        Points(points.saturating_mul(1 << Self::BITS))
    }

    /// A part of a weight. More than all of it is all.
    pub fn part(weight: u32, part: u64, whole: u64) -> Self {
        let all = u128::from(weight) << Self::BITS;
        let points = all * u128::from(part.min(whole)) / u128::from(whole.max(1));
        Points(i64::try_from(points).unwrap_or(i64::MAX))
    }

    /// A factor from 0 to 1, with its weight.
    pub fn factor(weight: u32, factor: f64) -> Self {
        Points((f64::from(weight) * factor * f64::from(1 << Self::BITS)) as i64)
    }

    /// In thousandths of points, to the nearest.
    pub fn thousandths(self) -> u64 {
        let thousandths = (i128::from(self.0) * 1000 + (1 << (Self::BITS - 1))) >> Self::BITS;
        u64::try_from(thousandths.max(0)).unwrap_or(u64::MAX)
    }

    /// In points, for display.
    pub fn points(self) -> f64 {
        self.0 as f64 / f64::from(1 << Self::BITS)
    }
}

/// The most that each factor adds to a priority, in points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Weights {
    /// Having waited for the whole of [`Settings::max_age`].
    pub age: u32,
    /// Having used nothing, or less than all others.
    pub fair_share: u32,
    /// Asking for the whole machine, or for nothing of it.
    pub job_size: u32,
    /// The partition with the highest priority.
    pub partition: u32,
    /// The quality of service with the highest priority.
    pub qos: u32,
    /// The association with the highest priority.
    pub association: u32,
    /// Asking for all processors.
    pub cpus: u32,
    /// Asking for all nodes.
    pub nodes: u32,
}

/// Those of the example in Slurm's documentation of the multifactor plugin: by itself, Slurm gives all factors the weight 0.
impl Default for Weights {
    fn default() -> Self {
        Weights {
            age: 1000,
            fair_share: 10_000,
            job_size: 1000,
            partition: 1000,
            qos: 0,
            association: 0,
            cpus: 0,
            nodes: 0,
        }
    }
}

impl Weights {
    /// One more than all together.
    fn sum(&self) -> i64 {
        let Weights { age, fair_share, job_size, partition, qos, association, cpus, nodes } = *self;
        let all = [age, fair_share, job_size, partition, qos, association, cpus, nodes];
        1 + all.into_iter().map(i64::from).sum::<i64>()
    }
}

/// How priorities are made at a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What each factor counts for.
    pub weights: Weights,
    /// Whoever has waited for so long does not become older.
    pub max_age: Span,
    /// Whether small jobs come first, and not large ones.
    pub favors_small: bool,
    /// How shares and usage become a factor.
    pub rule: Rule,
    /// How often usage is entered, and how fast it is forgotten.
    pub decay: Decay,
    /// What holding a processor and a node counts as usage, in thousandths.
    pub billing: Billing,
}

/// Those of Slurm where nobody says anything.
impl Default for Settings {
    fn default() -> Self {
        const DAY: u32 = 24 * 3600;
        Settings {
            weights: Weights::default(),
            max_age: Span::from_secs(7 * DAY),
            favors_small: false,
            rule: Rule::FairTree,
            decay: Decay {
                half_life: Some(Span::from_secs(7 * DAY)),
                period: Span::from_secs(300),
                lead: Span::ZERO,
                resets: Vec::new(),
            },
            billing: Billing::default(),
        }
    }
}

/// What is charged for what jobs hold, in thousandths of units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Billing {
    /// For a processor.
    pub cpu: u32,
    /// For a node.
    pub node: u32,
}

/// A unit for each processor.
impl Default for Billing {
    fn default() -> Self {
        Billing { cpu: 1000, node: 0 }
    }
}

impl Billing {
    /// The charge of a job on so many nodes, where it asked for others.
    pub fn of(&self, job: &Job, nodes: u32) -> u64 {
        let asked = u64::from(job.nodes.max(1));
        let processors = u64::from(job.processors) * u64::from(nodes) / asked;
        u64::from(self.cpu) * processors + u64::from(self.node) * u64::from(nodes)
    }
}

/// Priorities of a site, for the jobs of a workload.
#[derive(Clone, Debug, Default)]
pub struct Priorities {
    settings: Settings,
    scheduler: Option<Scheduler>,
    shares: Shares,
    /// Who is whom in the tree: by account and user.
    users: HashMap<Whom, AssociationId>,
    /// What associations used before the beginning, in units times seconds.
    used: Vec<(AssociationId, f64)>,
    of_associations: HashMap<AssociationId, Points>,
    /// By the log's numbers.
    qos: HashMap<u16, Level>,
    partitions: HashMap<u16, Level>,
}

/// What a quality of service or a partition gives its jobs.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    points: Points,
    /// Jobs of a higher tier come before all others.
    tier: u32,
}

/// What a job has points for when it is submitted: they stay the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixed {
    /// For its association.
    pub association: Points,
    /// For how much of the machine it asks for.
    pub job_size: Points,
    /// For its partition.
    pub partition: Points,
    /// For its quality of service.
    pub qos: Points,
    /// For processors and nodes, each by itself.
    pub resources: Points,
    /// For the tier of its partition: more than all else together.
    pub tier: Points,
}

impl Fixed {
    /// All together.
    pub fn sum(&self) -> Points {
        let Fixed { association, job_size, partition, qos, resources, tier } = *self;
        let all = [association, job_size, partition, qos, resources, tier];
        Points(all.iter().fold(0, |sum: i64, points| sum.saturating_add(points.0)))
    }
}

/// The priority that a job had, by what gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// For having waited.
    pub age: Points,
    /// For what its user had used.
    pub fair_share: Points,
    /// What it had from the beginning.
    pub fixed: Fixed,
}

impl Standing {
    /// What its parts are called, after their sum.
    pub const PARTS: [&str; 9] = [
        "priority",
        "age",
        "fair_share",
        "association",
        "job_size",
        "partition",
        "qos",
        "resources",
        "tier",
    ];

    /// Its parts, after their sum.
    pub fn points(&self) -> [Points; 9] {
        let Standing { age, fair_share, fixed } = *self;
        let sum = fixed.sum().0.saturating_add(age.0).saturating_add(fair_share.0);
        let Fixed { association, job_size, partition, qos, resources, tier } = fixed;
        let sum = Points(sum);
        [sum, age, fair_share, association, job_size, partition, qos, resources, tier]
    }
}

/// What a job asks for is measured by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// The nodes of the machine.
    pub nodes: u32,
    /// Its processors.
    pub processors: u32,
}

impl Priorities {
    /// These settings, with a share for each user.
    pub fn new(settings: Settings) -> Self {
        Priorities { settings, ..Priorities::default() }
    }

    /// That the site's file has none of the users of these jobs, if it is so.
    pub fn names_nobody(&self, jobs: &[Job]) -> Option<String> {
        let is_named = |job: &Job| self.users.contains_key(&(None, job.user));
        (!self.users.is_empty() && !jobs.iter().any(is_named)).then(|| {
            "--site names no user of these jobs: each has one share; name the table of the log's names in the file, as \
             in names = \"names.csv\", or write the log's numbers"
                .to_owned()
        })
    }

    /// How the site's scheduler is set, if the site says so.
    #[doc(hidden)]
    pub fn scheduler(&self) -> Option<&Scheduler> {
        self.scheduler.as_ref()
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Shares, and what was used of them before the beginning.
    pub fn fair_share(&self) -> FairShare {
        let Settings { decay, rule, .. } = &self.settings;
        let mut shares = FairShare::new(self.shares.clone(), decay.clone(), *rule);
        self.used.iter().for_each(|(association, used)| shares.has_used(*association, *used));
        shares
    }

    /// The points that a job of an association has from the beginning.
    pub fn fixed(&self, job: &Job, association: AssociationId, totals: Totals) -> Fixed {
        let Weights { job_size, cpus, nodes, .. } = self.settings.weights;
        let (asked, all) = (u64::from(job.nodes), u64::from(totals.nodes));
        let (processors, all_processors) =
            (u64::from(job.processors), u64::from(totals.processors));
        // The mean of both parts.
        let (part, whole) = (
            asked.min(all) * all_processors + processors.min(all_processors) * all,
            2 * all * all_processors,
        );
        let part = if self.settings.favors_small { whole - part } else { part };
        let resources =
            Points::part(cpus, processors, all_processors).0 + Points::part(nodes, asked, all).0;
        let level = |levels: &HashMap<u16, Level>, number: u16| {
            levels.get(&number).copied().unwrap_or_default()
        };
        let partition = level(&self.partitions, job.entry.partition);
        Fixed {
            association: self.of_associations.get(&association).copied().unwrap_or_default(),
            job_size: Points::part(job_size, part, whole),
            partition: partition.points,
            qos: level(&self.qos, job.entry.queue).points,
            resources: Points(resources),
            tier: Points::whole(self.settings.weights.sum().saturating_mul(partition.tier.into())),
        }
    }

    /// How far age has come since the start of the clock: what a job gains between two instants is the difference,
    /// for all jobs the same.
    ///
    /// From its submission to [`Settings::max_age`] later that is exactly the weight.
    pub fn growth(&self, at: Instant) -> Points {
        let max_age = u128::from(self.settings.max_age.millis().max(1));
        let weight = u128::from(self.settings.weights.age) << Points::BITS;
        // At most 2⁵² · 2⁶⁴.
        Points(i64::try_from(weight * u128::from(at.millis()) / max_age).unwrap_or(i64::MAX / 4))
    }

    /// What a job has for its age at an instant.
    pub fn age(&self, submit: Instant, at: Instant) -> Points {
        match self.is_oldest_at(submit) <= at {
            true => self.oldest(),
            false => Points(self.growth(at).0 - self.growth(submit.min(at)).0),
        }
    }

    /// When a job that was submitted then is as old as it becomes.
    pub fn is_oldest_at(&self, submit: Instant) -> Instant {
        submit + self.settings.max_age
    }

    /// The points of a job that is as old as it becomes.
    pub fn oldest(&self) -> Points {
        Points::whole(self.settings.weights.age.into())
    }
}

/// To whom a job is charged, by the log's numbers.
type Whom = (Option<GroupId>, Option<UserId>);

/// Who has which association while a simulation runs: users that nobody described get a share each below the root.
#[derive(Clone, Debug)]
pub struct Members {
    users: HashMap<Whom, AssociationId>,
    /// The user that was asked for last: jobs of a user come together.
    latest: Option<(Whom, AssociationId)>,
}

impl Members {
    /// Those that the site described.
    pub fn of(priorities: &Priorities) -> Self {
        Members { users: priorities.users.clone(), latest: None }
    }

    /// The association to which a job is charged.
    pub fn association(&mut self, shares: &mut FairShare, job: &Job) -> AssociationId {
        let exact = (job.group, job.user);
        if let Some((_, association)) = self.latest.filter(|latest| latest.0 == exact) {
            return association;
        }
        // Whoever is described without an account, or not at all, has one share whatever the account is.
        let known = self.users.get(&exact).or_else(|| self.users.get(&(None, job.user))).copied();
        let association = known.unwrap_or_else(|| {
            let new = shares.add_user(Shares::ROOT, 1);
            self.users.insert((None, job.user), new);
            new
        });
        self.latest = Some((exact, association));
        association
    }
}
