//! Fair share by hand, and beside a plain version.

// What tests expect is near enough with any mathematical library.
#![allow(clippy::disallowed_methods)]

use busbar_core::fairshare::{AssociationId, Decay, FairShare, Rule, Shares};
use busbar_core::units::{Instant, Span};
use proptest::prelude::*;

fn decay(half_life: Option<u32>, period: u32) -> Decay {
    let half_life = half_life.map(Span::from_secs);
    Decay { half_life, period: Span::from_secs(period), lead: Span::ZERO, resets: Vec::new() }
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-9
}

/// Two accounts with as many shares; in one of them two users, in the other one.
fn three_users() -> (Shares, [AssociationId; 3]) {
    let mut shares = Shares::default();
    let physics = shares.add_account(Shares::ROOT, 1);
    let biology = shares.add_account(Shares::ROOT, 1);
    let users =
        [shares.add_user(physics, 3), shares.add_user(physics, 1), shares.add_user(biology, 1)];
    (shares, users)
}

/// The machine has 100 processors. An account holds 60 of them, of which a user holds 20; the user has half of the
/// account's shares, and the account 40 % of the machine's: S is 0.2, u is 0.2, U is 0.2 + (0.6 − 0.2) · 0.5 = 0.4, and the
/// factor 2^(−0.4 / 0.2) = 1/4.
#[test]
fn the_classic_factor_by_hand() {
    let mut shares = Shares::default();
    let ours = shares.add_account(Shares::ROOT, 40);
    let theirs = shares.add_account(Shares::ROOT, 60);
    let user = shares.add_user(ours, 5);
    let other = shares.add_user(ours, 5);
    let stranger = shares.add_user(theirs, 1);
    let factor = |rule: Rule| {
        let mut fair = FairShare::new(shares.clone(), decay(None, 60), rule);
        fair.has_used(user, 20.0);
        fair.has_used(other, 40.0);
        fair.has_used(stranger, 40.0);
        fair.advance(Instant::ZERO);
        fair.factor(user)
    };
    assert!(close(factor(Rule::Classic { dampening: 1 }), 0.25));
    // Dampened by two, 2^−1.
    assert!(close(factor(Rule::Classic { dampening: 2 }), 0.5));
}

/// Whoever has no share has the factor 0, whoever has one and has used nothing 1, and whoever has used just the share 1/2.
#[test]
fn the_classic_factor_at_its_ends() {
    let mut shares = Shares::default();
    let [none, idle, fair] = [0, 1, 1].map(|of_user| shares.add_user(Shares::ROOT, of_user));
    let other = shares.add_user(Shares::ROOT, 2);
    let mut factors = FairShare::new(shares, decay(None, 60), Rule::Classic { dampening: 1 });
    factors.has_used(fair, 1.0);
    factors.has_used(other, 3.0);
    factors.advance(Instant::ZERO);
    assert_eq!([none, idle, fair].map(|user| factors.factor(user)), [0.0, 1.0, 0.5]);
}

/// Physics has used three quarters with half of the shares, so all of its users stand behind biology's. Of its users the one
/// with three quarters of the shares has used two thirds of the account's part.
#[test]
fn accounts_are_ranked_before_their_users() {
    let (shares, [heavy, light, other]) = three_users();
    let mut fair = FairShare::new(shares, decay(None, 60), Rule::FairTree);
    fair.has_used(heavy, 50.0);
    fair.has_used(light, 25.0);
    fair.has_used(other, 25.0);
    fair.advance(Instant::ZERO);
    let expected = [2.0 / 3.0, 1.0 / 3.0, 1.0];
    assert_eq!([heavy, light, other].map(|user| fair.factor(user)), expected);
}

/// The rules for ties, one after the other.
#[test]
fn ties_are_those_of_fair_tree() {
    // Nobody has used anything: all users of both accounts are taken together and are alike.
    let (shares, users) = three_users();
    let mut fair = FairShare::new(shares, decay(None, 60), Rule::FairTree);
    fair.advance(Instant::ZERO);
    assert_eq!(users.map(|user| fair.factor(user)), [1.0; 3]);
    // A user beside an account with the same LF has the rank of its first user; whoever comes next has skipped one.
    let mut shares = Shares::default();
    let account = shares.add_account(Shares::ROOT, 1);
    let beside = shares.add_user(Shares::ROOT, 1);
    let [first, second] = [1, 1].map(|of_user| shares.add_user(account, of_user));
    let behind = shares.add_user(Shares::ROOT, 0);
    let mut fair = FairShare::new(shares, decay(None, 60), Rule::FairTree);
    fair.has_used(beside, 3.0);
    fair.has_used(first, 1.0);
    fair.has_used(second, 2.0);
    fair.advance(Instant::ZERO);
    let factors = [beside, first, second, behind].map(|user| fair.factor(user));
    assert_eq!(factors, [1.0, 1.0, 0.5, 0.25]);
    // Accounts with the same LF: users of both stand in one order.
    let mut shares = Shares::default();
    let accounts = [1, 1].map(|of_account| shares.add_account(Shares::ROOT, of_account));
    let users = [0, 0, 1, 1].map(|account| shares.add_user(accounts[account], 1));
    let mut fair = FairShare::new(shares, decay(None, 60), Rule::FairTree);
    for (user, used) in users.into_iter().zip([10.0, 90.0, 30.0, 70.0]) {
        fair.has_used(user, used);
    }
    fair.advance(Instant::ZERO);
    assert_eq!(users.map(|user| fair.factor(user)), [1.0, 0.25, 0.75, 0.5]);
}

/// Somebody new has not taken anything from others before the next period, and is like somebody who has used nothing.
#[test]
fn who_is_new_shares_from_the_next_period_on() {
    for rule in [Rule::FairTree, Rule::Classic { dampening: 1 }] {
        let (shares, [heavy, ..]) = three_users();
        let mut fair = FairShare::new(shares, decay(None, 60), rule);
        fair.has_used(heavy, 1.0);
        fair.advance(Instant::ZERO);
        let before = fair.factor(heavy);
        let new = fair.add_user(Shares::ROOT, 1);
        assert_eq!([fair.factor(new), fair.factor(heavy)], [1.0, before]);
        assert!(!fair.advance(Instant::from_secs(59)) && fair.advance(Instant::from_secs(60)));
        assert!(fair.factor(heavy) < before && fair.factor(new) == 1.0, "{rule}");
    }
}

/// Usage is entered at the end of each period, and what was entered before counts less then. With a half-life of two
/// periods: four units for all of the first and half of the second, then none.
#[test]
fn usage_counts_half_after_a_half_life() {
    let (shares, [user, ..]) = three_users();
    let mut fair = FairShare::new(shares, decay(Some(120), 60), Rule::FairTree);
    fair.advance(Instant::ZERO);
    fair.begins(user, 4000);
    fair.advance(Instant::from_secs(90));
    assert!(close(fair.used(user), 240.0));
    fair.ends(user, 4000);
    let root_half = 0.5f64.sqrt();
    for (seconds, expected) in [
        (119, 240.0),
        (120, 240.0 * root_half + 120.0),
        (180, 240.0 / 2.0 + 120.0 * root_half),
        (240, 240.0 / 2.0 * root_half + 120.0 / 2.0),
    ] {
        fair.advance(Instant::from_secs(seconds));
        assert!(close(fair.used(user), expected), "{seconds}: {}", fair.used(user));
    }
    // However many periods are passed over.
    fair.advance(Instant::from_secs(240 + 120 * 500));
    let long_ago = 180.0 * (0.5f64).powi(500);
    assert!(fair.used(user) > 0.0 && fair.used(user) < long_ago, "{}", fair.used(user));
}

/// It makes no difference how often anybody looks at the clock.
#[test]
fn usage_does_not_depend_on_how_often_it_is_looked_at() {
    let used = |looks: &[u32]| {
        let (shares, [user, other, _]) = three_users();
        let mut fair = FairShare::new(shares, decay(Some(300), 60), Rule::FairTree);
        fair.advance(Instant::from_secs(30));
        fair.begins(user, 1500);
        fair.begins(other, 500);
        looks.iter().for_each(|at| _ = fair.advance(Instant::from_secs(*at)));
        fair.advance(Instant::from_secs(200_000));
        (fair.used(user), fair.used(Shares::ROOT))
    };
    let (at_once, all) = used(&[]);
    let often: Vec<u32> = (31..200_000).step_by(17).collect();
    let (often, all_often) = used(&often);
    assert!((at_once - often).abs() < 1e-9 * often && (all - all_often).abs() < 1e-9 * all);
    // 1.5 units for ever: each period counts q = 2^(−1/5) times what the next counts.
    let expected = 1.5 * 60.0 / (1.0 - 0.5f64.powf(0.2));
    assert!((at_once - expected).abs() < 1e-9 * expected, "{at_once} {expected}");
    assert!((all - expected / 0.75).abs() < 1e-9 * all);
}

/// All is forgotten at the end of the first period at or after a reset.
#[test]
fn resets_forget_all() {
    let (shares, [user, ..]) = three_users();
    let resets = vec![Instant::from_secs(90), Instant::from_secs(240)];
    let decay = Decay { resets, ..decay(None, 60) };
    let mut fair = FairShare::new(shares, decay, Rule::FairTree);
    fair.advance(Instant::ZERO);
    fair.begins(user, 1000);
    for (seconds, expected) in [(60, 60.0), (119, 60.0), (120, 0.0), (180, 60.0), (300, 60.0)] {
        fair.advance(Instant::from_secs(seconds));
        assert!(close(fair.used(user), expected), "{seconds}: {}", fair.used(user));
    }
}

/// Ranks are those of users sorted anew, however usage grew before.
fn plain_ranks(used: &[f64], shares: &[u32]) -> Vec<f64> {
    let used_up: Vec<f64> =
        used.iter().zip(shares).map(|(used, shares)| used / f64::from(*shares)).collect();
    let count = used.len() as f64;
    let before = |one: &f64| used_up.iter().filter(|other| *other < one).count() as f64;
    used_up.iter().map(|one| (count - before(one)) / count).collect()
}

proptest! {
    #[test]
    fn ranks_that_are_kept_are_those_of_sorted_users(
        shares in prop::collection::vec(1u32..5, 2..60),
        steps in prop::collection::vec((0usize..60, 1u64..5000, 0u32..400), 1..80),
    ) {
        let mut tree = Shares::default();
        let account = tree.add_account(Shares::ROOT, 1);
        let users: Vec<AssociationId> =
            shares.iter().map(|shares| tree.add_user(account, *shares)).collect();
        let mut fair = FairShare::new(tree, decay(Some(600), 60), Rule::FairTree);
        fair.advance(Instant::ZERO);
        let mut now = 0;
        for (user, thousandths, seconds) in steps {
            let user = users[user % users.len()];
            fair.begins(user, thousandths);
            now += seconds;
            fair.advance(Instant::from_secs(now));
            fair.ends(user, thousandths);
            let used: Vec<f64> = users.iter().map(|user| fair.used(*user)).collect();
            let factors: Vec<f64> = users.iter().map(|user| fair.factor(*user)).collect();
            prop_assert_eq!(factors, plain_ranks(&used, &shares));
        }
    }
}
