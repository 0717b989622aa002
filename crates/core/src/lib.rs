//! The core of Busbar: jobs, power budgets, policies, and the simulator they are tried in.
//!
//! A **workload** is jobs in submit order; a **model** turns a job into a menu of operating points
//! (nodes, cap, time, power); a **policy** picks from menus; every pick goes through one
//! **ledger** that cannot be overdrawn. The same policies run in the simulator and live.
//!
//! A first simulation: two hundred jobs under EASY backfilling, on a machine that may draw
//! 80 % of what it could. How jobs run is a property of jobs and machine, the same for every policy.
//! Logs and generators of workloads are in the crate `busbar-workloads`.
//!
//! ```
//! use busbar_core::budget::BudgetSpec;
//! use busbar_core::job::Job;
//! use busbar_core::machine::Machine;
//! use busbar_core::policy::PolicySpec;
//! use busbar_core::prepared::{SharedWorld, Rules, PreparedWorkload};
//! use busbar_core::units::{Instant, Span};
//! use busbar_core::workload::Workload;
//! use busbar_core::world::Repertoire;
//!
//! // A job a minute, on 1 to 128 nodes: each asks for two hours and runs for one.
//! let jobs = (0..200).map(|number| {
//!     let submit = Instant::from_secs(60 * number);
//!     let asked = Job::new(u64::from(number), submit, 1 << (number % 8), Span::from_secs(7200));
//!     (asked, Span::from_secs(3600))
//! });
//! let workload = Workload::new("mine", jobs);
//!
//! let applications = Repertoire::BuiltIn;
//! let machine = applications.filled_in(&Machine::of_processors(256)?)?;
//! let budget = "80%".parse::<BudgetSpec>()?.resolve(&machine)?;
//! let prepared = PreparedWorkload::new(machine, workload, true);
//! let shared = SharedWorld::new(&prepared.machine, &prepared.workload, &applications, &Rules::default(), 1)?;
//! let policy: PolicySpec = "easy".parse()?;
//! let belief = shared.belief(&policy, &prepared.machine, prepared.workload.jobs())?;
//! let summary = prepared.in_shared_world(policy, budget, &shared, belief.as_ref()).run().summary;
//!
//! assert_eq!(summary.completed + summary.rejected, 200);
//! assert!(summary.peak_power_w <= 0.8 * 256.0 * 100.0);
//! assert_eq!(summary.violations, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stability
//!
//! The promise is what an author of a policy, an importer or a study needs: the items that the documentation shows.
//! They are kept, or their removal is announced: `public-api.txt` beside this crate lists them, and a test compares.
//! Hidden modules, such as those of the single policies, are public only because Busbar's other crates share them, and
//! promise nothing. A value of a hidden type that the documentation mentions can be passed on as it is.
//!
//! # Where things are
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | time, power and energy as exact integers; identities |
//! | [`utility`] | what tasks are worth, by when they are complete |
//! | [`heterogeneity`] | machines of several types, and what tasks take and draw on them |
//! | [`calendar`] | dates and times of day: conditions, rules, timetables, and which date a run's instants have |
//! | [`job`], [`machine`], [`budget`] | what users ask for, what there is, what it may draw |
//! | [`model`] | operating points, menus, how jobs respond |
//! | [`world`] | how long jobs really take and what they really draw |
//! | [`freedom`] | what may be done to a job |
//! | [`switching`] | when idle nodes are switched off |
//! | [`queue`] | the waiting jobs, indexed |
//! | [`ledger`] | what is held, and what is free |
//! | [`policy`] | who runs next, and how: what a policy of your own implements and sees |
//! | [`sim`] | the event loop |
//! | [`workload`] | jobs in submit order, with their real run times |
//! | [`profile`] | what applications were measured to take and draw, and predictions |
//! | [`variation`] | processors of one model that are not alike |
//! | [`metrics`] | what came of it, in figures |
//! | [`structure`] | what ties jobs to each other, and holds them back |
//! | [`fairshare`], [`priority`] | who has used how much of their share; what puts a job before others |
//! | [`prepared`], [`scenario`] | a workload made ready for a policy; a policy by its name, tried on it |

// What tests expect is near enough with any mathematical library.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

#[doc(hidden)]
pub mod availability;
#[doc(hidden)]
pub mod belief;
pub mod budget;
pub mod calendar;
pub mod call;
#[doc(hidden)]
pub mod digits;
#[doc(hidden)]
pub mod dispatch;
pub mod fairshare;
pub mod freedom;
pub mod heterogeneity;
pub mod job;
pub mod ledger;
#[doc(hidden)]
pub mod limits;
mod linear;
pub mod machine;
pub mod metrics;
#[doc(hidden)]
pub mod mixing;
pub mod model;
#[doc(hidden)]
pub mod parallel;
pub mod policy;
pub mod prepared;
pub mod priority;
pub mod profile;
pub mod queue;
#[doc(hidden)]
pub mod rows;
pub mod scenario;
pub mod seats;
pub mod sim;
#[doc(hidden)]
pub mod solve;
#[doc(hidden)]
pub mod spelling;
pub mod structure;
pub mod switching;
pub mod tariff;
#[doc(hidden)]
pub mod text;
#[doc(hidden)]
pub mod tuning;
pub mod units;
pub mod utility;
pub mod variation;
pub mod workload;
pub mod world;
