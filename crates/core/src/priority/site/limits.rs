//! The limits in a site's file: of qualities of service, accounts, users and partitions.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::str::FromStr;

use jiff::civil::DateTime;
use serde::Deserialize;
use toml::Spanned;

use super::{AccountFile, LogNames, PartitionFile, QosFile, SiteError, SiteFile, Source, UserFile};
use crate::calendar::{RunDates, local_after};
use crate::job::{GroupId, UserId};
use crate::limits::{
    AccountLimits, EachLimits, GroupLimits, JobLimits, JobRules, Limits, PartitionLimits,
    QosLimits, Reservation, Tres, TresLimit, UserLimits,
};
use crate::machine::numbered;
use crate::spelling::hint;
use crate::units::{Instant, Span, parse_decimal};

/// `[jobs]`: what holds for all jobs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobsFile {
    over_time_limit: Option<Spanned<String>>,
    #[serde(default)]
    kill_invalid_depend: bool,
}

/// `[[reservation]]`: nodes that are kept free for a while.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReservationFile {
    name: String,
    /// All nodes, if it is not said.
    nodes: Option<Spanned<ReservedNodes>>,
    start: Spanned<String>,
    end: Spanned<String>,
}

/// The nodes of a reservation.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a number of nodes, or node numbers such as \"0-63,128-191\"")]
enum ReservedNodes {
    /// So many.
    Count(u64),
    /// These.
    Numbers(String),
}

/// A reservation as it is written.
#[derive(Clone, Debug)]
struct Reserved {
    name: String,
    nodes: u64,
    numbers: Vec<Range<u32>>,
    start: Time,
    end: Time,
}

/// When a reservation begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Time {
    /// On the clock of the workload.
    Since(Instant),
    /// At the site.
    Wall(DateTime),
}

/// The limits of a file, by names.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    rules: JobRules,
    qos: Vec<(String, QosLimits)>,
    /// With the quality of service whose limits count there.
    partitions: Vec<(String, PartitionLimits, Option<String>)>,
    /// Each behind its parent, the root first.
    accounts: Vec<(String, AccountLimits)>,
    users: Vec<(String, Option<String>, UserLimits)>,
    reservations: Vec<Reserved>,
}

type Key<'a> = (&'static str, &'a Option<Spanned<String>>);

impl Source<'_> {
    /// A list of resources.
    fn tres<T: FromStr>(&self, (key, written): Key<'_>) -> Result<Option<T>, SiteError>
    where
        T::Err: std::fmt::Display,
    {
        let Some(written) = written else { return Ok(None) };
        let read = written.get_ref().parse();
        read.map(Some).map_err(|why| self.wrong(written.span().start, format!("'{key}': {why}")))
    }

    fn limit(&self, written: Key<'_>) -> Result<TresLimit, SiteError> {
        Ok(self.tres(written)?.unwrap_or_default())
    }

    /// `2026-03-01T08:00`, or seconds of the clock of the workload.
    pub(super) fn time(&self, key: &str, written: &Spanned<String>) -> Result<Time, SiteError> {
        let text = written.get_ref();
        if let Ok(millis) = parse_decimal(text, 1000) {
            return Ok(Time::Since(Instant::from_millis(millis)));
        }
        text.parse().map(Time::Wall).map_err(|_| {
            let why = format!(
                "'{key}' is '{text}'; write a date and a time such as 2026-03-01T08:00, or seconds of the workload's clock"
            );
            self.wrong(written.span().start, why)
        })
    }

    fn wall(&self, (key, written): Key<'_>) -> Result<Option<Span>, SiteError> {
        written.as_ref().map(|written| self.length(key, written)).transpose()
    }
}

impl Written {
    pub(super) fn of(
        source: &Source<'_>,
        (jobs, reservations): (&JobsFile, &[Spanned<ReservationFile>]),
        (accounts, users): (&[Spanned<AccountFile>], &[Spanned<UserFile>]),
        (qos, partitions): (&[Spanned<QosFile>], &[Spanned<PartitionFile>]),
    ) -> Result<Self, SiteError> {
        let mut written = Written::default();
        let over = source.wall(("over_time_limit", &jobs.over_time_limit))?;
        written.rules = JobRules {
            over_time_limit: over.unwrap_or(Span::ZERO),
            kill_invalid_depend: jobs.kill_invalid_depend,
        };
        for reservation in reservations {
            let ReservationFile { name, nodes, start, end } = reservation.get_ref();
            let [from, until] =
                [("start", start), ("end", end)].map(|(key, at)| source.time(key, at));
            let (from, until) = (from?, until?);
            let is_backwards = match (from, until) {
                (Time::Since(from), Time::Since(until)) => until <= from,
                (Time::Wall(from), Time::Wall(until)) => until <= from,
                _ => false,
            };
            if is_backwards {
                let why = format!("the reservation '{name}' ends before it begins");
                return Err(source.wrong(reservation.span().start, why));
            }
            let mut numbers = Vec::new();
            let nodes = match nodes.as_ref().map(|nodes| (nodes.span().start, nodes.get_ref())) {
                None => u64::MAX,
                Some((_, ReservedNodes::Count(count))) => *count,
                Some((at, ReservedNodes::Numbers(text))) => {
                    let whose = format!("the reservation '{name}'");
                    numbered(text, &(0..u32::MAX), &whose, &mut numbers)
                        .map_err(|why| source.wrong(at, why))?;
                    numbers.iter().map(|some| some.len() as u64).sum()
                }
            };
            let (name, start, end) = (name.clone(), from, until);
            written.reservations.push(Reserved { name, nodes, numbers, start, end });
        }
        for qos in qos {
            let of = of_qos(source, qos.get_ref())?;
            written.qos.push((qos.get_ref().name.clone(), of));
        }
        for partition in partitions {
            let (at, partition) = (partition.span().start, partition.get_ref());
            let known = || qos.iter().map(|qos| qos.get_ref().name.as_str());
            if let Some(name) = &partition.qos
                && !known().any(|known| known == name)
            {
                let why = format!(
                    "'qos' of the partition '{}' is '{name}', which is no [[qos]]{} add it, or leave 'qos' out",
                    partition.name,
                    hint(name, known())
                );
                return Err(source.wrong(at, why));
            }
            let mut job = JobLimits {
                wall: source.wall(("max_wall", &partition.max_wall))?,
                ..JobLimits::default()
            };
            job.most.0[1] = partition.max_nodes.unwrap_or(u64::MAX);
            job.least.0[1] = partition.min_nodes.unwrap_or(0);
            let limits = PartitionLimits { job, qos: None };
            written.partitions.push((partition.name.clone(), limits, partition.qos.clone()));
        }
        written.accounts.push(("root".to_owned(), AccountLimits::default()));
        // The tree has been checked: each account is below the root in the end.
        let mut left: Vec<&Spanned<AccountFile>> = accounts.iter().collect();
        while !left.is_empty() {
            let before = left.len();
            let mut later = Vec::new();
            for account in left {
                let file = account.get_ref();
                let parent = file.parent.as_deref().unwrap_or("root");
                match written.accounts.iter().position(|known| known.0 == parent) {
                    None => later.push(account),
                    Some(parent) => {
                        let (group, each, job) = association(
                            source,
                            (file.grp_jobs, file.grp_submit, &file.grp_tres),
                            (file.max_jobs, file.max_submit),
                            (&file.max_tres_per_job, &file.max_wall),
                        )?;
                        let limits = AccountLimits { parent: Some(parent), group, each, job };
                        written.accounts.push((file.name.clone(), limits));
                    }
                }
            }
            left = later;
            if left.len() == before {
                break;
            }
        }
        for user in users {
            let file = user.get_ref();
            let (group, each, job) = association(
                source,
                (file.grp_jobs, file.grp_submit, &file.grp_tres),
                (file.max_jobs, file.max_submit),
                (&file.max_tres_per_job, &file.max_wall),
            )?;
            let name = file.account.as_deref().unwrap_or("root");
            let account = written.accounts.iter().position(|known| known.0 == name).unwrap_or(0);
            let limits = UserLimits { account, group, each, job };
            written.users.push((file.name.clone(), file.account.clone(), limits));
        }
        Ok(written)
    }
}

type Text = Option<Spanned<String>>;

/// The limits of an association.
fn association(
    source: &Source<'_>,
    (jobs, submit, tres): (Option<u32>, Option<u32>, &Text),
    (each_jobs, each_submit): (Option<u32>, Option<u32>),
    (most, wall): (&Text, &Text),
) -> Result<(GroupLimits, EachLimits, JobLimits), SiteError> {
    let group = GroupLimits { jobs, submit, tres: source.limit(("grp_tres", tres))? };
    let each = EachLimits { jobs: each_jobs, submit: each_submit, tres: TresLimit::NONE };
    let job = JobLimits {
        most: source.limit(("max_tres_per_job", most))?,
        wall: source.wall(("max_wall", wall))?,
        least: Tres::default(),
    };
    Ok((group, each, job))
}

fn of_qos(source: &Source<'_>, file: &QosFile) -> Result<QosLimits, SiteError> {
    let tres = |key, written| source.limit((key, written));
    Ok(QosLimits {
        group: GroupLimits {
            jobs: file.grp_jobs,
            submit: file.grp_submit,
            tres: tres("grp_tres", &file.grp_tres)?,
        },
        user: EachLimits {
            jobs: file.max_jobs_per_user,
            submit: file.max_submit_per_user,
            tres: tres("max_tres_per_user", &file.max_tres_per_user)?,
        },
        account: EachLimits {
            jobs: file.max_jobs_per_account,
            submit: file.max_submit_per_account,
            tres: tres("max_tres_per_account", &file.max_tres_per_account)?,
        },
        job: JobLimits {
            most: tres("max_tres_per_job", &file.max_tres_per_job)?,
            wall: source.wall(("max_wall", &file.max_wall))?,
            least: source.tres(("min_tres_per_job", &file.min_tres_per_job))?.unwrap_or_default(),
        },
        denies: file.deny_on_limit,
    })
}

impl SiteFile {
    /// Limits for a log with these names and dates.
    ///
    /// # Errors
    ///
    /// If a reservation has dates, and the log has none.
    pub fn limits(&self, log: LogNames<'_>, dates: &RunDates) -> Result<Limits, SiteError> {
        let Written { rules, qos, partitions, accounts, users, reservations } = &self.limits;
        let at = |name: &str, time: Time| -> Result<Instant, SiteError> {
            match time {
                Time::Since(at) => Ok(at),
                Time::Wall(wall) => {
                    let calendar =
                        dates.calendar.as_ref().map_err(|why| SiteError::NoDatesFor {
                            path: self.path.clone(),
                            reservation: name.to_owned(),
                            why: why.clone(),
                        })?;
                    let at = local_after(calendar.zone(), wall, None);
                    Ok(at.map_or(Instant::NEVER, |at| calendar.instant(at)))
                }
            }
        };
        let reservation = |reserved: &Reserved| {
            let name = &reserved.name;
            Ok::<_, SiteError>(Reservation {
                number: self.number("reservation", name, &[]).unwrap_or(0),
                nodes: reserved.nodes,
                numbers: reserved.numbers.clone(),
                start: at(name, reserved.start)?,
                end: at(name, reserved.end)?,
            })
        };
        let reservations = reservations.iter().map(reservation).collect::<Result<_, _>>()?;
        let number =
            |kind: &str, name: &str, in_log| u16::try_from(self.number(kind, name, in_log)?).ok();
        let group = |name: &str| self.number("group", name, &[]).and_then(NonZeroU32::new);
        let mut of_users = HashMap::new();
        for (name, account, limits) in users {
            let Some(number) = self.number("user", name, &[]) else { continue };
            let user = NonZeroU32::new(number).map(UserId);
            let account = account.as_ref().and_then(|name| group(name)).map(GroupId);
            if account.is_some() {
                of_users.insert((account, user), *limits);
            }
            of_users.entry((None, user)).or_insert(*limits);
        }
        let named = |(place, (name, _)): (usize, &(String, AccountLimits))| {
            Some((GroupId(group(name)?), place))
        };
        Ok(Limits {
            reservations,
            rules: *rules,
            qos: (qos.iter())
                .filter_map(|(name, limits)| Some((number("queue", name, log.queues)?, *limits)))
                .collect(),
            partitions: (partitions.iter())
                .filter_map(|(name, limits, qos)| {
                    let qos = qos.as_ref().and_then(|name| number("queue", name, log.queues));
                    let partition = number("partition", name, log.partitions)?;
                    Some((partition, PartitionLimits { qos, ..*limits }))
                })
                .collect(),
            accounts: accounts.iter().map(|(_, limits)| *limits).collect(),
            by_group: accounts.iter().enumerate().filter_map(named).collect(),
            users: of_users,
        })
    }
}
