//! What decides: the loop, the state machine that it drives, and what both work with.
//!
//! The [`daemon`] is the loop: it observes, has the [`controller`] decide, commits that to the
//! [`store`](crate::store), and only then lets the [`engine`](crate::engine) act. The controller asks the policy through the
//! `scheduler`, in which jobs are as a policy sees them. [`setup`] is the machine, the policy and the rules of the site, [`decider`] the policy
//! with what it believes. [`schedule`] holds limits by the wall clock, [`active_budget`] the limits in force, [`clock`] is the
//! daemon's own time. [`answers`], [`forecast`] and `lookups` make the answers of clients' questions, [`past`] and [`tuning`]
//! replay what has been.

pub mod active_budget;
pub mod answers;
pub mod clock;
pub mod controller;
pub mod daemon;
pub mod decider;
pub mod forecast;
mod limited;
mod lookups;
pub mod past;
pub mod schedule;
mod scheduler;
pub mod setup;
pub mod tuning;
