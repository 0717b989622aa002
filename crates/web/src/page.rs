//! What browsers get: the page, its scripts and its styles. All of it is in the program; nothing is fetched from
//! elsewhere.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::App;

/// The scripts of the page, in the order in which they depend on each other.
const SCRIPTS: &[&str] = &[
    include_str!("page/api.js"),
    include_str!("page/dialogs.js"),
    include_str!("page/rights.js"),
    include_str!("page/tables.js"),
    include_str!("page/sentences.js"),
    include_str!("page/power.js"),
    include_str!("page/jobs.js"),
    include_str!("page/nodes.js"),
    include_str!("page/feeds.js"),
    include_str!("page/budget.js"),
    include_str!("page/submit.js"),
    include_str!("page/whatif.js"),
    include_str!("page/past.js"),
    include_str!("page/job.js"),
    include_str!("page/page.js"),
];

const HTML: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "text/html; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
const CSS: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];
const SCRIPT: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "text/javascript; charset=utf-8"), (header::CACHE_CONTROL, "no-cache")];

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(|| async { (HTML, include_str!("page/page.html")) }))
        .route("/page.css", get(style))
        .route("/page.js", get(script))
        .route(
            "/favicon.svg",
            get(|| async {
                ([(header::CONTENT_TYPE, "image/svg+xml")], include_str!("page/icon.svg"))
            }),
        )
}

async fn style(State(app): State<Arc<App>>) -> Response {
    (CSS, [app.assets.style, include_str!("page/page.css")].join("\n")).into_response()
}

async fn script(State(app): State<Arc<App>>) -> Response {
    let all: Vec<&str> = app.assets.scripts.iter().chain(SCRIPTS).copied().collect();
    // One scope of its own: the scripts share names, and nobody else sees them.
    (SCRIPT, format!("\"use strict\";\n{{\n{}\n}}\n", all.join("\n"))).into_response()
}
