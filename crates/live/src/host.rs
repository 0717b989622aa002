//! The machine on which the daemon itself runs: its processes and files, and the service manager.

pub(crate) mod file_identity;
pub mod process;
pub mod service;
