//! The API: everything that the command line asks of a daemon, for scripts and for the page.
//!
//! Answers are those of `--json` on the command line, in watts, joules and seconds; points in time are seconds since 1970
//! unless a description says otherwise. [`openapi`] describes it all, made from the types themselves.
//!
//! The version of the API is in its paths. Version 1 had milliwatts, microjoules and milliseconds; whoever asks for it is
//! told so.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::{Extension, Json, Router};
use serde_json::Value;
use tower_http::compression::CompressionLayer;
use tower_http::timeout::TimeoutLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use busbar_live::wire::finished::By;

use crate::app::App;
use crate::error::{ApiError, ErrorBody, ErrorKind};
use crate::{headers, page};

mod budget;
mod callers;
mod events;
mod extract;
mod forecast;
mod history;
mod jobs;
mod metrics;
mod nodes;
mod status;

/// How long a request may take, forecasts included. Streams of events go on.
const PATIENCE: Duration = Duration::from_secs(70);

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Busbar",
        description = "The API of a Busbar daemon, which shares a fixed feed of power among the jobs of a cluster. \
                       The name of a quantity ends in its unit: power in watts (`_w`), energy in joules (`_j`), times in \
                       seconds (`_s`), all as decimals. Points in time are seconds since 1970 unless a description says \
                       otherwise.",
        version = "2",
        license(name = "MIT OR Apache-2.0"),
    ),
    components(schemas(ErrorBody, By)),
    tags(
        (name = "daemon", description = "The daemon and its machine"),
        (name = "jobs", description = "Waiting, running and finished jobs"),
        (name = "power", description = "The budget, and the power drawn")
    )
)]
struct Description;

/// The paths of the API.
fn described() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(status::status))
        .routes(routes!(status::whoami))
        .routes(routes!(status::stop))
        .routes(routes!(nodes::nodes))
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::show))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::hold))
        .routes(routes!(jobs::release))
        .routes(routes!(budget::show, budget::set, budget::reset))
        .routes(routes!(budget::set_feed, budget::reset_feed))
        .routes(routes!(budget::power))
        .routes(routes!(history::events::history))
        .routes(routes!(history::jobs::finished))
        .routes(routes!(history::usage::usage))
        .routes(routes!(history::power::power))
        .routes(routes!(forecast::present, forecast::assumed))
}

/// The description of the API, as an OpenAPI document.
pub fn openapi() -> Value {
    let mut document = described().into_openapi();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    document.components.get_or_insert_default().add_security_scheme("token", bearer);
    // Text can always be written as JSON.
    let mut document = serde_json::to_value(document).unwrap_or_default();
    without_signs(&mut document);
    document
}

/// OpenAPI has names for signed numbers only: an unsigned one is a number from 0 on.
fn without_signs(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("minimum").and_then(Value::as_f64) == Some(0.0) {
                fields.remove("format");
            }
            fields.values_mut().for_each(without_signs);
        }
        Value::Array(parts) => parts.iter_mut().for_each(without_signs),
        _ => (),
    }
}

/// Everything that is served.
pub(crate) fn router(app: Arc<App>) -> Router {
    let (answered, _) = described().split_for_parts();
    let document = Arc::new(openapi());
    let answered = answered
        .route("/api/v2/openapi.json", axum::routing::get(description))
        .merge(page::router())
        .merge(metrics::router())
        .layer(CompressionLayer::new())
        .layer(TimeoutLayer::with_status_code(StatusCode::SERVICE_UNAVAILABLE, PATIENCE))
        .layer(DefaultBodyLimit::max(app.request));
    let router = answered
        .merge(events::router())
        .fallback(unknown)
        .method_not_allowed_fallback(not_allowed)
        .layer(Extension(document))
        .layer(from_fn_with_state(Arc::clone(&app), callers::check))
        .layer(from_fn_with_state(Arc::clone(&app), timed))
        .with_state(app);
    headers::secured(router)
}

async fn description(Extension(document): Extension<Arc<Value>>) -> Json<Value> {
    Json((*document).clone())
}

async fn unknown(request: Request) -> ApiError {
    if request.uri().path().starts_with("/api/v1/") {
        let message = "this daemon speaks version 2 of the API, at /api/v2, and version 1 is gone: numbers are watts, \
                       seconds and joules now, and their names say so (power_w, time_s, energy_j); \
                       /api/v2/openapi.json describes it";
        return ApiError::new(ErrorKind::Gone, message);
    }
    let message =
        format!("{} does not exist; /api/v2/openapi.json lists all paths", request.uri().path());
    ApiError::new(ErrorKind::Unknown, message)
}

async fn not_allowed(request: Request) -> ApiError {
    let message = format!("{} cannot be used with {}", request.uri().path(), request.method());
    ApiError::new(ErrorKind::Method, message)
}

/// Counts how long requests take, by what they ask for.
async fn timed(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let response = next.run(request).await;
    let route = route.as_deref().unwrap_or("other");
    app.metrics.answered(route, response.status().as_u16(), begun.elapsed());
    response
}
