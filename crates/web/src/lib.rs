//! The web page of the daemon, its API for scripts, and the metrics for monitoring.
//!
//! A [`Server`] runs beside the daemon's loop and passes requests to it through a
//! [`Door`](busbar_live::server::door::Door), as the socket does. The loop answers one question of a kind at a time:
//! `reads` keeps each answer for a moment, so that many readers cost it no more than one.
//!
//! `listener` accepts connections, with or without TLS, within limits. `access` says who asks: [`token`] is how
//! people prove it. `api` is the API; `watch` follows the daemon for `metrics`, `samples` and the event
//! stream. `page` holds what browsers get.

mod access;
mod answers;
mod api;
mod app;
mod error;
mod group;
mod headers;
mod limits;
mod listener;
mod metrics;
mod names;
mod page;
mod patience;
mod places;
mod reads;
mod samples;
mod sending;
mod server;
#[cfg(test)]
mod testing;
mod tls;
pub mod token;
mod turns;
mod watch;

pub use api::openapi;
pub use app::{Assets, Options};
pub use server::{Server, WebError};
