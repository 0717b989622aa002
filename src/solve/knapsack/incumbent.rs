//! The best choice known, and a first good one.

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

    /// From the loss-free choice: gives back what is too much at the least loss, then takes what
    /// still fits as long as it helps. The outcome replaces the choice if it is better.
    pub(super) fn improve_greedily(&mut self, instance: &Instance, losses: &Losses) -> u64 {
        const MOST_STEPS: usize = 200;
        let capacity = instance.capacity().map(|amount| amount.max(1.0));
        let overdraw = |left: [i64; 2]| -> f64 {
            [0, 1].iter().map(|&i| (-left[i]).max(0) as f64 / capacity[i]).sum()
        };
        let priced = |left: [i64; 2]| -> f64 {
            losses.prices[0] * left[0] as f64 + losses.prices[1] * left[1] as f64
        };
        let after = |left: [i64; 2], step: &Move| [0, 1].map(|i| left[i] - step.takes[i]);
        let mut left = losses.left;
        let mut lost = 0.0;
        let mut made: Vec<Move> = Vec::new();
        let mut looks = 0;
        for _ in 0..MOST_STEPS {
            let over = overdraw(left);
            let rank = |step: &Move| {
                let then = after(left, step);
                let relief = over - overdraw(then);
                if over > 0.0 {
                    // To fit at last beats everything; else the least loss for the relief.
                    let fits = overdraw(then) == 0.0;
                    let rank = if fits { step.loss + priced(then) } else { step.loss / relief };
                    (relief > 0.0).then_some((!fits, rank))
                } else {
                    let better = step.loss + priced(then) - priced(left);
                    (overdraw(then) == 0.0 && better < 0.0).then_some((false, better))
                }
            };
            let free = losses
                .moves
                .iter()
                .filter(|step| made.iter().all(|other| other.entry != step.entry));
            let best = free
                .filter_map(|step| Some((rank(step)?, step)))
                .min_by(|(a, _), (b, _)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            looks += losses.moves.len() as u64;
            let Some((_, step)) = best else { break };
            left = after(left, step);
            lost += step.loss;
            made.push(*step);
        }
        let shortfall = lost + priced(left);
        if overdraw(left) == 0.0 && shortfall < self.shortfall {
            self.replace(losses, made.into_iter(), shortfall);
        }
        looks
    }
}
