//! Who has which processors, and how much power. Nothing here is carried out: a policy works out
//! what is to be and writes down the way there.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Caps, Varied, Work};
use crate::policy::ppartition::Sharing;
use crate::policy::{Adopted, View};
use crate::solve::ptune::crew::{Crew, Levels};
use crate::units::{Instant, JobId, Span, Watts};
use crate::variation::kin::Kin;

mod free;
mod gain;
mod pouring;
mod team;

use free::Free;
use pouring::Pouring;
use team::Team;
pub(super) use team::Wanted;

/// Less than this stays free rather than change caps for it.
const GRAIN: Watts = Watts::from_watts(1);

/// The processors of a machine and the jobs on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Partition {
    pub(super) members: BTreeMap<JobId, Member>,
    /// Those that are suspended: they have processors and no power.
    resting: BTreeMap<JobId, Member>,
    free: Free,
}

/// A job that has processors, or is to get them.
#[derive(Clone, Debug)]
pub(super) struct Member {
    application: usize,
    pub(super) team: Arc<Team>,
    /// The caps it is to have, unless there are others below.
    wanted: Wanted,
    /// Caps on the same processors that it is to have instead, where power goes to those who gain most.
    instead: Option<Wanted>,
    /// The caps it has; none if it has not started yet.
    pub(super) held: Option<Caps>,
    /// What these came of.
    carried_out: Option<Wanted>,
    /// The power it may use. Where power was taken, this is less than what it is to have until it is
    /// tuned again.
    pub(super) budget: Watts,
    /// The least that its processors can be held at together.
    least: Watts,
    progress: Progress,
}

/// How far a job has got, as far as is believed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Progress {
    work: Work,
    since: Instant,
    /// How long all of it takes at the present speed.
    whole: Span,
}

/// A way to let a job in: its processors, which are the most efficient ones that are free, with their caps; and what others
/// are left with for it.
pub(super) struct Admission {
    pub(super) application: usize,
    pub(super) crew: Crew,
    pub(super) levels: Levels,
    pub(super) budgets: Vec<(JobId, Watts)>,
}

/// A job from which power is taken, in milliwatts.
struct Giver {
    job: JobId,
    has: Watts,
    /// What its part is in proportion to; nothing once it has given all it can.
    budget: u128,
    spare: u128,
    given: u128,
}

impl Giver {
    fn of((job, member): (&JobId, &Member)) -> Self {
        let spare = member.budget.saturating_sub(member.least);
        Giver {
            job: *job,
            has: member.budget,
            budget: u128::from(member.budget.milliwatts()),
            spare: u128::from(spare.milliwatts()),
            given: 0,
        }
    }
}

impl Progress {
    /// Time has passed.
    fn advance(&mut self, now: Instant) {
        self.work = self.work.after(now.since(self.since), self.whole);
        self.since = now;
    }
}

impl Member {
    /// A job that somebody else started, if it was given its processors by name.
    fn adopted(adopted: &Adopted, varied: &Varied) -> Option<Self> {
        let caps = adopted.caps.clone()?;
        let application = varied.application(adopted.job);
        let kin = varied.kin(application);
        let team = Team::new(caps.nodes().collect(), kin)?;
        let Adopted { work, since, point, .. } = *adopted;
        Some(Member {
            application,
            held: Some(caps.clone()),
            carried_out: None,
            budget: caps.total(),
            least: team.crew().least(kin),
            team: Arc::new(team),
            progress: Progress { work, since, whole: point.time },
            wanted: Wanted::by_node(caps),
            instead: None,
        })
    }

    /// Takes over the caps it really has, under which all of its work takes `whole`.
    fn correct(&mut self, caps: &Caps, kin: &Kin, whole: Span) {
        if !self.team.nodes().iter().copied().eq(caps.nodes())
            && let Some(team) = Team::new(caps.nodes().collect(), kin)
        {
            self.team = Arc::new(team);
        }
        (self.wanted, self.held) = (Wanted::by_node(caps.clone()), Some(caps.clone()));
        (self.instead, self.carried_out) = (None, None);
        self.budget = caps.total();
        self.progress.whole = whole;
    }

    fn target(&self) -> &Wanted {
        self.instead.as_ref().unwrap_or(&self.wanted)
    }

    /// The caps that are to be set, if it has others.
    pub(super) fn due_caps(&mut self) -> Option<Caps> {
        if self.carried_out.as_ref() == Some(self.target()) {
            return None;
        }
        let caps = self.target().caps(&self.team)?;
        // Caps may have come about in another way and be the same.
        if self.held.as_ref() == Some(&caps) {
            self.carried_out = Some(self.target().clone());
            return None;
        }
        Some(caps)
    }

    fn set(&mut self, caps: Caps) {
        (self.held, self.carried_out) = (Some(caps), Some(self.target().clone()));
    }

    /// Gives the job other caps, from now on; says how long it then has left. `whole` is how long all of
    /// its work takes under them.
    pub(super) fn recap(&mut self, caps: Caps, now: Instant, whole: Span) -> Span {
        self.set(caps);
        self.progress.advance(now);
        self.progress.whole = whole;
        self.progress.work.time(whole)
    }

    /// The job starts under the caps it is to have.
    pub(super) fn start(&mut self, caps: Caps, now: Instant, whole: Span) {
        self.set(caps);
        self.progress = Progress { work: Work::ALL, since: now, whole };
    }
}

impl Partition {
    /// The power of all jobs together.
    pub(super) fn power(&self) -> Watts {
        self.members.values().map(|member| member.budget).sum()
    }

    /// Power that jobs have and could do without.
    pub(super) fn spare(&self) -> Watts {
        self.members.values().map(|member| member.budget.saturating_sub(member.least)).sum()
    }

    /// Processors that jobs have.
    pub(super) fn allocated(&self) -> u64 {
        self.members.values().map(|member| member.team.nodes().len() as u64).sum()
    }

    /// Brings itself up to what the ledger says; returns who is gone: jobs that have ended, and those that
    /// were to start and did not.
    pub(super) fn follow(&mut self, view: &View<'_>, varied: &Varied) -> Vec<JobId> {
        for adopted in view.changes.adopted {
            let is_suspended = view.ledger.suspended(adopted.job).is_some();
            let list = if is_suspended { &mut self.resting } else { &mut self.members };
            list.extend(Member::adopted(adopted, varied).map(|member| (adopted.job, member)));
        }
        let known = self.members.keys().chain(self.resting.keys()).copied();
        let gone: Vec<JobId> = known.filter(|job| !view.ledger.holds(*job)).collect();
        for job in &gone {
            self.members.remove(job);
            self.resting.remove(job);
        }
        for (job, member) in &mut self.members {
            if let Some(caps) = view.ledger.caps(*job)
                && member.held.as_ref() != Some(caps)
            {
                // Until somebody else changed it just now, it ran as was decided. Otherwise what was
                // decided was refused, and never came to be.
                if view.changes.changed.contains(job) {
                    member.progress.advance(view.now);
                }
                let point = view.model.on(*job, view.job(*job), caps);
                let kin = varied.kin(member.application);
                member.correct(caps, kin, point.map_or(member.progress.whole, |point| point.time));
            }
        }
        self.rest(view);
        if !gone.is_empty() || view.changes.machine || !self.free.is_begun() {
            self.free.follow(view, varied);
        }
        gone
    }

    /// Sets those aside that are suspended now, and takes in those that go on.
    fn rest(&mut self, view: &View<'_>) {
        if !view.ledger.has_suspended() && self.resting.is_empty() {
            return;
        }
        let is_suspended = |job: &JobId| view.ledger.suspended(*job).is_some();
        let stopped: Vec<JobId> =
            self.members.keys().copied().filter(|job| is_suspended(job)).collect();
        let resumed: Vec<JobId> =
            self.resting.keys().copied().filter(|job| !is_suspended(job)).collect();
        for job in stopped {
            if let Some(mut member) = self.members.remove(&job) {
                member.progress.advance(view.now);
                self.resting.insert(job, member);
            }
        }
        for job in resumed {
            if let Some(mut member) = self.resting.remove(&job) {
                member.progress.since = view.now;
                self.members.insert(job, member);
            }
        }
    }

    /// Power that jobs hold of which nobody told.
    pub(super) fn held_by_strangers(&self, view: &View<'_>) -> Watts {
        let all = view.ledger.running();
        if all.len() == self.members.len() + self.resting.len() {
            return Watts::ZERO;
        }
        let strangers = all.iter().filter(|holding| !self.members.contains_key(&holding.job));
        strangers.map(|holding| holding.power).sum()
    }

    /// How many processors are free.
    pub(super) fn free_count(&self) -> u32 {
        self.free.count()
    }

    /// So many free processors, the most efficient ones.
    pub(super) fn candidates(&self, application: usize, count: u32) -> Option<Crew> {
        self.free.most_efficient(application, count)
    }

    /// What every job is left with if so much power is taken from all of them, from each in proportion
    /// to what it has; and how much that yields. From none more is taken than it can do without. In the
    /// paper the others are not asked for what is missing then.
    pub(super) fn take(&self, power: Watts, sharing: Sharing) -> (Vec<(JobId, Watts)>, Watts) {
        if power == Watts::ZERO {
            return (Vec::new(), Watts::ZERO);
        }
        let mut givers: Vec<Giver> = self.members.iter().map(Giver::of).collect();
        let mut missing = u128::from(power.milliwatts());
        if sharing == Sharing::Busbar {
            // Who has least to spare of what he has comes down to his least first. From there on, the
            // part of nobody who is left is more than he can spare.
            givers.sort_by(|a, b| (a.spare * b.budget).cmp(&(b.spare * a.budget)));
            let mut all: u128 = givers.iter().map(|giver| giver.budget).sum();
            for giver in &mut givers {
                if missing * giver.budget < giver.spare * all {
                    break;
                }
                giver.given = giver.spare;
                missing -= giver.given;
                all -= giver.budget;
                giver.budget = 0;
            }
            givers.sort_by_key(|giver| giver.job);
        }
        let all = givers.iter().map(|giver| giver.budget).sum::<u128>().max(1);
        let part = |up_to: u128| missing * up_to / all;
        let (mut up_to, mut taken) = (0, Watts::ZERO);
        let mut budgets = Vec::with_capacity(givers.len());
        for giver in givers {
            let before = part(up_to);
            up_to += giver.budget;
            let given = giver.given + (part(up_to) - before).min(giver.spare);
            // It is part of what he has, which fits in 64 bits.
            let given = Watts::from_milliwatts(given as u64);
            if given > Watts::ZERO {
                taken += given;
                budgets.push((giver.job, giver.has - given));
            }
        }
        (budgets, taken)
    }

    /// Takes power from everybody until all together have no more than this, or all are left with the
    /// least.
    pub(super) fn go_down_to(&mut self, power: Watts) {
        let excess = self.power().saturating_sub(power);
        let (budgets, _) = self.take(excess, Sharing::Busbar);
        self.set_budgets(&budgets);
    }

    pub(super) fn set_budgets(&mut self, budgets: &[(JobId, Watts)]) {
        for (job, budget) in budgets {
            if let Some(member) = self.members.get_mut(job) {
                member.budget = *budget;
            }
        }
    }

    /// Lets a job in.
    pub(super) fn admit(&mut self, job: JobId, admission: Admission, varied: &Varied) {
        let Admission { application, crew, levels, budgets } = admission;
        self.set_budgets(&budgets);
        let kin = varied.kin(application);
        let nodes = self.free.take(application, crew.count(), varied);
        let Some(team) = Team::new(nodes, kin) else { return };
        let (least, budget) = (crew.least(kin), crew.total(&levels));
        let progress = Progress { work: Work::ALL, since: Instant::ZERO, whole: Span::ZERO };
        let member = Member {
            application,
            team: Arc::new(team),
            wanted: Wanted::by_run(levels, budget),
            instead: None,
            held: None,
            carried_out: None,
            budget,
            least,
            progress,
        };
        self.members.insert(job, member);
    }

    /// Tunes everybody to what he is left with, and gives power that nobody holds to those who gain
    /// most by it.
    pub(super) fn settle(&mut self, varied: &Varied, power: Watts) {
        for member in self.members.values_mut() {
            if member.budget < member.wanted.total() {
                member.retune(varied);
            }
        }
        let free = power.saturating_sub(self.power());
        if free >= GRAIN {
            self.pour(varied, free);
        }
    }

    /// Gives free power away. Along hulls every watt more brings less than the one before, so the
    /// steepest stretches of all processors are fed first.
    fn pour(&mut self, varied: &Varied, free: Watts) {
        let mut pouring = Pouring::default();
        for (job, member) in &self.members {
            let kin = varied.kin(member.application);
            let mut add = |run, count, cap| pouring.add(*job, kin.run(run), count, cap);
            member.wanted.for_each(&member.team, kin, &mut add);
        }
        for (job, power) in pouring.pour(free) {
            if let Some(member) = self.members.get_mut(&job) {
                member.budget += power;
                member.retune(varied);
            }
        }
    }
}

impl Member {
    /// Divides the job's power among its processors anew. It then holds no more than it has a use for.
    fn retune(&mut self, varied: &Varied) {
        // It never has less than its processors need.
        let kin = varied.kin(self.application);
        let Some(levels) = self.team.feed().retune(kin, self.budget) else { return };
        self.budget = self.team.crew().total(&levels);
        self.wanted = Wanted::by_run(levels, self.budget);
    }
}
