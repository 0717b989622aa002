//! The nodes of the machine.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use busbar_live::wire::NodeLine;

use crate::access::Caller;
use crate::app::{App, Question};
use crate::error::ApiError;

/// The nodes, with their jobs, caps, states and measured power
#[utoipa::path(
    get,
    path = "/api/v2/nodes",
    operation_id = "list_nodes",
    tag = "daemon",
    responses((status = 200, description = "The nodes in order", body = Vec<NodeLine>), ApiError)
)]
pub(crate) async fn nodes(
    State(app): State<Arc<App>>,
    caller: Caller,
) -> Result<Response, ApiError> {
    Ok(app.read(Question::Nodes, &caller).await?.response())
}
