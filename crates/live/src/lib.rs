//! Live: the same policies and the same ledger, steering real jobs.
//!
//! A [`daemon`] observes, decides and acts: what happened and what clients ask for goes to a
//! [`controller`], which says what follows; that is written to the [`store`]; and only then an
//! [`Engine`] acts. [`local`] runs jobs as processes of this machine, [`replay`] plays a simulation's.
//! Nothing but an engine touches a process.
//!
//! [`job`] is what is kept of each job, [`array`](mod@array) how one submission becomes many, [`wire`] what clients say over the [`socket`], [`answers`] and
//! [`forecast`] what they are told. [`config`] says how a daemon is to work, [`setup`] is what comes of
//! that, [`schedule`] what may be drawn by the clock on the wall, [`feed`] what may be drawn now;
//! [`clock`] is the daemon's own, and [`log`] what it says. [`custody`] is which folders it relies on. [`serve`] puts it all together.

pub mod active_budget;
pub mod answers;
pub mod array;
pub mod clock;
pub mod config;
pub mod controller;
pub mod daemon;
pub mod decider;
pub mod engine;
pub mod forecast;
pub mod job;
pub mod local;
pub mod log;
mod lookups;
pub mod replay;
pub mod schedule;
mod scheduler;
pub mod serve;
pub mod service;
pub mod setup;
pub mod socket;
pub mod store;
pub mod trusted_folder;
pub mod users;
pub mod wire;

pub use engine::{Allotment, Attempt, End, Engine, EngineError, Found, Launch, Signal};
