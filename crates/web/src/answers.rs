//! Answers of the loop as answers of the API.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use busbar_live::wire::finished::{Finished, Usage};
use busbar_live::wire::{
    Answer, Forecast, HistoryLine, JobLine, NodeLine, PowerState, Reply, Status,
};
use serde::Serialize;

use crate::error::{ApiError, ErrorKind};

/// An answer, which is made into text at most once, however many get it.
pub(crate) struct Rendered {
    reply: Reply,
    text: OnceLock<Bytes>,
}

impl Rendered {
    /// An answer that nobody has asked for as text yet.
    pub(crate) fn new(reply: Reply) -> Self {
        Rendered { reply, text: OnceLock::new() }
    }

    fn bytes(&self) -> Bytes {
        let bytes = self.text.get_or_init(|| match &self.reply {
            Reply::Status(status) => json(status),
            Reply::Queue(jobs) => json(&JobList { total: jobs.len(), jobs }),
            Reply::Nodes(nodes) => json(nodes),
            Reply::Forecast(forecast) => json(forecast),
            other => json(other),
        });
        bytes.clone()
    }

    /// The answer as text.
    pub(crate) fn text(&self) -> &str {
        self.bytes();
        let bytes = self.text.get().map_or(&b""[..], |bytes| &bytes[..]);
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The answer for a client.
    pub(crate) fn response(&self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.bytes()).into_response()
    }
}

/// Jobs, and how many there are that were asked for.
#[derive(Serialize)]
struct JobList<'a> {
    total: usize,
    jobs: &'a [JobLine],
}

/// All of these types can be written as JSON.
fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// An answer that does not belong to its question, which would be a mistake in the daemon.
fn other(reply: &Reply) -> ApiError {
    tracing::error!(?reply, "an answer to another question");
    ApiError::new(ErrorKind::Stopping, "the daemon has answered another question; see its log")
}

/// The daemon's status.
pub(crate) fn status(rendered: &Rendered) -> Result<&Status, ApiError> {
    match &rendered.reply {
        Reply::Status(status) => Ok(status),
        reply => Err(other(reply)),
    }
}

/// The nodes.
pub(crate) fn nodes(rendered: &Rendered) -> Result<&[NodeLine], ApiError> {
    match &rendered.reply {
        Reply::Nodes(nodes) => Ok(nodes),
        reply => Err(other(reply)),
    }
}

/// The jobs.
pub(crate) fn queue(rendered: &Rendered) -> Result<&[JobLine], ApiError> {
    match &rendered.reply {
        Reply::Queue(jobs) => Ok(jobs),
        reply => Err(other(reply)),
    }
}

macro_rules! take {
    ($name:ident, $variant:ident, $type:ty, $what:literal) => {
        #[doc = $what]
        pub(crate) fn $name(reply: Reply) -> Result<$type, ApiError> {
            match reply {
                Reply::$variant(value) => Ok(value),
                reply => Err(other(&reply)),
            }
        }
    };
}

take!(budget, Budget, PowerState, "The power budget and its use.");
take!(forecast, Forecast, Forecast, "A forecast.");
take!(finished, Finished, Finished, "Finished jobs.");
take!(usage, Usage, Usage, "The energy of finished jobs.");
take!(history, History, Vec<HistoryLine>, "Lines of the history.");
take!(done, Done, Vec<Answer>, "The result of a change to jobs.");
