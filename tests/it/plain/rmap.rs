//! RMAP's three policies, plainly.

use super::{Kind, Plain, PlainRmap, Stay};

impl Plain<'_> {
    /// The way that draws least; of several, the one that takes least time.
    pub(super) fn thriftiest(&self, job: usize) -> usize {
        let ways = &self.jobs[job].ways;
        (0..ways.len()).min_by_key(|way| (ways[*way].milliwatts, ways[*way].believed_ms)).unwrap()
    }

    /// The fastest way on at most so many nodes within so much power; of several, the one that
    /// draws least.
    fn fastest_within(&self, job: usize, nodes: u32, milliwatts: u64) -> Option<usize> {
        let ways = &self.jobs[job].ways;
        (0..ways.len())
            .filter(|way| ways[*way].nodes <= nodes && ways[*way].milliwatts <= milliwatts)
            .min_by_key(|way| (ways[*way].believed_ms, ways[*way].milliwatts))
    }

    /// The lowest limit within the time a job asks for.
    fn bound(&self, job: usize) -> u64 {
        let until = self.now + self.jobs[job].requested_ms;
        let steps = self.machine.budget.iter().filter(|step| self.now < step.0 && step.0 < until);
        steps.map(|step| step.1).fold(self.limit_at(self.now), u64::min)
    }

    /// What a job may draw by the nodes it asks for and its weight.
    pub(super) fn fair_share(&self, job: usize) -> u64 {
        let whole = u128::from(self.bound(job));
        let share = whole * u128::from(self.jobs[job].nodes) / u128::from(self.machine.nodes);
        (share * u128::from(self.jobs[job].weight_thousandths) / 1000).min(whole) as u64
    }

    /// The way a job waits for.
    fn wanted(&self, rmap: &PlainRmap, job: usize) -> usize {
        let ways = &self.jobs[job].ways;
        let whole = self.bound(job);
        let wanted = match rmap.kind {
            Kind::Traditional => (0..ways.len())
                .filter(|way| ways[*way].packed && ways[*way].nodes <= self.jobs[job].nodes)
                .filter(|way| ways[*way].milliwatts <= whole)
                .max_by_key(|way| ways[*way].nodes),
            Kind::Naive | Kind::Adaptive { .. } => {
                self.fastest_within(job, self.machine.nodes, self.fair_share(job))
            }
        };
        wanted.unwrap_or_else(|| self.thriftiest(job))
    }

    /// The nodes and the watts that are there now.
    pub(super) fn free(&self) -> (u32, u64) {
        let held: u32 = self.running.iter().map(|job| job.2.nodes).sum();
        let free = self.limit_at(self.now).saturating_sub(self.drawn());
        (self.machine.nodes - held, free)
    }

    /// The way at which a job starts now, if it does.
    fn startable(&self, rmap: &PlainRmap, job: usize, promise: Option<Stay>) -> Option<usize> {
        let mut others = self.running_stays();
        others.extend(promise);
        let (nodes, milliwatts) = self.free();
        let ways = &self.jobs[job].ways;
        let may_start = |way: &usize| {
            ways[*way].nodes <= nodes
                && ways[*way].milliwatts <= milliwatts
                && self.fits(&self.stay(job, *way, self.now), &others)
        };
        let wanted = self.wanted(rmap, job);
        if may_start(&wanted) {
            return Some(wanted);
        }
        let Kind::Adaptive { tolerance_millionths } = rmap.kind else { return None };
        let own = self.jobs[job].tolerance_millionths;
        let tolerance_millionths = own.unwrap_or(tolerance_millionths);
        let is_fast_enough = |way: &usize| {
            tolerance_millionths.is_none_or(|tolerance| {
                u128::from(ways[*way].believed_ms) * 1_000_000
                    <= u128::from(self.jobs[job].requested_ms) * u128::from(1_000_000 + tolerance)
            })
        };
        let share = self.fair_share(job);
        (0..ways.len())
            .filter(|way| ways[*way].milliwatts <= share)
            .filter(may_start)
            .filter(is_fast_enough)
            .min_by_key(|way| (ways[*way].believed_ms, ways[*way].milliwatts))
    }

    pub(super) fn rmap(&mut self, rmap: &PlainRmap) {
        let mut promise = None;
        let mut rest = self.in_order(rmap.order).into_iter();
        for head in rest.by_ref() {
            if let Some(way) = self.startable(rmap, head, None) {
                self.start(head, way);
                continue;
            }
            promise = self.earliest(head, self.wanted(rmap, head), &self.running_stays());
            break;
        }
        for job in rest {
            if let Some(way) = self.startable(rmap, job, promise) {
                self.start(job, way);
            }
        }
    }
}
