//! PB-guided, plainly.

use super::{Guide, Plain, PlainJob, Stay, Ticks};

impl Plain<'_> {
    /// The slowdown of a job that starts at a time, if it takes all the time it is believed to
    /// take; set against its nominal time.
    fn predicted_slowdown(&self, guide: &Guide, job: usize, way: usize, from: Ticks) -> f64 {
        let PlainJob { submit_ms, ref ways, .. } = self.jobs[job];
        let there = from - submit_ms + ways[way].time_ms;
        let nominal = ways[0].time_ms.max(guide.bsld_threshold_ms);
        (there as f64 / nominal as f64).max(1.0)
    }

    /// What the predicted slowdown has to stay below. What is drawn now counts, and the limit of
    /// now, also for a start in the future.
    fn slowdown_threshold(&self, guide: &Guide, job: usize, way: usize) -> f64 {
        let power = u128::from(self.drawn() + self.jobs[job].ways[way].milliwatts) * 1_000_000;
        let limit = u128::from(self.limit_at(self.now));
        if power < u128::from(guide.lower_millionths) * limit {
            0.0
        } else if power < u128::from(guide.upper_millionths) * limit {
            guide.bsld_lower
        } else {
            guide.bsld_upper
        }
    }

    /// The slowest way at which a job may start at a time beside others. The fastest possible way
    /// only has to fit; a slower one must not slow the job down too much.
    fn slowest_way(
        &self,
        guide: &Guide,
        job: usize,
        from: Ticks,
        others: &[Stay],
    ) -> Option<usize> {
        let fastest = self.fastest_possible(job)?;
        (fastest..self.jobs[job].ways.len()).rev().find(|&way| {
            let slowdown = self.predicted_slowdown(guide, job, way, from);
            let allowed = way == fastest || slowdown < self.slowdown_threshold(guide, job, way);
            allowed && self.fits(&self.stay(job, way, from), others)
        })
    }

    pub(super) fn pb_guided(&mut self, guide: &Guide) {
        let mut promise = None;
        while let Some(&head) = self.waiting.first() {
            let running = self.running_stays();
            let found = self.candidates(&running).into_iter().find_map(|from| {
                self.slowest_way(guide, head, from, &running).map(|way| (from, way))
            });
            match found {
                Some((from, way)) if from == self.now && self.is_there(head, way) => {
                    self.start(head, way);
                }
                _ => {
                    promise = found.map(|(from, way)| self.stay(head, way, from));
                    break;
                }
            }
        }
        for job in self.waiting.clone().into_iter().skip(1) {
            let mut others = self.running_stays();
            others.extend(promise);
            let way = self.slowest_way(guide, job, self.now, &others);
            // The ways left are faster and draw more: what is not there for this one is not
            // there for them.
            if let Some(way) = way.filter(|way| self.is_there(job, *way)) {
                self.start(job, way);
            }
        }
    }
}
