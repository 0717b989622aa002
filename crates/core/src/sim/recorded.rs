//! What really happened, added up from what a log says of its jobs. No policy decides here and no ledger grants, so that
//! nothing can move a job: it starts and ends when it did, also where the machine has fewer nodes than the log.
//!
//! A node draws its idle power once, however many jobs it has. A job adds to that what was measured of it beyond the
//! idle power of its part of its nodes. If nothing was measured, it adds that part of what it would add if it had its
//! nodes for itself, so that jobs that fill a node add what one job on the whole node would. Parts are counted in
//! processors, and watts are rounded down to the milliwatt.
//!
//! A node that the log names is busy once, however many jobs it has. Of jobs whose nodes have no names only the
//! processors are counted: they keep as many nodes busy as so many processors fill.

use super::meter::Meter;
use super::site::SiteMeter;
use super::tally::Tally;
use super::{EnergyByState, PowerSample, Record, Run, Simulation, State};
use crate::budget::Budget;
use crate::machine::Machine;
use crate::policy::DropReason;
use crate::units::{Instant, JobId, Joules, Watts};
use crate::workload::{MeasuredPower, Workload};

/// What really happened to the jobs of a workload.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The figures, as of a simulation. Jobs of which nobody knows when they started are dropped: they draw nothing.
    pub run: Run,
    /// The share of all processors that jobs held, from the first submission to the last end. Nothing if that is no time.
    pub utilisation: Option<f64>,
    /// How many nodes were busy from when on.
    pub busy: Vec<(Instant, u64)>,
    /// The most nodes that were busy at once.
    pub most_nodes: u64,
    /// Jobs of which nobody knows when they started.
    pub start_unknown: u64,
    /// Jobs that did not have all processors of their nodes.
    pub on_parts: u64,
    /// Jobs whose nodes have no names.
    pub unnamed: u64,
}

/// What is the same for all nodes of a kind.
#[derive(Clone, Copy, Debug)]
struct OfKind {
    /// How many there are.
    nodes: u64,
    /// Processors of a node.
    per_node: u64,
    /// What a node draws that is idle, and what a busy one adds to that.
    idle: Watts,
    added: Watts,
}

impl OfKind {
    /// Those of a machine: one, if all its nodes are alike.
    fn all(machine: &Machine) -> Vec<OfKind> {
        let of = |node: &Machine, nodes: u64| OfKind {
            nodes,
            per_node: u64::from(node.processors_per_node.max(1)),
            idle: node.node().idle,
            added: node.added_power(),
        };
        let Some(kinds) = &machine.kinds else { return vec![of(machine, machine.nodes.into())] };
        let count = |place: usize| {
            let groups = kinds.groups().iter().filter(|group| group.kind == place);
            groups.map(|group| group.nodes.len() as u64).sum()
        };
        let each = kinds.kinds().iter().enumerate();
        each.map(|(place, kind)| of(kind.node(), count(place))).collect()
    }
}

/// The kind of the nodes of a job.
fn kind_of(workload: &Workload, id: JobId) -> usize {
    let seat = workload.seats().and_then(|seats| seats.of(id).ok());
    seat.map_or(0, |seat| usize::from(seat.kind))
}

/// What a job had of its nodes.
struct Part {
    /// Its processors, at most those that its nodes have.
    processors: u64,
    /// Its nodes.
    nodes: u32,
    is_whole: bool,
}

impl Part {
    fn of(workload: &Workload, id: JobId, per_node: u64) -> Self {
        let job = &workload.jobs()[id.index()];
        let held = u64::from(job.processors);
        match workload.recorded_nodes(id) {
            Some(nodes) => {
                let all = u64::from(nodes) * per_node;
                Part { processors: held.min(all), nodes, is_whole: held >= all }
            }
            None => {
                let nodes = u32::try_from(held.div_ceil(per_node)).unwrap_or(u32::MAX);
                Part { processors: held, nodes, is_whole: held.is_multiple_of(per_node) }
            }
        }
    }
}

/// So many parts of a power, of which there are so many in all, rounded down.
fn share(power: Watts, part: u64, whole: u64) -> Watts {
    let product = u128::from(power.milliwatts()) * u128::from(part) / u128::from(whole.max(1));
    Watts::from_milliwatts(u64::try_from(product).unwrap_or(u64::MAX)).min(Watts::LARGEST)
}

/// Which nodes are busy.
struct Occupied<'a> {
    workload: &'a Workload,
    /// By the number of the node: how many jobs it has.
    jobs_on: Vec<u32>,
    /// By kind.
    busy: Vec<Busy>,
}

/// How many nodes of a kind are busy.
struct Busy {
    per_node: u64,
    named: u64,
    /// Processors of jobs whose nodes have no names.
    elsewhere: u64,
}

impl Busy {
    fn nodes(&self) -> u64 {
        self.named + self.elsewhere.div_ceil(self.per_node)
    }
}

impl Occupied<'_> {
    /// By kind: the nodes that are busy.
    fn by_kind(&self) -> impl Iterator<Item = u64> {
        self.busy.iter().map(Busy::nodes)
    }

    fn change(&mut self, id: JobId, kind: usize, part: &Part, begins: bool) {
        let busy = &mut self.busy[kind];
        let Some(nodes) = self.workload.recorded_node_list(id) else {
            match begins {
                true => busy.elsewhere += part.processors,
                false => busy.elsewhere -= part.processors,
            }
            return;
        };
        for node in nodes {
            let place = *node as usize;
            if self.jobs_on.len() <= place {
                self.jobs_on.resize(place + 1, 0);
            }
            let jobs = &mut self.jobs_on[place];
            match begins {
                true => *jobs += 1,
                false => *jobs -= 1,
            }
            match (begins, *jobs) {
                (true, 1) => busy.named += 1,
                (false, 0) => busy.named -= 1,
                _ => {}
            }
        }
    }
}

impl Simulation<'_> {
    /// What really happened, held against the bound of this simulation. `added` is what a job adds to the idle power of
    /// the nodes that it asks for if it has all of each; it counts for jobs that were not measured. Nothing if the log says
    /// of no job when it started.
    pub(crate) fn recorded(&self, added: &dyn Fn(JobId) -> Watts) -> Option<Recorded> {
        let workload = self.workload;
        let mut replay = Replay::new(self);
        let mut changes: Vec<(Instant, bool, JobId)> = Vec::new();
        for (start, id) in workload.recorded_starts()? {
            let end = start + workload.run_time(id);
            replay.note(id, start, end, added);
            // What takes no time draws nothing, and would end before it begins.
            if end > start {
                changes.extend([(start, true, id), (end, false, id)]);
            }
        }
        changes.sort_unstable();
        let begin = replay.run.begin;
        let mut limits = replay.bound.changes_after(begin).iter().map(|limit| limit.0).peekable();
        replay.sample();
        for same in changes.chunk_by(|one, next| one.0 == next.0) {
            let now = same[0].0;
            while let Some(at) = limits.next_if(|at| *at < now) {
                replay.advance(at);
                replay.sample();
            }
            replay.advance(now);
            same.iter().for_each(|(_, begins, id)| replay.change(*id, *begins));
            replay.sample();
        }
        Some(replay.finish())
    }
}

/// The clock, while it goes from one recorded instant to the next.
struct Replay<'a> {
    simulation: &'a Simulation<'a>,
    bound: &'a Budget,
    kinds: Vec<OfKind>,
    now: Instant,
    meter: Meter,
    site: Option<SiteMeter<'a>>,
    tally: Option<Tally<'a>>,
    occupied: Occupied<'a>,
    /// The idle power of nodes in milliwatts, times milliseconds: as long as they were busy, and as long as they were not.
    idle_time: [u128; 2],
    /// Processors times milliseconds.
    processor_time: u128,
    /// Milliwatts that all jobs add which run now, and what the meter knows of that.
    added: u128,
    metered: Watts,
    busy: Vec<(Instant, u64)>,
    start_unknown: u64,
    on_parts: u64,
    unnamed: u64,
    run: Run,
}

impl<'a> Replay<'a> {
    fn new(simulation: &'a Simulation<'a>) -> Self {
        let Simulation { machine, workload, .. } = *simulation;
        let begin = workload.jobs().first().map_or(Instant::ZERO, |job| job.submit);
        let kinds = OfKind::all(machine);
        let busy = |kind: &OfKind| Busy { per_node: kind.per_node, named: 0, elsewhere: 0 };
        let busy = kinds.iter().map(busy).collect();
        let bound = simulation.bound.as_ref().unwrap_or(&simulation.budget);
        let tally = simulation.tariff.map(|(tariff, windows)| Tally::new(tariff, windows, begin));
        let unknown = |id: usize| {
            // It did not wait for ever, and is in no queue: nobody knows what became of it.
            let submit = workload.jobs()[id].submit;
            let state = State::Dropped(DropReason::Unsaid);
            Record { start: submit, end: submit, state, ..Record::WAITING }
        };
        Replay {
            simulation,
            bound,
            kinds,
            now: begin,
            meter: Meter::new(machine.floor(), begin, bound.at(begin)),
            site: SiteMeter::of(machine, simulation.outdoor, begin),
            tally,
            occupied: Occupied { workload, jobs_on: Vec::new(), busy },
            idle_time: [0; 2],
            processor_time: 0,
            added: 0,
            metered: Watts::ZERO,
            busy: Vec::new(),
            start_unknown: workload.jobs().len() as u64,
            on_parts: 0,
            unnamed: 0,
            run: Run {
                records: (0..workload.jobs().len()).map(unknown).collect(),
                ..Run::beginning(begin)
            },
        }
    }

    /// A job ran then.
    fn note(&mut self, id: JobId, start: Instant, end: Instant, added: &dyn Fn(JobId) -> Watts) {
        let Simulation { machine, workload, .. } = *self.simulation;
        let OfKind { per_node, idle, added: most, .. } = self.kinds[kind_of(workload, id)];
        let (part, job) = (Part::of(workload, id, per_node), &workload.jobs()[id.index()]);
        let of_part = |power: Watts| share(power, part.processors, per_node);
        let power = match workload.power(id).and_then(MeasuredPower::mean) {
            // As in a simulation, nodes draw no more than they can, whatever was measured.
            Some(mean) => mean.saturating_sub(of_part(idle)).min(of_part(most)),
            None => {
                // Whatever the machine counts, that is what the job asks for.
                let whole = u64::from(job.nodes) * u64::from(machine.processors_per_node.max(1));
                share(added(id), part.processors, whole)
            }
        };
        let nodes = part.nodes.max(1);
        self.run.records[id.index()] = Record {
            start,
            end,
            power,
            cap: most,
            nodes,
            cores: u32::try_from(part.processors.div_ceil(u64::from(nodes))).unwrap_or(u32::MAX),
            state: State::Completed,
            ..Record::WAITING
        };
        self.run.end = self.run.end.max(end);
        self.processor_time += u128::from(part.processors) * u128::from(end.since(start).millis());
        self.start_unknown -= 1;
        self.on_parts += u64::from(!part.is_whole);
        self.unnamed += u64::from(workload.recorded_node_list(id).is_none());
    }

    /// Moves the clock: what was drawn until now is charged.
    fn advance(&mut self, now: Instant) {
        let elapsed = now.since(self.now);
        let (tally, power) = (&mut self.tally, self.meter.power());
        let mut charge = |until: Instant, drawn: Watts| {
            if let Some(tally) = tally {
                tally.advance(until, drawn);
            }
        };
        match &mut self.site {
            Some(site) => site.advance(power, now, charge),
            None => charge(now, power),
        }
        let millis = u128::from(elapsed.millis());
        for (kind, busy) in self.kinds.iter().zip(self.occupied.by_kind()) {
            let (idle, of_node) =
                (kind.nodes.saturating_sub(busy), u128::from(kind.idle.milliwatts()));
            self.idle_time[0] += u128::from(busy) * of_node * millis;
            self.idle_time[1] += u128::from(idle) * of_node * millis;
        }
        self.meter.advance(now, self.bound.at(now));
        self.now = now;
    }

    /// A job begins or ends.
    fn change(&mut self, id: JobId, begins: bool) {
        let kind = kind_of(self.simulation.workload, id);
        let part = Part::of(self.simulation.workload, id, self.kinds[kind].per_node);
        let power = self.run.records[id.index()].power;
        self.occupied.change(id, kind, &part, begins);
        match begins {
            true => self.added += u128::from(power.milliwatts()),
            false => self.added -= u128::from(power.milliwatts()),
        }
    }

    /// Looks at what is drawn from now on, and by how many nodes.
    fn sample(&mut self) {
        let machine = self.simulation.machine;
        let busy: u64 = self.occupied.by_kind().sum();
        // Nodes that the machine should not have draw their idle power, too.
        let beyond = self.kinds.iter().zip(self.occupied.by_kind()).map(|(kind, busy)| {
            let beyond = u32::try_from(busy.saturating_sub(kind.nodes)).unwrap_or(u32::MAX);
            kind.idle.checked_mul(beyond).unwrap_or(Watts::LARGEST)
        });
        let more = beyond.fold(Watts::ZERO, Watts::saturating_add).min(Watts::LARGEST);
        self.meter.rebase(machine.floor().saturating_add(more));
        let added = u64::try_from(self.added).unwrap_or(u64::MAX);
        let added = Watts::from_milliwatts(added).min(Watts::LARGEST);
        self.meter.remove(std::mem::replace(&mut self.metered, added));
        self.meter.add(added);
        // What holds for no time does not count.
        self.busy.pop_if(|(at, _)| *at == self.now);
        if self.busy.last().is_none_or(|(_, last)| *last != busy) {
            self.busy.push((self.now, busy));
        }
        if !self.simulation.keeps_power {
            return;
        }
        let limit = self.bound.at(self.now);
        let sample = PowerSample { at: self.now, power: self.meter.power(), limit };
        let samples = &mut self.run.power;
        samples.pop_if(|last| last.at == self.now);
        let is_new = |last: &PowerSample| (last.power, last.limit) != (sample.power, sample.limit);
        if samples.last().is_none_or(is_new) {
            samples.push(sample);
        }
    }

    fn finish(mut self) -> Recorded {
        if let Some(tally) = &mut self.tally {
            tally.note_end();
        }
        let machine = self.simulation.machine;
        let makespan = self.run.end.since(self.run.begin);
        let [busy, unused] = self.idle_time.map(Joules::from_microjoules);
        let all = self.kinds.iter().map(|kind| u128::from(kind.nodes) * u128::from(kind.per_node));
        let all = all.sum::<u128>() * u128::from(makespan.millis());
        let run = Run {
            peak: self.meter.peak(),
            peak_held: self.meter.peak(),
            energy: self.meter.energy(),
            energy_by_state: EnergyByState {
                running: self.meter.by_jobs() + busy,
                idle: unused,
                base: machine.base_power.over(makespan),
                ..EnergyByState::default()
            },
            site: self.site.map(|site| site.figures()),
            excursions: self.meter.excursions(),
            charges: self.tally.map(|tally| tally.charges()),
            ..self.run
        };
        let utilisation = (all > 0).then(|| self.processor_time as f64 / all as f64);
        Recorded {
            run,
            utilisation,
            most_nodes: self.busy.iter().map(|(_, nodes)| *nodes).max().unwrap_or(0),
            busy: self.busy,
            start_unknown: self.start_unknown,
            on_parts: self.on_parts,
            unnamed: self.unnamed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use crate::machine::{Details, Machine};
    use crate::units::Span;
    use crate::workload::{Partitions, Placed};

    /// Two nodes of four processors that draw 20 W, and up to 100 W; the machine draws 7 W beside them.
    fn machine() -> Machine {
        let details = Details { idle: Some(Watts::from_watts(20)), ..Details::default() };
        Machine {
            processors_per_node: 4,
            base_power: Watts::from_watts(7),
            details,
            ..Machine::of_processors(2).unwrap()
        }
    }

    /// Jobs of so many processors for so long, on these nodes where they are named.
    fn log(jobs: &[(i32, u32, u32, &[u32])]) -> Workload {
        let asked = |place: usize| {
            let (_, time, processors, _) = jobs[place];
            Job::new(place as u64, Instant::ZERO, processors, Span::from_secs(time))
        };
        let mut workload = Workload::from_parts(
            "log".to_owned(),
            (0..jobs.len()).map(asked).collect(),
            jobs.iter().map(|job| Span::from_secs(job.1)).collect(),
            jobs.iter().map(|job| job.0).collect(),
            Partitions::default(),
        );
        workload.set_placed(jobs.iter().map(|job| job.3.into()).collect(), |job| {
            let nodes = jobs[job.number as usize].3.len() as u32;
            Placed { nodes, list: (nodes > 0).then_some(job.number as u32), ..Placed::default() }
        });
        workload.pack_processors(4);
        workload
    }

    /// What jobs add on whole nodes: 80 W each.
    fn recorded(machine: &Machine, workload: &Workload, bound: Budget) -> Recorded {
        let added = |id: JobId| machine.added_power() * workload.jobs()[id.index()].nodes;
        let simulation = Simulation::new(machine, workload).bound(bound).keep_power(true);
        simulation.recorded(&added).unwrap()
    }

    /// By hand. Node 0 has two jobs of two processors each: 20 + 40 W for 50 s, 20 + 80 W for 50 s, 20 + 40 W for 50 s.
    /// Node 1 has a job on all of it from 100 s to 150 s. All start when they did, also the third, which a machine of one
    /// node would have no room for.
    #[test]
    fn jobs_that_share_a_node() {
        let workload = log(&[(0, 100, 2, &[0]), (50, 100, 2, &[0]), (100, 50, 4, &[1])]);
        let machine = machine();
        let found = recorded(&machine, &workload, Budget::constant(Watts::from_watts(130)));
        let run = &found.run;
        let starts = run.records.iter().map(|record| record.start.millis() / 1000);
        assert_eq!(starts.collect::<Vec<_>>(), [0, 50, 100]);
        let at = |sample: &PowerSample| (sample.at.millis() / 1000, sample.power.as_f64());
        let power: Vec<_> = run.power.iter().map(at).collect();
        assert_eq!(power, [(0, 87.0), (50, 127.0), (100, 167.0), (150, 47.0)]);
        let by_jobs: f64 = 50.0 * (40.0 + 80.0 + 120.0);
        assert_eq!(run.energy.as_f64(), by_jobs + 150.0 * 47.0);
        assert_eq!((run.energy_by_state.total(), run.peak), (run.energy, Watts::from_watts(167)));
        // Node 0 is busy for 150 s, and node 1 for 50 s.
        assert_eq!(run.energy_by_state.running.as_f64(), by_jobs + 200.0 * 20.0);
        let split =
            run.records.iter().map(|record| record.power.over(record.end.since(record.start)));
        assert_eq!(split.sum::<Joules>().as_f64(), by_jobs);
        let excursions = run.excursions;
        assert_eq!(
            (excursions.time, excursions.worst),
            (Span::from_secs(50), Watts::from_watts(37))
        );
        let busy: Vec<_> =
            found.busy.iter().map(|(at, nodes)| (at.millis() / 1000, *nodes)).collect();
        assert_eq!(busy, [(0, 1), (100, 2), (150, 0)]);
        // 200, 200 and 200 processor seconds of 150 s of eight processors.
        assert_eq!(found.utilisation, Some(0.5));
        assert_eq!((found.on_parts, found.unnamed, found.most_nodes), (2, 0, 2));
    }

    /// Without names, nodes are counted by processors. Jobs of which nobody knows when they started are left out.
    #[test]
    fn jobs_without_names_of_nodes() {
        let workload = log(&[(0, 10, 3, &[]), (0, 10, 3, &[]), (-1, 10, 4, &[]), (5, 0, 4, &[])]);
        let machine = machine();
        let found = recorded(&machine, &workload, Budget::unlimited());
        let counts = (found.start_unknown, found.on_parts, found.unnamed, found.most_nodes);
        assert_eq!(counts, (1, 2, 3, 2));
        assert_eq!(found.run.energy.as_f64(), 10.0 * (47.0 + 2.0 * 60.0));
        assert_eq!(found.run.records[2].state, State::Dropped(DropReason::Unsaid));
        // What takes no time has run all the same.
        assert_eq!(found.run.records[3].state, State::Completed);
        let nobody = log(&[(-1, 10, 4, &[])]);
        assert!(Simulation::new(&machine, &nobody).recorded(&|_| Watts::ZERO).is_none());
    }

    /// The machine has two nodes, and the log has three that are busy at once: each of them draws what it draws.
    #[test]
    fn more_nodes_than_the_machine_has() {
        let workload = log(&[(0, 10, 12, &[0, 1, 5])]);
        let found = recorded(&machine(), &workload, Budget::unlimited());
        assert_eq!(found.most_nodes, 3);
        assert_eq!(found.run.energy.as_f64(), 10.0 * 307.0);
        assert_eq!(found.run.energy_by_state.total(), found.run.energy);
    }

    /// Seven processors of a node that adds 100 W: what jobs of one processor each add is rounded down.
    #[test]
    fn parts_of_a_milliwatt_are_nobody_s() {
        assert_eq!(share(Watts::from_watts(100), 1, 7), Watts::from_milliwatts(14_285));
        assert_eq!(share(Watts::from_watts(100), 7, 7), Watts::from_watts(100));
    }
}
