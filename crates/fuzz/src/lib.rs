//! Feeds damaged input to every parser of Busbar: it must read or refuse what it gets, in reasonable time, and never panic.
//!
//! `tests/seconds.rs` runs each target a few thousand times with every `cargo test`, so that no target is forgotten when a
//! parser changes. The program does it for as long as one likes:
//!
//! ```text
//! cargo run --profile test -p busbar-fuzz -- --minutes 60
//! cargo run --profile test -p busbar-fuzz -- swf machine-file --runs 1000000
//! ```
//!
//! A target is a name, examples to begin with and a function: [`targets::TARGETS`]. Examples are the files of the tests, and a
//! few lines of each format. [`engine`] damages them, again and again, and keeps what a parser answered in a new way.
//!
//! It is made by hand because it has to run on stable Rust without another tool: `bolero` gives a parser random bytes there,
//! which hardly one of ours takes for the beginning of anything, and its mutating engines need a program of their own.

pub mod engine;
pub mod examples;
pub mod targets;
