//! Jobs that are over.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use busbar_live::server::users;
use busbar_live::wire::finished::{Finished, FinishedQuery, Place};
use busbar_live::wire::{Request, State as JobState};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::answers;
use crate::api::extract::Query;
use crate::app::App;
use crate::error::{ApiError, ErrorKind};

/// Which finished jobs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only jobs of this user, by name or number.
    user: Option<String>,
    /// Jobs of all users. Without it and without `user`, a token with the role `user` gets that user's jobs, and others all.
    #[serde(default)]
    #[param(required = false)]
    all: bool,
    /// Only jobs for this account. Accounts are known of jobs whose name may be seen.
    account: Option<String>,
    /// Only jobs that ended in this state.
    state: Option<JobState>,
    /// Only jobs that ended at this time or later, in seconds since 1970.
    since: Option<i64>,
    /// Only jobs that ended before this time, in seconds since 1970.
    until: Option<i64>,
    /// Only this job, or the elements of this array.
    job: Option<u64>,
    /// Where to go on: `next` of the answer before.
    before: Option<String>,
    /// The largest number of jobs; 100 by default.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Jobs that are over, the latest first
///
/// An answer may have fewer jobs than were asked for, because a request looks at a bounded number of them. As long as it has
/// `next`, there may be more.
#[utoipa::path(
    get,
    path = "/api/v2/history/jobs",
    operation_id = "list_finished_jobs",
    tag = "jobs", params(Which),
    responses((status = 200, description = "The jobs, the latest first", body = Finished), ApiError)
)]
pub(crate) async fn finished(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Json<Finished>, ApiError> {
    let Which { user, all, account, state, since, until, job, before, limit } = which;
    let malformed = |message: String| ApiError::new(ErrorKind::Malformed, message);
    let before: Option<Place> = before.map(|text| text.parse()).transpose().map_err(malformed)?;
    let user = match user {
        Some(name) => Some(number_of(name).await?),
        None => None,
    };
    let states = state.into_iter().collect();
    let query = FinishedQuery { user, all, account, states, since, until, job, before, limit };
    let request = Request::Finished(Box::new(query));
    answers::finished(app.ask(request, caller.who).await?).map(Json)
}

/// The number of a user, by name or number.
async fn number_of(name: String) -> Result<u32, ApiError> {
    let known = name.clone();
    let found = tokio::task::spawn_blocking(move || users::number_of(&known)).await.ok().flatten();
    found.or_else(|| name.parse().ok()).ok_or_else(|| {
        let message = format!("there is no user '{name}'; give the name or the number of one");
        ApiError::new(ErrorKind::Malformed, message)
    })
}
