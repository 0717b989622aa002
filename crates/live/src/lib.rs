//! The daemon: the same policies and the same ledger as in the simulator, for real jobs.
//!
//! A [`daemon`] observes, decides and acts. Events and requests go to a [`controller`], which decides what
//! follows; that is written to the [`store`]; and only then an [`Engine`] acts. [`local`] runs jobs as
//! processes of this machine, [`slurm`] on a Slurm cluster, [`replay`] replays those of a simulation. Only an engine touches processes.
//!
//! [`job`] is what is kept of each job, and [`array`](mod@array) how one submission becomes many jobs. [`wire`] holds
//! the requests and answers that go over the [`socket`], or through a [`door`] beside it, and [`requester`] who makes them; [`answers`] and [`forecast`] make the answers. [`finished`] is about jobs that are over, in lists and in sums. [`config`] is the
//! configuration file and [`setup`] the machine, policy and rules that follow from it. [`schedule`] holds
//! limits by the wall clock, [`active_budget`] the limits in force. [`clock`] is the daemon's own clock,
//! [`log`] its log. [`serve`] puts
//! everything together.

pub mod active_budget;
pub mod answers;
pub mod array;
pub mod capped;
pub mod clock;
pub mod config;
pub mod controller;
pub mod daemon;
pub mod decider;
pub mod door;
pub mod engine;
mod file_identity;
pub mod finished;
pub mod forecast;
pub mod instance;
pub mod job;
mod latest;
pub mod local;
pub mod log;
mod lookups;
pub mod past;
#[cfg(test)]
mod patience;
pub mod replay;
pub mod requester;
pub mod schedule;
mod scheduler;
pub mod serve;
pub mod service;
pub mod setup;
pub mod slurm;
pub mod socket;
pub mod store;
pub mod tuning;
pub mod users;
pub mod wire;

pub use engine::{
    Allotment, AtOnce, Attempt, End, Engine, EngineError, Found, Immediate, Launch, Signal,
};
