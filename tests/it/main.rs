//! The integration tests, one binary.

// What tests expect is near enough with any mathematical library.
#![allow(clippy::disallowed_methods)]

mod adversarial;
#[cfg(all(feature = "agent", feature = "live"))]
mod agent;
mod agreement;
mod bombs;
mod browser;
mod calendar;
mod cli;
#[cfg(feature = "live")]
mod commands;
mod compatible;
#[cfg(feature = "web")]
mod dashboard;
mod devtools;
mod docs;
mod experiment;
mod external;
#[cfg(feature = "live")]
mod fairness;
#[cfg(feature = "live")]
mod faults;
mod feeds;
mod files;
mod frozen;
mod gangs;
mod guarantees;
mod guided;
#[cfg(feature = "live")]
mod handover;
mod kinds;
mod layering;
#[cfg(feature = "live")]
mod live_order;
#[cfg(feature = "live")]
mod local;
mod measured;
mod one_world;
mod packages;
mod parm;
mod patience;
mod plain;
mod plan;
mod ppartition;
mod profile;
mod program;
mod public;
mod recaps;
mod rmap;
mod shards;
mod share;
#[cfg(feature = "slurm")]
mod site;
#[cfg(all(feature = "agent", feature = "slurm"))]
mod slurm;
mod solve;
mod traces;
mod utility;
#[cfg(feature = "web")]
mod web;
mod whatif;
