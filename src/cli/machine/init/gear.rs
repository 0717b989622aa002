//! A speed of the nodes on the command line: `ghz=1.2,watts=210W,slowdown=1.6`.

use std::fmt::Display;
use std::str::FromStr;

use crate::units::Watts;

/// A gear as it is written in a machine file.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct GearEntry {
    ghz: Option<f64>,
    volts: Option<f64>,
    watts: Option<Watts>,
    slowdown: Option<f64>,
}

impl FromStr for GearEntry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut gear = GearEntry::default();
        for part in text.split(',') {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = || value.trim().parse::<f64>().map_err(|why| wrong(part, &why));
            match key.trim() {
                "ghz" => gear.ghz = Some(number()?),
                "volts" => gear.volts = Some(number()?),
                "slowdown" => gear.slowdown = Some(number()?),
                "watts" => {
                    let watts = value.trim().parse::<Watts>();
                    gear.watts = Some(watts.map_err(|why| wrong(part, &why))?);
                }
                _ => return Err(wrong(part, &"there is no such key")),
            }
        }
        Ok(gear)
    }
}

fn wrong(part: &str, why: &dyn Display) -> String {
    format!(
        "'{}': {why}; write keys of ghz, volts, watts and slowdown, such as ghz=1.2,watts=210W",
        part.trim()
    )
}

impl GearEntry {
    /// What a busy node draws in it, if that is said.
    pub(super) fn watts(&self) -> Option<Watts> {
        self.watts
    }

    /// An entry of the list in a machine file.
    pub(super) fn text(&self) -> String {
        let number =
            |key: &str, value: Option<f64>| value.map(|value| format!("{key} = {value:?}"));
        let keys = [
            number("ghz", self.ghz),
            number("volts", self.volts),
            self.watts.map(|watts| format!("watts = \"{watts}\"")),
            number("slowdown", self.slowdown),
        ];
        format!("{{ {} }}", keys.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_in_a_file() {
        let gear: GearEntry = "ghz=2, watts=0.21kW, slowdown=1.6".parse().unwrap();
        assert_eq!(gear.text(), "{ ghz = 2.0, watts = \"210W\", slowdown = 1.6 }");
        let wrong = |text: &str| text.parse::<GearEntry>().unwrap_err();
        assert!(wrong("mhz=2").contains("'mhz=2': there is no such key; write keys of ghz"));
        assert!(wrong("ghz=fast").contains("'ghz=fast': invalid float"));
        assert!(wrong("watts=210").contains("valid units"));
    }
}
