//! Why a budget cannot be used.

use std::path::PathBuf;

use crate::calendar::{NoCalendar, RulesError};
use crate::rows::TableError;
use crate::units::{Instant, QuantityError, Watts};

/// Why a budget could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    /// The text is none of the forms a budget may have.
    #[error(
        "budget '{0}': write watts (6500W, 4.2MW), a share of the machine's maximum (80%), rules \
         ('weekdays 14:00-18:00: 80%, else 100%'), the path of a .csv file with time,budget rows, or none"
    )]
    Unknown(String),
    /// The number or its unit is wrong.
    #[error("budget '{text}': {why}")]
    Quantity {
        /// The text as written.
        text: String,
        /// The reason.
        why: QuantityError,
    },
    /// A rule is wrong.
    #[error("budget: {0}")]
    Rules(Box<RulesError>),
    /// A rule of a file is wrong.
    #[error("{}{}: {why}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    FileRules {
        /// The file.
        path: PathBuf,
        /// The line, from 1, where it is one that is wrong.
        line: Option<usize>,
        /// The reason.
        why: Box<RulesError>,
    },
    /// Limits by the calendar, where nobody knows the date.
    #[error("a budget by the calendar needs dates, and {0}")]
    NoCalendar(NoCalendar),
    /// The budget leaves nothing for jobs.
    #[error(
        "a budget of {budget} leaves no power for jobs: the machine draws {base} at all times; give more, or \
        correct 'base' and 'idle' in the machine file"
    )]
    NothingLeft {
        /// The limit asked for.
        budget: Watts,
        /// The power of the machine without jobs.
        base: Watts,
    },
    /// There are no limits in the list.
    #[error("the budget has no limits; give at least one")]
    Empty,
    /// Times are not increasing.
    #[error("budget times must increase, but {after} follows {before}")]
    NotIncreasing {
        /// The earlier row's time.
        before: Instant,
        /// The later row's time.
        after: Instant,
    },
    /// The file cannot be read, or a row of it is wrong.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file has no rows.
    #[error("{} has no time,budget rows; give at least one", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
}

// Both are told in full, so they are no sources, which would be told again.
impl From<RulesError> for BudgetError {
    fn from(why: RulesError) -> Self {
        BudgetError::Rules(Box::new(why))
    }
}

impl From<NoCalendar> for BudgetError {
    fn from(why: NoCalendar) -> Self {
        BudgetError::NoCalendar(why)
    }
}
