//! The power of jobs as it was measured, which no log has a column for: a file of `job,mean_w,peak_w` rows.
//!
//! A log names the file in its header (`; BusbarPower: jobs.power.csv`), and it stands beside the log. Watts are of
//! the whole job, all its nodes together; an empty field is not known.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use busbar_core::rows::{Cells, Form, TableError};
use busbar_core::units::Watts;
use busbar_core::workload::{MeasuredPower, Workload};

const POWERS: Form = Form {
    what: "the power of jobs in",
    columns: &["job", "mean_w", "peak_w"],
    form: "write job,mean_w,peak_w, such as 17,1840.5,2100; a field may be empty",
};

/// Gives the jobs of a workload the power that a file has for their numbers. What it says of others is passed over: the
/// workload may be a part of that which was measured.
pub(crate) fn read_into(workload: &mut Workload, path: &Path) -> Result<(), TableError> {
    set(workload, &POWERS.read(path)?, path)
}

fn set(workload: &mut Workload, text: &str, path: &Path) -> Result<(), TableError> {
    let mut measured: HashMap<u64, Option<MeasuredPower>> = HashMap::new();
    for cells in POWERS.rows(text, path) {
        let cells = cells?;
        let [job, mean, peak] = cells.all();
        let number: u64 = job
            .parse()
            .map_err(|_| cells.unreadable("job", format!("'{job}' is not a job's number")))?;
        let power =
            MeasuredPower::new(watts(&cells, "mean_w", mean)?, watts(&cells, "peak_w", peak)?);
        if measured.insert(number, power).is_some() {
            return Err(cells.wrong("job", format!("{number} is given twice; keep one")));
        }
    }
    workload.set_powers(|job| measured.get(&job.number).copied().flatten());
    Ok(())
}

/// A field of watts, with a decimal point and as many decimals as there are; rounded up.
fn watts(cells: &Cells<'_>, field: &'static str, text: &str) -> Result<Option<Watts>, TableError> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().and_then(Watts::from_f64_rounded_up);
    let watts = number
        .ok_or_else(|| cells.unreadable(field, format!("'{text}' is not a power in watts")))?;
    Ok(Some(watts))
}

/// What the file for the power of jobs is called that stands beside a log.
pub fn name_beside(log: &Path) -> Option<String> {
    let name = log.file_name()?.to_str()?;
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let stem = stem.strip_suffix(".swf").unwrap_or(stem);
    Some(format!("{stem}.power.csv"))
}

/// Writes the power of jobs by their numbers.
pub fn write_power(
    out: &mut dyn Write,
    measured: impl IntoIterator<Item = (u64, MeasuredPower)>,
) -> io::Result<()> {
    writeln!(out, "{}", POWERS.columns.join(","))?;
    let mut line = busbar_core::digits::Line::new();
    for (number, power) in measured {
        line.clear();
        line.byte(b'\n');
        for watts in [power.peak(), power.mean()] {
            if let Some(watts) = watts {
                line.thousandths(watts.milliwatts());
            }
            line.byte(b',');
        }
        line.unsigned(number);
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbar_core::job::Job;
    use busbar_core::units::{Instant, JobId, Span};

    fn workload() -> Workload {
        let job =
            |number, at| (Job::new(number, Instant::from_secs(at), 1, Span::ZERO), Span::ZERO);
        Workload::new("test", [job(7, 0), job(9, 5), job(8, 5)])
    }

    fn power(mean: u64, peak: u64) -> Option<MeasuredPower> {
        let watts = |milliwatts| (milliwatts > 0).then(|| Watts::from_milliwatts(milliwatts));
        MeasuredPower::new(watts(mean), watts(peak))
    }

    #[test]
    fn power_goes_with_its_job() {
        let mut workload = workload();
        let text = "job,mean_w,peak_w\n9,297.65999999999997,\n7,,10\n12,5,5\n";
        set(&mut workload, text, Path::new("p.csv")).unwrap();
        let of = |workload: &Workload| [0, 1, 2].map(|job| workload.power(JobId(job)));
        assert_eq!(of(&workload), [power(0, 10_000), power(297_660, 0), None]);
        let kept = workload.clone().keep(|job| job.number != 7);
        assert_eq!((kept.power(JobId(0)), kept.power(JobId(1))), (power(297_660, 0), None));
        workload.slice(1..3);
        assert_eq!(workload.power(JobId(0)), power(297_660, 0));
        assert_eq!(kept.powers_known(), 1);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut out = Vec::new();
        let some = [(7, power(1500, 2000).unwrap()), (8, power(0, 3001).unwrap())];
        write_power(&mut out, some).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "job,mean_w,peak_w\n7,1.5,2\n8,,3.001\n");
        let mut workload = workload();
        set(&mut workload, &text, Path::new("p.csv")).unwrap();
        assert_eq!(workload.power(JobId(2)), Some(some[1].1));
    }

    #[test]
    fn mistakes_are_named_and_change_nothing() {
        let mut workload = workload();
        for (text, why) in [
            ("7,2", "p.csv, line 1, field 'peak_w': '7,2' is not 3 fields"),
            ("x,2,", "line 1, field 'job': 'x' is not a job's number"),
            ("7,-2,", "line 1, field 'mean_w': '-2' is not a power in watts"),
            ("7,2,\n7,3,", "line 2, field 'job': 7 is given twice"),
        ] {
            let error = set(&mut workload, text, Path::new("p.csv")).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(workload.powers_known(), 0);
    }
}
