//! A driver over simulated jobs that can begin anew at any instant.
//!
//! It knows jobs by their numbers, which stay; their ids are places in the list of those that run or
//! wait, and are given anew at every handover.

use std::collections::{BTreeMap, BTreeSet};

use busbar::budget::Budget;
use busbar::dispatch::{Applied, Dispatch, Nodes};
use busbar::job::Job;
use busbar::ledger::Holding;
use busbar::machine::Machine;
use busbar::model::{Caps, Model, OperatingPoint, Outcome, Work};
use busbar::policy::{Adopted, BuildContext, Policy, PolicySpec};
use busbar::units::{Instant, JobId, NodeId, Span};

/// How the model of a list of jobs is made.
type Models<'a> = &'a dyn Fn(&[Job]) -> Box<dyn Model>;

/// What only happens on real machines.
#[derive(Clone, Debug)]
pub(super) enum Trouble {
    /// One of the running jobs, by its place among them, is suspended.
    Suspend(u32),
    /// All that are suspended are to go on.
    Resume,
    /// Somebody sets another budget.
    Budget(Budget),
}

/// Where a running job stands.
#[derive(Clone, Debug)]
struct Course {
    point: OperatingPoint,
    caps: Option<Caps>,
    outcome: Outcome,
    /// Since when it goes on like this; in the future while it moves.
    since: Instant,
    /// What is really left of its work, and what is believed to be: the share of its limit.
    work: Work,
    allowance: Work,
    moved: Option<Instant>,
    suspended: bool,
    /// How often it was given another point.
    changes: u64,
}

impl Course {
    /// Brings it up to now.
    fn advance(&mut self, now: Instant) {
        if !self.suspended {
            let elapsed = now.since(self.since);
            self.work = self.work.after(elapsed, self.outcome.run_time);
            self.allowance = self.allowance.after(elapsed, self.point.time);
        }
        self.since = self.since.max(now);
    }

    fn done(&self) -> Instant {
        self.since + self.work.time(self.outcome.run_time)
    }

    fn up(&self) -> Instant {
        self.since + self.allowance.time(self.point.time)
    }

    fn end(&self, overstay: bool) -> Instant {
        match self.suspended {
            true => Instant::NEVER,
            false if overstay => self.done(),
            false => self.done().min(self.up()),
        }
    }
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// When each job started, by its number.
    pub(super) starts: Vec<Option<Instant>>,
    /// When jobs changed that had been handed over, and which.
    pub(super) changes: Vec<(Instant, u64)>,
}

pub(super) struct World<'a> {
    policy_spec: PolicySpec,
    machine: &'a Machine,
    budget: Budget,
    models: Models<'a>,
    /// Those to come, last first.
    to_come: Vec<(Job, Span)>,
    run_times: Vec<Span>,
    /// Whether jobs go on beyond their time.
    pub(super) overstay: bool,
    /// Whether more power may be held than the limit allows.
    pub(super) may_exceed: bool,
    troubles: Vec<(Instant, Trouble)>,
    now: Instant,
    /// Those that run or wait, by their ids; those that have ended stay until the next handover.
    jobs: Vec<Job>,
    courses: BTreeMap<u64, Course>,
    told: Told,
    /// The numbers of those that run and have been handed over.
    handed_over: BTreeSet<u64>,
    over: Vec<bool>,
    dispatch: Dispatch,
    model: Box<dyn Model>,
    policy: Box<dyn Policy>,
    wake: Option<Instant>,
}

impl<'a> World<'a> {
    pub(super) fn new(
        spec: &PolicySpec,
        machine: &'a Machine,
        budget: Budget,
        models: Models<'a>,
        mut jobs: Vec<(Job, Span)>,
    ) -> Self {
        let (count, model) = (jobs.len(), models(&[]));
        let run_times = jobs.iter().map(|(_, run_time)| *run_time).collect();
        jobs.reverse();
        World {
            policy_spec: spec.clone(),
            machine,
            models,
            to_come: jobs,
            run_times,
            overstay: false,
            may_exceed: false,
            troubles: Vec::new(),
            now: Instant::ZERO,
            jobs: Vec::new(),
            courses: BTreeMap::new(),
            told: Told { starts: vec![None; count], changes: Vec::new() },
            handed_over: BTreeSet::new(),
            over: vec![false; count],
            dispatch: Dispatch::new(machine, budget.clone(), Nodes::Named, model.as_ref(), &[]),
            budget,
            model,
            policy: spec.build(&BuildContext::default()),
            wake: None,
        }
    }

    pub(super) fn trouble(&mut self, mut troubles: Vec<(Instant, Trouble)>) {
        troubles.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        self.may_exceed |= !troubles.is_empty();
        self.troubles = troubles;
    }

    /// Runs until everybody is gone.
    pub(super) fn run(mut self, mut handovers: Vec<Instant>, hands_over: bool) -> Told {
        handovers.sort_by_key(|at| std::cmp::Reverse(*at));
        while let Some(now) = self.next(handovers.last().copied()) {
            assert!(now >= self.now);
            self.now = now;
            self.dispatch.advance(now);
            self.let_happen();
            while handovers.pop_if(|at| *at <= now).is_some() {
                if hands_over {
                    self.hand_over();
                }
            }
            self.wake.take_if(|at| *at <= now);
            self.ask();
        }
        assert!(self.dispatch.queue().is_empty(), "{:?} wait", self.dispatch.queue().len());
        assert!(self.courses.is_empty(), "{:?}", self.courses);
        assert!(self.over.iter().all(|over| *over), "{:?}", self.over);
        self.told
    }

    fn next(&self, handover: Option<Instant>) -> Option<Instant> {
        let ends = self.courses.values().map(|course| course.end(self.overstay));
        let arrival = self.to_come.last().map(|(job, _)| job.submit);
        let change = self.budget.changes_after(self.now).first().map(|change| change.0);
        let trouble = self.troubles.last().map(|(at, _)| *at);
        let someone = !self.courses.is_empty() || !self.dispatch.queue().is_empty();
        let wake = self.wake.filter(|_| someone);
        // A job that is over its time is looked after when that is so.
        let holdings = self.dispatch.ledger().running().iter().map(|holding| holding.until);
        let late = holdings.filter(|_| self.overstay).min();
        let all = ends.chain(arrival).chain(change).chain(trouble).chain(wake).chain(late);
        let next = all.chain(handover).min()?.max(self.now);
        (next < Instant::LAST && (someone || arrival.is_some())).then_some(next)
    }

    fn id(&self, number: u64) -> JobId {
        let place = self.jobs.iter().position(|job| job.number == number).unwrap();
        JobId(place as u32)
    }

    fn let_happen(&mut self) {
        let (now, overstay) = (self.now, self.overstay);
        let is_due = |course: &Course| course.end(overstay) <= now;
        let due = self.courses.iter().filter(|(_, course)| is_due(course));
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        for number in due {
            self.courses.remove(&number);
            self.over[number as usize] = true;
            self.dispatch.end(self.id(number)).unwrap();
        }
        if self.budget.changes_after(Instant::ZERO).iter().any(|change| change.0 == now) {
            self.dispatch.budget_changed();
        }
        while let Some((_, trouble)) = self.troubles.pop_if(|(at, _)| *at <= now) {
            self.make(trouble);
        }
        if self.troubles.is_empty() {
            self.resume_all();
        }
        while let Some((job, _)) = self.to_come.pop_if(|(job, _)| job.submit <= now) {
            self.jobs.push(job);
            self.model = (self.models)(&self.jobs);
            self.arrive(self.jobs.len() - 1);
        }
        self.extend_the_late();
    }

    fn arrive(&mut self, place: usize) {
        let job = &self.jobs[place];
        if self.dispatch.arrive(self.model.as_ref(), JobId(place as u32), job).is_err() {
            self.over[job.number as usize] = true;
        }
    }

    /// Whoever is over his time stays another while.
    fn extend_the_late(&mut self) {
        let holdings = self.dispatch.ledger().running().iter().copied();
        let late: Vec<Holding> = holdings.filter(|holding| holding.until <= self.now).collect();
        for holding in late {
            // Who reckons in more steps may be off by a millisecond.
            let by = self.now.since(holding.until);
            assert!(self.overstay || by <= Span::from_millis(2), "{holding:?} at {}", self.now);
            self.dispatch.extend(holding.job, self.now + Span::from_secs(60)).unwrap();
        }
    }

    fn make(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Suspend(place) => {
                let going = self.courses.iter().filter(|(_, course)| !course.suspended);
                let numbers: Vec<u64> = going.map(|(number, _)| *number).collect();
                if numbers.is_empty() {
                    return;
                }
                let number = numbers[place as usize % numbers.len()];
                self.dispatch.suspend(self.id(number)).unwrap();
                self.courses.get_mut(&number).unwrap().advance(self.now);
                self.courses.get_mut(&number).unwrap().suspended = true;
            }
            Trouble::Resume => self.resume_all(),
            Trouble::Budget(budget) => {
                self.dispatch.set_budget(budget.clone());
                self.budget = budget;
            }
        }
    }

    /// Lets those go on that can be fed.
    fn resume_all(&mut self) {
        let suspended = self.courses.iter().filter(|(_, course)| course.suspended);
        let numbers: Vec<u64> = suspended.map(|(number, _)| *number).collect();
        for number in numbers {
            let id = self.id(number);
            let course = self.courses.get_mut(&number).unwrap();
            course.since = course.since.max(self.now);
            let until = course.up().max(self.now + Span::from_millis(1));
            if self.dispatch.resume(id, until).is_ok() {
                course.suspended = false;
            }
        }
    }

    /// Everything is made anew but the jobs themselves.
    fn hand_over(&mut self) {
        let before: BTreeMap<u64, (Holding, Vec<NodeId>)> = self.books();
        self.jobs.retain(|job| !self.over[job.number as usize]);
        self.model = (self.models)(&self.jobs);
        let (machine, budget) = (self.machine, self.budget.clone());
        let waited = self.dispatch.waited();
        self.dispatch =
            Dispatch::new(machine, budget, Nodes::Named, self.model.as_ref(), &self.jobs);
        self.dispatch.remember_wait(waited);
        self.policy = self.policy_spec.build(&BuildContext::default());
        self.wake = None;
        self.dispatch.advance(self.now);
        for place in 0..self.jobs.len() {
            let (job, number) = (JobId(place as u32), self.jobs[place].number);
            let Some(course) = self.courses.get(&number) else {
                self.arrive(place);
                continue;
            };
            let Course { point, caps, since, allowance, moved, suspended, .. } = course.clone();
            let (holding, nodes) = &before[&number];
            let adopted = Adopted { job, point, caps, work: allowance, since, moved };
            self.dispatch.restore(adopted, Some(nodes), holding.until).unwrap();
            self.handed_over.insert(number);
            if suspended {
                self.dispatch.suspend(job).unwrap();
            }
        }
        assert_eq!(self.books(), before, "nobody notices");
        self.check();
    }

    /// What each job holds, by its number.
    fn books(&self) -> BTreeMap<u64, (Holding, Vec<NodeId>)> {
        let ledger = self.dispatch.ledger();
        let book = |holding: &Holding| {
            let number = self.jobs[holding.job.index()].number;
            (number, (Holding { job: JobId(0), ..*holding }, ledger.nodes_of(holding.job)))
        };
        ledger.running().iter().map(book).collect()
    }

    fn check(&self) {
        let ledger = self.dispatch.ledger();
        assert_eq!(ledger.check(), Ok(()));
        assert!(self.may_exceed || ledger.power() <= ledger.limit(), "{}", ledger.power());
        // What a policy makes of the work that is left is what is left. Who reckons in more steps may be off by a
        // millisecond or two, and by one more at each change, where the time that is left is a whole number of them.
        for holding in ledger.running().iter().filter(|_| !self.overstay) {
            let course = &self.courses[&self.jobs[holding.job.index()].number];
            let off = course.up().millis().abs_diff(holding.until.millis());
            assert!(course.suspended || off <= 2 + course.changes, "{holding:?} {course:?}");
        }
    }

    fn ask(&mut self) {
        let World { dispatch, model, jobs, courses, now, run_times, .. } = self;
        let (told, over, wake, now) = (&mut self.told, &mut self.over, &mut self.wake, *now);
        let handed_over = &self.handed_over;
        let outcome = |job: JobId, point: &OperatingPoint, caps: Option<&Caps>| {
            let (asked, run_time) =
                (&jobs[job.index()], run_times[jobs[job.index()].number as usize]);
            match caps {
                None => model.outcome(job, asked, run_time, point),
                Some(caps) => model.outcome_on(job, asked, run_time, point, caps),
            }
        };
        let before = dispatch.ledger().power();
        dispatch.decide(self.policy.as_mut(), model.as_ref(), jobs, |applied, _| {
            match applied.unwrap_or_else(|violation| panic!("{violation}")) {
                Applied::Started { job, point, caps, .. } => {
                    let number = jobs[job.index()].number;
                    let outcome = outcome(job, &point, caps.as_ref());
                    assert_eq!(told.starts[number as usize].replace(now), None, "started twice");
                    let course = Course {
                        point,
                        caps,
                        outcome,
                        since: now,
                        work: Work::ALL,
                        allowance: Work::ALL,
                        moved: None,
                        suspended: false,
                        changes: 0,
                    };
                    courses.insert(number, course);
                }
                Applied::Changed { job, point, caps, pause } => {
                    let outcome = outcome(job, &point, caps.as_ref());
                    let number = jobs[job.index()].number;
                    let course = courses.get_mut(&number).unwrap();
                    told.changes.extend(handed_over.contains(&number).then_some((now, number)));
                    assert!(!course.suspended, "{job} stands still");
                    course.advance(now);
                    let moves = course.point.nodes != point.nodes;
                    course.moved = if moves { Some(now) } else { course.moved };
                    course.since = course.since + pause;
                    (course.point, course.caps, course.outcome) = (point, caps, outcome);
                    course.changes += 1;
                }
                Applied::Dropped { job, .. } => over[jobs[job.index()].number as usize] = true,
                Applied::Promised { .. } => {}
                Applied::GaveUp { why } => panic!("{why}"),
                Applied::Wake(at) => *wake = Some(wake.map_or(at, |other| other.min(at))),
            }
        });
        let ledger = self.dispatch.ledger();
        assert!(ledger.power() <= before.max(ledger.limit()), "no more than there was or may be");
        self.check();
    }
}
