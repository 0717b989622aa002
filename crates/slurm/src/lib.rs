//! A Slurm cluster, as Busbar sees it: what runs there, and what can be done about it.
//!
//! From the inside out:
//!
//! - [`hosts`] and [`tasks`] are Slurm's ways to write many nodes and many array elements in one word,
//!   [`words`] is what a user tells Busbar in a job's comment, [`version`] is a Slurm version and what it
//!   can do.
//! - [`calls`] is the list of all calls of Slurm's programs, and [`record`] keeps what they print.
//! - [`listing`] is what was read of many things, with what could not be read.
//! - [`model`] is nodes, partitions, jobs, licences and reservations, whichever way they were read:
//!   [`text`] reads what commands print, [`json`] what commands print with `--json` and what slurmrestd
//!   answers.
//! - [`program`] runs one Slurm program within a time. [`commands`] is a cluster through its commands,
//!   [`rest`] one through slurmrestd; both are a [`Cluster`](cluster::Cluster).
//! - [`setup`] prints what a site must install, [`check`] says what is missing there, [`release_all`]
//!   gives everything back to Slurm.
//! - [`site`] is which nodes and partitions a site has, from what Slurm prints or from its configuration.
//! - [`priorities`] is who has which share of it, and what puts jobs before others, from what Slurm prints.
//! - [`lab`] is a private Slurm on this machine, for tests and demonstrations.
//!
//! The crate depends on no other part of Busbar. It takes no decisions.

pub mod calls;
pub mod check;
pub mod cluster;
pub mod commands;
pub mod error;
pub mod hosts;
pub mod json;
pub mod lab;
pub mod listing;
pub mod model;
pub mod parts;
pub mod priorities;
pub mod program;
pub mod record;
pub mod release_all;
pub mod rest;
pub mod setup;
pub mod site;
pub mod tasks;
pub mod text;
pub mod unread;
pub mod version;
pub mod words;
