//! Fair Tree: users in order of who has used least of their share, account by account.
//!
//! Of the associations below one account, those come first that have the most share for what they used: LF = S / U,
//! where S is the share and U the part of the account's usage. An account that comes before another comes with all its
//! users, and these are in order in the same way. Of n users, the first has the factor n/n, the second (n − 1)/n, the last
//! 1/n.
//!
//! Ties: users beside each other with the same LF have the same rank. The users and accounts below accounts with the same LF are taken
//! together. A user with the same LF as an account beside has the rank of its first user.

use std::cmp::Ordering;

use super::tree::{AssociationId, Shares};
use super::usage::Usage;

/// The ranks of all users.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    users: u32,
    /// By association; 0 for accounts.
    of: Vec<u32>,
    /// Those below each account, in order when ranks were last worked out: mostly they still are.
    in_order: Vec<Vec<Placed>>,
}

/// An association among those beside it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// How much of its share it has used: the less, the earlier.
    used_up: f64,
    is_account: bool,
    association: AssociationId,
}

impl Placed {
    /// Users before accounts, since these are ranked by it.
    fn compare(&self, other: &Placed) -> Ordering {
        self.used_up.total_cmp(&other.used_up).then(self.is_account.cmp(&other.is_account))
    }
}

/// Where the ranking has got.
struct Ranking {
    /// The rank of the last user, and of the next if that is not tied.
    rank: u32,
    next: u32,
}

impl Ranks {
    /// The factor of a user who was ranked.
    pub(super) fn factor(&self, user: AssociationId) -> f64 {
        f64::from(self.of[user.index()]) / f64::from(self.users.max(1))
    }

    /// Ranks all users.
    pub(super) fn work_out(&mut self, shares: &Shares, usage: &Usage) {
        self.users = shares.users();
        self.of.resize(shares.len(), 0);
        self.in_order.resize(shares.len(), Vec::new());
        let mut ranking = Ranking { rank: self.users, next: self.users };
        self.rank_below(shares, usage, &[Shares::ROOT], &mut ranking, false);
    }

    /// Ranks all users below these accounts. If somebody beside them is tied with them, the first user below them is.
    fn rank_below(
        &mut self,
        shares: &Shares,
        usage: &Usage,
        accounts: &[AssociationId],
        ranking: &mut Ranking,
        mut is_tied: bool,
    ) {
        let below = self.put_in_order(shares, usage, accounts);
        let mut place = 0;
        while let Some(first) = below.get(place) {
            if place > 0 {
                is_tied = below[place - 1].used_up == first.used_up;
            }
            if !first.is_account {
                if !is_tied {
                    ranking.rank = ranking.next;
                }
                self.of[first.association.index()] = ranking.rank;
                ranking.next -= 1;
                place += 1;
                continue;
            }
            let alike = below[place..].iter().take_while(|other| other.used_up == first.used_up);
            let alike: Vec<AssociationId> = alike.map(|other| other.association).collect();
            place += alike.len();
            self.rank_below(shares, usage, &alike, ranking, is_tied);
        }
        if let [only] = accounts {
            self.in_order[only.index()] = below;
        }
    }

    /// All associations below these accounts, in order.
    fn put_in_order(
        &mut self,
        shares: &Shares,
        usage: &Usage,
        accounts: &[AssociationId],
    ) -> Vec<Placed> {
        let mut below = match accounts {
            [only] => std::mem::take(&mut self.in_order[only.index()]),
            _ => Vec::new(),
        };
        for account in accounts {
            // Of one account, those that are new since; of several, all.
            let known = if accounts.len() == 1 { below.len() } else { 0 };
            below.extend(shares.below(*account)[known..].iter().map(|association| Placed {
                used_up: 0.0,
                is_account: !shares.is_user(*association),
                association: *association,
            }));
        }
        for placed in &mut below {
            placed.used_up = used_up(shares, usage, placed.association);
        }
        below.sort_by(Placed::compare);
        below
    }
}

/// How much of its share an association has used: 1 / LF.
fn used_up(shares: &Shares, usage: &Usage, association: AssociationId) -> f64 {
    let share = f64::from(shares.shares(association));
    let Some(parent) = shares.parent(association) else { return 0.0 };
    if share == 0.0 {
        return f64::INFINITY;
    }
    let all = usage.weighted(parent);
    if all == 0.0 {
        return 0.0;
    }
    usage.weighted(association) * shares.shares_below(parent) as f64 / (share * all)
}
