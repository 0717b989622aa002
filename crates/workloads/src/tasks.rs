//! A folder with a site and its tasks: `machines.csv`, `tables.csv`, `utilities.csv`, `tasks.csv`.
//!
//! The tasks are rows of `task,arrival_s,type,utility`: a number, seconds, the name of a task type
//! of the tables and the name of a utility function.

use std::collections::HashMap;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use super::essc::Tasks;
use busbar_core::heterogeneity::{Site, Tables, TaskType};
use busbar_core::job::{ApplicationId, Job};
use busbar_core::rows::{Form, TableError};
use busbar_core::units::{Instant, parse_decimal};
use busbar_core::utility::{Utilities, UtilityId};
use busbar_core::workload::Workload;

const FORM: Form = Form {
    what: "the tasks",
    columns: &["task", "arrival_s", "type", "utility"],
    form: "write task,arrival_s,type,utility",
};
/// The files of the folder: machine types, entries, utility functions, tasks.
pub const FILES: [&str; 4] = ["machines.csv", "tables.csv", "utilities.csv", "tasks.csv"];

impl Tasks {
    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Self, TableError> {
        let [machines, tables, utilities, tasks] = FILES.map(|name| folder.join(name));
        let tables = Tables::read(&machines, &tables)?;
        let utilities = Utilities::read(&utilities)?;
        let site = Site { tables: Arc::new(tables), utilities: Arc::new(utilities) };
        let text = FORM.read(&tasks)?;
        let name = folder.file_name().map_or("tasks".into(), |name| name.to_string_lossy());
        Tasks::parse(&text, &tasks, &name, site)
    }

    /// Reads the text of a file of tasks, which the path names in errors, for a site.
    pub fn parse(text: &str, path: &Path, name: &str, site: Site) -> Result<Self, TableError> {
        let types: HashMap<&str, TaskType> =
            site.tables.task_types().iter().map(String::as_str).zip((0..).map(TaskType)).collect();
        let known: HashMap<&str, UtilityId> =
            site.utilities.iter().map(|(name, _)| name).zip((0..).map(UtilityId::at)).collect();
        let mut jobs = Vec::new();
        for cells in FORM.rows(text, path) {
            let cells = cells?;
            let [task, arrival, kind, utility] = cells.all();
            let number = task
                .parse()
                .map_err(|_| cells.wrong("task", format!("'{task}' is not a number")))?;
            let arrival =
                parse_decimal(arrival, 1000).map_err(|why| cells.wrong("arrival_s", why))?;
            let kind = *types.get(kind).ok_or_else(|| {
                let why = format!("'{kind}' is not in the tables: no machine can run it");
                cells.wrong("type", why)
            })?;
            let utility = *known.get(utility).ok_or_else(|| {
                cells.wrong("utility", format!("there is no utility function '{utility}'"))
            })?;
            let time = site.tables.longest_at_full_speed(kind).unwrap_or_default();
            let mut job = Job::new(number, Instant::from_millis(arrival), 1, time);
            job.application = Some(ApplicationId(NonZeroU32::MIN.saturating_add(kind.0)));
            job.terms.utility = Some(utility);
            jobs.push((job, time));
        }
        if jobs.is_empty() {
            return Err(Form::incomplete(path, format!("no tasks; {} rows", FORM.form)));
        }
        let machines = site.tables.machines();
        let workload = Workload::new(name, jobs).on_processors(Some(machines));
        Ok(Tasks { workload, site, period: None })
    }

    /// Writes the tasks in the form [`Tasks::parse`] reads.
    pub fn write_tasks(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", FORM.heading())?;
        for job in self.workload.jobs() {
            let kind = job.application.map_or(0, |application| application.0.get() as usize - 1);
            let kind = self.site.tables.task_types().get(kind).map_or("?", String::as_str);
            let utility = job.terms.utility.map_or("?", |id| self.site.utilities.name(id));
            writeln!(out, "{},{},{kind},{utility}", job.number, job.submit.secs_f64())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::essc::Essc;

    fn site() -> Site {
        let machines = ("cpu,1,general", Path::new("m.csv"));
        let tables = Tables::parse(machines, ("a,cpu,0,5,1", Path::new("t.csv"))).unwrap();
        let utilities = Utilities::parse("gold,0,8,0.1", Path::new("u.csv")).unwrap();
        Site { tables: Arc::new(tables), utilities: Arc::new(utilities) }
    }

    #[test]
    fn what_is_written_is_read() {
        let drawn = Essc { tasks: 200, ..Essc::default() }.draw().unwrap();
        let mut written = Vec::new();
        drawn.write_tasks(&mut written).unwrap();
        let text = String::from_utf8(written).unwrap();
        let read = Tasks::parse(&text, Path::new("tasks.csv"), "essc", drawn.site.clone()).unwrap();
        assert_eq!(read.workload.jobs(), drawn.workload.jobs());
    }

    #[test]
    fn mistakes_say_where() {
        let error = |text: &str| {
            let tasks = Tasks::parse(text, Path::new("tasks.csv"), "x", site());
            tasks.unwrap_err().to_string()
        };
        assert_eq!(
            error("1,0,a,gold\n2,0,b,gold"),
            "tasks.csv, line 2, field 'type': 'b' is not in the tables: no machine can run it"
        );
        assert!(error("1,0,a,lead").contains("there is no utility function 'lead'"));
        assert!(error("x,0,a,gold").contains("field 'task': 'x' is not a number"));
        assert!(error("1,-5,a,gold").contains("field 'arrival_s'"));
        assert!(error("1,0,a").contains("is not 4 fields"));
        assert!(error("").contains("no tasks"));
    }
}
