//! `busbar history`: decisions and events, finished jobs, and their energy.

use clap::{Args, Subcommand};

mod events;
mod jobs;
mod moment;
mod usage;

/// Show decisions and events, finished jobs, and the energy of users and accounts
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  busbar history
  busbar history --job 12
  busbar history --after 0 -n 10000 --json    from the first line on
  busbar history --follow
  busbar history jobs --since yesterday
  busbar history users --since 7d"
)]
pub(in crate::cli) struct Arguments {
    #[command(subcommand)]
    about: Option<About>,

    #[command(flatten)]
    events: events::Arguments,
}

/// Other parts of the history.
#[derive(Debug, Subcommand)]
enum About {
    Jobs(jobs::Arguments),
    Users(usage::Users),
    Accounts(usage::Accounts),
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.about {
        None => events::run(&arguments.events),
        Some(About::Jobs(arguments)) => jobs::run(arguments),
        Some(About::Users(arguments)) => usage::by_user(arguments),
        Some(About::Accounts(arguments)) => usage::by_account(arguments),
    }
}
