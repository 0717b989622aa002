//! Starts and stops everything that serves browsers and scripts.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use busbar_live::server::door::Door;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

use crate::app::{App, Options};
use crate::limits::Limits;
use crate::tls::{self, TlsError};
use crate::{api, listener, watch};

/// How long open requests may take to end when the daemon stops.
const PARTING: Duration = Duration::from_secs(1);

/// The threads that serve. They are few, so that the daemon's loop finds a processor.
const THREADS: usize = 2;

/// How many requests may wait for the loop at once.
const WAITING: usize = 32;

/// How much less urgent the threads are than the daemon's loop, as `nice` counts.
const NICE: i32 = 10;

/// Why the page cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// The address cannot be used.
    #[error("cannot listen on {at} (web.listen in the configuration)")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The files for TLS cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// There are no threads.
    #[error("cannot start the threads of the web server")]
    Threads(#[source] io::Error),
}

/// A running server. Dropping it closes its connections.
pub struct Server {
    runtime: Option<Runtime>,
    page: String,
}

impl Server {
    /// Serves from now on.
    pub fn start(options: Options, door: Door) -> Result<Self, WebError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(WAITING)
            .thread_name("web")
            // The budget comes before those who look at it. Without the right to yield, nothing is lost.
            .on_thread_start(|| _ = rustix::process::setpriority_process(None, NICE))
            .enable_all()
            .build()
            .map_err(WebError::Threads)?;
        let tls = options.tls.as_ref().map(tls::acceptor).transpose()?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let at = options.listen;
        let listen = |source| WebError::Listen { at, source };
        let bound = runtime.block_on(TcpListener::bind(at)).map_err(listen)?;
        let address = bound.local_addr().map_err(listen)?;
        let limits = Limits { connections: options.connections, ..Default::default() };
        let app = Arc::new(App::new(options, address, door));
        runtime.spawn(watch::run(Arc::clone(&app)));
        runtime.spawn(listener::serve(bound, tls, limits, api::router(app)));
        let page = format!("{scheme}://{address}/");
        tracing::info!("the web page is at {page}");
        Ok(Server { runtime: Some(runtime), page })
    }

    /// The address of the page.
    pub fn page(&self) -> &str {
        &self.page
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(PARTING);
        }
    }
}
