//! What policies were published with, fitted to the world they run in.
//!
//! Each paper measured its applications, and its policy believes what was made of the measurements: a
//! table, a regression, a law with fitted parameters, curves. Here the same is done to the applications of
//! a [`World`]: they are run on the reference node, as jobs that ask for 32 nodes, on the sizes and
//! under the caps that a policy may choose from. What differs between nodes, and between what was measured
//! and what was made of it, the policy does not know.

mod clock;
mod curves;

use std::sync::Arc;

pub use clock::Clock;
pub use curves::curves;

use crate::belief::Choices;
use crate::model::Beta;
use crate::model::elastic::QUARTERS;
use crate::model::pass;
use crate::profile::fit::{FitError, Training, train_on_enough};
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{Share, Span, Watts};
use crate::world::law::{Curved, NotALaw, Sample, Sampled, Which};
use crate::world::{Application, Ask, CLASSES, Conditions, Law, Pace, World};

/// The nodes that measured jobs ask for.
const NODES: u32 = 32;

/// How long a measured job takes as it was asked for.
const HOUR: Span = Span::from_secs(3600);

/// Why a law cannot be fitted to an application.
#[derive(Debug, thiserror::Error)]
pub enum NoFit {
    /// The regression has too little to go by.
    #[error(transparent)]
    Regression(#[from] FitError),
    /// PASS does not describe it.
    #[error("{application}: {why}")]
    Pass {
        /// Which application.
        application: String,
        /// Why.
        why: pass::PassFitError,
    },
    /// What came out is no law.
    #[error("{application}: {why}")]
    NotALaw {
        /// Which application.
        application: String,
        /// Why.
        why: NotALaw,
    },
}

/// A job takes what its user asks for, and each of its nodes draws what it is rated at.
#[derive(Clone, Copy, Debug)]
struct Rated;

impl Law for Rated {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        (at.nodes == ask.nodes && at.share >= 1.0).then_some(Pace::AS_ASKED)
    }

    fn draw(&self, _: Ask, at: Conditions) -> f64 {
        at.share
    }
}

/// An application on whichever nodes: as slow as on the slowest of them, and each draws as much as the one
/// that draws most. Which these are depends on the cap: a greedy node may be held back where a thrifty one
/// still has turbo.
#[derive(Clone, Debug)]
struct OnAny {
    law: Arc<dyn Law>,
    /// How much more power than the reference node nodes need.
    greeds: Vec<f64>,
}

impl OnAny {
    fn everywhere(&self, at: Conditions) -> impl Iterator<Item = (f64, Conditions)> {
        let there = move |greed: &f64| (*greed, Conditions { share: at.share / greed, ..at });
        self.greeds.iter().map(there)
    }
}

impl Law for OnAny {
    fn pace(&self, ask: Ask, at: Conditions) -> Option<Pace> {
        let paces = self.everywhere(at).map(|(_, there)| self.law.pace(ask, there));
        paces.collect::<Option<Vec<Pace>>>()?.into_iter().max()
    }

    fn draw(&self, ask: Ask, at: Conditions) -> f64 {
        let draws = self.everywhere(at).map(|(greed, there)| self.law.draw(ask, there) * greed);
        draws.fold(0.0, f64::max).min(at.share)
    }
}

/// Rated watts for every application.
pub fn rated(world: &World) -> Vec<Arc<dyn Law>> {
    world.applications().iter().map(|_| Arc::new(Rated) as Arc<dyn Law>).collect()
}

/// What really holds, as far as it can be known before it is known which nodes a job gets.
pub fn exact(world: &World) -> Vec<Arc<dyn Law>> {
    if !world.curved().is_empty() {
        let worst = |law: &Curved| Arc::new(law.on(Which::Worst)) as Arc<dyn Law>;
        return world.curved().iter().map(worst).collect();
    }
    let greeds: Vec<f64> = (0..CLASSES).map(|class| world.parts().greed(class)).collect();
    let on = |application: &Application| match world.parts().are_unlike() {
        true => {
            Arc::new(OnAny { law: application.law.clone(), greeds: greeds.clone() }) as Arc<dyn Law>
        }
        false => application.law.clone(),
    };
    world.applications().iter().map(on).collect()
}

/// What was measured on the reference node.
pub fn measured(world: &World) -> Vec<Arc<dyn Law>> {
    world.applications().iter().map(|application| application.law.clone()).collect()
}

/// Caps as gears, of which nothing is known but the frequency: β is 1.
pub fn clock(world: &World, clock: &Clock) -> Vec<Arc<dyn Law>> {
    let law = clock.with(Beta::FULL);
    world.applications().iter().map(|_| Arc::new(law.clone()) as Arc<dyn Law>).collect()
}

/// Caps as gears, with the β of each application that comes nearest to what was measured.
pub fn clock_fitted(world: &World, choices: &Choices, clock: &Clock) -> Vec<Arc<dyn Law>> {
    let fitted = |application: &Application| {
        let factors = choices.levels.iter().filter_map(|level| {
            let share = level.as_f64() / choices.node.highest.as_f64();
            Some((clock.slowness(share), factor(application, NODES, share)? - 1.0))
        });
        // Least squares through the origin.
        let (products, squares) = factors
            .fold((0.0, 0.0), |(products, squares), (x, y)| (products + x * y, squares + x * x));
        let beta = if squares > 0.0 { products / squares } else { 1.0 };
        Arc::new(clock.with(Beta::new(beta))) as Arc<dyn Law>
    };
    world.applications().iter().map(fitted).collect()
}

/// RMAP's regression, on so much of what was measured.
///
/// # Errors
///
/// If an application cannot be described like that.
pub fn regression(
    world: &World,
    choices: &Choices,
    share: Share,
    seed: u64,
) -> Result<Vec<Arc<dyn Law>>, NoFit> {
    let predicted = |application: &Application| {
        let profile = profile(application, choices);
        let fit = train_on_enough(&profile, &Training::Random { share, seed })?;
        let law = Sampled::of(|size, share| {
            let nodes = (size * f64::from(NODES)).round() as u32;
            let cap = cap_of(share, choices);
            let said = fit.predict(&Configuration { nodes, cores: 1, cap });
            let (time, power) = said.map_or((HOUR, cap * nodes), |said| (said.time, said.power));
            let draw = power.as_f64() / f64::from(nodes) / choices.node.highest.as_f64();
            Sample { time: time.secs_f64(), draw: draw.min(share) }
        });
        lawful(application, law)
    };
    world.applications().iter().map(predicted).collect()
}

/// PASS, as PARM fits it.
///
/// # Errors
///
/// If an application cannot be described like that.
pub fn pass(world: &World, choices: &Choices) -> Result<Vec<Arc<dyn Law>>, NoFit> {
    let fitted = |application: &Application| {
        let rows = profile(application, choices).rows;
        let samples = rows.iter().map(|row| pass::Sample {
            nodes: row.configuration.nodes,
            cap_watts: row.configuration.cap.as_f64(),
            seconds: row.time.secs_f64(),
        });
        let samples: Vec<pass::Sample> = samples.collect();
        let name = || application.name.clone();
        let fit = pass::fit(&samples).map_err(|why| NoFit::Pass { application: name(), why })?.pass;
        let law = Sampled::of(|size, share| {
            let nodes = (size * f64::from(NODES)).round() as u32;
            let seconds = fit.scaling.seconds(nodes).unwrap_or(1.0);
            let cap = share * choices.node.highest.as_f64();
            Sample { time: seconds * fit.throttling.stretched(cap), draw: share }
        });
        lawful(application, law)
    };
    world.applications().iter().map(fitted).collect()
}

fn lawful(application: &Application, law: Result<Sampled, NotALaw>) -> Result<Arc<dyn Law>, NoFit> {
    let not = |why| NoFit::NotALaw { application: application.name.clone(), why };
    law.map(|law| Arc::new(law) as Arc<dyn Law>).map_err(not)
}

fn cap_of(share: f64, choices: &Choices) -> Watts {
    Watts::from_milliwatts((share * choices.node.highest.milliwatts() as f64).round() as u64)
}

/// How many times as long an application takes on the reference node.
fn factor(application: &Application, nodes: u32, share: f64) -> Option<f64> {
    let ask = Ask { nodes: NODES, beta: Beta::FULL };
    match application.law.pace(ask, Conditions { nodes, share })? {
        Pace::Times(factor) => Some(factor.as_f64()),
        Pace::Fixed(time) => Some(time.secs_f64() / HOUR.secs_f64()),
    }
}

/// An application, measured on the reference node. The power of a row is that of the capped parts of its
/// nodes.
fn profile(application: &Application, choices: &Choices) -> Profile {
    let ask = Ask { nodes: NODES, beta: Beta::FULL };
    let rows = QUARTERS.iter().flat_map(|quarters| {
        let nodes = NODES * quarters / 4;
        choices.levels.iter().filter_map(move |level| {
            let share = level.as_f64() / choices.node.highest.as_f64();
            let time = factor(application, nodes, share)? * HOUR.secs_f64();
            let drawn = application.law.draw(ask, Conditions { nodes, share });
            let drawn = cap_of(drawn, choices).max(Watts::from_milliwatts(1));
            Some(Row {
                configuration: Configuration { nodes, cores: 1, cap: *level },
                time: Span::from_millis((time * 1000.0).round() as u64),
                power: drawn * nodes,
                origin: Origin::Measured,
            })
        })
    });
    Profile { application: application.name.clone(), rows: rows.collect() }
}
