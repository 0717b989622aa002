//! Writing logs.

use std::io::{self, Write};

use super::record::Record;
use busbar_core::digits::Line;
use busbar_core::workload::Workload;

/// Writes a log line by line: comments first, then records, in which all 18 fields are written
/// with one blank between them.
///
/// Every line is one call of the underlying writer, so that should be a buffered one.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    line: Line,
}

impl<W: Write> Writer<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        Writer { out, line: Line::new() }
    }

    /// Writes a comment, of as many lines as the text has.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return self.out.write_all(b";\n");
        }
        // A lone carriage return ends a line in some readers, and what follows it must not pass
        // for a record there.
        text.split(['\n', '\r']).try_for_each(|line| match line.trim_end() {
            "" => self.out.write_all(b";\n"),
            line => writeln!(self.out, "; {line}"),
        })
    }

    /// Writes a record.
    #[inline]
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        let mut after = b'\n';
        for value in record.fields().into_iter().rev() {
            self.line.byte(after);
            self.line.integer(value);
            after = b' ';
        }
        self.out.write_all(self.line.as_bytes())
    }

    /// Hands back the underlying writer.
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
        self.out
    }
}

/// Writes a log: the comments, then the records.
pub fn write<C: AsRef<str>>(
    out: &mut impl Write,
    comments: impl IntoIterator<Item = C>,
    records: impl IntoIterator<Item = Record>,
) -> io::Result<()> {
    let mut writer = Writer::new(out);
    comments.into_iter().try_for_each(|comment| writer.comment(comment.as_ref()))?;
    records.into_iter().try_for_each(|record| writer.record(&record))
}

/// Header comments for a workload: the standard's version, how many jobs there are, the
/// machine and its processors if they are known, and the workload's name.
pub fn describe(workload: &Workload) -> Vec<String> {
    let jobs = workload.jobs().len();
    let mut comments = vec!["Version: 2.2".to_owned()];
    comments.extend(workload.computer().map(|computer| format!("Computer: {computer}")));
    comments.extend([
        format!("Note: {}", workload.name()),
        format!("MaxJobs: {jobs}"),
        format!("MaxRecords: {jobs}"),
    ]);
    comments.extend(workload.processors().map(|processors| format!("MaxProcs: {processors}")));
    comments
}
