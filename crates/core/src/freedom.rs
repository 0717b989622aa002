//! Freedom: what may be done to a job, beyond starting it as it was asked for.
//!
//! Three parties have a say. A policy wants some freedoms, and cannot do without others; a site allows
//! some; and a job is rigid, moldable or malleable. What is left is what all three agree on.

use std::fmt;
use std::ops::{BitAnd, BitOr, Sub};
use std::str::FromStr;

use crate::spelling::hint;

/// One thing that may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Freedom {
    /// Start a job under a cap.
    Caps,
    /// Start a job on another number of nodes, or of cores in them, than it asks for.
    Sizes,
    /// Change the cap of a job while it runs.
    Recaps,
    /// Change the number of nodes of a job while it runs.
    Resizes,
    /// Choose the nodes of a job, and a cap for each of them.
    Nodes,
    /// Give a waiting job up.
    Drops,
}

impl Freedom {
    /// All of them.
    pub const ALL: [Freedom; 6] = [
        Freedom::Caps,
        Freedom::Sizes,
        Freedom::Recaps,
        Freedom::Resizes,
        Freedom::Nodes,
        Freedom::Drops,
    ];

    /// The name by which it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Freedom::Caps => "caps",
            Freedom::Sizes => "sizes",
            Freedom::Recaps => "recaps",
            Freedom::Resizes => "resizes",
            Freedom::Nodes => "nodes",
            Freedom::Drops => "drops",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Freedom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of freedoms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Freedoms(u8);

impl Freedoms {
    /// Jobs start as they were asked for, and nothing else.
    pub const NONE: Freedoms = Freedoms(0);

    /// All freedoms.
    pub const ALL: Freedoms = Freedoms(0x3f);

    /// What is allowed by default: everything but giving jobs up.
    pub const USUAL: Freedoms = Freedoms(Freedoms::ALL.0 & !Freedoms::of(&[Freedom::Drops]).0);

    /// The set of these freedoms.
    pub const fn of(freedoms: &[Freedom]) -> Self {
        let (mut set, mut place) = (0, 0);
        while place < freedoms.len() {
            set |= freedoms[place].bit();
            place += 1;
        }
        Freedoms(set)
    }

    /// Whether a freedom is among them.
    #[inline]
    pub const fn has(self, freedom: Freedom) -> bool {
        self.0 & freedom.bit() != 0
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Freedom> {
        Freedom::ALL.into_iter().filter(move |freedom| self.has(*freedom))
    }
}

/// The freedoms in both sets.
impl BitAnd for Freedoms {
    type Output = Freedoms;

    fn bitand(self, other: Freedoms) -> Freedoms {
        Freedoms(self.0 & other.0)
    }
}

/// The freedoms in either set.
impl BitOr for Freedoms {
    type Output = Freedoms;

    fn bitor(self, other: Freedoms) -> Freedoms {
        Freedoms(self.0 | other.0)
    }
}

/// What one has and the other has not.
impl Sub for Freedoms {
    type Output = Freedoms;

    fn sub(self, other: Freedoms) -> Freedoms {
        Freedoms(self.0 & !other.0)
    }
}

/// The names with commas between them, or `none`.
impl fmt::Display for Freedoms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let names: Vec<&str> = self.iter().map(Freedom::name).collect();
        f.write_str(&names.join(","))
    }
}

/// Why text names no freedoms.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{name}' is not a freedom{hint} write all, none, or a list of {valid}, separated by commas"
)]
pub struct UnknownFreedom {
    name: String,
    hint: String,
    valid: String,
}

/// Reads `caps,sizes`, `all` or `none`.
impl FromStr for Freedoms {
    type Err = UnknownFreedom;

    fn from_str(text: &str) -> Result<Self, UnknownFreedom> {
        match text.trim() {
            "all" => return Ok(Freedoms::ALL),
            "none" => return Ok(Freedoms::NONE),
            _ => (),
        }
        text.split(',').map(str::trim).try_fold(Freedoms::NONE, |set, name| {
            let named = Freedom::ALL.into_iter().find(|freedom| freedom.name() == name);
            let freedom = named.ok_or_else(|| {
                let names = Freedom::ALL.map(Freedom::name);
                let (hint, valid) = (hint(name, names), names.join(", "));
                UnknownFreedom { name: name.to_owned(), hint, valid }
            })?;
            Ok(set | Freedoms::of(&[freedom]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_sets() {
        let some: Freedoms = "caps, resizes".parse().unwrap();
        assert!(some.has(Freedom::Caps) && some.has(Freedom::Resizes) && !some.has(Freedom::Sizes));
        assert_eq!(some.to_string(), "caps,resizes");
        assert_eq!("none".parse(), Ok(Freedoms::NONE));
        assert_eq!("all".parse(), Ok(Freedoms::of(&Freedom::ALL)));
        assert_eq!(Freedoms::ALL.to_string().parse(), Ok(Freedoms::ALL));
        assert_eq!(some & Freedoms::of(&[Freedom::Caps]), "caps".parse().unwrap());
        assert_eq!(some - Freedoms::of(&[Freedom::Caps]), "resizes".parse().unwrap());
        let error = "cap".parse::<Freedoms>().unwrap_err().to_string();
        assert!(error.starts_with("'cap' is not a freedom; did you mean 'caps'?"), "{error}");
        assert!("".parse::<Freedoms>().is_err());
    }
}
