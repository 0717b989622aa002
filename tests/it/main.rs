//! The integration tests, one binary.

mod adversarial;
mod agreement;
mod cli;
mod guided;
mod layering;
mod parm;
mod plain;
mod ppartition;
mod profile;
mod rmap;
mod solve;
mod traces;
mod utility;
