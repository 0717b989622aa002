//! A plain choice, for when the prices lead to none: what is worth most for what it takes comes
//! first, as long as it fits, and what is left over goes to whoever gains by it.
//!
//! Where very many options are worth the same at the prices, the loss-free choice says nothing, and
//! mending it step by step takes too many steps.

use super::incumbent::Incumbent;
use super::instance::Instance;
use super::loss::Losses;

/// How often everybody is asked.
const ROUNDS: u64 = 3;

/// Fills from a choice that fits. The outcome replaces the incumbent if it is better. Returns how
/// many options were looked at.
pub(super) fn fill(incumbent: &mut Incumbent, instance: &Instance, losses: &Losses) -> u64 {
    let columns = &instance.columns;
    let amounts = |place: usize| [columns.nodes[place] as i64, columns.power[place] as i64];
    let mut choice = incumbent.choice.clone();
    let mut left = [instance.nodes() as i64, instance.power().milliwatts() as i64];
    for (entry, option) in choice.iter().enumerate() {
        let taken = amounts(instance.row(entry).start + *option as usize);
        left = [0, 1].map(|i| left[i] - taken[i]);
    }
    // What an option adds to what its entry has, and what it takes more.
    let step = |choice: &[u32], entry: usize, place: usize| {
        let held = instance.row(entry).start + choice[entry] as usize;
        let more = [0, 1].map(|i| amounts(place)[i] - amounts(held)[i]);
        (columns.value[place] - columns.value[held], more)
    };
    // What a step takes, in shares of what is left: what becomes short becomes dear.
    let dear = |more: [i64; 2], left: [i64; 2]| -> f64 {
        let share = |i: usize| more[i].max(0) as f64 / (left[i] as f64).max(1.0);
        (share(0) + share(1)).max(f64::MIN_POSITIVE)
    };
    let best_step = |choice: &[u32], left: [i64; 2], entry: usize| {
        let row = instance.row(entry);
        let steps = row.clone().filter_map(|place| {
            let (gain, more) = step(choice, entry, place);
            let fits = more[0] <= left[0] && more[1] <= left[1];
            (gain > 0.0 && fits)
                .then(|| (gain / dear(more, left), (place - row.start) as u32, more))
        });
        steps.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
    };
    let ranked = (0..instance.entries())
        .filter_map(|entry| best_step(&choice, left, entry).map(|(rank, _, _)| (rank, entry)));
    let mut order: Vec<(f64, usize)> = ranked.collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    // In the first round everybody gets something; in the next ones those who gain by more.
    for _ in 0..ROUNDS {
        for &(_, entry) in &order {
            if let Some((_, option, more)) = best_step(&choice, left, entry) {
                choice[entry] = option;
                left = [0, 1].map(|i| left[i] - more[i]);
            }
        }
    }
    let looks = (ROUNDS + 1) * columns.value.len() as u64;
    let shortfall = losses.bound - Incumbent::value(instance, &choice);
    if shortfall < incumbent.shortfall {
        (incumbent.choice, incumbent.shortfall) = (choice, shortfall);
    }
    looks
}
