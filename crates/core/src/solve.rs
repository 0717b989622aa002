//! Choosing one option for each of many entries so that the total value is largest, with nodes and
//! watts to share: the integer program at the heart of PARM (Sarood, Langer, Gupta and Kalé,
//! "Maximizing throughput of overprovisioned HPC data centers under a strict power budget", SC
//! 2014).
//!
//! [`knapsack`] is the program and its solver, and knows neither jobs nor policies. [`mod@file`] is
//! how a program is written down, for this solver (JSON) and for others (LP). [`random`] makes
//! programs up.
//!
//! [`ptune`] is about one job: its power shared among processors that are not alike.
//!
//! [`feeds`] shares watts among all nodes, where feeds above them carry only so much.

pub mod feeds;
pub mod file;
pub mod knapsack;
pub mod ptune;
pub mod random;
