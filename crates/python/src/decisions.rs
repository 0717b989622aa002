//! Decisions as Python writes them.

use busbar::model::OperatingPoint;
use busbar::policy::{Decision, DropReason, View as Present};
use busbar::units::{Instant, JobId, Span, Watts};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::view::Point;

/// Starts a waiting job: as it was asked for, or at one of its points.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Start {
    #[pyo3(get)]
    job: u32,
    point: Option<OperatingPoint>,
}

#[pymethods]
impl Start {
    #[new]
    #[pyo3(signature = (job, point=None))]
    fn new(job: u32, point: Option<&Bound<'_, Point>>) -> Self {
        Start { job, point: point.map(|point| point.get().point) }
    }

    fn __repr__(&self) -> String {
        format!("Start({})", self.job)
    }
}

/// Lets a running job go on at another of its points.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Change {
    #[pyo3(get)]
    job: u32,
    point: OperatingPoint,
}

#[pymethods]
impl Change {
    #[new]
    fn new(job: u32, point: &Bound<'_, Point>) -> Self {
        Change { job, point: point.get().point }
    }

    fn __repr__(&self) -> String {
        format!("Change({})", self.job)
    }
}

/// Gives a waiting job up: it will never run.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Drop {
    #[pyo3(get)]
    job: u32,
}

#[pymethods]
impl Drop {
    #[new]
    fn new(job: u32) -> Self {
        Drop { job }
    }

    fn __repr__(&self) -> String {
        format!("Drop({})", self.job)
    }
}

/// Asks the policy again at this simulated time, in seconds.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct WakeAt {
    #[pyo3(get)]
    time: f64,
}

#[pymethods]
impl WakeAt {
    #[new]
    fn new(time: f64) -> PyResult<Self> {
        match time.is_finite() && time >= 0.0 {
            true => Ok(WakeAt { time }),
            false => Err(PyValueError::new_err(format!("WakeAt({time}): write seconds from 0 on"))),
        }
    }

    fn __repr__(&self) -> String {
        format!("WakeAt({})", self.time)
    }
}

/// What one of the things means that `decide` returned.
pub(crate) fn decision(item: &Bound<'_, PyAny>, present: &Present<'_>) -> PyResult<Decision> {
    if let Ok(start) = item.cast::<Start>() {
        let start = start.get();
        return Ok(started(JobId(start.job), start.point, present));
    }
    if let Ok(pair) = item.cast::<PyTuple>() {
        let (job, point): (u32, Bound<'_, Point>) = pair.extract().map_err(|_| wrong(item))?;
        return Ok(started(JobId(job), Some(point.get().point), present));
    }
    if let Ok(change) = item.cast::<Change>() {
        let change = change.get();
        return Ok(changed(JobId(change.job), change.point, present));
    }
    if let Ok(drop) = item.cast::<Drop>() {
        return Ok(Decision::Drop { job: JobId(drop.get().job), reason: DropReason::Unsaid });
    }
    if let Ok(wake) = item.cast::<WakeAt>() {
        // Rounded up, so that it is not before what was asked for.
        return Ok(Decision::WakeAt(
            Instant::from_millis((wake.get().time * 1000.0).ceil() as u64),
        ));
    }
    let job: u32 = item.extract().map_err(|_| wrong(item))?;
    Ok(started(JobId(job), None, present))
}

fn wrong(item: &Bound<'_, PyAny>) -> PyErr {
    let shown = item.repr().map(|text| text.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!(
        "decide returned {shown}; a decision is a job, (job, point), Start, Change, Drop or WakeAt"
    ))
}

/// A start; of a job that was never submitted, one that is refused.
fn started(job: JobId, point: Option<OperatingPoint>, present: &Present<'_>) -> Decision {
    let nobody = OperatingPoint {
        nodes: 0,
        cores: 0,
        cap: Watts::ZERO,
        time: Span::ZERO,
        power: Watts::ZERO,
    };
    let is_known = job.index() < present.jobs.len();
    let point = point.unwrap_or_else(|| if is_known { present.nominal(job) } else { nobody });
    Decision::Start { job, point }
}

/// A change. What is left of the job takes as much longer or shorter as all of it would.
fn changed(job: JobId, point: OperatingPoint, present: &Present<'_>) -> Decision {
    let holding = present.ledger.held_by(job).filter(|_| job.index() < present.jobs.len());
    let Some(holding) = holding else {
        // It does not run, and that is why this is refused.
        return Decision::Change { job, point, pause: Span::ZERO, left: point.time };
    };
    let menu = present.menu(job);
    let is_old = |old: &&OperatingPoint| old.nodes == holding.nodes && old.power == holding.power;
    let old = menu.iter().find(is_old).map_or(point.time, |old| old.time);
    let left = u128::from(holding.until.since(present.now).millis());
    let stretched =
        (left * u128::from(point.time.millis())).div_ceil(u128::from(old.millis().max(1)));
    let stretched = Span::from_millis(u64::try_from(stretched).unwrap_or(u64::MAX));
    let pause = present.model.moving_time(job, present.job(job), holding.nodes, point.nodes);
    Decision::Change { job, point, pause, left: pause + stretched }
}
