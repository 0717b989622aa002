//! The energy of finished jobs, by user or account.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use busbar_live::wire::Request;
use busbar_live::wire::finished::{By, Usage, UsageQuery};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::answers;
use crate::api::extract::Query;
use crate::app::App;
use crate::error::ApiError;

/// Which sums to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// The grouping, by user by default. Sums by account need a token with the role `user`, who gets those of their
    /// own jobs, or `operator`.
    by: Option<By>,
    /// The first day: that of this time, in seconds since 1970. Thirty days up to the last one by default.
    since: Option<i64>,
    /// The last day: that of this time, in seconds since 1970. Today by default.
    until: Option<i64>,
}

/// What jobs took that are over, by user or account
///
/// A job counts on the day it ended, in the daemon's time zone. A period has at most 366 days.
#[utoipa::path(
    get,
    path = "/api/v2/history/usage",
    operation_id = "show_usage",
    tag = "jobs", params(Which),
    responses((status = 200, description = "The sums, the largest energy first", body = Usage), ApiError)
)]
pub(crate) async fn usage(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(Which { by, since, until }): Query<Which>,
) -> Result<Json<Usage>, ApiError> {
    let query = UsageQuery { by: by.unwrap_or_default(), since, until };
    answers::usage(app.ask(Request::Usage(query), caller.who).await?).map(Json)
}
