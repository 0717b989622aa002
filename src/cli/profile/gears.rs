//! `busbar profile gears`: measured caps as the gears and sensitivities of a machine file.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use super::{Database, counted};
use crate::cli::print;
use crate::profile::gears::{CapGear, Gears, gears};
use crate::profile::{Profile, Store};
use crate::report::write_whole;
use crate::units::Watts;

/// Write measured caps as gears and sensitivities (beta) for a machine file
///
/// Policies that use only frequency levels (easy-power, pb-guided) then use the measurements. The gear of a cap has
/// the highest power of any application under it, and the slowdown of the most sensitive application.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar profile gears
  busbar profile gears SP-MZ LU-MZ --rest 60W --out gears.toml")]
pub(in crate::cli) struct Arguments {
    /// The applications [default: all of them]
    #[arg(value_name = "APP")]
    applications: Vec<String>,

    /// Power of a busy node that was not measured
    #[arg(long, value_name = "POWER", default_value = "0W")]
    rest: Watts,

    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    database: Database,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let store = Store::open(&arguments.database.profiles)?;
    let profiles: Vec<Profile> = match &arguments.applications[..] {
        [] => store.profiles()?.into_iter().map(|(_, profile)| profile).collect(),
        named => named.iter().map(|name| store.profile(name)).collect::<Result<_, _>>()?,
    };
    let text = file(&gears(&profiles)?, arguments.rest);
    let Some(out) = &arguments.out else { return print(&text) };
    if out.exists() && !arguments.force {
        bail!("{} already exists; overwrite it with --force, or name another file", out.display());
    }
    write_whole(out, &|file| file.write_all(text.as_bytes()))?;
    print(&format!("{} is written; copy its contents into a machine file\n", out.display()))
}

/// A piece of a machine file.
fn file(gears: &Gears, rest: Watts) -> String {
    let of = counted(gears.betas.len(), "application");
    let mut text = format!("# Gears and sensitivities of {of}, measured under caps. β of each:\n");
    for (name, beta) in &gears.betas {
        text += &format!("#   {beta:.2}  {name}\n");
    }
    if !gears.left_out.is_empty() {
        let names = gears.left_out.join(", ");
        text +=
            &format!("# Left out, as they were not measured under all of these caps: {names}\n");
    }
    let whole = |gear: &CapGear| gear.drawn.saturating_add(rest);
    if let Some(fastest) = gears.gears.last() {
        text += &format!("# 'power.node' of the machine file has to be {}.\n", whole(fastest));
    }
    text += "[dvfs]\ngears = [\n";
    for gear in &gears.gears {
        let slowdown = match gear.slowdown > 1.0 {
            true => format!(", slowdown = {:.4}", gear.slowdown),
            false => String::new(),
        };
        text += &format!(
            "    {{ watts = \"{}\"{slowdown} }},  # under {} a socket\n",
            whole(gear),
            gear.cap
        );
    }
    let (mean, variance) = gears.sensitivity();
    text + &format!("]\nbeta = [{{ mean = {mean:.4}, variance = {variance:.6} }}]\n")
}
