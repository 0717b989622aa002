//! EASY and conservative backfilling on nodes of several kinds that jobs share and that draw through feeds, as plain loops over
//! lists of nodes.

use std::ops::Range;

/// What is free of a node, or what a job takes of it: processors, memory in MiB, and GPUs.
pub(crate) type Amounts = [u32; 3];

/// A kind of nodes.
pub(crate) struct PlainKind {
    pub(crate) nodes: usize,
    pub(crate) size: Amounts,
    /// What each processor in use adds, in milliwatts.
    pub(crate) each: u64,
}

/// A partition: its kinds in the order in which the machine file names them.
pub(crate) struct PlainPartition {
    pub(crate) kinds: Vec<usize>,
    pub(crate) shared: bool,
}

/// A feed: all nodes that draw through it, and how many milliwatts jobs may add on them.
pub(crate) struct PlainFeed {
    pub(crate) nodes: Vec<usize>,
    pub(crate) for_jobs: u64,
}

/// A job, as a log has it; times are in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) submit: u64,
    pub(crate) partition: usize,
    pub(crate) processors: u32,
    /// How many nodes it had; 0 if nobody knows.
    pub(crate) nodes: u32,
    /// In MiB, on all nodes together, as the GPUs.
    pub(crate) memory: u64,
    pub(crate) gpus: u32,
    pub(crate) run: u64,
    pub(crate) limit: u64,
}

/// The same on the nodes that it can be on.
struct Placed {
    submit: u64,
    limit: u64,
    run: u64,
    nodes: usize,
    each: Amounts,
    places: Range<usize>,
    power: u64,
}

/// When each job starts, if all jobs together may add so many milliwatts; nothing for those that no node can hold, or that are
/// never fed.
pub(crate) fn starts(
    kinds: &[PlainKind],
    partitions: &[PlainPartition],
    feeds: &[PlainFeed],
    asked: &[Asked],
    for_jobs: u64,
) -> Vec<Option<u64>> {
    let mut free = Free::all(kinds, feeds, for_jobs);
    let jobs = all_placed(kinds, partitions, asked, &free);
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let (mut waiting, mut running): (Vec<usize>, Running) = (Vec::new(), Vec::new());
    let mut starts = vec![None; jobs.len()];
    let mut arrivals = (0..jobs.len()).filter(|job| jobs[*job].is_some()).peekable();
    loop {
        let next_end = running.iter().map(|(job, _, since)| since + of(*job).run).min();
        let next_arrival = arrivals.peek().map(|job| of(*job).submit);
        let Some(now) = next_end.into_iter().chain(next_arrival).min() else { return starts };
        running.retain(|(job, nodes, since)| {
            let goes_on = since + of(*job).run > now;
            if !goes_on {
                free.give(of(*job), nodes);
            }
            goes_on
        });
        while let Some(job) = arrivals.next_if(|job| of(*job).submit == now) {
            waiting.push(job);
        }
        for (job, nodes) in turn(&jobs, now, &waiting, &running, free.clone()) {
            free.take(of(job), &nodes);
            starts[job] = Some(now);
            waiting.retain(|other| *other != job);
            running.push((job, nodes, now));
        }
    }
}

/// The same under conservative backfilling.
pub(crate) fn conservative_starts(
    kinds: &[PlainKind],
    partitions: &[PlainPartition],
    feeds: &[PlainFeed],
    asked: &[Asked],
    for_jobs: u64,
) -> Vec<Option<u64>> {
    let free = Free::all(kinds, feeds, for_jobs);
    let jobs = all_placed(kinds, partitions, asked, &free);
    let of = |job: usize| jobs[job].as_ref().unwrap();
    // Who waits, when each will start and on which nodes; and the same of those that run.
    let (mut waiting, mut running): (Vec<Reserved>, Vec<Reserved>) = (Vec::new(), Vec::new());
    let mut starts = vec![None; jobs.len()];
    let mut arrivals = (0..jobs.len()).filter(|job| jobs[*job].is_some()).peekable();
    loop {
        let ends = running.iter().map(|one| one.start + of(one.job).run);
        let promised = waiting.iter().map(|one| one.start);
        let next_arrival = arrivals.peek().map(|job| of(*job).submit);
        let Some(now) = ends.chain(promised).chain(next_arrival).min() else { return starts };
        let before = running.len();
        running.retain(|one| one.start + of(one.job).run > now);
        if running.len() < before {
            for place in 0..waiting.len() {
                let old = waiting.remove(place);
                let all: Vec<&Reserved> = waiting.iter().chain(&running).collect();
                let earliest = earliest(&free, &jobs, &all, now, old.job);
                let is_earlier = earliest.start < old.start;
                waiting.insert(place, if is_earlier { earliest } else { old });
            }
        }
        while let Some(job) = arrivals.next_if(|job| of(*job).submit == now) {
            let all: Vec<&Reserved> = waiting.iter().chain(&running).collect();
            let earliest = earliest(&free, &jobs, &all, now, job);
            waiting.push(earliest);
        }
        for one in waiting.extract_if(.., |one| one.start == now) {
            starts[one.job] = Some(now);
            running.push(one);
        }
    }
}

/// A job that is on these nodes from then on.
struct Reserved {
    job: usize,
    start: u64,
    nodes: Vec<usize>,
}

/// The earliest place for a job beside those who have one: it tries the present and every end, and looks at all that begins before
/// it would end itself.
fn earliest(
    free: &Free,
    jobs: &[Option<Placed>],
    all: &[&Reserved],
    now: u64,
    job: usize,
) -> Reserved {
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let this = of(job);
    let at = |time: u64| {
        let mut left = free.clone();
        for one in all {
            if one.start <= time && time < one.start + of(one.job).limit {
                left.take(of(one.job), &one.nodes);
            }
        }
        left
    };
    let ends = all.iter().map(|one| one.start + of(one.job).limit).filter(|end| *end > now);
    let mut tried: Vec<u64> = ends.chain([now]).collect();
    tried.sort_unstable();
    let place = tried.into_iter().find_map(|start| {
        let begins = all.iter().map(|one| one.start);
        let begins = begins.filter(|begin| start < *begin && *begin < start + this.limit);
        let least = begins.map(at).fold(at(start), |least, other| least.and(&other));
        Some((start, least.first_nodes(this, None, |_| true)?))
    });
    let (start, nodes) = place.expect("at the end of all others it can begin");
    Reserved { job, start, nodes }
}

/// What the jobs ask for; nothing for those that cannot run alone.
fn all_placed(
    kinds: &[PlainKind],
    partitions: &[PlainPartition],
    asked: &[Asked],
    free: &Free,
) -> Vec<Option<Placed>> {
    let jobs = asked.iter().map(|job| placed(kinds, &partitions[job.partition], job));
    let can_run = |job: &Placed| free.first_nodes(job, None, |_| true).is_some();
    jobs.map(|job| job.filter(can_run)).collect()
}

/// What a job asks of the first kind of its partition that has so much; nothing if none has.
fn placed(kinds: &[PlainKind], partition: &PlainPartition, job: &Asked) -> Option<Placed> {
    partition.kinds.iter().find_map(|kind| {
        let PlainKind { nodes: count, size, each: milliwatts } = kinds[*kind];
        let least = job.processors.div_ceil(size[0]);
        let nodes = if job.nodes == 0 { least } else { job.nodes.clamp(least, job.processors) };
        let memory = u32::try_from(job.memory.div_ceil(u64::from(nodes))).unwrap();
        let each = [job.processors.div_ceil(nodes), memory, job.gpus.div_ceil(nodes)];
        let fits = (0..3).all(|what| each[what] <= size[what]) && nodes as usize <= count;
        let each = if !partition.shared || each[0] == size[0] { size } else { each };
        let first: usize = kinds[..*kind].iter().map(|kind| kind.nodes).sum();
        fits.then(|| Placed {
            submit: job.submit,
            limit: job.limit,
            run: job.run,
            nodes: nodes as usize,
            each,
            places: first..first + count,
            power: u64::from(nodes * each[0]) * milliwatts,
        })
    })
}

/// What is free: of each node, of the power of all, and of that of each feed.
#[derive(Clone)]
struct Free {
    nodes: Vec<Amounts>,
    power: u64,
    feeds: Vec<(Vec<usize>, u64)>,
}

impl Free {
    /// All there is.
    fn all(kinds: &[PlainKind], feeds: &[PlainFeed], for_jobs: u64) -> Self {
        let sizes = kinds.iter().flat_map(|kind| vec![kind.size; kind.nodes]);
        Free {
            nodes: sizes.collect(),
            power: for_jobs,
            feeds: feeds.iter().map(|feed| (feed.nodes.clone(), feed.for_jobs)).collect(),
        }
    }

    /// The less of both.
    fn and(mut self, other: &Free) -> Self {
        for (one, other) in self.nodes.iter_mut().zip(&other.nodes) {
            (0..3).for_each(|what| one[what] = one[what].min(other[what]));
        }
        self.power = self.power.min(other.power);
        for (one, other) in self.feeds.iter_mut().zip(&other.feeds) {
            one.1 = one.1.min(other.1);
        }
        self
    }

    /// The first nodes that have enough left, whose feeds do, and that are good otherwise; if there is enough power, now and then.
    fn first_nodes(
        &self,
        job: &Placed,
        then: Option<&Free>,
        is_good: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let each = job.power.div_ceil(job.nodes as u64);
        let least = |power: u64, then: Option<u64>| then.map_or(power, |then| then.min(power));
        if job.power > least(self.power, then.map(|then| then.power)) {
            return None;
        }
        let feeds = (0..self.feeds.len())
            .map(|feed| least(self.feeds[feed].1, then.map(|then| then.feeds[feed].1)));
        let mut left: Vec<u64> = feeds.collect();
        let mut found = Vec::new();
        for node in job.places.clone() {
            let above = || (0..left.len()).filter(|feed| self.feeds[*feed].0.contains(&node));
            let has_enough = (0..3).all(|what| self.nodes[node][what] >= job.each[what]);
            if has_enough && is_good(node) && above().all(|feed| left[feed] >= each) {
                above().collect::<Vec<_>>().into_iter().for_each(|feed| left[feed] -= each);
                found.push(node);
                if found.len() == job.nodes {
                    return Some(found);
                }
            }
        }
        None
    }

    fn take(&mut self, job: &Placed, nodes: &[usize]) {
        self.take_power(job, nodes);
        self.take_seats(job, nodes);
    }

    fn take_power(&mut self, job: &Placed, nodes: &[usize]) {
        self.power -= job.power;
        for node in nodes {
            let feeds = self.feeds.iter_mut().filter(|feed| feed.0.contains(node));
            feeds.for_each(|feed| feed.1 -= job.power / job.nodes as u64);
        }
    }

    fn take_seats(&mut self, job: &Placed, nodes: &[usize]) {
        for node in nodes {
            (0..3).for_each(|what| self.nodes[*node][what] -= job.each[what]);
        }
    }

    fn give(&mut self, job: &Placed, nodes: &[usize]) {
        self.power += job.power;
        for node in nodes {
            (0..3).for_each(|what| self.nodes[*node][what] += job.each[what]);
            let feeds = self.feeds.iter_mut().filter(|feed| feed.0.contains(node));
            feeds.for_each(|feed| feed.1 += job.power / job.nodes as u64);
        }
    }
}

/// Who runs on which nodes, since when.
type Running = Vec<(usize, Vec<usize>, u64)>;

/// One turn of EASY: who starts on which nodes.
fn turn(
    jobs: &[Option<Placed>],
    now: u64,
    waiting: &[usize],
    running: &Running,
    mut free: Free,
) -> Vec<(usize, Vec<usize>)> {
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let mut starts: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut rest = waiting.iter().copied().peekable();
    while let Some(job) = rest.peek().copied() {
        let Some(nodes) = free.first_nodes(of(job), None, |_| true) else { break };
        free.take(of(job), &nodes);
        starts.push((job, nodes));
        rest.next();
    }
    let Some(head) = rest.next() else { return starts };
    // The time of the head: those that run give back what they have when they said.
    let mut ends: Vec<(u64, usize, Vec<usize>)> = running
        .iter()
        .map(|(job, nodes, since)| ((since + of(*job).limit).max(now), *job, nodes.clone()))
        .chain(starts.iter().map(|(job, nodes)| (now + of(*job).limit, *job, nodes.clone())))
        .collect();
    ends.sort();
    let (mut then, mut at, mut next) = (free.clone(), now, 0);
    let promised = loop {
        if let Some(nodes) = then.first_nodes(of(head), None, |_| true) {
            break nodes;
        }
        at = ends[next].0;
        while next < ends.len() && ends[next].0 == at {
            let (_, job, nodes) = &ends[next];
            then.give(of(*job), nodes);
            next += 1;
        }
    };
    then.take(of(head), &promised);
    for job in rest {
        let this = of(job);
        // Whoever stays longer takes nothing that the head needs: of its nodes, or of the watts.
        let stays = now + this.limit > at;
        let leaves_enough = |node: usize| {
            !promised.contains(&node)
                || (0..3).all(|what| then.nodes[node][what] >= this.each[what])
        };
        let nodes = match stays {
            false => free.first_nodes(this, None, |_| true),
            true => free.first_nodes(this, Some(&then), leaves_enough),
        };
        let Some(nodes) = nodes else { continue };
        free.take(this, &nodes);
        if stays {
            // Of other nodes than the head's nothing is kept.
            then.take_power(this, &nodes);
            let kept: Vec<usize> =
                nodes.iter().copied().filter(|node| promised.contains(node)).collect();
            then.take_seats(this, &kept);
        }
        starts.push((job, nodes));
    }
    starts
}
