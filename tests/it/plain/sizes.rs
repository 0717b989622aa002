//! Share with sizes, plainly.

use super::{Plain, Stay};

impl Plain<'_> {
    /// The ways that a job looks at.
    fn looked_at(&self, job: usize, fair: bool) -> Vec<usize> {
        let ways = &self.jobs[job].ways;
        let least = ways[self.thriftiest(job)].milliwatts;
        let most = if fair { self.fair_share(job).max(least) } else { u64::MAX };
        (0..ways.len()).filter(|way| ways[*way].milliwatts <= most).collect()
    }

    /// What a way costs that begins then, in milliseconds times nodes times milliwatts of the machine.
    fn price(&self, job: usize, way: usize, from: u64) -> u128 {
        let way = &self.jobs[job].ways[way];
        let (nodes, power) = (u128::from(self.machine.nodes), u128::from(self.limit_at(self.now)));
        let by_nodes = u128::from(way.nodes) * power;
        let by_power = u128::from(way.milliwatts) * nodes;
        let waiting = self.waiting.len() as u128;
        u128::from(from - self.now + way.believed_ms) * nodes * power
            + u128::from(way.believed_ms) * waiting * by_nodes.max(by_power)
    }

    /// The way at which a job starts now, if it does: none that it could wait for is cheaper.
    fn worth_starting(&self, job: usize, fair: bool, promise: Option<Stay>) -> Option<usize> {
        let running = self.running_stays();
        let mut others = running.clone();
        others.extend(promise);
        let (nodes, milliwatts) = self.free();
        let ways = &self.jobs[job].ways;
        let looked_at = self.looked_at(job, fair);
        let may_start = |way: &&usize| {
            ways[**way].nodes <= nodes
                && ways[**way].milliwatts <= milliwatts
                && self.fits(&self.stay(job, **way, self.now), &others)
        };
        let key = |way: &&usize| {
            (self.price(job, **way, self.now), ways[**way].milliwatts, ways[**way].nodes)
        };
        let now = *looked_at.iter().filter(may_start).min_by_key(key)?;
        let is_cheaper_later = looked_at.iter().any(|way| {
            let later = self.earliest(job, *way, &running).filter(|stay| stay.from > self.now);
            later.is_some_and(|stay| {
                self.price(job, *way, stay.from) < self.price(job, now, self.now)
            })
        });
        (!is_cheaper_later).then_some(now)
    }

    pub(super) fn sizes(&mut self, fair: bool) {
        while let Some(&head) = self.waiting.first() {
            let Some(way) = self.worth_starting(head, fair, None) else { break };
            self.start(head, way);
        }
        let Some(&head) = self.waiting.first() else { return };
        let running = self.running_stays();
        let stays = self.looked_at(head, fair).into_iter().filter_map(|way| {
            let stay = self.earliest(head, way, &running)?;
            Some((self.price(head, way, stay.from), stay))
        });
        let promise = stays
            .min_by_key(|(price, stay)| (*price, stay.from, stay.milliwatts, stay.nodes))
            .map(|(_, stay)| stay);
        for job in self.waiting.clone().into_iter().skip(1) {
            if let Some(way) = self.worth_starting(job, fair, promise) {
                self.start(job, way);
            }
        }
    }
}
