//! Slurm's main loop and backfill, second by second, with sets of nodes and no clock but the second hand.
//!
//! Nothing is left out because nothing has changed: whatever is due is done. All times are whole seconds, all power milliwatts.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{Amounts, Asked, PlainKind, PlainPartition};

/// Settings, by the keys of Slurm; times in seconds, and 0 for no limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRules {
    pub(crate) backfill: bool,
    pub(crate) defer: bool,
    pub(crate) epilog: bool,
    pub(crate) sched_interval: u64,
    pub(crate) batch_sched_delay: u64,
    pub(crate) default_queue_depth: usize,
    pub(crate) partition_job_depth: usize,
    pub(crate) sched_max_job_start: usize,
    pub(crate) bf_interval: u64,
    pub(crate) bf_window: u64,
    pub(crate) bf_resolution: u64,
    pub(crate) bf_max_job_test: usize,
    pub(crate) bf_max_job_start: usize,
    pub(crate) bf_max_job_part: usize,
    pub(crate) bf_job_part_count_reserve: usize,
    pub(crate) bf_node_space_size: usize,
    pub(crate) bf_min_age_reserve: u64,
    pub(crate) kill_wait: u64,
    pub(crate) bf_busy_nodes: bool,
    pub(crate) pack_serial_at_end: bool,
    pub(crate) lln: bool,
}

pub(crate) type Nodes = BTreeSet<usize>;

/// Nodes that are kept free from a time to another.
pub(crate) type Reserved = (u64, u64, Nodes);

/// A job on the kind of nodes that it can be on.
struct Job {
    submit: u64,
    run: u64,
    limit: u64,
    partition: usize,
    count: usize,
    each: Amounts,
    places: Nodes,
    is_alone: bool,
    power: u64,
}

struct Running {
    job: usize,
    nodes: Nodes,
    since: u64,
}

/// A stretch of time, and the nodes that are promised to nobody in it.
#[derive(Clone, Debug)]
struct Slot {
    begin: u64,
    end: u64,
    nodes: Nodes,
}

/// Power that is taken from a time to another.
type Taken = Vec<(u64, u64, u64)>;

struct Site<'a> {
    rules: PlainRules,
    sizes: Vec<Amounts>,
    partitions: Vec<Nodes>,
    reserved: &'a [Reserved],
    jobs: &'a [Option<Job>],
    for_jobs: u64,
    waiting: Vec<usize>,
    running: Vec<Running>,
}

/// When each job starts; nothing for those that no node can hold, or that are never fed.
pub(crate) fn starts(
    rules: PlainRules,
    kinds: &[PlainKind],
    partitions: &[PlainPartition],
    asked: &[Asked],
    for_jobs: u64,
    reserved: &[Reserved],
) -> Vec<Option<u64>> {
    let first = |kind: usize| kinds[..kind].iter().map(|kind| kind.nodes).sum::<usize>();
    let nodes_of = |kind: usize| first(kind)..first(kind) + kinds[kind].nodes;
    let jobs = asked.iter().map(|job| {
        let partition = &partitions[job.partition];
        let placed = partition.kinds.iter().find_map(|&kind| {
            let size = kinds[kind].size;
            let least = job.processors.div_ceil(size[0]);
            let count = if job.nodes == 0 { least } else { job.nodes.clamp(least, job.processors) };
            let memory = u32::try_from(job.memory.div_ceil(u64::from(count))).unwrap();
            let each = [job.processors.div_ceil(count), memory, job.gpus.div_ceil(count)];
            let fits =
                (0..3).all(|what| each[what] <= size[what]) && count as usize <= kinds[kind].nodes;
            let is_whole = !partition.shared || each[0] == size[0];
            let each = if is_whole { size } else { each };
            fits.then_some((kind, count as usize, each))
        });
        let (kind, count, each) = placed?;
        let power = count as u64 * u64::from(each[0]) * kinds[kind].each;
        (power <= for_jobs).then(|| Job {
            submit: job.submit,
            run: job.run,
            limit: job.limit,
            partition: job.partition,
            count,
            each,
            places: nodes_of(kind).collect(),
            is_alone: !partition.shared,
            power,
        })
    });
    let jobs: Vec<Option<Job>> = jobs.collect();
    let nodes = |partition: &PlainPartition| -> Nodes {
        partition.kinds.iter().flat_map(|&kind| nodes_of(kind)).collect()
    };
    let mut site = Site {
        rules,
        sizes: kinds.iter().flat_map(|kind| vec![kind.size; kind.nodes]).collect(),
        partitions: partitions.iter().map(nodes).collect(),
        reserved,
        jobs: &jobs,
        for_jobs,
        waiting: Vec::new(),
        running: Vec::new(),
    };
    let mut starts = vec![None; jobs.len()];
    let mut arrivals = (0..jobs.len()).filter(|job| jobs[*job].is_some()).peekable();
    let Some(mut now) = arrivals.peek().map(|job| site.job(*job).submit) else { return starts };
    let (mut whole, mut batch, mut backfill, mut update) = (now, now, now, now);
    let mut is_wanted = false;
    while arrivals.peek().is_some() || !site.waiting.is_empty() || !site.running.is_empty() {
        let before = site.running.len();
        site.running
            .retain(|running| running.since + jobs[running.job].as_ref().unwrap().run > now);
        let has_ended = site.running.len() < before;
        let at_ends = rules.epilog && !rules.defer;
        let mut has_come = has_ended && !at_ends;
        while let Some(job) =
            arrivals.next_if(|job| site.jobs[*job].as_ref().unwrap().submit == now)
        {
            site.waiting.push(job);
            has_come = true;
        }
        is_wanted |= has_come;
        if has_come || has_ended {
            update = now;
        }
        let is_whole = now >= whole + rules.sched_interval;
        let is_due = is_whole || (is_wanted && now >= batch + rules.batch_sched_delay);
        if is_due {
            (batch, is_wanted) = (now, false);
        }
        if is_whole {
            whole = now;
        }
        if is_due || (has_ended && at_ends) {
            let (started, passes_over) = site.main_loop(now, is_whole);
            started.iter().for_each(|job| starts[*job] = Some(now));
            if passes_over || !started.is_empty() {
                update = now;
            }
        }
        if rules.backfill && update >= backfill && now >= backfill + rules.bf_interval {
            backfill = now;
            let started = site.backfill(now);
            started.iter().for_each(|job| starts[*job] = Some(now));
            if !started.is_empty() {
                update = now;
            }
        }
        now += 1;
    }
    starts
}

fn minutes(limit: u64) -> u64 {
    limit.div_ceil(60) * 60
}

impl Site<'_> {
    fn job(&self, job: usize) -> &Job {
        self.jobs[job].as_ref().unwrap()
    }

    fn start(&mut self, now: u64, job: usize, nodes: Nodes) {
        self.waiting.retain(|other| *other != job);
        self.running.push(Running { job, nodes, since: now });
    }

    /// What is left of each node, without some that run.
    fn left(&self, gone: &BTreeSet<usize>) -> Vec<Amounts> {
        let mut left = self.sizes.clone();
        for running in self.running.iter().filter(|running| !gone.contains(&running.job)) {
            for node in &running.nodes {
                (0..3).for_each(|what| left[*node][what] -= self.job(running.job).each[what]);
            }
        }
        left
    }

    /// Power that those who run take until their limits.
    fn taken(&self) -> Taken {
        let of = |running: &Running| {
            let job = self.job(running.job);
            (running.since, running.since + job.limit, job.power)
        };
        self.running.iter().map(of).collect()
    }

    /// The first time from which there is power for a job.
    fn fed(&self, taken: &Taken, from: u64, job: &Job) -> u64 {
        let held = |at: u64| -> u64 {
            taken.iter().filter(|some| some.0 <= at && at < some.1).map(|some| some.2).sum()
        };
        let mut times: Vec<u64> =
            taken.iter().map(|some| some.1).filter(|end| *end > from).collect();
        times.push(from);
        times.sort_unstable();
        let is_fed = |at: &u64| {
            let begins = taken.iter().map(|some| some.0);
            let mut changes =
                begins.filter(|begin| begin > at && *begin < at + job.limit).chain([*at]);
            changes.all(|change| held(change) + job.power <= self.for_jobs)
        };
        times.into_iter().find(is_fed).unwrap()
    }

    /// The nodes for a job of these, by the rules of choice; nothing if there are too few with enough left.
    fn choose(&self, job: &Job, nodes: &Nodes, left: &[Amounts], busy: bool) -> Option<Nodes> {
        let is_idle = |node: usize| left[node] == self.sizes[node];
        let good: Nodes = nodes
            .iter()
            .copied()
            .filter(|node| job.places.contains(node))
            .filter(|node| (0..3).all(|what| left[*node][what] >= job.each[what]))
            .filter(|node| !job.is_alone || is_idle(*node))
            .collect();
        if good.len() < job.count {
            return None;
        }
        let free = |node: usize| i64::from(left[node][0]);
        let first = |mut order: Vec<usize>, key: &dyn Fn(usize) -> i64| {
            order.sort_by_key(|node| key(*node));
            Some(order.into_iter().take(job.count).collect())
        };
        let all: Vec<usize> = good.iter().copied().collect();
        if busy {
            let now = self.left(&BTreeSet::new());
            return first(all, &|node| i64::from(now[node] == self.sizes[node]));
        }
        if self.rules.lln {
            // The nodes that a job may have are alike.
            return first(all, &|node| -free(node));
        }
        if self.rules.pack_serial_at_end && job.count == 1 && job.each[0] == 1 && !job.is_alone {
            return first(all, &|node| -(node as i64));
        }
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for node in all {
            match rows.last_mut().filter(|row| row[row.len() - 1] + 1 == node) {
                Some(row) => row.push(node),
                None => rows.push(vec![node]),
            }
        }
        let mut chosen = Nodes::new();
        let mut processors = job.count as i64 * i64::from(job.each[0]);
        while chosen.len() < job.count {
            let missing = job.count - chosen.len();
            let sum = |row: &Vec<usize>| row.iter().map(|node| free(*node)).sum::<i64>();
            let enough = |row: &Vec<usize>| sum(row) >= processors && row.len() >= missing;
            let mut best: Option<Vec<usize>> = None;
            for row in &rows {
                let is_better =
                    best.as_ref().is_none_or(|best| match (enough(row), enough(best)) {
                        (true, false) => true,
                        (true, true) => sum(row) < sum(best),
                        (false, _) => sum(row) > sum(best),
                    });
                if is_better {
                    best = Some(row.clone());
                }
            }
            let best = best?;
            rows.retain(|row| *row != best);
            let mut order = best.clone();
            if missing == 1 {
                // The tightest node that does alone.
                let does = best.iter().filter(|node| free(**node) >= processors);
                if let Some(node) = does.min_by_key(|node| free(**node)) {
                    order = vec![*node];
                }
            }
            for node in order {
                let missing = job.count - chosen.len();
                if missing > 1 || (missing == 1 && free(node) >= processors) {
                    let has = free(node);
                    processors -=
                        if job.is_alone { has } else { has.min(processors - (missing as i64 - 1)) };
                    chosen.insert(node);
                }
            }
        }
        Some(chosen)
    }

    /// Those of some nodes that nobody has reserved for some of a time, and when the first of these reservations ends.
    fn unreserved(&self, nodes: &Nodes, from: u64, limit: u64) -> (Nodes, Option<u64>) {
        let meets = |one: &&Reserved| one.0 < from + limit && from < one.1;
        let kept: Vec<&Reserved> = self.reserved.iter().filter(meets).collect();
        let free = nodes.iter().filter(|node| !kept.iter().any(|one| one.2.contains(node)));
        (free.copied().collect(), kept.iter().map(|one| one.1).min())
    }

    /// Who starts, and whether somebody was passed over.
    fn main_loop(&mut self, now: u64, is_whole: bool) -> (Vec<usize>, bool) {
        let rules = self.rules;
        let (mut started, mut passes_over, mut depth) = (Vec::new(), false, 0);
        let mut open: Nodes = (0..self.sizes.len()).collect();
        let (mut blocked, mut tested) = (BTreeSet::new(), BTreeMap::new());
        for job in self.waiting.clone() {
            let of = self.job(job);
            let partition = of.partition;
            if rules.sched_max_job_start > 0 && started.len() >= rules.sched_max_job_start {
                break;
            }
            *tested.entry(partition).or_insert(0) += 1;
            if rules.partition_job_depth > 0 && tested[&partition] > rules.partition_job_depth {
                continue;
            }
            if !is_whole && depth > rules.default_queue_depth {
                break;
            }
            depth += 1;
            if blocked.contains(&partition) {
                passes_over = true;
                continue;
            }
            if open.intersection(&self.partitions[partition]).count() < of.count {
                passes_over = true;
            }
            let left = self.left(&BTreeSet::new());
            let usable = self.unreserved(&open, now, minutes(of.limit)).0;
            if let Some(nodes) = self.choose(of, &usable, &left, false) {
                if self.fed(&self.taken(), now, of) > now {
                    break;
                }
                self.start(now, job, nodes);
                started.push(job);
            } else if now >= of.submit + rules.bf_min_age_reserve {
                blocked.insert(partition);
                open = &open - &self.partitions[partition];
            }
        }
        (started, passes_over)
    }

    /// When and where a job would start, if nobody else did.
    fn ahead(&self, now: u64, job: &Job, nodes: &Nodes, now_only: bool) -> Option<(u64, Nodes)> {
        let none = BTreeSet::new();
        if let Some(chosen) = self.choose(job, nodes, &self.left(&none), false) {
            return Some((now, chosen));
        }
        let end = |running: &Running| running.since + minutes(self.job(running.job).limit);
        let mut ends: Vec<(u64, usize, &Nodes)> =
            self.running.iter().map(|some| (end(some), some.job, &some.nodes)).collect();
        ends.sort();
        if now_only {
            return None;
        }
        let (mut gone, mut step, mut place) = (none, 30, 0);
        let mut from = None;
        loop {
            let mut last = None;
            while place < ends.len() {
                let (end, other, of) = ends[place];
                place += 1;
                if of.is_disjoint(nodes) {
                    continue;
                }
                let from = *from.get_or_insert(end / 30 * 30 + 30);
                gone.insert(other);
                last = Some(end);
                if ends.get(place).is_some_and(|next| next.0 > from + step) {
                    break;
                }
            }
            let last = last?;
            step *= 2;
            while ends.get(place).is_some_and(|next| next.0 > from.unwrap() + step) {
                step *= 2;
            }
            if let Some(chosen) =
                self.choose(job, nodes, &self.left(&gone), self.rules.bf_busy_nodes)
            {
                let at =
                    if last <= now { (last + self.rules.kill_wait).max(now + 1) } else { last };
                return Some((at, chosen));
            }
            if place >= ends.len() {
                return None;
            }
        }
    }

    /// Who starts in a backfill pass.
    fn backfill(&mut self, now: u64) -> Vec<usize> {
        let rules = self.rules;
        let floor = |at: u64| at / rules.bf_resolution * rules.bf_resolution;
        let everything: Nodes = (0..self.sizes.len()).collect();
        let mut map =
            vec![Slot { begin: floor(now), end: floor(now + rules.bf_window), nodes: everything }];
        let mut taken = self.taken();
        let (mut started, mut tried) = (Vec::new(), 0);
        let (mut tested, mut promised) = (BTreeMap::new(), BTreeMap::new());
        let room = match rules.bf_node_space_size {
            0 => rules.bf_max_job_test,
            size => size,
        };
        for job in self.waiting.clone() {
            if tried >= rules.bf_max_job_test {
                break;
            }
            let of = self.job(job);
            let promises = *promised.entry(of.partition).or_insert(0);
            let may_promise = now >= of.submit + rules.bf_min_age_reserve
                && (rules.bf_job_part_count_reserve == 0
                    || promises < rules.bf_job_part_count_reserve);
            let tests = tested.entry(of.partition).or_insert(0);
            if rules.bf_max_job_part > 0 && *tests >= rules.bf_max_job_part {
                continue;
            }
            *tests += 1;
            let limit = minutes(of.limit);
            let mut from = now;
            let mut is_tried = false;
            let fate = loop {
                // The nodes that are promised to nobody while the job would run, and when there may be others.
                let (all, reserved_until) = self.unreserved(&of.places, from, limit);
                let (mut usable, mut later) = (all.clone(), None);
                for (place, slot) in map.iter().enumerate() {
                    if slot.end > from
                        && later.is_none()
                        && let Some(next) = map.get(place + 1)
                    {
                        let here: Nodes = usable.intersection(&slot.nodes).copied().collect();
                        let there: Nodes = all.intersection(&next.nodes).copied().collect();
                        if !there.is_subset(&here) {
                            later = Some(slot.end);
                        }
                    }
                    if slot.end > from {
                        if slot.begin > from + limit {
                            break;
                        }
                        usable = usable.intersection(&slot.nodes).copied().collect();
                    }
                }
                // Slurm looks a second after the end of a reservation.
                let later = [later, reserved_until.map(|end| end + 1)].into_iter().flatten().min();
                let again = later.filter(|_| may_promise);
                let found = if usable.len() < of.count {
                    None
                } else {
                    is_tried = true;
                    self.ahead(now, of, &usable, !may_promise)
                };
                let Some((at, nodes)) = found else {
                    match again {
                        Some(later) => from = later,
                        None => break None,
                    }
                    continue;
                };
                let at = self.fed(&taken, at.max(from), of);
                if at <= now {
                    break Some((at, nodes));
                }
                if !may_promise {
                    break None;
                }
                if let Some(later) = later.filter(|later| at > *later) {
                    from = later;
                    continue;
                }
                if at > now + rules.bf_window {
                    break None;
                }
                let meets = |slot: &&Slot| slot.end > floor(at) && slot.begin < floor(at + limit);
                if map.iter().filter(meets).any(|slot| !nodes.is_subset(&slot.nodes)) {
                    from = at;
                    continue;
                }
                break Some((at, nodes));
            };
            tried += usize::from(is_tried);
            let Some((at, nodes)) = fate else { continue };
            taken.push((at, at + of.limit, of.power));
            if at <= now {
                if of.is_alone {
                    promise(&mut map, &nodes, 0, floor(now + limit), rules.bf_resolution);
                }
                self.start(now, job, nodes);
                started.push(job);
                if rules.bf_max_job_start > 0 && started.len() >= rules.bf_max_job_start {
                    break;
                }
                continue;
            }
            *promised.get_mut(&of.partition).unwrap() += 1;
            if map.len() >= room {
                break;
            }
            promise(&mut map, &nodes, floor(at), floor(at + limit), rules.bf_resolution);
        }
        started
    }
}

/// Takes nodes out of the map between two times.
fn promise(map: &mut Vec<Slot>, nodes: &Nodes, begin: u64, end: u64, resolution: u64) {
    let begin = begin.max(map[0].begin);
    let end = end.max(begin + resolution);
    if map[map.len() - 1].end < begin {
        return;
    }
    // Slots that end at these times.
    let first = map.iter().position(|slot| slot.end >= begin).unwrap();
    let cut = |map: &mut Vec<Slot>, place: usize, at: u64| {
        let later = Slot { begin: at, ..map[place].clone() };
        map[place].end = at;
        map.insert(place + 1, later);
    };
    if map[first].end > begin {
        cut(map, first, begin);
    }
    let inside = map[first + 1..].iter().position(|slot| slot.end > end);
    if let Some(place) = inside.map(|place| place + first + 1)
        && map[place].begin < end
    {
        cut(map, place, end);
    }
    for slot in map[first + 1..].iter_mut().filter(|slot| slot.begin < end) {
        slot.nodes = &slot.nodes - nodes;
    }
    // One pair of neighbours that are alike becomes one slot: the first from the slot before the promise on, up to the first
    // after it.
    let last = map[first + 1..].iter().position(|slot| slot.end == end);
    let last = last.map_or(map.len() - 1, |place| (place + first + 2).min(map.len() - 1));
    let alike =
        (first.saturating_sub(1)..last).find(|place| map[*place].nodes == map[place + 1].nodes);
    if let Some(place) = alike {
        map[place].end = map[place + 1].end;
        map.remove(place + 1);
    }
}
