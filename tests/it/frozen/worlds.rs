//! The samples whose menus are frozen: machines, laws and jobs, in words that belong to no model.

use std::num::NonZeroU32;
use std::sync::Arc;

use busbar::heterogeneity::{Tables, TaskType, essc};
use busbar::job::{ApplicationId, Job, NodeRange};
use busbar::machine::{Gear, Gearbox, Machine, Sensitivity};
use busbar::profile::cab::{self, Preset};
use busbar::profile::fit::{self, Training};
use busbar::profile::{Profile, Row};
use busbar::units::{Instant, Share, Span, Watts};
use busbar::variation::catalyst::{Catalyst, RATED, Shape};

/// How jobs run, and what is believed of it.
#[derive(Clone, Debug)]
pub(super) enum World {
    /// As asked for, every node at full power.
    Plain,
    /// Lower frequencies; the sensitivities of jobs are known to a policy, or taken to be 1.
    Gears { known: bool, betas: Betas },
    /// Any of several numbers of nodes under any of several caps, by PASS.
    Pass(Pass),
    /// Tables of applications: what is believed, and what is true. With `per_node`, so much power is
    /// set aside for each node, whatever the tables say.
    Tables { believed: Vec<Profile>, truth: Vec<Profile>, per_node: Option<Watts> },
    /// Processors with a curve of speed over power each: the machine's. Where a job names no
    /// application, one is drawn from the seed.
    Curves { seed: u64 },
    /// Times and powers by type of task, type of machine and P-state.
    States(Arc<Tables>),
}

/// The sensitivities of jobs to frequency.
#[derive(Clone, Debug)]
pub(super) enum Betas {
    /// One for each job, in the order of the jobs.
    Told(Vec<f64>),
    /// Drawn as the machine says.
    Drawn { seed: u64 },
}

/// A world of PASS.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    pub(super) feed: Feed,
    pub(super) kinds: Kinds,
    /// Whether jobs run on the nodes they ask for alone.
    pub(super) is_as_asked: bool,
    /// Megabytes a second of a link where nodes need not boot; otherwise the usual links and times.
    pub(super) links: Option<f64>,
}

/// The caps of a processor, and what the rest of its node draws.
#[derive(Clone, Debug)]
pub(super) enum Feed {
    /// In watts: the rest, the caps, and the power without a cap to which the laws are scaled.
    Watts { rest: u32, caps: Vec<u32>, full: u32 },
    /// So many caps on nodes that are divided as in the paper.
    Levels(u32),
}

/// Which of PASS's applications jobs run, by number from 1, and how they scale.
#[derive(Clone, Debug)]
pub(super) enum Kinds {
    /// The application, the average parallelism over the nodes asked for, and its variation.
    Told(Vec<(usize, f64, f64)>),
    /// Drawn; every entry of the mix is equally likely.
    Drawn { mix: Vec<usize>, seed: u64 },
    /// Nobody says; jobs become known when they arrive.
    Unknown,
}

/// A job, and how long it really runs as asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) job: Job,
    pub(super) run: Span,
}

/// Named nodes with a cap in milliwatts each.
pub(super) type Named = Vec<(u32, u64)>;

/// A world, a machine and the jobs that are asked about.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) machine: Machine,
    pub(super) world: World,
    pub(super) jobs: Vec<Asked>,
    /// Sets of named nodes to ask about, by the job's place.
    pub(super) named: Vec<(usize, Named)>,
}

impl Sample {
    fn new(name: &str, machine: Machine, world: World, jobs: Vec<Asked>) -> Self {
        Sample { name: name.to_owned(), machine, world, jobs, named: Vec::new() }
    }
}

/// A request for nodes; times in milliseconds.
fn ask(nodes: u32, requested: u64, run: u64) -> Asked {
    let requested = Span::from_millis(requested);
    Asked { job: Job::new(0, Instant::ZERO, nodes, requested), run: Span::from_millis(run) }
}

impl Asked {
    fn of(mut self, application: u32) -> Self {
        self.job.application = NonZeroU32::new(application).map(ApplicationId);
        self
    }

    fn within(mut self, fewest: u32, most: u32) -> Self {
        self.job.terms.nodes = NodeRange::new(fewest, most);
        self
    }

    fn on_processors(mut self, processors: u32) -> Self {
        self.job.processors = processors;
        self
    }
}

/// Requests of all sizes and lengths, with run times below, at and above what was asked for.
fn requests() -> Vec<Asked> {
    vec![
        ask(1, 3_600_000, 1_234_567),
        ask(2, 1, 1),
        ask(3, 0, 0),
        ask(4, 599_999, 600_001),
        ask(5, 86_400_000, 86_399_999),
        ask(7, 1000, 2000),
        ask(8, 7_200_000, 7_200_000),
        ask(16, 333_333, 111_111),
        ask(32, 10_800_000, 5_400_001),
        ask(33, 60_000, 59_999),
        ask(64, 900_000, 1),
        ask(100, 43_200_000, 12_345_678),
        ask(256, 2_592_000_000, 1_000_000_007),
        ask(300, 3_600_000, 3_600_000),
    ]
}

pub(super) fn plain() -> Vec<Sample> {
    let large = Machine::of_processors(256).unwrap();
    vec![
        Sample::new("plain-256", large, World::Plain, requests()),
        Sample::new("plain-cab", Machine::cab(), World::Plain, requests()),
    ]
}

/// The sensitivities of [`requests`].
const BETAS: [f64; 14] =
    [1.0, 0.0, 0.5, 0.25, 0.123456789, 0.999999, 0.3, 0.75, 0.333333, 0.05, 0.9, 0.4, 0.6, 1.0];

pub(super) fn gears() -> Vec<Sample> {
    let machine = || Machine::of_processors(256).unwrap();
    let told = |known| World::Gears { known, betas: Betas::Told(BETAS.to_vec()) };
    let drawn = |known, seed| World::Gears { known, betas: Betas::Drawn { seed } };
    // So long that the factor of a slower gear can be read from the time.
    let long = |nodes: u32| ask(nodes, 1 << 32, 1 << 32);
    let sizes = [1, 2, 4, 5, 16, 32, 33, 200].map(long).to_vec();
    let gear = Gear::new;
    let beta = |up_to, mean, variance| Sensitivity { up_to, mean, variance };
    let own = Gearbox::new(
        vec![gear(1.2, 0.9), gear(1.5, 0.95), gear(2.0, 1.0), gear(3.1, 1.25)],
        0.4,
        vec![beta(Some(16), 0.8, 0.04), beta(None, 0.2, 0.0)],
    );
    let four = Machine {
        processors_per_node: 4,
        node_power: Watts::from_milliwatts(333_333),
        gearbox: own.unwrap(),
        ..machine()
    };
    // Gears that save not even a milliwatt are left out.
    let tiny = Machine { node_power: Watts::from_milliwatts(3), ..machine() };
    vec![
        Sample::new("gears-known", machine(), told(true), requests()),
        Sample::new("gears-unknown", machine(), told(false), requests()),
        Sample::new("gears-drawn-1", machine(), drawn(true, 1), sizes.clone()),
        Sample::new("gears-drawn-7", machine(), drawn(false, 7), sizes),
        Sample::new(
            "gears-own-3",
            four,
            drawn(true, 3),
            vec![
                long(1).on_processors(1),
                long(4).on_processors(16),
                long(5).on_processors(17),
                ask(9, 12_345, 67_890).on_processors(36),
            ],
        ),
        Sample::new("gears-tiny", tiny, told(false), requests()[..3].to_vec()),
    ]
}

/// The caps of the paper's testbed.
pub(super) fn testbed_feed() -> Feed {
    Feed::Watts { rest: 61, caps: vec![30, 32, 34, 39, 45, 55], full: 60 }
}

/// PARM's machines: so many nodes, with so many watts for a node without a cap.
pub(super) fn parm_machine(nodes: u32, watts: u32) -> Machine {
    Machine {
        name: "PARM's".to_owned(),
        nodes,
        processors_per_node: 1,
        sockets_per_node: 1,
        node_power: Watts::from_watts(watts),
        ..Machine::cab()
    }
}

pub(super) fn pass() -> Vec<Sample> {
    let world = |feed, kinds| World::Pass(Pass { feed, kinds, is_as_asked: false, links: None });
    let as_asked = |feed, kinds| World::Pass(Pass { feed, kinds, is_as_asked: true, links: None });
    let caps = |caps: &[u32]| Feed::Watts { rest: 56, caps: caps.to_vec(), full: 60 };
    let even = [30, 36, 42, 48, 54, 60];
    let testbed_kinds = Kinds::Told(vec![
        (1, 1.0, 0.0),
        (2, 1.5, 0.5),
        (3, 2.0, 1.0),
        (4, 3.0, 0.0),
        (5, 1.0, 1.0),
        (1, 3.0, 0.5),
        (2, 2.0, 2.0),
    ]);
    let testbed_jobs = vec![
        ask(2, 120_000, 120_000),
        ask(3, 1_199_999, 600_001),
        ask(5, 777_777, 888_888),
        ask(8, 1, 1),
        ask(13, 300_000, 299_999),
        ask(20, 1_000_000, 999_999),
        ask(38, 600_000, 600_000),
    ];
    let testbed = World::Pass(Pass {
        feed: testbed_feed(),
        kinds: testbed_kinds.clone(),
        is_as_asked: false,
        links: Some(117.0),
    });
    let machine = || Machine::of_processors(256).unwrap();
    let few = Kinds::Told(vec![(1, 1.5, 0.5), (4, 2.0, 0.5), (5, 1.0, 0.0), (3, 3.0, 1.0)]);
    let few_jobs = vec![
        ask(1, 3_600_000, 1_234_567),
        ask(10, 86_400_000, 43_200_001),
        // From half of what it asks for to twice of it is more than there is, or its range is narrow.
        ask(300, 3_600_000, 3_600_000),
        ask(16, 600_000, 500_000).within(10, 17),
    ];
    let drawn = |mix: &[usize], seed| Kinds::Drawn { mix: mix.to_vec(), seed };
    let long = |nodes: u32| ask(nodes, 1 << 32, 1 << 31);
    let projection_jobs = vec![
        ask(64, 1_863_000, 1_863_000),
        ask(512, 86_400_000, 86_400_000),
        ask(4096, 60_000, 60_000),
        ask(40_960, 3_828_001, 3_828_001),
    ];
    vec![
        Sample::new("pass-testbed", parm_machine(38, 116), testbed, testbed_jobs.clone()),
        Sample::new(
            "pass-testbed-as-asked",
            parm_machine(28, 116),
            as_asked(Feed::Watts { rest: 61, caps: vec![55], full: 60 }, testbed_kinds),
            testbed_jobs,
        ),
        Sample::new(
            "pass-projection",
            parm_machine(55_248, 116),
            world(caps(&even), few.clone()),
            projection_jobs.clone(),
        ),
        Sample::new(
            "pass-uniform-40",
            parm_machine(49_493, 116),
            as_asked(caps(&[40]), few.clone()),
            projection_jobs,
        ),
        Sample::new(
            "pass-levels-1",
            machine(),
            world(Feed::Levels(1), few.clone()),
            few_jobs.clone(),
        ),
        Sample::new(
            "pass-levels-3",
            machine(),
            world(Feed::Levels(3), few.clone()),
            few_jobs.clone(),
        ),
        Sample::new(
            "pass-levels-8-as-asked",
            machine(),
            as_asked(Feed::Levels(8), few),
            few_jobs.clone(),
        ),
        Sample::new(
            "pass-drawn-1",
            machine(),
            world(Feed::Levels(6), drawn(&[1, 2, 3, 4, 5], 1)),
            [1, 3, 4, 10, 64, 200].map(long).to_vec(),
        ),
        // Three of four are Jacobi2D, as in the paper's set of low sensitivity.
        Sample::new(
            "pass-drawn-low-3",
            parm_machine(38, 116),
            as_asked(testbed_feed(), drawn(&[5, 5, 5, 2], 3)),
            [2, 4, 7, 11, 16, 20].map(long).to_vec(),
        ),
        Sample::new(
            "pass-unknown",
            machine(),
            world(Feed::Levels(3), Kinds::Unknown),
            vec![
                ask(4, 3_600_000, 1_800_000),
                ask(4, 3_600_000, 1_800_000).of(1),
                ask(6, 1000, 1000).of(2),
                ask(6, 1000, 1000).of(5),
                ask(6, 1000, 1000).of(77),
                ask(6, 1000, 1000).of(3).within(2, 40),
            ],
        ),
    ]
}

/// A part of a table that shows all of its corners.
fn thinned(profile: &Profile) -> Profile {
    let is_kept = |row: &&Row| {
        [8, 28, 64].contains(&row.configuration.nodes) && [8, 16].contains(&row.configuration.cores)
    };
    Profile {
        application: profile.application.clone(),
        rows: profile.rows.iter().filter(is_kept).copied().collect(),
    }
}

/// Each table as a regression says that has seen some of its rows.
pub(super) fn regressed(profiles: &[Profile], training: Training) -> Vec<Profile> {
    profiles.iter().map(|profile| fit::predicted(profile, &training).unwrap()).collect()
}

/// Every other number of nodes is measured, and a regression fills in the rest.
fn half_measured(profile: &Profile) -> Profile {
    let is_measured = |row: &&Row| row.configuration.nodes.is_multiple_of(8);
    let rows: Vec<Row> = profile.rows.iter().filter(is_measured).copied().collect();
    let application = profile.application.clone();
    let measured = Profile { application: application.clone(), rows };
    let model = fit::fit(&application, &measured.rows).unwrap();
    Profile { application, rows: fit::complete(&measured, &model, cab::configurations()) }
}

/// Rows that are drawn as in RMAP's reproduction.
pub(super) fn random_rows(seed: u64) -> Training {
    Training::Random { share: Share::percent(10), seed }
}

pub(super) fn tables() -> Vec<Sample> {
    let each = |profiles: &[Profile]| profiles.iter().map(thinned).collect::<Vec<_>>();
    let world = |believed: &[Profile], truth: &[Profile], per_node| World::Tables {
        believed: believed.to_vec(),
        truth: truth.to_vec(),
        per_node,
    };
    let measured = cab::generate(Preset::Cab, 1);
    let contended = cab::generate(Preset::CabContended, 2);
    let random = regressed(&measured, random_rows(1));
    let designed = regressed(&contended, Training::Designed { share: Share::percent(10) });
    let half: Vec<Profile> = contended.iter().map(half_measured).collect();
    let thin = each(&measured);
    // Some ask for less time than they need anywhere, and some for more.
    let one = |application: u32| {
        ask(application * 7, 100_000 * u64::from(application), 1).of(application)
    };
    let few = vec![
        ask(1, 1000, 500_000).of(2),
        ask(29, 1_000_000, 1).of(5),
        ask(64, 0, 0).of(7),
        ask(100, 250_000, 250_000).of(8),
    ];
    let ranged = vec![
        ask(16, 1, 1).of(3).within(9, 30),
        ask(16, 400_000, 1).of(3).within(4, 8),
        ask(16, 1, 1).of(4).within(60, 64),
        ask(40, 1, 1).of(4).within(1, 28),
    ];
    let cab = Machine::cab;
    let smaller = Machine { nodes: 40, ..cab() };
    vec![
        Sample::new("tables-measured", cab(), world(&thin, &thin, None), few.clone()),
        Sample::new(
            "tables-random",
            cab(),
            world(&each(&random), &thin, None),
            (1..=8).map(one).collect(),
        ),
        Sample::new(
            "tables-designed",
            cab(),
            world(&each(&designed), &each(&contended), None),
            [2, 6].map(one).to_vec(),
        ),
        Sample::new(
            "tables-half",
            cab(),
            world(&each(&half), &each(&contended), None),
            [4, 7].map(one).to_vec(),
        ),
        Sample::new(
            "tables-230W",
            cab(),
            world(&thin, &thin, Some(Watts::from_watts(230))),
            [1, 5].map(one).to_vec(),
        ),
        Sample::new("tables-ranged", cab(), world(&thin, &thin, None), ranged.clone()),
        Sample::new("tables-ranged-random", cab(), world(&each(&random), &thin, None), ranged),
        Sample::new("tables-40-nodes", smaller, world(&thin, &thin, None), few),
    ]
}

pub(super) fn curves() -> Vec<Sample> {
    let of_all = |nodes: u32, cap: u64| (0..nodes).map(|node| (node, cap)).collect::<Named>();
    let sets: Vec<Named> = vec![
        vec![(0, 60_000)],
        vec![(0, 51_000), (1, 51_000)],
        vec![(0, 115_000), (5, 75_000), (7, 63_217)],
        vec![(3, 51_001), (11, 67_891), (19, 88_888), (23, 114_999)],
        vec![(2, 1_000_000)],
        of_all(24, 51_000),
        of_all(24, 75_000),
        of_all(24, 115_000),
        // Below the lowest cap, and a processor that is not there.
        vec![(3, 50_999)],
        vec![(24, 60_000)],
    ];
    let jobs = vec![
        ask(1, 3_600_000, 1_234_567).of(1),
        ask(4, 600_000, 600_000).of(2),
        ask(24, 1, 1).of(3),
        ask(13, 86_400_000, 86_399_999).of(4),
        ask(32, 777_777, 888_888).of(77),
        ask(2, 1_000_003, 999_983),
        ask(2, 1_000_003, 999_983),
        ask(3, 0, 0),
    ];
    let named: Vec<(usize, Named)> =
        (0..jobs.len()).flat_map(|job| sets.iter().map(move |set| (job, set.clone()))).collect();
    let cubic = Catalyst { processors: 24, seed: 5, shape: Shape::Cubic, noise: Share::percent(1) };
    let cubic = cubic.measure().processors().unwrap();
    let noisy = Machine::of_varied(cubic, "like Catalyst").unwrap();
    let rated = Machine { node_power: RATED, ..noisy };
    let made_up = Machine::catalyst(24, 1).unwrap();
    let world = |seed| World::Curves { seed };
    [("curves-made-up", made_up, 1), ("curves-cubic", rated, 9)]
        .into_iter()
        .map(|(name, machine, seed)| Sample {
            named: named.clone(),
            ..Sample::new(name, machine, world(seed), jobs.clone())
        })
        .collect()
}

/// On the first machine of each type: every P-state at just the power it needs, and a milliwatt less than
/// the slowest one needs.
pub(super) fn states() -> Vec<Sample> {
    let tables = Arc::new(essc::Essc::default().draw(1).unwrap());
    let jobs = [1, 42, 83, 84, 100].map(|task| ask(1, 600_000, 300_000).of(task)).to_vec();
    let unknown = [ask(1, 600_000, 300_000), ask(1, 600_000, 300_000).of(101)];
    let mut named = Vec::new();
    for (place, asked) in jobs.iter().enumerate() {
        let task = TaskType(asked.job.application.map_or(0, |number| number.0.get() - 1));
        for kind in 0..tables.machine_types().len() {
            let first = tables.nodes(kind).start;
            let states = tables.states(task, kind);
            let powers = states.iter().map(|state| state.power.milliwatts());
            let too_low = states.last().map(|slowest| slowest.power.milliwatts() - 1);
            let caps = powers.chain(too_low);
            named.extend(caps.map(|cap| (place, vec![(first, cap)])));
            if states.is_empty() {
                named.push((place, vec![(first, 1_000_000)]));
            }
        }
    }
    named.push((0, vec![(0, 1_000_000), (1, 1_000_000)]));
    named.push((0, vec![(tables.machines(), 1_000_000)]));
    let jobs = jobs.into_iter().chain(unknown).collect();
    let nodes = Machine::of_processors(tables.machines()).unwrap();
    vec![Sample { named, ..Sample::new("states-essc", nodes, World::States(tables), jobs) }]
}
