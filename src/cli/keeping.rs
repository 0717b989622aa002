//! The cache of results, and the number of threads.

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, OnceLock};
use std::time::{Duration, Instant as Clock};

use anyhow::{Context, bail};
use clap::Args;
use indicatif::ProgressBar;

use crate::cli::host::{self, GoesOn};
use crate::cli::{bar, note, warn};
use crate::experiment::cache::{Cache, Content};
use crate::experiment::estimate::Estimate;
use crate::experiment::run::{Manner, Part, Results, Watch};
use crate::experiment::{Cell, CellOutcome, CheckedExperiment, Tried, all_cores};

/// The options of the cache and of threads.
#[derive(Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Cache and threads")]
pub(super) struct Arguments {
    /// Folder of the cache of results [default: busbar in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,

    /// Ignore the cache
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl Arguments {
    /// Runs an experiment, with a progress bar if a person is watching; with `pictures`, what they
    /// need is kept. `done` hears of each run that is done.
    pub(super) fn run(
        &self,
        checked: &CheckedExperiment<'_>,
        pictures: bool,
        done: &(dyn Fn(&Tried) + Sync),
    ) -> anyhow::Result<Results> {
        self.run_part(checked, pictures, None, done)
    }

    /// The same with only a part of the runs.
    pub(super) fn run_part(
        &self,
        checked: &CheckedExperiment<'_>,
        pictures: bool,
        part: Option<Part>,
        done: &(dyn Fn(&Tried) + Sync),
    ) -> anyhow::Result<Results> {
        let cache = self.open()?;
        // A comparison asks several times.
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            note(|| match self.folder().filter(|_| cache.is_some()) {
                Some(folder) => format!("the cache is {}", folder.display()),
                None => "no cache is used".to_owned(),
            });
        });
        let threads = self.threads.unwrap_or_else(all_cores);
        let estimate = Mutex::new(Estimate::new(checked.cells(), threads.get()));
        let watched = Watched { estimate: Arc::new(estimate), began: Clock::now() };
        let left = watched.clone();
        let bar = bar::with_estimate("runs", checked.cells().len() as u64, move || left.left());
        let goes_on = host::goes_on();
        let said = |tried: &Tried| {
            note(|| {
                let how = match &tried.outcome {
                    CellOutcome::CannotRun(why) => why.as_str(),
                    CellOutcome::Ran(_) if tried.reused => "result taken from the cache",
                    CellOutcome::Ran(_) => "simulated",
                };
                format!("{}: {how}", checked.described(&tried.cell))
            });
            done(tried);
        };
        let watch =
            &Watcher { watched, bar: bar.clone(), done: &said, goes_on: Arc::clone(&goes_on) };
        let results =
            checked.run(&Manner { threads, cache: cache.as_ref(), pictures, part, watch });
        bar.finish_and_clear();
        if goes_on().is_break() {
            bail!("stopped before all runs were done");
        }
        if let Some(error) = &results.not_kept {
            warn(&format!("results could not be written to the cache: {error}"));
        }
        Ok(results)
    }

    fn open(&self) -> anyhow::Result<Option<Cache>> {
        if self.no_cache {
            return Ok(None);
        }
        let Some(folder) = self.folder() else { return Ok(None) };
        Ok(Some(Cache::new(folder, program()?)))
    }

    /// The folder in which results are kept, if there is one.
    pub(super) fn folder(&self) -> Option<PathBuf> {
        let usual = || usual_folder(|name| std::env::var_os(name));
        self.cache.clone().or_else(usual)
    }
}

/// The estimate of the remaining time, and when the runs began.
#[derive(Clone)]
struct Watched {
    estimate: Arc<Mutex<Estimate>>,
    began: Clock,
}

impl Watched {
    fn with<T>(&self, act: impl FnOnce(&mut Estimate, Duration) -> T) -> T {
        let mut estimate = self.estimate.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        act(&mut estimate, self.began.elapsed())
    }

    fn left(&self) -> Option<String> {
        self.with(|estimate, now| estimate.left(now)).map(|left| left.to_string())
    }
}

/// Reports each run to the progress bar and the caller.
struct Watcher<'a> {
    watched: Watched,
    bar: ProgressBar,
    done: &'a (dyn Fn(&Tried) + Sync),
    goes_on: GoesOn,
}

impl Watch for Watcher<'_> {
    fn begun(&self, cell: &Cell) {
        self.watched.with(|estimate, now| estimate.begun(cell, now));
    }

    fn done(&self, tried: &Tried) {
        self.watched.with(|estimate, now| estimate.done(tried, now));
        self.bar.inc(1);
        // The bar is out of the way of whatever is written.
        self.bar.suspend(|| (self.done)(tried));
    }

    fn goes_on(&self) -> ControlFlow<()> {
        (self.goes_on)()
    }
}

/// The folder that the XDG Base Directory Specification names, in which a relative path counts as
/// none. A user without a home has none either.
fn usual_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    caches.map(|folder| folder.join("busbar"))
}

/// The file of this program, where it is not the one that runs.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Says which file this program is. The first word counts.
pub(super) fn program_is(path: PathBuf) {
    let _ = PROGRAM.set(path);
}

/// What tells this program from any other that may have written into the cache: its version, and
/// its own bytes, as a version may be built from changed sources.
fn program() -> anyhow::Result<String> {
    let path = match PROGRAM.get() {
        Some(path) => path.clone(),
        None => std::env::current_exe().context("cannot find the program's own file")?,
    };
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut content = Content::default();
    content.add(&[&bytes]);
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
