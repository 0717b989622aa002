//! What all requests have in common: the way to the daemon's loop, and what is known of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use busbar_live::job::Requester;
use busbar_live::server::config::TlsFiles;
use busbar_live::server::door::Door;
use busbar_live::wire::{Forecast, ForecastRequest, Reply, Request, Waiting};
use busbar_trust::TrustedFolder;
use tokio::sync::broadcast;
use tokio::time::timeout;

use crate::access::{Access, Caller};
use crate::answers::{self, Rendered};
use crate::error::{ApiError, ErrorKind};
use crate::metrics::Metrics;
use crate::names::Names;
use crate::reads::Reads;
use crate::samples::Samples;
use crate::token::Tokens;
use crate::turns::Turns;

/// How long the loop may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// How old the answers may be that browsers get.
const FRESH: Duration = Duration::from_millis(250);

/// How old lists may be, which cost the loop more.
const FRESH_LISTS: Duration = Duration::from_secs(1);

/// How old a forecast may be, which costs another processor more.
const FRESH_FORECASTS: Duration = Duration::from_secs(10);

/// Events that a slow reader may be behind.
const BACKLOG: usize = 1024;

/// What is served, where, and to whom.
pub struct Options {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Whether programs on this machine may read without a token.
    pub open: bool,
    /// The files for TLS.
    pub tls: Option<TlsFiles>,
    /// Names by which browsers may call the page, besides those of the loopback.
    pub hosts: Vec<String>,
    /// The daemon's state folder, which holds the tokens and the latest power.
    pub state: TrustedFolder,
    /// The largest request, in bytes.
    pub request: usize,
    /// The largest number of connections.
    pub connections: usize,
    /// What browsers get.
    pub assets: Assets,
}

/// What the page has in common with the report.
#[derive(Clone, Copy)]
pub struct Assets {
    /// Colours, tables and sections.
    pub style: &'static str,
    /// Quantities in words, and how charts are drawn.
    pub scripts: &'static [&'static str],
}

/// A question that many ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// The state of the daemon.
    Status,
    /// The nodes.
    Nodes,
    /// The jobs, as somebody may see them.
    Queue(Requester),
    /// What becomes of the jobs, as somebody may see them.
    Forecast(Requester),
}

/// An event for those who watch: its kind, and its data as JSON.
pub(crate) type Happening = (&'static str, String);

/// What all requests have in common.
pub(crate) struct App {
    door: Door,
    pub access: Access,
    pub assets: Assets,
    /// The largest request, in bytes.
    pub request: usize,
    reads: Reads<Question, Rendered>,
    names: Arc<Names>,
    forecasts: Turns,
    pub metrics: Metrics,
    pub samples: Samples,
    pub happenings: broadcast::Sender<Happening>,
}

impl App {
    /// Everything that a server at an address needs.
    pub(crate) fn new(options: Options, address: SocketAddr, door: Door) -> Self {
        let Options { open, hosts, state, request, assets, .. } = options;
        App {
            door,
            access: Access::new(open, hosts, address, Tokens::in_folder(state.clone())),
            assets,
            request,
            reads: Reads::new(),
            names: Arc::default(),
            forecasts: Turns::default(),
            metrics: Metrics::default(),
            samples: Samples::open(state),
            happenings: broadcast::Sender::new(BACKLOG),
        }
    }

    /// Asks the loop for somebody, and waits for its answer.
    pub(crate) async fn ask(&self, request: Request, who: Requester) -> Result<Reply, ApiError> {
        request.check()?;
        let waiting = Waiting::default();
        let mut answer = self.door.ask(request, who, waiting.gone());
        let answer = timeout(PATIENCE, answer.recv())
            .await
            .map_err(|_| ApiError::new(ErrorKind::Busy, "the daemon does not answer; try again"))?;
        let stopping =
            || ApiError::new(ErrorKind::Stopping, "the daemon is stopping; try again later");
        let mut reply = match answer.ok_or_else(stopping)? {
            Reply::Error(refusal) => return Err(refusal.into()),
            reply => reply,
        };
        // Who looks a name up may wait for a directory.
        let names = Arc::clone(&self.names);
        let named = tokio::task::spawn_blocking(move || {
            names.add_to(&mut reply);
            reply
        });
        named.await.map_err(|_| stopping())
    }

    /// The name of a user, if the system knows it.
    pub(crate) async fn name_of(&self, user: u32) -> Option<String> {
        let names = Arc::clone(&self.names);
        tokio::task::spawn_blocking(move || names.of(user)).await.ok().flatten()
    }

    /// The answer to a question that many ask, at most so old as the question allows.
    pub(crate) async fn read(
        &self,
        question: Question,
        caller: &Caller,
    ) -> Result<Arc<Rendered>, ApiError> {
        let (age, request) = match question {
            Question::Status => (FRESH, Request::Status),
            Question::Nodes => (FRESH_LISTS, Request::Nodes),
            Question::Queue(_) => (FRESH_LISTS, Request::Queue),
            Question::Forecast(_) => (FRESH_FORECASTS, Request::Forecast(Box::default())),
        };
        let who = caller.who;
        self.reads
            .get(question, age, async || {
                let _turn = match question {
                    Question::Forecast(_) => Some(self.forecasts.shared(caller).await),
                    _ => None,
                };
                self.ask(request, who).await.map(Rendered::new)
            })
            .await
    }

    /// Asks for a change, after which nobody gets an older answer.
    pub(crate) async fn change(&self, request: Request, who: Requester) -> Result<Reply, ApiError> {
        let reply = self.ask(request, who).await;
        self.reads.forget();
        reply
    }

    /// What becomes of the jobs under assumptions.
    pub(crate) async fn forecast(
        &self,
        question: ForecastRequest,
        caller: &Caller,
    ) -> Result<Forecast, ApiError> {
        let _turn = self.forecasts.of(caller).await?;
        let reply = self.ask(Request::Forecast(Box::new(question)), caller.who).await?;
        answers::forecast(reply)
    }
}
