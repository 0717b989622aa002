//! What the figures of an experiment rest on that nobody measured.

use crate::experiment::CheckedExperiment;
use crate::prepared;
use crate::workload::Source;

/// What is assumed in these runs, a sentence for each thing.
pub(crate) fn assumptions(checked: &CheckedExperiment<'_>) -> Vec<String> {
    let experiment = checked.experiment;
    let mut said: Vec<String> = Vec::new();
    let has_one = experiment.workloads.len() == 1;
    for (place, platform) in checked.platforms.iter().enumerate() {
        let assumed = prepared::assumed(&platform.said, &platform.repertoire, &platform.rules);
        let of_workload = |text: &String| match has_one {
            true => text.clone(),
            false => format!("{}: {text}", experiment.workload_name(place)),
        };
        let of_jobs = platform.power.iter().chain(&platform.partitions).map(of_workload);
        for text in assumed.into_iter().chain(of_jobs) {
            if !said.contains(&text) {
                said.push(text);
            }
        }
    }
    for (place, load) in experiment.workloads.iter().enumerate() {
        if load.value.source.needs_applications() {
            let (name, profiles) = (experiment.workload_name(place), experiment.profiles_name());
            said.push(format!("the applications of {name} are those of {profiles}"));
        }
    }
    let is_made_up = |source: &Source| !matches!(source, Source::Log(_) | Source::Records(_));
    let made_up = experiment.workloads.iter().filter(|load| is_made_up(&load.value.source));
    let names: Vec<&str> = made_up.map(|load| load.value.text.as_str()).collect();
    if !names.is_empty() {
        said.push(format!("the jobs of {} are synthetic", names.join(", ")));
    }
    said
}
