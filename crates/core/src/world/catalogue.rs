//! The built-in applications: those of three papers, on any machine.
//!
//! - The five of PARM (Sarood and others, SC 2014) follow PASS: caps slow them down as its authors
//!   measured, and they scale by Downey's law.
//! - The eight of RMAP (Patki and others, HPDC 2015) follow the closed forms from which the tables of the
//!   Cab-like machine are made: frequency, memory and the network in one run, so that size and cap cannot
//!   be told apart.
//! - The four of PTune (Gholkar, Mueller and Rountree) follow the one curve of speed over power that is
//!   published, and scale perfectly, as in that paper. Work goes to whoever is ready for it.
//!
//! So no policy's own law is the whole truth. Two things are chosen here, and are nobody's findings. The
//! watts of each family are rescaled, so that what was the highest cap there is `FULL` of the highest cap
//! here. And a job scales as one that asks for `NODES` nodes, whatever it asks for: on half as many
//! nodes it is what that one is on half of those.

use std::sync::LazyLock;

use crate::model::pass::{self, Scaling};
use crate::profile::cab::{self, Preset};
use crate::variation::catalyst;
use crate::world::assignment::Mix;
use crate::world::law::{NotALaw, Sample, Sampled};
use crate::world::{Application, Coupling};

/// The share of the highest cap with which the reference node is at full speed. Nodes that need up to a
/// tenth more than that are at full speed, too, if they have no cap.
pub(crate) const FULL: f64 = 0.9;

/// The nodes that a job is taken to ask for.
pub(crate) const NODES: f64 = 32.0;

/// The processor's highest cap that counts for PASS, in watts.
const PASS_WATTS: f64 = 60.0;

/// What a processor is rated at in PTune's machine, in watts.
const CATALYST_WATTS: f64 = 115.0;

/// How far PARM's applications scale: average parallelism as a multiple of the nodes asked for, and its
/// variation. Neither is published.
const SCALING: [(f64, f64); 5] = [(3.0, 0.5), (1.5, 0.5), (2.0, 1.0), (1.0, 1.0), (1.5, 0.0)];

/// All built-in applications, the families one after the other.
pub(crate) fn applications() -> Vec<Application> {
    // Sampling takes a while, and what is sampled is always the same.
    static ALL: LazyLock<Vec<Application>> = LazyLock::new(sampled);
    ALL.clone()
}

fn sampled() -> Vec<Application> {
    let mut all = Vec::new();
    let mut add = |name: &str, law: Result<Sampled, NotALaw>, coupling| {
        // That the closed forms are laws is what the tests of this file show.
        all.extend(law.ok().map(|law| Application::new(name, law, coupling)));
    };
    for (application, (parallelism, variation)) in pass::Application::ALL.iter().zip(SCALING) {
        let law = Sampled::of(|size, share| parm(application, parallelism, variation, size, share));
        add(application.name, law, Coupling::Lockstep);
    }
    for application in cab::ClosedForm::all(Preset::Cab) {
        add(
            application.name(),
            Sampled::of(|size, share| rmap(&application, size, share)),
            Coupling::Lockstep,
        );
    }
    for code in catalyst::ClosedForm::all() {
        add(code.name(), Sampled::of(|size, share| ptune(&code, size, share)), Coupling::Balanced);
    }
    all
}

/// A mix of all of them in which the three families are equally common.
pub(crate) fn mix() -> Mix {
    let families = [5usize, 8, 4];
    let all: usize = families.iter().product();
    let weights = families.iter().flat_map(|count| vec![(all / count) as u32; *count]);
    let weights: Vec<(usize, u32)> = weights.enumerate().collect();
    let count = weights.len();
    // The numbers are those of the applications there are, and no weight is zero.
    Mix::new(weights, count).unwrap_or_else(|why| unreachable!("{why}"))
}

/// The watts of a family whose highest cap is this, under a share of ours.
fn watts(share: f64, highest: f64) -> f64 {
    (share / FULL).min(1.0) * highest
}

fn parm(
    application: &pass::Application,
    parallelism: f64,
    variation: f64,
    size: f64,
    share: f64,
) -> Sample {
    let throttling = application.throttling();
    let cap = watts(share, PASS_WATTS);
    let time = Scaling::share_of_one(size * NODES, parallelism * NODES, variation);
    let drawn = cap.min(throttling.highest_watts());
    Sample { time: time * throttling.stretched(cap), draw: drawn / PASS_WATTS * FULL }
}

fn rmap(application: &cab::ClosedForm, size: f64, share: f64) -> Sample {
    let highest = cab::ClosedForm::HIGHEST;
    let cap = watts(share, highest);
    let (time, drawn) = application.run(size * NODES, cap);
    Sample { time, draw: drawn.min(cap) / highest * FULL }
}

fn ptune(code: &catalyst::ClosedForm, size: f64, share: f64) -> Sample {
    let cap = watts(share, CATALYST_WATTS);
    let (speed, drawn) = code.run(cap);
    Sample { time: 1.0 / (size * speed), draw: drawn.min(cap) / CATALYST_WATTS * FULL }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::job::{ApplicationId, Job};
    use crate::model::Beta;
    use crate::units::{Instant, JobId, Span};
    use crate::world::{Ask, Assignment, Conditions, Factor, Pace};

    fn factor(application: &Application, nodes: u32, share: f64) -> f64 {
        let ask = Ask { nodes: 32, beta: Beta::FULL };
        match application.law.pace(ask, Conditions { nodes, cores: None, share }) {
            Some(Pace::Times(factor)) => factor.as_f64(),
            other => panic!("{}: {other:?}", application.name),
        }
    }

    #[test]
    fn all_closed_forms_are_laws() {
        let names: Vec<String> = applications().into_iter().map(|each| each.name).collect();
        assert_eq!(names.len(), 17);
        assert_eq!(
            (names[0].as_str(), names[5].as_str(), names[13].as_str()),
            ("LeanMD", "SPhot", "CoMD")
        );
    }

    #[test]
    fn families_are_equally_common() {
        let jobs: Vec<Job> = (1..=30_000)
            .map(|number| Job {
                application: NonZeroU32::new(number).map(ApplicationId),
                ..Job::new(1, Instant::ZERO, 1, Span::from_secs(1))
            })
            .collect();
        let assigned = Assignment::drawn(&jobs, &mix(), 1);
        let mut counts = [0; 3];
        for job in 0..jobs.len() as u32 {
            let application = assigned.application(JobId(job));
            counts[usize::from(application >= 5) + usize::from(application >= 13)] += 1;
        }
        assert!(counts.iter().all(|count| (9_700..10_300).contains(count)), "{counts:?}");
    }

    /// Nodes within a tenth of the reference node are at full speed without a cap.
    #[test]
    fn without_a_cap_a_job_takes_what_it_was_asked_for() {
        for application in applications() {
            for share in [1.0, 1.0 / 1.08, 0.91] {
                let factor = factor(&application, 32, share);
                assert!((factor - 1.0).abs() < 1e-9, "{}: {factor} at {share}", application.name);
            }
        }
        assert_eq!(Factor::new(1.0), Factor::ONE);
    }

    #[test]
    fn a_lower_cap_is_never_faster_and_draws_no_more() {
        let ask = Ask { nodes: 32, beta: Beta::FULL };
        for application in applications() {
            for nodes in [8, 16, 31, 32, 48, 100, 128] {
                let mut before: Option<(f64, f64)> = None;
                for step in 0..=300 {
                    let share = 0.25 + 0.75 * f64::from(step) / 300.0;
                    let time = factor(&application, nodes, share);
                    let draw = application.law.draw(ask, Conditions { nodes, cores: None, share });
                    assert!(draw <= share + 0.001, "{}: {draw} of {share}", application.name);
                    if let Some((slower, less)) = before {
                        assert!(time <= slower + 1e-6, "{} at {share}", application.name);
                        assert!(draw >= less - 0.001, "{} at {share}", application.name);
                    }
                    before = Some((time, draw));
                }
            }
        }
    }

    /// At half of the cap the families differ: of PARM's applications, one hardly minds.
    #[test]
    fn applications_differ_in_what_a_cap_costs() {
        let all = applications();
        let at_half = |name: &str| {
            let application = all.iter().find(|each| each.name == name).unwrap();
            factor(application, 32, 0.5)
        };
        // Jacobi2D has no use for more than 37 W, and 33.3 W are left.
        assert!((1.0..1.1).contains(&at_half("Jacobi2D")), "{}", at_half("Jacobi2D"));
        assert!((1.3..1.7).contains(&at_half("LeanMD")), "{}", at_half("LeanMD"));
        // 63.9 W of the 88 W it draws are 76.0 W of the published processor, which is then at 61.1 of
        // 79.1 GIPS.
        assert!((at_half("CoMD") - 1.294).abs() < 0.005, "{}", at_half("CoMD"));
    }
}
