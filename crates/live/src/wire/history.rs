//! Lines of the history as clients see them.

use serde::{Deserialize, Serialize};

use super::forms::EventKindForm;
use crate::job::{Event, EventKind};
use busbar_core::units::{Instant, json};

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "HistoryLineForm", into = "HistoryLineForm")]
pub struct HistoryLine {
    /// The number of the line; lines are numbered in order.
    pub line: u64,
    /// The time by the wall clock, in milliseconds since 1970.
    pub wall: i64,
    /// The event.
    pub event: Event,
    /// The name of the user who did it, where it is known and was looked up.
    pub by_name: Option<String>,
}

/// A line of the history. The parts of the event are its own, so that energy is read digit by digit.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = HistoryLine))]
struct HistoryLineForm {
    /// The number of the line; lines are numbered in order.
    line: u64,
    /// The time by the wall clock, since 1970.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "wall_s", with = "json::thousandths")]
    wall: i64,
    /// The time by the daemon's own clock.
    #[cfg_attr(feature = "schema", schema(value_type = f64))]
    #[serde(rename = "at_s", with = "json")]
    at: Instant,
    /// What happened.
    #[cfg_attr(feature = "schema", schema(value_type = EventKindForm))]
    #[serde(rename = "what", with = "EventKindForm")]
    kind: EventKind,
    /// The name of the user who did it, where it is known and was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by_name: Option<String>,
}

impl From<HistoryLine> for HistoryLineForm {
    fn from(HistoryLine { line, wall, event: Event { at, kind }, by_name }: HistoryLine) -> Self {
        HistoryLineForm { line, wall, at, kind, by_name }
    }
}

impl From<HistoryLineForm> for HistoryLine {
    fn from(HistoryLineForm { line, wall, at, kind, by_name }: HistoryLineForm) -> Self {
        HistoryLine { line, wall, event: Event { at, kind }, by_name }
    }
}

#[cfg(feature = "schema")]
impl utoipa::PartialSchema for HistoryLine {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        HistoryLineForm::schema()
    }
}

#[cfg(feature = "schema")]
impl utoipa::ToSchema for HistoryLine {
    fn name() -> std::borrow::Cow<'static, str> {
        HistoryLineForm::name()
    }

    fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::Schema>)>) {
        HistoryLineForm::schemas(schemas);
    }
}
