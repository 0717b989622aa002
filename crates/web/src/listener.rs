//! Accepts connections, within limits: how many there are, and how long a client may take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// The pause after a connection could not be accepted because the machine is out of resources.
const PAUSE: Duration = Duration::from_millis(50);

/// The address at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub SocketAddr);

/// The limits of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many connections there may be at once. Others wait.
    pub connections: usize,
    /// How long the beginning of a connection and the head of a request may take.
    pub head: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { connections: 256, head: Duration::from_secs(10) }
    }
}

/// Serves connections until the runtime ends.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
    router: Router,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        // Whoever comes while all places are taken waits in the kernel's queue.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a web connection cannot be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let router = router.clone().layer(Extension(Peer(peer)));
        let tls = tls.clone();
        tokio::spawn(async move {
            match tls {
                None => connection(stream, limits, router).await,
                Some(tls) => secured(tls, stream, limits, router).await,
            }
            drop(place);
        });
    }
}

async fn secured(tls: TlsAcceptor, stream: TcpStream, limits: Limits, router: Router) {
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
