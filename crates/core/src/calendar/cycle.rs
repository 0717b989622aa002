//! Sets of names that come round again: the days of the week and the months of the year.

use std::fmt;

use crate::spelling::hint;

/// The days of the week, Monday first, as [`jiff`] counts them.
pub(super) const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The months of the year.
pub(super) const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// How many letters of a name are enough, and are written.
const SHORT: usize = 3;

/// Some of `COUNT` names in a circle, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cycle<const COUNT: usize>([bool; COUNT]);

impl<const COUNT: usize> Cycle<COUNT> {
    /// Those at these places.
    pub(super) fn of(places: impl IntoIterator<Item = usize>) -> Self {
        let mut has = [false; COUNT];
        places.into_iter().for_each(|place| has[place % COUNT] = true);
        Cycle(has)
    }

    /// Reads `mon`, `mon..thu` or `sat+sun`. A range may pass the end: `nov..feb`.
    pub(super) fn parse(text: &str, names: &[&str; COUNT]) -> Result<Self, String> {
        let mut has = [false; COUNT];
        for part in text.split('+') {
            let (first, last) = part.split_once("..").unwrap_or((part, part));
            let (first, last) = (place(first, names)?, place(last, names)?);
            let length = (last + COUNT - first) % COUNT;
            (first..=first + length).for_each(|place| has[place % COUNT] = true);
        }
        Ok(Cycle(has))
    }

    /// Whether the name at a place is among them.
    pub(super) fn has(&self, place: usize) -> bool {
        self.0[place % COUNT]
    }

    /// Writes the names in one form, whichever way they were written: ranges of three or more.
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>, names: &[&str; COUNT]) -> fmt::Result {
        let mut separator = "";
        for (first, length) in self.runs() {
            let last = (first + length - 1) % COUNT;
            match length {
                1 => write!(f, "{separator}{}", &names[first][..SHORT])?,
                2 => {
                    write!(f, "{separator}{}+{}", &names[first][..SHORT], &names[last][..SHORT])?;
                }
                _ => {
                    write!(f, "{separator}{}..{}", &names[first][..SHORT], &names[last][..SHORT])?;
                }
            }
            separator = "+";
        }
        Ok(())
    }

    /// Names that follow each other: the first of them, and how many. If all are there, it is one run.
    fn runs(&self) -> Vec<(usize, usize)> {
        if self.0.iter().all(|has| *has) {
            return vec![(0, COUNT)];
        }
        let begins = |place: &usize| self.0[*place] && !self.0[(*place + COUNT - 1) % COUNT];
        let length = |first: usize| (0..COUNT).take_while(|more| self.has(first + more)).count();
        (0..COUNT).filter(begins).map(|first| (first, length(first))).collect()
    }
}

/// The place of a name, of which three letters are enough.
fn place<const COUNT: usize>(text: &str, names: &[&str; COUNT]) -> Result<usize, String> {
    let lower = text.to_lowercase();
    let is_it = |name: &&str| lower.len() >= SHORT && name.starts_with(&lower);
    names.iter().position(is_it).ok_or_else(|| unknown(text, names))
}

/// Whether a word is meant to be of these names.
pub(super) fn is_like<const COUNT: usize>(text: &str, names: &[&str; COUNT]) -> bool {
    let first = text.split(['+', '.']).next().unwrap_or_default();
    place(first, names).is_ok()
}

fn unknown<const COUNT: usize>(text: &str, names: &[&str; COUNT]) -> String {
    let short = names.map(|name| &name[..SHORT]);
    format!("there is no '{text}'{} valid: {}", hint(text, short), short.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Shown(Cycle<7>);

    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.write(f, &DAYS)
        }
    }

    #[test]
    fn names_are_written_in_one_form() {
        for (text, shown) in [
            ("mon", "mon"),
            ("Monday", "mon"),
            ("sun+sat", "sat+sun"),
            ("mon+tue+wed", "mon..wed"),
            ("fri..mon", "fri..mon"),
            ("sat..fri", "mon..sun"),
            ("mon+wed..fri+fri", "mon+wed..fri"),
        ] {
            assert_eq!(Shown(Cycle::parse(text, &DAYS).unwrap()).to_string(), shown, "{text}");
        }
        let winter = Cycle::parse("nov..feb", &MONTHS).unwrap();
        assert_eq!((0..12).filter(|month| winter.has(*month)).collect::<Vec<_>>(), [0, 1, 10, 11]);
    }

    #[test]
    fn what_is_no_name_says_what_is() {
        let error = |text: &str| Cycle::parse(text, &DAYS).unwrap_err();
        assert_eq!(
            error("mon..tur"),
            "there is no 'tur'; did you mean 'tue'? valid: mon, tue, wed, thu, fri, sat, sun"
        );
        assert!(error("mo").contains("valid: mon, tue"));
        assert!(error("mon++tue").contains("there is no ''"));
    }
}
