//! Where results are kept from one time to the next, and on how many cores they are worked out.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;

use crate::cli::bar;
use crate::cli::warn;
use crate::experiment::cache::{Cache, Content};
use crate::experiment::run::{Manner, Results};
use crate::experiment::{Ready, all_cores};

/// Where and how.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Arguments {
    /// Keep results in this folder, and take from it those that are there [default: busbar in
    /// $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Work everything out, and keep nothing
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,

    /// On so many cores [default: all of them]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Arguments {
    /// Runs an experiment, with a progress bar if a person is watching; with `pictures`, what they
    /// need is kept.
    pub(super) fn run(&self, ready: &Ready<'_>, pictures: bool) -> anyhow::Result<Results> {
        let cache = self.open()?;
        let bar = bar::of("runs", ready.runs() as u64);
        let results = ready.run(&Manner {
            threads: self.threads.unwrap_or_else(all_cores),
            cache: cache.as_ref(),
            pictures,
            progress: &|done, _| bar.set_position(done),
        });
        bar.finish_and_clear();
        if let Some(error) = &results.not_kept {
            warn(&format!("results could not be kept for the next time: {error}"));
        }
        Ok(results)
    }

    fn open(&self) -> anyhow::Result<Option<Cache>> {
        if self.no_cache {
            return Ok(None);
        }
        let usual = || usual_folder(|name| std::env::var_os(name));
        let Some(folder) = self.cache.clone().or_else(usual) else { return Ok(None) };
        Ok(Some(Cache::new(folder, program()?)))
    }
}

/// The folder that the XDG Base Directory Specification names, in which a relative path counts as
/// none. A user without a home has none either.
fn usual_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    caches.map(|folder| folder.join("busbar"))
}

/// What tells this program from any other that may have written into the cache: its version, and
/// its own bytes, as a version may be built from changed sources.
fn program() -> anyhow::Result<String> {
    let path = std::env::current_exe().context("cannot find the program's own file")?;
    let bytes =
        fs::read(Path::new(&path)).with_context(|| format!("cannot read {}", path.display()))?;
    let mut content = Content::default();
    content.add_list(&bytes);
    Ok(format!("busbar {} {}", env!("CARGO_PKG_VERSION"), content.hex()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_where_the_specification_says() {
        let folder = |xdg: &'static str, home: &'static str| {
            usual_folder(|name| {
                let value = if name == "HOME" { home } else { xdg };
                (!value.is_empty()).then(|| value.into())
            })
        };
        assert_eq!(folder("/x", "/home/u"), Some("/x/busbar".into()));
        assert_eq!(folder("", "/home/u"), Some("/home/u/.cache/busbar".into()));
        assert_eq!(folder("relative", "/home/u"), Some("/home/u/.cache/busbar".into()));
        assert_eq!(folder("", ""), None);
    }
}
