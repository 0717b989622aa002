//! Which application an executable is: a file of `executable,application` rows.
//!
//! The numbers of executables in logs name nothing by themselves. Who knows what they stand for says so here;
//! of those that the file does not name, the application is drawn like that of any other.

use std::collections::BTreeMap;
use std::path::Path;

use crate::job::Job;
use crate::rows::{Form, TableError};
use crate::spelling::hint;

const NAMES: Form = Form {
    what: "the applications of executables in",
    columns: &["executable", "application"],
    form: "write executable,application, such as 17,CoMD",
};

/// Applications by the numbers of executables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Names(BTreeMap<u32, u16>);

impl Names {
    /// Reads a file that names these applications.
    pub fn read(path: &Path, applications: &[String]) -> Result<Self, TableError> {
        Names::parse(&NAMES.read(path)?, path, applications)
    }

    fn parse(text: &str, path: &Path, applications: &[String]) -> Result<Self, TableError> {
        let mut names = BTreeMap::new();
        for cells in NAMES.rows(text, path) {
            let cells = cells?;
            let [executable, application] = cells.all();
            let wrong = |field, why: String| cells.unreadable(field, why);
            let number: u32 =
                executable.parse().ok().filter(|number| *number > 0).ok_or_else(|| {
                    wrong("executable", format!("'{executable}' is not a number above 0"))
                })?;
            let place = applications.iter().position(|each| each == application);
            let place = place.ok_or_else(|| {
                let known = || applications.iter().map(String::as_str);
                let hint = hint(application, known());
                let known: Vec<&str> = known().collect();
                let known = known.join(", ");
                let why = format!("no law describes '{application}'{hint} there are {known}");
                wrong("application", why)
            })?;
            if names.insert(number, place as u16).is_some() {
                return Err(wrong("executable", format!("{number} is given twice; keep one")));
            }
        }
        Ok(Names(names))
    }

    /// The application of a job, if its executable is named.
    pub fn of(&self, job: &Job) -> Option<u16> {
        self.0.get(&job.application?.0.get()).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::job::ApplicationId;
    use crate::units::{Instant, Span};
    use crate::world::catalogue;

    fn read(text: &str) -> Result<Names, String> {
        let applications = catalogue::applications().into_iter().map(|each| each.name);
        let applications: Vec<String> = applications.collect();
        Names::parse(text, Path::new("names.csv"), &applications).map_err(|why| why.to_string())
    }

    #[test]
    fn executables_are_named() {
        let names = read("executable,application\n17,CoMD\n# more\n3, LeanMD\n").unwrap();
        let job = |executable: u32| Job {
            application: NonZeroU32::new(executable).map(ApplicationId),
            ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1))
        };
        assert_eq!((names.of(&job(17)), names.of(&job(3))), (Some(13), Some(0)));
        assert_eq!((names.of(&job(4)), names.of(&job(0))), (None, None));
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| read(text).unwrap_err();
        let said = error("17,CoMd");
        assert!(said.starts_with("names.csv, line 1, field 'application': no law"), "{said}");
        assert!(said.contains("did you mean 'CoMD'?"), "{said}");
        assert!(error("x,CoMD").contains("'x' is not a number above 0"));
        assert!(error("0,CoMD").contains("field 'executable'"));
        assert!(error("5").contains("'5' is not 2 fields"));
        assert!(error("5,CoMD\n5,LeanMD").contains("line 2, field 'executable': 5 is given twice"));
    }
}
