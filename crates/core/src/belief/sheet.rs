//! All that a job may be given, with what is believed of each.

use std::cmp::Reverse;

use crate::belief::{Choices, Holds};
use crate::model::{OperatingPoint, Stretch};
use crate::units::{Share, Watts};
use crate::world::{Ask, Conditions, Law, Pace};

/// One way to run a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// On this many nodes.
    pub nodes: u32,
    /// On this many cores of each.
    pub cores: u32,
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
    pub(crate) fn power(&self) -> Watts {
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

/// This many nodes, and cores of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: u32,
    pub(super) cores: u32,
    /// Whether these are all cores that an application can use there.
    pub(super) is_full: bool,
}

/// All ways to run jobs that ask for the same.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sheet {
    /// By the number of nodes, and for each from the most to the fewest cores and from the highest to the lowest
    /// cap.
    entries: Vec<Entry>,
    nominal: usize,
    /// For each number of nodes: the entry with the most cores and the highest cap.
    packed: Vec<usize>,
    /// For each number of nodes: the entries on at most so many that no other beats, by rising power and
    /// falling time.
    fronts: Vec<(u32, Vec<usize>)>,
}

impl Sheet {
    /// What a law says of jobs that ask for this, in these sizes, the fewest nodes and the most cores first, under
    /// these caps, which ascend.
    pub(super) fn new(
        law: &dyn Law,
        ask: Ask,
        sizes: &[Size],
        levels: &[Watts],
        choices: &Choices,
        holds: Holds,
    ) -> Self {
        let highest = choices.node.highest;
        let entry = |size: &Size, level: Watts| {
            let Size { nodes, cores, is_full } = *size;
            let share = level.as_f64() / highest.as_f64();
            let at = Conditions { nodes, cores: Some(cores), share };
            let is_as_asked = nodes == ask.nodes && is_full && level == highest;
            let pace = match is_as_asked {
                // By definition, whatever rounding makes of the law.
                true => match law.pace(ask, at) {
                    Some(Pace::Fixed(time)) => Pace::Fixed(time),
                    _ => Pace::AS_ASKED,
                },
                false => law.pace(ask, at)?,
            };
            let drawn = match holds {
                Holds::WholeCaps | Holds::Node(_) => level,
                Holds::Draw => {
                    let watts = law.draw(ask, at).min(share) * highest.as_f64();
                    Watts::from_f64_rounded_up(watts).map_or(level, |watts| watts.min(level))
                }
            };
            let node_power = match holds {
                Holds::Node(power) => power.saturating_sub(choices.node.idle),
                Holds::WholeCaps | Holds::Draw => choices.node.added(drawn),
            };
            let cap = choices.node.added(level);
            Some(Entry { nodes, cores, cap, pace, node_power, is_as_asked })
        };
        let all =
            sizes.iter().flat_map(|size| levels.iter().rev().map(move |level| (size, *level)));
        let mut entries: Vec<Entry> = all.filter_map(|(size, level)| entry(size, level)).collect();
        if entries.is_empty() {
            // A law that says nothing of what was asked for: the job is taken at its word.
            let (nodes, cap) = (ask.nodes, choices.node.added(highest));
            let (cores, node_power) = (choices.cores, cap);
            let (pace, is_as_asked) = (Pace::AS_ASKED, true);
            entries.push(Entry { nodes, cores, cap, pace, node_power, is_as_asked });
        }
        let nominal = nominal(&entries, ask.nodes);
        let fronts = fronts(&entries);
        let first =
            |place: &usize| *place == 0 || entries[*place - 1].nodes != entries[*place].nodes;
        let packed = (0..entries.len()).filter(first).collect();
        Sheet { nominal, packed, fronts, entries }
    }

    /// The same for jobs of which each node is expected to add so much as they are asked for. Under other caps and
    /// in other sizes it adds as much more or less as the law says, and never more than its cap.
    pub(super) fn drawing(mut self, expected: Watts) -> Self {
        let nominal = self.entries[self.nominal].node_power.milliwatts().max(1);
        let smallest = Watts::from_milliwatts(1);
        for entry in &mut self.entries {
            let by_law = u128::from(entry.node_power.milliwatts());
            let scaled = (by_law * u128::from(expected.milliwatts())).div_ceil(u128::from(nominal));
            let scaled = Watts::from_milliwatts(u64::try_from(scaled).unwrap_or(u64::MAX));
            entry.node_power = scaled.min(entry.cap).max(smallest);
        }
        self.fronts = fronts(&self.entries);
        self
    }

    /// The same for jobs of which each node adds so much on the nodes they ask for, and no more under any cap. On other
    /// numbers of nodes they may add all that caps let them.
    pub(super) fn drawing_at_most(mut self, known: Watts, asked: u32) -> Self {
        let smallest = Watts::from_milliwatts(1);
        for entry in &mut self.entries {
            let most = if entry.nodes == asked { known } else { entry.cap };
            entry.node_power = most.min(entry.cap).max(smallest);
        }
        self.fronts = fronts(&self.entries);
        self
    }

    /// All entries of the sheet, in their order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The way that is meant by the request: the nodes asked for, or the next larger number there is,
    /// under the highest cap.
    pub(crate) fn nominal(&self) -> usize {
        self.nominal
    }

    /// Which part of the power of the nominal way one of its entries takes, at least.
    pub(super) fn part(&self, entry: &Entry) -> Share {
        let nominal = self.entries[self.nominal].power().milliwatts().max(1);
        let millionths = entry.power().milliwatts().checked_mul(1_000_000);
        Share::from_millionths(millionths.map_or(0, |millionths| millionths / nominal))
    }

    pub(super) fn fewest(&self) -> u32 {
        self.entries[0].nodes
    }

    /// The fastest on at most this many nodes within so much power; of those that are equally fast the
    /// thriftiest.
    pub(super) fn fastest(&self, nodes: u32, power: Watts) -> Option<usize> {
        let last = self.fronts.partition_point(|(count, _)| *count <= nodes).checked_sub(1)?;
        let front = &self.fronts[last].1;
        let within = front.partition_point(|place| self.entries[*place].power() <= power);
        within.checked_sub(1).map(|place| front[place])
    }

    /// The entries on at most this many nodes within so much power, in their order.
    pub(super) fn within(&self, nodes: u32, power: Watts) -> impl Iterator<Item = usize> + '_ {
        let places =
            self.entries.iter().enumerate().take_while(move |(_, entry)| entry.nodes <= nodes);
        places.filter(move |(_, entry)| entry.power() <= power).map(|(place, _)| place)
    }

    /// The one that draws least.
    pub(super) fn thriftiest(&self) -> usize {
        self.fronts.last().and_then(|(_, front)| front.first()).copied().unwrap_or(self.nominal)
    }

    /// Without a cap on the nodes it asks for, or on as many as can be fed so.
    pub(super) fn unthrottled(&self, power: Watts) -> Option<usize> {
        let asked = self.packed.iter().rev().filter(|place| **place <= self.nominal);
        asked.copied().find(|place| self.entries[*place].power() <= power)
    }

    /// The way on this many nodes and cores under this cap.
    pub(super) fn find(&self, point: &OperatingPoint) -> Option<usize> {
        let key = |entry: &Entry| (entry.nodes, Reverse(entry.cores), Reverse(entry.cap));
        let wanted = (point.nodes, Reverse(point.cores), Reverse(point.cap));
        self.entries.binary_search_by_key(&wanted, key).ok()
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
