//! The daemon: the same policies and the same ledger as in the simulator, for real jobs.
//!
//! It observes, decides, writes down and acts, in rooms of which each knows only those below it; a test holds the list:
//!
//! - [`job`] is what is kept of each job, from its request to its end.
//! - [`engine`] is the interface to what jobs run on: orders one way, reports the other.
//! - [`host`] is what the daemon asks of the machine that it runs on itself: processes, files, the service manager.
//! - [`wire`] is what clients ask and what they are answered.
//! - [`store`] is what is written down, and which daemon leads.
//! - [`engines`] run jobs: as processes of this machine, on a Slurm cluster, under the caps of agents, or in a replay. Only
//!   they touch jobs' processes.
//! - [`control`] decides, and has the loop that commits each decision to the store before an engine acts.
//! - [`server`] is around it: the configuration, the socket, the log, and what puts everything together.

pub mod control;
pub mod engine;
pub mod engines;
pub mod host;
pub mod job;
#[cfg(test)]
mod patience;
pub mod server;
pub mod store;
pub mod wire;
