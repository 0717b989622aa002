//! The curves of processors: from a file, or synthetic.

use std::path::Path;

use crate::cli::warn;
use crate::variation::Processors;
use crate::variation::catalyst::Catalyst;
use crate::variation::csv::Table;

/// The processors of a file, or synthetic ones, with their name.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<(Processors, String)> {
    let Some(path) = file else {
        let catalyst = Catalyst::default();
        let Catalyst { processors, seed, shape, .. } = catalyst;
        let source =
            format!("synthetic: catalyst, {processors} processors, seed {seed}, shape {shape}");
        return Ok((catalyst.measure().processors()?, source));
    };
    let table = Table::read(path)?;
    table.remarks(path).iter().for_each(|remark| warn(remark));
    Ok((table.processors, path.display().to_string()))
}
