//! Commands that this build of the program does not have, because its features were not asked for.

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
    (cfg!(feature = "slurm"), &["slurm", "lab"]),
    (cfg!(feature = "top"), &["top"]),
    (cfg!(feature = "web"), &["token"]),
];

/// What to do about a command that is only in other builds.
pub(super) fn advice(error: &clap::Error) -> Option<String> {
    let ErrorKind::InvalidSubcommand = error.kind() else { return None };
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let is_left_out =
        |(is_here, names): &(bool, &[&str])| !is_here && names.contains(&name.as_str());
    BY_FEATURE.iter().any(is_left_out).then(|| {
        format!(
            "this program was built without 'busbar {name}', so that it builds quickly; \
             'cargo build --release --features full' builds all of it"
        )
    })
}
