//! The power budget, and what was drawn.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use busbar_live::job::Scope;
use busbar_live::wire::{PowerState, Request};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use crate::access::Caller;
use crate::answers;
use crate::api::callers::Operator;
use crate::app::{App, Question};
use crate::error::ApiError;
use crate::samples::Sample;

/// A new limit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewLimit {
    /// The limit as it is written on the command line: `6500W`, `80%`, `none`, or limits by the calendar:
    /// `weekdays 14:00-18:00: 80%, else 100%`.
    #[schema(example = "80%")]
    limit: String,
}

/// The power budget and its use
#[utoipa::path(
    get,
    path = "/api/v2/budget",
    operation_id = "show_budget",
    tag = "power",
    responses((status = 200, description = "The budget and its use", body = PowerState), ApiError)
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Json<PowerState>, ApiError> {
    let rendered = app.read(Question::Status, &caller).await?;
    Ok(Json(answers::status(&rendered)?.power.clone()))
}

/// Set another limit, which holds until it is changed again
#[utoipa::path(
    put,
    path = "/api/v2/budget",
    operation_id = "set_budget",
    tag = "power", request_body = NewLimit, security(("token" = [])),
    responses((status = 200, description = "The budget and its use", body = PowerState), ApiError)
)]
pub(crate) async fn set(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Body(new): Body<NewLimit>,
) -> Result<Json<PowerState>, ApiError> {
    let request = Request::Budget { set: Some(new.limit) };
    answers::budget(app.change(request, caller.who).await?).map(Json)
}

/// Return to the configured budget
#[utoipa::path(
    delete,
    path = "/api/v2/budget",
    operation_id = "reset_budget",
    tag = "power", security(("token" = [])),
    responses((status = 200, description = "The budget and its use", body = PowerState), ApiError)
)]
pub(crate) async fn reset(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
) -> Result<Json<PowerState>, ApiError> {
    let request = Request::Budget { set: Some("configured".to_owned()) };
    answers::budget(app.change(request, caller.who).await?).map(Json)
}

/// Set another limit of a feed, which holds until it is changed again
///
/// A share (`80%`) is of what the nodes below the feed can draw. Only jobs on these nodes are slowed.
#[utoipa::path(
    put,
    path = "/api/v2/budget/feeds/{feed}",
    operation_id = "set_feed",
    tag = "power", params(("feed" = String, Path, description = "The name of the feed")),
    request_body = NewLimit, security(("token" = [])),
    responses((status = 200, description = "The budget and its use", body = PowerState), ApiError)
)]
pub(crate) async fn set_feed(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(feed): Path<String>,
    Body(new): Body<NewLimit>,
) -> Result<Json<PowerState>, ApiError> {
    let request = Request::Limit { of: Scope::Feed(feed), to: new.limit };
    answers::budget(app.change(request, caller.who).await?).map(Json)
}

/// Return to the configured limit of a feed
#[utoipa::path(
    delete,
    path = "/api/v2/budget/feeds/{feed}",
    operation_id = "reset_feed",
    tag = "power", params(("feed" = String, Path, description = "The name of the feed")),
    security(("token" = [])),
    responses((status = 200, description = "The budget and its use", body = PowerState), ApiError)
)]
pub(crate) async fn reset_feed(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
    Path(feed): Path<String>,
) -> Result<Json<PowerState>, ApiError> {
    let request = Request::Limit { of: Scope::Feed(feed), to: "configured".to_owned() };
    answers::budget(app.change(request, caller.who).await?).map(Json)
}

/// Since when to show samples.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Since {
    /// A time in seconds since 1970; a day ago if there is none.
    since: Option<i64>,
}

/// The power of the last day, in steps of ten seconds
#[utoipa::path(
    get,
    path = "/api/v2/power",
    operation_id = "list_power",
    tag = "power", params(Since),
    responses((status = 200, description = "The samples in order", body = Vec<Sample>), ApiError)
)]
pub(crate) async fn power(
    State(app): State<Arc<App>>,
    _: Caller,
    Query(Since { since }): Query<Since>,
) -> Json<Vec<Sample>> {
    Json(app.samples.since(since.unwrap_or(i64::MIN)))
}
