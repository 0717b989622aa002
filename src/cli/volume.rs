//! How much a command prints on standard error: `--quiet` and `--verbose`.

use std::sync::OnceLock;

use clap::Args;

/// How much is printed on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Volume {
    /// Errors only.
    Quiet,
    /// Warnings and progress, too.
    #[default]
    Usual,
    /// Details of each step, too.
    Verbose,
}

/// Options of all commands.
#[derive(Clone, Copy, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Global options")]
pub(super) struct Arguments {
    /// Print errors only, no warnings and no progress
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 1000)]
    quiet: bool,

    /// Print details on standard error: runs, reused results, the socket
    #[arg(short, long, global = true, display_order = 1000)]
    verbose: bool,
}

/// What the command line of this process asked for.
static ASKED: OnceLock<Volume> = OnceLock::new();

impl Arguments {
    /// Sets the volume of this process. Only the first call has an effect.
    pub(super) fn apply(self) {
        let asked = match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (_, true) => Volume::Verbose,
            _ => Volume::Usual,
        };
        let _ = ASKED.set(asked);
    }
}

/// The volume of this process.
pub(super) fn asked() -> Volume {
    ASKED.get().copied().unwrap_or_default()
}
