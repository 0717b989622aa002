//! An answer that is being sent, during which its connection is busy.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};

use crate::places::Busy;

/// The body of an answer. Its connection is busy until the last piece of it is written: an answer is often one large
/// piece, which the body has given away long before its client has read it.
pub(crate) struct Sending {
    body: Body,
    busy: Arc<Busy>,
}

impl Sending {
    pub(crate) fn new(body: Body, busy: Busy) -> Self {
        Sending { body, busy: Arc::new(busy) }
    }
}

/// A piece of an answer, which is dropped when it is written.
struct Piece {
    bytes: Bytes,
    _busy: Arc<Busy>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl hyper::body::Body for Sending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        let piece = |bytes| Bytes::from_owner(Piece { bytes, _busy: Arc::clone(&self.busy) });
        frame.map_ok(|frame| frame.map_data(piece))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
