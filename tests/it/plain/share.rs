//! Share, plainly, with its orders.

use super::{Plain, PlainJob, Stay};

/// In which order jobs are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PlainOrder {
    Fcfs,
    /// By cost, which counts half as much after each of these times of waiting, in milliseconds.
    Aged(u64),
    History(u64),
}

/// Keys that are closer than this may be equal in fixed-point numbers.
const CLOSE: f64 = 1.2e-4;

/// A job that ended: what it asked for, and what it would have taken at nominal speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    nodes: u32,
    requested_ms: f64,
    run_ms: f64,
}

impl Plain<'_> {
    /// A job is over: history has one more.
    pub(super) fn remember(&mut self, job: usize) {
        let PlainJob { nodes, requested_ms, ref ways, .. } = self.jobs[job];
        let Some((_, way)) = self.starts[job] else { return };
        let took = ways[way].run_ms.min(ways[way].time_ms);
        // Whole milliseconds.
        let run_ms = (took * ways[0].time_ms / ways[way].time_ms) as f64;
        self.ended.push(Ended { nodes, requested_ms: requested_ms.max(1) as f64, run_ms });
    }

    /// A job arrived: it gets its key.
    pub(super) fn give_key(&mut self, job: usize, order: PlainOrder) {
        let PlainJob { asked, requested_ms, submit_ms, .. } = self.jobs[job];
        let (cost, halving) = match order {
            PlainOrder::Fcfs => (1.0, f64::INFINITY),
            PlainOrder::Aged(halving) => {
                (f64::from(asked).log2().max(1.0) * requested_ms.max(1) as f64, halving as f64)
            }
            PlainOrder::History(halving) => (self.expected_cost(job), halving as f64),
        };
        self.keys[job] = cost.log2() + submit_ms as f64 / halving;
    }

    fn expected_cost(&self, job: usize) -> f64 {
        let PlainJob { nodes, requested_ms, .. } = self.jobs[job];
        let request = requested_ms.max(1) as f64;
        let mut examples: Vec<(f64, f64)> = Vec::new();
        for ended in self.ended.iter().rev().take(48) {
            let weight = if ended.requested_ms != request {
                1.0
            } else if ended.nodes != nodes {
                2.0
            } else {
                4.0
            };
            examples.push((ended.run_ms.min(request), weight));
        }
        // Shares in steps of 2⁻¹⁶, times in whole milliseconds.
        let used = |ended: &Ended| {
            let share = (65536.0 * (ended.run_ms / ended.requested_ms).min(1.0)).floor();
            (request * share / 65536.0).floor()
        };
        let of_all: Vec<f64> = self.ended.iter().rev().take(32).map(used).collect();
        let each = 2.0 / of_all.len() as f64;
        examples.extend(of_all.iter().map(|run| (*run, each)));
        if examples.is_empty() {
            examples.push((request, 1.0));
        }
        let weights: f64 = examples.iter().map(|(_, weight)| weight).sum();
        let mean: f64 =
            examples.iter().map(|(run, weight)| run.max(1.0) * weight).sum::<f64>() / weights;
        let inverse: f64 =
            examples.iter().map(|(run, weight)| weight / run.max(600_000.0)).sum::<f64>() / weights;
        f64::from(nodes).sqrt() * (mean / inverse).sqrt()
    }

    /// The waiting jobs in order. Says so if two of them are too close to call.
    pub(super) fn in_order(&mut self, order: PlainOrder) -> Vec<usize> {
        let mut waiting = self.waiting.clone();
        if order == PlainOrder::Fcfs {
            return waiting;
        }
        let keys = &self.keys;
        waiting.sort_by(|one, other| keys[*one].total_cmp(&keys[*other]).then(one.cmp(other)));
        let same = |one: usize, other: usize| {
            let (one, other) = (&self.jobs[one], &self.jobs[other]);
            matches!(order, PlainOrder::Aged(_))
                && (one.asked, one.requested_ms) == (other.asked, other.requested_ms)
        };
        let is_close = |pair: &[usize]| {
            (keys[pair[0]] - keys[pair[1]]).abs() < CLOSE && !same(pair[0], pair[1])
        };
        self.too_close |= waiting.windows(2).any(is_close);
        waiting
    }

    /// The ways of a job, fastest first, and the place of the slowest that it may have.
    fn settings(&self, job: usize) -> (Vec<usize>, usize) {
        let ways = &self.jobs[job].ways;
        let mut settings: Vec<usize> = (0..ways.len()).collect();
        settings.sort_by_key(|way| (ways[*way].time_ms, ways[*way].milliwatts));
        let last = settings.len() - 1;
        let to_come = self.machine.budget.iter().filter(|step| step.0 > self.now);
        let limit = to_come.map(|step| step.1).fold(self.limit_at(self.now), u64::min);
        let all = self.machine.nodes;
        let feeds_all = |way: &usize| {
            let per_node = ways[*way].milliwatts as f64 / f64::from(ways[*way].nodes);
            per_node * f64::from(all) <= limit as f64 * (1.0 + 1e-12)
        };
        let floor = settings.iter().position(feeds_all).unwrap_or(last);
        (settings, floor)
    }

    /// Whether nobody has had to wait for a week.
    pub(super) fn is_calm(&self) -> bool {
        self.waited.is_none_or(|waited| self.now - waited > 7 * 24 * 3_600_000)
    }

    /// The way at which a job starts now beside others.
    fn shared_way(&self, job: usize, others: &[Stay]) -> Option<usize> {
        let ways = &self.jobs[job].ways;
        let (settings, floor) = self.settings(job);
        if self.is_calm() {
            return settings[..=floor]
                .iter()
                .copied()
                .find(|way| self.can_start(job, *way, others));
        }
        let held: u32 = self.running.iter().map(|job| job.2.nodes).sum();
        let free = self.machine.nodes - held;
        let watts = self.limit_at(self.now).saturating_sub(self.drawn());
        let fair = settings.iter().position(|&way| {
            let among = u128::from(free.max(ways[way].nodes));
            u128::from(ways[way].milliwatts) * among
                <= u128::from(watts + watts / 50) * u128::from(ways[way].nodes)
        });
        let fair = fair.unwrap_or(floor).min(floor);
        let tried = settings[fair..=floor].iter().chain(settings[..fair].iter().rev());
        tried.copied().find(|way| self.can_start(job, *way, others))
    }

    pub(super) fn share(&mut self, order: PlainOrder) {
        let mut promise = None;
        let mut rest = self.in_order(order).into_iter();
        for head in rest.by_ref() {
            let running = self.running_stays();
            if let Some(way) = self.shared_way(head, &running) {
                self.start(head, way);
                continue;
            }
            let (settings, floor) = self.settings(head);
            let stays = settings[..=floor].iter().rev();
            let stays = stays.filter_map(|way| self.earliest(head, *way, &running));
            promise = stays.min_by_key(|stay| stay.until);
            break;
        }
        for job in rest {
            let mut others = self.running_stays();
            others.extend(promise);
            if let Some(way) = self.shared_way(job, &others) {
                self.start(job, way);
            }
        }
    }
}
