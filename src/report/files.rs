//! A folder of results. Each file is complete or not there: it is written beside its place and
//! moved when done.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::metrics::{Subject, Summary};
use crate::report::{write_jobs, write_power, write_schedule};
use crate::sim::Run;

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct ReportError {
    /// Which file or folder.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Writes `jobs.csv`, `power.csv`, `schedule.swf` and `summary.json` into a folder, which is made
/// if need be. The same run gives the same bytes: timings are not part of it.
pub fn write_folder(
    folder: &Path,
    subject: &Subject<'_>,
    run: &Run,
    summary: &Summary,
) -> Result<(), ReportError> {
    fs::create_dir_all(folder).map_err(|source| ReportError { path: folder.to_owned(), source })?;
    let write = |name: &str, content: &dyn Fn(&mut dyn Write) -> io::Result<()>| {
        write_whole(&folder.join(name), content)
    };
    write("jobs.csv", &|out| write_jobs(out, subject, run))?;
    write("power.csv", &|out| write_power(out, run))?;
    write("schedule.swf", &|out| write_schedule(out, subject, run))?;
    write("summary.json", &|out| {
        serde_json::to_writer_pretty(&mut *out, summary)?;
        out.write_all(b"\n")
    })
}

/// Writes a file so that it is there whole or not at all.
pub fn write_whole(
    path: &Path,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let result = File::create(&unfinished).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        content(&mut out)?;
        out.flush()?;
        fs::rename(&unfinished, path)
    });
    result.map_err(|source| {
        // What is left of it is of no use; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&unfinished);
        ReportError { path: path.to_owned(), source }
    })
}
