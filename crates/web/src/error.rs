//! Errors as clients of the API see them: a status code, and a body that is always of the same form.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use busbar_live::wire::{Refusal, RefusalKind};
use serde::Serialize;
use utoipa::openapi::{Content, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

/// Why a request was refused.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The error.
    pub error: ErrorDetails,
}

/// The kind of an error, and its reason in words.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetails {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The reason and advice, for people.
    pub message: String,
}

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorKind {
    /// The request cannot be understood.
    Malformed,
    /// The request needs a token, and has none that is valid.
    Unauthorised,
    /// The token does not allow that.
    Forbidden,
    /// There is no such job or page.
    Unknown,
    /// The request is of an earlier version of the API.
    Gone,
    /// There is such a page, but not for this method.
    Method,
    /// The body is of another type than JSON.
    Unsupported,
    /// The request is too large.
    TooMuch,
    /// The request did not arrive as a whole in time.
    Slow,
    /// There are too many requests. Nothing was done; the request may be sent again.
    Busy,
    /// The job could never run, or its state does not allow the request.
    Impossible,
    /// A quota is used up.
    Full,
    /// The daemon could not write to its database.
    Unwritten,
    /// The daemon is about to stop.
    Stopping,
}

impl ErrorKind {
    fn status(self) -> StatusCode {
        match self {
            ErrorKind::Malformed => StatusCode::BAD_REQUEST,
            ErrorKind::Unauthorised => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::Unknown => StatusCode::NOT_FOUND,
            ErrorKind::Gone => StatusCode::GONE,
            ErrorKind::Method => StatusCode::METHOD_NOT_ALLOWED,
            ErrorKind::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::TooMuch => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::Slow => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::Impossible => StatusCode::CONFLICT,
            ErrorKind::Busy | ErrorKind::Full => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Unwritten | ErrorKind::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl From<RefusalKind> for ErrorKind {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Malformed => ErrorKind::Malformed,
            RefusalKind::TooMuch => ErrorKind::TooMuch,
            RefusalKind::Busy => ErrorKind::Busy,
            RefusalKind::Unknown => ErrorKind::Unknown,
            RefusalKind::Forbidden => ErrorKind::Forbidden,
            RefusalKind::Impossible => ErrorKind::Impossible,
            RefusalKind::Full => ErrorKind::Full,
            RefusalKind::Unwritten => ErrorKind::Unwritten,
            RefusalKind::Stopping => ErrorKind::Stopping,
        }
    }
}

/// An error as an answer.
#[derive(Clone, Debug)]
pub(crate) struct ApiError(ErrorDetails);

impl ApiError {
    /// An error of a kind, with a message for people.
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ApiError(ErrorDetails { kind, message: message.into() })
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        ApiError::new(refusal.kind.into(), refusal.message)
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        let kind = match rejection.status() {
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorKind::Unsupported,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooMuch,
            _ if matches!(rejection, JsonRejection::BytesRejection(_)) => ErrorKind::Slow,
            _ => ErrorKind::Malformed,
        };
        ApiError::new(kind, rejection.body_text())
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        ApiError::new(ErrorKind::Malformed, rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        ApiError::new(ErrorKind::Malformed, rejection.body_text())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = self.0.kind;
        let mut response = (kind.status(), Json(ErrorBody { error: self.0 })).into_response();
        let headers = response.headers_mut();
        match kind {
            ErrorKind::Unauthorised => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorKind::Busy | ErrorKind::Stopping => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => (),
        }
        response
    }
}

/// Every error has the same body, whatever its status.
impl IntoResponses for ApiError {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        let body = Content::new(Some(Ref::from_schema_name("ErrorBody")));
        let response = ResponseBuilder::new()
            .description("The request was refused, for the reason in the body.")
            .content("application/json", body)
            .build();
        BTreeMap::from([("default".to_owned(), response.into())])
    }
}
