//! What a user tells Busbar in a job's comment: `--comment="busbar app=lulesh slowdown=10% nodes=4-16"`.
//!
//! A comment may hold other text too: it is divided at semicolons, and the part whose first word is
//! `busbar` is Busbar's. `job_submit.lua` ([`setup`](crate::setup)) checks the same rules when a job is
//! submitted.

use std::fmt;

/// What a job's comment says to Busbar. What is not said is `None` or `false`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The application that the job runs (`app=`).
    pub app: Option<String>,
    /// How much longer it may take so that it starts sooner (`slowdown=`), in millionths of its run time.
    pub slowdown: Option<u32>,
    /// On how many nodes it can run (`nodes=`), fewest and most.
    pub nodes: Option<(u32, u32)>,
    /// Whether it can change its nodes while it runs (`malleable`).
    pub malleable: bool,
}

/// Why the words to Busbar cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{word}' in the comment (character {at}) {reason}")]
pub struct WordsError {
    /// The word.
    pub(crate) word: String,
    /// Where it begins in the comment, counted from 1.
    pub(crate) at: usize,
    /// What is wrong, and what would be right.
    pub(crate) reason: String,
}

/// The longest name of an application.
const LONGEST_NAME: usize = 64;

/// The largest slowdown, in millionths.
const MOST_SLOWDOWN: u32 = 10_000_000;

impl Words {
    /// Reads the comment of a job. `None` if it says nothing to Busbar.
    pub fn read(comment: &str) -> Result<Option<Words>, WordsError> {
        let mut begin = 0;
        for part in comment.split(';') {
            let mut words = placed(comment, begin, part);
            if let Some((_, first)) = words.next()
                && first == "busbar"
            {
                return words.try_fold(Words::default(), Words::with).map(Some);
            }
            begin += part.len() + 1;
        }
        Ok(None)
    }

    /// What is known with one word more.
    fn with(mut self, (at, word): (usize, &str)) -> Result<Words, WordsError> {
        let wrong = |reason: String| WordsError { word: word.to_owned(), at, reason };
        let twice = || wrong("is given twice; keep one".to_owned());
        match word.split_once('=') {
            Some(("app", name)) => {
                let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
                if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(fits) {
                    return Err(wrong(format!(
                        "does not name an application; use up to {LONGEST_NAME} letters, digits and . _ - +, \
                         such as app=lulesh"
                    )));
                }
                match self.app.replace(name.to_owned()) {
                    Some(_) => Err(twice()),
                    None => Ok(self),
                }
            }
            Some(("slowdown", share)) => {
                let share = read_share(share).ok_or_else(|| {
                    wrong("is not a slowdown; use a percentage from 0% to 1000%, such as slowdown=10%".to_owned())
                })?;
                match self.slowdown.replace(share) {
                    Some(_) => Err(twice()),
                    None => Ok(self),
                }
            }
            Some(("nodes", range)) => {
                let range = read_range(range).ok_or_else(|| {
                    wrong(
                        "is not a number of nodes; use one number or two, such as nodes=4-16"
                            .to_owned(),
                    )
                })?;
                match self.nodes.replace(range) {
                    Some(_) => Err(twice()),
                    None => Ok(self),
                }
            }
            None if word == "malleable" => match std::mem::replace(&mut self.malleable, true) {
                true => Err(twice()),
                false => Ok(self),
            },
            _ => Err(wrong(
                "is unknown; valid: app=NAME, slowdown=PERCENT%, nodes=MIN-MAX and malleable"
                    .to_owned(),
            )),
        }
    }
}

/// The words of a part of a comment, each with its place in the comment in characters from 1.
fn placed<'a>(
    comment: &'a str,
    begin: usize,
    part: &'a str,
) -> impl Iterator<Item = (usize, &'a str)> {
    part.split_whitespace().map(move |word| {
        // The words are slices of the part, so that the difference of their addresses is their place in it.
        let bytes = begin + (word.as_ptr() as usize - part.as_ptr() as usize);
        (comment[..bytes].chars().count() + 1, word)
    })
}

/// A percentage in millionths: up to four decimal places.
fn read_share(text: &str) -> Option<u32> {
    let number = text.strip_suffix('%')?;
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) || whole.len() > 4 || decimals.len() > 4 {
        return None;
    }
    let millionths: u32 = format!("{whole}{decimals:0<4}").parse().ok()?;
    (millionths <= MOST_SLOWDOWN).then_some(millionths)
}

fn read_range(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let number = |digits: &str| {
        let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 6;
        digits.parse::<u32>().ok().filter(|value| is_digits && *value > 0)
    };
    let (first, last) = (number(first)?, number(last)?);
    (first <= last).then_some((first, last))
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("busbar")?;
        if let Some(app) = &self.app {
            write!(f, " app={app}")?;
        }
        if let Some(slowdown) = self.slowdown {
            let (whole, decimals) = (slowdown / 10_000, slowdown % 10_000);
            match format!("{decimals:04}").trim_end_matches('0') {
                "" => write!(f, " slowdown={whole}%")?,
                decimals => write!(f, " slowdown={whole}.{decimals}%")?,
            }
        }
        match self.nodes {
            Some((first, last)) if first == last => write!(f, " nodes={first}")?,
            Some((first, last)) => write!(f, " nodes={first}-{last}")?,
            None => (),
        }
        f.write_str(if self.malleable { " malleable" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let words = Words::read("busbar app=lulesh slowdown=10% nodes=4-16").unwrap().unwrap();
        let expected = Words {
            app: Some("lulesh".to_owned()),
            slowdown: Some(100_000),
            nodes: Some((4, 16)),
            malleable: false,
        };
        assert_eq!(words, expected);
        for text in ["busbar app=lulesh slowdown=2.5% nodes=4 malleable", "busbar"] {
            assert_eq!(Words::read(text).unwrap().unwrap().to_string(), text);
        }
        let words = Words::read("paper 3; busbar  nodes=2 ; thanks").unwrap().unwrap();
        assert_eq!(words.nodes, Some((2, 2)));
        for text in ["", "hello", "ask busbar app=x", "busbars app=x"] {
            assert_eq!(Words::read(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, at, reason) in [
            ("busbar app=", 8, "does not name an application"),
            ("busbar app=a|b", 8, "does not name an application"),
            ("é; busbar app=x slowdown=10", 17, "slowdown=10%"),
            ("busbar slowdown=2000%", 8, "0% to 1000%"),
            ("busbar slowdown=-1%", 8, "0% to 1000%"),
            ("busbar nodes=4-2", 8, "nodes=4-16"),
            ("busbar nodes=0", 8, "nodes=4-16"),
            ("busbar nodes=+4", 8, "nodes=4-16"),
            ("busbar app=a app=b", 14, "given twice"),
            ("busbar cap=100W", 8, "valid: app=NAME"),
        ] {
            let error = Words::read(text).unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.reason.contains(reason), "{error}");
        }
    }
}
