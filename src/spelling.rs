//! What somebody may have meant who wrote a name that nobody knows.

/// The known name that is closest to a wrong one, if it is close enough to be meant; of equals the first.
/// Capitals make no difference.
pub(crate) fn closest<'a>(
    wrong: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let wrong = letters(wrong);
    // A third of the letters may be wrong, and at least one.
    let most = (wrong.len() / 3).max(1);
    let near = known.into_iter().map(|name| (distance(&wrong, &letters(name)), name));
    near.filter(|(apart, _)| *apart <= most).min_by_key(|(apart, _)| *apart).map(|(_, name)| name)
}

/// How many letters have to be changed, left out, put in or swapped with their neighbour.
fn distance(one: &[char], other: &[char]) -> usize {
    // Rows of the table: for the beginnings of `one` up to two letters shorter, one shorter, and as long.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, otherwise) in other.iter().enumerate() {
            let changed = last[column] + usize::from(letter != otherwise);
            let mut least = changed.min(last[column + 1] + 1).min(next[column] + 1);
            let are_swapped =
                row > 0 && column > 0 && one[row - 1] == *otherwise && other[column - 1] == *letter;
            if are_swapped {
                let two_before: &Vec<usize> = &before;
                least = least.min(two_before[column - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut last, next);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        for (one, other, apart) in [
            ("", "", 0),
            ("", "abc", 3),
            ("easy", "easy", 0),
            ("eazy", "easy", 1),
            ("esay", "easy", 1),
            ("eas", "easy", 1),
            ("eeasy", "easy", 1),
            ("kitten", "sitting", 3),
        ] {
            let letters = |text: &str| text.chars().collect::<Vec<char>>();
            assert_eq!(distance(&letters(one), &letters(other)), apart, "{one}, {other}");
            assert_eq!(distance(&letters(other), &letters(one)), apart, "{other}, {one}");
        }
    }

    #[test]
    fn only_what_may_be_meant_is_named() {
        let known = ["fcfs", "easy", "easy-power", "CoMD", "parm"];
        for (wrong, meant) in [
            ("eazy", Some("easy")),
            ("comd", Some("CoMD")),
            ("easypower", Some("easy-power")),
            ("prm", Some("parm")),
            ("zzzz", None),
            ("", None),
        ] {
            assert_eq!(closest(wrong, known), meant, "{wrong}");
        }
        assert_eq!(closest("ab", ["ac", "bb"]), Some("ac"));
    }
}
