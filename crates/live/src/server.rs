//! What is around the loop: its configuration and its log, the ways for clients to it, and what puts everything together.
//!
//! [`config`] is the configuration file, [`socket`] the way to the loop for commands and [`door`] that for servers in the same
//! process, [`users`] the names of users, [`instance`] how agents know this daemon, and [`serve`] runs it all.

pub mod config;
pub mod door;
pub mod guard;
pub mod instance;
pub mod log;
pub mod serve;
pub mod socket;
pub mod users;
