//! The best choice known, and a first good one.

use super::classes::{Classes, Kind};
use super::instance::Instance;
use super::loss::{Losses, Move};

/// The best choice known: an option in its row for each entry, and by how much it falls short of
/// the bound.
#[derive(Default)]
pub(super) struct Incumbent {
    pub(super) choice: Vec<u32>,
    pub(super) shortfall: f64,
}

impl Incumbent {
    /// What a choice is worth, added up in the order of entries.
    pub(super) fn value(instance: &Instance, choice: &[u32]) -> f64 {
        let worth = |(entry, option): (usize, &u32)| {
            instance.columns.value[instance.row(entry).start + *option as usize]
        };
        choice.iter().enumerate().map(worth).sum()
    }

    /// Takes over the loss-free choice with these moves.
    pub(super) fn replace(
        &mut self,
        losses: &Losses,
        moves: impl Iterator<Item = Move>,
        shortfall: f64,
    ) {
        self.choice.clear();
        self.choice.extend_from_slice(&losses.taken);
        for step in moves {
            self.choice[step.entry as usize] = step.option;
        }
        self.shortfall = shortfall;
    }

    /// Gives what is left over to entries that are worth more with it, one after the other. A choice may be near enough to
    /// the best and yet leave out somebody for whom there is room. Returns how many options were looked at.
    pub(super) fn take_what_fits(&mut self, instance: &Instance, bound: f64) -> u64 {
        let columns = &instance.columns;
        let amounts = |place: usize| [columns.nodes[place] as i64, columns.power[place] as i64];
        let mut left = [instance.nodes() as i64, instance.power().milliwatts() as i64];
        for (entry, option) in self.choice.iter().enumerate() {
            let held = amounts(instance.row(entry).start + *option as usize);
            left = [left[0] - held[0], left[1] - held[1]];
        }
        let mut looks = 0;
        let mut is_better = true;
        // Whoever is better off with less leaves room for others. Each round is worth more than the one before.
        while is_better {
            is_better = false;
            looks += columns.value.len() as u64;
            for (entry, option) in self.choice.iter_mut().enumerate() {
                let row = instance.row(entry);
                let mut best = row.start + *option as usize;
                for place in row.clone() {
                    if columns.value[place] <= columns.value[best] {
                        continue;
                    }
                    let (held, other) = (amounts(best), amounts(place));
                    let more = [other[0] - held[0], other[1] - held[1]];
                    if more[0] <= left[0] && more[1] <= left[1] {
                        left = [left[0] - more[0], left[1] - more[1]];
                        (best, is_better) = (place, true);
                    }
                }
                *option = (best - row.start) as u32;
            }
        }
        self.shortfall = bound - Incumbent::value(instance, &self.choice);
        looks
    }

    /// From the loss-free choice: gives back what is too much at the least loss, then takes what
    /// still fits as long as it helps. The outcome replaces the choice if it is better.
    pub(super) fn improve_greedily(
        &mut self,
        instance: &Instance,
        losses: &Losses,
        classes: &Classes,
    ) -> u64 {
        const MOST_STEPS: usize = 100;
        let capacity = instance.capacity().map(|amount| amount.max(1.0));
        let overdraw = |left: [i64; 2]| -> f64 {
            [0, 1].iter().map(|&i| (-left[i]).max(0) as f64 / capacity[i]).sum()
        };
        let priced = |left: [i64; 2]| -> f64 {
            losses.prices[0] * left[0] as f64 + losses.prices[1] * left[1] as f64
        };
        let after = |left: [i64; 2], kind: &Kind| [0, 1].map(|i| left[i] - kind.takes[i]);
        // What speaks for a move, less being more; nothing if it does not help. Of moves that lose
        // alike, the one that relieves most. `over` and `worth` are those of what is left now. Whether it fits is a whole
        // number: a processor copies a single byte beside floats only after a wait.
        let rank = |left: [i64; 2], over: f64, worth: f64, kind: &Kind| {
            let then = after(left, kind);
            if over > 0.0 {
                // To fit at last beats everything; else the least loss for the relief.
                let still_over = overdraw(then);
                let relief = over - still_over;
                let fits = still_over == 0.0;
                let rank = if fits { kind.loss + priced(then) } else { kind.loss / relief };
                (relief > 0.0).then_some((u64::from(!fits), rank, -relief))
            } else {
                if then[0] < 0 || then[1] < 0 {
                    return None;
                }
                let better = kind.loss + priced(then) - worth;
                (better < 0.0).then_some((0, better, 0.0))
            }
        };
        let kinds: Vec<Kind> = (0..classes.len() as u32)
            .flat_map(|class| classes.kinds(class, &losses.moves))
            .collect();
        let (mut left, mut lost, mut looks) = (losses.left, 0.0, 0);
        let mut made: Vec<Move> = Vec::new();
        let mut used = vec![0; classes.len()];
        for _ in 0..MOST_STEPS {
            looks += kinds.len() as u64;
            let (over, worth) = (overdraw(left), priced(left));
            let is_free = |kind: &&Kind| used[kind.class as usize] < classes.size(kind.class);
            let best = kinds
                .iter()
                .filter(is_free)
                .filter_map(|kind| Some((rank(left, over, worth, kind)?, kind)))
                .min_by(|(a, _), (b, _)| {
                    a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2))
                });
            let Some((_, kind)) = best else { break };
            // Others of its class follow while that helps in the same way.
            while used[kind.class as usize] < classes.size(kind.class)
                && (overdraw(left) > 0.0) == (over > 0.0)
                && rank(left, overdraw(left), priced(left), kind).is_some()
            {
                let member = used[kind.class as usize];
                made.push(classes.step(*kind, member as usize, &losses.moves));
                used[kind.class as usize] += 1;
                left = after(left, kind);
                lost += kind.loss;
                looks += 1;
            }
        }
        let shortfall = lost + priced(left);
        if overdraw(left) == 0.0 && shortfall < self.shortfall {
            self.replace(losses, made.into_iter(), shortfall);
        }
        looks
    }
}
