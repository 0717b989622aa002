//! The integration tests, one binary.

mod adversarial;
mod agreement;
mod browser;
mod cli;
mod docs;
mod experiment;
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
