//! The daemon itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use busbar_live::wire::{Request, Status};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::api::callers::Operator;
use crate::app::{App, Question};
use crate::error::ApiError;
use crate::token::Role;

/// The daemon's status: its policy, its machine, its power and its problems
#[utoipa::path(
    get,
    path = "/api/v2/status",
    operation_id = "status",
    tag = "daemon",
    responses((status = 200, description = "The status", body = Status), ApiError)
)]
pub(crate) async fn status(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    Ok(app.read(Question::Status, &caller).await?.response())
}

/// The identity of the client.
#[derive(Serialize, ToSchema)]
pub(crate) struct WhoAmI {
    /// What they may do.
    role: Role,
    /// The name of the token; none without one.
    token: Option<String>,
    /// The user in whose name they act; none without a token.
    user: Option<u32>,
    /// That user's name, if the system knows it.
    user_name: Option<String>,
}

/// Whether a token is valid, and for what
#[utoipa::path(
    get,
    path = "/api/v2/whoami",
    operation_id = "who_am_i",
    tag = "daemon",
    responses((status = 200, description = "Who asks", body = WhoAmI), ApiError)
)]
pub(crate) async fn whoami(State(app): State<Arc<App>>, caller: Caller) -> Json<WhoAmI> {
    let user = caller.who.user();
    let user_name = match user {
        Some(user) => app.name_of(user).await,
        None => None,
    };
    Json(WhoAmI { role: caller.role(), user, user_name, token: caller.token })
}

/// That the daemon is about to stop.
#[derive(Serialize, ToSchema)]
pub(crate) struct Stopping {
    /// Always true.
    stopping: bool,
}

/// Stop the daemon; jobs continue
#[utoipa::path(
    post,
    path = "/api/v2/stop",
    operation_id = "stop",
    tag = "daemon", security(("token" = [])),
    responses((status = 200, description = "The daemon is about to stop", body = Stopping), ApiError)
)]
pub(crate) async fn stop(
    State(app): State<Arc<App>>,
    Operator(caller): Operator,
) -> Result<Json<Stopping>, ApiError> {
    app.change(Request::Stop, caller.who).await?;
    Ok(Json(Stopping { stopping: true }))
}
