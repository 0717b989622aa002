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
    /// By association.
    places: Vec<Placed>,
    /// Those below each account, in order when ranks were last worked out.
    in_order: Vec<Vec<AssociationId>>,
}

/// Where an association stands among those beside it.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// What it has used for each of its shares: the less, the earlier.
    per_share: f64,
    is_account: bool,
}

impl Placed {
    fn of(shares: &Shares, usage: &Usage, association: AssociationId) -> Self {
        let of_it = f64::from(shares.shares(association));
        let per_share = match of_it == 0.0 {
            true => f64::INFINITY,
            false => usage.weighted(association) / of_it,
        };
        Placed { per_share, is_account: !shares.is_user(association) }
    }

    /// Users before accounts, since these are ranked by it.
    #[inline]
    fn compare(&self, other: &Placed) -> Ordering {
        self.per_share.total_cmp(&other.per_share).then(self.is_account.cmp(&other.is_account))
    }
}

/// Where the ranking has got.
struct Ranking {
    /// The rank of the last user, and of the next if that is not tied.
    rank: u32,
    next: u32,
}

/// The associations below one account, or below several that are tied, in order.
struct Below {
    associations: Vec<AssociationId>,
    /// How much of its share each has used, where they are below several.
    used_up: Option<Vec<f64>>,
}

impl Below {
    /// Whether two of them are tied.
    fn are_tied(&self, places: &[Placed], one: usize, other: usize) -> bool {
        match &self.used_up {
            Some(used_up) => used_up[one] == used_up[other],
            None => {
                let [one, other] = [one, other].map(|at| self.associations[at].index());
                places[one].per_share == places[other].per_share
            }
        }
    }
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
        self.in_order.resize(shares.len(), Vec::new());
        let known = match usage.take_changed() {
            Changed::All => 0,
            Changed::Some(changed) => {
                for association in changed {
                    // Those that are new are placed below.
                    if let Some(place) = self.places.get_mut(association.index()) {
                        *place = Placed::of(shares, usage, association);
                    }
                }
                self.places.len()
            }
        };
        self.places.truncate(known);
        let new = (known..shares.len()).map(|new| AssociationId::of(new as u32));
        self.places.extend(new.map(|association| Placed::of(shares, usage, association)));
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
        while let Some(&first) = below.associations.get(place) {
            if place > 0 {
                is_tied = below.are_tied(&self.places, place - 1, place);
            }
            if !self.places[first.index()].is_account {
                if !is_tied {
                    ranking.rank = ranking.next;
                }
                self.of[first.index()] = ranking.rank;
                ranking.next -= 1;
                place += 1;
                continue;
            }
            let mut end = place + 1;
            while end < below.associations.len() && below.are_tied(&self.places, place, end) {
                end += 1;
            }
            self.rank_below(shares, usage, &below.associations[place..end], ranking, is_tied);
            place = end;
        }
        if let [only] = accounts {
            self.in_order[only.index()] = below.associations;
        }
    }

    /// All associations below these accounts, in order.
    fn put_in_order(
        &mut self,
        shares: &Shares,
        usage: &Usage,
        accounts: &[AssociationId],
    ) -> Below {
        if let [only] = accounts {
            let mut associations = std::mem::take(&mut self.in_order[only.index()]);
            // Those that are new since.
            associations.extend_from_slice(&shares.below(*only)[associations.len()..]);
            sort(&mut associations, &self.places);
            return Below { associations, used_up: None };
        }
        let below = accounts.iter().flat_map(|account| shares.below(*account)).copied();
        let mut placed: Vec<(f64, bool, AssociationId)> =
            below.map(|one| (used_up(shares, usage, one), !shares.is_user(one), one)).collect();
        placed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        Below {
            associations: placed.iter().map(|one| one.2).collect(),
            used_up: Some(placed.iter().map(|one| one.0).collect()),
        }
    }
}

/// Puts in order what is nearly so: whoever has used more since moves back by a few places.
fn sort(associations: &mut [AssociationId], places: &[Placed]) {
    let at = |association: AssociationId| &places[association.index()];
    let mut moves = 0;
    for end in 1..associations.len() {
        let moved = associations[end];
        let mut place = end;
        while place > 0 && at(associations[place - 1]).compare(at(moved)).is_gt() {
            associations[place] = associations[place - 1];
            place -= 1;
        }
        associations[place] = moved;
        moves += end - place;
        if moves > 8 * associations.len() {
            // It was not nearly in order.
            associations.sort_by(|one, other| at(*one).compare(at(*other)));
            return;
        }
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
