//! What the figures of an experiment rest on that nobody measured.

use crate::experiment::{Ready, Tried};
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::stage;
use crate::workload::Source;

/// What is assumed in these runs, a sentence for each thing.
pub fn assumptions(ready: &Ready<'_>, tried: &[Tried]) -> Vec<String> {
    let experiment = ready.experiment;
    let workloads = || 0..experiment.workloads.len();
    let mut said: Vec<String> = Vec::new();
    for workload in workloads().filter(|workload| experiment.shares_ground(*workload)) {
        let assumed = stage::assumed(&ready.grounds[workload].said, &ready.rules);
        said.extend(assumed.into_iter().filter(|text| !said.contains(text)).collect::<Vec<_>>());
    }
    let apart = || workloads().filter(|workload| !experiment.shares_ground(*workload));
    let machines = || apart().map(|workload| ready.machine(workload, 0));
    let has = |wanted: fn(&PolicySpec) -> bool| experiment.policies.iter().any(wanted);
    if machines().any(|machine| machine.power_is_assumed) {
        let watts = Machine::ASSUMED_NODE_POWER;
        said.push(format!("a busy node draws {watts}; a machine file says what yours draws"));
    }
    if has(PolicySpec::uses_gears) && machines().any(|machine| machine.gearbox.is_assumed()) {
        let gears = "the gears of nodes, and how much jobs mind them, are the built-in ones";
        said.push(format!("{gears}; a machine file says what yours are"));
    }
    if apart().count() > 0 && has(|policy| matches!(policy, PolicySpec::Parm(_))) {
        said.push(
            "under parm jobs run on other numbers of nodes than they ask for, which no other policy \
             here may do; how they scale is drawn from the seed, as no log says so"
                .to_owned(),
        );
    }
    for (place, load) in experiment.workloads.iter().enumerate() {
        let (name, profiles) = (experiment.workload_name(place), ready.profiles_name());
        if load.value.source.needs_applications() {
            said.push(format!("the applications of {name} are those of {profiles}"));
        }
        let ran = |policy: &usize| {
            let cells = tried.iter().filter(|tried| tried.outcome.summary().is_some());
            let mut cells = cells.map(|tried| (tried.cell.workload, tried.cell.policy));
            ready.is_profiled(place, *policy) && cells.any(|cell| cell == (place, *policy))
        };
        let policies = (0..experiment.policies.len()).filter(ran);
        let policies: Vec<String> =
            policies.map(|policy| experiment.policies[policy].to_string()).collect();
        if !policies.is_empty() {
            said.push(format!(
                "under {} the jobs of {name} have the nodes, times and watts of the profiles in \
                 {profiles}, not those of the workload; see --profiles",
                policies.join(", ")
            ));
        }
    }
    let is_made_up = |source: &Source| !matches!(source, Source::Log(_));
    let made_up = experiment.workloads.iter().filter(|load| is_made_up(&load.value.source));
    let names: Vec<&str> = made_up.map(|load| load.value.text.as_str()).collect();
    if !names.is_empty() {
        said.push(format!("the jobs of {} are made up", names.join(", ")));
    }
    said
}
