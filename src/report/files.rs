//! A folder of results. Each file is complete or not there: it is written beside its place and
//! moved when done.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::slice;

use crate::metrics::{RunContext, Summary};
use crate::parallel::in_parallel;
use crate::report::digest::Digest;
use crate::report::html::page;
use crate::report::pictures::{Picture, pictures};
use crate::report::{
    Versioned, write_caps, write_changes, write_feeds, write_jobs, write_nodes, write_power,
    write_schedule,
};
#[cfg(feature = "parquet")]
use crate::report::{
    caps_table, changes_table, feeds_table, jobs_table, nodes_table, power_table, write_parquet,
};
use crate::sim::Run;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct ReportError {
    /// Which file or folder.
    pub(crate) path: PathBuf,
    /// The reason that the system gives.
    #[source]
    pub(crate) source: io::Error,
}

/// Makes a folder for results, unless it is there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(folder).map_err(|source| ReportError { path: folder.to_owned(), source })
}

/// In which form tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// As text: `.csv`.
    #[default]
    Csv,
    /// For programs: `.parquet`.
    #[cfg(feature = "parquet")]
    Parquet,
    /// In both forms.
    #[cfg(feature = "parquet")]
    Both,
}

impl Format {
    fn has_csv(self) -> bool {
        match self {
            Format::Csv => true,
            #[cfg(feature = "parquet")]
            Format::Parquet => false,
            #[cfg(feature = "parquet")]
            Format::Both => true,
        }
    }
}

/// What goes into a file.
type Content<'a> = Box<dyn Fn(&mut dyn Write) -> io::Result<()> + Sync + 'a>;

/// Writes tables of jobs and power, `schedule.swf`, `summary.json` and `report.html` into a folder,
/// which is made if need be, a table of changes if jobs changed while they ran, and one of caps if
/// nodes have caps of their own, and tables of feeds and of the nodes of jobs if the machine has feeds: all of them or none, on all cores. The same run gives the same bytes: timings are
/// not part of it. The digest is the run's own; it may be one that is made when it is asked for, beside the other
/// files.
pub(crate) fn write_folder(
    folder: &Path,
    subject: &RunContext<'_>,
    run: &Run,
    summary: &Summary,
    digest: &(dyn Deref<Target = Digest> + Sync),
    format: Format,
) -> Result<(), ReportError> {
    make_folder(folder)?;
    // What takes longest comes first.
    let mut files: Vec<(&str, Content<'_>)> = vec![(
        "report.html",
        Box::new(|out| {
            let RunContext { policy, workload, .. } = *subject;
            let title = format!("{policy} on {}", workload.name());
            out.write_all(page(&title, slice::from_ref(digest)).as_bytes())
        }),
    )];
    let (have_changed, have_caps) = (!run.changes.is_empty(), !run.cappings.is_empty());
    let (have_feeds, have_nodes) = (!run.feed_power.is_empty(), !run.placed.is_empty());
    if format.has_csv() {
        files.push(("jobs.csv", Box::new(|out| write_jobs(out, subject, run))));
        files.push(("power.csv", Box::new(|out| write_power(out, run))));
        if have_changed {
            files.push(("changes.csv", Box::new(|out| write_changes(out, subject, run))));
        }
        if have_caps {
            files.push(("caps.csv", Box::new(|out| write_caps(out, subject, run))));
        }
        if have_feeds {
            files.push(("feeds.csv", Box::new(|out| write_feeds(out, subject, run))));
        }
        if have_nodes {
            files.push(("nodes.csv", Box::new(|out| write_nodes(out, subject, run))));
        }
    }
    #[cfg(feature = "parquet")]
    if format != Format::Csv {
        let jobs = |out: &mut dyn Write| write_parquet(out, &jobs_table(subject, run));
        files.push(("jobs.parquet", Box::new(jobs)));
        files.push(("power.parquet", Box::new(|out| write_parquet(out, &power_table(run)))));
        if have_changed {
            let changes = |out: &mut dyn Write| write_parquet(out, &changes_table(subject, run));
            files.push(("changes.parquet", Box::new(changes)));
        }
        if have_caps {
            let caps = |out: &mut dyn Write| write_parquet(out, &caps_table(subject, run));
            files.push(("caps.parquet", Box::new(caps)));
        }
        if have_feeds {
            let feeds = |out: &mut dyn Write| write_parquet(out, &feeds_table(subject, run));
            files.push(("feeds.parquet", Box::new(feeds)));
        }
        if have_nodes {
            let nodes = |out: &mut dyn Write| write_parquet(out, &nodes_table(subject, run));
            files.push(("nodes.parquet", Box::new(nodes)));
        }
    }
    files.push(("schedule.swf", Box::new(|out| write_schedule(out, subject, run))));
    files.push((
        "summary.json",
        Box::new(|out| {
            serde_json::to_writer_pretty(&mut *out, &Versioned::new(summary))?;
            out.write_all(b"\n")
        }),
    ));
    let write =
        |(name, content): &(&str, Content<'_>)| Unfinished::write(&folder.join(name), content);
    let written: Result<Vec<Unfinished>, ReportError> =
        in_parallel(&files, write, &|_, _| ()).into_iter().collect();
    written?.into_iter().try_for_each(Unfinished::finish)
}

/// Writes the [pictures] of these runs into a folder, which is made if need be: all of them or none.
pub(crate) fn write_pictures(
    folder: &Path,
    digests: &[Digest],
    more: &[Picture],
) -> Result<(), ReportError> {
    make_folder(folder)?;
    let files: Result<Vec<Unfinished>, ReportError> = pictures(digests)
        .iter()
        .chain(more)
        .map(|picture| {
            let path = folder.join(&picture.name);
            path.parent().map_or(Ok(()), make_folder)?;
            Unfinished::write(&path, &|out| out.write_all(picture.svg.as_bytes()))
        })
        .collect();
    files?.into_iter().try_for_each(Unfinished::finish)
}

/// Writes a file so that it is there whole or not at all.
pub fn write_whole(
    path: &Path,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    Unfinished::write(path, content)?.finish()
}

/// A file that is written but not in its place yet. Left there, it is removed.
struct Unfinished {
    beside: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    fn write(
        path: &Path,
        content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Self, ReportError> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".unfinished");
        let file = Unfinished { beside: beside.into(), path: path.to_owned() };
        let written = File::create(&file.beside).and_then(|created| {
            let mut out = BufWriter::with_capacity(1 << 18, created);
            content(&mut out)?;
            out.flush()
        });
        match written {
            Ok(()) if !path.is_dir() => Ok(file),
            Ok(()) => Err(file.error(io::ErrorKind::IsADirectory.into())),
            Err(source) => Err(file.error(source)),
        }
    }

    fn finish(self) -> Result<(), ReportError> {
        fs::rename(&self.beside, &self.path).map_err(|source| self.error(source))
    }

    fn error(&self, source: io::Error) -> ReportError {
        ReportError { path: self.path.clone(), source }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Once it is in its place there is nothing here to remove.
        let _ = fs::remove_file(&self.beside);
    }
}
