//! The power of the past.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use busbar_core::units::{Joules, Span, Watts, json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::api::extract::Query;
use crate::app::App;
use crate::error::{ApiError, ErrorKind};
use crate::samples::{Known, Stretch};
use crate::token::now;

/// How many seconds are shown by default: a week.
const USUAL: i64 = 7 * 24 * 3600;

/// How many stretches are shown by default.
const USUAL_POINTS: u32 = 1000;

/// The largest number of stretches at once: a week of minutes.
const MOST_POINTS: u32 = 10_080;

/// Which part of the past to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// From this time on, in seconds since 1970; a week ago by default.
    since: Option<i64>,
    /// Until before this time, in seconds since 1970; until now by default.
    until: Option<i64>,
    /// The largest number of stretches; 1000 by default.
    #[param(minimum = 2, maximum = 10080)]
    points: Option<u32>,
}

/// The power of the past.
#[derive(Serialize, ToSchema)]
pub(crate) struct PastPower {
    /// How long a stretch is, in seconds.
    step_s: i64,
    /// The energy that the ledger counted: what the machine draws anyway, and what jobs hold, in joules.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    counted_energy_j: Joules,
    /// For how long that is known, in seconds: the time in which the daemon ran and was looked at.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    counted_s: Span,
    /// The measured energy, in joules, where nodes have meters.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    measured_energy_j: Joules,
    /// For how long that is known, in seconds.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    measured_s: Span,
    /// The stretches in order. Where nothing is known there is none.
    stretches: Vec<PastStretch>,
}

/// A stretch of the past.
#[derive(Serialize, ToSchema)]
struct PastStretch {
    /// When it began, in seconds since 1970.
    at_s: i64,
    /// The lowest limit, in watts; null if there was none.
    #[serde(with = "json")]
    #[schema(value_type = Option<f64>)]
    limit_w: Option<Watts>,
    /// The highest counted power, in watts.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    counted_w: Watts,
    /// The counted energy, in joules.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    counted_energy_j: Joules,
    /// For how long that is known, in seconds; the mean power is the energy divided by it.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    counted_s: Span,
    /// The highest measured power, in watts; null if nothing was measured.
    #[serde(with = "json")]
    #[schema(value_type = Option<f64>)]
    measured_w: Option<Watts>,
    /// The measured energy, in joules.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    measured_energy_j: Joules,
    /// For how long that is known, in seconds.
    #[serde(with = "json")]
    #[schema(value_type = f64)]
    measured_s: Span,
}

impl From<&Stretch> for PastStretch {
    fn from(stretch: &Stretch) -> Self {
        PastStretch {
            at_s: stretch.at,
            limit_w: stretch.limit,
            counted_w: stretch.counted,
            counted_energy_j: stretch.counted_energy.energy,
            counted_s: stretch.counted_energy.time,
            measured_w: stretch.measured,
            measured_energy_j: stretch.measured_energy.energy,
            measured_s: stretch.measured_energy.time,
        }
    }
}

/// The power of the past year, with its energy
///
/// The last day is kept in steps of ten seconds, the last week in minutes, and a year in quarters of an hour. Longer
/// stretches keep the highest power and all of the energy.
#[utoipa::path(
    get,
    path = "/api/v2/history/power",
    operation_id = "list_past_power",
    tag = "power", params(Which),
    responses((status = 200, description = "The stretches in order", body = PastPower), ApiError)
)]
pub(crate) async fn power(
    State(app): State<Arc<App>>,
    _: Caller,
    Query(Which { since, until, points }): Query<Which>,
) -> Result<Json<PastPower>, ApiError> {
    let points = points.unwrap_or(USUAL_POINTS);
    if !(2..=MOST_POINTS).contains(&points) {
        let message = format!("points {points}: write 2 to {MOST_POINTS}");
        return Err(ApiError::new(ErrorKind::Malformed, message));
    }
    let since = since.unwrap_or_else(|| now() - USUAL);
    let (step_s, stretches) = app.samples.between(since, until.unwrap_or(i64::MAX), points);
    let (mut counted, mut measured) = (Known::default(), Known::default());
    for stretch in &stretches {
        counted.add(stretch.counted_energy);
        measured.add(stretch.measured_energy);
    }
    Ok(Json(PastPower {
        step_s,
        counted_energy_j: counted.energy,
        counted_s: counted.time,
        measured_energy_j: measured.energy,
        measured_s: measured.time,
        stretches: stretches.iter().map(PastStretch::from).collect(),
    }))
}
