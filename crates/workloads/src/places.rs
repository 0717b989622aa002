//! Places of jobs in a workload, as text: `20000..25000`, `5000..`, `..100`.

use std::ops::Range;

/// Why text names no places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacesError {
    /// It is not a range.
    #[error("write a range, such as 20000..25000")]
    NoRange,
    /// One of its ends is no number.
    #[error("'{0}' is not a place; write a range, such as 20000..25000")]
    NoPlace(String),
    /// There is nothing in it.
    #[error("the range is empty; its end must be above its start")]
    Empty,
}

/// Reads `20000..25000`, `5000..` or `..100`. An open end is as far as there are jobs.
pub fn parse_places(text: &str) -> Result<Range<usize>, PlacesError> {
    let (start, end) = text.split_once("..").ok_or(PlacesError::NoRange)?;
    let place = |text: &str, open: usize| match text.trim() {
        "" => Ok(open),
        digits => digits.parse::<usize>().map_err(|_| PlacesError::NoPlace(digits.to_owned())),
    };
    let range = place(start, 0)?..place(end, usize::MAX)?;
    if range.is_empty() {
        return Err(PlacesError::Empty);
    }
    Ok(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(parse_places("20..25").unwrap(), 20..25);
        assert_eq!(parse_places("20..").unwrap(), 20..usize::MAX);
        assert_eq!(parse_places("..5").unwrap(), 0..5);
        for wrong in ["5", "5..5", "9..5", "-1..5", "a..b"] {
            assert!(parse_places(wrong).is_err(), "{wrong}");
        }
    }
}
