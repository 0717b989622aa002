//! What will become of the jobs: the live state handed to the simulator.
//!
//! The same policy decides about the same jobs under the same budget; only the clock is not waited for.
//! Jobs are taken to need all the time they asked for, or a share of it. One that waits for others is
//! taken to be submitted when the last of them ends, which one simulation tells the next.

use std::collections::BTreeMap;

use super::controller::Controller;
use super::feed;
use super::job::{Course, Entry, Owner, Phase};
use super::roster::{caps_of, point_of};
use super::setup::Setup;
use super::wire::{Forecast, ForecastLine, Question, Refusal, RefusalKind};
use crate::budget::Budget;
use crate::job::Job;
use crate::policy::Adopted;
use crate::sim::{Record, Run, Simulation, State, Underway};
use crate::units::{Instant, JobId, NodeId, Span, Watts};
use crate::workload::Workload;

/// So many simulations are made at most for jobs that wait for jobs that wait for others.
const MOST_ROUNDS: usize = 64;

/// The number of a job that nobody has submitted.
const NOBODYS: u64 = u64::MAX;

/// The live state at an instant.
pub struct Outlook {
    setup: Setup,
    budget: Budget,
    entries: Vec<Entry>,
    now: Instant,
    /// The same by the clock on the wall, in milliseconds since 1970.
    wall: i64,
}

/// When each job ends, as far as is foreseen.
type Ends = BTreeMap<u64, Instant>;

/// One simulation.
struct Round {
    workload: Workload,
    run: Run,
}

impl Outlook {
    /// The state of a daemon.
    pub fn of(controller: &Controller, now: Instant, wall: i64) -> Self {
        Outlook {
            setup: controller.setup().clone(),
            budget: controller.budget().clone(),
            entries: controller.jobs().values().cloned().collect(),
            now,
            wall,
        }
    }

    /// What will become of everybody.
    pub fn forecast(mut self, question: &Question) -> Result<Forecast, Refusal> {
        let percent = question.percent.unwrap_or(100);
        if !(1..=100).contains(&percent) {
            return Err(malformed(format!("--percent {percent}: write 1 to 100")));
        }
        let mut assumptions = vec![match percent {
            100 => "every job takes all the time it may: it may be over sooner".to_owned(),
            _ => format!("every job takes {percent} % of the time it asked for"),
        }];
        self.assume_budget(question, &mut assumptions)?;
        if let Some(wish) = &question.job {
            let owner = Owner { user: 0, group: 0 };
            let (number, submit, phase) = (NOBODYS, self.now, Phase::Waiting);
            let entry = Entry { number, owner, wish: wish.clone(), submit, attempts: 0, phase };
            // What could not be submitted is not foreseen either.
            self.setup.job(&entry)?;
            self.entries.push(entry);
            assumptions.push("the job in question is submitted now".to_owned());
        }
        if self.entries.iter().any(is_suspended) {
            assumptions.push("suspended jobs are left out, and so are their nodes".to_owned());
        }
        let held: Watts = self.entries.iter().map(held).sum();
        let needs = held.saturating_add(self.setup.machine.base_power);
        let now = std::iter::once(self.budget.at(self.now));
        let to_come = self.budget.changes_after(self.now).iter().map(|change| change.1);
        if let Some(limit) = now.chain(to_come).find(|limit| *limit < needs) {
            assumptions.push(format!(
                "running jobs go on as they do; under a limit of {limit} those that still run would be \
                 slowed, suspended or ended, and everything after that is different"
            ));
        }
        let mut ends = Ends::new();
        let mut round = self.simulate(&ends, percent)?;
        for _ in 1..MOST_ROUNDS {
            let foreseen = round.ends();
            if foreseen == ends || self.entries.iter().all(|entry| entry.wish.after.is_empty()) {
                break;
            }
            ends = foreseen;
            round = self.simulate(&ends, percent)?;
        }
        let numbers: BTreeMap<u64, &Record> =
            round.workload.jobs().iter().map(|job| job.number).zip(&round.run.records).collect();
        let lines = self.entries.iter().map(|entry| self.line(entry, numbers.get(&entry.number)));
        Ok(Forecast {
            jobs: lines.collect(),
            peak: round.run.peak,
            all_over: self.seconds(round.run.end),
            assumptions,
        })
    }

    /// The budget as it is asked about.
    fn assume_budget(
        &mut self,
        question: &Question,
        assumptions: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let mut steps = vec![(self.now, self.budget.at(self.now))];
        steps.extend(self.budget.changes_after(self.now));
        let mut asked = question.budget.clone();
        asked.sort_by_key(|(after, _)| *after);
        for (after, text) in asked {
            let limit = feed::limit(&text, &self.setup.machine).map_err(malformed)?;
            let from = self.now + after;
            steps.retain(|step| step.0 < from);
            steps.push((from, limit));
            assumptions.push(format!("from {} on the budget is {text}", Seconds(after)));
        }
        self.budget = Budget::from_steps(steps).map_err(|error| malformed(error.to_string()))?;
        Ok(())
    }

    /// Lets it all happen, with jobs that wait for others submitted when those end.
    fn simulate(&self, ends: &Ends, percent: u32) -> Result<Round, Refusal> {
        let alive: BTreeMap<u64, &Entry> =
            self.entries.iter().map(|entry| (entry.number, entry)).collect();
        let submit = |entry: &Entry| {
            let before = entry.wish.after.iter().filter(|after| alive.contains_key(&after.job));
            let mut latest = entry.submit;
            for after in before {
                latest = latest.max(*ends.get(&after.job)?);
            }
            Some(latest)
        };
        let takes_part = |entry: &&Entry| match entry.phase {
            Phase::Waiting => !entry.wish.held,
            Phase::Running(_) => !is_suspended(entry),
            Phase::Over(_) => false,
        };
        let mut jobs: Vec<(Job, Span)> = Vec::new();
        for entry in self.entries.iter().filter(takes_part) {
            // Who has no profile under this policy, or waits for who knows what, does not start.
            let (Ok(job), Some(submit)) = (self.setup.job(entry), submit(entry)) else { continue };
            let millis = u128::from(job.requested.millis()) * u128::from(percent) / 100;
            let run_time = Span::from_millis(u64::try_from(millis).unwrap_or(u64::MAX).max(1));
            jobs.push((Job { submit, ..job }, run_time));
        }
        let workload = Workload::new("forecast", jobs);
        let mut model = self.setup.model().map_err(|error| Refusal {
            kind: RefusalKind::Impossible,
            message: error.to_string(),
        })?;
        let mut underway = Vec::new();
        for (id, job) in (0..).map(JobId).zip(workload.jobs()) {
            model.learn(id, job);
            if let Some(Entry { phase: Phase::Running(course), .. }) = alive.get(&job.number) {
                underway.push(self.underway(id, course));
            }
        }
        let run = Simulation::new(&self.setup.machine, &workload)
            .budget(self.setup.handed_out(&self.budget))
            .model(model.as_ref())
            .begin_at(self.now)
            .already_running(underway)
            .run(self.setup.policy().as_mut());
        Ok(Round { workload, run })
    }

    /// A job that runs.
    fn underway(&self, job: JobId, course: &Course) -> Underway {
        let allotment = &course.allotment;
        let names_nodes = self.setup.policy.uses_curves();
        Underway {
            running: Adopted {
                job,
                point: point_of(allotment),
                caps: if names_nodes { caps_of(allotment) } else { None },
                work: course.work(),
                since: course.since.max(course.moves_until),
                moved: course.moved,
            },
            nodes: Some(allotment.nodes.iter().map(|(node, _)| NodeId(*node)).collect()),
            until: course.until.min(Instant::LAST),
            start: course.start,
        }
    }

    fn line(&self, entry: &Entry, record: Option<&&Record>) -> ForecastLine {
        let mut line = ForecastLine {
            job: (entry.number != NOBODYS).then_some(entry.number),
            name: entry.wish.name.clone(),
            start: None,
            end: None,
            nodes: entry.wish.nodes,
            power: None,
            reason: None,
        };
        let never = match record.map(|record| (record, record.state)) {
            Some((record, State::Running | State::Completed | State::Killed)) => {
                line.start = Some(self.seconds(record.start));
                line.end = Some(self.seconds(record.end));
                (line.nodes, line.power) = (record.nodes, Some(record.power));
                return line;
            }
            Some((_, State::Rejected(rejection))) => rejection.reason(),
            Some((_, State::Dropped(reason))) => reason.reason(),
            Some((_, State::Waiting)) => "never gets its turn",
            None if entry.wish.held => "held until it is released",
            None if is_suspended(entry) => "suspended until there is power for it",
            None => "waits for a job of which the end is not foreseen",
        };
        line.reason = Some(never.to_owned());
        line
    }

    /// Seconds since 1970 at an instant.
    fn seconds(&self, at: Instant) -> i64 {
        let signed = |instant: Instant| i64::try_from(instant.millis()).unwrap_or(i64::MAX);
        let ahead = signed(at).saturating_sub(signed(self.now));
        self.wall.saturating_add(ahead).div_euclid(1000)
    }
}

impl Round {
    /// When everybody ends who does.
    fn ends(&self) -> Ends {
        let records = self.workload.jobs().iter().zip(&self.run.records);
        let over =
            records.filter(|(_, record)| matches!(record.state, State::Completed | State::Killed));
        over.map(|(job, record)| (job.number, record.end)).collect()
    }
}

/// A time in words.
struct Seconds(Span);

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Span::ZERO => f.write_str("now"),
            span => write!(f, "{} s from now", span.millis().div_ceil(1000)),
        }
    }
}

/// What a job draws now.
fn held(entry: &Entry) -> Watts {
    match &entry.phase {
        Phase::Running(course) if !course.suspended => course.allotment.power,
        _ => Watts::ZERO,
    }
}

fn is_suspended(entry: &Entry) -> bool {
    matches!(&entry.phase, Phase::Running(course) if course.suspended)
}

fn malformed(message: String) -> Refusal {
    Refusal { kind: RefusalKind::Malformed, message }
}
