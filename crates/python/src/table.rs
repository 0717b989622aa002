//! Tables in Arrow's form, handed over without a copy.
//!
//! pandas, polars, pyarrow and DuckDB take any object with `__arrow_c_stream__`: the Arrow PyCapsule interface. The
//! arrays are made once, and everybody who asks gets the same memory. Seconds from the start of a log stand in the
//! columns of the CSV files; where the log has dates, they stand in columns beside them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use busbar::calendar::Calendar;
use busbar::report::{self, Cells};
use busbar::units::Instant;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::html;

/// Columns of instants, in seconds from the start of the log, and what their dates are called.
const DATED: [(&str, &str); 4] =
    [("submit", "submit_date"), ("start", "start_date"), ("end", "end_date"), ("time", "date")];

/// Columns with names, for pandas, polars and whoever else takes Arrow's form.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Table {
    rows: RecordBatch,
}

impl Table {
    /// A table, with dates if the log has them.
    pub(crate) fn new(table: report::Table<'_>, calendar: Option<&Calendar>) -> PyResult<Self> {
        let dates: Vec<(String, ArrayRef)> = calendar
            .into_iter()
            .flat_map(|calendar| table.columns.iter().filter_map(move |each| dates(each, calendar)))
            .collect();
        let columns = table.columns.into_iter().map(|(name, cells)| (name.into(), array(cells)));
        Table::of(columns.chain(dates))
    }

    fn of(columns: impl IntoIterator<Item = (String, ArrayRef)>) -> PyResult<Self> {
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns
            .into_iter()
            .map(|(name, column)| (Field::new(name, column.data_type().clone(), true), column))
            .unzip();
        // All columns have as many cells, so this does not happen.
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Table { rows })
    }
}

/// The dates of a column, if it has instants.
fn dates(
    (name, cells): &(std::borrow::Cow<'static, str>, Cells<'_>),
    calendar: &Calendar,
) -> Option<(String, ArrayRef)> {
    let (_, dated) = DATED.iter().find(|(instant, _)| instant == name)?;
    let Cells::Number(seconds) = cells else { return None };
    let date = |seconds: f64| {
        calendar.time(Instant::from_millis((seconds * 1000.0).round() as u64)).as_millisecond()
    };
    let dates: TimestampMillisecondArray = seconds.iter().map(|cell| cell.map(date)).collect();
    // A zone that has an offset and no name is shown as UTC: the instants are the same.
    let zone = calendar.zone().iana_name().unwrap_or("UTC");
    Some(((*dated).to_owned(), Arc::new(dates.with_timezone(zone))))
}

fn array(cells: Cells<'_>) -> ArrayRef {
    match cells {
        Cells::Whole(cells) => Arc::new(UInt64Array::from(cells)),
        Cells::Number(cells) => Arc::new(Float64Array::from(cells)),
        Cells::Truth(cells) => Arc::new(BooleanArray::from(cells)),
        Cells::Word(cells) => Arc::new(cells.into_iter().collect::<StringArray>()),
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.rows.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<busbar.Table: {} rows of {}>", self.rows.num_rows(), self.columns().join(", "))
    }

    /// The first rows, for notebooks.
    fn _repr_html_(&self) -> String {
        html::table(&self.rows)
    }

    /// A column as an array of numpy: dates in UTC, and whole numbers as others if some are missing.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.rows.column_by_name(name).ok_or_else(|| {
            let there = self.columns().join(", ");
            PyKeyError::new_err(format!("no column '{name}'; there are {there}"))
        })?;
        let is_whole = column.null_count() == 0;
        let (cells, kind) = match column.data_type() {
            DataType::UInt64 if is_whole => {
                (PyList::new(py, column.as_primitive::<UInt64Type>().values().iter())?, "int64")
            }
            DataType::UInt64 => (PyList::new(py, column.as_primitive::<UInt64Type>())?, "float64"),
            DataType::Float64 => {
                (PyList::new(py, column.as_primitive::<Float64Type>())?, "float64")
            }
            DataType::Boolean if is_whole => (PyList::new(py, column.as_boolean())?, "bool"),
            DataType::Boolean => (PyList::new(py, column.as_boolean())?, "object"),
            DataType::Timestamp(..) => {
                let dates = column.as_primitive::<TimestampMillisecondType>();
                (PyList::new(py, dates)?, "datetime64[ms]")
            }
            _ => (PyList::new(py, column.as_string::<i32>())?, "object"),
        };
        py.import("numpy")?.call_method1("asarray", (cells, kind))
    }

    /// The time zone of its dates, if it has any.
    #[getter]
    fn zone(&self) -> Option<String> {
        let zone = |field: &Arc<Field>| match field.data_type() {
            DataType::Timestamp(_, zone) => zone.as_deref().map(str::to_owned),
            _ => None,
        };
        self.rows.schema_ref().fields().iter().find_map(zone)
    }

    /// The same table with names in the place of numbers, which count them from 1.
    fn named(&self, names: HashMap<String, Vec<String>>) -> PyResult<Table> {
        let name = |(field, column): (&Arc<Field>, &ArrayRef)| {
            let named: ArrayRef = match (names.get(field.name()), column.data_type()) {
                (Some(names), DataType::UInt64) => {
                    let name =
                        |number: u64| names.get(usize::try_from(number).ok()?.checked_sub(1)?);
                    let numbers = column.as_primitive::<UInt64Type>().iter();
                    let named: StringArray = numbers.map(|number| name(number?)).collect();
                    Arc::new(named)
                }
                _ => Arc::clone(column),
            };
            (field.name().clone(), named)
        };
        Table::of(self.rows.schema_ref().fields().iter().zip(self.rows.columns()).map(name))
    }

    /// The table as a stream in Arrow's C form. A consumer that wants other types converts by itself, which the
    /// protocol allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let rows = std::iter::once(Ok(self.rows.clone()));
        let reader = RecordBatchIterator::new(rows, self.rows.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The table as a pandas DataFrame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let pandas = slf.py().import("pandas")?.getattr("DataFrame")?;
        match pandas.getattr("from_arrow") {
            Ok(from_arrow) => from_arrow.call1((slf,)),
            Err(_) => {
                let table = slf.py().import("pyarrow")?.call_method1("table", (slf,))?;
                table.call_method0("to_pandas")
            }
        }
    }

    /// The table as a polars DataFrame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }
}
