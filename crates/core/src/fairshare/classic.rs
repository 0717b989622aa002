//! The classic rule: a user's factor is 2^(−U/S), where S is the user's share of the machine and U the
//! part of all usage that counts as the user's.
//!
//! S is the product of the shares on the way from the root. U is what the user used, and a part of what the
//! others below the account used: U = u + (U of the account − u) · s, where u is the user's part of all usage and s
//! the user's share of the account. Below the root, U is u. A dampening makes usage count less: 2^(−U/S/dampening).

use super::tree::{AssociationId, Shares};
use super::usage::Usage;

/// The factor of a user.
pub(super) fn factor(shares: &Shares, usage: &Usage, user: AssociationId, dampening: u32) -> f64 {
    let share: f64 = shares.upward(user).map(|association| shares.part(association)).product();
    if share == 0.0 {
        return 0.0;
    }
    libm::exp2(-effective(shares, usage, user) / share / f64::from(dampening.max(1)))
}

/// The part of all usage that counts as an association's.
fn effective(shares: &Shares, usage: &Usage, association: AssociationId) -> f64 {
    let all = usage.weighted(Shares::ROOT);
    if all == 0.0 {
        return 0.0;
    }
    let own = usage.weighted(association) / all;
    match shares.parent(association) {
        None | Some(Shares::ROOT) => own,
        Some(account) => own + (effective(shares, usage, account) - own) * shares.part(association),
    }
}
