//! Several values of an option in one text, with commas between them.

use std::path::Path;
use std::str::FromStr;

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
}
