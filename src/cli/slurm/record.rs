//! `busbar slurm record`: records a cluster's answers, for a bug report.

use std::path::PathBuf;

use clap::Args;

use super::Where;
use crate::cli::print;
use crate::slurm::record::{Entry, record};

/// Record the cluster's answers to Busbar, for a bug report
///
/// This makes every reading call once, and writes its output into a folder. Nothing is changed on the cluster. Names
/// of users, accounts, hosts and jobs, comments and paths are replaced by neutral words. Names of nodes, partitions,
/// licences and reservations and numbers of users are kept; check the files before you send them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar slurm record answers
  busbar slurm record --conf /etc/slurm/slurm.conf answers")]
pub(in crate::cli) struct Arguments {
    #[command(flatten)]
    cluster: Where,

    /// Output folder, which must be empty or not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Keep all names, comments and paths as they are
    #[arg(long)]
    names: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let commands = arguments.cluster.commands();
    let calls = record(commands.programs(), &arguments.folder, arguments.names)?;
    let mut text = String::new();
    for Entry { reading, call, exit, error } in &calls {
        let how = match exit {
            Some(0) => "ok".to_owned(),
            Some(code) => format!("failed with exit code {code}: {error}"),
            None => "was ended by a signal".to_owned(),
        };
        text += &format!("{:<18} {call}: {how}\n", reading.file());
    }
    let folder = arguments.folder.display();
    text += &format!("{} answers are in {folder}\n", calls.len());
    text += match arguments.names {
        true => {
            "they contain names of users, accounts, hosts and jobs, comments and paths; without --names these are replaced\n"
        }
        false => {
            "names of users, accounts, hosts and jobs, comments and paths were replaced; names of nodes, partitions, licences \
             and reservations and numbers of users were not\n"
        }
    };
    print(&text)
}
