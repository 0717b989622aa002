//! Linux's powercap tree: packages and memory by RAPL, and what Arm's firmware shows there.
//!
//! Below the root each zone is a folder: `intel-rapl:0` is a package, `intel-rapl:0:0` a part of it.
//! A package's `dram` lies beside it, so both are counted; `core`, `uncore` and `psys` are measured within or
//! around a package already and are left out, and so is `intel-rapl-mmio`, a second way to the same package.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::files::{Files, Folder};
use super::{Control, ControlError, HardwareRange, Limit, Measure, milliwatts};
use crate::domain::DomainKind;

/// The name of the file that says that an emulator stands behind a tree.
pub(crate) const EMULATED: &str = "emulated";

/// The settling time of a zone that does not name its time window.
const USUAL_WINDOW: Duration = Duration::from_secs(1);

/// A zone of the tree.
pub struct Zone {
    kind: DomainKind,
    source: String,
    is_emulated: bool,
    folder: Folder,
    /// The constraint that is a limit over a long time.
    constraint: Option<usize>,
}

/// What a tree holds.
#[derive(Default)]
pub struct Found {
    /// The zones that are controlled or at least measured, packages first.
    pub zones: Vec<Zone>,
    /// The zones that are left out, with the reason.
    pub left_out: Vec<(String, &'static str)>,
}

/// Looks for zones below a root. That there is no such folder is no error: a node may have no powercap.
pub fn discover(root: &Path, files: &Arc<dyn Files>) -> Found {
    let mut found = Found::default();
    let Ok(names) = files.list(root) else { return found };
    let is_emulated = names.iter().any(|name| name == EMULATED);
    for name in &names {
        let Some((control, place)) = name.split_once(':') else { continue };
        let folder = Folder::new(files.clone(), root.join(name));
        let label = folder.text("name").ok().flatten().unwrap_or_default();
        match kind(control, place, &label) {
            Ok(kind) => {
                let constraint = long_term(&folder);
                let source = format!("powercap {name}");
                found.zones.push(Zone { kind, source, is_emulated, folder, constraint });
            }
            Err(reason) => found.left_out.push((name.clone(), reason)),
        }
    }
    found.zones.sort_by_key(|zone| zone.kind);
    found
}

/// The kind of domain that a zone is, or why it is left out.
fn kind(control: &str, place: &str, label: &str) -> Result<DomainKind, &'static str> {
    let is_part = place.contains(':');
    match (control, is_part) {
        ("intel-rapl", false) if label.starts_with("package") => Ok(DomainKind::Package),
        ("intel-rapl", true) if label == "dram" => Ok(DomainKind::Dram),
        ("intel-rapl", false) => Err("it is no package: what it counts overlaps with packages"),
        ("intel-rapl", true) => Err("it is a part of a package, and counted there"),
        ("arm-scmi", false) => Ok(DomainKind::Package),
        ("intel-rapl-mmio", _) => Err("it is a second way to the limits of a package"),
        _ => Err("this kind of zone is not known"),
    }
}

/// The number of the constraint that limits power over a long time.
fn long_term(folder: &Folder) -> Option<usize> {
    let is_there = |number: &usize| {
        let file = format!("constraint_{number}_power_limit_uw");
        matches!(folder.text(&file), Ok(Some(_)) | Err(_))
    };
    let numbers: Vec<usize> = (0..4).filter(is_there).collect();
    let is_long = |number: &&usize| {
        let name = folder.text(&format!("constraint_{number}_name"));
        matches!(name, Ok(Some(name)) if name == "long_term")
    };
    numbers.iter().find(is_long).or_else(|| numbers.first()).copied()
}

impl Zone {
    fn file(&self, what: &str) -> Result<String, ControlError> {
        let number = self.constraint.ok_or_else(|| {
            let text = "the kernel shows no limit here, only a meter (as on most AMD processors)";
            ControlError::Unsupported(text.to_owned())
        })?;
        Ok(format!("constraint_{number}_{what}"))
    }
}

impl Control for Zone {
    fn kind(&self) -> DomainKind {
        self.kind
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn is_emulated(&self) -> bool {
        self.is_emulated
    }

    fn range(&self) -> Result<HardwareRange, ControlError> {
        let read = |what| {
            let number = self.folder.number(&self.file(what)?)?;
            Ok(number.filter(|number| *number > 0).map(milliwatts))
        };
        Ok(HardwareRange { lowest: read("min_power_uw")?, highest: read("max_power_uw")? })
    }

    fn limit(&self) -> Result<Limit, ControlError> {
        let microwatts = self.folder.needed(&self.file("power_limit_uw")?)?;
        // A zone without this file cannot be switched off.
        let enabled = self.folder.number("enabled")? != Some(0);
        Ok(Limit { microwatts, enabled })
    }

    fn set_limit(&self, limit: Limit) -> Result<(), ControlError> {
        // The limit first: what is switched on must not be an old one.
        self.folder.write(&self.file("power_limit_uw")?, limit.microwatts)?;
        match self.folder.number("enabled")? {
            Some(enabled) if (enabled != 0) != limit.enabled => {
                self.folder.write("enabled", limit.enabled.into())
            }
            _ => Ok(()),
        }
    }

    fn check_rights(&self) -> Result<(), ControlError> {
        self.folder.check_rights(&self.file("power_limit_uw")?)
    }

    fn measure(&self) -> Result<Measure, ControlError> {
        let microjoules = self.folder.needed("energy_uj")?;
        let largest = self.folder.needed("max_energy_range_uj")?;
        Ok(Measure::Counter { microjoules, largest })
    }

    fn settling_time(&self) -> Duration {
        let window = self.file("time_window_us").and_then(|file| self.folder.number(&file));
        window.ok().flatten().map_or(USUAL_WINDOW, Duration::from_micros)
    }
}
