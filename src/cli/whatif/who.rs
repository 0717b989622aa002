//! Mean waits by user, account and partition: without the budget, with it, and the difference.

use serde::Serialize;

use super::past::Past;
use crate::experiment::compared::{Compared, Runs};
use crate::job::Job;
use crate::report::html::Aside;
use crate::report::human_time;
use crate::units::JobId;
use crate::workload::Workload;

/// The numbers of rows on the page and in the text; one more row sums up the rest.
pub(super) const ON_PAGE: usize = 30;
pub(super) const IN_TEXT: usize = 10;

/// The waits of all jobs, and of those of each user, account and partition.
pub(super) struct Who {
    pub(super) all: Compared,
    by: Vec<By>,
}

/// The waits of jobs, grouped by user, account or partition.
struct By {
    word: &'static str,
    rows: Vec<(Compared, Vec<usize>)>,
}

/// The same for JSON.
#[derive(Serialize)]
pub(super) struct WhoJson<'a> {
    /// The run that waits are compared with.
    before: &'a str,
    /// The run in question.
    after: Option<&'a str>,
    all: &'a Compared,
    by_user: Vec<&'a Compared>,
    by_account: Vec<&'a Compared>,
    by_partition: Vec<&'a Compared>,
}

impl Who {
    pub(super) fn of(jobs: &Workload, past: &Past, runs: &Runs<'_>) -> Self {
        let all: Vec<usize> = (0..jobs.jobs().len()).collect();
        let numbers = |of: fn(&Job) -> Option<u32>| jobs.jobs().iter().map(of).collect::<Vec<_>>();
        let users = numbers(|job| job.user.map(|user| user.0.get()));
        let accounts = numbers(|job| job.group.map(|group| group.0.get()));
        let partitions: Vec<Option<u32>> =
            (0..).map(JobId).take(all.len()).map(|job| jobs.partition(job)).collect();
        let unknown = || "not recorded".to_owned();
        let by = |word, of_jobs: &[Option<u32>], name: &dyn Fn(u32) -> String| By {
            word,
            rows: match of_jobs.iter().any(Option::is_some) {
                true => runs.compare_by(of_jobs, |number| number.map_or_else(unknown, name)),
                false => Vec::new(),
            },
        };
        Who {
            all: runs.compare("all jobs".to_owned(), &all),
            by: vec![
                by("user", &users, &|number| past.user(number)),
                by(past.account_word(), &accounts, &|number| past.account(number)),
                by("partition", &partitions, &|number| jobs.partition_name(number)),
            ],
        }
    }

    pub(super) fn json<'a>(&'a self, runs: &Runs<'a>) -> WhoJson<'a> {
        let rows = |place: usize| self.by[place].rows.iter().map(|(row, _)| row).collect();
        WhoJson {
            before: runs.all[runs.before].0,
            after: runs.after.map(|after| runs.all[after].0),
            all: &self.all,
            by_user: rows(0),
            by_account: rows(1),
            by_partition: rows(2),
        }
    }

    /// A table for each thing that jobs differ in, with this many rows at most. `with_others` adds the differences under
    /// the other policies.
    pub(super) fn tables(&self, runs: &Runs<'_>, most: usize, with_others: bool) -> Vec<Aside> {
        let some = self.by.iter().filter(|by| by.rows.len() > 1);
        some.map(|by| table(by, runs, most, with_others)).collect()
    }
}

fn table(by: &By, runs: &Runs<'_>, most: usize, with_others: bool) -> Aside {
    let is_reference = |place: usize| place <= runs.before;
    let recorded = (0..runs.before).next();
    let others: Vec<usize> = (0..runs.all.len())
        .filter(|place| with_others && !is_reference(*place) && Some(*place) != runs.after)
        .collect();
    let mut rows: Vec<Compared> = by.rows.iter().take(most).map(|(row, _)| row.clone()).collect();
    let rest: Vec<usize> = by.rows.iter().skip(most).flat_map(|(_, jobs)| jobs.clone()).collect();
    if !rest.is_empty() {
        let name = format!("{} others", by.rows.len() - most);
        rows.push(runs.compare(name, &rest));
    }
    let has_missing = rows.iter().any(|row| row.not_run > 0);
    let after = runs.after.map_or("budget", |after| runs.all[after].0);
    let mut headings = vec![by.word.to_owned(), "jobs".to_owned()];
    headings.extend(recorded.map(|place| runs.all[place].0.to_owned()));
    headings.extend([runs.all[runs.before].0, after, "difference"].map(str::to_owned));
    headings.extend(has_missing.then(|| "not run".to_owned()));
    let policy = |place: &usize| runs.all[*place].0.trim_end_matches(", budget");
    headings.extend(others.iter().map(|place| format!("difference under {}", policy(place))));
    let time = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), human_time);
    let cells = |row: &Compared| {
        let mut cells = vec![row.name.clone(), row.jobs.to_string()];
        cells.extend(recorded.map(|place| time(row.runs[place].mean_wait_s)));
        cells.extend([row.before_mean_wait_s, row.after_mean_wait_s].map(time));
        cells.push(row.difference_s.map_or_else(|| "-".to_owned(), signed_time));
        cells.extend(has_missing.then(|| row.not_run.to_string()));
        let difference = |place: &usize| row.runs[*place].difference_s;
        cells.extend(
            others
                .iter()
                .map(|place| difference(place).map_or_else(|| "-".to_owned(), signed_time)),
        );
        cells
    };
    Aside {
        title: format!("Mean wait by {}", by.word),
        about: "Most affected first; a difference counts only jobs that run both with and without the budget"
            .to_owned(),
        headings,
        rows: rows.iter().map(cells).collect(),
        picture: None,
    }
}

/// A difference of times, with its sign.
pub(super) fn signed_time(seconds: f64) -> String {
    let size = human_time(seconds.abs());
    match seconds {
        _ if size == human_time(0.0) => size,
        more if more > 0.0 => format!("+{size}"),
        _ => format!("−{size}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_a_sign_unless_they_are_none() {
        assert_eq!(
            [576.0, -90.0, 0.04, 0.0].map(signed_time),
            ["+9.6 min", "−90.0 s", "0.0 s", "0.0 s"]
        );
    }
}
