//! Suggestions for misspelled names.

/// The known name that is most like what was written, if any is like it: at most two letters in five are
/// wrong, missing or too many, one in names of three or four letters, and none in shorter ones. Of several
/// that are as like it, the first.
pub fn closest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let letters = wrong.chars().count();
    let slips = |name: &str| strsim::osa_distance(&wrong, &name.to_lowercase());
    let near = known.into_iter().map(|name| (slips(name), name)).filter(|(slips, name)| {
        let longer = letters.max(name.chars().count());
        longer > 2 && *slips <= (2 * longer / 5).max(1)
    });
    near.min_by_key(|(slips, _)| *slips).map(|(_, name)| name)
}

/// What stands between a complaint about a name and the list of those that are known:
/// `; did you mean 'easy'?`, or just a semicolon if no name is like it.
pub fn hint<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    closest(wrong, known).map_or(";".to_owned(), |name| format!("; did you mean '{name}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let policies = ["fcfs", "easy", "conservative", "easy-power", "pb-guided", "parm"];
        for (wrong, meant) in [
            ("eazy", Some("easy")),
            ("EASY", Some("easy")),
            ("esay", Some("easy")),
            ("easypower", Some("easy-power")),
            ("pb_guided", Some("pb-guided")),
            ("conservativ", Some("conservative")),
            ("fcsf", Some("fcfs")),
            ("prm", Some("parm")),
            ("backfill", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(closest(wrong, policies), meant, "{wrong}");
        }
        assert_eq!(closest("SP", ["EP"]), None, "half of the letters are no slip");
        assert_eq!(closest("jab", ["job", "jam"]), Some("job"));
        assert_eq!(hint("eazy", policies), "; did you mean 'easy'?");
        assert_eq!(hint("none", []), ";");
    }
}
