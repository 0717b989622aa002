//! Which limits hold for a job, and whose jobs each of them counts.

use super::{
    AccountLimits, Asks, EachLimits, GroupLimits, JobLimits, Limits, TresLimit, UserLimits,
};
use crate::job::{GroupId, UserId};

/// Whose jobs are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// All of a quality of service.
    Qos(u16),
    /// Those of a user in it.
    QosUser(u16, Option<UserId>),
    /// Those of an account in it.
    QosAccount(u16, Account),
    /// All of an account and of those below it.
    Account(usize),
    /// Those of a user in an account.
    Member(Account, Option<UserId>),
    /// The tasks of an array.
    Array(u64),
}

/// An account: its place at the site, or the log's number if the site does not name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Account {
    Known(usize),
    Stranger(u32),
}

/// How many jobs of somebody may run at a time, and what they may have together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) of: Subject,
    pub(crate) jobs: Option<u32>,
    pub(crate) tres: TresLimit,
}

/// All that holds for a job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// While jobs run.
    pub(crate) bounds: Vec<Bound>,
    /// How many jobs of somebody may wait or run.
    pub(crate) submits: Vec<(Subject, u32)>,
    /// For the job itself.
    pub(crate) job: JobLimits,
    /// Whether it is refused, and not left waiting for ever, if it can never run.
    pub(crate) denies: bool,
}

impl Class {
    fn bound(&mut self, of: Subject, jobs: Option<u32>, tres: TresLimit) {
        if jobs.is_some() || !tres.is_none() {
            self.bounds.push(Bound { of, jobs, tres });
        }
    }

    fn submit(&mut self, of: Subject, most: Option<u32>) {
        self.submits.extend(most.map(|most| (of, most)));
    }
}

/// Takes a limit, unless a level that counts more has set it already.
fn unless<T: Copy>(is_set: &mut bool, limit: Option<T>) -> Option<T> {
    let counts = limit.filter(|_| !*is_set);
    *is_set |= limit.is_some();
    counts
}

/// The same of resources, each by itself.
fn unless_tres(set: &mut TresLimit, limit: TresLimit) -> TresLimit {
    let counts = limit.without(set);
    *set = set.or(limit);
    counts
}

impl Limits {
    /// What holds for a job.
    pub(crate) fn class(&self, asks: &Asks<'_>) -> Class {
        let job = asks.job;
        let mut class = Class::default();
        let partition = self.partitions.get(&job.entry.partition);
        let (account, user) = self.member(job.group, job.user);
        let ours = match account {
            Some(place) => Account::Known(place),
            None => Account::Stranger(job.group.map_or(0, |group| group.0.get())),
        };
        if let Some((array, at_most)) = asks.array {
            class.bound(Subject::Array(array), Some(at_most), TresLimit::NONE);
        }
        let mut single = partition.map_or(JobLimits::default(), |partition| partition.job);
        let of_partition = partition.and_then(|partition| partition.qos);
        let own = Some(job.entry.queue).filter(|own| Some(*own) != of_partition);
        let (mut jobs, mut submit, mut tres) = (false, false, TresLimit::NONE);
        let (mut user_jobs, mut user_submit, mut user_tres) = (false, false, TresLimit::NONE);
        let (mut account_jobs, mut account_submit, mut account_tres) =
            (false, false, TresLimit::NONE);
        // A partition has limits of its own; those of levels count below.
        let mut each_job = JobLimits::default();
        for number in of_partition.into_iter().chain(own) {
            let Some(qos) = self.qos.get(&number) else { continue };
            let group = Subject::Qos(number);
            class.bound(
                group,
                unless(&mut jobs, qos.group.jobs),
                unless_tres(&mut tres, qos.group.tres),
            );
            class.submit(group, unless(&mut submit, qos.group.submit));
            let by_user = Subject::QosUser(number, job.user);
            class.bound(
                by_user,
                unless(&mut user_jobs, qos.user.jobs),
                unless_tres(&mut user_tres, qos.user.tres),
            );
            class.submit(by_user, unless(&mut user_submit, qos.user.submit));
            let by_account = Subject::QosAccount(number, ours);
            class.bound(
                by_account,
                unless(&mut account_jobs, qos.account.jobs),
                unless_tres(&mut account_tres, qos.account.tres),
            );
            class.submit(by_account, unless(&mut account_submit, qos.account.submit));
            inherit(&mut each_job, &qos.job);
            class.denies |= qos.denies;
        }
        if let Some(place) = account {
            let (mut each, mut of_user) = (EachLimits::default(), GroupLimits::default());
            if let Some(user) = user {
                (each, of_user) = (user.each, user.group);
                inherit(&mut each_job, &user.job);
            }
            for above in self.path(place) {
                let one = &self.accounts[above];
                each.jobs = each.jobs.or(one.each.jobs);
                each.submit = each.submit.or(one.each.submit);
                inherit(&mut each_job, &one.job);
            }
            let member = Subject::Member(ours, job.user);
            // What a quality of service says of its users or accounts counts instead.
            let most = each.jobs.filter(|_| !user_jobs && !account_jobs);
            let most = most.into_iter().chain(of_user.jobs.filter(|_| !jobs)).min();
            class.bound(member, most, of_user.tres.without(&tres));
            let most = each.submit.filter(|_| !user_submit && !account_submit);
            class.submit(member, most.into_iter().chain(of_user.submit.filter(|_| !submit)).min());
            for above in self.path(place) {
                let AccountLimits { group, .. } = &self.accounts[above];
                let of = Subject::Account(above);
                class.bound(of, group.jobs.filter(|_| !jobs), group.tres.without(&tres));
                class.submit(of, group.submit.filter(|_| !submit));
            }
        }
        // Of the partition and of levels, the tighter one.
        single.wall = single.wall.into_iter().chain(each_job.wall).min();
        for (most, other) in single.most.0.iter_mut().zip(each_job.most.0) {
            *most = (*most).min(other);
        }
        for (least, other) in single.least.0.iter_mut().zip(each_job.least.0) {
            *least = (*least).max(other);
        }
        class.job = single;
        class
    }

    /// The account of somebody, and what is said of the user there.
    fn member(
        &self,
        group: Option<GroupId>,
        user: Option<UserId>,
    ) -> (Option<usize>, Option<&UserLimits>) {
        let known = self.users.get(&(group, user)).or_else(|| {
            // A user of another account than the site says is one of that account all the same.
            let other = group.is_some_and(|group| self.by_group.contains_key(&group));
            self.users.get(&(None, user)).filter(|_| !other)
        });
        let account = known.map(|user| user.account);
        (account.or_else(|| self.by_group.get(&group?).copied()), known)
    }

    /// An account and all above it.
    fn path(&self, account: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(account), |place| self.accounts[*place].parent)
    }
}

/// Takes over what is not said yet.
fn inherit(ours: &mut JobLimits, other: &JobLimits) {
    ours.wall = ours.wall.or(other.wall);
    ours.most = ours.most.or(other.most);
    for (least, other) in ours.least.0.iter_mut().zip(other.least.0) {
        if *least == 0 {
            *least = other;
        }
    }
}
