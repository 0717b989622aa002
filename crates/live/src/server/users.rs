//! Users by name and by number, as the system knows them: from its files or from a directory service.

use nix::unistd::{Uid, User};

use crate::job::Owner;

/// The number of a user, if there is such a user.
pub fn number_of(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

/// A user with the group that is theirs first, if the system knows them.
pub fn owner(number: u32) -> Option<Owner> {
    let user = User::from_uid(Uid::from_raw(number)).ok().flatten()?;
    Some(Owner { user: number, group: user.gid.as_raw() })
}

/// The name of a user, if the system knows it.
pub fn name_of(number: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(number)).ok().flatten().map(|user| user.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name() {
        assert_eq!((number_of("root"), name_of(0)), (Some(0), Some("root".to_owned())));
        for nobody in ["", "no such user", "roo", "root:x", "x\nroot", "root\0"] {
            assert_eq!(number_of(nobody), None, "{nobody}");
        }
        assert_eq!(name_of(u32::MAX - 7), None);
        assert_eq!(owner(0), Some(Owner { user: 0, group: 0 }));
        assert_eq!(owner(u32::MAX - 7), None);
    }
}
