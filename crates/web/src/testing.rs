//! What tests have in common.

use busbar_trust::{Setting, TrustedFolder};

/// A state folder for a test.
pub(crate) fn state(folder: &tempfile::TempDir) -> TrustedFolder {
    TrustedFolder::existing(folder.path(), Setting("'state = …'")).unwrap()
}
