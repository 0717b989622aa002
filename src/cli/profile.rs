//! `busbar profile`: the database of the run time and power of applications.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::cli::print;
use crate::model::pass;
use crate::profile::cab::{self, Preset, UnknownPreset};
use crate::profile::{Entry, Existing, Imported, Profile, Store, StoreError, counted, csv};
use crate::report::{Side, columns, write_whole};

mod best;
mod fit;
mod gears;
mod import;
mod remove;
#[cfg(feature = "agent")]
mod run;
mod show;

/// Manage application profiles: import, generate, show, predict
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Import(import::Arguments),
    Generate(Generate),
    #[cfg(feature = "agent")]
    Run(run::Arguments),
    List(List),
    Show(show::Arguments),
    Best(best::Arguments),
    Fit(fit::Arguments),
    Gears(gears::Arguments),
    Export(Export),
    Remove(remove::Arguments),
}

/// The option that names the profile database.
#[derive(Debug, Args)]
#[group(skip)]
struct Database {
    /// The profile database
    #[arg(long, value_name = "FILE", default_value = "profiles.db")]
    profiles: PathBuf,
}

/// Fill the database with synthetic profiles
///
/// The measurements of the papers were never published. cab and cab-contended agree with what is known about those of
/// RMAP, and differ in how applications that do not scale behave. pass has the five applications of PARM: their
/// response to a cap is published, their scaling is synthetic.
#[derive(Debug, Args)]
pub(super) struct Generate {
    /// cab, cab-contended or pass
    #[arg(value_name = "MACHINE")]
    machine: MadeUp,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Replace existing measured rows
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    database: Database,
}

/// A set of synthetic profiles.
#[derive(Clone, Copy, Debug)]
enum MadeUp {
    Cab(Preset),
    Pass,
}

impl FromStr for MadeUp {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match (text, text.parse()) {
            ("pass", _) => Ok(MadeUp::Pass),
            (_, Ok(preset)) => Ok(MadeUp::Cab(preset)),
            (_, Err(unknown)) => {
                let unknown: UnknownPreset = unknown;
                bail!("{unknown}, pass")
            }
        }
    }
}

impl fmt::Display for MadeUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MadeUp::Cab(preset) => preset.fmt(f),
            MadeUp::Pass => f.write_str("pass"),
        }
    }
}

/// List the applications with the numbers that logs use for them
#[derive(Debug, Args)]
pub(super) struct List {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    database: Database,
}

/// Write profiles as a table that can be imported again
#[derive(Debug, Args)]
pub(super) struct Export {
    /// One application [default: all of them]
    #[arg(value_name = "APP")]
    application: Option<String>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    database: Database,
}

pub(super) fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Import(arguments) => import::run(arguments),
        Command::Generate(arguments) => generate(arguments),
        #[cfg(feature = "agent")]
        Command::Run(arguments) => run::run(arguments),
        Command::List(arguments) => list(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Best(arguments) => best::run(arguments),
        Command::Fit(arguments) => fit::run(arguments),
        Command::Gears(arguments) => gears::run(arguments),
        Command::Export(arguments) => export(arguments),
        Command::Remove(arguments) => remove::run(arguments),
    }
}

fn existing(replace: bool) -> Existing {
    if replace { Existing::Replace } else { Existing::Refuse }
}

fn generate(arguments: &Generate) -> anyhow::Result<()> {
    let profiles = match arguments.machine {
        MadeUp::Cab(preset) => cab::generate(preset, arguments.seed),
        MadeUp::Pass => pass::generate(arguments.seed),
    };
    let mut store = Store::open_or_create(&arguments.database.profiles)?;
    let imported = match store.import(&profiles, existing(arguments.replace)) {
        Err(error @ StoreError::AlreadyMeasured { .. }) => bail!(
            "{}: {error} in {}; replace it with --replace, or name another file with --profiles",
            arguments.machine,
            arguments.database.profiles.display()
        ),
        imported => imported?,
    };
    print(&describe(&imported, &arguments.database))
}

/// The number of rows that were added, replaced or left out.
fn describe(imported: &Imported, database: &Database) -> String {
    let added = counted(imported.added, "row");
    let mut text = format!("{}: {added} added", database.profiles.display());
    if imported.replaced > 0 {
        text += &format!(", {} replaced", imported.replaced);
    }
    if imported.left_out > 0 {
        let left_out = counted(imported.left_out, "predicted row");
        text += &format!(", {left_out} left out because measured rows exist");
    }
    text + &format!("; {}\n", counted(imported.new_applications, "new application"))
}

/// An application in JSON.
#[derive(Serialize)]
struct Line<'a> {
    number: u32,
    application: &'a str,
    measured: usize,
    emulated: usize,
    bound: usize,
    predicted: usize,
    nodes: Range<u32>,
    cores: Range<u32>,
    cap_w: Range<f64>,
}

/// From the smallest to the largest.
#[derive(Serialize)]
struct Range<T> {
    min: T,
    max: T,
}

fn range<T: Clone, U>(range: &RangeInclusive<T>, show: impl Fn(T) -> U) -> Range<U> {
    Range { min: show(range.start().clone()), max: show(range.end().clone()) }
}

/// `8..64`, or `8` if that is all.
fn written<T: PartialEq + fmt::Display>(range: &RangeInclusive<T>) -> String {
    match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("{}..{}", range.start(), range.end()),
    }
}

fn list(arguments: &List) -> anyhow::Result<()> {
    let entries = Store::open(&arguments.database.profiles)?.entries()?;
    if arguments.json {
        let lines: Vec<Line<'_>> = entries.iter().map(line).collect();
        return print(&(serde_json::to_string_pretty(&lines)? + "\n"));
    }
    // What most databases have none of is shown only where there are some.
    type Count = (&'static str, fn(&Entry) -> usize);
    let counts: [Count; 4] = [
        ("measured", |entry| entry.measured),
        ("emulated", |entry| entry.emulated),
        ("bound", |entry| entry.bound),
        ("predicted", |entry| entry.predicted),
    ];
    let is_shown = |(name, count): &Count| {
        ["measured", "predicted"].contains(name) || entries.iter().any(|entry| count(entry) > 0)
    };
    let counts: Vec<Count> = counts.into_iter().filter(is_shown).collect();
    let row = |entry: &Entry| {
        let mut cells = vec![entry.number.to_string(), entry.application.clone()];
        cells.extend(counts.iter().map(|(_, count)| count(entry).to_string()));
        cells.extend([written(&entry.nodes), written(&entry.cores), written(&entry.caps)]);
        cells
    };
    let mut headings = vec![("number", Side::Right), ("application", Side::Left)];
    headings.extend(counts.iter().map(|(name, _)| (*name, Side::Right)));
    headings.extend(["nodes", "cores", "caps"].map(|name| (name, Side::Left)));
    print(&columns(&headings, &entries.iter().map(row).collect::<Vec<_>>()))
}

fn line(entry: &Entry) -> Line<'_> {
    Line {
        number: entry.number.get(),
        application: &entry.application,
        measured: entry.measured,
        emulated: entry.emulated,
        bound: entry.bound,
        predicted: entry.predicted,
        nodes: range(&entry.nodes, |nodes| nodes),
        cores: range(&entry.cores, |cores| cores),
        cap_w: range(&entry.caps, |cap| cap.as_f64()),
    }
}

fn export(arguments: &Export) -> anyhow::Result<()> {
    let store = Store::open(&arguments.database.profiles)?;
    if let Some(out) = arguments.out.as_ref().filter(|out| store.is_made_of(out)) {
        bail!("{} is the profile database itself; name another file with --out", out.display());
    }
    let profiles: Vec<Profile> = match &arguments.application {
        Some(application) => vec![store.profile(application)?],
        None => store.profiles()?.into_iter().map(|(_, profile)| profile).collect(),
    };
    match &arguments.out {
        Some(path) => Ok(write_whole(path, &|out| csv::write(out, &profiles))?),
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = csv::write(&mut out, &profiles).and_then(|()| out.flush());
            written.context("cannot write to standard output")
        }
    }
}
