//! What jobs run on: each module here is an [`Engine`](crate::engine::Engine).
//!
//! [`local`] runs jobs as processes of this machine, [`slurm`] on a Slurm cluster; `capped` puts agents around another
//! engine, which hold its nodes to the caps; [`replay`] replays the jobs of a simulation.

pub(crate) mod capped;
pub mod local;
pub mod replay;
pub mod slurm;
