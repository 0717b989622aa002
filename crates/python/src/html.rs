//! Tables as notebooks show them: the first rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use busbar::calendar::Calendar;
use busbar::units::Instant;

/// How many rows are shown.
const SHOWN: usize = 10;

/// The first rows of a table, and how many there are.
pub(crate) fn table(rows: &RecordBatch) -> String {
    let schema = rows.schema_ref();
    let headings =
        schema.fields().iter().map(|field| format!("<th>{}</th>", escaped(field.name())));
    let line = |row: usize| {
        let cells = rows.columns().iter().map(|column| format!("<td>{}</td>", cell(column, row)));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    let lines = (0..rows.num_rows().min(SHOWN)).map(line);
    format!(
        "<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n<p>{} rows × {} columns</p>\n",
        headings.collect::<String>(),
        lines.collect::<String>(),
        rows.num_rows(),
        rows.num_columns()
    )
}

fn cell(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return String::new();
    }
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        DataType::Timestamp(_, zone) => {
            let millis = column.as_primitive::<TimestampMillisecondType>().value(row);
            date(millis, zone.as_deref().unwrap_or("UTC"))
        }
        _ => escaped(column.as_string::<i32>().value(row)),
    }
}

/// A date as a clock on the wall of its zone shows it.
fn date(millis: i64, zone: &str) -> String {
    let passed = u64::try_from(millis).ok().map(Instant::from_millis);
    let calendar = format!("1970-01-01T00:00:00Z[{zone}]").parse::<Calendar>().ok();
    calendar.zip(passed).map_or(String::new(), |(calendar, passed)| calendar.shown(passed))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
