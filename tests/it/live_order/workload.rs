//! Jobs as they are submitted to a daemon, with what they really do.

use busbar::job::Job;
use busbar::live::control::setup::Setup;
use busbar::live::job::{Entry, JobRequest, Owner, PartRequest, Phase, Program};
use busbar::live::wire::Submission;
use busbar::units::{Instant, Span};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

pub(crate) const ALICE: Owner = Owner { user: 1000, group: 1000 };

/// A job to be submitted.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) submit: Instant,
    /// Who submits it, if not the one user that most workloads have.
    pub(crate) by: Option<Owner>,
    pub(crate) request: JobRequest,
    /// How long it runs on the nodes it asks for, unthrottled.
    pub(crate) run_time: Span,
}

impl Planned {
    pub(crate) fn submission(&self, program: Program) -> Submission {
        Submission { request: self.request.clone(), program, array: None }
    }

    /// The job as a policy of this setup sees it.
    pub(crate) fn job(&self, number: u64, owner: Owner, setup: &Setup) -> Job {
        let Planned { submit, request, by, .. } = self.clone();
        let entry = Entry {
            number,
            owner: by.unwrap_or(owner),
            request,
            submit,
            attempts: 0,
            phase: Phase::Waiting,
            array: None,
            handle: None,
        };
        setup.job(&entry).unwrap()
    }
}

/// Milliseconds, from the shortest to the longest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Between two submissions, at most.
    pub(crate) gap: u64,
    pub(crate) run: (u64, u64),
    /// What jobs ask for beyond their run times.
    pub(crate) slack: (u64, u64),
}

/// What a job asks for on a machine with the partitions of a site, and of how many nodes.
fn part(draw: &mut impl FnMut(u64, u64) -> u64) -> (u32, PartRequest) {
    let name = ["own", "cpu", "cpu", "gpu", "gpu", "any"][draw(0, 5) as usize];
    let nodes = draw(1, 2) as u32;
    let most = if ["gpu", "any"].contains(&name) { 4 } else { 8 };
    let gpus = (name == "gpu" && draw(0, 1) == 0).then(|| nodes * draw(1, 2) as u32);
    let memory_mib = (name == "cpu" && draw(0, 1) == 0).then(|| 1024 * draw(1, 12) as u32);
    // As a log says it: how many processors there are in all, as many of each node.
    let processors = Some(nodes * draw(1, most) as u32);
    let partition = Some(name.to_owned());
    (nodes, PartRequest { partition, processors, gpus, memory_mib, exclusive: false })
}

/// So many jobs that this setup takes, the same for the same seed.
pub(crate) fn jobs(setup: &Setup, count: usize, times: Times, seed: u64) -> Vec<Planned> {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let mut draw = |least: u64, most: u64| numbers.random_range(least..=most);
    let applications = setup.decider.applications();
    let half = u64::from(setup.machine.nodes / 2);
    let mut submit = Instant::ZERO;
    let job = |_| {
        // Every fourth comes together with the one before it.
        let gap = if draw(0, 3) == 0 { 0 } else { draw(0, times.gap) };
        submit = submit + Span::from_millis(gap);
        // Small ones are common.
        let most = draw(1, half);
        let nodes = draw(1, most) as u32;
        let run_time = Span::from_millis(draw(times.run.0, times.run.1));
        let application = match applications.len() as u64 {
            0 => None,
            count => Some(applications[draw(0, count - 1) as usize].to_owned()),
        };
        let most = (2 * nodes).min(setup.machine.nodes);
        let moldable = match setup.decider.spec().name().starts_with("rmap") {
            // Profiles begin at eight nodes, and not every number has rows.
            true => Some((nodes.div_ceil(2).min(8), setup.machine.nodes)),
            false => (draw(0, 2) != 0).then(|| (nodes.div_ceil(2), most)),
        };
        let slowdown = (draw(0, 3) == 0).then(|| "20%".to_owned());
        let (nodes, moldable, part) = match setup.machine.kinds {
            None => (nodes, moldable, PartRequest::default()),
            Some(_) => {
                let (nodes, part) = part(&mut draw);
                (nodes, None, part)
            }
        };
        let request = JobRequest {
            name: "order".to_owned(),
            nodes,
            moldable,
            time: run_time + Span::from_millis(draw(times.slack.0, times.slack.1)),
            application,
            slowdown,
            after: Vec::new(),
            held: false,
            account: None,
            part,
        };
        Planned { submit, by: None, request, run_time }
    };
    (0..count).map(job).collect()
}
