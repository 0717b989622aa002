//! One colour for one policy, wherever it is drawn.

use crate::report::digest::Digest;

/// The policies of some runs, each once, in the order in which they first come. A policy's place is
/// that of its colour, in every case, chart and picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Palette(Vec<String>);

impl Palette {
    /// The policies of these runs.
    pub(crate) fn of(digests: &[Digest]) -> Self {
        let mut names: Vec<String> = Vec::new();
        for digest in digests {
            if !names.contains(&digest.summary.policy) {
                names.push(digest.summary.policy.clone());
            }
        }
        Palette(names)
    }

    /// The place of a policy; one that never ran comes after all that did.
    pub(crate) fn place(&self, policy: &str) -> usize {
        self.0.iter().position(|name| name == policy).unwrap_or(self.0.len())
    }

    /// The policies, in the order of their places.
    pub(crate) fn policies(&self) -> &[String] {
        &self.0
    }
}
