//! EASY on nodes of several kinds that jobs share, as a plain loop over lists of nodes.

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
    asked: &[Asked],
    for_jobs: u64,
) -> Vec<Option<u64>> {
    let jobs = asked.iter().map(|job| placed(kinds, &partitions[job.partition], job));
    let jobs: Vec<Option<Placed>> =
        jobs.map(|job| job.filter(|job| job.power <= for_jobs)).collect();
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let free = kinds.iter().flat_map(|kind| vec![kind.size; kind.nodes]);
    let (mut free, mut power): (Vec<Amounts>, u64) = (free.collect(), for_jobs);
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
                give(of(*job), &mut free, nodes);
                power += of(*job).power;
            }
            goes_on
        });
        while let Some(job) = arrivals.next_if(|job| of(*job).submit == now) {
            waiting.push(job);
        }
        for (job, nodes) in turn(&jobs, now, &waiting, &running, free.clone(), power) {
            take(of(job), &mut free, &nodes);
            power -= of(job).power;
            starts[job] = Some(now);
            waiting.retain(|other| *other != job);
            running.push((job, nodes, now));
        }
    }
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

/// The first nodes that have enough left, and are good otherwise.
fn first_nodes(
    job: &Placed,
    free: &[Amounts],
    is_good: impl Fn(usize) -> bool,
) -> Option<Vec<usize>> {
    let enough = |node: &usize| (0..3).all(|what| free[*node][what] >= job.each[what]);
    let good = job.places.clone().filter(enough).filter(|node| is_good(*node));
    let found: Vec<usize> = good.take(job.nodes).collect();
    (found.len() == job.nodes).then_some(found)
}

fn take(job: &Placed, free: &mut [Amounts], nodes: &[usize]) {
    nodes.iter().for_each(|node| (0..3).for_each(|what| free[*node][what] -= job.each[what]));
}

fn give(job: &Placed, free: &mut [Amounts], nodes: &[usize]) {
    nodes.iter().for_each(|node| (0..3).for_each(|what| free[*node][what] += job.each[what]));
}

/// Who runs on which nodes, since when.
type Running = Vec<(usize, Vec<usize>, u64)>;

/// One turn of EASY: who starts on which nodes.
fn turn(
    jobs: &[Option<Placed>],
    now: u64,
    waiting: &[usize],
    running: &Running,
    mut free: Vec<Amounts>,
    mut power: u64,
) -> Vec<(usize, Vec<usize>)> {
    let of = |job: usize| jobs[job].as_ref().unwrap();
    let mut starts: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut rest = waiting.iter().copied().peekable();
    while let Some(job) = rest.peek().copied() {
        let nodes = first_nodes(of(job), &free, |_| true).filter(|_| of(job).power <= power);
        let Some(nodes) = nodes else { break };
        take(of(job), &mut free, &nodes);
        power -= of(job).power;
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
    let (mut then, mut power_then, mut at, mut next) = (free.clone(), power, now, 0);
    let promised = loop {
        let nodes = first_nodes(of(head), &then, |_| true);
        if let Some(nodes) = nodes.filter(|_| of(head).power <= power_then) {
            break nodes;
        }
        at = ends[next].0;
        while next < ends.len() && ends[next].0 == at {
            let (_, job, nodes) = &ends[next];
            give(of(*job), &mut then, nodes);
            power_then += of(*job).power;
            next += 1;
        }
    };
    take(of(head), &mut then, &promised);
    let mut extra = power_then - of(head).power;
    for job in rest {
        let this = of(job);
        // Whoever stays longer takes nothing that the head needs: of its nodes, or of the watts.
        let stays = now + this.limit > at;
        let leaves_enough = |node: usize| {
            !stays
                || !promised.contains(&node)
                || (0..3).all(|what| then[node][what] >= this.each[what])
        };
        let nodes = first_nodes(this, &free, leaves_enough);
        let is_fed = this.power <= power && (!stays || this.power <= extra);
        let Some(nodes) = nodes.filter(|_| is_fed) else { continue };
        take(this, &mut free, &nodes);
        power -= this.power;
        if stays {
            extra -= this.power;
            for node in nodes.iter().filter(|node| promised.contains(node)) {
                (0..3).for_each(|what| then[*node][what] -= this.each[what]);
            }
        }
        starts.push((job, nodes));
    }
    starts
}
