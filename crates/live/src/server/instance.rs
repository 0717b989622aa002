//! Which daemon this is, for the agents of its nodes.
//!
//! It is a random text in the state folder. So a daemon that starts again is known to its agents at once, and two
//! daemons with folders of their own are two, also if they use the same keys.

use std::io::Read as _;

use busbar_agent::instance::Instance;
use busbar_trust::{Durability, TrustError, TrustedFolder};

/// The file in the state folder.
const FILE: &str = "instance";

/// The instance that a state folder holds. If it holds none, it gets one.
pub(crate) fn kept_in(state: &TrustedFolder) -> Result<Instance, TrustError> {
    let path = state.path().join(FILE);
    let failed = |what, source| TrustError::File { what, path: path.clone(), source };
    if let Some(mut file) = state.existing_file(FILE)? {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|source| failed("read", source))?;
        match String::from_utf8_lossy(&bytes).trim().parse() {
            Ok(known) => return Ok(known),
            Err(why) => {
                tracing::warn!(file = %path.display(), "{why}; agents will treat this daemon as a different one");
            }
        }
    }
    let new = Instance::random().map_err(|source| failed("find a random text for", source))?;
    // No agent hears of it before it is sure to be the same after a power failure.
    state.replace(FILE, format!("{new}\n").as_bytes(), 0o600, Durability::Now)?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::STATE;

    #[test]
    fn a_state_folder_is_one_daemon() {
        let [one, other] = [0, 1].map(|_| tempfile::tempdir().unwrap());
        let folder =
            |place: &tempfile::TempDir| TrustedFolder::of(place.path(), 0o700, STATE).unwrap();
        let instance = kept_in(&folder(&one)).unwrap();
        assert_eq!(kept_in(&folder(&one)).unwrap(), instance, "after a restart");
        assert_ne!(kept_in(&folder(&other)).unwrap(), instance);
        // What cannot be one is replaced.
        fs::write(one.path().join(FILE), "not one\n").unwrap();
        let new = kept_in(&folder(&one)).unwrap();
        assert_ne!(new, instance);
        assert_eq!(kept_in(&folder(&one)).unwrap(), new);
    }
}
