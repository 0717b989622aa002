//! Trackable resources, as Slurm writes them: `cpu=64,node=4,mem=64G,gres/gpu=2`.

use std::fmt;
use std::str::FromStr;

/// What a job has: processors, nodes, memory and GPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tres(pub [u64; 4]);

impl Tres {
    const NAMES: [&'static str; 4] = ["cpu", "node", "mem", "gres/gpu"];

    /// Processors, nodes, memory in MiB, and GPUs.
    pub fn new(cpus: u64, nodes: u64, mem_mib: u64, gpus: u64) -> Self {
        Tres([cpus, nodes, mem_mib, gpus])
    }

    /// Adds others.
    pub(crate) fn add(&mut self, more: &Tres) {
        self.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    /// Takes some away that were added.
    pub(crate) fn take(&mut self, less: &Tres) {
        self.0.iter_mut().zip(less.0).for_each(|(sum, less)| *sum = sum.saturating_sub(less));
    }
}

/// The most of each resource, where there is a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TresLimit(pub [u64; 4]);

/// No limit.
impl Default for TresLimit {
    fn default() -> Self {
        TresLimit::NONE
    }
}

impl TresLimit {
    /// No limit.
    pub const NONE: TresLimit = TresLimit([u64::MAX; 4]);

    /// Whether there is no limit.
    pub fn is_none(&self) -> bool {
        *self == TresLimit::NONE
    }

    /// Whether somebody has no more than that.
    pub(crate) fn allows(&self, tres: &Tres) -> bool {
        self.0.iter().zip(tres.0).all(|(most, has)| has <= *most)
    }

    /// How many times so much is still free beside what is used.
    pub(crate) fn times(&self, used: &Tres, each: &Tres) -> u64 {
        let all = self.0.iter().zip(used.0).zip(each.0);
        let times = all.filter(|((most, _), each)| **most < u64::MAX && *each > 0);
        times.map(|((most, used), each)| most.saturating_sub(used) / each).min().unwrap_or(u64::MAX)
    }

    /// This limit, and where it has none, the other.
    pub(crate) fn or(&self, other: TresLimit) -> TresLimit {
        let mut both = *self;
        both.0
            .iter_mut()
            .zip(other.0)
            .filter(|(this, _)| **this == u64::MAX)
            .for_each(|(this, other)| *this = other);
        both
    }

    /// What of it is not limited by the other.
    pub(crate) fn without(&self, other: &TresLimit) -> TresLimit {
        let mut rest = *self;
        rest.0
            .iter_mut()
            .zip(other.0)
            .filter(|(_, other)| *other < u64::MAX)
            .for_each(|(this, _)| *this = u64::MAX);
        rest
    }
}

/// Why a list of resources cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TresError {
    /// A resource that nobody counts.
    #[error("'{0}' is not counted; write cpu, node, mem or gres/gpu")]
    Unknown(String),
    /// What is behind it is no number.
    #[error("'{0}' is no amount; write a whole number, or for mem one such as 64G")]
    NoAmount(String),
}

fn read(text: &str) -> Result<[Option<u64>; 4], TresError> {
    let mut found = [None; 4];
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, amount) =
            part.split_once('=').ok_or_else(|| TresError::NoAmount(part.to_owned()))?;
        let place = match name {
            "gpu" => Some(3),
            name => Tres::NAMES.iter().position(|known| *known == name),
        };
        let place = place.ok_or_else(|| TresError::Unknown(name.to_owned()))?;
        let amount = match place {
            2 => mebibytes(amount),
            _ => amount.parse().ok().filter(|amount| *amount < u64::MAX),
        };
        found[place] = Some(amount.ok_or_else(|| TresError::NoAmount(part.to_owned()))?);
    }
    Ok(found)
}

/// Memory as Slurm writes it: in MiB where there is no unit. A part of a MiB is rounded up.
fn mebibytes(text: &str) -> Option<u64> {
    let (digits, kibibytes) = match text.chars().last()? {
        'K' => (&text[..text.len() - 1], 1),
        'M' => (&text[..text.len() - 1], 1 << 10),
        'G' => (&text[..text.len() - 1], 1 << 20),
        'T' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1 << 10),
    };
    let amount: u64 = digits.parse().ok()?;
    Some(amount.checked_mul(kibibytes)?.div_ceil(1 << 10))
}

/// Reads `cpu=64,node=4`; what is not named is not limited.
impl FromStr for TresLimit {
    type Err = TresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(TresLimit(read(text)?.map(|amount| amount.unwrap_or(u64::MAX))))
    }
}

/// Reads `cpu=64,node=4`; what is not named is nothing.
impl FromStr for Tres {
    type Err = TresError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Tres(read(text)?.map(|amount| amount.unwrap_or(0))))
    }
}

impl fmt::Display for TresLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limited = self.0.iter().zip(Tres::NAMES).filter(|(most, _)| **most < u64::MAX);
        for (place, (most, name)) in limited.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let unit = if name == "mem" { "M" } else { "" };
            write!(f, "{comma}{name}={most}{unit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_read_what_they_print() {
        for text in ["cpu=64,node=4,mem=65536M,gres/gpu=2", "node=1", ""] {
            assert_eq!(text.parse::<TresLimit>().unwrap().to_string(), text);
        }
        let memory = |text: &str| text.parse::<TresLimit>().map(|limit| limit.0[2]);
        assert_eq!(memory("mem=64G"), Ok(64 << 10));
        assert_eq!(memory("mem=1025K"), Ok(2));
        assert_eq!(memory("mem=7"), Ok(7));
        assert_eq!("gpu=3".parse::<Tres>(), Ok(Tres::new(0, 0, 0, 3)));
        let why = |text: &str| text.parse::<TresLimit>().unwrap_err().to_string();
        assert!(why("license/x=1").starts_with("'license/x' is not counted"));
        assert!(why("cpu=-1").starts_with("'cpu=-1' is no amount"));
        assert!(why("cpu").starts_with("'cpu' is no amount"));
    }

    #[test]
    fn times_count_what_is_limited() {
        let limit: TresLimit = "cpu=10,node=3".parse().unwrap();
        assert_eq!(limit.times(&Tres::new(4, 0, 9, 9), &Tres::new(2, 1, 5, 5)), 3);
        assert_eq!(limit.times(&Tres::new(12, 0, 0, 0), &Tres::new(1, 1, 0, 0)), 0);
        assert_eq!(limit.times(&Tres::default(), &Tres::new(0, 0, 1, 0)), u64::MAX);
        let rest = limit.without(&"cpu=1".parse().unwrap());
        assert_eq!(rest.to_string(), "node=3");
        let both = rest.or("cpu=7,node=9".parse().unwrap());
        assert_eq!(both.to_string(), "cpu=7,node=3");
    }
}
