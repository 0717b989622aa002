//! A sentence that recommends policies under the budget.

use crate::report::human_time;

/// A policy under the budget, with its unfinished jobs and its mean wait.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Candidate<'a> {
    pub(super) policy: &'a str,
    pub(super) is_site: bool,
    pub(super) undone: u64,
    pub(super) mean_wait_s: f64,
}

impl Candidate<'_> {
    fn name(&self) -> String {
        let own = if self.is_site { ", the site's own policy" } else { "" };
        format!("{}{own}", self.policy)
    }

    fn figures(&self) -> String {
        let wait = human_time(self.mean_wait_s);
        match self.undone {
            0 => format!("all jobs run and wait {wait} on average"),
            1 => format!("1 job does not finish, the others wait {wait} on average"),
            more => format!("{more} jobs do not finish, the others wait {wait} on average"),
        }
    }
}

/// The policies to choose from. Leaving jobs unfinished shortens the waits of the others, so this names every policy
/// that no other beats in both, and always the site's own.
pub(super) fn choice(mut candidates: Vec<Candidate<'_>>) -> Option<String> {
    let site = candidates.iter().find(|one| one.is_site).copied();
    // The order is kept among equals: the site's own comes first, and nothing speaks for a change.
    candidates.sort_by(|one, other| {
        one.mean_wait_s.total_cmp(&other.mean_wait_s).then(one.undone.cmp(&other.undone))
    });
    let mut best: Vec<Candidate<'_>> = Vec::new();
    for one in candidates {
        if best.last().is_none_or(|last| one.undone < last.undone) {
            best.push(one);
        }
    }
    let described = |one: &Candidate<'_>| format!("{}: {}", one.name(), one.figures());
    let mut said = match best.as_slice() {
        [] => return None,
        [one] => format!("Under the budget, jobs wait least under {}.", described(one)),
        several => format!(
            "Under the budget, there is a choice between fewer incomplete jobs and shorter waits. {}.",
            several.iter().map(described).collect::<Vec<_>>().join("; ")
        ),
    };
    if let Some(site) = site.filter(|site| !best.contains(site)) {
        said += &format!(" {}.", described(&site));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(policy: &str, undone: u64, wait_min: f64) -> Candidate<'_> {
        let is_site = policy == "easy";
        Candidate { policy, is_site, undone, mean_wait_s: 60.0 * wait_min }
    }

    #[test]
    fn every_policy_is_named_that_no_other_beats_in_both() {
        let said = choice(vec![
            candidate("easy", 9, 10.0),
            candidate("worse", 9, 11.0),
            candidate("complete", 0, 50.0),
            candidate("between", 1, 20.0),
        ]);
        let expected = "Under the budget, there is a choice between fewer incomplete jobs and shorter waits. \
            easy, the site's own policy: 9 jobs do not finish, the others wait 10.0 min on average; \
            between: 1 job does not finish, the others wait 20.0 min on average; \
            complete: all jobs run and wait 50.0 min on average.";
        assert_eq!(said.unwrap(), expected);
    }

    #[test]
    fn the_site_s_own_is_named_beside_the_best() {
        let said = choice(vec![candidate("easy", 9, 60.0), candidate("better", 0, 20.0)]);
        let expected = "Under the budget, jobs wait least under better: all jobs run and wait 20.0 min on average. \
            easy, the site's own policy: 9 jobs do not finish, the others wait 60.0 min on average.";
        assert_eq!(said.unwrap(), expected);
        // Nothing speaks for a change where they are alike.
        let alike = choice(vec![candidate("easy", 0, 20.0), candidate("other", 0, 20.0)]).unwrap();
        assert!(alike.contains("wait least under easy") && !alike.contains("other:"), "{alike}");
        assert_eq!(choice(Vec::new()), None);
    }
}
