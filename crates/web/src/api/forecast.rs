//! When jobs will start, as things are or under assumptions.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use busbar_live::wire::{Forecast, ForecastRequest};

use super::extract::Body;
use crate::access::Caller;
use crate::app::{App, Question};
use crate::error::ApiError;

/// When jobs will start and end, at the latest, as things are
#[utoipa::path(
    get,
    path = "/api/v2/forecast",
    operation_id = "forecast",
    tag = "jobs",
    responses((status = 200, description = "The forecast", body = Forecast), ApiError)
)]
pub(crate) async fn present(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    Ok(app.read(Question::Forecast(caller.who), &caller).await?.response())
}

/// When jobs would start under another budget, another policy, or with another job; nothing is changed
#[utoipa::path(
    post,
    path = "/api/v2/forecast",
    operation_id = "assume",
    tag = "jobs", request_body = ForecastRequest,
    responses((status = 200, description = "The forecast", body = Forecast), ApiError)
)]
pub(crate) async fn assumed(
    State(app): State<Arc<App>>,
    caller: Caller,
    Body(question): Body<ForecastRequest>,
) -> Result<Json<Forecast>, ApiError> {
    app.forecast(question, &caller).await.map(Json)
}
