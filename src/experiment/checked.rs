//! An experiment that was checked.
//!
//! Everything that can be wrong with an experiment is found before the first run: workloads that
//! cannot be read, budgets that leave nothing.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use crate::budget::{Budget, BudgetSpec, WindowSpec};
use crate::calendar::{NoCalendar, RunDates, Windows};
use crate::experiment::{Cell, Experiment, ExperimentError, Named, Place};
use crate::freedom::Freedoms;
use crate::job::Job;
use crate::machine::Machine;
use crate::prepared::{
    Demand, PreparedWorkload, Rules, leaves_nothing, limits_nothing, machine_of, measured_power,
    outdoor_mistake, predicted_power,
};
use crate::profile::Profile;
use crate::sim::Outages;
use crate::tariff::{Currency, Tariff};
use crate::units::{Instant, Watts};
use crate::workload::rmap::UsualTimes;
use crate::workload::{SourceDefaults, Workload};
use crate::world::{Names, Repertoire};

/// An experiment in which nothing is wrong.
pub(crate) struct CheckedExperiment<'a> {
    /// The requested value.
    pub(crate) experiment: &'a Experiment,
    /// The applications that have profiles.
    profiled: Repertoire,
    usual: UsualTimes,
    pub(super) platforms: Vec<Platform>,
    pub(super) cells: Vec<Cell>,
    pub(super) shelves: HashMap<Shelf, Jobs>,
}

/// What a workload runs on.
pub(super) struct Platform {
    /// Which applications its jobs may run.
    pub(super) repertoire: Repertoire,
    /// What policies may do and believe, and which applications executables are.
    pub(super) rules: Rules,
    /// The machine as somebody described it.
    pub(super) said: Machine,
    /// The machine that shares of the budget are of.
    pub(super) machine: Machine,
    /// The same with each number of nodes.
    pub(super) sizes: Vec<Machine>,
    pub(super) budgets: Vec<Budget>,
    /// The dates of its instants, as far as they are known.
    dates: RunDates,
    /// What energy costs, and what is emitted for it.
    pub(super) tariff: Tariff,
    /// What its jobs ask of the machine, with the first seed.
    demand: Demand,
    /// What was measured of the power of its jobs and how far off predictions of it are, a sentence for each.
    pub(super) power: Vec<String>,
    /// That these are the jobs of some partitions only, or of several together.
    pub(super) partitions: Option<String>,
    /// What a reader should know of the jobs, and of their machine if nobody named one.
    pub(super) remarks: Vec<String>,
    /// That the file of applications names none of its jobs, if it is so.
    names_nobody: Option<String>,
    /// Which nodes fail when, for each number of nodes.
    pub(super) outages: Vec<Outages>,
    /// The parts of the time that have figures of their own, where they are those of another experiment.
    windows: Option<Windows>,
}

/// Which jobs, as far as they differ between cells: workload, number of nodes and seed. Jobs that depend on the seed are drawn again for each budget: budgets come one
/// after the other, and until the last of them the jobs of all seeds would have to be kept.
pub(super) type Shelf = (usize, usize, Option<(u64, usize)>);

/// Jobs that are there while some cell needs them.
#[derive(Default)]
pub(super) struct Jobs {
    pub(super) loaded: Mutex<Option<Arc<Loaded>>>,
    /// Cells that still need them.
    pub(super) wanted: AtomicUsize,
}

pub(super) struct Loaded {
    pub(super) prepared: PreparedWorkload,
    /// Of the jobs, the machine and the applications, which may be long, and are the same for many cells.
    pub(super) hash: String,
}

/// The first of these that has come before.
pub(super) fn repeated<T: PartialEq>(items: &[T]) -> Option<&T> {
    let has_come = |(place, item): &(usize, &T)| items[..*place].contains(item);
    items.iter().enumerate().find(has_come).map(|(_, item)| item)
}

impl<'a> CheckedExperiment<'a> {
    /// Checks an experiment: reads every workload once, and works out what each budget means.
    /// `profiles` are by the number of the application.
    pub(crate) fn new(
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
        if let Some(policy) = repeated(&experiment.policies) {
            let why = format!("'{policy}' is given twice; keep one");
            return Err(Place::Option("--policy").error(why));
        }
        let mut checked = CheckedExperiment {
            experiment,
            profiled: Repertoire::of(profiles),
            usual: UsualTimes(profiles.iter().map(Profile::usual_times).collect()),
            platforms: Vec::new(),
            cells: experiment.cells(),
            shelves: HashMap::new(),
        };
        for place in 0..experiment.workloads.len() {
            let platform = checked.platform(place)?;
            checked.platforms.push(platform);
        }
        for cell in &checked.cells {
            let shelf = checked.shelf(cell);
            *checked.shelves.entry(shelf).or_default().wanted.get_mut() += 1;
        }
        Ok(checked)
    }

    /// All runs, in the order of their results.
    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The machine of a workload, with the nodes it has in these cells.
    pub(crate) fn machine(&self, workload: usize, size: usize) -> &Machine {
        &self.platforms[workload].sizes[size]
    }

    /// What a budget amounts to for a workload, if it is one limit.
    pub(crate) fn limit(&self, workload: usize, budget: usize) -> Option<Watts> {
        let budget = &self.platforms[workload].budgets[budget];
        let begin = Instant::ZERO;
        let is_one = budget.is_limited() && budget.changes_after(begin).is_empty();
        is_one.then(|| budget.at(begin))
    }

    /// The currency of all costs, if anything has a price.
    pub(crate) fn currency(&self) -> Option<Currency> {
        self.platforms.iter().find_map(|platform| platform.tariff.currency())
    }

    /// The parts of a cell's time that have figures of their own.
    pub(super) fn windows(
        &self,
        cell: &Cell,
        dates: &RunDates,
    ) -> Result<Option<Windows>, NoCalendar> {
        let platform = &self.platforms[cell.workload];
        if let Some(windows) = &platform.windows {
            return Ok(Some(windows.clone()));
        }
        let budget = &platform.budgets[cell.budget];
        let windows = self.experiment.window.as_ref();
        windows.map(|window| window.resolve(budget, dates)).transpose()
    }

    /// The same runs with figures for the parts of the time that another experiment has under its first budget. What
    /// happens in its cuts can then be compared with what happens at those times without them.
    pub(crate) fn measured_with(mut self, other: &CheckedExperiment<'_>) -> Result<Self, String> {
        for (workload, platform) in self.platforms.iter_mut().enumerate() {
            let seed = other.experiment.seeds.first().copied().unwrap_or(1);
            let cell = Cell { workload, size: 0, budget: 0, policy: 0, seed };
            let windows = other.windows(&cell, &other.platforms[workload].dates);
            platform.windows = windows.map_err(|why| why.to_string())?;
        }
        Ok(self)
    }

    /// A budget as it is for a workload.
    pub(crate) fn budget(&self, workload: usize, budget: usize) -> &Budget {
        &self.platforms[workload].budgets[budget]
    }

    /// The dates of a workload, as far as they are known.
    pub(crate) fn dates(&self, workload: usize) -> &RunDates {
        &self.platforms[workload].dates
    }

    /// The jobs of a workload with the first seed, on whole nodes of its machine.
    pub(crate) fn jobs(&self, workload: usize) -> Result<Workload, String> {
        let seed = self.experiment.seeds.first().copied().unwrap_or(1);
        let mut jobs = self.draw(workload, seed).map_err(|why| why.to_string())?;
        jobs.pack_processors(self.platforms[workload].machine.processors_per_node);
        Ok(jobs)
    }

    /// What the jobs of a workload ask of its machine, with the first seed.
    pub(crate) fn demand(&self, workload: usize) -> Demand {
        self.platforms[workload].demand
    }

    /// What a reader should know of where the jobs of a workload come from, and their machine if nobody named one.
    pub(crate) fn remarks(&self, workload: usize) -> &[String] {
        &self.platforms[workload].remarks
    }

    /// What is more likely a mistake than a plan, and what a reader should know of the jobs, a sentence for each thing.
    pub(crate) fn notes(&self) -> Vec<String> {
        let budgets = &self.experiment.budgets;
        let mut said: Vec<String> =
            budgets.iter().flat_map(|budget| budget.value.doubts()).collect();
        for (workload, platform) in self.platforms.iter().enumerate() {
            let name = self.experiment.workload_name(workload);
            said.extend(platform.remarks.iter().map(|remark| match self.platforms.len() {
                1 => remark.clone(),
                _ => format!("{name}: {remark}"),
            }));
            // Other numbers of nodes were asked for.
            if self.experiment.nodes.is_empty() {
                let larger = platform.demand.larger_machine(&platform.machine);
                said.extend(larger.map(|larger| format!("{name}: {larger}")));
            }
            let is_met = |budget: &usize| {
                let all = platform.sizes.iter().zip(&platform.outages);
                let met = |(size, outages): (&Machine, &Outages)| {
                    outages.is_empty()
                        && size.kinds.is_none()
                        && platform.demand.is_always_met(size, &platform.budgets[*budget])
                };
                all.into_iter().any(met)
            };
            for (place, budget) in platform.budgets.iter().enumerate() {
                let sizes = platform.sizes.iter().map(|size| limits_nothing(size, budget));
                let nothing = sizes.collect::<Option<Vec<String>>>().unwrap_or_default();
                let under = format!("{name}, budget {}", self.experiment.budget_name(place));
                said.extend(nothing.last().map(|nothing| format!("{under}: {nothing}")));
            }
            said.extend(platform.names_nobody.iter().map(|nobody| format!("{name}: {nobody}")));
            let budgets = (0..platform.budgets.len()).filter(is_met);
            let budgets: Vec<String> =
                budgets.map(|budget| self.experiment.budget_name(budget)).collect();
            if !budgets.is_empty() {
                let under = format!("{name}, budget {}: ", budgets.join(", "));
                said.push(platform.demand.never_waits(&under));
            }
        }
        said
    }

    /// What a policy makes use of: what it wants, as far as that is allowed.
    pub(crate) fn freedoms(&self, policy: usize) -> Freedoms {
        self.experiment.policies[policy].wants() & self.experiment.rules.allow
    }

    fn platform(&self, workload: usize) -> Result<Platform, ExperimentError> {
        let experiment = self.experiment;
        let load = &experiment.workloads[workload];
        let seed = experiment.seeds.first().copied().unwrap_or(1);
        let jobs = self.draw(workload, seed).map_err(|why| load.place.error(why))?;
        let (machine, remarks) = match self.named_machine(workload) {
            // What is to be said of it was said when its file was read.
            Some(machine) => (machine, Vec::new()),
            None => {
                let machine = machine_of(&jobs).map_err(|why| load.place.error(why))?;
                let remarks = machine.remarks.clone();
                (machine, remarks)
            }
        };
        let repertoire = match experiment.is_profiled(workload) {
            true => self.profiled.clone(),
            false => Repertoire::BuiltIn,
        };
        let mut rules = experiment.rules.clone();
        if let Some(named) = &experiment.applications {
            let names = Names::read(&named.value, &repertoire.names(&machine));
            rules.names = Some(Arc::new(names.map_err(|why| named.place.error(why))?));
        }
        let said = machine;
        let machine = repertoire.filled_in(&said).map_err(|why| load.place.error(why))?;
        let sized = |nodes: &Named<u32>| {
            machine.with_nodes(nodes.value).map_err(|why| nodes.place.error(why))
        };
        let sizes = match &experiment.nodes[..] {
            [] => vec![machine.clone()],
            nodes => nodes.iter().map(sized).collect::<Result<_, _>>()?,
        };
        let dates = jobs.dates();
        let resolved = |budget: &Named<BudgetSpec>| {
            budget.value.resolve_on(&machine, &dates).map_err(|why| budget.place.error(why))
        };
        let budgets: Vec<Budget> =
            experiment.budgets.iter().map(resolved).collect::<Result<_, _>>()?;
        let guard = experiment.rules.guard;
        for (at, size) in sizes.iter().enumerate() {
            for (budget, feed) in budgets.iter().zip(&experiment.budgets) {
                if let Some(why) = leaves_nothing(&budget.lowered(guard), size) {
                    let place = experiment.nodes.get(at).map_or(&feed.place, |nodes| &nodes.place);
                    return Err(place
                        .error(format!("{why}; give more, or fewer nodes, or a smaller guard")));
                }
            }
        }
        let submitted = |job: Option<&Job>| job.map_or(Instant::ZERO, |job| job.submit);
        let [first, last] = [jobs.jobs().first(), jobs.jobs().last()].map(submitted);
        let tariff = experiment.tariff.resolve(&dates, first, last);
        let tariff = tariff.map_err(|why| load.place.error(why))?;
        if let Some(why) = outdoor_mistake(&machine, &tariff) {
            let place = experiment.machine.as_ref().map_or(&load.place, |named| &named.place);
            return Err(place.error(why));
        }
        if let Some(WindowSpec::When(_)) = &experiment.window {
            dates.calendar.as_ref().map_err(|why| load.place.error(why.clone()))?;
        }
        let demand = Demand::of(&jobs, &machine);
        let fails = |size: &Machine| match &experiment.outages {
            Some(named) => {
                size.clone().of_one_kind().map_err(|why| named.place.error(why))?;
                Outages::from_file(&named.value, size.nodes).map_err(|why| named.place.error(why))
            }
            None => Ok(Outages::default()),
        };
        let outages = sizes.iter().map(fails).collect::<Result<_, _>>()?;
        let remarks = jobs.remarks().iter().cloned().chain(remarks).collect();
        let names_nobody = rules.names_nobody(jobs.jobs());
        // Before jobs are on their machine, it is not known on how many nodes they were measured.
        let prepared = PreparedWorkload::new(machine.clone(), jobs, !experiment.enforce_limits);
        let partitions = prepared.workload.about_partitions();
        let measured = measured_power(&prepared).into_iter();
        let power = measured.chain(predicted_power(&prepared, &rules)).collect();
        Ok(Platform {
            repertoire,
            rules,
            said,
            machine,
            sizes,
            budgets,
            dates,
            tariff,
            demand,
            power,
            partitions,
            remarks,
            names_nobody,
            outages,
            windows: None,
        })
    }

    /// The machine that a workload is made for, if it is known without it.
    fn named_machine(&self, workload: usize) -> Option<Machine> {
        let source = &self.experiment.workloads[workload].value.source;
        let named = self.experiment.machine.as_ref().map(|named| named.value.machine.clone());
        named.or_else(|| source.needs_applications().then(Machine::cab))
    }

    /// The jobs of a workload, as they are read or drawn.
    pub(super) fn draw(
        &self,
        workload: usize,
        seed: u64,
    ) -> Result<Workload, Box<dyn std::error::Error + Send + Sync>> {
        let machine = self.named_machine(workload);
        let given = SourceDefaults {
            processors: machine.as_ref().map(Machine::processors),
            processors_per_node: machine.as_ref().map_or(1, |machine| machine.processors_per_node),
            seed: Some(seed),
            usual: Some(&self.usual),
            partitions: &self.experiment.partitions,
            ..SourceDefaults::default()
        };
        let mut jobs = self.experiment.workloads[workload].value.source.load(&given)?.workload;
        if let Some(wanted) = &self.experiment.jobs {
            let usable = jobs.jobs().len();
            if wanted.start >= usable {
                let from = wanted.start;
                return Err(
                    format!("there are no jobs from {from} on: the workload has {usable}").into()
                );
            }
            jobs.slice(wanted.clone());
        }
        if self.experiment.at_once {
            jobs = jobs.at_once();
        }
        Ok(match &self.experiment.start {
            Some(start) => jobs.dated(Ok(start.clone())),
            None => jobs,
        })
    }

    pub(super) fn shelf(&self, cell: &Cell) -> Shelf {
        let source = &self.experiment.workloads[cell.workload].value.source;
        let seed = source.heeds_seed().then_some((cell.seed, cell.budget));
        (cell.workload, cell.size, seed)
    }
}
