//! Decisions and events.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use busbar_live::wire::{HistoryLine, Request};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::answers;
use crate::api::extract::Query;
use crate::app::App;
use crate::error::{ApiError, ErrorKind};

/// The number of lines by default.
const USUAL: u32 = 100;

/// The largest number of lines at once.
const MOST: u32 = 10_000;

/// Which lines to show.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only events of this job, or of the elements of this array.
    job: Option<u64>,
    /// Only lines after this one.
    after: Option<u64>,
    /// The largest number of lines: the last ones, or the first ones after `after`. 100 by default.
    #[param(minimum = 0, maximum = 10000)]
    limit: Option<u32>,
}

/// What was decided and what happened, in order
#[utoipa::path(
    get,
    path = "/api/v2/history",
    operation_id = "list_history",
    tag = "jobs", params(Which),
    responses((status = 200, description = "The lines in order", body = Vec<HistoryLine>), ApiError)
)]
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Vec<HistoryLine>>, ApiError> {
    let Which { job, after, limit } = which;
    let limit = limit.unwrap_or(USUAL);
    if limit > MOST {
        let message = format!("limit {limit}: write at most {MOST}, and ask again with 'after'");
        return Err(ApiError::new(ErrorKind::Malformed, message));
    }
    let limit = Some(limit);
    answers::history(app.ask(Request::History { job, after, limit }, caller.who).await?).map(Json)
}
