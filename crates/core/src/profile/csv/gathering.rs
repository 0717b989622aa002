//! From lines to measurements: problem sizes are told apart, missing caps filled in, and repeated runs of one
//! setting put together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::error::CsvError;
use super::field::Field;
use super::layout::{Cells, Layout};
use super::record::{Cap, Reading};
use crate::profile::measured::{Measured, OtherCaps, Run, Sampled, Setting};
use crate::profile::{Configuration, Origin};
use crate::units::Watts;

/// A line that was read, by its number from 1.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) reading: Reading,
}

/// The caps of the processors, of the memory and of the GPUs, where a line has none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Highest {
    /// The highest one; nothing if no line has any.
    pub(super) cap: Option<Watts>,
    /// How many lines have none and count as the highest.
    pub(super) lines: usize,
}

/// A line that draws more than its caps allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct AboveCap {
    pub(super) line: usize,
    /// By how much, in per cent.
    pub(super) percent: f64,
}

/// What lines come to.
pub(super) struct Gathered {
    /// In the order in which applications first occur.
    pub(super) measured: Vec<Measured>,
    /// Where each configuration of each application first stands, as policies see it.
    pub(super) lines: Vec<HashMap<Configuration, usize>>,
    /// Applications that were told apart by the size of their problem, by their new names.
    pub(super) sized: BTreeSet<String>,
    /// Of processors, memory and GPUs.
    pub(super) highest: [Highest; 3],
    /// In the order of the lines.
    pub(super) above_cap: Vec<AboveCap>,
    /// How many lines have no power of their own.
    pub(super) unmeasured: usize,
}

/// Puts lines together.
pub(super) fn gather(
    mut lines: Vec<Line>,
    cells: &Cells,
    layout: &Layout,
    path: &Path,
) -> Result<Gathered, CsvError> {
    let sized = tell_sizes_apart(&mut lines);
    let highest = highest_caps(&lines, cells, layout, path)?;
    let mut gathered = Gathered {
        measured: Vec::new(),
        lines: Vec::new(),
        sized,
        highest,
        above_cap: Vec::new(),
        unmeasured: 0,
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut settings: Vec<BTreeMap<Setting, Sampled>> = Vec::new();
    for Line { number, reading } in lines {
        let setting = gathered.setting(&reading);
        let (run, origin) = gathered.run(number, &reading, &setting, cells);
        let application = reading.application;
        let place = *places.entry(application.clone()).or_insert_with(|| {
            gathered.measured.push(Measured { application, settings: Vec::new() });
            gathered.lines.push(HashMap::new());
            settings.push(BTreeMap::new());
            settings.len() - 1
        });
        let first = *gathered.lines[place].entry(setting.whole()).or_insert(number);
        let new = || Sampled { setting, origin, runs: Vec::new() };
        let sampled = settings[place].entry(setting).or_insert_with(new);
        // A prediction that is made twice is a mistake; a measurement is not.
        if !sampled.runs.is_empty() && (origin != sampled.origin || origin == Origin::Predicted) {
            return Err(CsvError::Duplicate {
                path: path.to_owned(),
                line: number,
                before: first,
                application: gathered.measured[place].application.clone(),
                configuration: setting.whole(),
            });
        }
        sampled.runs.push(run);
    }
    for (measured, settings) in gathered.measured.iter_mut().zip(settings) {
        measured.settings = settings.into_values().collect();
    }
    Ok(gathered)
}

impl Gathered {
    fn setting(&self, reading: &Reading) -> Setting {
        let filled = |place: usize| match reading.caps[place] {
            Cap::Untold => None,
            Cap::Absent => self.highest[place].cap,
            Cap::At(cap) => Some(cap),
        };
        let Reading { nodes, cores, .. } = *reading;
        // The first is never untold, or there would be no cells.
        let configuration = Configuration { nodes, cores, cap: filled(0).unwrap_or_default() };
        Setting { configuration, others: OtherCaps { memory: filled(1), gpu: filled(2) } }
    }

    /// The run of a line, and who says so.
    fn run(
        &mut self,
        line: usize,
        reading: &Reading,
        setting: &Setting,
        cells: &Cells,
    ) -> (Run, Origin) {
        let Configuration { nodes, cap, .. } = setting.whole();
        let sockets = cells.sockets.map(|sockets| u128::from(sockets.get()) * u128::from(nodes));
        let most = sockets.map(|sockets| {
            let milliwatts = u64::try_from(sockets * u128::from(cap.milliwatts()));
            milliwatts.map_or(Watts::LARGEST, Watts::from_milliwatts).min(Watts::LARGEST)
        });
        let said = reading.origin.unwrap_or(Origin::Measured);
        match (reading.power, most) {
            (Some(power), Some(most)) if power > most => {
                let percent = 100.0 * (power.as_f64() / most.as_f64() - 1.0);
                self.above_cap.push(AboveCap { line, percent });
                (Run { time: reading.time, power }, said)
            }
            (Some(power), _) => (Run { time: reading.time, power }, said),
            (None, most) => {
                self.unmeasured += 1;
                let power = most.unwrap_or(Watts::LARGEST);
                // What was predicted is not better for being bounded.
                (Run { time: reading.time, power }, said.max(Origin::Bound))
            }
        }
    }
}

/// One name for several problems becomes several names: `lu/big`, `lu/small`.
fn tell_sizes_apart(lines: &mut [Line]) -> BTreeSet<String> {
    let mut sizes: HashMap<String, BTreeSet<String>> = HashMap::new();
    for Line { reading, .. } in lines.iter() {
        if let Some(size) = &reading.size {
            sizes.entry(reading.application.clone()).or_default().insert(size.clone());
        }
    }
    let mut sized = BTreeSet::new();
    for Line { reading, .. } in lines.iter_mut() {
        let several = sizes.get(&reading.application).is_some_and(|sizes| sizes.len() > 1);
        if let Some(size) = reading.size.as_ref().filter(|_| several) {
            reading.application = format!("{}/{size}", reading.application);
            sized.insert(reading.application.clone());
        }
    }
    sized
}

/// The caps that count where there is none.
fn highest_caps(
    lines: &[Line],
    cells: &Cells,
    layout: &Layout,
    path: &Path,
) -> Result<[Highest; 3], CsvError> {
    let mut highest = [Highest::default(); 3];
    for (place, highest) in highest.iter_mut().enumerate() {
        let caps = || lines.iter().map(|line| (line.reading.caps[place], line.number));
        highest.lines = caps().filter(|(cap, _)| *cap == Cap::Absent).count();
        let set = caps().filter_map(|(cap, line)| match cap {
            Cap::At(cap) => Some((cap, line)),
            _ => None,
        });
        let most = set.max_by_key(|(cap, _)| *cap);
        highest.cap = most.map(|(cap, _)| cap);
        if place > 0 {
            continue;
        }
        let wrong = |line, why: String| CsvError::Row {
            path: path.to_owned(),
            line,
            field: cells.of(Field::Cap).label.clone(),
            why,
        };
        match (layout.highest_cap, most) {
            (Some(said), Some((cap, line))) if cap > said => {
                return Err(wrong(line, format!("{cap} a socket is above --highest-cap {said}")));
            }
            (Some(said), _) => highest.cap = Some(said),
            (None, None) => {
                let line = caps().next().map_or(1, |(_, line)| line);
                let why = "no row has a cap; give the highest cap of a socket (--highest-cap 115W)";
                return Err(wrong(line, why.to_owned()));
            }
            (None, Some(_)) => (),
        }
    }
    Ok(highest)
}
