//! The module `busbar._busbar`: commands of Busbar for Python.
//!
//! It takes the words of a command line and returns answers as JSON and tables in Arrow's form. What people see is in
//! `python/busbar`: functions with the options as keyword arguments, which make the words, and classes that hold the
//! answers. `waiting` runs a command beside Python, `failure` makes exceptions of failures, `table` gives
//! tables to pandas and polars, `html` shows them in notebooks, and `policies` lets classes in Python decide, on what `view` shows them, with
//! `decisions`.

use std::path::PathBuf;

use busbar::cli::GoesOn;
use busbar::commands::{self, Answer, Failure};
use busbar::report;
use pyo3::prelude::*;

mod decisions;
mod failure;
mod html;
mod policies;
mod table;
mod view;
mod waiting;

use decisions::{Change, Drop, Start, WakeAt};
use failure::raised;
use policies::{Described, Policies};
use table::Table;
use view::{Point, Running, View};
use waiting::interruptible;

/// A simulation that is over.
#[pyclass(frozen)]
struct Simulation {
    answer: Answer<commands::Simulation>,
}

impl Simulation {
    /// A table of it, with dates if the log has them.
    fn table(
        &self,
        py: Python<'_>,
        made: impl FnOnce(&commands::Simulation) -> report::Table<'static> + Send,
    ) -> PyResult<Table> {
        let done = &self.answer.more;
        py.detach(|| Table::new(made(done), done.calendar()))
    }
}

#[pymethods]
impl Simulation {
    /// The answer, as JSON.
    #[getter]
    fn json(&self) -> &str {
        &self.answer.json
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.answer.warnings.clone()
    }

    /// What the command prints for people.
    #[getter]
    fn text(&self) -> &str {
        self.answer.more.text()
    }

    fn jobs(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, |done| done.jobs())
    }

    fn power(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, |done| done.power())
    }

    fn changes(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, |done| done.changes())
    }

    fn caps(&self, py: Python<'_>) -> PyResult<Table> {
        self.table(py, |done| done.caps())
    }
}

/// The answer of a command: JSON, the text for people if there is one, a table if there is one, and warnings.
type Told = (String, String, Option<Table>, Vec<String>);

#[pyfunction]
fn simulate(py: Python<'_>, words: Vec<String>, policies: Vec<Described>) -> PyResult<Simulation> {
    let answer = with_policies(py, policies, |goes_on| commands::simulate(&words, goes_on))?;
    Ok(Simulation { answer })
}

#[pyfunction]
fn compare(py: Python<'_>, words: Vec<String>, policies: Vec<Described>) -> PyResult<Told> {
    let answer = with_policies(py, policies, |goes_on| commands::compare(&words, goes_on))?;
    let Answer { json, warnings, more } = answer;
    Ok((json, more.text, Some(Table::new(more.results, None)?), warnings))
}

/// Runs a command in which policies in Python can be named. What one of them raises counts before what the command
/// says of it.
fn with_policies<T: Send>(
    py: Python<'_>,
    policies: Vec<Described>,
    command: impl FnOnce(GoesOn) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let policies = Policies::new(py, policies)?;
    let done = interruptible(py, |goes_on| policies.during(&goes_on, command))?;
    match policies.exception(py) {
        Some(exception) => Err(exception),
        None => done.map_err(|failure| raised(py, &failure)),
    }
}

#[pyfunction]
fn workload(py: Python<'_>, words: Vec<String>) -> PyResult<Told> {
    let done = interruptible(py, |goes_on| commands::workload(&words, goes_on))?;
    let Answer { json, warnings, more } = done.map_err(|failure| raised(py, &failure))?;
    Ok((json, String::new(), Some(Table::new(more.jobs, more.calendar.as_ref())?), warnings))
}

#[pyfunction]
fn ask(py: Python<'_>, words: Vec<String>) -> PyResult<Told> {
    let done = interruptible(py, |goes_on| commands::ask(&words, goes_on))?;
    let Answer { json, warnings, .. } = done.map_err(|failure| raised(py, &failure))?;
    Ok((json, String::new(), None, warnings))
}

#[pyfunction]
fn whatif(py: Python<'_>, words: Vec<String>, policies: Vec<Described>) -> PyResult<Told> {
    let words = [vec!["whatif".to_owned()], words].concat();
    let Answer { json, warnings, .. } =
        with_policies(py, policies, |goes_on| commands::ask(&words, goes_on))?;
    Ok((json, String::new(), None, warnings))
}

/// The parameters of a command: name, whether it is given by its place, whether a value follows, what it means.
#[pyfunction]
fn parameters(command: Vec<String>) -> Option<Vec<(String, bool, bool, String)>> {
    let names: Vec<&str> = command.iter().map(String::as_str).collect();
    let parameters = commands::parameters(&names)?.into_iter();
    Some(parameters.map(|each| (each.name, each.by_place, each.has_value, each.help)).collect())
}

/// Says which file the module is, so that results in the cache are those of the same build.
#[pyfunction]
fn program_is(path: PathBuf) {
    commands::program_is(path);
}

#[pymodule]
mod _busbar {
    #[pymodule_export]
    use super::{
        Change, Drop, Point, Running, Simulation, Start, Table, View, WakeAt, ask, compare,
        parameters, program_is, simulate, whatif, workload,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
