//! What clients ask a daemon to do with jobs.

use super::Controller;
use crate::live::job::{Entry, Happening, Owner, Phase, Program, Submission, Why, Wish};
use crate::live::wire::{Refusal, RefusalKind};
use crate::units::{Instant, Span};

/// The longest name of a job, in bytes.
const LONGEST_NAME: usize = 200;

/// The most jobs that one may wait for.
const MOST_BEFORE: usize = 1000;

/// The longest time a job may ask for: a year. Whoever means 'for ever' means less.
const LONGEST_TIME: Span = Span::from_secs(366 * 24 * 3600);

/// How a job that is over ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WasGood(pub bool);

fn refuse<T>(kind: RefusalKind, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { kind, message: message.into() })
}

impl Controller {
    /// Takes a job in and says its number. `over` tells how jobs ended that are over.
    pub fn submit(
        &mut self,
        now: Instant,
        owner: Owner,
        submission: Submission,
        over: &dyn Fn(u64) -> Option<WasGood>,
    ) -> Result<u64, Refusal> {
        let Submission { wish, program } = submission;
        if self.setup.only_user.is_some_and(|user| user != owner.user) {
            let message =
                "this daemon does not run as root, and runs nobody's jobs but its own user's";
            return refuse(RefusalKind::Forbidden, message);
        }
        self.check_wish(&wish)?;
        check_program(&program)?;
        self.check_after(&wish, over)?;
        if self.jobs.len() >= self.setup.most_jobs {
            let most = self.setup.most_jobs;
            return refuse(RefusalKind::Full, format!("there are {most} jobs already; try later"));
        }
        let own = self.of_user.get(&owner.user).copied().unwrap_or(0);
        if own >= self.setup.most_jobs_per_user {
            let most = self.setup.most_jobs_per_user;
            return refuse(RefusalKind::Full, format!("you have {most} jobs already; try later"));
        }
        let number = self.next;
        let entry = Entry { number, owner, wish, submit: now, attempts: 0, phase: Phase::Waiting };
        let job = self.setup.job(&entry)?;
        self.next += 1;
        self.roster.add(job);
        self.jobs.insert(number, entry.clone());
        *self.of_user.entry(owner.user).or_default() += 1;
        self.unwritten.submitted.push((entry, program));
        self.note(now, Happening::Submitted { job: number });
        self.line_up(number);
        Ok(number)
    }

    /// Why a job that was accepted will not start as things are, if that is so.
    pub fn remark(&self, number: u64) -> Option<&'static str> {
        self.stuck.get(&number).copied()
    }

    /// What whoever submitted a job may want to know of it, to be read after its number.
    pub fn advice(&self, number: u64) -> Option<String> {
        let waits = self.remark(number);
        let waits = waits.map(|why| format!("{why}, and waits until that is otherwise"));
        let entry = self.jobs.get(&number);
        waits.or_else(|| self.setup.ignores_application(&entry?.wish))
    }

    /// Whether a job may ask for this.
    pub fn check_wish(&self, wish: &Wish) -> Result<(), Refusal> {
        let malformed = |message: &str| refuse(RefusalKind::Malformed, message);
        if wish.name.len() > LONGEST_NAME || wish.name.chars().any(char::is_control) {
            return malformed(
                "a job's name has at most 200 bytes, and nothing that cannot be seen",
            );
        }
        let texts = [wish.application.as_deref(), wish.slowdown.as_deref()];
        if texts.into_iter().flatten().any(|text| text.len() > LONGEST_NAME) {
            return malformed("the application and the slowdown of a job have at most 200 bytes");
        }
        if wish.after.len() > MOST_BEFORE {
            return malformed("a job may wait for at most 1000 others (--after)");
        }
        if wish.nodes == 0 {
            return malformed("a job needs at least one node (-N)");
        }
        if wish.time == Span::ZERO || wish.time > LONGEST_TIME {
            return malformed("a job's time (-t) is more than nothing and at most 366 days");
        }
        if let Some((fewest, most)) = wish.moldable
            && !(fewest..=most).contains(&wish.nodes)
        {
            let nodes = wish.nodes;
            return malformed(&format!("-N {nodes} is not within --moldable {fewest}-{most}"));
        }
        let all = self.setup.machine.nodes;
        if wish.nodes > all {
            let message = format!("-N {}: the machine has {all} nodes", wish.nodes);
            return refuse(RefusalKind::Impossible, message);
        }
        self.setup.check_application(wish)
    }

    /// Whether everybody exists that a job waits for, and may still end well.
    fn check_after(
        &self,
        wish: &Wish,
        over: &dyn Fn(u64) -> Option<WasGood>,
    ) -> Result<(), Refusal> {
        for after in &wish.after {
            let job = after.job;
            if self.jobs.contains_key(&job) {
                continue;
            }
            let just_ended = self.unwritten.over.iter().find(|entry| entry.number == job);
            let ended = just_ended.map(|entry| match &entry.phase {
                Phase::Over(outcome) => WasGood(outcome.is_good()),
                _ => WasGood(false),
            });
            match ended.or_else(|| over(job)) {
                None => {
                    return refuse(RefusalKind::Unknown, format!("--after {job}: no such job"));
                }
                Some(WasGood(false)) if !after.any => {
                    let message = format!(
                        "--after {job}: that job did not end well, so this one would never start; \
                         --after-any does not mind"
                    );
                    return refuse(RefusalKind::Impossible, message);
                }
                Some(_) => (),
            }
        }
        Ok(())
    }

    /// A job that is not over, if this one may touch it.
    fn touched(&self, who: Owner, number: u64) -> Result<&Entry, Refusal> {
        let Some(entry) = self.jobs.get(&number) else {
            let message = format!("there is no job {number}, or it is over");
            return refuse(RefusalKind::Unknown, message);
        };
        if entry.owner.user != who.user && !self.setup.is_operator(who) {
            let message = format!("job {number} is somebody else's");
            return refuse(RefusalKind::Forbidden, message);
        }
        Ok(entry)
    }

    /// Ends a job, or lets it never start.
    pub fn cancel(&mut self, now: Instant, who: Owner, number: u64) -> Result<(), Refusal> {
        match self.touched(who, number)?.phase {
            Phase::Running(_) => self.ask_to_end(now, number, Why::Cancelled, Some(who.user)),
            Phase::Waiting => self.give_up(now, number, Why::Cancelled, Some(who.user)),
            Phase::Over(_) => (),
        }
        Ok(())
    }

    /// Lets a job wait until it is released.
    pub fn hold(&mut self, now: Instant, who: Owner, number: u64) -> Result<(), Refusal> {
        if !matches!(self.touched(who, number)?.phase, Phase::Waiting) {
            let message = format!("job {number} runs already; only who waits can be held");
            return refuse(RefusalKind::Impossible, message);
        }
        self.set_held(now, number, true, Some(who.user));
        Ok(())
    }

    /// Lets a job start that was held.
    pub fn release(&mut self, now: Instant, who: Owner, number: u64) -> Result<(), Refusal> {
        if !self.touched(who, number)?.wish.held {
            let message = format!("job {number} is not held");
            return refuse(RefusalKind::Impossible, message);
        }
        self.set_held(now, number, false, Some(who.user));
        Ok(())
    }

    /// Holds or releases a job, perhaps because somebody wants that.
    pub(super) fn set_held(&mut self, now: Instant, number: u64, held: bool, by: Option<u32>) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        if entry.wish.held == held {
            return;
        }
        entry.wish.held = held;
        self.unwritten.changed.insert(number);
        self.note(now, Happening::Held { job: number, held, by });
        match held {
            true => self.withdraw(number),
            false => self.line_up(number),
        }
    }

    /// Writes down the budget that an operator wrote, or that the configured one holds again.
    pub fn write_budget(&mut self, text: Option<String>) {
        self.unwritten.budget = Some(text);
    }
}

fn check_program(program: &Program) -> Result<(), Refusal> {
    let malformed = |message: &str| refuse(RefusalKind::Malformed, message);
    if program.command.first().is_none_or(|first| first.is_empty()) {
        return malformed("there is no command; write it after --");
    }
    if !program.folder.is_absolute() {
        return malformed("the folder of a job must be a whole path");
    }
    let mut texts = program
        .command
        .iter()
        .chain(program.environment.iter().flat_map(|(key, value)| [key, value]));
    if texts.any(|text| text.contains('\0')) {
        return malformed("a command and its environment must not contain NUL");
    }
    if program.environment.iter().any(|(key, _)| key.is_empty() || key.contains('=')) {
        return malformed("a variable of the environment needs a name without '='");
    }
    Ok(())
}
