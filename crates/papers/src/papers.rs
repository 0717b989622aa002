//! How jobs run in the experiments of the papers, by the policy that each of them proposes: rigid, with gears, on
//! any number of nodes, or on processors that are not alike. There a policy believes what is true, idle nodes draw
//! nothing, and no two papers have the same world; [`world`](busbar_core::world) is the one that policies are
//! compared in.

use busbar_core::freedom::Freedom;
use busbar_core::job::Job;
use busbar_core::machine::Machine;
use busbar_core::model::pass::Application;
use busbar_core::model::{Dvfs, Elastic, Knowledge, Model, NodeCaps, Rigid, Varied};
use busbar_core::policy::parm::Flexibility;
use busbar_core::policy::share::Use;
use busbar_core::policy::{ParmSpec, PbGuidedSpec, PolicySpec, RmapSpec, ShareSpec, UtilitySpec};

/// The model of a policy's paper on a machine. What is random about it starts at the seed. There is none for
/// policies whose papers have profiles of applications, or tables of tasks: those are data.
pub fn model(
    policy: &PolicySpec,
    machine: &Machine,
    jobs: &[Job],
    seed: u64,
) -> Option<Box<dyn Model>> {
    let slowed = |known, oversized| Box::new(Dvfs::new(machine, jobs, known, oversized, seed));
    let elastic = |levels| {
        Elastic::new(machine, NodeCaps::of(machine, levels), &Application::ALL, jobs, seed)
    };
    if policy.downcast::<RmapSpec>().is_some() || policy.downcast::<UtilitySpec>().is_some() {
        return None;
    }
    if let Some(spec) = policy.downcast::<PbGuidedSpec>() {
        return Some(slowed(spec.beta, spec.oversized));
    }
    if let Some(spec) = policy.downcast::<ParmSpec>() {
        let model = elastic(spec.levels);
        return Some(match spec.flexibility {
            Flexibility::None => Box::new(model.as_asked()),
            Flexibility::Moldable | Flexibility::Malleable => Box::new(model),
        });
    }
    if policy.wants().has(Freedom::Nodes) {
        return Some(Box::new(Varied::on(machine, jobs, seed)));
    }
    if let Some(ShareSpec { uses: Some(Use::Sizes | Use::Resizes), .. }) = policy.downcast() {
        return Some(Box::new(elastic(ParmSpec::default().levels)));
    }
    Some(match policy.wants().is_empty() {
        true => Box::new(Rigid::on(machine)),
        false => slowed(Knowledge::Unknown, policy.oversized()),
    })
}
