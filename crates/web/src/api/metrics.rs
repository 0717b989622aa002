//! `/metrics`, for Prometheus and others like it, and `/healthz`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::access::Caller;
use crate::answers;
use crate::app::{App, Question};
use crate::error::ApiError;
use crate::metrics::in_older_format;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const OLDER: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics)).route("/healthz", get(health))
}

async fn metrics(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let status = app.read(Question::Status, &caller).await?;
    let nodes = app.read(Question::Nodes, &caller).await?;
    let text = app.metrics.render(answers::status(&status)?, answers::nodes(&nodes)?);
    let accepted = headers.get(header::ACCEPT).and_then(|accepted| accepted.to_str().ok());
    let answer =
        match accepted.is_some_and(|accepted| accepted.contains("application/openmetrics-text")) {
            true => ([(header::CONTENT_TYPE, OPEN_METRICS)], text),
            false => ([(header::CONTENT_TYPE, OLDER)], in_older_format(&text)),
        };
    Ok(answer.into_response())
}

/// Says that the daemon's loop answers.
async fn health(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    app.read(Question::Status, &Caller::nobody()).await?;
    Ok("ok\n")
}
