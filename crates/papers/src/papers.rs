//! How jobs run in the experiments of the papers, by the policy that each of them proposes: rigid, with gears, on
//! any number of nodes, or on processors that are not alike. There a policy believes what is true, idle nodes draw
//! nothing, and no two papers have the same world; [`world`](busbar_core::world) is the one that policies are
//! compared in.

use busbar_core::job::Job;
use busbar_core::machine::Machine;
use busbar_core::model::pass::Application;
use busbar_core::model::{Dvfs, Elastic, Knowledge, Model, NodeCaps, Oversized, Rigid, Varied};
use busbar_core::policy::parm::Flexibility;
use busbar_core::policy::share::Use;
use busbar_core::policy::{ParmSpec, PolicySpec, ShareSpec};

/// The model of a policy's paper on a machine. What is random about it starts at the seed. There is none for
/// policies whose papers have profiles of applications, or tables of tasks: those are data.
pub fn model(
    policy: &PolicySpec,
    machine: &Machine,
    jobs: &[Job],
    seed: u64,
) -> Option<Box<dyn Model>> {
    Some(match *policy {
        PolicySpec::Rmap(_) | PolicySpec::Utility(_) => return None,
        PolicySpec::Fcfs | PolicySpec::Easy(_) | PolicySpec::Conservative => {
            Box::new(Rigid::on(machine))
        }
        PolicySpec::EasyPower(spec) => {
            Box::new(Dvfs::new(machine, jobs, Knowledge::Unknown, spec.oversized, seed))
        }
        PolicySpec::PbGuided(spec) => {
            Box::new(Dvfs::new(machine, jobs, spec.beta, spec.oversized, seed))
        }
        PolicySpec::Parm(spec) => {
            let feed = NodeCaps::of(machine, spec.levels);
            let model = Elastic::new(machine, feed, &Application::ALL, jobs, seed);
            match spec.flexibility {
                Flexibility::None => Box::new(model.as_asked()),
                Flexibility::Moldable | Flexibility::Malleable => Box::new(model),
            }
        }
        PolicySpec::Ppartition(_) | PolicySpec::Uniform(_) => {
            Box::new(Varied::on(machine, jobs, seed))
        }
        PolicySpec::Own(own) if own.wants.is_empty() => Box::new(Rigid::on(machine)),
        PolicySpec::External(spec) if spec.wants.is_empty() => Box::new(Rigid::on(machine)),
        PolicySpec::Share(ShareSpec { uses: Some(Use::Sizes | Use::Resizes), .. }) => {
            let feed = NodeCaps::of(machine, ParmSpec::default().levels);
            Box::new(Elastic::new(machine, feed, &Application::ALL, jobs, seed))
        }
        PolicySpec::Share(_) | PolicySpec::Own(_) | PolicySpec::External(_) => {
            Box::new(Dvfs::new(machine, jobs, Knowledge::Unknown, Oversized::Slow, seed))
        }
    })
}
