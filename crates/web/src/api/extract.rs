//! The parameters and the body of a request, or an error in the common form.

use axum::extract::{FromRequest, FromRequestParts, Request};
use busbar_live::wire::Object;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The body, an object in JSON.
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let axum::Json(Object(body)) =
            axum::Json::<Object<T>>::from_request(request, state).await?;
        Ok(Body(body))
    }
}

/// What is asked for after the question mark.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub T);

/// What is asked for in the path.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub T);
