//! A stream of what happens, by server-sent events: `status` once a second, and `history` for each line of it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::{Stream, StreamExt as _};
use tokio_stream::wrappers::BroadcastStream;

use crate::access::Caller;
use crate::app::App;
use crate::listener::Peer;

/// How often a silent stream shows that it is still there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/v2/events", get(events))
}

async fn events(
    State(app): State<Arc<App>>,
    _: Caller,
    Extension(peer): Extension<Peer>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let streaming = peer.seat.stream();
    let happenings = BroadcastStream::new(app.happenings.subscribe());
    let events = happenings.map(move |happening| {
        // The place counts as a stream's until this is dropped.
        let _ = &streaming;
        Ok(match happening {
            Ok((kind, data)) => Event::default().event(kind).data(data),
            // Whoever reads too slowly must ask for the history to have all of it.
            Err(missed) => Event::default().event("missed").data(missed.to_string()),
        })
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}
