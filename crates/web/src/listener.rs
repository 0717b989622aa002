//! Accepts connections, within limits: how many there are, and how long a client may take.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use futures_util::future::select;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::limits::Limits;
use crate::patience::{Hurried, Impatient};
use crate::places::{Places, Seat};
use crate::sending::Sending;

/// The pause after a connection could not be accepted because the machine is out of resources.
const PAUSE: Duration = Duration::from_millis(50);

/// How many connections may be about to close, besides those that have a place.
const CLOSING: usize = 64;

/// The other end of a connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Its place.
    pub seat: Seat,
}

/// Serves connections until the runtime ends.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    router: Router,
) {
    let places = Places::new(limits);
    let open = Arc::new(Semaphore::new(limits.connections + CLOSING));
    loop {
        // Whoever has to go does so in a moment.
        let Ok(permit) = Arc::clone(&open).acquire_owned().await else { return };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a web connection cannot be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let peer = Peer { address, seat: places.take(address.ip()) };
        let seat = peer.seat.clone();
        let router = router.clone().layer(from_fn_with_state((peer, limits.body), attended));
        let tls = tls.clone();
        tokio::spawn(async move {
            let served = async {
                let stream = Impatient::new(stream, limits.stalled);
                match tls {
                    None => connection(stream, limits, router).await,
                    Some(tls) => secured(tls, stream, limits, router).await,
                }
            };
            select(pin!(seat.is_displaced()), pin!(served)).await;
            drop(permit);
        });
        // Whoever has come is heard before so many others come that it would have to go.
        tokio::task::yield_now().await;
    }
}

/// Answers a request on a connection that is busy until its client has the answer.
async fn attended(
    State((peer, patience)): State<(Peer, Duration)>,
    request: Request,
    next: Next,
) -> Response {
    let busy = peer.seat.request();
    let mut request = request.map(|body| Body::new(Hurried::new(body, patience)));
    request.extensions_mut().insert(peer);
    next.run(request).await.map(|body| Body::new(Sending::new(body, busy)))
}

async fn secured(tls: TlsAcceptor, stream: Impatient<TcpStream>, limits: Limits, router: Router) {
    // A client that cannot be understood, or takes too long, is let go.
    if let Ok(Ok(stream)) = timeout(limits.head, tls.accept(stream)).await {
        connection(stream, limits, router).await;
    }
}

async fn connection<S>(stream: S, limits: Limits, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Clients go away in many ways, and none of them is of interest.
    let _ = served.await;
}

#[cfg(test)]
mod tests;
