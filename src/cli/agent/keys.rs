//! `busbar agent keys`: the keys of a site.

use std::path::PathBuf;

use clap::Args;

use crate::agent::keys;
use crate::cli::print;

/// Make the keys for encrypted connections between agents and controllers
///
/// The folder gets a certificate authority, a key for the controller, one for observers, and one for each node. Keep
/// the folder on one machine, and keep authority.key secret; copy authority.pem and each node's own two files to that
/// node. Run the command again with other nodes to add them, or without nodes to renew the keys of controller and
/// observers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar agent keys keys --node n1 --node n2
  busbar agent keys keys --node n3")]
pub(in crate::cli) struct Arguments {
    /// Folder of the keys
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Name of a node, as its agent's configuration has it; may be repeated
    #[arg(long, value_name = "NAME")]
    node: Vec<String>,

    /// Days until the certificates expire
    #[arg(long, value_name = "DAYS", default_value_t = 365,
          value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let made = keys::make(&arguments.folder, &arguments.node, arguments.days)?;
    let mut text = String::new();
    if made.is_new_authority {
        text +=
            &format!("made the authority {}\n", arguments.folder.join("authority.pem").display());
    }
    for certificate in &made.certificates {
        text += &format!("made {}, valid for {} days\n", certificate.display(), arguments.days);
    }
    print(&text)
}
