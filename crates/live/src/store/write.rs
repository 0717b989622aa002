//! Writes batches.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params_from_iter};
use serde::Serialize;

use super::error::Fault;
use super::read::walls;
use super::schema::{EVENT, JOB, PROGRAM};
use super::seal::{identity, millis, sealed};
use super::state::State;
use super::usage::Additions;
use super::{Batch, WallTimes, budgets, nodes, wall_at};
use crate::job::{Element, Entry, Phase};
use busbar_core::units::Instant;

/// Writes a batch completely or not at all.
pub(super) fn commit(connection: &mut Connection, batch: &Batch) -> Result<(), Fault> {
    // Dropping the transaction without a commit reverts it.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut state = State::read(&transaction)?;
    let mut usage = Additions::default();
    submit(&transaction, batch, &mut usage)?;
    change(&transaction, batch, &mut usage)?;
    nodes::write(&transaction, &batch.nodes)?;
    budgets::write(&transaction, &batch.part_budgets)?;
    tell(&transaction, batch, &mut state.next_line)?;
    usage.measured(&transaction, &batch.events, |event| wall_at(batch.now, event.at))?;
    usage.write(&transaction)?;
    let new = batch.submitted.iter().map(|(entry, _)| entry).chain(&batch.elements);
    let numbers = new.map(|entry| entry.number.saturating_add(1));
    state.next_number = numbers.fold(state.next_number, u64::max);
    state.take(batch);
    state.write(&transaction)?;
    Ok(transaction.commit()?)
}

fn submit(
    transaction: &Transaction<'_>,
    batch: &Batch,
    usage: &mut Additions,
) -> Result<(), Fault> {
    if batch.submitted.is_empty() {
        return Ok(());
    }
    let mut jobs = transaction.prepare(&JOB.insert())?;
    let mut programs = transaction.prepare(&PROGRAM.insert())?;
    let mut dependencies =
        transaction.prepare("INSERT OR IGNORE INTO dependency (job, needs) VALUES (?1, ?2)")?;
    for (entry, program) in &batch.submitted {
        let times = Times::of(entry);
        let walls = times.walls(batch.now);
        usage.ended(entry, walls.end);
        jobs.execute(params_from_iter(row(entry, times, walls)?))?;
        let number = identity(entry.number)?;
        let program = json(program, || format!("the program of job {number}"))?;
        programs.execute(params_from_iter(sealed([Value::Integer(number), program])))?;
        for after in &entry.request.after {
            dependencies.execute((number, identity(after.job)?))?;
        }
    }
    for entry in &batch.elements {
        let times = Times::of(entry);
        let walls = times.walls(batch.now);
        usage.ended(entry, walls.end);
        jobs.execute(params_from_iter(row(entry, times, walls)?))?;
        let number = identity(entry.number)?;
        // The first element has the program of all.
        let first = entry.array.map(|element| identity(Element::first(element.array)));
        let others = entry.request.after.iter().map(|after| identity(after.job));
        for needed in first.into_iter().chain(others) {
            dependencies.execute((number, needed?))?;
        }
    }
    Ok(())
}

fn change(
    transaction: &Transaction<'_>,
    batch: &Batch,
    usage: &mut Additions,
) -> Result<(), Fault> {
    if batch.changed.is_empty() {
        return Ok(());
    }
    let mut before = transaction.prepare(&JOB.question("WHERE number = ?1"))?;
    let mut jobs = transaction.prepare(&JOB.update())?;
    for entry in &batch.changed {
        let times = Times::of(entry);
        let mut found = before.query((identity(entry.number)?,))?;
        let Some(found) = found.next()? else {
            return Err(Fault::UnknownJob(entry.number));
        };
        JOB.check(found)?;
        let before = Times::written(found)?;
        let walls = times.walls_after(before, walls(found)?, batch.now);
        if before.end.is_none() {
            usage.ended(entry, walls.end);
        }
        jobs.execute(params_from_iter(row(entry, times, walls)?))?;
    }
    Ok(())
}

fn tell(transaction: &Transaction<'_>, batch: &Batch, next_line: &mut u64) -> Result<(), Fault> {
    if batch.events.is_empty() {
        return Ok(());
    }
    let mut events = transaction.prepare(&EVENT.insert())?;
    for event in &batch.events {
        let row = sealed([
            Value::Integer(identity(*next_line)?),
            Value::Integer(millis(event.at)),
            Value::Integer(wall_at(batch.now, event.at)),
            event.kind.job().map(identity).transpose()?.into(),
            json(event, || "an event".to_owned())?,
        ]);
        events.execute(params_from_iter(row))?;
        *next_line += 1;
    }
    Ok(())
}

/// The row of a job.
fn row(entry: &Entry, times: Times, walls: WallTimes) -> Result<Vec<Value>, Fault> {
    let state = match &entry.phase {
        Phase::Waiting => "waiting",
        Phase::Running(_) => "running",
        Phase::Over(_) => "over",
    };
    Ok(sealed([
        Value::Integer(identity(entry.number)?),
        Value::Integer(entry.owner.user.into()),
        Value::Text(entry.request.name.clone()),
        Value::Text(state.to_owned()),
        Value::Integer(millis(times.submit)),
        times.start.map(millis).into(),
        times.end.map(millis).into(),
        Value::Integer(walls.submit),
        walls.start.into(),
        walls.end.into(),
        json(entry, || format!("job {}", entry.number))?,
    ]))
}

/// The times of a job by the daemon's clock.
#[derive(Clone, Copy)]
struct Times {
    submit: Instant,
    start: Option<Instant>,
    end: Option<Instant>,
}

impl Times {
    fn of(entry: &Entry) -> Self {
        let (start, end) = match &entry.phase {
            Phase::Waiting => (None, None),
            Phase::Running(run) => (Some(run.start), None),
            Phase::Over(outcome) => (outcome.start, Some(outcome.end)),
        };
        Times { submit: entry.submit, start, end }
    }

    fn written(row: &Row<'_>) -> rusqlite::Result<Self> {
        let instant = |column| -> rusqlite::Result<Option<Instant>> {
            Ok(row.get::<_, Option<u64>>(column)?.map(Instant::from_millis))
        };
        Ok(Times {
            submit: Instant::from_millis(row.get(4)?),
            start: instant(5)?,
            end: instant(6)?,
        })
    }

    /// The wall clock at these times, from the current values of both clocks.
    fn walls(self, now: (Instant, i64)) -> WallTimes {
        let wall = |instant| wall_at(now, instant);
        WallTimes {
            submit: wall(self.submit),
            start: self.start.map(wall),
            end: self.end.map(wall),
        }
    }

    /// The same for a stored job: times that have not changed keep the wall time stored before.
    fn walls_after(self, before: Times, said: WallTimes, now: (Instant, i64)) -> WallTimes {
        let WallTimes { submit, start, end } = self.walls(now);
        WallTimes {
            submit: if self.submit == before.submit { said.submit } else { submit },
            start: if self.start == before.start { said.start } else { start },
            end: if self.end == before.end { said.end } else { end },
        }
    }
}

fn json(value: &impl Serialize, what: impl Fn() -> String) -> Result<Value, Fault> {
    match serde_json::to_string(value) {
        Ok(text) => Ok(Value::Text(text)),
        Err(source) => Err(Fault::Unsayable { what: what(), source }),
    }
}
