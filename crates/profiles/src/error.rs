//! Why profiles could not be kept or found, in words that say what to do.

use std::io;
use std::path::PathBuf;

use busbar_core::profile::Configuration;
use busbar_core::spelling::hint;

/// Why profiles could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no such file.
    #[error(
        "there is no profile database {}; make one with 'busbar profile import FILE.csv' or \
         'busbar profile generate cab', or name another with --profiles",
        path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a profile database; name another file with --profiles", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
    },
    /// The file is a folder.
    #[error("{} is a folder; name a file in it with --profiles", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// A later version of the program made it.
    #[error(
        "{} was made by a newer busbar: its tables have version {version}, and this busbar supports versions up \
        to {known}; use the newer busbar, or export with it and import the table here",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The form it has.
        version: i32,
        /// The last form that is known.
        known: i32,
    },
    /// Nothing is known of an application.
    #[error("{} has no profile of '{application}'{} {}", path.display(), hint(application, known.iter().map(String::as_str)), there_are(known))]
    UnknownApplication {
        /// The file.
        path: PathBuf,
        /// Who was asked for.
        application: String,
        /// Who is there.
        known: Vec<String>,
    },
    /// The configuration was measured before.
    #[error("{application} on {configuration} is already measured")]
    AlreadyMeasured {
        /// The application, by its name.
        application: String,
        /// In which configuration.
        configuration: Configuration,
    },
    /// An application may not be called this.
    #[error("{application:?} is not a valid application name; write one or more words on one line")]
    BadName {
        /// What it was called.
        application: String,
    },
    /// A row says what cannot be.
    #[error(
        "{application} on {configuration}: the {field} must be above zero and below the maximum"
    )]
    BadRow {
        /// The application, by its name.
        application: String,
        /// In which configuration.
        configuration: Configuration,
        /// The field, by its name.
        field: &'static str,
    },
    /// The file cannot be read.
    #[error("cannot read the profile database {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: io::Error,
    },
    /// The file cannot be made or written to.
    #[error("cannot write to the profile database {}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: io::Error,
    },
    /// The file may be read and not written.
    #[error(
        "the profile database {} is read-only for you; ask its owner, or copy it: 'busbar profile export' and 'import'",
        path.display()
    )]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// Another program holds the file.
    #[error("another process is writing to the profile database {}; try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
    /// What is in the file cannot be read or changed.
    #[error("cannot use the profile database {}", path.display())]
    Database {
        /// The file.
        path: PathBuf,
        /// The reason that the system or the library gives.
        source: rusqlite::Error,
    },
}

/// The first few names of those there are.
fn there_are(known: &[String]) -> String {
    const FEW: usize = 8;
    match known.len() {
        0 => "it is empty: 'busbar profile import FILE.csv' fills it".to_owned(),
        count if count > FEW => {
            format!("there are {}, and {} more", known[..FEW].join(", "), count - FEW)
        }
        1 => format!("there is {}", known[0]),
        _ => format!("there are {}", known.join(", ")),
    }
}
