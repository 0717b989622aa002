//! The caller of each request: whoever may read, and those whose token allows changes.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;

use crate::access::{Caller, unauthorised};
use crate::app::App;
use crate::error::{ApiError, ErrorKind};
use crate::listener::Peer;
use crate::token::Role;

/// Refuses what no caller may ask.
pub(crate) async fn check(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = peer(request.extensions())?.address;
    app.access.check(peer, request.headers(), request.uri())?;
    Ok(next.run(request).await)
}

fn peer(extensions: &axum::http::Extensions) -> Result<&Peer, ApiError> {
    extensions.get::<Peer>().ok_or_else(|| unauthorised("the request has no peer address"))
}

/// Anybody who may read.
impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let peer = peer(&parts.extensions)?;
        let caller = app.access.caller(peer.address, &parts.headers)?;
        if caller.group.is_known() {
            peer.seat.recognise(caller.group.clone());
        }
        Ok(caller)
    }
}

/// Somebody whose token allows changes to jobs.
pub(crate) struct User(pub Caller);

/// Somebody whose token allows changes to everything.
pub(crate) struct Operator(pub Caller);

impl FromRequestParts<Arc<App>> for User {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        at_least(Role::User, parts, app).await.map(User)
    }
}

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        at_least(Role::Operator, parts, app).await.map(Operator)
    }
}

async fn at_least(role: Role, parts: &mut Parts, app: &Arc<App>) -> Result<Caller, ApiError> {
    let caller = Caller::from_request_parts(parts, app).await?;
    match caller.token {
        None => Err(unauthorised(&format!("this needs a token with the role {role}"))),
        Some(_) if caller.role() < role => {
            let message =
                format!("this needs a token with the role {role}, and yours has {}", caller.role());
            Err(ApiError::new(ErrorKind::Forbidden, message))
        }
        Some(_) => Ok(caller),
    }
}
