//! Linux's hwmon: devices that show a power cap and a meter there, such as Arm servers and AMD GPUs.
//!
//! Only devices with a cap are taken (`power1_cap`): others, such as power supplies, measure what the domains
//! of the powercap tree measure already.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::files::{Files, Folder};
use super::{Control, ControlError, HardwareRange, Limit, Measure, milliwatts};
use crate::domain::DomainKind;

/// How long a device may take until its power is within a new limit; hwmon does not say.
const WINDOW: Duration = Duration::from_secs(1);

/// The drivers of GPUs; other devices with a cap are taken for packages.
const GPUS: [&str; 3] = ["amdgpu", "i915", "xe"];

/// A device with a power cap.
pub(crate) struct Device {
    kind: DomainKind,
    source: String,
    is_emulated: bool,
    folder: Folder,
}

/// Looks for devices with a power cap below a root. That there is no such folder is no error.
pub(crate) fn discover(root: &Path, files: &Arc<dyn Files>) -> Vec<Device> {
    let Ok(names) = files.list(root) else { return Vec::new() };
    let is_emulated = names.iter().any(|name| name == super::powercap::EMULATED);
    let device = |name: &String| {
        let folder = Folder::new(files.clone(), root.join(name));
        // One that may not be read is shown, with the reason.
        matches!(folder.number("power1_cap"), Ok(Some(_)) | Err(_)).then(|| {
            let driver = folder.text("name").ok().flatten().unwrap_or_default();
            let kind = match GPUS.contains(&driver.as_str()) {
                true => DomainKind::Gpu,
                false => DomainKind::Package,
            };
            let source = format!("hwmon {name} ({driver})");
            Device { kind, source, is_emulated, folder }
        })
    };
    names.iter().filter(|name| name.starts_with("hwmon")).filter_map(device).collect()
}

impl Control for Device {
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
        let read = |name| {
            let number = self.folder.number(name)?;
            Ok(number.filter(|number| *number > 0).map(milliwatts))
        };
        Ok(HardwareRange { lowest: read("power1_cap_min")?, highest: read("power1_cap_max")? })
    }

    fn limit(&self) -> Result<Limit, ControlError> {
        Ok(Limit { microwatts: self.folder.needed("power1_cap")?, enabled: true })
    }

    fn set_limit(&self, limit: Limit) -> Result<(), ControlError> {
        self.folder.write("power1_cap", limit.microwatts)
    }

    fn check_rights(&self) -> Result<(), ControlError> {
        self.folder.check_rights("power1_cap")
    }

    fn measure(&self) -> Result<Measure, ControlError> {
        if let Some(microjoules) = self.folder.number("energy1_input")? {
            return Ok(Measure::Counter { microjoules, largest: u64::MAX });
        }
        let power = match self.folder.number("power1_average")? {
            Some(power) => power,
            None => self.folder.needed("power1_input")?,
        };
        Ok(Measure::Power(milliwatts(power)))
    }

    fn settling_time(&self) -> Duration {
        WINDOW
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::files::SystemFiles;
    use super::*;
    use busbar_core::units::Watts;

    #[test]
    fn devices_with_a_cap_are_domains_and_others_are_not() {
        let place = tempfile::tempdir().unwrap();
        let device = |name: &str, files: &[(&str, &str)]| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            for (file, text) in files {
                fs::write(folder.join(file), format!("{text}\n")).unwrap();
            }
        };
        device("hwmon0", &[("name", "nvme")]);
        let gpu =
            [("name", "amdgpu"), ("power1_cap", "203000000"), ("power1_cap_min", "100000000")];
        device(
            "hwmon1",
            &[&gpu[..], &[("power1_cap_max", "264000000"), ("power1_average", "35000500")]]
                .concat(),
        );
        device(
            "hwmon2",
            &[("name", "altra"), ("power1_cap", "250000000"), ("energy1_input", "123")],
        );
        let files: Arc<dyn Files> = Arc::new(SystemFiles);
        let found = discover(place.path(), &files);
        let kinds: Vec<_> = found.iter().map(|device| (device.kind(), device.source())).collect();
        let expected = [
            (DomainKind::Gpu, "hwmon hwmon1 (amdgpu)"),
            (DomainKind::Package, "hwmon hwmon2 (altra)"),
        ];
        assert_eq!(kinds, expected);
        let range = found[0].range().unwrap();
        assert_eq!(range.lowest, Some(Watts::from_watts(100)));
        assert_eq!(range.highest, Some(Watts::from_watts(264)));
        assert_eq!(found[0].measure(), Ok(Measure::Power(Watts::from_milliwatts(35_001))));
        assert_eq!(
            found[1].measure(),
            Ok(Measure::Counter { microjoules: 123, largest: u64::MAX })
        );
        found[0].set_limit(Limit::of(Watts::from_watts(150))).unwrap();
        assert_eq!(found[0].limit(), Ok(Limit { microwatts: 150_000_000, enabled: true }));
    }
}
