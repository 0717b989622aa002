//! Commands that this build lacks, because their features were not enabled.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands by the feature that they need.
const BY_FEATURE: [(bool, &[&str]); 5] = [
    (cfg!(feature = "agent"), &["agent"]),
    (
        cfg!(feature = "live"),
        &[
            "serve", "submit", "queue", "show", "cancel", "hold", "release", "nodes", "budget",
            "history", "forecast", "status", "stop", "config", "work",
        ],
    ),
    (cfg!(feature = "slurm"), &["slurm", "site", "lab"]),
    (cfg!(feature = "top"), &["top"]),
    (cfg!(feature = "web"), &["token"]),
];

/// Advice about a command that only other builds have.
pub(super) fn advice(error: &clap::Error) -> Option<String> {
    let ErrorKind::InvalidSubcommand = error.kind() else { return None };
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_left_out =
        |(is_here, names): &(bool, &[&str])| !is_here && names.contains(&name.as_str());
    BY_FEATURE.iter().any(is_left_out).then(|| {
        format!(
            "this program was built without 'busbar {name}'; 'cargo build --release --features full' builds all \
            commands"
        )
    })
}
