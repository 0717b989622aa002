//! The socket: how what is in [`wire`](crate::wire) gets from a client to the daemon and back.
//!
//! A request is a line of JSON, and so is its answer; several requests on one connection are answered
//! in order. [`frame`] cuts bytes into lines and reads them, and knows no socket. [`server`] is the
//! daemon's side: a thread that accepts, and one for each connection, of which there is a bounded
//! number, with bounded memory and bounded patience. Whatever a client sends or does not send, others
//! are served. [`client`] is the other side, for commands.

pub mod client;
mod connection;
pub mod frame;
pub mod server;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientError};
pub use server::{BindError, Limits, Operators, Parting, Server};
