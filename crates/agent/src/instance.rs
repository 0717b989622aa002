//! The instance of a controller, which distinguishes controllers with the same key.
//!
//! A certificate or a user says what a controller may do. Two daemons can have the same one, by mistake, and would
//! then fight over the caps of the nodes. So each daemon also has an instance: a random text that it keeps, so that
//! it is the same after a restart.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of several controllers with the same key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Instance(String);

impl Instance {
    /// The longest text, in bytes.
    const LONGEST: usize = 64;

    /// One that nobody else has.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 8];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Instance(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Instance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match (1..=Instance::LONGEST).contains(&text.len()) && text.bytes().all(is_fine) {
            true => Ok(Instance(text.to_owned())),
            false => Err(format!(
                "an instance has 1 to {} letters, digits and hyphens",
                Instance::LONGEST
            )),
        }
    }
}

impl TryFrom<String> for Instance {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Instance> for String {
    fn from(instance: Instance) -> Self {
        instance.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_short_word() {
        let random = Instance::random().unwrap();
        assert_eq!(random.to_string().parse(), Ok(random.clone()));
        assert_ne!(random, Instance::random().unwrap());
        let long = "x".repeat(Instance::LONGEST + 1);
        for wrong in ["", "a b", "a\n", "ä", &long] {
            assert!(wrong.parse::<Instance>().is_err(), "{wrong}");
        }
    }
}
