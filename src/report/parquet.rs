//! Tables in Parquet, with the columns of the CSV files.
//!
//! pandas, polars and DuckDB read such a file without being told what is in it: numbers are numbers,
//! and what is empty in a CSV file is null. `report/tables` says what the columns are, this file how they are
//! written: one row group, dictionaries for words, compressed with Snappy.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::report::tables::{Cells, Table};

impl Cells<'_> {
    fn schema(&self, name: &str) -> Result<Arc<Type>, ParquetError> {
        let column = |physical| {
            Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL)
        };
        let column = match self {
            Cells::Whole(_) => column(Physical::INT64)
                .with_logical_type(Some(LogicalType::integer(64, false)))
                .with_converted_type(ConvertedType::UINT_64),
            Cells::Number(_) => column(Physical::DOUBLE),
            Cells::Truth(_) => column(Physical::BOOLEAN),
            Cells::Word(_) => column(Physical::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8),
        };
        column.build().map(Arc::new)
    }

    fn write<W: Write + Send>(
        &self,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else { return Ok(()) };
        match self {
            Cells::Whole(cells) => {
                // The bits of a number without a sign are stored in one that has one.
                let (values, there) = present(cells, |value| *value as i64);
                column.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
            }
            Cells::Number(cells) => {
                let (values, there) = present(cells, |value| *value);
                column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
            }
            Cells::Truth(cells) => {
                let (values, there) = present(cells, |value| *value);
                column.typed::<BoolType>().write_batch(&values, Some(&there), None)?;
            }
            Cells::Word(cells) => {
                let (values, there) = present(cells, |text| ByteArray::from(text.as_ref()));
                column.typed::<ByteArrayType>().write_batch(&values, Some(&there), None)?;
            }
        }
        column.close()
    }
}

/// The cells that are there, and for each cell whether it is.
fn present<T, V>(cells: &[Option<T>], value: impl Fn(&T) -> V) -> (Vec<V>, Vec<i16>) {
    let values = cells.iter().flatten().map(value).collect();
    (values, cells.iter().map(|cell| i16::from(cell.is_some())).collect())
}

/// Writes a table as a Parquet file.
pub(crate) fn write_parquet(out: &mut dyn Write, table: &Table<'_>) -> io::Result<()> {
    // The writer wants to own what it writes to.
    let bytes = encoded(table).map_err(io::Error::other)?;
    out.write_all(&bytes)
}

fn encoded(table: &Table<'_>) -> Result<Vec<u8>, ParquetError> {
    let fields = table.columns.iter().map(|(name, cells)| cells.schema(name));
    let schema = Type::group_type_builder("busbar").with_fields(fields.collect::<Result<_, _>>()?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("busbar ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema.build()?), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for (_, cells) in &table.columns {
        cells.write(&mut group)?;
    }
    group.close()?;
    file.into_inner()
}

#[cfg(test)]
mod tests;
