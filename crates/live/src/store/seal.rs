//! Rows as they are stored: numbers and times as columns, and the seal. The last column of a row is a checksum of all others. SQLite notices inconsistent pages, but
//! not a changed byte inside a value.

use flate2::Crc;
use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};

use super::error::Fault;
use busbar_core::units::Instant;

/// The number of a job or a line as a column. Numbers start at 1 and never get that large.
pub(super) fn identity(number: u64) -> Result<i64, Fault> {
    i64::try_from(number)
        .map_err(|error| Fault::Sqlite(rusqlite::Error::ToSqlConversionFailure(Box::new(error))))
}

/// A time as a column; larger values saturate.
pub(super) fn millis(instant: Instant) -> i64 {
    i64::try_from(instant.millis()).unwrap_or(i64::MAX)
}

/// The values of a row, followed by their seal.
pub(super) fn sealed<const N: usize>(values: [Value; N]) -> Vec<Value> {
    let seal = seal(values.iter().map(ValueRef::from));
    values.into_iter().chain([Value::Integer(seal)]).collect()
}

/// Checks the first columns of a row against the seal that follows them.
pub(super) fn check(row: &Row<'_>, columns: usize, table: &str) -> Result<(), Fault> {
    let values: Vec<ValueRef<'_>> =
        (0..columns).map(|column| row.get_ref(column)).collect::<rusqlite::Result<_>>()?;
    let is_intact = row.get_ref(columns)? == ValueRef::Integer(seal(values.iter().copied()));
    match is_intact {
        true => Ok(()),
        false => Err(Fault::Damaged(format!(
            "a row of the table '{table}' has changed since it was written ({})",
            match values.first() {
                Some(ValueRef::Integer(number)) => format!("number {number}"),
                _ => "its number is gone".to_owned(),
            }
        ))),
    }
}

fn seal<'a>(values: impl Iterator<Item = ValueRef<'a>>) -> i64 {
    let mut sum = Crc::new();
    for value in values {
        // Type and length come first, so that different values cannot give the same bytes.
        let (kind, bytes): (u8, &[u8]) = match &value {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(number) => (1, &number.to_le_bytes()),
            ValueRef::Real(number) => (2, &number.to_le_bytes()),
            ValueRef::Text(text) => (3, text),
            ValueRef::Blob(bytes) => (4, bytes),
        };
        sum.update(&[kind]);
        sum.update(&bytes.len().to_le_bytes());
        sum.update(bytes);
    }
    sum.sum().into()
}
