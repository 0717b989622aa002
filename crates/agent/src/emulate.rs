//! A node without power hardware: a powercap tree of plain files, with GPUs beside it, whose counters follow the
//! present limits and what the running job would draw.
//!
//! | file below the root | what it holds |
//! |---|---|
//! | `emulated` | the shape of the node; that it is there says that nothing here is real |
//! | `demand_uw` | what the running job would draw without limits, in microwatts, of the whole node |
//! | `faults` | what is to go wrong, by zone ([`Fault`]); usually there is no such file |
//! | `intel-rapl:0/…` | a package, as the kernel shows it; `intel-rapl:0:0` is its memory |
//! | `gpu:0/…` | a GPU |
//!
//! A zone draws its share of the demand, by its highest limit, but no more than 99.9 % of its limit
//! and no less than when it is idle. Counters advance when somebody looks at one or
//! changes a limit ([`Emulation`]), so that what is measured over any
//! time is what was drawn in it. Only one process may drive a tree.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use busbar_core::units::Watts;
use busbar_trust::{Durability, Setting, TrustedFolder};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::control::files::{Files, SystemFiles, WriteError};
use crate::control::powercap::EMULATED;

mod gpus;
mod tree;

pub(crate) use gpus::EmulatedGpus;
use tree::Tree;

/// What names a tree.
const TREE: Setting = Setting("'busbar agent emulate create', and 'hardware.powercap = …'");

/// The file of what the job would draw.
const DEMAND: &str = "demand_uw";

/// The largest value of an emulated counter, as many Intel processors have it.
const LARGEST: u64 = 262_143_328_850;

/// The limits and the idle power of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneShape {
    /// The lowest limit.
    pub(crate) lowest: Watts,
    /// The highest limit, and the most that the zone draws.
    pub(crate) highest: Watts,
    /// Its lowest power.
    idle: Watts,
}

/// What an emulated node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// The number of packages.
    pub packages: u32,
    /// Each of them.
    pub package: ZoneShape,
    /// The memory of each package, if it can be limited.
    pub dram: Option<ZoneShape>,
    /// The number of GPUs.
    pub gpus: u32,
    /// Each of them.
    pub gpu: ZoneShape,
}

impl Default for Shape {
    /// Two packages of 40 to 100 W, without the rest.
    fn default() -> Self {
        let zone = |lowest, highest, idle| ZoneShape {
            lowest: Watts::from_watts(lowest),
            highest: Watts::from_watts(highest),
            idle: Watts::from_watts(idle),
        };
        let (package, gpu) = (zone(40, 100, 10), zone(100, 300, 25));
        Shape { packages: 2, package, dram: None, gpus: 0, gpu }
    }
}

/// The memory of an emulated package, for shapes that have some.
pub const USUAL_DRAM: ZoneShape = ZoneShape {
    lowest: Watts::from_watts(5),
    highest: Watts::from_watts(20),
    idle: Watts::from_watts(2),
};

/// What can go wrong with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Files may not be opened to be written.
    WriteDenied,
    /// Limits and meters may not be read.
    ReadDenied,
    /// The firmware has locked the limit.
    Locked,
    /// The kernel refuses every new limit.
    Refused,
    /// A new limit is accepted, and the old one stays.
    Ignored,
    /// A limit below these microwatts is accepted, and this one is set.
    Clamped(u64),
    /// Any limit is accepted and read back, and the zone draws what it likes.
    Disobeyed,
    /// The zone is switched off, and cannot be switched on.
    Disabled,
    /// The counter stands still.
    Stuck,
    /// The counter is ahead of the truth by these microjoules.
    Jumped(u64),
    /// The zone is gone.
    Vanished,
}

/// The faults of zones, by the names of their folders.
pub type Faults = BTreeMap<String, Vec<Fault>>;

/// The file `emulated`.
#[derive(Serialize, Deserialize)]
struct Marker {
    note: String,
    shape: Shape,
}

/// Makes an emulated tree in a folder that is empty or does not exist.
pub fn create(root: &Path, shape: Shape) -> io::Result<()> {
    let folder = TrustedFolder::of(root, 0o755, TREE)?;
    if std::fs::read_dir(root)?.next().is_some() {
        let text = "the folder is not empty; choose another one, or remove what is in it";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    Tree::write_zones(&folder, shape)?;
    set_demand(root, Watts::ZERO)?;
    // Last, so that a tree that was begun is no tree.
    let note = "The values in this folder are emulated, not measured.".to_owned();
    replace(&folder, EMULATED, &serde_json::to_string_pretty(&Marker { note, shape })?)
}

/// Whether a folder is an emulated tree.
pub fn is_emulated(root: &Path) -> bool {
    root.join(EMULATED).is_file()
}

/// Says what the job on an emulated node would draw without limits; nothing is an idle node.
pub fn set_demand(root: &Path, demand: Watts) -> io::Result<()> {
    replace(&TrustedFolder::existing(root, TREE)?, DEMAND, &demand_text(demand))
}

/// Writes the same to the file of a tree, which is named by itself.
pub fn write_demand(file: &Path, demand: Watts) -> io::Result<()> {
    let (Some(root), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a path of a file"));
    };
    let mut file =
        TrustedFolder::existing(root, TREE)?.file(name, OFlags::WRONLY | OFlags::TRUNC)?;
    file.write_all(demand_text(demand).as_bytes())
}

fn demand_text(demand: Watts) -> String {
    format!("{}\n", demand.milliwatts() * 1000)
}

/// Says what is to go wrong from now on.
pub fn set_faults(root: &Path, faults: &Faults) -> io::Result<()> {
    let folder = TrustedFolder::existing(root, TREE)?;
    replace(&folder, "faults", &serde_json::to_string_pretty(faults)?)
}

/// Puts a whole file in the place of another.
fn replace(folder: &TrustedFolder, name: &str, text: &str) -> io::Result<()> {
    Ok(folder.replace(name, text.as_bytes(), 0o644, Durability::Later)?)
}

/// The time, by whatever clock.
pub(crate) type Clock = Arc<dyn Fn() -> Instant + Send + Sync>;

/// Drives an emulated tree: whoever reads a counter or writes a limit through it, advances all counters to the
/// present first.
pub struct Emulation {
    root: PathBuf,
    folder: TrustedFolder,
    clock: Clock,
    tree: Mutex<Tree>,
}

impl Emulation {
    /// Takes over the tree in a folder; its counters go on from what they show.
    pub fn open(root: &Path) -> io::Result<Arc<Self>> {
        Emulation::with_clock(root, Arc::new(Instant::now))
    }

    /// The same by another clock.
    pub(crate) fn with_clock(root: &Path, clock: Clock) -> io::Result<Arc<Self>> {
        let folder = TrustedFolder::existing(root, TREE)?;
        // Nobody else can change anything in it from here on, so its files can be opened by their names.
        folder.check_with_subfolders()?;
        let mut text = String::new();
        let marker = folder.existing_file(EMULATED)?;
        marker.ok_or(io::ErrorKind::NotFound)?.read_to_string(&mut text)?;
        let marker: Marker = serde_json::from_str(&text)?;
        let tree = Mutex::new(Tree::open(root, marker.shape, clock())?);
        Ok(Arc::new(Emulation { root: root.to_owned(), folder, clock, tree }))
    }

    /// Advances all counters to the present.
    pub fn advance(&self) -> io::Result<()> {
        self.with_tree(|_| Ok(()))
    }

    /// Does something with the tree as it is now.
    fn with_tree<T>(&self, work: impl FnOnce(&mut Tree) -> io::Result<T>) -> io::Result<T> {
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        tree.advance((self.clock)())?;
        work(&mut tree)
    }

    /// Does something for which the counters need not be those of the present.
    fn with_faults<T>(&self, work: impl FnOnce(&Tree) -> io::Result<T>) -> io::Result<T> {
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        tree.read_faults();
        work(&tree)
    }

    /// The zone and the file that a path names.
    fn split<'a>(&self, path: &'a Path) -> (String, &'a str) {
        let zone = path.strip_prefix(&self.root).ok().and_then(|inner| inner.iter().next());
        let zone = zone.and_then(|zone| zone.to_str()).unwrap_or_default().to_owned();
        (zone, path.file_name().and_then(|name| name.to_str()).unwrap_or_default())
    }
}

impl Files for Emulation {
    fn read(&self, path: &Path) -> io::Result<String> {
        let (zone, file) = self.split(path);
        if file == "energy_uj" {
            self.advance()?;
        }
        self.with_faults(|tree| {
            let has = |fault| tree.has(&zone, fault);
            if has(Fault::Vanished) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if has(Fault::ReadDenied) && file != "name" {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            if has(Fault::Disabled) && file == "enabled" {
                return Ok("0\n".to_owned());
            }
            SystemFiles.read(path)
        })
    }

    fn write(&self, path: &Path, text: &str) -> Result<(), WriteError> {
        let (zone, file) = self.split(path);
        let mut text = text.to_owned();
        let refused = |error: rustix::io::Errno| Some(Err(WriteError::Write(error.into())));
        let judged = self.with_tree(|tree| {
            let has = |fault| tree.has(&zone, fault);
            if let Some(least) = tree.clamp(&zone)
                && file.ends_with("power_limit_uw")
            {
                let asked: u64 = text.trim().parse().unwrap_or(0);
                text = format!("{}\n", asked.max(least));
            }
            Ok(if has(Fault::Vanished) {
                Some(Err(WriteError::Open(io::ErrorKind::NotFound.into())))
            } else if has(Fault::WriteDenied) {
                Some(Err(WriteError::Open(io::ErrorKind::PermissionDenied.into())))
            } else if has(Fault::Locked) {
                refused(rustix::io::Errno::ACCESS)
            } else if has(Fault::Refused) {
                refused(rustix::io::Errno::IO)
            } else if has(Fault::Ignored) || (has(Fault::Disabled) && file == "enabled") {
                Some(Ok(()))
            } else {
                None
            })
        });
        if let Some(answer) = judged.map_err(WriteError::Open)? {
            return answer;
        }
        // The kernel takes a value whole or not at all, and creates no file.
        SystemFiles.check_rights(path).map_err(WriteError::Open)?;
        let replaced = self.folder.existing_folder(&zone).map_err(io::Error::from);
        replaced.and_then(|zone| replace(&zone, file, &text)).map_err(WriteError::Write)
    }

    fn check_rights(&self, path: &Path) -> io::Result<()> {
        let (zone, _) = self.split(path);
        self.with_faults(|tree| match tree.has(&zone, Fault::WriteDenied) {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => SystemFiles.check_rights(path),
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let names = SystemFiles.list(path)?;
        self.with_faults(|tree| {
            Ok(names.into_iter().filter(|name| !tree.has(name, Fault::Vanished)).collect())
        })
    }
}
