//! Whether what a job waits for has happened.
//!
//! Slurm looks at the dependencies of a held job about once a minute only. So the jobs that they name are looked at here; a job of
//! which that cannot be told waits until Slurm says it. Slurm has the last word in any case: it looks again when the job is
//! released.

use busbar_slurm::model::{Job, JobState};

/// Whether a job's dependencies, in Slurm's words, are fulfilled: `afterok:12(unfulfilled),afterany:13`, or with question marks
/// if one of them is enough.
pub(super) fn are_fulfilled(text: &str, jobs: &[Job]) -> bool {
    let is_one_enough = text.contains('?');
    let mut terms = text.split([',', '?']).map(|term| is_fulfilled(term.trim(), jobs));
    if is_one_enough { terms.any(|is_so| is_so) } else { terms.all(|is_so| is_so) }
}

fn is_fulfilled(term: &str, jobs: &[Job]) -> bool {
    let term = term.strip_suffix("(unfulfilled)").unwrap_or(term);
    let Some((kind, ids)) = term.split_once(':') else { return false };
    ids.split(':').all(|id| {
        let id = id.strip_suffix("(unfulfilled)").unwrap_or(id);
        match id.strip_suffix("_*") {
            // Of elements that Slurm has forgotten nobody knows how they ended, but that they did.
            Some(array) => kind == "afterany" && is_array_over(array, jobs),
            None => is_job_so(kind, id, jobs),
        }
    })
}

fn is_array_over(array: &str, jobs: &[Job]) -> bool {
    let Ok(array) = array.parse::<u32>() else { return false };
    let mut elements = jobs
        .iter()
        .filter(|job| job.array.as_ref().is_some_and(|part| part.job == array))
        .peekable();
    elements.peek().is_some() && elements.all(|job| job.state.has_ended())
}

fn is_job_so(kind: &str, id: &str, jobs: &[Job]) -> bool {
    let found = jobs.iter().find(|job| job.reference().to_string() == id);
    let Some(state) = found.map(|job| &job.state) else { return false };
    match kind {
        "after" => !state.is_waiting(),
        "afterany" => state.has_ended(),
        "afterok" => *state == JobState::Completed,
        "afternotok" => state.has_ended() && *state != JobState::Completed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::slurm::tests::held;
    use busbar_slurm::model::ArrayPart;

    #[test]
    fn what_is_named_is_looked_at() {
        let job = |id, state| Job { state, ..held(id) };
        let element = |task: &str, state| Job {
            array: Some(ArrayPart { job: 20, tasks: task.parse().unwrap() }),
            ..job(20, state)
        };
        let jobs = [
            job(1, JobState::Completed),
            job(2, JobState::Failed),
            job(3, JobState::Running),
            job(4, JobState::Pending),
            element("1", JobState::Completed),
            element("2", JobState::Failed),
        ];
        let is_so = |text| are_fulfilled(text, &jobs);
        assert!(is_so("afterok:1(unfulfilled)"));
        assert!(is_so("afterok:1,afternotok:2(unfulfilled)"));
        assert!(is_so("afterany:1:2"));
        assert!(is_so("after:3") && !is_so("after:4"));
        assert!(is_so("afterok:2?afterok:1") && !is_so("afterok:2,afterok:1"));
        assert!(is_so("afterany:20_*") && !is_so("afterok:20_*"));
        assert!(is_so("afterok:20_1") && !is_so("afterok:20_2"));
        for other in [
            "afterok:2(failed)",
            "afterok:9",
            "singleton",
            "aftercorr:20_*",
            "after:1+5",
            "afterany:3",
        ] {
            assert!(!is_so(other), "{other}");
        }
    }
}
