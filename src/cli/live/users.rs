//! The names of users, for display.

use std::collections::BTreeMap;
use std::fs;

use anyhow::anyhow;

/// Users by their numbers, as `/etc/passwd` has them. Who is not there is called by number.
pub(super) struct Users(BTreeMap<u32, String>);

impl Users {
    /// The users of this machine.
    pub(super) fn of_this_machine() -> Self {
        let bytes = fs::read("/etc/passwd").unwrap_or_default();
        Users::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Self {
        let mut users = BTreeMap::new();
        for line in text.lines() {
            let mut fields = line.split(':');
            if let (Some(name), Some(number)) = (fields.next(), fields.nth(1))
                && let Ok(number) = number.parse()
            {
                // The first name counts, as it does elsewhere.
                users.entry(number).or_insert_with(|| name.to_owned());
            }
        }
        Users(users)
    }

    /// The name of a user, or the number.
    pub(super) fn name(&self, number: u32) -> String {
        self.0.get(&number).cloned().unwrap_or_else(|| number.to_string())
    }

    /// The number of a user who was named, or given by number.
    pub(super) fn number(&self, name: &str) -> anyhow::Result<u32> {
        let named = self.0.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
        let number = named.or_else(|| name.parse().ok());
        number.ok_or_else(|| anyhow!("there is no user '{name}' in /etc/passwd; give the number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_names_or_numbers() {
        let users = Users::parse(
            "root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/root:/bin/sh\n\n+nis\nada:x:1000:1000::/:\n",
        );
        assert_eq!(users.name(0), "root");
        assert_eq!(users.name(1000), "ada");
        assert_eq!(users.name(7), "7");
        assert_eq!(users.number("ada").unwrap(), 1000);
        assert_eq!(users.number("7").unwrap(), 7);
        assert!(users.number("eve").unwrap_err().to_string().contains("no user 'eve'"));
    }
}
