//! Jobs: listing, showing, submitting and managing them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use busbar_live::wire::{
    Answer, ArrayDetails, JobDetails, JobLine, Reply, Request, State as JobState, Submission,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{Body, Path, Query};
use crate::access::Caller;
use crate::answers;
use crate::api::callers::User;
use crate::app::{App, Question};
use crate::error::{ApiError, ErrorKind};

/// Jobs, and how many there are that were asked for.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobList {
    /// How many jobs there are that were asked for, whether or not they are listed.
    total: usize,
    /// The jobs, in the order of their numbers.
    jobs: Vec<JobLine>,
}

/// Which jobs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Only jobs in this state.
    state: Option<JobState>,
    /// Only jobs of this user, by number.
    user: Option<u64>,
    /// Only jobs with a larger number.
    after: Option<u64>,
    /// The largest number of jobs to list.
    limit: Option<u64>,
}

/// The jobs that wait or run
#[utoipa::path(
    get,
    path = "/api/v2/jobs",
    operation_id = "list_jobs",
    tag = "jobs", params(Which),
    responses((status = 200, description = "The jobs", body = JobList), ApiError)
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    let rendered = app.read(Question::Queue(caller.who), &caller).await?;
    let Which { state, user, after, limit } = which;
    if state.is_none() && user.is_none() && after.is_none() && limit.is_none() {
        return Ok(rendered.response());
    }
    let all = answers::queue(&rendered)?;
    let matches = |job: &&JobLine| {
        state.is_none_or(|state| job.state == state)
            && user.is_none_or(|user| u64::from(job.user) == user)
    };
    let total = all.iter().filter(matches).count();
    let later = all.iter().filter(matches).filter(|job| after.is_none_or(|after| job.job > after));
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    Ok(Json(JobList { total, jobs: later.take(most).cloned().collect() }).into_response())
}

/// A job, or the elements of an array.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum JobOrArray {
    /// A job.
    Job(JobDetails),
    /// An array.
    Array(ArrayDetails),
}

/// The number of a job or of an array.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct Number {
    /// The number of a job or of an array.
    job: u64,
}

/// A job, whether it waits, runs or is over
#[utoipa::path(
    get,
    path = "/api/v2/jobs/{job}",
    operation_id = "show_job",
    tag = "jobs", params(Number),
    responses((status = 200, description = "The job, or the array", body = JobOrArray), ApiError)
)]
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(Number { job }): Path<Number>,
) -> Result<Json<JobOrArray>, ApiError> {
    match app.ask(Request::Show { job }, caller.who).await? {
        Reply::Show(details) => Ok(Json(JobOrArray::Job(*details))),
        Reply::Array(array) => Ok(Json(JobOrArray::Array(array))),
        _ => Err(ApiError::new(ErrorKind::Unknown, format!("there is no job {job}"))),
    }
}

/// A job that was accepted.
#[derive(Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// The number of the job, or of the array.
    job: u64,
    /// Why the job cannot start at present, or which part of the request has no effect.
    remark: Option<String>,
}

/// Submit a job or an array of jobs, which runs as the user of the token
#[utoipa::path(
    post,
    path = "/api/v2/jobs",
    operation_id = "submit_job",
    tag = "jobs", request_body = Submission, security(("token" = [])),
    responses((status = 201, description = "The job was accepted", body = Submitted), ApiError)
)]
pub(crate) async fn submit(
    State(app): State<Arc<App>>,
    User(caller): User,
    Body(submission): Body<Submission>,
) -> Result<(StatusCode, Json<Submitted>), ApiError> {
    match app.change(Request::Submit(Box::new(submission)), caller.who).await? {
        Reply::Submitted { job, remark } => {
            Ok((StatusCode::CREATED, Json(Submitted { job, remark })))
        }
        _ => Err(ApiError::new(ErrorKind::Malformed, "the job was not accepted")),
    }
}

/// Cancel a job or an array, whether it waits or runs
#[utoipa::path(
    post,
    path = "/api/v2/jobs/{job}/cancel",
    operation_id = "cancel_job",
    tag = "jobs", params(Number), security(("token" = [])),
    responses((status = 200, description = "The result for each job", body = Vec<Answer>), ApiError)
)]
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    User(caller): User,
    Path(Number { job }): Path<Number>,
) -> Result<Json<Vec<Answer>>, ApiError> {
    change(&app, &caller, Request::Cancel { jobs: vec![job] }).await
}

/// Hold a job or an array until it is released
#[utoipa::path(
    post,
    path = "/api/v2/jobs/{job}/hold",
    operation_id = "hold_job",
    tag = "jobs", params(Number), security(("token" = [])),
    responses((status = 200, description = "The result for each job", body = Vec<Answer>), ApiError)
)]
pub(crate) async fn hold(
    State(app): State<Arc<App>>,
    User(caller): User,
    Path(Number { job }): Path<Number>,
) -> Result<Json<Vec<Answer>>, ApiError> {
    change(&app, &caller, Request::Hold { jobs: vec![job] }).await
}

/// Release a job or an array that was held
#[utoipa::path(
    post,
    path = "/api/v2/jobs/{job}/release",
    operation_id = "release_job",
    tag = "jobs", params(Number), security(("token" = [])),
    responses((status = 200, description = "The result for each job", body = Vec<Answer>), ApiError)
)]
pub(crate) async fn release(
    State(app): State<Arc<App>>,
    User(caller): User,
    Path(Number { job }): Path<Number>,
) -> Result<Json<Vec<Answer>>, ApiError> {
    change(&app, &caller, Request::Release { jobs: vec![job] }).await
}

/// Changes jobs. It is an error if that was refused for all of them.
async fn change(
    app: &App,
    caller: &Caller,
    request: Request,
) -> Result<Json<Vec<Answer>>, ApiError> {
    let answers = answers::done(app.change(request, caller.who).await?)?;
    let is_refused = !answers.is_empty() && answers.iter().all(|answer| answer.refusal.is_some());
    match answers.first().and_then(|answer| answer.refusal.clone()).filter(|_| is_refused) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(Json(answers)),
    }
}
