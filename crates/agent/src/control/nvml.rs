//! NVIDIA's management library, found when the agent runs. Nothing is linked, and its absence is no error.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::ControlError;
use super::gpu::GpuLibrary;

/// The names of the library: the driver's own, and that of a development package.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The library.
#[derive(Debug)]
pub(crate) struct Library {
    nvml: Nvml,
    name: String,
}

/// Looks for the library. An error says in words why it cannot be used.
pub(crate) fn load() -> Result<Library, String> {
    // A program without a dynamic linker cannot load anything, whatever is installed.
    if cfg!(target_feature = "crt-static") {
        return Err(
            "a static program cannot load the driver's library; install Busbar as a package, or build it with cargo"
                .to_owned(),
        );
    }
    let mut reason = String::new();
    for name in NAMES {
        match Nvml::builder().lib_path(name.as_ref()).init() {
            Ok(nvml) => {
                let version = nvml.sys_nvml_version().unwrap_or_else(|_| "?".to_owned());
                return Ok(Library { nvml, name: format!("NVML {version}") });
            }
            Err(NvmlError::LibloadingError(error)) => {
                reason = format!("the driver's library is not installed ({error})");
            }
            Err(error) => return Err(format!("the library was found, but {error}")),
        }
    }
    Err(reason)
}

impl Library {
    fn device<T>(
        &self,
        gpu: u32,
        action: &'static str,
        work: impl FnOnce(&mut nvml_wrapper::Device<'_>) -> Result<T, NvmlError>,
    ) -> Result<T, ControlError> {
        let device = self.nvml.device_by_index(gpu);
        device.and_then(|mut device| work(&mut device)).map_err(|error| {
            let place = format!("GPU {gpu}");
            match error {
                NvmlError::NoPermission => ControlError::Denied { action, place },
                NvmlError::GpuLost | NvmlError::NotFound => ControlError::Gone { place },
                NvmlError::NotSupported => {
                    ControlError::Unsupported(format!("{place} cannot {action}"))
                }
                error => ControlError::Refused { action, place, reason: error.to_string() },
            }
        })
    }
}

impl GpuLibrary for Library {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_emulated(&self) -> bool {
        false
    }

    fn count(&self) -> Result<u32, ControlError> {
        self.nvml.device_count().map_err(|error| ControlError::Refused {
            action: "count the GPUs of",
            place: self.name.clone(),
            reason: error.to_string(),
        })
    }

    fn label(&self, gpu: u32) -> Result<String, ControlError> {
        self.device(gpu, "name", |device| Ok(format!("{} {}", device.name()?, device.uuid()?)))
    }

    fn power(&self, gpu: u32) -> Result<u64, ControlError> {
        self.device(gpu, "read the power of", |device| device.power_usage().map(u64::from))
    }

    fn energy(&self, gpu: u32) -> Result<Option<u64>, ControlError> {
        let read = |device: &mut nvml_wrapper::Device<'_>| device.total_energy_consumption();
        match self.device(gpu, "read the energy of", read) {
            Ok(energy) => Ok(Some(energy)),
            Err(ControlError::Unsupported(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn limit(&self, gpu: u32) -> Result<u64, ControlError> {
        let read = |device: &mut nvml_wrapper::Device<'_>| device.power_management_limit();
        self.device(gpu, "read the limit of", read).map(u64::from)
    }

    fn constraints(&self, gpu: u32) -> Result<(u64, u64), ControlError> {
        self.device(gpu, "read the range of", |device| {
            let range = device.power_management_limit_constraints()?;
            Ok((range.min_limit.into(), range.max_limit.into()))
        })
    }

    fn check_rights(&self, gpu: u32) -> Result<(), ControlError> {
        match rustix::process::geteuid().is_root() {
            true => Ok(()),
            false => Err(ControlError::Denied {
                action: "set the limit of",
                place: format!("GPU {gpu}"),
            }),
        }
    }

    fn set_limit(&self, gpu: u32, milliwatts: u64) -> Result<(), ControlError> {
        let limit = u32::try_from(milliwatts).unwrap_or(u32::MAX);
        self.device(gpu, "set the limit of", |device| device.set_power_management_limit(limit))
    }
}
