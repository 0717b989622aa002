//! The terms of jobs, which no log has a column for: a file of `job,weight,slowdown` rows.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use busbar_core::job::Terms;
use busbar_core::rows::{Form, TableError};
use busbar_core::workload::Workload;

const TERMS: Form = Form {
    what: "the terms of jobs in",
    columns: &["job", "weight", "slowdown"],
    form: "write job,weight,slowdown, such as 17,2,10%; a field may be empty",
};

/// Gives the jobs of a workload the terms that a file has for their numbers. Jobs it does not name keep theirs.
pub fn read_into(workload: &mut Workload, path: &Path) -> Result<(), TableError> {
    set(workload, &TERMS.read(path)?, path)
}

fn set(workload: &mut Workload, text: &str, path: &Path) -> Result<(), TableError> {
    let numbers: HashSet<u64> = workload.jobs().iter().map(|job| job.number).collect();
    let mut lines: HashMap<u64, usize> = HashMap::new();
    let mut agreed: HashMap<u64, Terms> = HashMap::new();
    for cells in TERMS.rows(text, path) {
        let cells = cells?;
        let [job, weight, slowdown] = cells.all();
        let wrong = |field, why: String| cells.unreadable(field, why);
        let number: u64 =
            job.parse().map_err(|_| wrong("job", format!("'{job}' is not a job's number")))?;
        if !numbers.contains(&number) {
            return Err(wrong("job", format!("there is no job {number} in the workload")));
        }
        if let Some(earlier) = lines.insert(number, cells.line()) {
            return Err(wrong("job", format!("line {earlier} has terms of {number} already")));
        }
        let mut terms = Terms::default();
        if !weight.is_empty() {
            terms.weight = weight.parse().map_err(|why| wrong("weight", why))?;
        }
        if !slowdown.is_empty() {
            terms.tolerance = Some(slowdown.parse().map_err(|why| wrong("slowdown", why))?);
        }
        agreed.insert(number, terms);
    }
    workload.set_terms(|job| agreed.get(&job.number).copied());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::job::{Job, Tolerance};
    use busbar_core::units::{Instant, Share, Span};

    fn with(text: &str) -> Result<Workload, String> {
        let job = |number| (Job::new(number, Instant::ZERO, 1, Span::ZERO), Span::ZERO);
        let mut workload = Workload::new("test", [job(7), job(9)]);
        let set = set(&mut workload, text, Path::new("terms.csv"));
        set.map(|()| workload).map_err(|error| error.to_string())
    }

    #[test]
    fn fields_may_be_empty() {
        let workload = with("job,weight,slowdown\n9,2.5,\n7,,10%\n").unwrap();
        let [seven, nine] = [0, 1].map(|place| workload.jobs()[place].terms);
        assert_eq!(nine, Terms { weight: "2.5".parse().unwrap(), ..Terms::default() });
        let tolerance = Some(Tolerance::Slowdown(Share::percent(10)));
        assert_eq!(seven, Terms { tolerance, ..Terms::default() });
    }

    #[test]
    fn mistakes_are_named_and_change_nothing() {
        for (text, why) in [
            ("7,2", "terms.csv, line 1, field 'slowdown': '7,2' is not 3 fields"),
            ("x,2,", "line 1, field 'job': 'x' is not a job's number"),
            ("7,2,\n8,2,", "line 2, field 'job': there is no job 8"),
            ("7,2,\n7,3,", "line 2, field 'job': line 1 has terms of 7 already"),
            ("7,0,", "field 'weight': '0' is not from 0.001"),
            ("7,,fast", "field 'slowdown'"),
            ("7,,10", "such as 60%"),
        ] {
            let error = with(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
