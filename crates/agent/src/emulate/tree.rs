//! The zones of an emulated tree, and how their counters advance.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use busbar_core::units::Watts;
use busbar_trust::TrustedFolder;

use super::{DEMAND, Fault, Faults, LARGEST, Shape, ZoneShape, replace};
use crate::control::files::{Files, SystemFiles};

/// An emulated tree as it was at some time.
pub(super) struct Tree {
    root: PathBuf,
    zones: Vec<EmulatedZone>,
    faults: Faults,
    /// The text of the file of faults when it was read last.
    faults_text: String,
    at: Instant,
}

struct EmulatedZone {
    folder: String,
    limit_file: &'static str,
    shape: ZoneShape,
    meter: File,
    /// The energy that was drawn, in microjoules, without the faults of the counter.
    energy: u64,
    /// What is left of it below a microjoule, in microwatts × nanoseconds.
    rest: u128,
    /// What it draws, in microwatts.
    power: u64,
    /// The limit that was read last; a file that is just being written reads as nothing.
    limit: u64,
    stuck_at: Option<u64>,
}

/// The folders of all zones.
fn folders(shape: Shape) -> Vec<(String, &'static str, ZoneShape)> {
    const CONSTRAINT: &str = "constraint_0_power_limit_uw";
    let mut all = Vec::new();
    for number in 0..shape.packages {
        all.push((format!("intel-rapl:{number}"), CONSTRAINT, shape.package));
        if let Some(dram) = shape.dram {
            all.push((format!("intel-rapl:{number}:0"), CONSTRAINT, dram));
        }
    }
    for number in 0..shape.gpus {
        all.push((format!("gpu:{number}"), "power_limit_uw", shape.gpu));
    }
    all
}

fn microwatts(watts: Watts) -> u64 {
    watts.milliwatts().saturating_mul(1000)
}

/// Counters have a fixed width, so that a new value replaces the old one in one piece.
fn padded(counter: u64) -> String {
    format!("{counter:020}\n")
}

impl Tree {
    /// Writes the zones of a new tree.
    pub(super) fn write_zones(root: &TrustedFolder, shape: Shape) -> io::Result<()> {
        for (folder, limit_file, zone) in folders(shape) {
            let place = root.folder(&folder, 0o755)?;
            let write = |name: &str, text: &str| replace(&place, name, &format!("{text}\n"));
            let number = |name: &str, watts| write(name, &microwatts(watts).to_string());
            replace(&place, "energy_uj", &padded(0))?;
            number(limit_file, zone.highest)?;
            if folder.starts_with("gpu") {
                number("min_power_uw", zone.lowest)?;
                number("max_power_uw", zone.highest)?;
                write("name", "emulated GPU")?;
                continue;
            }
            let parts: Vec<&str> = folder.split(':').collect();
            match parts.as_slice() {
                [_, package] => write("name", &format!("package-{package}"))?,
                _ => write("name", "dram")?,
            }
            write("enabled", "1")?;
            write("max_energy_range_uj", &LARGEST.to_string())?;
            write("constraint_0_name", "long_term")?;
            write("constraint_0_time_window_us", "999424")?;
            number("constraint_0_min_power_uw", zone.lowest)?;
            number("constraint_0_max_power_uw", zone.highest)?;
        }
        Ok(())
    }

    /// Takes over a tree.
    pub(super) fn open(root: &Path, shape: Shape, at: Instant) -> io::Result<Self> {
        let zone = |(folder, limit_file, shape): (String, &'static str, ZoneShape)| {
            let path = root.join(&folder).join("energy_uj");
            let shown = fs::read_to_string(&path)?;
            let energy = shown.trim().parse().map_err(|_| {
                let text = format!("{} holds no number", path.display());
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
            let meter = OpenOptions::new().write(true).open(path)?;
            let limit = microwatts(shape.highest);
            Ok(EmulatedZone {
                folder,
                limit_file,
                shape,
                meter,
                energy,
                rest: 0,
                power: microwatts(shape.idle),
                limit,
                stuck_at: None,
            })
        };
        let zones = folders(shape).into_iter().map(zone).collect::<io::Result<_>>()?;
        let (faults, faults_text) = (Faults::new(), String::new());
        Ok(Tree { root: root.to_owned(), zones, faults, faults_text, at })
    }

    /// Whether a zone has a fault.
    pub(super) fn has(&self, zone: &str, fault: Fault) -> bool {
        self.faults.get(zone).is_some_and(|faults| faults.contains(&fault))
    }

    /// The lowest limit that a zone takes, if it does not say so.
    pub(super) fn clamp(&self, zone: &str) -> Option<u64> {
        self.faults.get(zone)?.iter().find_map(|fault| match fault {
            Fault::Clamped(least) => Some(*least),
            _ => None,
        })
    }

    /// What a zone draws now, in microwatts.
    pub(super) fn power(&self, zone: &str) -> Option<u64> {
        self.zones.iter().find(|known| known.folder == zone).map(|zone| zone.power)
    }

    /// Advances all counters: what zones draw now, they have drawn since the last time.
    pub(super) fn advance(&mut self, now: Instant) -> io::Result<()> {
        self.read_faults();
        let nanos = now.saturating_duration_since(self.at).as_nanos();
        if nanos == 0 {
            return Ok(());
        }
        self.at = now;
        let number = |name: &str| {
            SystemFiles.read(&self.root.join(name)).ok().and_then(|text| text.trim().parse().ok())
        };
        let demand: u64 = number(DEMAND).unwrap_or(0);
        let total: u128 =
            self.zones.iter().map(|zone| u128::from(microwatts(zone.shape.highest))).sum();
        for zone in &mut self.zones {
            let faults = self.faults.get(&zone.folder).map_or(&[][..], Vec::as_slice);
            let highest = microwatts(zone.shape.highest);
            let share = u128::from(demand) * u128::from(highest) / total.max(1);
            let wanted = u64::try_from(share).unwrap_or(u64::MAX).min(highest);
            let file = |name: &str| number(&format!("{}/{name}", zone.folder));
            zone.limit = file(zone.limit_file).unwrap_or(zone.limit);
            let is_free = file("enabled") == Some(0)
                || faults.contains(&Fault::Disobeyed)
                || faults.contains(&Fault::Disabled);
            // Hardware stays a little below its limit.
            let limit = if is_free { u64::MAX } else { zone.limit - zone.limit / 1000 };
            zone.power = wanted.min(limit).max(microwatts(zone.shape.idle));
            zone.draw(nanos);
            zone.show(faults)?;
        }
        Ok(())
    }

    /// Reads the file of faults, if it has changed.
    pub(super) fn read_faults(&mut self) {
        // Usually there is no such file. Its time would not tell of two changes within one tick of the clock.
        let text = fs::read_to_string(self.root.join("faults")).unwrap_or_default();
        if text != self.faults_text {
            self.faults = serde_json::from_str(&text).unwrap_or_default();
            self.faults_text = text;
        }
    }
}

impl EmulatedZone {
    /// Adds what was drawn in this many nanoseconds.
    fn draw(&mut self, nanos: u128) {
        const NANOS: u128 = 1_000_000_000;
        let drawn = u128::from(self.power) * nanos + self.rest;
        self.rest = drawn % NANOS;
        let energy = (u128::from(self.energy) + drawn / NANOS) % (u128::from(LARGEST) + 1);
        self.energy = u64::try_from(energy).unwrap_or(0);
    }

    /// Writes the counter, with its faults.
    fn show(&mut self, faults: &[Fault]) -> io::Result<()> {
        let mut counter = self.energy;
        for fault in faults {
            match fault {
                Fault::Stuck => counter = *self.stuck_at.get_or_insert(counter),
                Fault::Jumped(ahead) => {
                    counter = counter.saturating_add(*ahead) % (LARGEST + 1);
                }
                _ => (),
            }
        }
        if !faults.contains(&Fault::Stuck) {
            self.stuck_at = None;
        }
        self.meter.write_all_at(padded(counter).as_bytes(), 0)
    }
}
