//! `busbar machine init`: a machine file with explanations, from options or from answers.

use std::io::{self, BufRead, IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;

use super::check;
use crate::cli::print;
use crate::machine::check_text;
use crate::report::write_whole;
use crate::units::Watts;

mod file;
mod gear;

use gear::GearEntry;

/// Write a machine file with explanations
///
/// On a terminal, the command asks for values that are not given. Values that remain unknown become comments in the
/// file, with the default that Busbar assumes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar machine init
  busbar machine init --nodes 64 --processors 32 --sockets 2 --node-power 350W --out cluster.toml
  busbar machine init --nodes 16 --node-power 400W --gpus 4 --gpu-power 300W --caps 800W,1200W,1500W
  busbar machine init --nodes 8 --gear ghz=1.2,watts=210W --gear ghz=2.4,watts=350W")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    answers: Answers,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

/// The known values of a machine.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub(super) struct Answers {
    /// Name of the machine in reports [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Number of nodes
    #[arg(long, value_name = "N")]
    nodes: Option<NonZeroU32>,

    /// Processors per node, as logs count them [default: 1]
    #[arg(long, value_name = "N")]
    processors: Option<NonZeroU32>,

    /// Sockets per node [default: 1]
    #[arg(long, value_name = "N")]
    sockets: Option<NonZeroU32>,

    /// Maximum power of a busy node without its GPUs: 350W [default: 100W]
    #[arg(long, value_name = "POWER")]
    node_power: Option<Watts>,

    /// Power of an idle node [default: 15 % of a busy node]
    #[arg(long, value_name = "POWER")]
    idle: Option<Watts>,

    /// Power of a busy node that no cap limits [default: 20 % of a busy node]
    #[arg(long, value_name = "POWER")]
    rest: Option<Watts>,

    /// Power of the machine besides its nodes [default: 0W]
    #[arg(long, value_name = "POWER")]
    base: Option<Watts>,

    /// GPUs per node
    #[arg(long, value_name = "N", requires = "gpu_power")]
    gpus: Option<NonZeroU32>,

    /// Maximum power of a GPU
    #[arg(long, value_name = "POWER", requires = "gpus")]
    gpu_power: Option<Watts>,

    /// Power caps of a node, from the lowest to the highest, which stands for no cap: 140W,210W,280W [default: six
    /// caps]
    #[arg(long, value_name = "POWERS", value_delimiter = ',')]
    caps: Vec<Watts>,

    /// A frequency level (gear) of the nodes: ghz=1.2,watts=210W; may be repeated, from slow to fast
    ///
    /// slowdown=1.6 says how many times as long jobs take; volts=0.9 can stand instead of watts.
    #[arg(long = "gear", value_name = "KEYS")]
    gears: Vec<GearEntry>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut answers = arguments.answers.clone();
    if answers.nodes.is_none() {
        if !io::stdin().is_terminal() {
            bail!("the number of nodes is missing; give it with --nodes N");
        }
        ask(&mut answers, &mut io::stdin().lock(), &mut io::stderr())?;
    }
    let text = file::text(&answers);
    let (out, stem) = (arguments.out.as_deref(), "machine");
    if let Err(problems) = check_text(&text, stem, Path::new("")) {
        bail!(
            "these answers do not describe a valid machine: {}",
            check::describe("the file", &problems)
        );
    }
    let Some(out) = out else { return print(&text) };
    if out.exists() && !arguments.force {
        bail!("{} already exists; overwrite it with --force, or name another file", out.display());
    }
    write_whole(out, &|file| file.write_all(text.as_bytes()))?;
    print(&format!("{} is written; 'busbar machine show {0}' shows it\n", out.display()))
}

/// Asks for what was not given. An empty answer leaves it open.
fn ask(answers: &mut Answers, from: &mut dyn BufRead, to: &mut dyn Write) -> anyhow::Result<()> {
    let mut questions = Questions { from, to };
    while answers.nodes.is_none() {
        answers.nodes = questions.ask("nodes of the machine", "a number")?;
    }
    let Answers { processors, sockets, node_power, idle, rest, base, .. } = answers;
    questions.fill(processors, "processors per node, as logs count them", "1")?;
    questions.fill(sockets, "sockets per node", "1")?;
    questions.fill(node_power, "maximum power of a busy node without GPUs", "100W")?;
    questions.fill(idle, "power of an idle node", "15 % of that")?;
    questions.fill(rest, "power of a busy node that no cap limits", "20 % of it")?;
    questions.fill(base, "power of the machine besides its nodes", "0W")?;
    if answers.gpus.is_none() {
        questions.fill(&mut answers.gpus, "GPUs per node", "none")?;
        while answers.gpus.is_some() && answers.gpu_power.is_none() {
            answers.gpu_power = questions.ask("maximum power of a GPU", "such as 300W")?;
        }
    }
    Ok(())
}

/// Questions and answers on a terminal.
struct Questions<'a> {
    from: &'a mut dyn BufRead,
    to: &'a mut dyn Write,
}

impl Questions<'_> {
    fn fill<T: std::str::FromStr>(
        &mut self,
        answer: &mut Option<T>,
        what: &str,
        default: &str,
    ) -> anyhow::Result<()>
    where
        T::Err: std::fmt::Display,
    {
        if answer.is_none() {
            *answer = self.ask(what, default)?;
        }
        Ok(())
    }

    /// The answer, once it can be read; nothing if there is none.
    fn ask<T: std::str::FromStr>(&mut self, what: &str, default: &str) -> anyhow::Result<Option<T>>
    where
        T::Err: std::fmt::Display,
    {
        loop {
            write!(self.to, "{what} [{default}]: ")?;
            self.to.flush()?;
            let mut line = String::new();
            if self.from.read_line(&mut line).context("cannot read the answer")? == 0 {
                bail!("the input ended before all questions were answered; nothing is written");
            }
            match line.trim() {
                "" => return Ok(None),
                text => match text.parse() {
                    Ok(answer) => return Ok(Some(answer)),
                    Err(why) => writeln!(self.to, "{why}")?,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &str) -> anyhow::Result<(String, String)> {
        let (mut answers, mut said) = (Answers::default(), Vec::new());
        ask(&mut answers, &mut lines.as_bytes(), &mut said)?;
        Ok((file::text(&answers), String::from_utf8(said)?))
    }

    /// What is answered is in the file, what is not is a comment, and every file is a machine.
    #[test]
    fn answers_make_a_machine() {
        let (text, said) = asked("\nmany\n64\n32\n\n350\n350W\n\n\n\n2\n\n300W\n").unwrap();
        assert!(said.contains("maximum power of a busy node without GPUs [100W]: "), "{said}");
        assert!(said.contains("valid units"), "{said}");
        let machine = check_text(&text, "machine", Path::new("")).unwrap().choose(&[]).unwrap();
        assert_eq!((machine.nodes, machine.processors_per_node), (64, 32));
        assert_eq!(machine.node_power, Watts::from_watts(950));
        assert!(text.contains("# idle = "), "{text}");
        assert!(asked("64\n").unwrap_err().to_string().contains("nothing is written"));
    }

    #[test]
    fn all_that_can_be_said_is_in_the_file() {
        let answers = Answers {
            name: Some("a \"b\"".to_owned()),
            nodes: NonZeroU32::new(8),
            node_power: "350W".parse().ok(),
            idle: "50W".parse().ok(),
            base: "1kW".parse().ok(),
            caps: ["140W", "280W"].map(|cap| cap.parse().unwrap()).to_vec(),
            gears: ["ghz=1.2,watts=210W,slowdown=1.6", "ghz=2.4,watts=350W"]
                .map(|gear| gear.parse().unwrap())
                .to_vec(),
            ..Answers::default()
        };
        let machine = check_text(&file::text(&answers), "x", Path::new("")).unwrap();
        let machine = machine.choose(&[]).unwrap();
        assert_eq!(machine.name, "a \"b\"");
        // The highest cap is no cap: what it leaves is beyond the reach of caps.
        assert_eq!(machine.details.rest, Some(Watts::from_watts(70)));
        assert_eq!(machine.gearbox.slowdown(machine.gearbox.gears()[0]), 1.6);
        assert_eq!(machine.base_power, Watts::from_watts(1000));
    }
}
