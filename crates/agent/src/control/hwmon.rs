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
pub struct Device {
    kind: DomainKind,
    source: String,
    is_emulated: bool,
    folder: Folder,
}

/// Looks for devices with a power cap below a root. That there is no such folder is no error.
pub fn discover(root: &Path, files: &Arc<dyn Files>) -> Vec<Device> {
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
