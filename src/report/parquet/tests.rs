//! What is written is read back with the parquet crate's own reader, and compared with the CSV files
//! cell by cell.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use super::*;
use crate::budget::BudgetSpec;
use crate::machine::Machine;
use crate::report::{
    caps_table, changes_table, jobs_table, power_table, write_caps, write_changes, write_jobs,
    write_power,
};
use crate::reproduce::papers;
use crate::scenario::Scenario;
use crate::workload::demo::demo;

/// The rows of a Parquet file, each cell as a CSV file would be read: `None` where it is empty.
fn rows(table: &Table<'_>) -> (Vec<String>, Vec<Vec<Field>>) {
    let mut bytes = Vec::new();
    write_parquet(&mut bytes, table).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let names = schema.get_fields().iter().map(|field| field.name().to_owned()).collect();
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect::<Vec<Field>>()
    });
    (names, rows.collect())
}

fn assert_same(table: &Table<'_>, csv: &[u8]) {
    let (names, rows) = rows(table);
    let mut lines = std::str::from_utf8(csv).unwrap().lines();
    assert_eq!(lines.next().unwrap().split(',').collect::<Vec<_>>(), names);
    assert_eq!(lines.clone().count(), rows.len());
    for (line, row) in lines.zip(rows) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), row.len(), "{line}");
        for ((cell, field), name) in cells.iter().zip(&row).zip(&names) {
            let is_same = match field {
                Field::Null => cell.is_empty(),
                Field::ULong(number) => cell.parse() == Ok(*number),
                Field::Double(number) => cell.parse() == Ok(*number),
                Field::Bool(truth) => cell.parse() == Ok(*truth),
                Field::Str(text) => cell == text,
                other => panic!("{name} is {other:?}"),
            };
            assert!(is_same, "{name}: {cell} in CSV, {field:?} in Parquet");
        }
    }
}

/// Processors with names and caps of their own.
#[test]
fn caps_are_the_same_too() {
    let mut workload = demo();
    workload.slice(0..100);
    let machine = Machine::catalyst(64, 1).unwrap();
    let budget = "60%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let policy = "ppartition".parse().unwrap();
    let model = papers::model(&policy, &machine, workload.jobs(), 1).unwrap();
    let new = Scenario::new(&machine, &workload, policy, model.as_ref());
    let scenario = Scenario { budget, keep_power: true, ..new };
    let run = scenario.simulate().run;
    assert!(!run.cappings.is_empty());
    let subject = scenario.context("ppartition");
    let mut csv = Vec::new();
    write_caps(&mut csv, &subject, &run).unwrap();
    assert_same(&caps_table(&subject, &run), &csv);
}

/// Runs with rejected jobs, with gears, and with jobs that change while they run.
#[test]
fn parquet_has_what_csv_has() {
    let machine = Machine::of_processors(256).unwrap();
    let mut workload = demo();
    workload.slice(0..400);
    let budget = "60%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    for policy in ["easy", "pb-guided", "parm"] {
        let spec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, &workload, spec, model.as_ref());
        let scenario = Scenario { budget: budget.clone(), keep_power: true, ..new };
        let run = scenario.simulate().run;
        let subject = scenario.context(policy);
        let mut csv = [const { Vec::new() }; 3];
        write_jobs(&mut csv[0], &subject, &run).unwrap();
        write_power(&mut csv[1], &run).unwrap();
        write_changes(&mut csv[2], &subject, &run).unwrap();
        assert_same(&jobs_table(&subject, &run), &csv[0]);
        assert_same(&power_table(&run), &csv[1]);
        assert_same(&changes_table(&subject, &run), &csv[2]);
        assert_eq!(policy == "parm", csv[2].len() > 100);
    }
}
