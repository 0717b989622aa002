//! What a policy in Python sees: arrays, made when they are asked for.
//!
//! A view may be kept after its turn, so it borrows nothing. What never changes of jobs is in a book that all views of a
//! run share; a view itself holds who waits and who runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use busbar::ledger::Holding;
use busbar::model::OperatingPoint;
use busbar::policy::{Room, View as Present};
use busbar::units::{Instant, JobId, Span, Watts};
use pyo3::exceptions::{PyIndexError, PyModuleNotFoundError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

/// What a job asks for, and how it may run.
#[derive(Clone)]
struct Entry {
    submit: Instant,
    requested: Span,
    user: i64,
    application: i64,
    nominal: OperatingPoint,
    /// The least that any of its points takes.
    least: (u32, Watts),
    /// All points of its menu, if the policy chooses among them.
    points: Vec<OperatingPoint>,
}

/// The jobs that have arrived so far, by their ids.
pub(crate) struct Book {
    entries: Vec<Option<Entry>>,
    has_choices: bool,
}

impl Book {
    pub(crate) fn new(has_choices: bool) -> Self {
        Book { entries: Vec::new(), has_choices }
    }

    /// Writes down the jobs that have arrived.
    pub(crate) fn note(&mut self, present: &Present<'_>) {
        for id in present.changes.arrived {
            let job = present.job(*id);
            let points = match self.has_choices {
                true => present.menu(*id).to_vec(),
                false => Vec::new(),
            };
            let nominal = present.nominal(*id);
            let all = || points.iter().chain([&nominal]);
            let nodes = all().map(|point| point.nodes).min().unwrap_or(0);
            let power = all().map(|point| point.power).min().unwrap_or(Watts::ZERO);
            let least = (nodes, power);
            let entry = Entry {
                submit: job.submit,
                requested: job.requested,
                user: job.user.map_or(-1, |user| user.0.get().into()),
                application: job.application.map_or(-1, |known| known.0.get().into()),
                nominal,
                least,
                points,
            };
            if self.entries.len() <= id.index() {
                self.entries.resize(id.index() + 1, None);
            }
            self.entries[id.index()] = Some(entry);
        }
    }

    /// Whether any waiting job could start with what is free.
    pub(crate) fn has_candidate(&self, present: &Present<'_>) -> bool {
        let (nodes, power) = (present.ledger.free_nodes(), present.ledger.free_power());
        let fits = |entry: &Entry| entry.least.0 <= nodes && entry.least.1 <= power;
        present.queue.iter().any(|id| self.entry(id).is_none_or(fits))
    }

    fn entry(&self, id: JobId) -> Option<&Entry> {
        self.entries.get(id.index())?.as_ref()
    }
}

/// The present, for a policy: the waiting jobs as arrays of the same length, in submit order.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct View {
    /// The simulated time, in seconds.
    #[pyo3(get)]
    now: f64,
    /// Nodes that are free.
    #[pyo3(get)]
    free_nodes: u32,
    /// Power that is free, in watts; infinite without a budget.
    #[pyo3(get)]
    free_watts: f64,
    /// The limit that holds now, in watts; infinite without a budget.
    #[pyo3(get)]
    budget: f64,
    /// Nodes of the machine that are in service.
    #[pyo3(get)]
    total_nodes: u32,
    waiting: Vec<JobId>,
    running: Vec<Holding>,
    room: Room,
    book: Arc<Mutex<Book>>,
}

/// One way to run a job.
#[pyclass(frozen, module = "busbar", eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct Point {
    pub(crate) point: OperatingPoint,
}

#[pymethods]
impl Point {
    /// Nodes that it takes.
    #[getter]
    fn nodes(&self) -> u32 {
        self.point.nodes
    }

    /// Cores that it uses in each of them.
    #[getter]
    fn cores(&self) -> u32 {
        self.point.cores
    }

    /// The cap of each node, in watts.
    #[getter]
    fn cap(&self) -> f64 {
        self.point.cap.as_f64()
    }

    /// What the job draws, in watts.
    #[getter]
    fn watts(&self) -> f64 {
        self.point.power.as_f64()
    }

    /// How long the job holds its nodes at most, in seconds.
    #[getter]
    fn time(&self) -> f64 {
        self.point.time.secs_f64()
    }

    fn __repr__(&self) -> String {
        let OperatingPoint { nodes, cap, .. } = self.point;
        format!(
            "Point(nodes={nodes}, cap={}, watts={}, time={})",
            cap.as_f64(),
            self.watts(),
            self.time()
        )
    }
}

fn seconds(at: Instant) -> f64 {
    at.millis() as f64 / 1000.0
}

impl View {
    pub(crate) fn new(present: &Present<'_>, book: Arc<Mutex<Book>>) -> Self {
        let ledger = present.ledger;
        let mut waiting = Vec::with_capacity(present.queue.len());
        waiting.extend(present.queue.iter());
        let mut running = Vec::with_capacity(ledger.running().len());
        running.extend(ledger.running().iter().copied());
        let limit = ledger.limit().limited();
        View {
            now: seconds(present.now),
            free_nodes: ledger.free_nodes(),
            free_watts: limit.map_or(f64::INFINITY, |_| ledger.free_power().as_f64()),
            budget: limit.map_or(f64::INFINITY, Watts::as_f64),
            total_nodes: ledger.nodes_in_service(),
            waiting,
            running,
            room: Room::of(present),
            book,
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A column of the waiting jobs.
    fn whole<'py>(
        &self,
        py: Python<'py>,
        figure: impl Fn(&Entry) -> i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The book is closed again before numpy runs, which may let other threads run.
        let cells: Vec<u8> = {
            let book = self.book();
            let cells = self.waiting.iter().map(|id| book.entry(*id).map_or(-1, &figure));
            cells.flat_map(i64::to_ne_bytes).collect()
        };
        array(py, Kind::Whole, cells)
    }

    /// The same with numbers that are not whole.
    fn number<'py>(
        &self,
        py: Python<'py>,
        figure: impl Fn(&Entry) -> f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        // The book is closed again before numpy runs, which may let other threads run.
        let cells: Vec<u8> = {
            let book = self.book();
            let cells = self.waiting.iter().map(|id| book.entry(*id).map_or(f64::NAN, &figure));
            cells.flat_map(f64::to_ne_bytes).collect()
        };
        array(py, Kind::Number, cells)
    }
}

#[pymethods]
impl View {
    /// How many jobs wait.
    fn __len__(&self) -> usize {
        self.waiting.len()
    }

    /// The waiting jobs by their numbers, which are their places in the workload from 0.
    #[getter]
    fn jobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ids = self.waiting.iter().flat_map(|id| i64::from(id.0).to_ne_bytes());
        array(py, Kind::Whole, ids.collect())
    }

    /// The nodes that each waiting job asks for.
    #[getter]
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole(py, |entry| entry.nominal.nodes.into())
    }

    /// The time that each waiting job asks for, in seconds.
    #[getter]
    fn requested<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, |entry| entry.requested.secs_f64())
    }

    /// When each waiting job was submitted, in seconds.
    #[getter]
    fn submit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, |entry| seconds(entry.submit))
    }

    /// What each waiting job is believed to draw if it runs as it was asked for, in watts.
    #[getter]
    fn watts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, |entry| entry.nominal.power.as_f64())
    }

    /// The number of each waiting job's user, -1 if it is not known.
    #[getter]
    fn user<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole(py, |entry| entry.user)
    }

    /// The number of each waiting job's application, -1 if it is not known.
    #[getter]
    fn application<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole(py, |entry| entry.application)
    }

    /// The running jobs, as arrays of the same length, in the order in which they are expected to end.
    #[getter]
    fn running(&self) -> Running {
        Running { holdings: self.running.clone() }
    }

    /// The ways to run a job, the one that it asks for first. There is only that one if the policy wants no choice.
    fn points(&self, job: u32) -> PyResult<Vec<Point>> {
        let book = self.book();
        let known = book.entry(JobId(job));
        let entry = known
            .ok_or_else(|| PyIndexError::new_err(format!("no job {job} was submitted yet")))?;
        let point = |point: &OperatingPoint| Point { point: *point };
        Ok(match entry.points.is_empty() {
            true => vec![point(&entry.nominal)],
            false => entry.points.iter().map(point).collect(),
        })
    }

    /// The jobs that fit, one after the other: each as it was asked for, if it fits beside those before it.
    ///
    /// `order` is places in the arrays of this view, such as `view.requested.argsort()`; without it, the order is that
    /// of submission. Returns jobs, as `decide` may return them.
    #[pyo3(signature = (order=None))]
    fn first_fit(&self, py: Python<'_>, order: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u32>> {
        let places: Vec<usize> = match order {
            Some(order) => places(py, order)?,
            None => (0..self.waiting.len()).collect(),
        };
        let book = self.book();
        let mut room = self.room.clone();
        let mut jobs = Vec::new();
        for place in places {
            let Some(id) = self.waiting.get(place) else {
                let count = self.waiting.len();
                let text =
                    format!("place {place} of the order is not one of the {count} waiting jobs");
                return Err(PyIndexError::new_err(text));
            };
            if room.nodes() == 0 {
                break;
            }
            let Some(entry) = book.entry(*id) else { continue };
            if room.admits(&entry.nominal) {
                room.take(&entry.nominal);
                jobs.push(id.0);
            }
        }
        Ok(jobs)
    }

    fn __repr__(&self) -> String {
        let (waiting, free) = (self.waiting.len(), self.free_nodes);
        format!("<busbar.View: {} s, {waiting} jobs wait, {free} nodes are free>", self.now)
    }
}

/// The running jobs.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Running {
    holdings: Vec<Holding>,
}

impl Running {
    fn whole<'py>(
        &self,
        py: Python<'py>,
        figure: impl Fn(&Holding) -> i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cells = self.holdings.iter().map(figure);
        array(py, Kind::Whole, cells.flat_map(i64::to_ne_bytes).collect())
    }

    fn number<'py>(
        &self,
        py: Python<'py>,
        figure: impl Fn(&Holding) -> f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let cells = self.holdings.iter().map(figure);
        array(py, Kind::Number, cells.flat_map(f64::to_ne_bytes).collect())
    }
}

#[pymethods]
impl Running {
    /// How many jobs run.
    fn __len__(&self) -> usize {
        self.holdings.len()
    }

    /// The running jobs by their numbers.
    #[getter]
    fn jobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole(py, |holding| holding.job.0.into())
    }

    /// The nodes that each holds.
    #[getter]
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.whole(py, |holding| holding.nodes.into())
    }

    /// The power that each holds, in watts.
    #[getter]
    fn watts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, |holding| holding.power.as_f64())
    }

    /// When each ends at the latest, in seconds.
    #[getter]
    fn until<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.number(py, |holding| seconds(holding.until))
    }
}

/// The type of an array's cells.
#[derive(Clone, Copy)]
enum Kind {
    Whole,
    Number,
}

/// What is needed of numpy: `frombuffer`, `asarray`, and the types of whole and of other numbers.
struct Numpy {
    from_buffer: Py<PyAny>,
    as_array: Py<PyAny>,
    whole: Py<PyAny>,
    number: Py<PyAny>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

fn numpy(py: Python<'_>) -> PyResult<&Numpy> {
    NUMPY.get_or_try_init(py, || {
        let numpy = py.import("numpy").map_err(|_| {
            PyModuleNotFoundError::new_err("policies in Python need numpy: pip install numpy")
        })?;
        let kind = |name: &str| numpy.call_method1("dtype", (name,)).map(Bound::unbind);
        Ok(Numpy {
            from_buffer: numpy.getattr("frombuffer")?.unbind(),
            as_array: numpy.getattr("asarray")?.unbind(),
            whole: kind("int64")?,
            number: kind("float64")?,
        })
    })
}

/// An array that cannot be written to.
fn array(py: Python<'_>, kind: Kind, bytes: Vec<u8>) -> PyResult<Bound<'_, PyAny>> {
    let numpy = numpy(py)?;
    let kind = match kind {
        Kind::Whole => &numpy.whole,
        Kind::Number => &numpy.number,
    };
    numpy.from_buffer.bind(py).call1((PyBytes::new(py, &bytes), kind))
}

/// Places from an array, or from whatever numpy makes an array of whole numbers of.
fn places(py: Python<'_>, order: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let numpy = numpy(py)?;
    let array = numpy.as_array.bind(py).call1((order, &numpy.whole))?;
    let bytes = array.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    let (cells, _) = bytes.as_bytes().as_chunks::<8>();
    let place = |cell: &[u8; 8]| usize::try_from(i64::from_ne_bytes(*cell));
    let places: Result<Vec<usize>, _> = cells.iter().map(place).collect();
    places.map_err(|_| PyIndexError::new_err("the places of an order are not negative"))
}
