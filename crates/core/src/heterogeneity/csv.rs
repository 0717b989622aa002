//! Machine types and their tables in text.
//!
//! One file has the machine types, `machine,machines,purpose`; the other has the entries,
//! `task,machine,pstate,time_s,power_w`. A general-purpose machine type needs an entry for every
//! task type and each of its P-states, a special-purpose one for each task type that it runs at
//! all. A hole is refused: it could as well be a slip.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::{MachineType, NotTables, PState, Purpose, Tables, TaskType};
use crate::rows::{Form, TableError};
use crate::units::{Span, Watts, parse_decimal};

const MACHINES: Form = Form {
    what: "the machine types",
    columns: &["machine", "machines", "purpose"],
    form: "write machine,machines,purpose",
};
const ENTRIES: Form = Form {
    what: "the tables",
    columns: &["task", "machine", "pstate", "time_s", "power_w"],
    form: "write task,machine,pstate,time_s,power_w",
};

/// The most P-states that a machine may have.
const MOST_STATES: u8 = 64;

impl Tables {
    /// Reads the file of machine types and the file of entries.
    pub fn read(machines: &Path, entries: &Path) -> Result<Self, TableError> {
        let texts = (MACHINES.read(machines)?, ENTRIES.read(entries)?);
        Tables::parse((&texts.0, machines), (&texts.1, entries))
    }

    /// Reads the texts of both files, which the paths name in errors.
    pub fn parse(
        (machines, machines_path): (&str, &Path),
        (entries, entries_path): (&str, &Path),
    ) -> Result<Self, TableError> {
        let machine_types = parse_machines(machines, machines_path)?;
        let places: HashMap<&str, usize> =
            machine_types.iter().enumerate().map(|(place, kind)| (&*kind.name, place)).collect();
        let mut tasks: Vec<String> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut found: HashMap<(usize, usize, u8), (usize, PState)> = HashMap::new();
        // How many P-states each machine type has.
        let mut states = vec![0u8; machine_types.len()];
        for cells in ENTRIES.rows(entries, entries_path) {
            let cells = cells?;
            let [task, machine, state, time, power] = cells.all();
            let wrong = |field, why: String| cells.wrong(field, why);
            if task.is_empty() {
                return Err(wrong("task", "the name is missing".to_owned()));
            }
            let kind = *places.get(machine).ok_or_else(|| {
                let names: Vec<&str> = machine_types.iter().map(|kind| &*kind.name).collect();
                let valid = names.join(", ");
                wrong("machine", format!("unknown machine type '{machine}'; valid: {valid}"))
            })?;
            let number = state.parse::<u8>().ok().filter(|number| *number < MOST_STATES);
            let number = number.ok_or_else(|| {
                let most = MOST_STATES - 1;
                wrong("pstate", format!("'{state}' is not a P-state; write 0 to {most}"))
            })?;
            let positive = |field, text: &str| {
                let thousandths = match text.strip_prefix('-') {
                    Some(_) => Err(format!("{text} is below zero; give the measured value")),
                    None => parse_decimal(text, 1000).map_err(|why| why.to_string()),
                };
                match thousandths.map_err(|why| wrong(field, why))? {
                    0 => Err(wrong(field, "zero; give the measured value".to_owned())),
                    value => Ok(value),
                }
            };
            let time = Span::from_millis(positive("time_s", time)?);
            let power = Watts::from_milliwatts(positive("power_w", power)?);
            let task = *known.entry(task.to_owned()).or_insert_with_key(|name| {
                tasks.push(name.clone());
                tasks.len() - 1
            });
            let entry = PState { number, time, power };
            if let Some((earlier, _)) = found.insert((task, kind, number), (cells.line(), entry)) {
                return Err(wrong("pstate", format!("line {earlier} has this entry already")));
            }
            states[kind] = states[kind].max(number + 1);
        }
        let mut all = Vec::new();
        for (task, name) in tasks.iter().enumerate() {
            for (place, kind) in machine_types.iter().enumerate() {
                let special = kind.purpose == Purpose::Special;
                let entry = |number| found.get(&(task, place, number)).map(|(_, entry)| *entry);
                // A machine type without a single row needs one as well, unless it is special.
                let numbers = 0..states[place].max(1);
                if special && numbers.clone().all(|number| entry(number).is_none()) {
                    all.push(Vec::new());
                    continue;
                }
                let mut row = Vec::new();
                for number in numbers {
                    row.push(
                        entry(number).ok_or_else(|| {
                            Form::incomplete(entries_path, hole(name, kind, number))
                        })?,
                    );
                }
                all.push(row);
            }
        }
        Tables::new(machine_types, tasks, all)
            .map_err(|error| Form::incomplete(entries_path, error))
    }

    /// Writes the machine types in the form [`Tables::parse`] reads.
    pub fn write_machines(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", MACHINES.heading())?;
        for kind in self.machine_types() {
            let purpose = match kind.purpose {
                Purpose::Special => "special",
                Purpose::General => "general",
            };
            writeln!(out, "{},{},{purpose}", kind.name, kind.machines)?;
        }
        Ok(())
    }

    /// Writes the entries in the form [`Tables::parse`] reads. Where P-states were left out, those
    /// that remain are numbered anew, from the fastest on; the last is written again for machine
    /// types that have more of them for other task types.
    pub fn write_entries(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", ENTRIES.heading())?;
        let tasks = || (0..self.task_types.len() as u32).map(TaskType);
        let most = |place| tasks().map(|task| self.states(task, place).len()).max().unwrap_or(0);
        let most: Vec<usize> = (0..self.machine_types.len()).map(most).collect();
        for (task, name) in tasks().zip(&self.task_types) {
            for (place, kind) in self.machine_types.iter().enumerate() {
                let states = self.states(task, place);
                let Some(last) = states.last() else { continue };
                for number in 0..most[place] {
                    let state = states.get(number).unwrap_or(last);
                    let (time, watts) = (state.time.secs_f64(), state.power.as_f64());
                    writeln!(out, "{name},{},{number},{time},{watts}", kind.name)?;
                }
            }
        }
        Ok(())
    }
}

fn parse_machines(text: &str, path: &Path) -> Result<Vec<MachineType>, TableError> {
    let mut machine_types: Vec<MachineType> = Vec::new();
    for cells in MACHINES.rows(text, path) {
        let cells = cells?;
        let [name, machines, purpose] = cells.all();
        let wrong = |field, why: String| cells.wrong(field, why);
        if name.is_empty() {
            return Err(wrong("machine", "the name is missing".to_owned()));
        }
        if machine_types.iter().any(|kind| kind.name == name) {
            return Err(wrong("machine", format!("'{name}' is given twice; keep one")));
        }
        let count =
            machines.parse().ok().filter(|count| (1..=Tables::MOST_MACHINES).contains(count));
        let machines = count.ok_or_else(|| {
            let most = Tables::MOST_MACHINES;
            wrong("machines", format!("'{machines}' is not a count; write 1 to {most}"))
        })?;
        let purpose = match purpose {
            "general" => Purpose::General,
            "special" => Purpose::Special,
            other => {
                return Err(wrong("purpose", format!("'{other}'; write general or special")));
            }
        };
        machine_types.push(MachineType { name: name.to_owned(), machines, purpose });
    }
    match machine_types.is_empty() {
        false => Ok(machine_types),
        true => Err(Form::incomplete(path, NotTables::NoMachines)),
    }
}

/// What to say of an entry that is missing.
fn hole(task: &str, machine: &MachineType, state: u8) -> String {
    let exception = match machine.purpose {
        Purpose::Special => ", but a special machine type may lack a task type altogether",
        Purpose::General => "",
    };
    let machine = &machine.name;
    format!(
        "no row for task type '{task}' on machine type '{machine}' in P-state {state}; a table must be \
        complete{exception}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: &str = "machine,machines,purpose\ngpu,1,special\ncpu,2,general\n";

    fn tables(machines: &str, entries: &str) -> Result<Tables, String> {
        Tables::parse((machines, Path::new("m.csv")), (entries, Path::new("t.csv")))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_written_is_read() {
        let entries = "a,cpu,0,600.5,196\na,cpu,1,700,150\nb,cpu,0,500,100\nb,cpu,1,400,90\n\
                       b,gpu,0,60,250\n";
        let read = tables(TYPES, entries).unwrap();
        assert_eq!(read.dominated(), 1, "b is faster and draws less in P-state 1");
        assert!(read.states(TaskType(0), 0).is_empty());
        let (mut machines, mut entries) = (Vec::new(), Vec::new());
        read.write_machines(&mut machines).unwrap();
        read.write_entries(&mut entries).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let again = tables(&text(machines), &text(entries)).unwrap();
        for (task, kind) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let ways = |tables: &Tables| -> Vec<_> {
                let states = tables.states(TaskType(task), kind).iter();
                states.map(|state| (state.time, state.power)).collect()
            };
            assert_eq!(ways(&again), ways(&read));
        }
    }

    #[test]
    fn mistakes_say_where() {
        let error = |entries: &str| tables(TYPES, entries).unwrap_err();
        let hole = error("a,cpu,0,6,1\na,cpu,1,7,1\nb,cpu,0,5,1\n");
        assert!(
            hole.contains("no row for task type 'b' on machine type 'cpu' in P-state 1"),
            "{hole}"
        );
        assert!(error("b,gpu,0,5,1\n").contains("'b' on machine type 'cpu' in P-state 0"));
        let half = error("b,cpu,0,5,1\nb,gpu,1,5,1");
        assert!(half.contains("'gpu' in P-state 0") && half.contains("altogether"), "{half}");
        assert_eq!(
            error("a,cpu,0,0,1"),
            "t.csv, line 1, field 'time_s': zero; give the measured value"
        );
        assert!(error("a,cpu,0,5,-1").contains("field 'power_w': -1 is below zero"));
        assert!(error("a,tpu,0,5,1").contains("unknown machine type 'tpu'; valid: gpu, cpu"));
        assert!(error("a,cpu,64,5,1").contains("write 0 to 63"));
        assert!(error("a,cpu,0,5").contains("is not 5 fields"));
        assert!(error("a,cpu,0,5,1\na,cpu,0,6,1").contains("line 1 has this entry already"));
        assert!(error("a,cpu,0,99999999999,1").contains("at most 115 days"));
        assert!(error("").contains("there is no task type"));
        let error = |machines: &str| tables(machines, "a,cpu,0,5,1").unwrap_err();
        assert!(error("cpu,0,general").starts_with("m.csv, line 1, field 'machines': '0'"));
        assert!(error("cpu,1,odd").contains("write general or special"));
        assert!(error("cpu,1,general\ncpu,1,general").contains("twice"));
        assert!(error("").contains("there is no machine"));
    }
}
