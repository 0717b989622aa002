//! Emulated GPUs, behind the same trait as NVML.

use std::io;
use std::sync::Arc;

use super::Emulation;
use crate::control::ControlError;
use crate::control::files::Folder;
use crate::control::gpu::GpuLibrary;

/// The GPUs of an emulated tree.
pub(crate) struct EmulatedGpus(pub Arc<Emulation>);

impl EmulatedGpus {
    fn folder(&self, gpu: u32) -> Folder {
        Folder::new(self.0.clone(), self.0.root.join(format!("gpu:{gpu}")))
    }

    /// A number of a GPU in NVML's units, which are a thousand times those of the files.
    fn number(&self, gpu: u32, name: &str) -> Result<u64, ControlError> {
        self.folder(gpu).needed(name).map(|number| number / 1000)
    }
}

impl GpuLibrary for EmulatedGpus {
    fn name(&self) -> &str {
        "emulated"
    }

    fn is_emulated(&self) -> bool {
        true
    }

    fn count(&self) -> Result<u32, ControlError> {
        let is_there = |gpu: &u32| matches!(self.folder(*gpu).text("name"), Ok(Some(_)));
        let count = (0..64).take_while(is_there).count();
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn label(&self, gpu: u32) -> Result<String, ControlError> {
        Ok(self.folder(gpu).text("name")?.unwrap_or_default())
    }

    fn power(&self, gpu: u32) -> Result<u64, ControlError> {
        let name = format!("gpu:{gpu}");
        // A GPU that cannot be read has no power either.
        self.number(gpu, "energy_uj")?;
        let power = self.0.with_tree(|tree| {
            tree.power(&name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        });
        let gone = |_| ControlError::Gone { place: name.clone() };
        power.map(|microwatts| microwatts.div_ceil(1000)).map_err(gone)
    }

    fn energy(&self, gpu: u32) -> Result<Option<u64>, ControlError> {
        self.number(gpu, "energy_uj").map(Some)
    }

    fn limit(&self, gpu: u32) -> Result<u64, ControlError> {
        self.number(gpu, "power_limit_uw")
    }

    fn constraints(&self, gpu: u32) -> Result<(u64, u64), ControlError> {
        Ok((self.number(gpu, "min_power_uw")?, self.number(gpu, "max_power_uw")?))
    }

    fn check_rights(&self, gpu: u32) -> Result<(), ControlError> {
        self.folder(gpu).check_rights("power_limit_uw")
    }

    fn set_limit(&self, gpu: u32, milliwatts: u64) -> Result<(), ControlError> {
        self.folder(gpu).write("power_limit_uw", milliwatts.saturating_mul(1000))
    }
}
