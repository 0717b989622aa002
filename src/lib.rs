//! Busbar shares a fixed feed of watts among the jobs of an HPC machine.
//!
//! A **workload** is jobs in submit order; a **model** turns a job into a menu of operating points
//! (nodes, cap, time, power); a **policy** picks from menus; every pick goes through one
//! **ledger** that cannot be overdrawn. The same policies run in the simulator and live.
//!
//! The program, and the library behind it: [`experiment`] compares policies, [`report`] shows the results, [`cli`] is
//! the command line, and [`commands`] is the same for other programs. What they work with is in crates of their own,
//! which are here by their names, too:
//!
//! | crate | here | what it holds |
//! |---|---|---|
//! | `busbar-core` | [`policy`], [`world`], [`sim`] and the others | jobs, budgets, policies, the simulator |
//! | `busbar-workloads` | [`workload`] | logs, records and generators of workloads |
//! | `busbar-profiles` | [`profile`] | the database of application profiles |
//! | `busbar-papers` | [`reproduce`] | the papers' experiments, with their numbers beside ours |
//! | `busbar-live` | [`live`] | the daemon |
//! | `busbar-agent` | [`agent`] | the node agent |
//! | `busbar-slurm` | [`slurm`] | a Slurm cluster |
//! | `busbar-web` | [`web`] | the web page, its API and the metrics |

pub mod cli;
pub mod experiment;
pub mod report;

#[cfg(feature = "agent")]
pub use busbar_agent as agent;
#[cfg(feature = "live")]
pub(crate) use busbar_core::mixing;
pub use busbar_core::{
    availability, belief, budget, calendar, call, dispatch, freedom, heterogeneity, job, ledger,
    limits, machine, metrics, model, policy, prepared, priority, queue, scenario, sim, solve,
    structure, switching, tariff, tuning, units, utility, variation, world,
};
pub(crate) use busbar_core::{digits, parallel, rows, text};
#[cfg(feature = "live")]
pub use busbar_live as live;
pub use busbar_papers as reproduce;
#[cfg(feature = "slurm")]
pub use busbar_slurm as slurm;
#[cfg(feature = "web")]
pub use busbar_web as web;
pub use cli::commands;

/// What applications were measured to take and draw, predictions, and the database of both.
pub mod profile {
    pub use busbar_core::profile::*;
    pub use busbar_profiles::*;
}

/// Workloads: jobs in submit order, and where they come from.
pub mod workload {
    pub use busbar_core::workload::*;
    pub use busbar_workloads::*;
}
