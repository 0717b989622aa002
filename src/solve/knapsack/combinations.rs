//! All combinations of moves that lose no more than so much together.

use super::classes::Kind;
use super::meter::Meter;

/// Some moves together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Combination {
    pub(super) loss: f64,
    pub(super) takes: [i64; 2],
    /// The combination with one move less, and that move.
    parent: u32,
    kind: u32,
}

/// A list of combinations; the first is to move nothing.
#[derive(Default)]
pub(super) struct Combinations {
    kinds: Vec<Kind>,
    list: Vec<Combination>,
    /// How often each class was used on the way to where the search is.
    used: Vec<u32>,
    path: Vec<(u32, u32)>,
}

/// More are not kept in memory.
const MOST: usize = 1 << 21;

impl Combinations {
    /// Begins anew: moves of these kinds.
    pub(super) fn begin(&mut self, classes: usize) {
        self.kinds.clear();
        self.used.clear();
        self.used.resize(classes, 0);
    }

    pub(super) fn offer(&mut self, kinds: impl Iterator<Item = Kind>) {
        self.kinds.extend(kinds);
    }

    pub(super) fn list(&self) -> &[Combination] {
        &self.list
    }

    /// Lists every combination that loses at most `most`, where a class has so many entries, each
    /// moving once at most. Returns whether there was enough effort and room.
    pub(super) fn fill(
        &mut self,
        most: f64,
        size: impl Fn(u32) -> u32,
        meter: &mut Meter<'_, '_>,
    ) -> bool {
        self.kinds.retain(|kind| kind.loss <= most);
        self.kinds.sort_unstable_by(|a, b| {
            a.loss.total_cmp(&b.loss).then(a.class.cmp(&b.class)).then(a.place.cmp(&b.place))
        });
        self.used.fill(0);
        self.list.clear();
        self.list.push(Combination { loss: 0.0, takes: [0; 2], parent: 0, kind: 0 });
        // Kinds are sorted by loss, and a combination grows by the kind it ends with or later
        // ones: so each comes once, and the first that loses too much ends its row.
        self.path.clear();
        self.path.push((0, 0));
        while let Some((at, next)) = self.path.last_mut() {
            let here = self.list[*at as usize];
            let kind = self.kinds.get(*next as usize).filter(|kind| here.loss + kind.loss <= most);
            let Some(kind) = kind else {
                self.path.pop();
                if !self.path.is_empty() {
                    self.used[self.kinds[here.kind as usize].class as usize] -= 1;
                }
                continue;
            };
            let (parent, place) = (*at, *next);
            *next += 1;
            let used = &mut self.used[kind.class as usize];
            if *used == size(kind.class) {
                continue;
            }
            *used += 1;
            self.path.push((self.list.len() as u32, place));
            self.list.push(Combination {
                loss: here.loss + kind.loss,
                takes: [here.takes[0] + kind.takes[0], here.takes[1] + kind.takes[1]],
                parent,
                kind: place,
            });
            if !meter.spend(1) || self.list.len() > MOST {
                return false;
            }
        }
        true
    }

    /// The moves of a combination.
    pub(super) fn moves(&self, mut at: usize) -> impl Iterator<Item = Kind> + '_ {
        std::iter::from_fn(move || {
            (at != 0).then(|| {
                let combination = self.list[at];
                at = combination.parent as usize;
                self.kinds[combination.kind as usize]
            })
        })
    }
}
