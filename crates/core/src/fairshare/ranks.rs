//! Fair Tree: users in order of who has used least of their share, account by account.
//!
//! Of the associations below one account, those come first that have the most share for what they used: LF = S / U,
//! where S is the share and U the part of the account's usage. An account that comes before another comes with all its
//! users, and these are in order in the same way. Of n users, the first has the factor n/n, the second (n − 1)/n, the last
//! 1/n.
//!
//! Ties: users beside each other with the same LF have the same rank. The users and accounts below accounts with the same LF are taken
//! together. A user with the same LF as an account beside has the rank of its first user.

//! Below one account, who comes first depends on what each has used for a share, which changes only for those who hold something. So each
//! account keeps its order, and puts those in their places again who have moved.

use std::cmp::Ordering;

use super::tree::{AssociationId, Shares};
use super::usage::{Changed, Usage};

/// The ranks of all users.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    users: u32,
    /// By association; 0 for accounts.
    of: Vec<u32>,
    /// By account, those below it, in order when ranks were last worked out.
    in_order: Vec<Vec<Placed>>,
    /// By association, where it stands among those beside it.
    places: Vec<u32>,
}

/// An association among those beside it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// What it has used for each of its shares: the less, the earlier. Among those below several accounts, how much of its share it
    /// has used.
    used: f64,
    association: AssociationId,
    is_account: bool,
}

impl Placed {
    fn of(shares: &Shares, usage: &Usage, association: AssociationId) -> Self {
        let used = per_share(shares, usage, association);
        Placed { used, association, is_account: !shares.is_user(association) }
    }

    /// Users before accounts, since these are ranked by it.
    #[inline]
    fn compare(&self, other: &Placed) -> Ordering {
        self.used.total_cmp(&other.used).then(self.is_account.cmp(&other.is_account))
    }

    #[inline]
    fn is_tied(&self, other: &Placed) -> bool {
        self.used == other.used
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
    pub(super) fn work_out(&mut self, shares: &Shares, usage: &mut Usage) {
        self.users = shares.users();
        self.of.resize(shares.len(), 0);
        self.places.resize(shares.len(), 0);
        self.in_order.resize(shares.len(), Vec::new());
        match usage.take_changed() {
            Changed::All => {
                for placed in self.in_order.iter_mut().flatten() {
                    placed.used = per_share(shares, usage, placed.association);
                }
            }
            Changed::Some(changed) => {
                for association in changed {
                    let Some(account) = shares.parent(association) else { continue };
                    let place = self.places[association.index()] as usize;
                    let placed = self.in_order[account.index()].get_mut(place);
                    // Those that are new are placed below.
                    if let Some(placed) = placed.filter(|it| it.association == association) {
                        placed.used = per_share(shares, usage, association);
                    }
                }
            }
        }
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
                is_tied = below[place - 1].is_tied(first);
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
            let tied = below[place..].iter().take_while(|other| other.is_tied(first));
            let tied: Vec<AssociationId> = tied.map(|other| other.association).collect();
            place += tied.len();
            self.rank_below(shares, usage, &tied, ranking, is_tied);
        }
        if let [only] = accounts {
            for (place, placed) in (0..).zip(&below) {
                self.places[placed.association.index()] = place;
            }
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
        let placed = |association: &AssociationId| Placed::of(shares, usage, *association);
        if let [only] = accounts {
            let mut below = std::mem::take(&mut self.in_order[only.index()]);
            let new = &shares.below(*only)[below.len()..];
            below.extend(new.iter().map(placed));
            sort(&mut below);
            return below;
        }
        let below = accounts.iter().flat_map(|account| shares.below(*account));
        let mut below: Vec<Placed> = below
            .map(|association| {
                let used = used_up(shares, usage, *association);
                Placed { used, ..placed(association) }
            })
            .collect();
        below.sort_by(Placed::compare);
        below
    }
}

/// Puts in order what is nearly so: whoever has used more since moves back by a few places.
fn sort(below: &mut [Placed]) {
    let mut moves = 0;
    for end in 1..below.len() {
        let moved = below[end];
        let mut place = end;
        while place > 0 && below[place - 1].compare(&moved).is_gt() {
            below[place] = below[place - 1];
            place -= 1;
        }
        below[place] = moved;
        moves += end - place;
        if moves > 8 * below.len() {
            // It was not nearly in order.
            below.sort_by(Placed::compare);
            return;
        }
    }
}

/// What an association has used for each of its shares.
fn per_share(shares: &Shares, usage: &Usage, association: AssociationId) -> f64 {
    match shares.shares(association) {
        0 => f64::INFINITY,
        of_it => usage.weighted(association) / f64::from(of_it),
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
