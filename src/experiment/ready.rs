//! An experiment that was checked, and its runs.
//!
//! Everything that can be wrong with an experiment is found before the first run: workloads that
//! cannot be read, budgets that leave nothing. Only that a policy has no use for a workload is not a
//! mistake; such cells end with the reason.
//!
//! Cells that share a workload and a seed share the jobs in memory, from the first of them to the
//! last.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::experiment::cache::{Cache, Content, Key};
use crate::experiment::{Cell, Experiment, ExperimentError, Feed, Named, Place};
use crate::machine::Machine;
use crate::metrics::Summary;
use crate::parallel::on_threads;
use crate::policy::PolicySpec;
use crate::profile::Profile;
use crate::report::digest::Digest;
use crate::scenario::Scenario;
use crate::stage::{Stage, machine_of};
use crate::units::Watts;
use crate::workload::rmap::UsualTimes;
use crate::workload::{Given, Workload};

/// An experiment in which nothing is wrong.
pub struct Ready<'a> {
    /// What was asked for.
    pub experiment: &'a Experiment,
    profiles: &'a [Profile],
    usual: UsualTimes,
    grounds: Vec<Ground>,
    cells: Vec<Cell>,
    shelves: HashMap<Shelf, Jobs>,
}

/// What a workload runs on.
struct Ground {
    /// The machine that shares of the budget are of.
    machine: Machine,
    /// The same with each number of nodes.
    sizes: Vec<Machine>,
    budgets: Vec<Budget>,
}

/// Which jobs, as far as they differ between cells: workload, number of nodes, seed, and whether
/// estimates are raised.
type Shelf = (usize, usize, Option<u64>, bool);

/// Jobs that are there while some cell needs them.
#[derive(Default)]
struct Jobs {
    loaded: Mutex<Option<Arc<Loaded>>>,
    /// Cells that still need them.
    wanted: AtomicUsize,
}

struct Loaded {
    stage: Stage,
    /// Of the jobs and the machine, which may be long, and are the same for many cells.
    hash: String,
}

/// What came of one cell.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Which.
    pub cell: Cell,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether that was known before.
    pub reused: bool,
}

/// What came of a run, or why there was none.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran.
    Ran(Box<Finished>),
    /// The policy cannot run on this workload, for this reason.
    CannotRun(String),
}

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Finished {
    /// Its figures.
    Figures(Summary),
    /// Its figures, and what pictures of it need.
    Pictures(Digest),
}

impl Finished {
    /// Its figures.
    pub fn summary(&self) -> &Summary {
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
pub struct Manner<'a> {
    /// On so many threads. The results do not depend on it.
    pub threads: NonZeroUsize,
    /// Where results are kept, if anywhere.
    pub cache: Option<&'a Cache>,
    /// Whether to keep what pictures need, of the runs with the first seed.
    pub pictures: bool,
    /// Told how many runs are done, of how many.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Outcome {
    /// The figures, if it ran.
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Outcome::Ran(finished) => Some(finished.summary()),
            Outcome::CannotRun(_) => None,
        }
    }
}

/// What came of all cells.
#[derive(Debug)]
pub struct Results {
    /// In the order of [`Experiment::cells`].
    pub tried: Vec<Tried>,
    /// Why some results could not be kept for the next time.
    pub not_kept: Option<io::Error>,
}

impl Results {
    /// How many results were there before.
    pub fn reused(&self) -> usize {
        self.tried.iter().filter(|tried| tried.reused).count()
    }
}

impl<'a> Ready<'a> {
    /// Checks an experiment: reads every workload once, and works out what each budget means.
    /// `profiles` are by the number of the application.
    pub fn new(
        experiment: &'a Experiment,
        profiles: &'a [Profile],
    ) -> Result<Self, ExperimentError> {
        let sizes = experiment.nodes.len().max(1);
        let runs = [
            experiment.workloads.len(),
            experiment.seeds.len(),
            sizes,
            experiment.budgets.len(),
            experiment.policies.len(),
        ];
        let runs = runs.iter().try_fold(1usize, |product, count| product.checked_mul(*count));
        if runs.is_none_or(|runs| runs > Experiment::MOST_CELLS) {
            let most = Experiment::MOST_CELLS;
            return Err(Place::Option("--seeds").error(format!("that is more than {most} runs")));
        }
        let mut ready = Ready {
            experiment,
            profiles,
            usual: UsualTimes(profiles.iter().map(Profile::usual_times).collect()),
            grounds: Vec::new(),
            cells: experiment.cells(),
            shelves: HashMap::new(),
        };
        for place in 0..experiment.workloads.len() {
            let ground = ready.ground(place)?;
            ready.grounds.push(ground);
        }
        for cell in &ready.cells {
            let shelf = ready.shelf(cell);
            *ready.shelves.entry(shelf).or_default().wanted.get_mut() += 1;
        }
        Ok(ready)
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.cells.len()
    }

    /// The machine of a workload, with the nodes it has in these cells.
    pub fn machine(&self, workload: usize, size: usize) -> &Machine {
        &self.grounds[workload].sizes[size]
    }

    /// What a budget amounts to for a workload, if it is one limit.
    pub fn limit(&self, workload: usize, budget: usize) -> Option<Watts> {
        let budget = &self.grounds[workload].budgets[budget];
        let begin = crate::units::Instant::ZERO;
        let is_one = budget.is_limited() && budget.changes_after(begin).is_empty();
        is_one.then(|| budget.at(begin))
    }

    fn ground(&self, workload: usize) -> Result<Ground, ExperimentError> {
        let experiment = self.experiment;
        let load = &experiment.workloads[workload];
        let seed = experiment.seeds.first().copied().unwrap_or(1);
        let jobs = self.draw(workload, seed).map_err(|why| load.place.error(why))?;
        let machine = match self.named_machine(workload) {
            Some(machine) => machine,
            None => machine_of(&jobs).map_err(|why| load.place.error(why))?,
        };
        let sized = |nodes: &Named<u32>| {
            machine.with_nodes(nodes.value).map_err(|why| nodes.place.error(why))
        };
        let sizes = match &experiment.nodes[..] {
            [] => vec![machine.clone()],
            nodes => nodes.iter().map(sized).collect::<Result<_, _>>()?,
        };
        let resolved = |feed: &Named<Feed>| match &feed.value {
            Feed::Unlimited => Ok(Budget::unlimited()),
            Feed::Limited(budget) => budget.resolve(&machine).map_err(|why| feed.place.error(why)),
        };
        let budgets = experiment.budgets.iter().map(resolved).collect::<Result<_, _>>()?;
        Ok(Ground { machine, sizes, budgets })
    }

    /// The machine that a workload is made for, if it is known without it.
    fn named_machine(&self, workload: usize) -> Option<Machine> {
        let source = &self.experiment.workloads[workload].value.source;
        let named = self.experiment.machine.as_ref().map(|named| named.value.machine.clone());
        named.or_else(|| source.needs_applications().then(Machine::cab))
    }

    /// The jobs of a workload, as they are read or drawn.
    fn draw(
        &self,
        workload: usize,
        seed: u64,
    ) -> Result<Workload, Box<dyn std::error::Error + Send + Sync>> {
        let machine = self.named_machine(workload);
        let given = Given {
            processors: machine.as_ref().map(Machine::processors),
            processors_per_node: machine.as_ref().map_or(1, |machine| machine.processors_per_node),
            seed: Some(seed),
            usual: Some(&self.usual),
            ..Given::default()
        };
        let mut jobs = self.experiment.workloads[workload].value.source.load(&given)?.workload;
        if let Some(wanted) = &self.experiment.jobs {
            let usable = jobs.jobs().len();
            if wanted.start >= usable {
                let from = wanted.start;
                return Err(format!("the jobs from {from} on are none: there are {usable}").into());
            }
            jobs.slice(wanted.clone());
        }
        Ok(jobs)
    }

    fn shelf(&self, cell: &Cell) -> Shelf {
        let policy = &self.experiment.policies[cell.policy];
        let source = &self.experiment.workloads[cell.workload].value.source;
        let seed = source.heeds_seed().then_some(cell.seed);
        // Where profiles say how long jobs run, the log's run times are nobody's estimates.
        let raises = !self.experiment.enforce_limits && !policy.uses_profiles();
        (cell.workload, cell.size, seed, raises)
    }

    /// What pictures need of the runs that have it, each with the words that tell it from the others.
    pub fn digests(&self, results: &Results) -> Vec<Digest> {
        let named = |tried: &Tried| {
            let Outcome::Ran(finished) = &tried.outcome else { return None };
            let Finished::Pictures(digest) = &**finished else { return None };
            let budget = self.experiment.budgets[tried.cell.budget].value.to_string();
            let variant = match self.experiment.nodes.get(tried.cell.size) {
                Some(nodes) => format!("{} nodes", nodes.value),
                None => String::new(),
            };
            Some(Digest { budget, variant, ..digest.clone() })
        };
        results.tried.iter().filter_map(named).collect()
    }

    /// Runs all cells, but for those whose results are in the cache.
    pub fn run(&self, manner: &Manner<'_>) -> Results {
        let not_kept = Mutex::new(None);
        let work = |cell: &Cell| {
            let jobs = &self.shelves[&self.shelf(cell)];
            let tried = match self.loaded(jobs, cell) {
                Ok(loaded) => self.try_cell(cell, &loaded, manner, &not_kept),
                Err(why) => Tried { cell: *cell, outcome: Outcome::CannotRun(why), reused: false },
            };
            if jobs.wanted.fetch_sub(1, Ordering::Relaxed) == 1 {
                *locked(&jobs.loaded) = None;
            }
            tried
        };
        let tried = on_threads(manner.threads, &self.cells, work, manner.progress);
        Results { tried, not_kept: not_kept.into_inner().unwrap_or_default() }
    }

    /// The jobs of a cell on its machine: as another cell has them, or read or drawn now.
    fn loaded(&self, jobs: &Jobs, cell: &Cell) -> Result<Arc<Loaded>, String> {
        let mut kept = locked(&jobs.loaded);
        if let Some(loaded) = &*kept {
            return Ok(Arc::clone(loaded));
        }
        let ground = &self.grounds[cell.workload];
        let (_, _, _, raises) = self.shelf(cell);
        let workload = self.draw(cell.workload, cell.seed).map_err(|why| why.to_string())?;
        let stage = Stage::new(ground.machine.clone(), workload, raises);
        let stage = stage.on(ground.sizes[cell.size].clone());
        let mut content = Content::default();
        content.add_text(&format!("{:?} {:?}", stage.machine, stage.plain_machine));
        content.add_text(stage.workload.name());
        content.add_list(stage.workload.jobs());
        content.add_list(stage.workload.run_times());
        let loaded = Arc::new(Loaded { stage, hash: content.hex() });
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
        let policy = self.experiment.policies[cell.policy];
        let done = |outcome, reused| Tried { cell: *cell, outcome, reused };
        let stage = &loaded.stage;
        let budget = self.grounds[cell.workload].budgets[cell.budget].clone();
        let models = match stage.models(&policy, self.profiles, None) {
            Ok(models) => models,
            Err(why) => return done(Outcome::CannotRun(why.to_string()), false),
        };
        let scenario = match stage.scenario(policy, budget, models.as_ref(), self.profiles) {
            Ok(scenario) => scenario,
            Err(why) => return done(Outcome::CannotRun(why.to_string()), false),
        };
        let pictures = manner.pictures && self.experiment.seeds.first() == Some(&cell.seed);
        let scenario = Scenario {
            seed: cell.seed,
            bsld_threshold: self.experiment.bsld_threshold,
            keep_power: pictures,
            ..scenario
        };
        let entry = manner.cache.map(|cache| (cache, key(cache, &scenario, &loaded.hash, &models)));
        let known: Option<Finished> = entry.as_ref().and_then(|(cache, key)| cache.find(key));
        if let Some(known) = known.filter(|known| known.serves(pictures)) {
            return done(Outcome::Ran(Box::new(known)), true);
        }
        let trial = scenario.run();
        let finished = match pictures {
            true => {
                let subject = scenario.subject(&trial.summary.policy);
                Finished::Pictures(Digest::of(&subject, &trial.run, &trial.summary))
            }
            false => Finished::Figures(trial.summary),
        };
        if let Some((cache, key)) = &entry
            && let Err(error) = cache.keep(key, &finished)
        {
            // The run itself is as good without it.
            locked(not_kept).get_or_insert(error);
        }
        done(Outcome::Ran(Box::new(finished)), false)
    }
}

/// The name of a scenario's result. All that the result depends on has to be in it.
fn key(
    cache: &Cache,
    scenario: &Scenario<'_>,
    stage: &str,
    models: &Option<crate::stage::Models>,
) -> Key {
    let Scenario {
        machine: _,
        plain_machine: _,
        workload: _,
        policy,
        model: _,
        truth: _,
        budget,
        outages,
        events,
        seed,
        bsld_threshold,
        keep_power: _,
    } = scenario;
    let seed = PolicySpec::heeds_seed(policy).then_some(seed);
    cache.key(&[&stage, models, policy, budget, outages, events, &seed, bsld_threshold])
}

/// A worker that panicked leaves what it held as it was; the others go on.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
