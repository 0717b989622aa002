//! All that a job may be given, with what is believed of each.

use crate::belief::{Choices, Holds};
use crate::model::Stretch;
use crate::units::Watts;
use crate::world::{Ask, Conditions, Law, Pace};

/// One way to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// On so many nodes.
    pub nodes: u32,
    /// What each of them may add to what it draws when it is idle.
    pub cap: Watts,
    /// How long it is believed to take.
    pub pace: Pace,
    /// What each of its nodes is believed to add to what is drawn.
    pub node_power: Watts,
    /// Whether this is what its user asks for.
    pub is_as_asked: bool,
}

impl Entry {
    /// What all of its nodes add.
    pub fn power(&self) -> Watts {
        self.node_power.checked_mul(self.nodes).unwrap_or(Watts::LARGEST).min(Watts::LARGEST)
    }

    /// How many times as long as it was asked for it takes at least; faster counts as once.
    pub(super) fn stretch(&self) -> Stretch {
        match self.pace {
            Pace::Times(factor) => Stretch::times(factor.as_f64()),
            Pace::Fixed(_) => Stretch::NONE,
        }
    }
}

/// All ways to run jobs that ask for the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// By the number of nodes, and for each from the highest to the lowest cap.
    entries: Vec<Entry>,
    nominal: usize,
    /// For each number of nodes: the entries on at most so many that no other beats, by rising power and
    /// falling time.
    fronts: Vec<(u32, Vec<usize>)>,
}

impl Sheet {
    /// What a law says of jobs that ask for this, on these numbers of nodes under these caps, both
    /// ascending.
    pub(super) fn new(
        law: &dyn Law,
        ask: Ask,
        counts: &[u32],
        levels: &[Watts],
        choices: &Choices,
        holds: Holds,
    ) -> Self {
        let highest = choices.node.highest;
        let entry = |nodes: u32, level: Watts| {
            let share = level.as_f64() / highest.as_f64();
            let at = Conditions { nodes, share };
            let is_as_asked = nodes == ask.nodes && level == highest;
            let pace = match is_as_asked {
                // By definition, whatever rounding makes of the law.
                true => match law.pace(ask, at) {
                    Some(Pace::Fixed(time)) => Pace::Fixed(time),
                    _ => Pace::AS_ASKED,
                },
                false => law.pace(ask, at)?,
            };
            let drawn = match holds {
                Holds::WholeCaps => level,
                Holds::Draw => {
                    let watts = law.draw(ask, at).min(share) * highest.as_f64();
                    Watts::from_f64_rounded_up(watts).map_or(level, |watts| watts.min(level))
                }
            };
            let node_power = choices.node.added(drawn);
            let cap = choices.node.added(level);
            Some(Entry { nodes, cap, pace, node_power, is_as_asked })
        };
        let all = counts.iter().flat_map(|nodes| levels.iter().rev().map(|level| (*nodes, *level)));
        let mut entries: Vec<Entry> =
            all.filter_map(|(nodes, level)| entry(nodes, level)).collect();
        if entries.is_empty() {
            // A law that says nothing of what was asked for: the job is taken at its word.
            let (nodes, cap) = (ask.nodes, choices.node.added(highest));
            let node_power = cap;
            entries.push(Entry { nodes, cap, pace: Pace::AS_ASKED, node_power, is_as_asked: true });
        }
        let nominal = nominal(&entries, ask.nodes);
        let fronts = fronts(&entries);
        Sheet { entries, nominal, fronts }
    }

    /// All ways.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The way that is meant by the request: the nodes asked for, or the next larger number there is,
    /// under the highest cap.
    pub fn nominal(&self) -> usize {
        self.nominal
    }

    pub(super) fn fewest(&self) -> u32 {
        self.entries[0].nodes
    }

    /// The fastest on at most so many nodes within so much power; of those that are equally fast the
    /// thriftiest.
    pub(super) fn fastest(&self, nodes: u32, power: Watts) -> Option<usize> {
        let last = self.fronts.partition_point(|(count, _)| *count <= nodes).checked_sub(1)?;
        let front = &self.fronts[last].1;
        let within = front.partition_point(|place| self.entries[*place].power() <= power);
        within.checked_sub(1).map(|place| front[place])
    }

    /// The fastest of all.
    pub(super) fn quickest(&self) -> usize {
        self.fronts.last().and_then(|(_, front)| front.last()).copied().unwrap_or(self.nominal)
    }

    /// The one that draws least.
    pub(super) fn thriftiest(&self) -> usize {
        self.fronts.last().and_then(|(_, front)| front.first()).copied().unwrap_or(self.nominal)
    }

    /// Without a cap on the nodes it asks for, or on as many as can be fed so.
    pub(super) fn unthrottled(&self, power: Watts) -> Option<usize> {
        let highest = self.entries[self.nominal].cap;
        let asked = self.entries[..=self.nominal].iter().enumerate().rev();
        let fed = |(_, entry): &(usize, &Entry)| entry.cap == highest && entry.power() <= power;
        asked.into_iter().find(fed).map(|(place, _)| place)
    }

    /// The way on so many nodes under this cap.
    pub(super) fn find(&self, nodes: u32, cap: Watts) -> Option<usize> {
        let key = |entry: &Entry| (entry.nodes, std::cmp::Reverse(entry.cap));
        self.entries.binary_search_by_key(&(nodes, std::cmp::Reverse(cap)), key).ok()
    }
}

fn nominal(entries: &[Entry], asked: u32) -> usize {
    // The first of each number of nodes has the highest cap.
    let enough = entries.partition_point(|entry| entry.nodes < asked);
    match entries.get(enough) {
        Some(_) => enough,
        None => {
            let largest = entries[entries.len() - 1].nodes;
            entries.partition_point(|entry| entry.nodes < largest)
        }
    }
}

fn fronts(entries: &[Entry]) -> Vec<(u32, Vec<usize>)> {
    let mut fronts: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut best: Vec<usize> = Vec::new();
    let mut place = 0;
    for group in entries.chunk_by(|one, other| one.nodes == other.nodes) {
        best.extend(place..place + group.len());
        place += group.len();
        // Of equals the one on fewer nodes stays, which comes first.
        best.sort_by_key(|place| (entries[*place].power(), entries[*place].pace, *place));
        let mut fastest: Option<Pace> = None;
        best.retain(|place| {
            let pace = entries[*place].pace;
            let is_better = fastest.is_none_or(|known| pace < known);
            fastest = if is_better { Some(pace) } else { fastest };
            is_better
        });
        fronts.push((group[0].nodes, best.clone()));
    }
    fronts
}
