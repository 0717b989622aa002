//! The runs of an experiment, on whatever core is free.
//!
//! All runs that are compared with each other come one after the other, so that there is something to
//! show as early as possible: one workload, one number of nodes and one budget after the other.
//!
//! Cells that share a workload and a seed share the jobs in memory, from the first of them to the
//! last. A result that is in the cache is taken from there. That a policy has no use for a workload is not
//! a mistake: such cells end with the reason.

use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::calendar::Calendar;
use crate::experiment::cache::{Cache, Content, Hashed, Key};
use crate::experiment::checked::{Jobs, Loaded, Platform};
use crate::experiment::{Cell, CheckedExperiment};
use crate::metrics::Summary;
use crate::parallel::on_threads;
use crate::prepared::{PreparedWorkload, Rules, SharedWorld};
use crate::report::Absent;
use crate::report::digest::Digest;
use crate::scenario::Scenario;
use crate::sim::Stopped;

/// What came of one cell.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The run of the experiment.
    pub(crate) cell: Cell,
    /// The result.
    pub(crate) outcome: CellOutcome,
    /// Whether that was known before.
    pub(crate) reused: bool,
}

/// What came of a run, or why there was none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellOutcome {
    /// The run ended, with these figures.
    Ran(Finished),
    /// The policy cannot run on this workload, for this reason.
    CannotRun(String),
}

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Finished {
    /// The figures of the run.
    Figures(Box<Summary>),
    /// Its figures, and what pictures of it need.
    Pictures(Box<Digest>),
}

impl Finished {
    /// The figures of the run.
    pub(crate) fn summary(&self) -> &Summary {
        match self {
            Finished::Figures(summary) => summary,
            Finished::Pictures(digest) => &digest.summary,
        }
    }

    /// Whether it has what is wanted.
    fn serves(&self, pictures: bool) -> bool {
        !pictures || matches!(self, Finished::Pictures(_))
    }
}

/// How the runs of an experiment are carried out.
pub(crate) struct Manner<'a> {
    /// On this many threads. The results do not depend on it.
    pub(crate) threads: NonZeroUsize,
    /// Where results are kept, if anywhere.
    pub(crate) cache: Option<&'a Cache>,
    /// Whether to keep what pictures need, of the runs with the first seed.
    pub(crate) pictures: bool,
    /// Only some of the runs, if not all: the others count as runs that cannot be made.
    pub(crate) part: Option<Part>,
    /// Hears of each run.
    pub(crate) watch: &'a dyn Watch,
}

/// Every Nth run: those whose number leaves `place` when it is divided by `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Which of the parts, from 0.
    pub(crate) place: usize,
    /// How many parts there are.
    pub(crate) of: usize,
}

/// Hears of runs while others are still to come, from several threads at once.
pub trait Watch: Sync {
    /// A run begins.
    fn begun(&self, _cell: &Cell) {}

    /// A run is done, or cannot be done.
    fn done(&self, _tried: &Tried) {}

    /// Whether runs shall go on; asked now and then.
    fn goes_on(&self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Nobody who listens.
impl Watch for () {}

impl CellOutcome {
    /// The figures, if it ran.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        match self {
            CellOutcome::Ran(finished) => Some(finished.summary()),
            CellOutcome::CannotRun(_) => None,
        }
    }
}

/// What came of all cells.
#[derive(Debug)]
pub struct Results {
    /// In the order of [`Experiment::cells`](crate::experiment::Experiment::cells).
    pub(crate) tried: Vec<Tried>,
    /// Why some results could not be kept for the next time.
    pub(crate) not_kept: Option<io::Error>,
}

impl Results {
    /// How many results were there before.
    pub(crate) fn reused(&self) -> usize {
        self.tried.iter().filter(|tried| tried.reused).count()
    }
}

impl CheckedExperiment<'_> {
    /// What pictures need of the runs that have it, each with the words that tell it from the others.
    pub(crate) fn digests(&self, results: &Results) -> Vec<Digest> {
        let named = |tried: &Tried| {
            let CellOutcome::Ran(finished) = &tried.outcome else { return None };
            let Finished::Pictures(digest) = finished else { return None };
            let (budget, variant) = self.told_apart(&tried.cell);
            Some(Digest { budget, variant, ..(**digest).clone() })
        };
        results.tried.iter().filter_map(named).collect()
    }

    /// The figures of the same runs with other seeds, in the order of [`digests`](Self::digests).
    pub(crate) fn other_seeds(&self, results: &Results) -> Vec<Vec<Summary>> {
        let place = |cell: &Cell| (cell.workload, cell.size, cell.budget, cell.policy);
        let others = |tried: &Tried| {
            let CellOutcome::Ran(Finished::Pictures(_)) = &tried.outcome else { return None };
            let is_other = |other: &&Tried| {
                place(&other.cell) == place(&tried.cell) && other.cell.seed != tried.cell.seed
            };
            let others = results.tried.iter().filter(is_other);
            Some(others.filter_map(|other| other.outcome.summary().cloned()).collect())
        };
        results.tried.iter().filter_map(others).collect()
    }

    /// The policies that could not run, in the same words; with several seeds, each once.
    pub(crate) fn absent(&self, results: &Results) -> Vec<Absent> {
        let first = self.experiment.seeds.first();
        let named = |tried: &Tried| {
            let CellOutcome::CannotRun(reason) = &tried.outcome else { return None };
            let Cell { workload, policy, seed, .. } = tried.cell;
            let others = results.tried.iter().filter(|other| other.cell.workload == workload);
            let summary = others.filter_map(|other| other.outcome.summary()).next();
            let (budget, variant) = self.told_apart(&tried.cell);
            (first == Some(&seed)).then(|| Absent {
                policy: self.experiment.policies[policy].to_string(),
                workload: match summary {
                    Some(summary) => summary.workload.clone(),
                    None => self.experiment.workload_name(workload),
                },
                budget,
                variant,
                reason: reason.clone(),
            })
        };
        results.tried.iter().filter_map(named).collect()
    }

    /// A cell in words.
    pub(crate) fn described(&self, cell: &Cell) -> String {
        let (budget, nodes) = self.told_apart(cell);
        let workload = &self.experiment.workloads[cell.workload].value.text;
        let nodes = if nodes.is_empty() { nodes } else { format!(", {nodes}") };
        let (policy, seed) = (&self.experiment.policies[cell.policy], cell.seed);
        format!("{policy} on {workload}, budget {budget}{nodes}, seed {seed}")
    }

    /// The budget and the number of nodes of a cell in words.
    fn told_apart(&self, cell: &Cell) -> (String, String) {
        let budget = self.experiment.budget_name(cell.budget);
        let nodes = self.experiment.nodes.get(cell.size);
        (budget, nodes.map(|nodes| format!("{} nodes", nodes.value)).unwrap_or_default())
    }

    /// Runs all cells, but for those whose results are in the cache.
    pub(crate) fn run(&self, manner: &Manner<'_>) -> Results {
        let not_kept = Mutex::new(None);
        let work = |place: &usize| {
            let cell = &self.cells[*place];
            let is_elsewhere = |part: Part| *place % part.of != part.place;
            if manner.part.is_some_and(is_elsewhere) {
                let outcome = CellOutcome::CannotRun("another shard makes this run".to_owned());
                return (*place, Tried { cell: *cell, outcome, reused: false });
            }
            if manner.watch.goes_on().is_break() {
                let outcome = CellOutcome::CannotRun(Stopped::Interrupted.to_string());
                return (*place, Tried { cell: *cell, outcome, reused: false });
            }
            manner.watch.begun(cell);
            let jobs = &self.shelves[&self.shelf(cell)];
            let tried = match self.loaded(jobs, cell) {
                Ok(loaded) => self.try_cell(cell, &loaded, manner, &not_kept),
                Err(why) => {
                    Tried { cell: *cell, outcome: CellOutcome::CannotRun(why), reused: false }
                }
            };
            if jobs.wanted.fetch_sub(1, Ordering::Relaxed) == 1 {
                *locked(&jobs.loaded) = None;
            }
            manner.watch.done(&tried);
            (*place, tried)
        };
        let mut order: Vec<usize> = (0..self.cells.len()).collect();
        order.sort_by_key(|place| {
            let Cell { workload, size, budget, .. } = self.cells[*place];
            (workload, size, budget)
        });
        let mut tried = on_threads(manner.threads, &order, work, &|_, _| ());
        tried.sort_by_key(|(place, _)| *place);
        let tried = tried.into_iter().map(|(_, tried)| tried).collect();
        Results { tried, not_kept: not_kept.into_inner().unwrap_or_default() }
    }

    /// The jobs of a cell on its machine: as another cell has them, or read or drawn now.
    pub(super) fn loaded(&self, jobs: &Jobs, cell: &Cell) -> Result<Arc<Loaded>, String> {
        let mut kept = locked(&jobs.loaded);
        if let Some(loaded) = &*kept {
            return Ok(Arc::clone(loaded));
        }
        let platform = &self.platforms[cell.workload];
        let workload = self.draw(cell.workload, cell.seed).map_err(|why| why.to_string())?;
        let raises = !self.experiment.enforce_limits;
        let prepared = PreparedWorkload::new(platform.machine.clone(), workload, raises);
        let prepared = prepared.on(platform.sizes[cell.size].clone());
        let mut content = Content::default();
        content.add(&[&prepared.machine, &prepared.plain_machine, &platform.repertoire]);
        let workload = &prepared.workload;
        content.add(&[&workload.name(), &workload.jobs(), &workload.run_times()]);
        content.add(&[&workload.measured_powers()]);
        // Who had ended by when matters to what was known, and to nothing else.
        if workload.powers_known() > 0 {
            content.add(&[&workload.recorded_waits()]);
        }
        content.add(&[&workload.calendar().ok().map(Calendar::to_string)]);
        let loaded = Arc::new(Loaded { prepared, hash: content.hex() });
        *kept = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    fn try_cell(
        &self,
        cell: &Cell,
        loaded: &Loaded,
        manner: &Manner<'_>,
        not_kept: &Mutex<Option<io::Error>>,
    ) -> Tried {
        let pictures = manner.pictures && self.experiment.seeds.first() == Some(&cell.seed);
        let tried = self.with_scenario(cell, loaded, pictures, |scenario| {
            self.run_or_recall(cell, loaded, &scenario, manner, not_kept)
        });
        tried.unwrap_or_else(|why| {
            let outcome = CellOutcome::CannotRun(why);
            Tried { cell: *cell, outcome, reused: false }
        })
    }

    /// Lets something be done with the scenario of a cell, or says why there is none.
    pub(super) fn with_scenario<T>(
        &self,
        cell: &Cell,
        loaded: &Loaded,
        keep_power: bool,
        act: impl FnOnce(Scenario<'_>) -> T,
    ) -> Result<T, String> {
        let policy = &self.experiment.policies[cell.policy];
        let PreparedWorkload { machine, workload, .. } = &loaded.prepared;
        let Platform { repertoire, rules, budgets, .. } = &self.platforms[cell.workload];
        let shared = SharedWorld::new(machine, workload, repertoire, rules, cell.seed);
        let shared = shared.map_err(|why| why.to_string())?;
        let belief = shared.belief(policy, machine, workload.jobs());
        let belief = belief.map_err(|why| why.to_string())?;
        let windows = self.windows(cell, &workload.dates()).map_err(|why| why.to_string())?;
        let budget = budgets[cell.budget].clone();
        let scenario =
            loaded.prepared.in_shared_world(policy.clone(), budget, &shared, belief.as_ref());
        Ok(act(Scenario {
            windows,
            tariff: self.platforms[cell.workload].tariff.clone(),
            bsld_threshold: self.experiment.bsld_threshold,
            keep_power,
            outages: self.platforms[cell.workload].outages[cell.size].clone(),
            ..scenario
        }))
    }

    fn run_or_recall(
        &self,
        cell: &Cell,
        loaded: &Loaded,
        scenario: &Scenario<'_>,
        manner: &Manner<'_>,
        not_kept: &Mutex<Option<io::Error>>,
    ) -> Tried {
        let done = |outcome, reused| Tried { cell: *cell, outcome, reused };
        let pictures = scenario.keep_power;
        let rules = &self.platforms[cell.workload].rules;
        let key = |cache| (cache, key(cache, scenario, &loaded.hash, rules, cell.seed));
        let entry = manner.cache.filter(|_| scenario.policy.is_fixed()).map(key);
        let known: Option<Finished> = entry.as_ref().and_then(|(cache, key)| cache.find(key));
        if let Some(known) = known.filter(|known| known.serves(pictures)) {
            return done(CellOutcome::Ran(known), true);
        }
        let run = scenario.simulate_with(&mut |_| manner.watch.goes_on()).run;
        if let Some(stopped) = run.stopped {
            return done(CellOutcome::CannotRun(stopped.to_string()), false);
        }
        let summary = scenario.summary(&run);
        let finished = match pictures {
            true => {
                let subject = scenario.context(&summary.policy);
                Finished::Pictures(Box::new(Digest::of(&subject, &run, &summary)))
            }
            false => Finished::Figures(Box::new(summary)),
        };
        if let Some((cache, key)) = &entry
            && let Err(error) = cache.keep(key, &finished)
        {
            // The run itself is as good without it.
            locked(not_kept).get_or_insert(error);
        }
        done(CellOutcome::Ran(finished), false)
    }
}

/// The name of a scenario's result. All that the result depends on has to be in it.
fn key(cache: &Cache, scenario: &Scenario<'_>, prepared: &str, rules: &Rules, seed: u64) -> Key {
    let Scenario {
        machine: _,
        plain_machine: _,
        workload: _,
        policy,
        model: _,
        truth: _,
        // It is made from the jobs, the machine, the applications, the rules and the seed.
        world: _,
        freedoms: _,
        budget,
        guard,
        // The workload brings its site, and comparisons count no energy.
        site: _,
        energy: _,
        // They are made from the jobs and one of the rules.
        priorities: _,
        limits: _,
        outages,
        // It is one of the rules.
        switch_off: _,
        // It follows from the workload.
        power_accuracy: _,
        events,
        bsld_threshold,
        keep_power: _,
        tariff,
        windows,
    } = scenario;
    // A policy is what its text says: every parameter has a place in it.
    let policy = policy.to_string();
    let rest: [&dyn Hashed; 3] = [bsld_threshold, tariff, windows];
    let parts: [&dyn Hashed; 8] =
        [&prepared, rules, &policy, budget, guard, outages, events, &seed];
    cache.key(&[parts.as_slice(), &rest].concat())
}

/// A worker that panicked leaves what it held as it was; the others go on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
