//! Agents on emulated nodes, with real sockets and threads.

mod access;
mod crowded;
mod fleet;
mod node;
mod peers;
mod tls;
