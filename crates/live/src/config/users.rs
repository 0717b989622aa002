//! Users by name: in the file of this machine, or wherever else it looks them up.

use std::process::{Command, Stdio};

/// The number of a user, if there is such a user.
pub(super) fn number_of(name: &str) -> Option<u32> {
    // Neither file nor program could tell these from something else.
    if name.is_empty() || name.contains([':', '\n']) || name.starts_with('-') {
        return None;
    }
    let file = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    in_passwd(&file, name).or_else(|| {
        // Users of a directory service are in no file.
        let command = Command::new("getent").args(["passwd", name]).stdin(Stdio::null()).output();
        in_passwd(&String::from_utf8_lossy(&command.ok()?.stdout), name)
    })
}

fn in_passwd(text: &str, name: &str) -> Option<u32> {
    let entries = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut named = entries.filter(|fields| fields.len() > 2 && fields[0] == name);
    named.find_map(|fields| fields[2].parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        let text = "root:x:0:0::/root:/bin/sh\nann:x:1001:50::/home/ann:/bin/sh\nbroken:x\n";
        assert_eq!(in_passwd(text, "ann"), Some(1001));
        assert_eq!(in_passwd(text, "an"), None);
        assert_eq!(in_passwd(text, "broken"), None);
        assert_eq!(number_of("root"), Some(0));
        for nobody in ["", "no such user", "-s", "root:x", "x\nroot"] {
            assert_eq!(number_of(nobody), None, "{nobody}");
        }
    }
}
