//! From files to an import.

use std::io;
use std::path::Path;

use jiff::tz::TimeZone;

use super::collector::Collector;
use super::error::{Defect, ImportError};
use super::format::Format;
use super::import::Import;
use super::line::{Line, Lines, MARK};
use super::options::Options;
use super::reader::{Read, Reader, Trouble};
use super::sacct::json::{self, Stop};
use super::time::Clock;
use crate::unpacked::{self, Unpacked};

/// Reads files of records, one after another, as parts of one whole.
pub struct Importer {
    options: Options,
    zone: String,
    collector: Collector,
    formats: Vec<Format>,
    files: Vec<String>,
}

impl Importer {
    /// An importer that has read nothing yet.
    pub fn new(options: Options) -> Result<Self, ImportError> {
        let name = options.zone.clone().unwrap_or_else(|| "UTC".to_owned());
        let zone = TimeZone::get(&name).map_err(|_| ImportError::UnknownZone { name })?;
        let name = zone.iana_name().unwrap_or("UTC").to_owned();
        let collector = Collector::new(Clock::new(zone));
        Ok(Importer { options, zone: name, collector, formats: Vec::new(), files: Vec::new() })
    }

    /// Reads a file, plain or gzip, or standard input for `-`.
    pub fn read_path(&mut self, path: impl AsRef<Path>) -> Result<(), ImportError> {
        let file = unpacked::name_of(path.as_ref());
        let unreadable = |source| ImportError::Unreadable { file: file.clone(), source };
        let Unpacked { input, is_packed } = unpacked::open(path.as_ref()).map_err(unreadable)?;
        self.read(input, &file).map_err(|error| match error {
            ImportError::Unreadable { file, source } if is_packed => {
                ImportError::Damaged { file, source }
            }
            error => error,
        })
    }

    /// Reads records; `file` stands in messages.
    pub fn read(&mut self, input: impl io::Read, file: &str) -> Result<(), ImportError> {
        let unreadable = |source| ImportError::Unreadable { file: file.to_owned(), source };
        self.files.push(file.to_owned());
        let mut lines = Lines::new(input);
        // Nothing but JSON begins like this, and nothing but sacct writes it.
        if matches!(self.options.format, None | Some(Format::Sacct))
            && lines.peek().map_err(unreadable)? == Some(b'{')
        {
            return self.read_json(lines.into_rest(), file);
        }
        let mut reader: Option<Box<dyn Reader>> = None;
        // The number of a line is that of the one handed out last, so it is known before that is looked at.
        while let Some(line) = lines.next().map_err(unreadable)? {
            let trouble = match line {
                Line::TooLong => Some(Trouble::Defect(Defect::TooLong)),
                Line::Whole(text) if is_blank(text) => continue,
                Line::Whole(text) => {
                    let text = text.strip_prefix(MARK).unwrap_or(text);
                    let reader = match &mut reader {
                        Some(reader) => reader,
                        none => {
                            let format =
                                self.options.format.or_else(|| Format::of_first_line(text));
                            let Some(format) = format else {
                                let (file, line) = (file.to_owned(), lines.number());
                                return Err(ImportError::UnknownFormat { file, line });
                            };
                            self.found(format);
                            none.insert(format.reader())
                        }
                    };
                    match reader.take(text, &mut self.collector) {
                        Ok(Read::Heading) => continue,
                        Ok(Read::Record) => None,
                        Err(trouble) => Some(trouble),
                    }
                }
            };
            self.collector.intake.records += 1;
            let Some(trouble) = trouble else { continue };
            let (file, line) = (file.to_owned(), lines.number());
            match trouble {
                Trouble::Heading(why) => return Err(ImportError::Heading { file, line, why }),
                Trouble::Defect(defect) if self.options.is_strict => {
                    return Err(ImportError::Defect { file, line, defect });
                }
                Trouble::Defect(defect) => self.collector.intake.skip(&defect),
            }
        }
        Ok(())
    }

    /// Reads the records that `sacct --json` prints.
    fn read_json(&mut self, input: impl io::Read, file: &str) -> Result<(), ImportError> {
        self.found(Format::Sacct);
        let read = json::read(input, &mut self.collector, self.options.is_strict);
        read.map_err(|stop| {
            let file = file.to_owned();
            match stop {
                Stop::Input(source) => ImportError::Unreadable { file, source },
                Stop::Syntax { line, column, why } => {
                    ImportError::Syntax { file, line, column, why }
                }
                Stop::Foreign { line, why } => ImportError::Heading { file, line, why },
                Stop::Defect { line, defect } => ImportError::Defect { file, line, defect },
            }
        })
    }

    /// Notes a layout that was found.
    fn found(&mut self, format: Format) {
        if !self.formats.contains(&format) {
            self.formats.push(format);
        }
    }

    /// What was read, as one import.
    pub fn finish(self) -> Result<Import, ImportError> {
        Import::new(self.collector, self.formats, self.files, self.zone, &self.options)
    }
}

/// Blank lines and comments say nothing.
fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(|first| *first == b'#') || line.iter().all(u8::is_ascii_whitespace)
}
