//! Tables in Arrow's form, handed over without a copy.
//!
//! pandas, polars, pyarrow and DuckDB take any object with `__arrow_c_stream__`: the Arrow PyCapsule interface. The
//! arrays are made once, and everybody who asks gets the same memory.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use busbar::report::{self, Cells};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// Columns with names, for pandas, polars and whoever else takes Arrow's form.
#[pyclass(frozen, module = "busbar")]
pub(crate) struct Table {
    rows: RecordBatch,
}

impl Table {
    pub(crate) fn new(table: report::Table<'_>) -> PyResult<Self> {
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = table
            .columns
            .into_iter()
            .map(|(name, cells)| {
                let column = array(cells);
                (Field::new(name, column.data_type().clone(), true), column)
            })
            .unzip();
        // All columns have as many cells, so this does not happen.
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(Table { rows })
    }
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
