//! What the nodes of a machine draw, with their caps and gears.

use serde::Serialize;

use super::feeds::{self, AnswerFeed};
use crate::cli::print;
use crate::machine::{Gear, Machine, Off, Parts, Transition};
use crate::profile::counted;
use crate::report::{Facts, Side, columns, human_power};
use crate::units::Watts;

/// The machine in JSON. What is assumed is named.
#[derive(Serialize)]
struct Answer<'a> {
    name: &'a str,
    nodes: u32,
    processors_per_node: u32,
    sockets_per_node: u32,
    max_w: f64,
    floor_w: f64,
    node_w: f64,
    idle_w: f64,
    rest_w: f64,
    base_w: f64,
    caps_w: Vec<f64>,
    spread: String,
    off_w: f64,
    site_max_w: Option<f64>,
    gears: Vec<AnswerGear>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    feeds: Vec<AnswerFeed>,
    assumed: Vec<&'static str>,
}

#[derive(Serialize)]
struct AnswerGear {
    ghz: f64,
    node_w: f64,
    slowdown: f64,
}

/// Shows a machine whose nodes are of one kind.
pub(super) fn show(said: &Machine, json: bool) -> anyhow::Result<()> {
    let machine = said.filled_in(1);
    match json {
        true => print(&(serde_json::to_string_pretty(&answer(said, &machine))? + "\n")),
        false => print(&describe(said, &machine)),
    }
}

/// The keys of the file that nobody gave.
fn assumed(said: &Machine) -> Vec<&'static str> {
    let details = &said.details;
    let keys = [
        ("power.node", said.power_is_assumed),
        ("power.idle", details.idle.is_none()),
        ("power.rest", details.rest.is_none()),
        ("caps.levels", details.levels.is_none()),
        ("parts.spread", details.parts.is_none()),
        ("off", details.off.is_none()),
        ("dvfs.gears", said.gearbox.is_assumed()),
    ];
    keys.into_iter().filter(|(_, is_assumed)| *is_assumed).map(|(key, _)| key).collect()
}

fn spread(machine: &Machine) -> String {
    match machine.details.parts {
        Some(Parts::Unlike { spread, .. }) => spread.to_string(),
        _ => "0%".to_owned(),
    }
}

/// The gears, slowest first, each with what a whole node draws in it.
fn gears(machine: &Machine) -> Vec<AnswerGear> {
    let (gearbox, node) = (&machine.gearbox, machine.node());
    let drawn = gearbox.node_powers(node.highest).into_iter().rev();
    let gear = |(gear, part): (Gear, Watts)| AnswerGear {
        ghz: gear.ghz,
        node_w: (node.rest + part).as_f64(),
        slowdown: gearbox.slowdown(gear),
    };
    drawn.map(gear).collect()
}

fn answer<'a>(said: &'a Machine, machine: &Machine) -> Answer<'a> {
    let node = machine.node();
    Answer {
        name: &said.name,
        nodes: said.nodes,
        processors_per_node: said.processors_per_node,
        sockets_per_node: said.sockets_per_node,
        max_w: machine.max_power().as_f64(),
        floor_w: machine.floor().as_f64(),
        node_w: machine.node_power.as_f64(),
        idle_w: node.idle.as_f64(),
        rest_w: node.rest.as_f64(),
        base_w: machine.base_power.as_f64(),
        caps_w: machine.details.levels.iter().flatten().map(|cap| cap.as_f64()).collect(),
        spread: spread(machine),
        off_w: machine.off().power.as_f64(),
        site_max_w: machine.cooling.as_ref().map(|cooling| {
            let most = machine.max_power();
            cooling.of_site(most, most, None).as_f64()
        }),
        gears: gears(machine),
        feeds: machine.feeds.iter().flat_map(|feeds| feeds::answers(feeds)).collect(),
        assumed: assumed(said),
    }
}

fn describe(said: &Machine, machine: &Machine) -> String {
    let (node, assumed) = (machine.node(), assumed(said));
    let marked = |key: &str, text: String| match assumed.contains(&key) {
        true => format!("{text} (assumed)"),
        false => text,
    };
    let mut facts = Facts::default();
    facts.add("machine", &said.name);
    let [processors, sockets] =
        [(said.processors_per_node, "processor"), (said.sockets_per_node, "socket")]
            .map(|(count, what)| counted(count as usize, what));
    facts.add("nodes", format!("{}, each with {processors} on {sockets}", said.nodes));
    let watts = |power: Watts| human_power(power.as_f64());
    facts.add(
        "power",
        format!("{} at most, {} idle", watts(machine.max_power()), watts(machine.floor())),
    );
    facts.add("busy node", marked("power.node", machine.node_power.to_string()));
    facts.add("idle node", marked("power.idle", node.idle.to_string()));
    facts.add("beyond caps", marked("power.rest", format!("{} of a busy node", node.rest)));
    facts.add("base", format!("{} beside the nodes", machine.base_power));
    let levels: Vec<String> =
        machine.details.levels.iter().flatten().map(ToString::to_string).collect();
    facts.add("caps", marked("caps.levels", levels.join(", ")));
    let differ = format!("up to {} more or less power for the same work", spread(machine));
    facts.add("nodes differ", marked("parts.spread", differ));
    let Off { power: off, stop, start } = machine.off();
    let takes = |each: Transition| format!("{} at {}", each.time, each.power);
    let [stop, start] = [stop, start].map(takes);
    facts.add("off node", marked("off", format!("{off}; stopping takes {stop}, starting {start}")));
    let most = machine.max_power();
    facts.add(
        "cooling",
        match &machine.cooling {
            None => "not counted".to_owned(),
            Some(cooling) => {
                let site = watts(cooling.of_site(most, most, None));
                let which = if cooling.in_budget { ", which budgets limit" } else { "" };
                format!("the site draws {site} at most{which}")
            }
        },
    );
    if let Some(feeds) = &machine.feeds {
        feeds::add(feeds, &mut facts);
    }
    facts.add("gears", marked("dvfs.gears", "how fast a node is, and what it draws".to_owned()));
    let headings =
        [("GHz", Side::Right), ("node (W)", Side::Right), ("slowdown of β = 1", Side::Right)];
    let row = |gear: &AnswerGear| {
        vec![
            format!("{:.2}", gear.ghz),
            format!("{:.1}", gear.node_w),
            format!("{:.2}", gear.slowdown),
        ]
    };
    let rows: Vec<Vec<String>> = gears(machine).iter().map(row).collect();
    format!("{}\n{}", facts.text(), columns(&headings, &rows))
}
