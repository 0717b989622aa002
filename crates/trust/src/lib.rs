//! The folders and files that Busbar can trust, because only its own user and root can change them.
//!
//! What the daemon and the agent keep on disk decides what they do: commands that are run, perhaps as root, tokens that
//! let somebody in, limits that are written to hardware. So a [`TrustedFolder`] that another user could change or
//! replace is refused, and so is each file in it; and a [secret](read_secret) that others can read is no secret.
//!
//! What was under somebody else's control cannot be made trustworthy by a change of its owner or its permissions: what
//! they wrote stays in it. So the advice is never a `chown` or `chmod` of what Busbar keeps, only of a folder above it that has nothing of
//! Busbar in it yet, and of a private key.

mod error;
mod folder;
mod groups;
mod judgement;
mod secret;
mod setting;

pub use error::TrustError;
pub use folder::{Durability, TrustedFolder};
pub use secret::{SecretError, read_secret};
pub use setting::Setting;
