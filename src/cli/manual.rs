//! `busbar completions` and `busbar man`: shell completion and manual pages, generated from the definitions of
//! `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Cli, print};
use crate::report::{make_folder, write_whole};

/// Print a script for command-line completion in a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar completions bash > ~/.local/share/bash-completion/completions/busbar
  busbar completions zsh > ~/.zfunc/_busbar
  busbar completions fish > ~/.config/fish/completions/busbar.fish")]
pub(super) struct Completions {
    /// Shell
    shell: Shell,
}

/// Write a manual page for each command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar man --out ~/.local/share/man/man1
  man busbar-compare")]
pub(super) struct Man {
    /// Output folder
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

pub(super) fn completions(arguments: &Completions) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "busbar", &mut script);
    print(&String::from_utf8_lossy(&script))
}

pub(super) fn man(arguments: &Man) -> anyhow::Result<()> {
    make_folder(&arguments.out)?;
    let mut whole = Cli::command();
    whole.build();
    let pages = write_pages(&whole, "busbar", &arguments.out)?;
    print(&format!("{pages} pages written to {}\n", arguments.out.display()))
}

/// Writes the page of a command and those of the commands below it, and says how many they are.
fn write_pages(command: &Command, name: &str, folder: &Path) -> anyhow::Result<usize> {
    let page = clap_mangen::Man::new(command.clone()).title(name);
    write_whole(&folder.join(format!("{name}.1")), &|mut out: &mut dyn io::Write| {
        page.render(&mut out)
    })?;
    let mut pages = 1;
    // Every command has a subcommand 'help', which needs no page; nor do those that nobody types.
    let has_page = |below: &&Command| below.get_name() != "help" && !below.is_hide_set();
    for below in command.get_subcommands().filter(has_page) {
        pages += write_pages(below, &format!("{name}-{}", below.get_name()), folder)?;
    }
    Ok(pages)
}
