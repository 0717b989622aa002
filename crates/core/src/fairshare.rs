//! Fair share: who has used less of the machine than their share comes first.
//!
//! The machine is shared out over a tree of associations ([`Shares`]): accounts, which may have accounts below
//! them, and users, who belong to an account each. What jobs hold counts as usage of their association and of
//! all accounts above it. It is entered once in each period ([`Usage`]), and what was entered counts half as
//! much after each half-life. From shares and usage comes a factor for each user, from 0 to 1, by one of two
//! rules ([`Rule`]): Fair Tree (`ranks`) or the classic one (`classic`). Both are those of Slurm.
//!
//! Usage is a sum in floating-point numbers. Only additions, multiplications and divisions are done with them,
//! which are rounded in the same way everywhere, and powers of two by `libm`, which is the same code everywhere.

use std::fmt;
use std::str::FromStr;

use crate::units::Instant;

mod classic;
mod ranks;
mod tree;
mod usage;

pub use tree::{AssociationId, Shares};
pub use usage::{Decay, Usage};

use ranks::Ranks;

/// How shares and usage become a factor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Fair Tree: accounts that used less of their share come first with all their users.
    #[default]
    FairTree,
    /// 2^(−usage / share), as Slurm had it before Fair Tree.
    Classic {
        /// By how much less usage counts.
        dampening: u32,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::FairTree => "fair-tree",
            Rule::Classic { .. } => "classic",
        })
    }
}

impl FromStr for Rule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fair-tree" => Ok(Rule::FairTree),
            "classic" => Ok(Rule::Classic { dampening: 1 }),
            _ => Err("write fair-tree or classic"),
        }
    }
}

/// Shares, what was used, and the factors that follow from both.
#[derive(Clone, Debug)]
pub struct FairShare {
    shares: Shares,
    usage: Usage,
    rule: Rule,
    ranks: Ranks,
    /// Whether a period began since factors were worked out.
    is_due: bool,
}

impl FairShare {
    /// Nobody has used anything yet.
    pub fn new(mut shares: Shares, decay: Decay, rule: Rule) -> Self {
        shares.settle();
        let usage = Usage::new(decay);
        FairShare { shares, usage, rule, ranks: Ranks::default(), is_due: false }
    }

    /// The tree.
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// A new user below an account. Until the next period begins the user's factor is that of somebody who has
    /// used nothing.
    pub fn add_user(&mut self, account: AssociationId, shares: u32) -> AssociationId {
        self.shares.add_user(account, shares)
    }

    /// Usage from before the beginning, in units times seconds.
    pub fn has_used(&mut self, association: AssociationId, unit_seconds: f64) {
        self.usage.add(&self.shares, association, unit_seconds);
    }

    /// Moves the clock, and works out the factors of the period. Says whether they are others than before.
    pub fn advance(&mut self, now: Instant) -> bool {
        self.pass(now);
        self.work_out()
    }

    /// Moves the clock. Factors are not those of the period before they are [worked out](FairShare::work_out).
    pub fn pass(&mut self, now: Instant) {
        self.is_due |= self.usage.advance(&self.shares, now);
    }

    /// Whether the clock was ever moved.
    pub(crate) fn has_begun(&self) -> bool {
        self.usage.next_period().is_some()
    }

    /// When the next period begins, if it is known when this one began.
    pub(crate) fn next_period(&self) -> Option<Instant> {
        self.usage.next_period()
    }

    /// Works out the factors of the period. Says whether they are others than before.
    pub fn work_out(&mut self) -> bool {
        let is_due = std::mem::take(&mut self.is_due);
        if is_due {
            self.shares.settle();
            if self.rule == Rule::FairTree {
                self.ranks.work_out(&self.shares, &mut self.usage);
            }
        }
        is_due
    }

    /// From now on an association holds so many thousandths of units more.
    pub fn begins(&mut self, association: AssociationId, thousandths: u64) {
        self.usage.begins(association, thousandths);
    }

    /// From now on it holds so many less.
    pub fn ends(&mut self, association: AssociationId, thousandths: u64) {
        self.usage.ends(association, thousandths);
    }

    /// The factor of a user, from 0 to 1, as of the beginning of the period.
    pub fn factor(&self, user: AssociationId) -> f64 {
        if self.shares.is_new(user) {
            return 1.0;
        }
        match self.rule {
            Rule::FairTree => self.ranks.factor(user),
            Rule::Classic { dampening } => {
                classic::factor(&self.shares, &self.usage, user, dampening)
            }
        }
    }

    /// What an association has used, in units times seconds, as it counts at the beginning of the period.
    pub fn used(&self, association: AssociationId) -> f64 {
        self.usage.unit_seconds(association)
    }
}
