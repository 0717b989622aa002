//! Finds the power domains of this node, in all the places where they may be.

use std::sync::Arc;

use crate::config::HardwarePlaces;
use crate::control::files::{Files, SystemFiles};
use crate::control::gpu::{self, GpuLibrary};
use crate::control::{Control, hwmon, nvml, powercap};
use crate::emulate::{Clock, EmulatedGpus, Emulation};

/// The power domains of a node, and what else was found.
#[derive(Default)]
pub(crate) struct Hardware {
    /// The domains, by kind and in the order in which the system shows them.
    pub(crate) controls: Vec<Box<dyn Control>>,
    /// What was found and is not used, with the reason.
    pub(crate) left_out: Vec<(String, String)>,
}

/// Looks for domains. An error says why the emulated tree cannot be driven; everything else that is missing is
/// no error.
pub(crate) fn discover(places: &HardwarePlaces) -> std::io::Result<Hardware> {
    discover_by(places, Arc::new(std::time::Instant::now))
}

/// The same; an emulated tree advances by this clock.
pub(crate) fn discover_by(places: &HardwarePlaces, clock: Clock) -> std::io::Result<Hardware> {
    let mut hardware = Hardware::default();
    let (files, emulated): (Arc<dyn Files>, _) = match places.emulate {
        true => {
            let emulation = Emulation::with_clock(&places.powercap, clock).map_err(|error| {
                // A tree of somebody else's, or that cannot be read, is one nevertheless.
                if error.kind() == std::io::ErrorKind::PermissionDenied {
                    return error;
                }
                let root = places.powercap.display();
                let text = format!(
                    "{root} is not an emulated tree ({error}); make one with: busbar agent emulate"
                );
                std::io::Error::new(error.kind(), text)
            })?;
            (emulation.clone(), Some(emulation))
        }
        false => (Arc::new(SystemFiles), None),
    };
    let found = powercap::discover(&places.powercap, &files);
    for zone in found.zones {
        hardware.controls.push(Box::new(zone));
    }
    for (zone, reason) in found.left_out {
        hardware.left_out.push((format!("powercap {zone}"), reason.to_owned()));
    }
    let is_emulated = emulated.is_some();
    if let Some(emulation) = emulated {
        hardware.add_gpus(Arc::new(EmulatedGpus(emulation)), places.set_gpus);
    }
    // An emulated node has nothing real.
    if !is_emulated {
        let system: Arc<dyn Files> = Arc::new(SystemFiles);
        for device in hwmon::discover(&places.hwmon, &system) {
            hardware.controls.push(Box::new(device));
        }
        if places.nvml {
            match nvml::load() {
                Ok(library) => hardware.add_gpus(Arc::new(library), places.set_gpus),
                Err(reason) => hardware.left_out.push(("NVIDIA GPUs".to_owned(), reason)),
            }
        }
    }
    hardware.controls.sort_by_key(|control| control.kind());
    Ok(hardware)
}

impl Hardware {
    fn add_gpus(&mut self, library: Arc<dyn GpuLibrary>, may_set: bool) {
        match gpu::discover(&library, may_set) {
            Ok(gpus) => {
                for gpu in gpus {
                    self.controls.push(Box::new(gpu));
                }
            }
            Err(error) => {
                self.left_out.push((library.name().to_owned(), error.to_string()));
            }
        }
    }
}
