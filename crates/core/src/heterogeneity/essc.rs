//! Machines like those that the Extreme Scale Systems Center planned with (Khemka and others:
//! Comparison of energy-constrained resource allocation heuristics under different task management
//! environments, 2015), synthetic: the centre's own tables are not public.
//!
//! Thirteen machine types, four of them special-purpose, and a hundred task types, 17 of them
//! special. Times and powers in P-state 0 are drawn by the coefficient-of-variation method: a
//! gamma variable for each task type around the mean of all, and around that another one for each
//! machine type. Nothing is fitted but the means that the paper states.

use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, Gamma};
use rand_pcg::Pcg64Dxsm;

use super::{MachineType, NotTables, PState, Purpose, Tables};
use crate::units::{Span, Watts};

/// Task types that every general-purpose machine runs and no special one.
pub const GENERAL_TASKS: u32 = 83;
/// Task types that one special machine type runs fast.
pub const SPECIAL_TASKS: u32 = 17;

/// Machines of each special type, of a hundred.
const SPECIAL: [u32; 4] = [2, 2, 3, 3];
/// Machines of each general type, of a hundred.
const GENERAL: [u32; 9] = [5, 5, 5, 10, 10, 10, 10, 15, 20];
/// How many special task types each special machine type runs: three to five, seventeen in all.
const SPECIALITIES: [[u32; 4]; 2] = [[5, 5, 4, 3], [5, 4, 4, 4]];
/// What is left of the dynamic power in each P-state.
const SCALES: [f64; 3] = [1.0, 0.75, 0.5];

/// What tables are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Essc {
    /// How many machines there are.
    pub machines: u32,
    /// Mean minutes of a task on a general-purpose machine.
    pub general_minutes: f64,
    /// Mean minutes of a special task on its special machine.
    pub special_minutes: f64,
    /// Mean dynamic watts in P-state 0.
    pub dynamic_watts: f64,
    /// Mean static watts.
    pub static_watts: f64,
    /// How far static power may be from its mean, as a share of it.
    pub static_spread: f64,
    /// Coefficients of variation of times: among task types, and among machine types.
    pub time_variation: [f64; 2],
    /// The same of dynamic power.
    pub power_variation: [f64; 2],
    /// The same of how much longer tasks take in a slower P-state.
    pub state_variation: f64,
}

impl Default for Essc {
    fn default() -> Self {
        Essc {
            machines: 100,
            general_minutes: 10.0,
            special_minutes: 1.0,
            dynamic_watts: 133.0,
            static_watts: 63.0,
            static_spread: 0.2,
            time_variation: [0.25, 0.35],
            power_variation: [0.1, 0.2],
            state_variation: 0.1,
        }
    }
}

/// A gamma variable of this mean and coefficient of variation; just the mean where that is nothing.
fn gamma(rng: &mut impl Rng, mean: f64, variation: f64) -> f64 {
    let square = variation * variation;
    match Gamma::new(1.0 / square, mean * square) {
        Ok(gamma) if square > 0.0 => gamma.sample(rng),
        _ => mean,
    }
}

impl Essc {
    /// What is wrong with the parameters, if anything: which, and why.
    pub fn mistake(&self) -> Option<(&'static str, String)> {
        let most = Tables::MOST_MACHINES;
        if !(1..=most).contains(&self.machines) {
            return Some(("machines", format!("{} is not from 1 to {most}", self.machines)));
        }
        let [task_time, machine_time] = self.time_variation;
        let [task_power, machine_power] = self.power_variation;
        let positive = [
            ("general_minutes", self.general_minutes, 10_000.0),
            ("special_minutes", self.special_minutes, 10_000.0),
            ("dynamic_watts", self.dynamic_watts, 1e6),
        ];
        for (key, value, most) in positive {
            if !(value >= 0.001 && value <= most) {
                return Some((key, format!("{value} is not from 0.001 to {most}")));
            }
        }
        let bounded = [
            ("static_watts", self.static_watts, 1e6),
            ("static_spread", self.static_spread, 1.0),
            ("task_cv", task_time, 2.0),
            ("machine_cv", machine_time, 2.0),
            ("task_power_cv", task_power, 2.0),
            ("machine_power_cv", machine_power, 2.0),
            ("pstate_cv", self.state_variation, 2.0),
        ];
        let wrong = bounded.into_iter().find(|(_, value, most)| !(0.0..=*most).contains(value));
        wrong.map(|(key, value, most)| (key, format!("{value} is not from 0 to {most}")))
    }

    /// Draws the tables. The first [`GENERAL_TASKS`] task types are the general ones. Machine types that
    /// have no machine are left out.
    pub fn draw(&self, seed: u64) -> Result<Tables, NotTables> {
        let mut rng = Pcg64Dxsm::seed_from_u64(seed);
        let machine_types = self.machine_types();
        let task_types: Vec<String> = (1..=GENERAL_TASKS)
            .map(|number| format!("general-{number}"))
            .chain((1..=SPECIAL_TASKS).map(|number| format!("special-{number}")))
            .collect();
        let runs = specialities(&mut rng);
        let statics: Vec<f64> = machine_types
            .iter()
            .map(|_| self.static_watts * (1.0 + self.static_spread * rng.random_range(-1.0..=1.0)))
            .collect();
        // Where there are few machines, there are none of some types.
        let present: Vec<bool> = machine_types.iter().map(|kind| kind.machines > 0).collect();
        let mut states = Vec::new();
        for task in 0..GENERAL_TASKS + SPECIAL_TASKS {
            let minutes = gamma(&mut rng, self.general_minutes, self.time_variation[0]);
            let watts = gamma(&mut rng, self.dynamic_watts, self.power_variation[0]);
            let speciality = task.checked_sub(GENERAL_TASKS).map(|place| runs[place as usize]);
            for (place, fixed) in statics.iter().enumerate() {
                // Drawn for all, so that who runs what does not move the others' numbers.
                let time = gamma(&mut rng, minutes, self.time_variation[1]);
                let dynamic = gamma(&mut rng, watts, self.power_variation[1]);
                let slower = self.slower(&mut rng);
                let factor = match machine_types[place].purpose {
                    Purpose::General => 1.0,
                    Purpose::Special => self.special_minutes / self.general_minutes,
                };
                let runs_here = match machine_types[place].purpose {
                    Purpose::General => true,
                    Purpose::Special => speciality == Some(place),
                };
                if present[place] {
                    states.push(match runs_here {
                        true => p_states(time * factor, *fixed, dynamic, slower),
                        false => Vec::new(),
                    });
                }
            }
        }
        let machine_types = machine_types.into_iter().filter(|kind| kind.machines > 0).collect();
        Tables::new(machine_types, task_types, states)
    }

    /// How many times as long a task takes in each P-state; never less than in P-state 0.
    fn slower(&self, rng: &mut impl Rng) -> [f64; 3] {
        SCALES.map(|scale| match scale {
            1.0 => 1.0,
            scale => gamma(rng, 1.0 / f64::sqrt(scale), self.state_variation).max(1.0),
        })
    }

    /// As many of each type as there are of a hundred, in proportion.
    fn machine_types(&self) -> Vec<MachineType> {
        let purposes = [(Purpose::Special, &SPECIAL[..]), (Purpose::General, &GENERAL[..])];
        let hundred = purposes.into_iter().flat_map(|(purpose, counts)| {
            counts.iter().zip(1..).map(move |(count, number)| (purpose, number, *count))
        });
        let mut so_far = 0u64;
        let share = |of_hundred: u64| (of_hundred * u64::from(self.machines) + 50) / 100;
        hundred
            .map(|(purpose, number, count)| {
                let before = share(so_far);
                so_far += u64::from(count);
                let name = match purpose {
                    Purpose::Special => format!("special-{number}"),
                    Purpose::General => format!("general-{number}"),
                };
                MachineType { name, machines: (share(so_far) - before) as u32, purpose }
            })
            .collect()
    }
}

/// The machine type that each special task type is special for.
fn specialities(rng: &mut impl Rng) -> Vec<usize> {
    // The sixteen ways to have seventeen as four numbers from three to five, each as likely: twelve
    // orders of the first four numbers, four of the second.
    let mut counts = SPECIALITIES[usize::from(rng.random_range(0..4) == 0)];
    for place in (1..counts.len()).rev() {
        counts.swap(place, rng.random_range(0..=place));
    }
    let kinds = counts.iter().enumerate();
    let mut runs: Vec<usize> =
        kinds.flat_map(|(kind, count)| (0..*count).map(move |_| kind)).collect();
    for place in (1..runs.len()).rev() {
        runs.swap(place, rng.random_range(0..=place));
    }
    runs
}

fn p_states(minutes: f64, fixed: f64, dynamic: f64, slower: [f64; 3]) -> Vec<PState> {
    let at_least = |millis: u64| Span::from_millis(millis.max(1));
    let mut states: Vec<PState> = Vec::new();
    for (number, (scale, slower)) in (0u8..).zip(SCALES.into_iter().zip(slower)) {
        let time = Span::from_secs_f64_rounded_up(minutes * 60.0 * slower).unwrap_or(Span::ZERO);
        // P-state 0 is faster than the others by a millisecond at least, and stays what it is called.
        let fastest = states.first().map_or(0, |state| state.time.millis() + 1);
        let power = Watts::from_f64_rounded_up(fixed + scale * dynamic).unwrap_or(Watts::LARGEST);
        let power = power.max(Watts::from_milliwatts(1));
        states.push(PState { number, time: at_least(time.millis().max(fastest)), power });
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heterogeneity::TaskType;

    fn mean(values: impl Iterator<Item = f64>) -> f64 {
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    /// What the paper states of its machines, on the mean of some draws.
    #[test]
    fn the_published_facts_hold() {
        let draws: Vec<Tables> = (1..=20).map(|seed| Essc::default().draw(seed).unwrap()).collect();
        for tables in &draws {
            let kinds = tables.machine_types();
            let counts: Vec<u32> = kinds.iter().map(|kind| kind.machines).collect();
            assert_eq!(counts, [2, 2, 3, 3, 5, 5, 5, 10, 10, 10, 10, 15, 20]);
            assert_eq!((tables.machines(), tables.task_types().len()), (100, 100));
            for (place, kind) in kinds.iter().enumerate() {
                let tasks =
                    (0..100).filter(|task| !tables.states(TaskType(*task), place).is_empty());
                let tasks: Vec<u32> = tasks.collect();
                match kind.purpose {
                    Purpose::General => assert_eq!(tasks.len(), 100),
                    Purpose::Special => {
                        assert!((3..=5).contains(&tasks.len()), "{}", tasks.len());
                        assert!(tasks.iter().all(|task| *task >= GENERAL_TASKS));
                    }
                }
            }
            for (task, place, state) in tables.entries() {
                let fastest = tables.states(task, place)[0];
                assert_eq!(fastest.number, 0, "P-state 0 is the fastest");
                assert!(state.number == 0 || state.time > fastest.time);
            }
        }
        let purpose = |tables: &Tables, place: usize| tables.machine_types()[place].purpose;
        let minutes = |wanted| {
            mean(draws.iter().flat_map(|tables| {
                let fastest = tables.entries().filter(|(_, _, state)| state.number == 0);
                let fits = fastest.filter(move |(_, place, _)| purpose(tables, *place) == wanted);
                fits.map(|(_, _, state)| state.time.secs_f64() / 60.0)
            }))
        };
        assert!((minutes(Purpose::General) - 10.0).abs() < 0.2, "{}", minutes(Purpose::General));
        assert!((minutes(Purpose::Special) - 1.0).abs() < 0.1, "{}", minutes(Purpose::Special));
        let watts = mean(draws.iter().flat_map(|tables| {
            let fastest = tables.entries().filter(|(_, _, state)| state.number == 0);
            fastest.map(|(_, _, state)| state.power.as_f64())
        }));
        assert!((watts - 196.0).abs() < 3.0, "{watts}");
        // How much longer in P-state 2: the mean is 1/√0.5, and a little more for what was raised.
        let longer = mean(draws.iter().flat_map(|tables| {
            let slowest = tables.entries().filter(|(_, _, state)| state.number == 2);
            slowest.map(|(task, place, state)| {
                state.time.secs_f64() / tables.states(task, place)[0].time.secs_f64()
            })
        }));
        assert!((longer - 2f64.sqrt()).abs() < 0.01, "{longer}");
    }

    #[test]
    fn a_seed_repeats_and_sizes_are_in_proportion() {
        assert_eq!(Essc::default().draw(7), Essc::default().draw(7));
        assert_ne!(Essc::default().draw(7), Essc::default().draw(8));
        for machines in [1, 7, 13, 250, 1000] {
            let tables = Essc { machines, ..Essc::default() }.draw(1).unwrap();
            assert_eq!(tables.machines(), machines);
        }
        let wrong = Essc { time_variation: [f64::NAN, 0.0], ..Essc::default() }.mistake();
        assert_eq!(wrong.map(|(key, _)| key), Some("task_cv"));
        assert_eq!(
            Essc { machines: 0, ..Essc::default() }.mistake().map(|it| it.0),
            Some("machines")
        );
        assert_eq!(Essc::default().mistake(), None);
        let plain = Essc { time_variation: [0.0; 2], state_variation: 0.0, ..Essc::default() };
        let tables = plain.draw(1).unwrap();
        assert_eq!(tables.states(TaskType(0), 12)[0].time, Span::from_secs(600));
    }
}
