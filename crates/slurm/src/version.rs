//! Versions of Slurm, and what each can do.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of Slurm, such as 22.05.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// The year of the release.
    pub(crate) major: u16,
    /// The month of the release.
    pub(crate) minor: u16,
    /// The number of the update; 0 for the first and for pre-releases.
    micro: u16,
}

/// How Busbar was tried with a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// On a cluster of this release.
    Live,
    /// With what a cluster of this release answers.
    Recorded,
    /// Not at all; it works if the version answers as those before and after it do.
    Not,
}

impl Version {
    /// The oldest version that Busbar is made for.
    pub const OLDEST: Version = Version { major: 22, minor: 5, micro: 0 };

    /// The releases on which Busbar was run, on clusters made for that.
    const LIVE: [(u16, u16); 2] = [(22, 5), (26, 5)];

    /// The releases of which answers to every reading call were recorded; the tests read them.
    pub(crate) const RECORDED: [(u16, u16); 5] = [(22, 5), (23, 11), (24, 11), (25, 11), (26, 5)];

    /// Whether Busbar is made for this version.
    pub fn is_supported(self) -> bool {
        self >= Version::OLDEST
    }

    /// How this version was tried. Whatever can be read is used, tried or not.
    pub fn tried(self) -> Tried {
        let release = (self.major, self.minor);
        match (Version::LIVE.contains(&release), Version::RECORDED.contains(&release)) {
            (true, _) => Tried::Live,
            (false, true) => Tried::Recorded,
            (false, false) => Tried::Not,
        }
    }

    /// Whether the version is newer than any that Busbar was tried with.
    pub(crate) fn is_newer_than_tried(self) -> bool {
        let newest = Version::LIVE.into_iter().chain(Version::RECORDED).max();
        newest.is_some_and(|newest| (self.major, self.minor) > newest)
    }

    /// Whether `scontrol show` has `--json`.
    pub(crate) fn has_scontrol_json(self) -> bool {
        (self.major, self.minor) >= (23, 2)
    }

    /// Whether each data parser of slurmrestd is a plug-in of its own, for jobs and for accounting.
    pub(crate) fn has_separate_parsers(self) -> bool {
        (self.major, self.minor) < (23, 2)
    }

    /// Whether resources can be counted per node and at every layer above it (`resources.yaml`, `MODE_3`).
    pub fn has_hierarchical_resources(self) -> bool {
        (self.major, self.minor) >= (25, 11)
    }

    /// Whether the layers of such resources have names.
    pub(crate) fn names_layers(self) -> bool {
        (self.major, self.minor) >= (26, 11)
    }

    /// The words in the line of a partition by which its jobs get whole nodes.
    pub(crate) fn whole_nodes(self) -> &'static str {
        match (self.major, self.minor) >= (26, 5) {
            true => "Exclusive=NODE",
            false => "OverSubscribe=EXCLUSIVE",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}.{}", self.major, self.minor, self.micro)
    }
}

/// What was read is no version of Slurm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a version of Slurm; expected for example 'slurm 22.05.8'")]
pub struct VersionError(pub String);

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Reads `22.05.8`, `slurm 26.05.3`, `slurm-wlm 22.05.8` and `slurm 23.11.0-0rc1`.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(text.trim().chars().take(60).collect());
        let last = text.split_whitespace().last().ok_or_else(wrong)?;
        let mut parts = last.split('.');
        let mut number = |needed: bool| match parts.next() {
            None if !needed => Ok(0),
            part => {
                let digits: String =
                    part.unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
                digits.parse().map_err(|_| wrong())
            }
        };
        Ok(Version { major: number(true)?, minor: number(true)?, micro: number(false)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, expected) in [
            ("slurm-wlm 22.05.8\n", (22, 5, 8)),
            ("slurm 26.05.3", (26, 5, 3)),
            ("slurm 23.11.0-0rc1", (23, 11, 0)),
            ("24.11", (24, 11, 0)),
        ] {
            let (major, minor, micro) = expected;
            assert_eq!(text.parse(), Ok(Version { major, minor, micro }));
        }
        for text in ["", "slurm", "slurm unknown", "22"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn what_versions_can_do() {
        let version = |text: &str| text.parse::<Version>().unwrap();
        assert!(!version("21.08.8").is_supported());
        assert!(version("22.05.0").is_supported());
        assert!(!version("22.05.8").has_scontrol_json());
        assert!(version("26.05.3").has_scontrol_json());
        assert!(!version("25.05.1").has_hierarchical_resources());
        assert_eq!(version("25.11.4").whole_nodes(), "OverSubscribe=EXCLUSIVE");
        assert_eq!(version("26.05.0").whole_nodes(), "Exclusive=NODE");
        assert!(version("26.11.0").is_newer_than_tried());
        assert!(!version("26.05.9").is_newer_than_tried());
        assert_eq!(version("22.05.1").tried(), Tried::Live);
        assert_eq!(version("23.02.1").tried(), Tried::Not);
        assert_eq!(version("slurm 26.05.3").to_string(), "26.05.3");
    }
}
