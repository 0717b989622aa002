//! How much a command says on standard error beside its answer: `--quiet` and `--verbose`.

use std::sync::OnceLock;

use clap::Args;

/// How much is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Volume {
    /// Errors alone.
    Quiet,
    /// Warnings, and how far a long answer is.
    #[default]
    Usual,
    /// What is done meanwhile, too.
    Verbose,
}

/// Options of all commands.
#[derive(Clone, Copy, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Options of all commands")]
pub(super) struct Arguments {
    /// Print neither warnings nor progress; errors are printed all the same
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 1000)]
    quiet: bool,

    /// Say on standard error what is done: which runs are made, which results are reused, which socket is used
    #[arg(short, long, global = true, display_order = 1000)]
    verbose: bool,
}

/// What the command line of this process asked for.
static ASKED: OnceLock<Volume> = OnceLock::new();

impl Arguments {
    /// From now on as much is said as was asked for. The first word counts.
    pub(super) fn apply(self) {
        let asked = match (self.quiet, self.verbose) {
            (true, _) => Volume::Quiet,
            (_, true) => Volume::Verbose,
            _ => Volume::Usual,
        };
        let _ = ASKED.set(asked);
    }
}

/// How much this process says.
pub(super) fn asked() -> Volume {
    ASKED.get().copied().unwrap_or_default()
}
