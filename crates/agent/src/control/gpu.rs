//! A GPU behind a library with NVML's calls: the real one, or an emulator.

use std::sync::Arc;
use std::time::Duration;

use super::{Control, ControlError, HardwareRange, Limit, Measure};
use crate::domain::DomainKind;
use busbar_core::units::Watts;

/// How long a GPU may take until its power is within a new limit.
const WINDOW: Duration = Duration::from_secs(2);

/// Why limits of GPUs are not set.
const READ_ONLY: &str = "limits of GPUs are only read; to set them, write 'set = true' under [gpu]";

/// The calls of NVML that the agent uses, in its units. The number of a GPU counts from 0.
pub(crate) trait GpuLibrary: Send + Sync {
    /// What is asked, such as `NVML 12.535`.
    fn name(&self) -> &str;
    /// Whether an emulator answers.
    fn is_emulated(&self) -> bool;
    /// The number of GPUs.
    fn count(&self) -> Result<u32, ControlError>;
    /// The model and identity of a GPU.
    fn label(&self, gpu: u32) -> Result<String, ControlError>;
    /// The present power, in milliwatts.
    fn power(&self, gpu: u32) -> Result<u64, ControlError>;
    /// The energy since the driver was loaded, in millijoules; `None` if the GPU has no such counter.
    fn energy(&self, gpu: u32) -> Result<Option<u64>, ControlError>;
    /// The limit, in milliwatts.
    fn limit(&self, gpu: u32) -> Result<u64, ControlError>;
    /// The lowest and the highest limit, in milliwatts.
    fn constraints(&self, gpu: u32) -> Result<(u64, u64), ControlError>;
    /// Checks whether the limit could be changed, without changing anything.
    fn check_rights(&self, gpu: u32) -> Result<(), ControlError>;
    /// Sets the limit, in milliwatts.
    fn set_limit(&self, gpu: u32, milliwatts: u64) -> Result<(), ControlError>;
}

/// One GPU.
pub(crate) struct Gpu {
    library: Arc<dyn GpuLibrary>,
    number: u32,
    source: String,
    may_set: bool,
}

/// All GPUs of a library. Their limits are changed only if `may_set`.
pub(crate) fn discover(
    library: &Arc<dyn GpuLibrary>,
    may_set: bool,
) -> Result<Vec<Gpu>, ControlError> {
    let gpu = |number| {
        let label = library.label(number).unwrap_or_else(|error| error.to_string());
        let source = format!("{} GPU {number} ({label})", library.name());
        Gpu { library: library.clone(), number, source, may_set }
    };
    Ok((0..library.count()?).map(gpu).collect())
}

impl Control for Gpu {
    fn kind(&self) -> DomainKind {
        DomainKind::Gpu
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn is_emulated(&self) -> bool {
        self.library.is_emulated()
    }

    fn range(&self) -> Result<HardwareRange, ControlError> {
        if !self.may_set {
            return Err(ControlError::Unsupported(READ_ONLY.to_owned()));
        }
        let (lowest, highest) = self.library.constraints(self.number)?;
        let watts = |milliwatts| Some(Watts::from_milliwatts(milliwatts));
        Ok(HardwareRange { lowest: watts(lowest), highest: watts(highest) })
    }

    fn limit(&self) -> Result<Limit, ControlError> {
        let milliwatts = self.library.limit(self.number)?;
        Ok(Limit { microwatts: milliwatts.saturating_mul(1000), enabled: true })
    }

    fn set_limit(&self, limit: Limit) -> Result<(), ControlError> {
        // Whatever the range says: this is the last door before the hardware.
        if !self.may_set {
            return Err(ControlError::Unsupported(READ_ONLY.to_owned()));
        }
        self.library.set_limit(self.number, limit.microwatts / 1000)
    }

    fn check_rights(&self) -> Result<(), ControlError> {
        match self.may_set {
            true => self.library.check_rights(self.number),
            false => Err(ControlError::Unsupported(READ_ONLY.to_owned())),
        }
    }

    fn measure(&self) -> Result<Measure, ControlError> {
        let power = Watts::from_milliwatts(self.library.power(self.number)?);
        Ok(match self.library.energy(self.number)? {
            Some(millijoules) => {
                Measure::Both { power, microjoules: millijoules.saturating_mul(1000) }
            }
            None => Measure::Power(power),
        })
    }

    fn settling_time(&self) -> Duration {
        WINDOW
    }
}
