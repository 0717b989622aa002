//! The node agent: reads and sets the power caps of one node, and measures.
//!
//! The agent is the one part of Busbar with privileges, so it is small, has no plug-ins, and runs no commands.
//! From the inside out:
//!
//! - [`domain`] names the power domains of a node and their limits, [`reading`] is a value with what it is
//!   worth, [`wire`] is what a controller and an agent say to each other.
//! - [`client`] and [`fleet`] are the controller's side: one agent for a command, all agents for a daemon.
//! - [`instance`] tells apart controllers with the same key; [`tls`] and [`keys`] secure the connection between machines.

mod agent;
mod changes;
pub mod client;
pub mod config;
pub mod control;
pub mod domain;
pub mod emulate;
pub mod fleet;
mod frame;
pub mod hardware;
pub mod instance;
pub mod keys;
mod link;
mod meter;
mod node;
pub mod notify;
pub mod probe;
pub mod reading;
mod record;
pub mod server;
pub mod split;
pub mod tls;
pub mod wire;

pub use agent::Stopped;
pub use record::RecordError;
