//! The socket: how what is in [`wire`](crate::wire) gets from a client to the daemon and back.
//!
//! A request is a line of JSON, and so is its answer; several requests on one connection are answered
//! in order. [`frame`] cuts bytes into lines and reads them, and knows no socket. `server` is the
//! daemon's side: a task that accepts, and one for each connection, of which there is a bounded
//! number, with bounded memory and bounded patience. They are tasks of tokio, as those of the web page are: a deadline is
//! one word there, and nobody who waits costs a thread. They have threads of their own, so that commands do not wait for browsers. Whatever a client sends or does not send, others
//! are served. [`client`] is the other side, for commands.

pub mod client;
mod connection;
pub mod frame;
mod limits;
mod path;
mod server;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientError};
pub use limits::{Limits, Operators};
pub use path::BindError;
pub use server::{Parting, Server};
