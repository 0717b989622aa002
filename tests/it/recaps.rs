//! Share with settings that change while jobs run: agreement with a plain simulator of its own, start for
//! start and end for end.
//!
//! Each setting of the model takes twice as long as the one before, so that all that is left of a job is exact
//! in quarters of a millisecond, and the plain simulator needs no rounding of its own.

use busbar::budget::Budget;
use busbar::job::Job;
use busbar::machine::Machine;
use busbar::model::{Menu, Model, OperatingPoint, Outcome, Rung, Stretch};
use busbar::policy::share::Use;
use busbar::policy::{BuildContext, PolicySpec, ShareSpec};
use busbar::sim::{Excursions, Run, Simulation};
use busbar::units::{Instant, JobId, Span, Watts};
use busbar::workload::Workload;
use proptest::prelude::*;

use crate::agreement::cases;

/// Settings of every job.
const SETTINGS: usize = 3;

/// Three settings: each takes twice as long as the one before.
struct Halving {
    /// Milliwatts of a node in each.
    power: [u64; SETTINGS],
    rungs: [Rung; SETTINGS],
}

impl Halving {
    fn new(power: [u64; SETTINGS]) -> Self {
        let rung = |place: usize| {
            let stretch = Stretch::times(f64::from(1u32 << place));
            Rung::alike(Watts::from_milliwatts(power[place]), stretch)
        };
        Halving { power, rungs: std::array::from_fn(rung) }
    }

    fn point(&self, job: &Job, place: usize) -> OperatingPoint {
        let cap = Watts::from_milliwatts(self.power[place]);
        OperatingPoint {
            nodes: job.nodes,
            cores: 1,
            cap,
            time: Span::from_millis(job.requested.millis() << place),
            power: cap * job.nodes,
        }
    }
}

impl Model for Halving {
    fn nominal(&self, _id: JobId, job: &Job) -> OperatingPoint {
        self.point(job, 0)
    }

    fn menu(&self, _id: JobId, job: &Job) -> Menu {
        Menu::new(self.point(job, 0), (1..SETTINGS).map(|place| self.point(job, place)))
    }

    fn outcome(&self, _id: JobId, job: &Job, run_time: Span, point: &OperatingPoint) -> Outcome {
        let place = (0..SETTINGS).find(|place| self.point(job, *place) == *point).unwrap();
        Outcome { run_time: Span::from_millis(run_time.millis() << place), power: point.power }
    }

    fn rungs(&self) -> &[Rung] {
        &self.rungs
    }
}

/// A job: milliseconds, and nodes.
#[derive(Clone, Copy, Debug)]
struct Asked {
    submit: u64,
    nodes: u32,
    requested: u64,
    run: u64,
}

#[derive(Clone, Debug)]
struct Story {
    nodes: u32,
    limit: u64,
    power: [u64; SETTINGS],
    jobs: Vec<Asked>,
}

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Going {
    job: usize,
    place: usize,
    /// What is left of its work, in quarters of a millisecond at the fastest setting.
    work: u64,
    /// When it is believed to end.
    until: u64,
}

/// The plain simulator.
struct Plain<'a> {
    story: &'a Story,
    now: u64,
    waiting: Vec<usize>,
    running: Vec<Going>,
    /// When each job started and ended.
    times: Vec<Option<(u64, u64)>>,
}

impl<'a> Plain<'a> {
    fn run(story: &'a Story) -> Vec<Option<(u64, u64)>> {
        let times = vec![None; story.jobs.len()];
        let mut plain = Plain { story, now: 0, waiting: vec![], running: vec![], times };
        let mut next = 0;
        loop {
            let ends = plain.running.iter().map(|going| plain.end(going));
            let submit = story.jobs.get(next).map(|job| job.submit);
            let Some(now) = ends.chain(submit).min() else { return plain.times };
            plain.advance(now);
            let mut asked = false;
            while let Some(over) = plain.running.iter().position(|going| going.work == 0) {
                let over = plain.running.remove(over);
                plain.times[over.job].as_mut().unwrap().1 = now;
                asked = true;
            }
            while let Some(job) = story.jobs.get(next).filter(|job| job.submit <= now) {
                let fits = job.nodes <= story.nodes
                    && u64::from(job.nodes) * story.power[SETTINGS - 1] <= story.limit;
                if fits {
                    plain.waiting.push(next);
                    asked = true;
                }
                next += 1;
            }
            if asked {
                plain.pass();
            }
        }
    }

    /// When a job really ends, if nothing changes.
    fn end(&self, going: &Going) -> u64 {
        self.now + (going.work << going.place).div_ceil(4)
    }

    fn advance(&mut self, now: u64) {
        let quarters = 4 * (now - self.now);
        for going in &mut self.running {
            going.work = going.work.saturating_sub(quarters >> going.place);
        }
        self.now = now;
    }

    fn power(&self, job: usize, place: usize) -> u64 {
        u64::from(self.story.jobs[job].nodes) * self.story.power[place]
    }

    /// The fastest setting that could feed the whole machine.
    fn floor(&self) -> usize {
        let feeds = |place: &usize| {
            u64::from(self.story.nodes) * self.story.power[*place] <= self.story.limit
        };
        (0..SETTINGS).find(feeds).unwrap_or(SETTINGS - 1)
    }

    fn pass(&mut self) {
        let floor = self.floor();
        let before: Vec<Going> = self.running.clone();
        let free = |running: &[Going]| {
            let nodes: u32 = running.iter().map(|going| self.story.jobs[going.job].nodes).sum();
            self.story.nodes - nodes
        };
        let mut nodes = free(&self.running);
        // Everybody could go down to the floor.
        let floors: u64 = before.iter().map(|going| self.power(going.job, floor)).sum();
        let mut watts = self.story.limit - floors;
        let mut started: Vec<(usize, usize)> = Vec::new();
        let mut promise: Option<(u64, u32, u64)> = None;
        for job in std::mem::take(&mut self.waiting) {
            let asked = self.story.jobs[job];
            let admits = |place: &usize| {
                let power = self.power(job, *place);
                let ends = self.now + (asked.requested << place);
                let passes = promise.is_none_or(|(at, extra_nodes, extra_watts)| {
                    ends <= at || asked.nodes <= extra_nodes && power <= extra_watts
                });
                asked.nodes <= nodes && power <= watts && passes
            };
            if let Some(place) = (0..=floor).rev().find(admits) {
                let power = self.power(job, place);
                nodes -= asked.nodes;
                watts -= power;
                if let Some((at, extra_nodes, extra_watts)) = &mut promise
                    && self.now + (asked.requested << place) > *at
                {
                    *extra_nodes -= asked.nodes;
                    *extra_watts -= power;
                }
                started.push((job, place));
                continue;
            }
            self.waiting.push(job);
            if promise.is_none() {
                promise = Some(self.promise(job, floor, (nodes, watts), &started));
            }
        }
        self.share_out(floor, &started);
    }

    /// When the head is expected to fit at its floor, and what is left over then.
    fn promise(
        &self,
        head: usize,
        floor: usize,
        free: (u32, u64),
        started: &[(usize, usize)],
    ) -> (u64, u32, u64) {
        let running = self.running.iter().map(|going| {
            (going.until, self.story.jobs[going.job].nodes, self.power(going.job, going.place))
        });
        let starting = started.iter().map(|(job, place)| {
            let asked = self.story.jobs[*job];
            (self.now + (asked.requested << place), asked.nodes, self.power(*job, *place))
        });
        let mut back: Vec<(u64, u32, u64)> = running.chain(starting).collect();
        back.sort_unstable();
        let needs = (self.story.jobs[head].nodes, self.power(head, floor));
        let (mut nodes, mut watts) = free;
        let mut at = self.now;
        let mut back = back.into_iter().peekable();
        loop {
            // All that comes back at one instant counts together.
            while let Some((_, more_nodes, more_watts)) = back.next_if(|next| next.0 <= at) {
                nodes += more_nodes;
                watts += more_watts;
            }
            if needs.0 <= nodes && needs.1 <= watts {
                return (at, nodes - needs.0, watts - needs.1);
            }
            at = back.peek().unwrap().0;
        }
    }

    /// Everybody at his floor; then step by step to whoever gains most by a watt.
    fn share_out(&mut self, floor: usize, started: &[(usize, usize)]) {
        let running = self.running.iter().map(|going| (going.job, floor));
        let mut places: Vec<(usize, usize)> = running.chain(started.iter().copied()).collect();
        places.sort_unstable();
        let drawn: u64 = places.iter().map(|(job, place)| self.power(*job, *place)).sum();
        let mut spare = self.story.limit - drawn;
        let mut stuck = vec![false; places.len()];
        loop {
            // The gain is half of the next speed: 2^-place over the watts of the step.
            let gain = |entry: usize| {
                let (job, place) = places[entry];
                let more = self.power(job, place - 1) - self.power(job, place);
                (1u128 << (SETTINGS - place), u128::from(more))
            };
            let mut best: Option<usize> = None;
            for entry in (0..places.len()).filter(|entry| places[*entry].1 > 0 && !stuck[*entry]) {
                let is_better = best.is_none_or(|other| {
                    let ((speed, watts), (other_speed, other_watts)) = (gain(entry), gain(other));
                    speed * other_watts > other_speed * watts
                });
                best = if is_better { Some(entry) } else { best };
            }
            let Some(entry) = best else { break };
            let more = gain(entry).1 as u64;
            match more <= spare {
                true => {
                    spare -= more;
                    places[entry].1 -= 1;
                }
                false => stuck[entry] = true,
            }
        }
        for (job, place) in places {
            let asked = self.story.jobs[job];
            match self.running.iter_mut().find(|going| going.job == job) {
                None => {
                    self.times[job] = Some((self.now, 0));
                    let until = self.now + (asked.requested << place);
                    self.running.push(Going { job, place, work: 4 * asked.run, until });
                }
                Some(going) if going.place != place => {
                    let left = (going.until.saturating_sub(self.now)) << place;
                    going.until = self.now + left.div_ceil(1 << going.place);
                    going.place = place;
                }
                Some(_) => {}
            }
        }
    }
}

impl Story {
    fn run(&self, order: &str) -> Run {
        let machine = Machine {
            node_power: Watts::from_milliwatts(self.power[0]),
            ..Machine::of_processors(self.nodes).unwrap()
        };
        let jobs = self.jobs.iter().zip(1..).map(|(job, number)| {
            let submit = Instant::from_millis(job.submit);
            let asked = Job::new(number, submit, job.nodes, Span::from_millis(job.requested));
            (asked, Span::from_millis(job.run))
        });
        let workload = Workload::new("test", jobs.collect::<Vec<_>>());
        let model = Halving::new(self.power);
        let policy = match order {
            "fcfs" => PolicySpec::of(ShareSpec { uses: Some(Use::Recaps), ..Default::default() }),
            _ => format!("share(use=recaps, order={order}, halving=10s)").parse().unwrap(),
        };
        Simulation::new(&machine, &workload)
            .budget(Budget::constant(Watts::from_milliwatts(self.limit)))
            .model(&model)
            .keep_power(true)
            .run(policy.build(&BuildContext::default()).as_mut())
    }

    fn assert_sound(&self, run: &Run) {
        assert_eq!(run.violations, 0, "{:?}", run.first_violations);
        assert_eq!(run.excursions, Excursions::default());
        assert!(run.peak_held.milliwatts() <= self.limit);
    }
}

fn story(most: usize) -> impl Strategy<Value = Story> {
    let job = (0u64..40_000, 1u32..8, 1u64..20_000, 0.0f64..=1.0);
    let jobs = prop::collection::vec(job, 1..most);
    let power = (20u64..60, 61u64..90, 91u64..120);
    (3u32..10, 100u64..1200, power, jobs).prop_map(|(nodes, limit, (low, mid, high), jobs)| {
        let mut jobs: Vec<Asked> = jobs
            .into_iter()
            .map(|(submit, nodes, requested, used)| {
                let run = ((requested as f64 * used) as u64).max(1);
                Asked { submit, nodes, requested, run }
            })
            .collect();
        jobs.sort_by_key(|job| job.submit);
        let power = [high * 1000, mid * 1000, low * 1000];
        Story { nodes, limit: limit * 1000, power, jobs }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn agreement(story in story(30)) {
        let run = story.run("fcfs");
        story.assert_sound(&run);
        let times: Vec<Option<(u64, u64)>> = run.records.iter().map(|record| {
            record.state.has_run().then(|| (record.start.millis(), record.end.millis()))
        }).collect();
        prop_assert_eq!(times, Plain::run(&story));
    }

    /// With every order the budget holds, and whoever can be fed runs.
    #[test]
    fn orders_are_sound(story in story(30)) {
        for order in ["aged", "history"] {
            let run = story.run(order);
            story.assert_sound(&run);
            for (job, record) in story.jobs.iter().zip(&run.records) {
                let fits = job.nodes <= story.nodes
                    && u64::from(job.nodes) * story.power[SETTINGS - 1] <= story.limit;
                prop_assert_eq!(record.state.has_run(), fits);
            }
        }
    }
}
