//! The repertoire: which applications jobs may run, and what those say of the nodes they were measured on.

use std::sync::Arc;

use crate::job::Job;
use crate::machine::{Details, Machine, MachineError, assumed_idle};
use crate::model::Beta;
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{JobId, Share, Watts};
use crate::variation::{Application as OnEach, Curve};
use crate::world::assignment::Mix;
use crate::world::law::Table;
use crate::world::{Ask, Assignment, CLASSES, Conditions, Names, Parts, World, catalogue};

/// Which applications there are. On a machine whose processors were measured one by one it is always
/// those that they were measured with.
#[derive(Clone, Debug, Default, Hash)]
pub enum Repertoire {
    /// Those that are built in.
    #[default]
    BuiltIn,
    /// Those that a site has profiles of.
    Profiled(Arc<Profiles>),
}

/// Profiles of applications, each with its number.
#[derive(Clone, Debug, Hash)]
pub struct Profiles {
    profiles: Vec<Profile>,
    /// By which number a log calls each of them.
    numbers: Vec<u32>,
}

impl Profiles {
    /// Profiles in the order of the numbers of their applications, which count from 1. Those without rows
    /// stand for numbers that no application has.
    fn by_number(profiles: &[Profile]) -> Self {
        let known = (1..).zip(profiles).filter(|(_, profile)| !profile.rows.is_empty());
        let (numbers, profiles) = known.map(|(number, profile)| (number, profile.clone())).unzip();
        Profiles { profiles, numbers }
    }
}

/// Why applications cannot run on a machine.
#[derive(Debug, thiserror::Error)]
pub enum Unsuited {
    /// Profiles are of whole nodes.
    #[error(
        "profiles are of whole nodes of one kind, and the machine has several kinds or nodes that jobs share; name one \
        partition (--partition), or leave the profiles out"
    )]
    ProfilesOfKinds,
    /// Nodes of several kinds are switched off.
    #[error(
        "--switch-off does not work yet on a machine with nodes of several kinds or nodes that jobs share; name one partition \
        (--partition), or leave it out"
    )]
    SwitchedKinds,
    /// Nodes behind feeds are switched off.
    #[error(
        "--switch-off does not work on a machine with feeds, because feeds count all their nodes as idle at least; leave \
        one of them out"
    )]
    SwitchedBehindFeeds,
    /// The site's file does not go with the log.
    #[error("--site: {0}")]
    Site(String),
    /// There are none.
    #[error("there are no profiles; import or generate some (busbar profile)")]
    NoProfiles,
    /// Two say how jobs run.
    #[error(
        "both the machine's curves and the profiles describe applications; leave one of them out"
    )]
    TwoTruths,
    /// A profile is of nodes with more cores.
    #[error(
        "the profile of '{application}' has rows with {cores} cores a node, and a node of the \
         machine has {processors}; is it another machine (--machine)?"
    )]
    Cores {
        /// The application whose profile it is.
        application: String,
        /// Cores of one of its rows.
        cores: u32,
        /// Processors of a node of the machine.
        processors: u32,
    },
    /// A profile is of nodes that draw more.
    #[error(
        "the profile of '{application}' has rows under {cap} a socket, and a node of the machine \
         has {sockets} and draws {most} at most that a cap reaches; is it another machine (--machine)?"
    )]
    Cap {
        /// The application whose profile it is.
        application: String,
        /// The cap of one of its rows.
        cap: Watts,
        /// Sockets of a node of the machine.
        sockets: u32,
        /// The most that a cap may be.
        most: Watts,
    },
    /// Much more was drawn than the cap allows.
    #[error(
        "the profile of '{application}' says that {configuration} draw {power}, which is much more than the caps \
        of {sockets} per node allow; correct the row, or give the real cap"
    )]
    AboveCap {
        /// The application whose profile it is.
        application: String,
        /// The configuration that the row describes.
        configuration: Configuration,
        /// Its power.
        power: Watts,
        /// In words: how many sockets a node has.
        sockets: String,
    },
    /// Caps of which nothing is known.
    #[error(
        "'{application}' was not measured under a cap of {cap}: give the machine higher 'caps.levels'"
    )]
    OutOfRange {
        /// The application, by its name.
        application: String,
        /// The power cap.
        cap: Watts,
    },
    /// What comes out is no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

impl Repertoire {
    /// Those of which there are profiles; the built-in ones if there are none.
    pub fn of(profiles: &[Profile]) -> Self {
        match profiles.is_empty() {
            true => Repertoire::BuiltIn,
            false => Repertoire::Profiled(Arc::new(Profiles::by_number(profiles))),
        }
    }

    /// How many rows of its profiles have no measured power, but the most that their caps allow.
    pub(crate) fn unmeasured(&self) -> usize {
        let Repertoire::Profiled(known) = self else { return 0 };
        let rows = known.profiles.iter().flat_map(|profile| &profile.rows);
        rows.filter(|row| row.origin == Origin::Bound).count()
    }

    /// The names of the applications that jobs may run on a machine, in the order of their places.
    pub fn names(&self, machine: &Machine) -> Vec<String> {
        match (self, &machine.variation) {
            (_, Some(processors)) => {
                processors.applications().iter().map(|known| known.name.clone()).collect()
            }
            (Repertoire::BuiltIn, None) => {
                catalogue::applications().into_iter().map(|known| known.name).collect()
            }
            (Repertoire::Profiled(known), None) => {
                known.profiles.iter().map(|profile| profile.application.clone()).collect()
            }
        }
    }

    /// A machine with what nobody says of its nodes assumed, or taken from the profiles: the caps that were
    /// tried; and what its sockets do not draw is beyond the reach of caps.
    pub fn filled_in(&self, machine: &Machine) -> Result<Machine, Unsuited> {
        if let Some(kinds) = &machine.kinds {
            let kinds = Arc::new(kinds.try_map(|node| self.filled_in(node))?);
            return Ok(Machine { kinds: Some(kinds), ..machine.clone() });
        }
        let Repertoire::Profiled(known) = self else { return Ok(machine.filled_in(1)) };
        if machine.variation.is_some() {
            return Err(Unsuited::TwoTruths);
        }
        let sockets = machine.sockets_per_node;
        let rows = || known.profiles.iter().flat_map(|profile| &profile.rows);
        let of_node = |cap: Watts| cap.checked_mul(sockets).unwrap_or(Watts::LARGEST);
        let mut levels: Vec<Watts> = rows().map(|row| of_node(row.configuration.cap)).collect();
        levels.sort_unstable();
        levels.dedup();
        // Under the highest cap some draw a little more than it.
        let most_drawn = rows().map(drawn_by_node).max().ok_or(Unsuited::NoProfiles)?;
        let highest = levels.last().copied().unwrap_or_default().max(most_drawn);
        let machine = match machine.power_is_assumed {
            true => {
                let rest = machine.details.rest.unwrap_or_default();
                Machine { node_power: rest.saturating_add(highest), ..machine.clone() }
            }
            false => machine.clone(),
        };
        let rest = machine.details.rest;
        let rest = rest.unwrap_or_else(|| machine.node_power.saturating_sub(highest));
        let most = machine.node_power.saturating_sub(rest);
        for profile in &known.profiles {
            check(profile, &machine, most)?;
        }
        if levels.last() != Some(&most) {
            levels.push(most);
        }
        let least_busy = rows().map(drawn_by_node).min().unwrap_or_default().saturating_add(rest);
        let idle = machine.details.idle;
        let details = Details {
            idle: idle.or_else(|| Some(assumed_idle(machine.node_power, least_busy))),
            rest: Some(rest),
            levels: Some(machine.details.levels.clone().unwrap_or(levels)),
            ..machine.details.clone()
        };
        Ok(Machine { details, ..machine }.filled_in(1).validated()?)
    }

    /// Which application each job runs: what a file of names says; else, of applications that were
    /// measured, the one whose number its log gives; else one that is drawn.
    pub(crate) fn assigned(
        &self,
        machine: &Machine,
        jobs: &[Job],
        names: Option<&Names>,
        seed: u64,
    ) -> Assignment {
        let count = self.names(machine).len();
        let mix = match (self, &machine.variation) {
            (Repertoire::BuiltIn, None) => Ok(catalogue::mix()),
            _ => Mix::new((0..count).map(|place| (place, 1)).collect(), count),
        };
        let Ok(mix) = mix else { return Assignment::one() };
        let drawn = Assignment::drawn(jobs, &mix, seed);
        let application = |(id, job): (JobId, &Job)| {
            let named = names.and_then(|names| names.of(job)).map(usize::from);
            let said = || self.numbered(machine, job).filter(|place| *place < count);
            named.or_else(said).unwrap_or(drawn.application(id)) as u16
        };
        let applications = (0..).map(JobId).zip(jobs).map(application).collect();
        Assignment::of(applications).with_drawn_shapes(jobs, seed)
    }

    /// The application that a job names by its number. Built-in ones have no numbers that a log could know.
    fn numbered(&self, machine: &Machine, job: &Job) -> Option<usize> {
        let number = job.application?.0.get();
        match (self, &machine.variation) {
            (_, Some(_)) => Some(number as usize - 1),
            (Repertoire::Profiled(known), None) => {
                known.numbers.iter().position(|other| *other == number)
            }
            (Repertoire::BuiltIn, None) => None,
        }
    }

    /// The world of jobs on a machine of which [all is said](Repertoire::filled_in).
    pub fn world(&self, machine: &Machine, assigned: Assignment) -> Result<World, Unsuited> {
        let world = self.made(machine, assigned);
        let (node, levels) = (machine.node(), machine.details.levels.iter().flatten());
        let cap = levels.min().copied().unwrap_or(node.highest);
        let greediest = world.parts().greed(CLASSES - 1).max(1.0);
        let share = cap.as_f64() / node.highest.as_f64() / greediest;
        let ask = Ask { nodes: 1, beta: Beta::FULL };
        let at = Conditions { nodes: 1, cores: None, share };
        let unknown = world.applications().iter().find(|each| each.law.pace(ask, at).is_none());
        match unknown.map(|application| application.name.clone()) {
            Some(application) => Err(Unsuited::OutOfRange { application, cap }),
            None => Ok(world),
        }
    }

    /// The world of jobs that nobody knows yet. Those that come say by their numbers, which are the places of
    /// [names](Repertoire::names) counted from 1, which application they run. One that does not say runs an
    /// application of which nothing is known; where processors were measured, the one that draws most.
    pub fn open_world(&self, machine: &Machine) -> Result<World, Unsuited> {
        let world = self.world(machine, Assignment::one())?;
        let (world, unknown) = match &machine.variation {
            Some(processors) => {
                let most = |known: &OnEach| known.curves.iter().map(Curve::most).sum::<Watts>();
                let each = processors.applications().iter().enumerate();
                let greediest = each.max_by_key(|(_, known)| most(known)).map(|(place, _)| place);
                (world, greediest.unwrap_or(0))
            }
            None => {
                let known = world.applications().len();
                (world.with_unknown(), known)
            }
        };
        let count = world.applications().len();
        Ok(world.with_assigned(Assignment::open(count, unknown)))
    }

    fn made(&self, machine: &Machine, assigned: Assignment) -> World {
        let node = machine.node();
        let parts = machine.details.parts.unwrap_or(Parts::Alike);
        match (self, &machine.variation) {
            (_, Some(processors)) => World::measured(node, processors, assigned),
            (Repertoire::BuiltIn, None) => {
                World::new(node, parts, catalogue::applications(), assigned)
            }
            (Repertoire::Profiled(known), None) => {
                let sockets = machine.sockets_per_node;
                let table = |profile| Arc::new(Table::new(profile, sockets, node.highest));
                World::profiled(node, parts, known.profiles.iter().map(table).collect(), assigned)
            }
        }
    }
}

/// By how many per cent a draw may be above its cap: processors do not hold the lowest ones. Such a row counts as
/// under the cap that it draws.
const TOLERATED: u32 = 25;

/// What each node of a row draws, rounded down.
fn drawn_by_node(row: &Row) -> Watts {
    let nodes = u64::from(row.configuration.nodes.max(1));
    Watts::from_milliwatts(row.power.milliwatts() / nodes)
}

/// Whether a machine can do what a profile says.
fn check(profile: &Profile, machine: &Machine, most: Watts) -> Result<(), Unsuited> {
    let application = || profile.application.clone();
    let (sockets, processors) = (machine.sockets_per_node, machine.processors_per_node);
    for row in &profile.rows {
        let Configuration { nodes, cores, cap } = row.configuration;
        if cores > processors {
            return Err(Unsuited::Cores { application: application(), cores, processors });
        }
        let of_node = cap.checked_mul(sockets);
        let Some(of_node) = of_node.filter(|cap| (*cap).max(drawn_by_node(row)) <= most) else {
            return Err(Unsuited::Cap { application: application(), cap, sockets, most });
        };
        let tolerated = of_node.saturating_add(Share::percent(TOLERATED).of(of_node));
        if row.power > tolerated.checked_mul(nodes).unwrap_or(Watts::LARGEST) {
            return Err(Unsuited::AboveCap {
                application: application(),
                configuration: row.configuration,
                power: row.power,
                sockets: if sockets == 1 {
                    "1 socket".into()
                } else {
                    format!("{sockets} sockets")
                },
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::cab::{self, Preset};
    use crate::units::Span;

    /// A node of two cores under 40 W and 60 W, which draws 5 W less.
    fn profile() -> Profile {
        let row = |cap: u32| Row {
            configuration: Configuration { nodes: 1, cores: 2, cap: Watts::from_watts(cap) },
            time: Span::from_secs(6000 / cap),
            power: Watts::from_watts(cap - 5),
            origin: Origin::Measured,
        };
        Profile { application: "A".to_owned(), rows: vec![row(40), row(60)] }
    }

    fn machine() -> Machine {
        Machine { processors_per_node: 2, ..Machine::of_processors(4).unwrap() }
    }

    fn details(machine: &Machine, profile: Profile) -> Result<Details, String> {
        let filled = Repertoire::of(&[profile]).filled_in(machine);
        filled.map(|machine| machine.details).map_err(|why| why.to_string())
    }

    #[test]
    fn caps_are_those_that_were_tried() {
        let watts = Watts::from_watts;
        // Where nobody says what a node draws, the highest cap is all of it.
        let plain = details(&machine(), profile()).unwrap();
        assert_eq!(plain.levels, Some(vec![watts(40), watts(60)]));
        assert_eq!((plain.rest, plain.idle), (Some(Watts::ZERO), Some(watts(9))));
        // What sockets cannot draw is beyond the reach of caps.
        let said = Machine { node_power: watts(100), power_is_assumed: false, ..machine() };
        let said = details(&said, profile()).unwrap();
        assert_eq!((said.rest, said.idle), (Some(watts(40)), Some(watts(15))));
        assert_eq!(said.levels, Some(vec![watts(40), watts(60)]));
    }

    #[test]
    fn machines_that_do_not_suit_are_told() {
        let error = |machine: &Machine, profile| details(machine, profile).unwrap_err();
        let small = Machine { processors_per_node: 1, ..machine() };
        assert!(error(&small, profile()).contains("rows with 2 cores a node"));
        let weak =
            Machine { node_power: Watts::from_watts(50), power_is_assumed: false, ..machine() };
        let said = error(&weak, profile());
        assert!(said.contains("rows under 60W a socket") && said.contains("50W"), "{said}");
        let mut above = profile();
        above.rows[0].power = Watts::from_watts(51);
        let said = error(&machine(), above.clone());
        assert!(said.contains("1 node × 2 cores at 40W draw 51W"), "{said}");
        // A little more is what processors do; the machine must be able to feed it.
        above.rows[0].power = Watts::from_watts(42);
        above.rows[1].power = Watts::from_watts(61);
        let levels = details(&machine(), above).unwrap().levels.unwrap();
        assert_eq!(levels, [40, 60, 61].map(Watts::from_watts));
        let varied = Machine::catalyst(2, 1).unwrap();
        assert!(error(&varied, profile()).contains("leave one of them out"));
    }

    /// Numbers are those of the database, also where some of them are free.
    #[test]
    fn jobs_run_what_they_name() {
        use std::num::NonZeroU32;

        use crate::job::ApplicationId;
        use crate::units::Instant;

        let nothing = Profile { rows: Vec::new(), ..profile() };
        let other = Profile { application: "B".to_owned(), ..profile() };
        let repertoire = Repertoire::of(&[profile(), nothing, other]);
        assert_eq!(repertoire.names(&machine()), ["A", "B"]);
        let job = |number| Job {
            application: NonZeroU32::new(number).map(ApplicationId),
            ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1))
        };
        let assigned = repertoire.assigned(&machine(), &[1, 3, 1].map(job), None, 1);
        let of = |place| assigned.application(JobId(place));
        assert_eq!([of(0), of(1), of(2)], [0, 1, 0]);
        let open = repertoire.open_world(&repertoire.filled_in(&machine()).unwrap()).unwrap();
        let names: Vec<&str> = open.applications().iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["A", "B", "unknown"]);
        let mut learning = open.assigned().clone();
        let learned = [0, 1, 2, 9].map(|number| learning.learn(JobId(number), &job(number)));
        assert_eq!(learned, [2, 0, 1, 2]);
    }

    #[test]
    fn the_profiles_of_cab_suit_it() {
        let profiles = cab::generate(Preset::Cab, 1);
        let machine = Repertoire::of(&profiles).filled_in(&Machine::cab()).unwrap();
        assert_eq!(machine.node().highest, Watts::from_watts(230));
        assert_eq!(machine.details.idle, Some(Watts::from_milliwatts(34_500)));
    }
}
