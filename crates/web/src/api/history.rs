//! The history: decisions and events, finished jobs, their energy, and the past power.

pub(super) mod events;
pub(super) mod jobs;
pub(super) mod power;
pub(super) mod usage;
