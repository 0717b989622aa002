//! The curves of processors: from a file, or made up.

use std::path::Path;

use crate::cli::warn;
use crate::variation::Processors;
use crate::variation::catalyst::Catalyst;
use crate::variation::csv::{NOISE_THOUSANDTHS, Table};

/// The processors of a file, or those that are made up; and what to call them.
pub(super) fn load(file: Option<&Path>) -> anyhow::Result<(Processors, String)> {
    let Some(path) = file else {
        let catalyst = Catalyst::default();
        let Catalyst { processors, seed, shape, .. } = catalyst;
        let source =
            format!("made up: catalyst, {processors} processors, seed {seed}, shape {shape}");
        return Ok((catalyst.measure().processors()?, source));
    };
    let table = Table::read(path)?;
    let name = path.display();
    if let Some((rows, first)) = table.above_cap {
        warn(&format!(
            "{name}: rows that draw more than their cap: {rows}, the first in line {first}; they \
             are reckoned with what they draw"
        ));
    }
    if let Some((rows, first)) = table.noise {
        warn(&format!(
            "{name}: rows that are slower than one with no more power, by up to {} %: {rows}, the \
             first in line {first}; they are taken for noise and left out",
            NOISE_THOUSANDTHS / 10
        ));
    }
    Ok((table.processors, name.to_string()))
}
