//! What has been: decisions and events, jobs that are over, what they took, and the power of the past.

pub(super) mod events;
pub(super) mod jobs;
pub(super) mod power;
pub(super) mod usage;
