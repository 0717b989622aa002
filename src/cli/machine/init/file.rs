//! The text of a machine file, with what is not said in comments.

use std::fmt::Display;
use std::num::NonZeroU32;

use super::Answers;
use super::gear::GearEntry;
use crate::machine::Machine;
use crate::units::{Share, Watts};

/// The whole file.
pub(super) fn text(answers: &Answers) -> String {
    let mut file = String::from(
        "# A machine file of Busbar. Lines that begin with '#' are comments; those with a key in them show what is\n\
         # assumed. 'busbar machine check' finds mistakes, 'busbar machine show' shows what it all means.\n\n",
    );
    let name = answers.name.as_ref().map(|name| quoted(name));
    line(&mut file, "name", name, "\"cluster\"", "shown in reports");
    let nodes = answers.nodes.map_or(1, NonZeroU32::get);
    line(&mut file, "nodes", Some(nodes), "", "");
    line(&mut file, "processors_per_node", answers.processors, "1", "by which logs count");
    line(&mut file, "sockets_per_node", answers.sockets, "1", "each with a power cap of its own");
    power(&mut file, answers);
    caps(&mut file, answers);
    file += "\n# [parts]\n# spread = \"8%\"  # how much more or less power nodes need for the same work\n";
    file += "\n# [off]  # for --switch-off\n# power = \"10W\"  # a node that is off\n\
             # stop = { time = \"1m\", power = \"60W\" }\n# start = { time = \"5m\", power = \"350W\" }\n";
    file += "\n# [cooling]  # not counted without it\n# pue = 1.3  # the site's power over the machine's\n\
             # in_budget = false  # true: budgets are limits at the site's meter\n";
    gears(&mut file, answers);
    file
}

/// A line of the file: what was said, or what is assumed in a comment.
fn line(file: &mut String, key: &str, said: Option<impl Display>, assumed: &str, about: &str) {
    let entry = match said {
        Some(value) => format!("{key} = {value}"),
        None => format!("# {key} = {assumed}"),
    };
    *file += &match about {
        "" => format!("{entry}\n"),
        about => format!("{entry}  # {about}\n"),
    };
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn watts(power: Watts) -> String {
    quoted(&power.to_string())
}

/// What a busy node draws without its GPUs: what was said, or else what its fastest gear draws.
fn bare_node(answers: &Answers) -> Option<Watts> {
    let fastest = answers.gears.last().and_then(GearEntry::watts);
    answers.node_power.or(fastest.map(|watts| watts.saturating_sub(gpus(answers))))
}

/// What all GPUs of a node draw.
fn gpus(answers: &Answers) -> Watts {
    let each = answers.gpu_power.unwrap_or_default();
    each.checked_mul(answers.gpus.map_or(0, NonZeroU32::get)).unwrap_or(Watts::LARGEST)
}

/// What a busy node draws with its GPUs.
fn whole_node(answers: &Answers) -> Watts {
    bare_node(answers).unwrap_or(Machine::ASSUMED_NODE_POWER).saturating_add(gpus(answers))
}

fn power(file: &mut String, answers: &Answers) {
    // The highest cap is as good as none: what it leaves is what no cap limits.
    let highest = answers.caps.last().map(|cap| whole_node(answers).saturating_sub(*cap));
    let rest = answers.rest.or(highest.filter(|rest| *rest > Watts::ZERO));
    let node = bare_node(answers);
    let is_said =
        [node, answers.idle, rest, answers.base, answers.gpu_power].iter().any(Option::is_some);
    let whole = whole_node(answers);
    // A table whose 'node' is missing is a mistake; without the table all of it is assumed.
    *file += if is_said { "\n[power]\n" } else { "\n# [power]\n" };
    let (node, about) = match node {
        None if is_said => {
            (Some(Machine::ASSUMED_NODE_POWER), "a busy node at most, without its GPUs; assumed")
        }
        node => (node, "a busy node at most, without its GPUs"),
    };
    line(file, "node", node.map(watts), "\"100W\"", about);
    line(file, "gpus", answers.gpus, "4", "GPUs in a node");
    line(file, "gpu", answers.gpu_power.map(watts), "\"300W\"", "what each of them draws at most");
    let assumed = |percent: u32| watts(Share::percent(percent).of(whole));
    line(file, "idle", answers.idle.map(watts), &assumed(15), "a node without a job");
    line(file, "rest", rest.map(watts), &assumed(20), "what a busy node draws that no cap limits");
    line(
        file,
        "base",
        answers.base.map(watts),
        "\"0W\"",
        "switches, storage and all else in the budget",
    );
}

fn caps(file: &mut String, answers: &Answers) {
    let about = "the caps of a node that can be set; the last is 'node', with GPUs, less 'rest'";
    if answers.caps.is_empty() {
        *file += &format!("\n# [caps]\n# levels = [\"140W\", \"280W\"]  # {about}\n");
        return;
    }
    let levels: Vec<String> = answers.caps.iter().map(|cap| watts(*cap)).collect();
    *file += &format!("\n[caps]\nlevels = [{}]  # {about}\n", levels.join(", "));
}

fn gears(file: &mut String, answers: &Answers) {
    *file += "\n# The speeds of a node, from slow to fast: 'watts' is what a busy node draws, 'slowdown' how many times as\n\
              # long a job takes that depends on the clock alone. 'volts' may stand for 'watts'.\n";
    if answers.gears.is_empty() {
        *file += "# [dvfs]\n# gears = [\n#     { ghz = 1.2, watts = \"210W\", slowdown = 1.9 },\n\
                  #     { ghz = 2.4, watts = \"350W\" },\n# ]\n";
        return;
    }
    *file += "[dvfs]\ngears = [\n";
    for gear in &answers.gears {
        *file += &format!("    {},\n", gear.text());
    }
    *file += "]\n";
}
