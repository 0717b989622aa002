//! Values by rules: `weekdays 14:00-18:00 nov..feb: 80%, else 100%`. The first rule that holds counts.

use std::fmt;

use jiff::civil::{Date, DateTime, Time, date};

use super::condition::{Condition, ConditionError};
use super::time_of_day::clock_face;

/// Values by conditions, of which the first that holds counts. At every time there is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rules<T> {
    rules: Vec<(Condition, T)>,
    /// What counts if no condition holds. Where it is not there, some condition always holds.
    otherwise: Option<T>,
}

/// Why rules cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// There are none.
    #[error("a rule is missing; write 'WHEN: {0}, else {0}'")]
    Empty(String),
    /// A rule has no value.
    #[error("rule '{rule}' has no value; add one after a colon, as in '{rule}: {example}'{joined}")]
    NoValue {
        /// The rule.
        rule: String,
        /// What a value looks like.
        example: String,
        /// What may have been meant instead.
        joined: &'static str,
    },
    /// A rule does not say when it holds.
    #[error("rule '{rule}': {why}")]
    Condition {
        /// The rule.
        rule: String,
        /// The reason.
        why: ConditionError,
    },
    /// The value of a rule is wrong.
    #[error("rule '{rule}': {why}")]
    Value {
        /// The rule.
        rule: String,
        /// What is wrong with its value.
        why: String,
    },
    /// Something comes after what holds otherwise.
    #[error("'{0}' comes after 'else', so it would never apply; put 'else' last")]
    AfterElse(String),
    /// At some time no rule holds.
    #[error("no rule applies on {when}; add ', else {example}' for all other times")]
    Uncovered {
        /// Such a time.
        when: String,
        /// What a value looks like.
        example: String,
    },
}

impl RulesError {
    /// The rule that is wrong, if it is one.
    pub(crate) fn rule(&self) -> Option<&str> {
        match self {
            RulesError::NoValue { rule, .. }
            | RulesError::Condition { rule, .. }
            | RulesError::Value { rule, .. }
            | RulesError::AfterElse(rule) => Some(rule),
            RulesError::Empty(_) | RulesError::Uncovered { .. } => None,
        }
    }
}

impl<T> Rules<T> {
    /// Reads rules with `,`, `;` or line ends between them; `read` reads values, such as `example`.
    pub fn parse<E: fmt::Display>(
        text: &str,
        example: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<Self, RulesError> {
        let mut rules = Rules { rules: Vec::new(), otherwise: None };
        let parts: Vec<&str> = text.split([',', ';', '\n']).collect();
        for (place, part) in parts.iter().enumerate().filter(|(_, part)| !part.trim().is_empty()) {
            let rule = part.trim();
            if rules.otherwise.is_some() {
                return Err(RulesError::AfterElse(rule.to_owned()));
            }
            let value = |text: &str| {
                read(text).map_err(|why| match after_decimal_comma(part, parts.get(place + 1)) {
                    Some(decimals) => RulesError::Value {
                        rule: format!("{rule},{decimals}"),
                        why: format!(
                            "a comma ends a rule, and decimals have a point: {text}.{decimals}"
                        ),
                    },
                    None => RulesError::Value { rule: rule.to_owned(), why: why.to_string() },
                })
            };
            if let Some(otherwise) = after_else(rule) {
                rules.otherwise = Some(value(otherwise)?);
                continue;
            }
            let (when, written) = split(rule).ok_or_else(|| RulesError::NoValue {
                rule: rule.to_owned(),
                example: example.to_owned(),
                joined: match rule.bytes().all(|b| b.is_ascii_alphabetic()) {
                    true => ", or join days with '+', as in mon+wed",
                    false => "",
                },
            })?;
            let condition = when.parse();
            let condition =
                condition.map_err(|why| RulesError::Condition { rule: rule.to_owned(), why })?;
            rules.rules.push((condition, value(written)?));
        }
        rules.checked(example)
    }

    fn checked(self, example: &str) -> Result<Self, RulesError> {
        if self.rules.is_empty() && self.otherwise.is_none() {
            return Err(RulesError::Empty(example.to_owned()));
        }
        match self.uncovered() {
            None => Ok(self),
            Some(when) => Err(RulesError::Uncovered {
                when: format!(
                    "{} at {}",
                    when.date().strftime("%A, %-d %B"),
                    clock_face(when.time())
                ),
                example: example.to_owned(),
            }),
        }
    }

    /// A time at which no rule holds, if there is one. In 28 years every date falls on every day of the week.
    fn uncovered(&self) -> Option<DateTime> {
        const FIRST: Date = date(2001, 1, 1);
        if self.otherwise.is_some() {
            return None;
        }
        let faces = self.faces();
        let holds = |now: DateTime| {
            self.rules.iter().any(|(condition, _)| !condition.comes_once() && condition.holds(now))
        };
        let days = FIRST.series(jiff::Span::new().days(1)).take_while(|day| day.year() < 2029);
        let mut times = days.flat_map(|day| faces.iter().map(move |face| day.to_datetime(*face)));
        times.find(|now| !holds(*now))
    }

    /// The value at a time on the wall.
    pub(crate) fn at(&self, now: DateTime) -> &T {
        let holds = self.rules.iter().find(|(condition, _)| condition.holds(now));
        match (holds, &self.otherwise) {
            (Some((_, value)), _) | (None, Some(value)) => value,
            // Some condition always holds.
            (None, None) => &self.rules[self.rules.len() - 1].1,
        }
    }

    /// The times of day at which the value may change, in order.
    pub(crate) fn faces(&self) -> Vec<Time> {
        let mut faces: Vec<Time> = vec![Time::midnight()];
        faces.extend(self.rules.iter().flat_map(|(condition, _)| condition.faces()));
        faces.sort_unstable();
        faces.dedup();
        faces
    }

    /// The rules in their order, without what counts if none of them holds.
    pub fn iter(&self) -> impl Iterator<Item = (&Condition, &T)> {
        self.rules.iter().map(|(condition, value)| (condition, value))
    }

    /// What may be a mistake in them, a sentence for each rule.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = String> {
        self.rules.iter().filter_map(|(condition, _)| condition.doubt())
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.rules.iter().map(|(_, value)| value).chain(&self.otherwise)
    }

    /// The same rules with other values.
    pub fn try_map<V, E>(&self, mut made: impl FnMut(&T) -> Result<V, E>) -> Result<Rules<V>, E> {
        let rule = |(condition, value): &(Condition, T)| Ok((condition.clone(), made(value)?));
        let rules = self.rules.iter().map(rule).collect::<Result<_, E>>()?;
        let otherwise = self.otherwise.as_ref().map(made).transpose()?;
        Ok(Rules { rules, otherwise })
    }
}

impl Rules<bool> {
    /// Whether a condition holds.
    pub(super) fn either(condition: Condition) -> Self {
        Rules { rules: vec![(condition, true)], otherwise: Some(false) }
    }
}

/// What follows a comma that was meant as a decimal one: there is a digit right before and right after it.
fn after_decimal_comma<'a>(part: &str, next: Option<&&'a str>) -> Option<&'a str> {
    let next = next.filter(|next| next.starts_with(|sign: char| sign.is_ascii_digit()))?;
    part.ends_with(|sign: char| sign.is_ascii_digit()).then(|| next.trim_end())
}

/// Whether a text looks like rules: it has a colon, or begins with `else`.
pub fn looks_like_rules(text: &str) -> bool {
    text.contains(':') || after_else(text.trim()).is_some()
}

/// The value of a rule as it is written, if it has one.
pub(crate) fn rule_value(rule: &str) -> Option<&str> {
    after_else(rule).or_else(|| split(rule).map(|(_, value)| value))
}

/// What stands after `else`.
fn after_else(rule: &str) -> Option<&str> {
    let (word, rest) = rule.split_once([' ', '\t', ':'])?;
    let rest = rest.trim_start().strip_prefix(':').unwrap_or(rest);
    word.eq_ignore_ascii_case("else").then(|| rest.trim())
}

/// The condition and the value of a rule. Times have colons, too: `14:00-18:00` alone has no value.
fn split(rule: &str) -> Option<(&str, &str)> {
    let (when, value) = rule.rsplit_once(':')?;
    let is_minute = value.len() == 2 && value.bytes().all(|b| b.is_ascii_digit());
    let is_time = is_minute && when.ends_with(|c: char| c.is_ascii_digit());
    (!is_time).then(|| (when.trim(), value.trim()))
}

/// In one form, whichever way they were written.
impl<T: fmt::Display> fmt::Display for Rules<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (condition, value) in &self.rules {
            write!(f, "{separator}{condition}: {value}")?;
            separator = ", ";
        }
        match &self.otherwise {
            Some(value) => write!(f, "{separator}else {value}"),
            None => Ok(()),
        }
    }
}
