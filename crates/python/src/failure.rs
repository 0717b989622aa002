//! Failures of commands as exceptions.

use busbar::commands::Failure;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The exception of a failure, with its text. The classes are in `busbar._errors`, where each can be a `busbar.Error`
/// and a `ValueError` or an `OSError` at once.
pub(crate) fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let class = if failure.is_of_the_system { "SystemFailure" } else { "InputError" };
    let made = || {
        let class = py.import("busbar._errors")?.getattr(class)?;
        class.call1((failure.text.as_str(),))
    };
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(_) => PyRuntimeError::new_err(failure.text.clone()),
    }
}
