//! Groups with a single member: many systems give each user such a group, with write permission to the
//! user's files.

/// Whether only this user (and root) is in a group, according to the files of this machine. A group
/// that is not in them may have any members.
pub(crate) fn has_only(group: u32, user: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    is_only(&read("/etc/passwd"), &read("/etc/group"), group, user)
}

fn is_only(passwd: &str, groups: &str, group: u32, user: u32) -> bool {
    let is_trusted = |number: u32| number == user || number == 0;
    let number = |text: Option<&&str>| text.and_then(|text| text.parse::<u32>().ok());
    let users: Vec<Vec<&str>> = passwd.lines().map(|line| line.split(':').collect()).collect();
    let others_name = |name: &str| {
        let mut named = users.iter().filter(|fields| fields[0] == name);
        !named.any(|fields| number(fields.get(2)).is_some_and(is_trusted))
    };
    let mut entries = groups
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .filter(|fields| number(fields.get(2)) == Some(group))
        .peekable();
    if entries.peek().is_none() {
        return false;
    }
    let has_others = entries.any(|fields| {
        let members = fields.get(3).map_or("", |members| members.trim());
        members.split(',').filter(|name| !name.is_empty()).any(others_name)
    });
    let is_of_others = users.iter().any(|fields| {
        number(fields.get(3)) == Some(group) && !number(fields.get(2)).is_some_and(is_trusted)
    });
    !has_others && !is_of_others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_one_is_told_from_others() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1001:1001::/home/ann:/bin/sh\n\
                      bob:x:1002:100::/home/bob:/bin/sh\n";
        let groups = "root:x:0:\nann:x:1001:\nwheel:x:10:ann\nstaff:x:50:ann,bob\nusers:x:100:\n\
                      gone:x:60:nobody-any-more\nboth:x:70:root,ann\n";
        let only = |group, user| is_only(passwd, groups, group, user);
        assert!(only(1001, 1001), "her own");
        assert!(only(10, 1001) && only(70, 1001), "nobody but her, and root");
        assert!(!only(10, 1002), "somebody else's");
        assert!(!only(50, 1001), "two members");
        assert!(!only(100, 1001) && only(100, 1002), "who has it from the beginning is in it");
        assert!(!only(60, 1001), "a member nobody knows");
        assert!(!only(7, 1001), "a group nobody knows");
        assert!(only(0, 0) && !only(1001, 0), "root trusts root alone");
    }
}
