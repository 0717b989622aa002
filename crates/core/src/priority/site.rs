//! A site's file: who has which share, and what puts jobs before others.
//!
//! Names of users, accounts, qualities of service and partitions become the numbers that a log has for them: by the table
//! that the import of records writes, by the header of the log, or because they are numbers. Everything that is not said is as in
//! [`Settings::default`]. A job whose user is not in the file is charged to a user of its own, who has one share below the root.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use serde::Deserialize;
use toml::{Spanned, Value};

mod limits;

use super::{Billing, Level, Points, Priorities, Scheduler, Setting, Settings, Weights};
use crate::calendar::{Calendar, NoCalendar, RunDates, local_after};
use crate::fairshare::{AssociationId, Decay, Rule, Shares};
use crate::job::{GroupId, UserId};
use crate::rows::{Form, TableError};
use crate::spelling::hint;
use crate::text;
use crate::units::{Instant, Span, parse_length};

/// Why a site's file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// It is no TOML, or has keys that nobody knows.
    #[error("{}: {why}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// The reason, with its line.
        why: String,
    },
    /// Something in it is wrong.
    #[error("{}, line {line}: {why}", path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// The line of the table or the value.
        line: usize,
        /// The reason, and what to do.
        why: String,
    },
    /// The table of names is wrong.
    #[error(transparent)]
    Names(#[from] TableError),
    /// Usage is reset by the calendar, and the log has no dates.
    #[error("{}: reset = \"{reset}\": {why}", path.display())]
    NoDates {
        /// Which file.
        path: PathBuf,
        /// How often usage is reset.
        reset: &'static str,
        /// Why there are no dates, and what to do.
        why: NoCalendar,
    },
    /// A reservation begins at a date, and the log has no dates.
    #[error("{}: the reservation '{reservation}': {why}", path.display())]
    NoDatesFor {
        /// Which file.
        path: PathBuf,
        /// The reservation.
        reservation: String,
        /// Why there are no dates, and what to do.
        why: NoCalendar,
    },
}

/// A site's file, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// A table of numbered names, beside this file.
    names: Option<PathBuf>,
    #[serde(default)]
    priority: PriorityFile,
    scheduler: Option<BTreeMap<String, Spanned<Value>>>,
    #[serde(default)]
    jobs: limits::JobsFile,
    #[serde(default)]
    account: Vec<Spanned<AccountFile>>,
    #[serde(default)]
    user: Vec<Spanned<UserFile>>,
    #[serde(default)]
    qos: Vec<Spanned<QosFile>>,
    #[serde(default)]
    partition: Vec<Spanned<PartitionFile>>,
    #[serde(default)]
    reservation: Vec<Spanned<limits::ReservationFile>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorityFile {
    fair_share: Option<Spanned<String>>,
    dampening: Option<Spanned<u32>>,
    calc_period: Option<Spanned<String>>,
    period_start: Option<Spanned<String>>,
    half_life: Option<Spanned<String>>,
    reset: Option<Spanned<String>>,
    max_age: Option<Spanned<String>>,
    favor_small: Option<bool>,
    #[serde(default)]
    weights: WeightsFile,
    #[serde(default)]
    billing: BillingFile,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    age: Option<u32>,
    fair_share: Option<u32>,
    job_size: Option<u32>,
    partition: Option<u32>,
    qos: Option<u32>,
    association: Option<u32>,
    cpus: Option<u32>,
    nodes: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BillingFile {
    cpu: Option<Spanned<f64>>,
    node: Option<Spanned<f64>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountFile {
    name: String,
    parent: Option<String>,
    #[serde(default = "one")]
    shares: u32,
    grp_jobs: Option<u32>,
    grp_submit: Option<u32>,
    grp_tres: Option<Spanned<String>>,
    max_jobs: Option<u32>,
    max_submit: Option<u32>,
    max_tres_per_job: Option<Spanned<String>>,
    max_wall: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserFile {
    name: String,
    account: Option<String>,
    #[serde(default = "one")]
    shares: u32,
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    usage: f64,
    grp_jobs: Option<u32>,
    grp_submit: Option<u32>,
    grp_tres: Option<Spanned<String>>,
    max_jobs: Option<u32>,
    max_submit: Option<u32>,
    max_tres_per_job: Option<Spanned<String>>,
    max_wall: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QosFile {
    name: String,
    #[serde(default)]
    priority: u32,
    /// To say where it belongs.
    #[serde(default)]
    tier: u32,
    grp_jobs: Option<u32>,
    grp_submit: Option<u32>,
    grp_tres: Option<Spanned<String>>,
    max_jobs_per_user: Option<u32>,
    max_jobs_per_account: Option<u32>,
    max_submit_per_user: Option<u32>,
    max_submit_per_account: Option<u32>,
    max_tres_per_job: Option<Spanned<String>>,
    max_tres_per_user: Option<Spanned<String>>,
    max_tres_per_account: Option<Spanned<String>>,
    min_tres_per_job: Option<Spanned<String>>,
    max_wall: Option<Spanned<String>>,
    #[serde(default)]
    deny_on_limit: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionFile {
    name: String,
    #[serde(default)]
    priority: u32,
    #[serde(default)]
    tier: u32,
    max_wall: Option<Spanned<String>>,
    min_nodes: Option<u64>,
    max_nodes: Option<u64>,
    qos: Option<String>,
}

/// What a quality of service or a partition is worth.
#[derive(Clone, Debug)]
struct LevelFile {
    name: String,
    priority: u32,
    tier: u32,
}

impl From<&QosFile> for LevelFile {
    fn from(file: &QosFile) -> Self {
        LevelFile { name: file.name.clone(), priority: file.priority, tier: file.tier }
    }
}

impl From<&PartitionFile> for LevelFile {
    fn from(file: &PartitionFile) -> Self {
        LevelFile { name: file.name.clone(), priority: file.priority, tier: file.tier }
    }
}

fn one() -> u32 {
    1
}

/// How often all usage is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    Daily,
    Weekly,
    Monthly,
    Quarterly,
    Yearly,
}

impl Reset {
    const ALL: [(&'static str, Reset); 5] = [
        ("daily", Reset::Daily),
        ("weekly", Reset::Weekly),
        ("monthly", Reset::Monthly),
        ("quarterly", Reset::Quarterly),
        ("yearly", Reset::Yearly),
    ];

    fn name(self) -> &'static str {
        Reset::ALL.iter().find(|known| known.1 == self).map_or("", |known| known.0)
    }

    /// The first day after this one on which usage is reset, at midnight. A week begins on Sunday.
    fn day_after(self, day: Date) -> Option<Date> {
        let month_after = |months: i32| day.first_of_month().checked_add(months.months()).ok();
        match self {
            Reset::Daily => day.tomorrow().ok(),
            Reset::Weekly => day.nth_weekday(1, Weekday::Sunday).ok(),
            Reset::Monthly => month_after(1),
            Reset::Quarterly => month_after(3 - i32::from(day.month() - 1) % 3),
            Reset::Yearly => month_after(13 - i32::from(day.month())),
        }
    }

    /// All resets of a run.
    fn instants(self, calendar: &Calendar, until: Instant) -> Vec<Instant> {
        let midnight = |day: Date| {
            local_after(calendar.zone(), day.at(0, 0, 0, 0), None).map(|at| calendar.instant(at))
        };
        let first = self.day_after(calendar.wall(Instant::ZERO).date());
        let days = std::iter::successors(first, |day| self.day_after(*day));
        days.map_while(midnight).take_while(|at| *at <= until).collect()
    }
}

/// A site's file that was read and checked.
#[derive(Clone, Debug)]
pub struct SiteFile {
    path: PathBuf,
    /// Its text, and the table of names: all that it is.
    written: String,
    settings: Settings,
    scheduler: Option<Scheduler>,
    reset: Option<Reset>,
    /// When a period of usage began.
    period_start: Option<limits::Time>,
    shares: Shares,
    users: Vec<(UserFile, Option<String>, AssociationId)>,
    qos: Vec<LevelFile>,
    partitions: Vec<LevelFile>,
    limits: limits::Written,
    names: Vec<Named>,
}

/// Files are the same if they say the same.
impl PartialEq for SiteFile {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for SiteFile {}

impl Hash for SiteFile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.written.hash(state);
    }
}

/// A name with its number in the log.
#[derive(Clone, Debug)]
struct Named {
    kind: String,
    number: u32,
    name: String,
}

/// The names that a log has itself, by their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogNames<'a> {
    /// Of users.
    pub users: &'a [(u32, String)],
    /// Of accounts.
    pub accounts: &'a [(u32, String)],
    /// Of queues, which are qualities of service.
    pub queues: &'a [(u32, String)],
    /// Of partitions.
    pub partitions: &'a [(u32, String)],
}

/// What a file is called in messages, and its text.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn wrong(&self, at: usize, why: impl Into<String>) -> SiteError {
        let line = self.text[..at.min(self.text.len())].matches('\n').count() + 1;
        SiteError::Wrong { path: self.path.to_owned(), line, why: why.into() }
    }

    fn length(&self, key: &str, written: &Spanned<String>) -> Result<Span, SiteError> {
        let wrong = |why: String| self.wrong(written.span().start, format!("'{key}': {why}"));
        let length = parse_length(written.get_ref()).map_err(|why| wrong(why.to_string()))?;
        match length < Span::from_secs(1) {
            true => Err(wrong("it is at least 1s".to_owned())),
            false => Ok(length),
        }
    }

    fn thousandths(&self, key: &str, written: &Spanned<f64>) -> Result<u32, SiteError> {
        let value = *written.get_ref();
        match (0.0..=1e6).contains(&value) {
            true => Ok((value * 1000.0).round() as u32),
            false => {
                let why = format!("'billing.{key}' is {value}; write a number from 0 to 1000000");
                Err(self.wrong(written.span().start, why))
            }
        }
    }
}

impl PriorityFile {
    fn settings(&self, source: &Source<'_>) -> Result<(Settings, Option<Reset>), SiteError> {
        let usual = Settings::default();
        let mut rule = Rule::default();
        if let Some(written) = &self.fair_share {
            let wrong = |why| source.wrong(written.span().start, format!("'fair_share': {why}"));
            rule = written.get_ref().parse().map_err(wrong)?;
        }
        if let Some(written) = &self.dampening {
            let why = match (&mut rule, *written.get_ref()) {
                (_, 0) => Some("'dampening' is 0; it is at least 1"),
                (Rule::FairTree, _) => {
                    Some("'dampening' is for fair_share = \"classic\"; leave it out")
                }
                (Rule::Classic { dampening }, value) => {
                    *dampening = value;
                    None
                }
            };
            if let Some(why) = why {
                return Err(source.wrong(written.span().start, why));
            }
        }
        let length = |key: &str, written: &Option<Spanned<String>>, usual: Span| {
            written.as_ref().map_or(Ok(usual), |written| source.length(key, written))
        };
        let period = length("calc_period", &self.calc_period, usual.decay.period)?;
        let half_life = match &self.half_life {
            None => usual.decay.half_life,
            Some(written) if written.get_ref() == "none" => None,
            Some(written) => Some(source.length("half_life", written)?),
        };
        if let (Some(length), Some(written)) = (half_life, &self.half_life)
            && length < period
        {
            let why = "'half_life' is less than 'calc_period'; make it longer, or write \"none\"";
            return Err(source.wrong(written.span().start, why));
        }
        let reset = match &self.reset {
            None => None,
            Some(written) if written.get_ref() == "none" => None,
            Some(written) => {
                let found = Reset::ALL.iter().find(|known| known.0 == written.get_ref());
                let why = || {
                    let text = written.get_ref();
                    format!(
                        "'reset' is '{text}'; write none, daily, weekly, monthly, quarterly or yearly"
                    )
                };
                Some(found.ok_or_else(|| source.wrong(written.span().start, why()))?.1)
            }
        };
        let WeightsFile { age, fair_share, job_size, partition, qos, association, cpus, nodes } =
            self.weights;
        let weights = Weights {
            age: age.unwrap_or(usual.weights.age),
            fair_share: fair_share.unwrap_or(usual.weights.fair_share),
            job_size: job_size.unwrap_or(usual.weights.job_size),
            partition: partition.unwrap_or(usual.weights.partition),
            qos: qos.unwrap_or(usual.weights.qos),
            association: association.unwrap_or(usual.weights.association),
            cpus: cpus.unwrap_or(usual.weights.cpus),
            nodes: nodes.unwrap_or(usual.weights.nodes),
        };
        let thousandths = |key, written: &Option<Spanned<f64>>, usual| {
            written.as_ref().map_or(Ok(usual), |written| source.thousandths(key, written))
        };
        let billing = Billing {
            cpu: thousandths("cpu", &self.billing.cpu, usual.billing.cpu)?,
            node: thousandths("node", &self.billing.node, usual.billing.node)?,
        };
        let settings = Settings {
            weights,
            max_age: length("max_age", &self.max_age, usual.max_age)?,
            favors_small: self.favor_small.unwrap_or(usual.favors_small),
            rule,
            decay: Decay { half_life, period, lead: Span::ZERO, resets: Vec::new() },
            billing,
        };
        Ok((settings, reset))
    }
}

/// The settings of the scheduler, by the keys of Slurm.
fn scheduler(
    source: &Source<'_>,
    table: &BTreeMap<String, Spanned<Value>>,
) -> Result<Scheduler, SiteError> {
    let mut scheduler = Scheduler::default();
    for (key, written) in table {
        let wrong = |why: String| source.wrong(written.span().start, why);
        let Some(setting) = Setting::ALL.iter().find(|setting| setting.key == key) else {
            let hint = hint(key, Setting::ALL.iter().map(|setting| setting.key));
            return Err(wrong(format!("[scheduler] has no '{key}'{hint} leave it out")));
        };
        let text = match written.get_ref() {
            Value::Boolean(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        setting.set(&mut scheduler, &text).map_err(|why| wrong(format!("'{key}': {why}")))?;
    }
    Ok(scheduler)
}

/// The tree of accounts, each below its parent wherever in the file that stands.
fn tree(
    source: &Source<'_>,
    accounts: &[Spanned<AccountFile>],
) -> Result<(Shares, HashMap<String, AssociationId>), SiteError> {
    let mut shares = Shares::default();
    let mut places = HashMap::from([("root".to_owned(), Shares::ROOT)]);
    let mut left: Vec<&Spanned<AccountFile>> = accounts.iter().collect();
    for (place, account) in accounts.iter().enumerate() {
        let name = &account.get_ref().name;
        let is_twice = accounts[..place].iter().any(|other| other.get_ref().name == *name);
        if is_twice || name == "root" {
            let why = match is_twice {
                true => format!("the account '{name}' is there twice; leave one out"),
                false => "the account 'root' is always there; leave it out".to_owned(),
            };
            return Err(source.wrong(account.span().start, why));
        }
    }
    while !left.is_empty() {
        let before = left.len();
        left.retain(|account| {
            let AccountFile { name, parent, shares: of_account, .. } = account.get_ref();
            let parent = places.get(parent.as_deref().unwrap_or("root")).copied();
            if let Some(parent) = parent {
                places.insert(name.clone(), shares.add_account(parent, *of_account));
            }
            parent.is_none()
        });
        if left.len() == before {
            let AccountFile { name, parent, .. } = left[0].get_ref();
            let parent = parent.as_deref().unwrap_or_default();
            let known = accounts.iter().map(|account| account.get_ref().name.as_str());
            let why = match known.clone().any(|known| known == parent) {
                true => format!(
                    "the account '{name}' is below itself; give one of its parents another parent"
                ),
                false => format!(
                    "the account '{name}' is below '{parent}', which is no [[account]]{} add it, or leave 'parent' out",
                    hint(parent, known)
                ),
            };
            return Err(source.wrong(left[0].span().start, why));
        }
    }
    Ok((shares, places))
}

fn levels<'a, T>(
    source: &Source<'_>,
    table: &str,
    written: &'a [Spanned<T>],
) -> Result<Vec<LevelFile>, SiteError>
where
    LevelFile: From<&'a T>,
{
    let mut levels: Vec<LevelFile> = Vec::new();
    for one in written {
        let level = LevelFile::from(one.get_ref());
        let LevelFile { name, tier, .. } = &level;
        if levels.iter().any(|other| other.name == *name) {
            let why = format!("the {table} '{name}' is there twice; leave one out");
            return Err(source.wrong(one.span().start, why));
        }
        if table == "qos" && *tier > 0 {
            let why = "'tier' is for [[partition]]; leave it out";
            return Err(source.wrong(one.span().start, why));
        }
        levels.push(level);
    }
    Ok(levels)
}

impl SiteFile {
    /// Reads a site's file, and the table of names beside it.
    ///
    /// # Errors
    ///
    /// If something in it is wrong.
    pub fn read(path: &Path) -> Result<Self, SiteError> {
        let text = text::read_whole(path)
            .map_err(|source| SiteError::Unreadable { path: path.to_owned(), source })?;
        SiteFile::from_text(path, text)
    }

    /// The same of its text.
    ///
    /// # Errors
    ///
    /// If something in it is wrong.
    pub fn from_text(path: &Path, text: String) -> Result<Self, SiteError> {
        let file: File = toml::from_str(&text).map_err(|why| SiteError::Malformed {
            path: path.to_owned(),
            why: why.to_string().trim_end().to_owned(),
        })?;
        let source = Source { path, text: &text };
        let (settings, reset) = file.priority.settings(&source)?;
        let period_start = file.priority.period_start.as_ref();
        let period_start =
            period_start.map(|written| source.time("period_start", written)).transpose()?;
        let scheduler =
            file.scheduler.as_ref().map(|table| scheduler(&source, table)).transpose()?;
        let (mut shares, accounts) = tree(&source, &file.account)?;
        let mut users: Vec<(UserFile, Option<String>, AssociationId)> = Vec::new();
        for user in &file.user {
            let written = user.get_ref().clone();
            let wrong = |why: String| source.wrong(user.span().start, why);
            let name = &written.name;
            let account = written.account.clone();
            let Some(parent) = accounts.get(account.as_deref().unwrap_or("root")) else {
                let account = account.unwrap_or_default();
                let known = accounts.keys().map(String::as_str);
                return Err(wrong(format!(
                    "the user '{name}' is of the account '{account}', which is no [[account]]{} add it, or leave \
                     'account' out",
                    hint(&account, known)
                )));
            };
            if users.iter().any(|(other, of, _)| other.name == *name && *of == account) {
                return Err(wrong(format!(
                    "the user '{name}' is twice in one account; leave one out"
                )));
            }
            if !(written.usage >= 0.0 && written.usage.is_finite()) {
                return Err(wrong(format!(
                    "'usage' of the user '{name}' is {}; write units times seconds, such as 3600",
                    written.usage
                )));
            }
            let association = shares.add_user(*parent, written.shares);
            users.push((written, account, association));
        }
        let qos = levels(&source, "qos", &file.qos)?;
        let partitions = levels(&source, "partition", &file.partition)?;
        let limits = limits::Written::of(
            &source,
            (&file.jobs, &file.reservation),
            (&file.account, &file.user),
            (&file.qos, &file.partition),
        )?;
        let names = match &file.names {
            None => Vec::new(),
            Some(names) => read_names(&path.parent().unwrap_or(Path::new("")).join(names))?,
        };
        let listed =
            names.iter().map(|Named { kind, number, name }| format!("{kind},{number},{name}\n"));
        Ok(SiteFile {
            path: path.to_owned(),
            written: listed.fold(text.clone(), |all, row| all + &row),
            settings,
            scheduler,
            reset,
            period_start,
            shares,
            users,
            qos,
            partitions,
            limits,
            names,
        })
    }

    /// The names of its users, some of them more than once.
    pub fn users(&self) -> impl Iterator<Item = &str> {
        self.users.iter().map(|user| user.0.name.as_str())
    }

    /// The names of the accounts that have users, some of them more than once.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        self.users.iter().filter_map(|user| user.1.as_deref())
    }

    /// The number of a name in a log.
    fn number(&self, kind: &str, name: &str, in_log: &[(u32, String)]) -> Option<u32> {
        let mut listed = self.names.iter().filter(|named| named.kind == kind);
        let listed = listed.find(|named| named.name == name).map(|named| named.number);
        let in_log = || in_log.iter().find(|named| named.1 == name).map(|named| named.0);
        listed.or_else(in_log).or_else(|| name.parse().ok()).filter(|number| *number > 0)
    }

    /// Priorities for a log with these names and dates.
    ///
    /// # Errors
    ///
    /// If usage is reset by the calendar, and the log has no dates.
    pub fn priorities(&self, log: LogNames<'_>, dates: &RunDates) -> Result<Priorities, SiteError> {
        let mut settings = self.settings.clone();
        if let Some(reset) = self.reset {
            let calendar = dates.calendar.as_ref().map_err(|why| SiteError::NoDates {
                path: self.path.clone(),
                reset: reset.name(),
                why: why.clone(),
            })?;
            settings.decay.resets = reset.instants(calendar, dates.until);
        }
        let period = settings.decay.period;
        settings.decay.lead = match (self.period_start, &dates.calendar) {
            (Some(limits::Time::Since(at)), _) => {
                let into = at.millis() % period.millis().max(1);
                Span::from_millis((period.millis() - into) % period.millis().max(1))
            }
            (Some(limits::Time::Wall(wall)), Ok(calendar)) => {
                let at = local_after(calendar.zone(), wall, None);
                at.map_or(Span::ZERO, |at| calendar.begins_after(at, period))
            }
            // Without dates, periods begin with the clock.
            (Some(limits::Time::Wall(_)), Err(_)) | (None, _) => Span::ZERO,
        };
        let weights = settings.weights;
        let mut users = HashMap::new();
        let mut of_associations = HashMap::new();
        let highest = self.users.iter().map(|user| user.0.priority).max().unwrap_or(0);
        for (user, account, association) in &self.users {
            let points =
                Points::part(weights.association, user.priority.into(), highest.max(1).into());
            of_associations.insert(*association, points);
            let Some(number) = self.number("user", &user.name, log.users) else { continue };
            let user = NonZeroU32::new(number).map(UserId);
            let account =
                account.as_ref().and_then(|name| self.number("group", name, log.accounts));
            let account = account.and_then(NonZeroU32::new).map(GroupId);
            if account.is_some() {
                users.insert((account, user), *association);
            }
            // Jobs that name no account, or another, are charged to the first one.
            users.entry((None, user)).or_insert(*association);
        }
        let mut tiers: Vec<u32> = self.partitions.iter().map(|level| level.tier).collect();
        tiers.sort_unstable();
        tiers.dedup();
        let of = |levels: &[LevelFile], kind: &str, in_log, weight: u32| {
            let highest = levels.iter().map(|level| level.priority).max().unwrap_or(0).max(1);
            let level = |level: &LevelFile| {
                let number = u16::try_from(self.number(kind, &level.name, in_log)?).ok()?;
                let points = Points::part(weight, level.priority.into(), highest.into());
                let tier = tiers.partition_point(|tier| *tier < level.tier);
                Some((number, Level { points, tier: tier as u32 }))
            };
            levels.iter().filter_map(level).collect::<HashMap<u16, Level>>()
        };
        let used = self.users.iter().filter(|user| user.0.usage > 0.0);
        Ok(Priorities {
            qos: of(&self.qos, "queue", log.queues, weights.qos),
            partitions: of(&self.partitions, "partition", log.partitions, weights.partition),
            used: used.map(|(user, _, association)| (*association, user.usage)).collect(),
            shares: self.shares.clone(),
            settings,
            scheduler: self.scheduler.clone(),
            users,
            of_associations,
        })
    }
}

const NAMES: Form = Form {
    what: "the table of names",
    columns: &["kind", "number", "name"],
    form: "write kind,number,name, such as user,1,alice",
};

/// Reads a table of numbered names, as the import of records writes it.
fn read_names(path: &Path) -> Result<Vec<Named>, SiteError> {
    let text = NAMES.read(path)?;
    let mut names = Vec::new();
    for row in NAMES.rows(&text, path) {
        let row = row?;
        let [kind, number, name] = row.all();
        let number: u32 =
            number.parse().map_err(|why| row.unreadable("number", format!("'{number}': {why}")))?;
        names.push(Named { kind: kind.to_owned(), number, name: name.to_owned() });
    }
    Ok(names)
}
