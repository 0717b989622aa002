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
pub(crate) struct Zone {
    kind: DomainKind,
    source: String,
    is_emulated: bool,
    folder: Folder,
    /// The constraint that is a limit over a long time.
    constraint: Option<usize>,
}

/// What a tree holds.
#[derive(Default)]
pub(crate) struct Found {
    /// The zones that are controlled or at least measured, packages first.
    pub zones: Vec<Zone>,
    /// The zones that are left out, with the reason.
    pub(crate) left_out: Vec<(String, &'static str)>,
}

/// Looks for zones below a root. That there is no such folder is no error: a node may have no powercap.
pub(crate) fn discover(root: &Path, files: &Arc<dyn Files>) -> Found {
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
        ("intel-rapl", false) => {
            Err("not a package zone: its energy overlaps with that of packages")
        }
        ("intel-rapl", true) => Err("part of a package, and counted there"),
        ("arm-scmi", false) => Ok(DomainKind::Package),
        ("intel-rapl-mmio", _) => Err("a second interface to the limits of a package"),
        _ => Err("an unknown kind of zone"),
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
            let text = "the kernel offers no limit here, only a meter (as on most AMD processors)";
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::files::SystemFiles;
    use super::*;
    use busbar_core::units::Watts;

    /// A zone with these files, as a kernel shows it.
    fn zone(root: &Path, name: &str, files: &[(&str, &str)]) {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        for (file, text) in files {
            fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn zones_of_a_server_are_told_apart() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let limit = ("constraint_0_power_limit_uw", "165000000");
        let energy = [("energy_uj", "1"), ("max_energy_range_uj", "262143328850")];
        zone(root, "intel-rapl:0", &[("name", "package-0"), limit, energy[0], energy[1]]);
        zone(root, "intel-rapl:0:0", &[("name", "core")]);
        zone(root, "intel-rapl:0:1", &[("name", "dram"), limit, energy[0], energy[1]]);
        zone(root, "intel-rapl:1", &[("name", "psys"), limit]);
        zone(root, "intel-rapl-mmio:0", &[("name", "package-0"), limit]);
        zone(root, "dtpm:0", &[("name", "soc")]);
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let found = discover(root, &files);
        let zones: Vec<_> = found.zones.iter().map(|zone| (zone.kind(), zone.source())).collect();
        let expected = [
            (DomainKind::Package, "powercap intel-rapl:0"),
            (DomainKind::Dram, "powercap intel-rapl:0:1"),
        ];
        assert_eq!(zones, expected);
        assert!(!found.zones[0].is_emulated());
        assert_eq!(found.left_out.len(), 4, "{:?}", found.left_out);
        // What the kernel does not say is not made up.
        assert_eq!(found.zones[0].range(), Ok(HardwareRange::default()));
        assert_eq!(found.zones[0].limit(), Ok(Limit { microwatts: 165_000_000, enabled: true }));
        assert_eq!(found.zones[0].settling_time(), USUAL_WINDOW);
    }

    #[test]
    fn the_long_term_limit_is_found_wherever_it_is() {
        let place = tempfile::tempdir().unwrap();
        let files = [
            ("name", "package-0"),
            ("constraint_0_name", "short_term"),
            ("constraint_0_power_limit_uw", "240000000"),
            ("constraint_1_name", "long_term"),
            ("constraint_1_power_limit_uw", "165000001"),
            ("constraint_1_max_power_uw", "165000000"),
            ("constraint_1_time_window_us", "2000000"),
            ("enabled", "0"),
        ];
        zone(place.path(), "intel-rapl:0", &files);
        let system: Arc<dyn Files> = Arc::new(SystemFiles);
        let zone = &discover(place.path(), &system).zones[0];
        assert_eq!(zone.limit(), Ok(Limit { microwatts: 165_000_001, enabled: false }));
        assert_eq!(zone.range().unwrap().highest, Some(Watts::from_watts(165)));
        assert_eq!(zone.settling_time(), Duration::from_secs(2));
        zone.set_limit(Limit::of(Watts::from_watts(90))).unwrap();
        assert_eq!(zone.limit(), Ok(Limit { microwatts: 90_000_000, enabled: true }));
        let short = place.path().join("intel-rapl:0/constraint_0_power_limit_uw");
        assert_eq!(fs::read_to_string(short).unwrap(), "240000000\n", "the other limit stays");
    }

    #[test]
    fn a_processor_with_a_meter_alone_is_only_measured() {
        let place = tempfile::tempdir().unwrap();
        let files =
            [("name", "package-0"), ("energy_uj", "77"), ("max_energy_range_uj", "65532610987")];
        zone(place.path(), "intel-rapl:0", &files);
        let system: Arc<dyn Files> = Arc::new(SystemFiles);
        let zone = &discover(place.path(), &system).zones[0];
        assert!(zone.range().unwrap_err().to_string().contains("AMD"));
        let shown = Measure::Counter { microjoules: 77, largest: 65_532_610_987 };
        assert_eq!(zone.measure(), Ok(shown));
        fs::write(place.path().join("intel-rapl:0/energy_uj"), "many\n").unwrap();
        let error = zone.measure().unwrap_err().to_string();
        assert!(error.ends_with("energy_uj contains 'many', which is not a number"), "{error}");
        assert!(discover(Path::new("/nowhere"), &system).zones.is_empty());
    }
}
