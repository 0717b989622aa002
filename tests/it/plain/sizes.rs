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
        // As many are to come as run.
        let jobs = (self.waiting.len() + self.running.len()) as u128;
        u128::from(from - self.now + way.believed_ms) * nodes * power
            + u128::from(way.believed_ms) * jobs * by_nodes.max(by_power)
    }

    /// The way at which a job starts now, if it does: the cheapest; while nobody waits, of those as fast as it asks for.
    fn worth_starting(&self, job: usize, fair: bool, promise: Option<Stay>) -> Option<usize> {
        let mut others = self.running_stays();
        others.extend(promise);
        let (nodes, milliwatts) = self.free();
        let ways = &self.jobs[job].ways;
        let may_start = |way: &usize| {
            ways[*way].nodes <= nodes
                && ways[*way].milliwatts <= milliwatts
                && self.fits(&self.stay(job, *way, self.now), &others)
        };
        // A table may know fewer nodes than are asked for.
        let is_as_asked =
            |way: &usize| ways[*way].packed && ways[*way].nodes <= self.jobs[job].nodes;
        let as_asked = (0..ways.len()).filter(is_as_asked).max_by_key(|way| ways[*way].nodes);
        let as_asked = as_asked.filter(|_| self.is_calm() && !fair);
        let key = |way: &usize| {
            let it = &ways[*way];
            let is_slower = as_asked.is_some_and(|asked| it.believed_ms > ways[asked].believed_ms);
            (is_slower, self.price(job, *way, self.now), it.milliwatts, it.nodes)
        };
        self.looked_at(job, fair).into_iter().filter(may_start).min_by_key(key)
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
