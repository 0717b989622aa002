//! Requests of clients: submit, cancel, hold and release jobs.

use super::Controller;
use crate::job::{
    ArraySpec, Element, EndReason, Entry, EventKind, JobRequest, Owner, Phase, Program, Requester,
    Scope,
};
use crate::wire::{Refusal, RefusalKind, Submission};
use busbar_core::units::{Instant, Span};

/// The longest name of a job, in bytes.
const LONGEST_NAME: usize = 200;

/// The length of the longest account, in bytes.
const LONGEST_ACCOUNT: usize = 64;

/// The largest number of dependencies of a job.
const MOST_BEFORE: usize = 1000;

/// The longest time limit, one year.
const LONGEST_TIME: Span = Span::from_secs(366 * 24 * 3600);

/// The number given to the user, and the numbers of the jobs it stands for.
type Numbered = (u64, Vec<(u64, Option<Element>)>);

fn refuse<T>(kind: RefusalKind, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { kind, message: message.into() })
}

impl Controller {
    /// Accepts a job or an array and returns its number. `succeeded` tells whether a job that is
    /// over succeeded, and for an array whether all of its elements that are over did.
    pub fn submit(
        &mut self,
        now: Instant,
        owner: Owner,
        submission: Submission,
        succeeded: &dyn Fn(u64) -> Option<bool>,
    ) -> Result<u64, Refusal> {
        let bytes = submission.bytes();
        let Submission { request, program, array } = submission;
        if self.setup.only_user.is_some_and(|user| user != owner.user) {
            let message = "this daemon does not run as root, so it runs only its own user's jobs";
            return refuse(RefusalKind::Forbidden, message);
        }
        self.check_request(&request)?;
        check_program(&program)?;
        self.check_after(&request, succeeded)?;
        let (number, elements) = self.numbered(array.as_ref())?;
        self.check_quotas(owner, elements.len(), bytes)?;
        let (submit, phase) = (now, Phase::Waiting);
        let entry = |(number, array)| {
            let (request, phase) = (request.clone(), phase.clone());
            Entry { number, owner, request, submit, attempts: 0, phase, array, handle: None }
        };
        let entries: Vec<Entry> = elements.into_iter().map(entry).collect();
        let jobs = entries.iter().map(|entry| self.setup.job(entry));
        let jobs = jobs.collect::<Result<Vec<_>, _>>()?;
        let mut program = Some(program);
        for (entry, job) in entries.iter().zip(jobs) {
            self.next = entry.number + 1;
            self.scheduler.add(job, self.setup.seat_of(entry));
            self.jobs.insert(entry.number, entry.clone());
            self.bytes.insert(entry.number, bytes);
            self.arrays.add(entry);
            // The program of an array is stored once.
            match program.take() {
                Some(program) => self.unwritten.submitted.push((entry.clone(), program)),
                None => self.unwritten.elements.push(entry.clone()),
            }
            let element = entry.array.map(|element| (element.array, element.index));
            self.note(now, EventKind::Submitted { job: entry.number, element });
        }
        let own = self.of_user.entry(owner.user).or_default();
        own.jobs += entries.len();
        own.bytes += bytes * entries.len() as u64;
        for entry in &entries {
            self.enqueue(entry.number);
        }
        Ok(number)
    }

    /// The number of the next job or array, and the numbers of its jobs.
    fn numbered(&self, array: Option<&ArraySpec>) -> Result<Numbered, Refusal> {
        let Some(spec) = array else { return Ok((self.next, vec![(self.next, None)])) };
        let elements = Element::all(self.next, spec);
        let (count, most) = (elements.len(), self.setup.most_elements);
        if count > most {
            let message = format!(
                "--array {spec} has {count} elements, and an array may have {most} \
                 ('limits.array' in the configuration)"
            );
            return refuse(RefusalKind::TooMuch, message);
        }
        let numbers = Element::first(self.next)..;
        Ok((self.next, numbers.zip(elements.into_iter().map(Some)).collect()))
    }

    /// Checks whether the quotas allow `more` jobs of `bytes` bytes each.
    fn check_quotas(&self, owner: Owner, more: usize, bytes: u64) -> Result<(), Refusal> {
        let more_than = |most: usize, whose: &str, count: usize| match count + more <= most {
            true => Ok(()),
            false if more == 1 => {
                refuse(RefusalKind::Full, format!("{whose} {most} jobs already; try again later"))
            }
            false => {
                let message =
                    format!("{whose} {count} jobs, and {more} more are over {most}; try later");
                refuse(RefusalKind::Full, message)
            }
        };
        more_than(self.setup.most_jobs, "there are", self.jobs.len())?;
        let own = self.of_user.get(&owner.user).copied().unwrap_or_default();
        more_than(self.setup.most_jobs_per_user, "you have", own.jobs)?;
        let (bytes, most) = (bytes.saturating_mul(more as u64), self.setup.most_bytes_per_user);
        if own.bytes.saturating_add(bytes) > most {
            let these = if more == 1 { "this one" } else { "these" };
            let message = format!(
                "your jobs that wait and run have {} bytes of commands and environments, and with the \
                 {bytes} of {these} they would have more than {most}; try later, or submit with a \
                 smaller environment",
                own.bytes
            );
            return refuse(RefusalKind::Full, message);
        }
        Ok(())
    }

    /// Why an accepted job cannot be queued at present, if so.
    pub(crate) fn remark(&self, number: u64) -> Option<&str> {
        let aside = self.aside.get(&number).map(String::as_str);
        self.stuck.get(&number).copied().or(aside)
    }

    /// A remark for the user who submitted a job, to be read after its number.
    pub(crate) fn advice(&self, number: u64) -> Option<String> {
        // All elements of an array are alike.
        let number = self.arrays.present(number).next().unwrap_or(number);
        let waits = self.remark(number);
        let waits = waits.map(|why| format!("{why}, and waits until that changes"));
        let entry = self.jobs.get(&number);
        waits.or_else(|| self.setup.ignores_application(&entry?.request))
    }

    /// Checks a job's request.
    pub(crate) fn check_request(&self, request: &JobRequest) -> Result<(), Refusal> {
        let malformed = |message: &str| refuse(RefusalKind::Malformed, message);
        if request.name.len() > LONGEST_NAME || request.name.chars().any(char::is_control) {
            return malformed("a job's name may have at most 200 bytes, and no control characters");
        }
        let is_account = |account: &String| {
            !account.is_empty()
                && account.len() <= LONGEST_ACCOUNT
                && !account.chars().any(char::is_control)
        };
        if !request.account.iter().all(is_account) {
            return malformed("an account (-A) has 1 to 64 bytes, and no control characters");
        }
        let texts = [request.application.as_deref(), request.slowdown.as_deref()];
        if texts.into_iter().flatten().any(|text| text.len() > LONGEST_NAME) {
            return malformed("the application and the slowdown of a job have at most 200 bytes");
        }
        if request.after.len() > MOST_BEFORE {
            return malformed("a job may depend on at most 1000 others (--after)");
        }
        if request.nodes == 0 {
            return malformed("a job needs at least one node (-N)");
        }
        if request.time == Span::ZERO || request.time > LONGEST_TIME {
            return malformed("a job's time limit (-t) must be more than 0, and at most 366 days");
        }
        if let Some((fewest, most)) = request.moldable
            && !(fewest..=most).contains(&request.nodes)
        {
            let nodes = request.nodes;
            return malformed(&format!("-N {nodes} is not within --moldable {fewest}-{most}"));
        }
        let all = self.setup.machine.node_count();
        if request.nodes > all {
            let message = format!("-N {}: the machine has {all} nodes", request.nodes);
            return refuse(RefusalKind::Impossible, message);
        }
        self.check_part(request)?;
        self.setup.check_application(request)
    }

    /// Checks that all dependencies of a job exist and can still be met.
    fn check_after(
        &self,
        request: &JobRequest,
        succeeded: &dyn Fn(u64) -> Option<bool>,
    ) -> Result<(), Refusal> {
        for after in &request.after {
            let job = after.job;
            if self.jobs.contains_key(&job) {
                continue;
            }
            let is_meant = |entry: &&Entry| {
                entry.number == job || entry.array.is_some_and(|element| element.array == job)
            };
            let just_ended =
                self.unwritten.over.iter().filter(is_meant).map(
                    |entry| matches!(&entry.phase, Phase::Over(outcome) if outcome.succeeded()),
                );
            // An array has succeeded if all of its elements did.
            let ended = just_ended.chain(succeeded(job)).reduce(|one, other| one && other);
            match ended {
                None if self.is_present(job) => (),
                None => {
                    return refuse(RefusalKind::Unknown, format!("--after {job}: no such job"));
                }
                Some(false) if !after.any => {
                    let message = format!(
                        "--after {job}: that job failed, so this one would never start; \
                         --after-any starts it anyway"
                    );
                    return refuse(RefusalKind::Impossible, message);
                }
                Some(_) => (),
            }
        }
        Ok(())
    }

    /// A job that is not over and that somebody may change.
    fn authorised(&self, who: Requester, number: u64) -> Result<&Entry, Refusal> {
        let Some(entry) = self.jobs.get(&number) else {
            let message = format!("there is no job {number}, or it has ended");
            return refuse(RefusalKind::Unknown, message);
        };
        if who.user() != Some(entry.owner.user) && !self.setup.is_operator(who) {
            let message = format!("job {number} belongs to another user");
            return refuse(RefusalKind::Forbidden, message);
        }
        Ok(entry)
    }

    /// Applies an operation to a job, or to all elements of an array. For an array it succeeds if
    /// it does for any element.
    fn each_of(
        &mut self,
        number: u64,
        mut does: impl FnMut(&mut Self, u64) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        // In reverse order, so that no element takes the place of one before it.
        let elements: Vec<u64> = self.arrays.present(number).rev().collect();
        if elements.is_empty() {
            return does(self, number);
        }
        let mut refused = Ok(());
        let mut is_done = false;
        for element in elements {
            match does(self, element) {
                Ok(()) => is_done = true,
                refusal => refused = refusal,
            }
        }
        if is_done { Ok(()) } else { refused }
    }

    /// Cancels a job or an array, whether it waits or runs.
    pub(crate) fn cancel(
        &mut self,
        now: Instant,
        who: Requester,
        number: u64,
    ) -> Result<(), Refusal> {
        self.each_of(number, |controller, number| {
            let by = who.user();
            match controller.authorised(who, number)?.phase {
                Phase::Running(_) => controller.ask_to_end(now, number, EndReason::Cancelled, by),
                Phase::Waiting => controller.abandon(now, number, EndReason::Cancelled, by),
                Phase::Over(_) => (),
            }
            Ok(())
        })
    }

    /// Holds a job until it is released; of an array, all elements that wait.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        who: Requester,
        number: u64,
    ) -> Result<(), Refusal> {
        self.each_of(number, |controller, number| {
            if !matches!(controller.authorised(who, number)?.phase, Phase::Waiting) {
                let message = format!("job {number} is running; only waiting jobs can be held");
                return refuse(RefusalKind::Impossible, message);
            }
            controller.set_held(now, number, true, who.user());
            Ok(())
        })
    }

    /// Releases a held job; of an array, all held elements.
    pub fn release(&mut self, now: Instant, who: Requester, number: u64) -> Result<(), Refusal> {
        self.each_of(number, |controller, number| {
            if !controller.authorised(who, number)?.request.held {
                let message = format!("job {number} is not held");
                return refuse(RefusalKind::Impossible, message);
            }
            controller.set_held(now, number, false, who.user());
            Ok(())
        })
    }

    /// Holds or releases a job; `by` is the user who asked for that, if one did.
    pub(super) fn set_held(&mut self, now: Instant, number: u64, held: bool, by: Option<u32>) {
        let Some(entry) = self.jobs.get_mut(&number) else { return };
        if entry.request.held == held {
            return;
        }
        entry.request.held = held;
        self.unwritten.changed.insert(number);
        self.note(now, EventKind::Held { job: number, held, by });
        match held {
            true => self.withdraw(number),
            false => self.enqueue(number),
        }
    }

    /// Records the budget that an operator set; `None` if the configured one applies again.
    pub(crate) fn write_budget(&mut self, text: Option<String>) {
        self.unwritten.budget = Some(text);
    }

    /// The same for a part of the machine.
    pub(crate) fn write_limit(&mut self, of: Scope, text: Option<String>) {
        self.unwritten.part_budgets.insert(of, text);
    }
}

fn check_program(program: &Program) -> Result<(), Refusal> {
    let malformed = |message: &str| refuse(RefusalKind::Malformed, message);
    if program.command.first().is_none_or(|first| first.is_empty()) {
        return malformed("the command is missing; write it after --");
    }
    if !program.folder.is_absolute() {
        return malformed("the folder of a job must be an absolute path");
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
