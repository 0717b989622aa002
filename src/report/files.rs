//! A folder of results. Each file is complete or not there: it is written beside its place and
//! moved when done.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::slice;

use crate::metrics::RunContext;
use crate::report::digest::Digest;
use crate::report::html::page;
use crate::report::pictures::{Picture, pictures};
#[cfg(feature = "parquet")]
use crate::report::{Table, caps_table, changes_table, jobs_table, power_table, write_parquet};
use crate::report::{
    Versioned, write_caps, write_changes, write_jobs, write_power, write_schedule,
};
use crate::sim::Run;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct ReportError {
    /// Which file or folder.
    pub path: PathBuf,
    /// The reason that the system gives.
    #[source]
    pub source: io::Error,
}

/// Makes a folder for results, unless it is there.
pub fn make_folder(folder: &Path) -> Result<(), ReportError> {
    fs::create_dir_all(folder).map_err(|source| ReportError { path: folder.to_owned(), source })
}

/// In which form tables are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
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

/// Writes tables of jobs and power, `schedule.swf`, `summary.json` and `report.html` into a folder,
/// which is made if need be, a table of changes if jobs changed while they ran, and one of caps if
/// nodes have caps of their own: all of them or none. The same run gives the same bytes: timings are
/// not part of it. The digest is the run's own.
pub fn write_folder(
    folder: &Path,
    subject: &RunContext<'_>,
    run: &Run,
    digest: &Digest,
    format: Format,
) -> Result<(), ReportError> {
    make_folder(folder)?;
    let write = |name: &str, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        Unfinished::write(&folder.join(name), content)
    };
    let mut files = vec![
        write("schedule.swf", &|out| write_schedule(out, subject, run))?,
        write("summary.json", &|out| {
            serde_json::to_writer_pretty(&mut *out, &Versioned::new(&digest.summary))?;
            out.write_all(b"\n")
        })?,
        write("report.html", &|out| {
            let RunContext { policy, workload, .. } = *subject;
            let title = format!("{policy} on {}", workload.name());
            out.write_all(page(&title, slice::from_ref(digest)).as_bytes())
        })?,
    ];
    let (have_changed, have_caps) = (!run.changes.is_empty(), !run.cappings.is_empty());
    if format.has_csv() {
        files.push(write("jobs.csv", &|out| write_jobs(out, subject, run))?);
        files.push(write("power.csv", &|out| write_power(out, run))?);
        if have_changed {
            files.push(write("changes.csv", &|out| write_changes(out, subject, run))?);
        }
        if have_caps {
            files.push(write("caps.csv", &|out| write_caps(out, subject, run))?);
        }
    }
    #[cfg(feature = "parquet")]
    if format != Format::Csv {
        let mut write_table = |name: &str, table: &Table<'_>| -> Result<(), ReportError> {
            files.push(write(name, &|out| write_parquet(out, table))?);
            Ok(())
        };
        write_table("jobs.parquet", &jobs_table(subject, run))?;
        write_table("power.parquet", &power_table(run))?;
        if have_changed {
            write_table("changes.parquet", &changes_table(subject, run))?;
        }
        if have_caps {
            write_table("caps.parquet", &caps_table(subject, run))?;
        }
    }
    files.into_iter().try_for_each(Unfinished::finish)
}

/// Writes the [pictures] of these runs into a folder, which is made if need be: all of them or none.
pub fn write_pictures(
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
