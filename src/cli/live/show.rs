//! `busbar show`: the details of a job.

use clap::Args;

use super::names::JobName;
use super::table::terminal_width;
use super::users::Users;
use super::{Daemon, queue, unexpected, words};
use crate::live::job::{After, Part};
use crate::live::wire::{JobDetails, Reply, Request};
use crate::report::{human_energy, human_power};

/// Show the details of a job, or list the elements of an array
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// Job number; 12_3 is element 3 of array 12
    job: JobName,

    #[command(flatten)]
    daemon: Daemon,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let job = arguments.daemon.number_of(arguments.job)?;
    let users = Users::default();
    match arguments.daemon.ask(&Request::Show { job })? {
        Reply::Show(details) => {
            arguments.daemon.show(&details, |details| describe(details, &users))
        }
        Reply::Array(array) => arguments.daemon.show(&array, |array| {
            let states = words::states(&array.elements);
            let table = queue::table(&array.elements, &users, None, terminal_width());
            format!("array {}: {states}\n{table}", array.array)
        }),
        reply => Err(unexpected(&reply)),
    }
}

fn describe(details: &JobDetails, users: &Users) -> String {
    let JobDetails { line, private, .. } = details;
    let request = private.as_ref().map(|private| &private.request);
    let (number, element) = (line.job.to_string(), line.array);
    let mut rows = vec![
        ("job", element.map_or(number.clone(), |element| format!("{number}, which is {element}"))),
        ("name", words::name(line.name.as_deref())),
        ("user", users.name(line.user)),
    ];
    let state = words::state(line.state);
    let reason = line.reason.as_deref().filter(|reason| *reason != state).map(words::visible);
    rows.push(("state", reason.map_or(state.to_owned(), |reason| format!("{state}: {reason}"))));
    rows.extend(details.by.map(|user| ("ended by", users.name(user))));
    rows.extend(details.end.as_ref().map(|end| ("end", words::end(end))));
    rows.push(("submitted", words::local_time(line.submitted)));
    rows.extend(line.started.map(|started| ("started", words::local_time(started))));
    rows.extend(details.ended.map(|ended| ("ended", words::local_time(ended))));
    let limit = words::clock(line.time);
    let ran = line.ran.map(|ran| format!("{} of {limit}", words::clock(ran)));
    rows.push(("time", ran.unwrap_or(limit)));
    let mut nodes = line.nodes.to_string();
    if !line.on.is_empty() {
        nodes += &format!(": {}", words::node_list(&line.on));
    }
    let range = request.and_then(|request| Some((request.nodes, request.moldable?)));
    if let Some((asked, (fewest, most))) = range {
        nodes += &format!(" (requests {asked}; can use {fewest} to {most})");
    }
    rows.push(("nodes", nodes));
    rows.extend(line.partition.clone().map(|partition| ("partition", partition)));
    rows.extend(line.part.as_ref().map(|part| ("of each node", part_of(part))));
    if let Some(power) = line.power {
        let speed = line.speed.map(|speed| f64::from(speed) / 1e4);
        let speed = speed.map(|percent| format!(", at {percent:.1} % of its speed"));
        rows.push(("power", human_power(power.as_f64()) + &speed.unwrap_or_default()));
    }
    let energy = details.energy.map(|energy| human_energy(energy.as_f64()));
    rows.extend(energy.map(|energy| ("energy", energy + ", predicted")));
    let application = request.and_then(|request| request.application.as_deref());
    rows.extend(application.map(|name| ("application", words::visible(name))));
    let account = request.and_then(|request| request.account.as_deref());
    rows.extend(account.map(|name| ("account", words::visible(name))));
    let slowdown = request.and_then(|request| request.slowdown.as_deref());
    rows.extend(slowdown.map(|text| ("slowdown", words::visible(text))));
    if let Some(request) = request.filter(|request| !request.after.is_empty()) {
        let after = |after: &After| match after.any {
            true => format!("{} (even if it fails)", after.job),
            false => after.job.to_string(),
        };
        rows.push(("after", request.after.iter().map(after).collect::<Vec<_>>().join(", ")));
    }
    if details.attempts > 1 {
        rows.push(("attempts", details.attempts.to_string()));
    }
    let Some(private) = private else {
        rows.extend(["command", "folder", "output"].map(|key| (key, words::HIDDEN.to_owned())));
        return words::rows(&rows);
    };
    rows.push(("command", words::command(&private.command)));
    let path = |path: &std::path::Path| words::visible(&path.to_string_lossy());
    rows.push(("folder", path(&private.folder)));
    rows.push(("output", path(&private.output)));
    if private.errors != private.output {
        rows.push(("errors", path(&private.errors)));
    }
    words::rows(&rows)
}

/// What a job has of each of its nodes.
fn part_of(part: &Part) -> String {
    let mut text = format!("{} processors", part.processors);
    if part.gpus > 0 {
        text += &format!(", {} {}", part.gpus, if part.gpus == 1 { "GPU" } else { "GPUs" });
    }
    if part.memory_mib > 0 {
        text += &format!(", {} MiB", part.memory_mib);
    }
    text
}
