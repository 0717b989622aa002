//! Several values of an option in one text, with commas between them.

use std::path::Path;
use std::str::FromStr;

use crate::budget::{BudgetError, BudgetSpec};
use crate::calendar::looks_like_rules;
use crate::call::Call;

/// What a text lists: `easy,parm`. A comma within parentheses separates nothing, nor does one in the name of
/// a file that is there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Listed<T>(pub(super) Vec<T>);

impl<T: FromStr> FromStr for Listed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if Path::new(text).exists() {
            return Ok(Listed(vec![text.parse()?]));
        }
        Call::split_list(text).into_iter().map(str::parse).collect::<Result<_, _>>().map(Listed)
    }
}

impl<T: Clone> Listed<T> {
    /// The values of all of them.
    pub(super) fn joined(lists: &[Listed<T>]) -> impl Iterator<Item = T> {
        lists.iter().flat_map(|list| &list.0).cloned()
    }
}

/// Budgets with commas between them. Rules have commas, too: from a rule on, all belongs to it until what holds
/// otherwise (`60%, weekdays: 80%, else none, 100%` is three budgets).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Budgets(pub(super) Vec<BudgetSpec>);

impl FromStr for Budgets {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        if Path::new(text).exists() {
            return Ok(Budgets(vec![text.parse()?]));
        }
        let mut budgets = Vec::new();
        let mut rules: Vec<&str> = Vec::new();
        let parts: Vec<&str> = text.split(',').collect();
        for (place, raw) in parts.iter().enumerate() {
            let part = raw.trim();
            let is_else = part.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("else"));
            let begins_rules = looks_like_rules(part) && !part.ends_with(".csv");
            match rules.is_empty() && !begins_rules {
                true => budgets.push(read(part, parts.get(place + 1).copied())?),
                false => rules.push(part),
            }
            if is_else && !rules.is_empty() {
                budgets.push(std::mem::take(&mut rules).join(", ").parse()?);
            }
        }
        if !rules.is_empty() {
            budgets.push(rules.join(", ").parse()?);
        }
        Ok(Budgets(budgets))
    }
}

/// Reads a budget of a list. What cannot be read may be watts with a decimal comma, `1,5kW`: then the error is about
/// both parts.
fn read(part: &str, next: Option<&str>) -> Result<BudgetSpec, BudgetError> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    part.parse().map_err(|error| match next {
        Some(next) if is_digits(part) && next.starts_with(|sign: char| sign.is_ascii_digit()) => {
            let joined = format!("{part},{next}");
            match next.trim_end().ends_with('W') {
                true => joined.parse::<BudgetSpec>().err().unwrap_or(error),
                false => error,
            }
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicySpec;

    #[test]
    fn lists_are_read_item_by_item() {
        let list = |text: &str| text.parse::<Listed<PolicySpec>>();
        let names = |text: &str| {
            list(text).unwrap().0.iter().map(PolicySpec::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names("easy,parm"), ["easy", "parm"]);
        let guided = "pb-guided(lower=50%, upper=80%)";
        assert_eq!(names(&format!("{guided},easy")), [guided, "easy"]);
        assert!(list("easy,eazy").unwrap_err().to_string().contains("did you mean 'easy'?"));
        assert!(list("easy,").is_err());
    }

    #[test]
    fn rules_keep_their_commas() {
        let names = |text: &str| -> Vec<String> {
            text.parse::<Budgets>().unwrap().0.iter().map(BudgetSpec::to_string).collect()
        };
        assert_eq!(names("60%,6500W,none"), ["60%", "6500W", "none"]);
        let rules = "weekdays 14:00-18:00: 80%, else 100%";
        assert_eq!(names(rules), [rules]);
        assert_eq!(names(&format!("60%, {rules},none")), ["60%", rules, "none"]);
        assert_eq!(
            names("weekdays: 80%, weekends: none"),
            ["weekdays: 80%, weekends: none"],
            "without 'else' they go on to the end"
        );
        assert_eq!(names(&format!("{rules}, {rules}")), [rules, rules]);
        assert!("60%,".parse::<Budgets>().is_err());
        let error = |text: &str| text.parse::<Budgets>().unwrap_err().to_string();
        assert!(error("1,5kW").contains("'1,5' is not a number; did you mean 1.5?"));
        assert!(error("60,80").contains("'60' has no unit; did you mean 60%, 60W or 60kW?"));
        assert!(error("60,80%").contains("'60' has no unit; did you mean 60%"));
        let error = "weekdays: 80%, 60%".parse::<Budgets>().unwrap_err().to_string();
        assert!(error.contains("rule '60%' has no value"), "{error}");
    }
}
