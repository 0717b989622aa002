//! `busbar workload generate`: a generated workload as a log.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::{home, usual, write_log};
use crate::cli::tables;
use crate::machine::Machine;
use crate::report::{make_folder, write_whole};
use crate::workload::essc::Tasks;
use crate::workload::tasks::FILES;
use crate::workload::{Loaded, Source, SourceDefaults};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar workload generate > lublin.swf
  busbar workload generate 'lublin(jobs=100000, load=1.5, sizes=any)' --out busy.swf.gz")]
pub(in crate::cli) struct Arguments {
    /// The generator: lublin(jobs, load, processors, seed, kind=batch|interactive|typeless,
    /// sizes=mixed|powers-of-two|any), rmap(trace=random-early|random|large|small, jobs, gaps,
    /// seed), essc(tasks, machines, hours, warm_up, seed, …), which makes a folder, or demo
    #[arg(value_name = "GENERATOR", default_value = "lublin")]
    generator: String,
    #[command(flatten)]
    tables: tables::Arguments,
    /// Random seed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Output file, compressed if it ends in .gz; a folder for essc [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let source: Source = arguments.generator.parse()?;
    if let Source::Log(path) = &source {
        bail!("{} is a log, not a generator; see 'busbar workload convert'", path.display());
    }
    let usual = usual(&source, &arguments.tables)?;
    let home = home(&source);
    let given = SourceDefaults {
        processors: home.as_ref().map(Machine::processors),
        processors_per_node: home.as_ref().map_or(1, |machine| machine.processors_per_node),
        seed: arguments.seed,
        usual: usual.as_ref(),
        ..SourceDefaults::default()
    };
    let Loaded { workload, site, period, .. } = source.load(&given)?;
    let workload = workload.on_computer(home.map(|machine| machine.name));
    match site {
        None => write_log(&workload, arguments.out.as_deref()),
        Some(site) => write_site(&Tasks { workload, site, period }, arguments.out.as_deref()),
    }
}

/// Writes tasks and their machines into a folder.
fn write_site(tasks: &Tasks, folder: Option<&Path>) -> anyhow::Result<()> {
    let Some(folder) = folder else {
        bail!("essc writes a folder of files; name the folder with --out");
    };
    make_folder(folder)?;
    let site = &tasks.site;
    let [machines, tables, utilities, arrivals] = FILES.map(|name| folder.join(name));
    write_whole(&machines, &|out| site.tables.write_machines(out))?;
    write_whole(&tables, &|out| site.tables.write_entries(out))?;
    write_whole(&utilities, &|out| site.utilities.write(out))?;
    write_whole(&arrivals, &|out| tasks.write_tasks(out))?;
    Ok(())
}
