//! Jobs that come and go, made up: what each asks for depends on the seed and its place alone.

use busbar::freedom::Freedom;
use busbar::live::control::setup::Setup;
use busbar::live::job::{JobRequest, Owner, Program};
use busbar::live::wire::Submission;
use busbar::machine::Machine;
use busbar::policy::PolicySpec;
use busbar::profile::cab::{self, Preset};
use busbar::units::Span;
use busbar::world::Repertoire;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

/// Who submits, and may do everything.
pub(crate) const ROOT: Owner = Owner { user: 0, group: 0 };

/// What a daemon with this policy works with, and which share of the most it may draw.
pub(crate) fn setup(policy: &str) -> Setup {
    let policy: PolicySpec = policy.parse().expect("a policy");
    let (machine, profiles) = match (policy.name(), policy.wants().has(Freedom::Nodes)) {
        (name, _) if name.starts_with("rmap") => (Machine::cab(), cab::generate(Preset::Cab, 1)),
        (_, true) => (Machine::catalyst(64, 1).expect("a machine"), Vec::new()),
        (_, false) => (Machine::of_processors(64).expect("a machine"), Vec::new()),
    };
    Setup::new(&machine, Repertoire::of(&profiles), policy).expect("a policy that can decide")
}

/// Jobs of 1 to 16 nodes that ask for one hour to a day.
pub(crate) struct Story {
    random: Pcg64Dxsm,
    applications: Vec<String>,
}

impl Story {
    pub(crate) fn new(setup: &Setup) -> Self {
        let applications = setup.decider.applications().to_vec();
        Story { random: Pcg64Dxsm::seed_from_u64(1), applications }
    }

    pub(crate) fn next(&mut self) -> Submission {
        let applications = &self.applications;
        let application = (!applications.is_empty())
            .then(|| applications[self.random.random_range(0..applications.len())].clone());
        let (nodes, minutes) =
            (self.random.random_range(1..=16), self.random.random_range(60..=24 * 60));
        submission(nodes, Span::from_secs(60 * minutes), application)
    }
}

/// A job that sleeps, with an environment as a shell has.
pub(crate) fn submission(nodes: u32, time: Span, application: Option<String>) -> Submission {
    let variable = |place: u32| (format!("VARIABLE_{place}"), "/usr/local/share/somewhere".into());
    Submission {
        request: JobRequest {
            name: "sleep".to_owned(),
            nodes,
            moldable: None,
            time,
            application,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        },
        program: Program {
            command: vec!["/bin/sleep".to_owned(), "86400".to_owned()],
            folder: "/".into(),
            environment: (0..20).map(variable).collect(),
            output: "/dev/null".into(),
            errors: None,
        },
        array: None,
    }
}
