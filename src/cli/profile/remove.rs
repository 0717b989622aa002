//! `busbar profile remove`: removes rows from the database.

use clap::Args;

use super::{Database, counted};
use crate::cli::print;
use crate::profile::{Removal, Store};

/// Remove an application's rows from the database
///
/// The numbers of all applications stay the same, and the number of this one is not reused.
#[derive(Debug, Args)]
pub(in crate::cli) struct Arguments {
    /// The application
    #[arg(value_name = "APP")]
    application: String,

    /// Remove only predicted rows
    #[arg(long)]
    predicted: bool,

    #[command(flatten)]
    database: Database,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let which = if arguments.predicted { Removal::Predicted } else { Removal::All };
    let mut store = Store::open_to_change(&arguments.database.profiles)?;
    let removed = store.remove(&arguments.application, which)?;
    let measured = counted(removed.measured, "measured row");
    let predicted = counted(removed.predicted, "predicted row");
    let what = match which {
        Removal::All => format!("{measured} and {predicted}"),
        Removal::Predicted => predicted,
    };
    let (database, application) = (arguments.database.profiles.display(), &arguments.application);
    print(&format!("{database}: {what} of {application} removed\n"))
}
