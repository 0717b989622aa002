//! What policies were published with, fitted to the world they run in.
//!
//! Each paper measured its applications, and its policy believes what was made of the measurements: a
//! table, a regression, a law with fitted parameters, curves. Here the same is done to the applications of
//! a [`World`]: they are run on the reference node, as jobs that ask for 32 nodes, on the sizes and
//! under the caps that a policy may choose from. What differs between nodes, and between what was measured
//! and what was made of it, the policy does not know.

mod clock;
mod curves;
mod pass;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub use clock::Clock;
pub(crate) use curves::curves;
pub(crate) use pass::pass;

use crate::belief::Choices;
use crate::model::Beta;
use crate::model::elastic::QUARTERS;
use crate::profile::fit::{Prediction, Training, train_on_enough};
use crate::profile::{Configuration, Origin, Profile, Row};
use crate::units::{Share, Span, Watts};
use crate::world::law::{Curved, Sample, Sampled, Table, Which};
use crate::world::{Application, Ask, CLASSES, Conditions, Law, Pace, World};

/// The nodes that measured jobs ask for.
const NODES: u32 = 32;

/// How long a measured job takes as it was asked for.
const HOUR: Span = Span::from_secs(3600);

/// The numbers of nodes on which RMAP's applications were measured: 8 to 64, in steps of 4.
const RMAP_SIZES: RangeInclusive<u32> = 2..=16;
const RMAP_STEP: u32 = 4;

/// How much of a table RMAP's regression is trained on, and on how many rows at least: a tenth of the paper's tables of
/// 375 rows (15 numbers of nodes, 5 of cores, 5 caps). A tenth of a smaller table would be little more than the polynomial has
/// coefficients: it would repeat these rows, and say anything of the others.
const TRAINED_ON: Share = Share::percent(10);
const TRAINED_ON_AT_LEAST: usize = 37;

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

    fn minds_cores(&self) -> bool {
        self.law.minds_cores()
    }
}

/// Rated watts for every application.
pub(crate) fn rated(world: &World) -> Vec<Arc<dyn Law>> {
    world.applications().iter().map(|_| Arc::new(Rated) as Arc<dyn Law>).collect()
}

/// What really holds, as far as it can be known before it is known which nodes a job gets.
pub(crate) fn exact(world: &World) -> Vec<Arc<dyn Law>> {
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
pub(crate) fn measured(world: &World) -> Vec<Arc<dyn Law>> {
    world.applications().iter().map(|application| application.law.clone()).collect()
}

/// Caps as gears, of which nothing is known but the frequency: β is 1.
pub(crate) fn clock(world: &World, clock: &Clock) -> Vec<Arc<dyn Law>> {
    let law = clock.with(Beta::FULL);
    world.applications().iter().map(|_| Arc::new(law.clone()) as Arc<dyn Law>).collect()
}

/// Caps as gears, with the β of each application that comes nearest to what was measured.
pub(crate) fn clock_fitted(world: &World, choices: &Choices, clock: &Clock) -> Vec<Arc<dyn Law>> {
    let fitted = |application: &Application| {
        let factors = choices.levels.iter().filter_map(|level| {
            let share = level.as_f64() / choices.node.highest.as_f64();
            Some((clock.slowness(share), factor(application, NODES, NODES, share)? - 1.0))
        });
        // Least squares through the origin.
        let (products, squares) = factors
            .fold((0.0, 0.0), |(products, squares), (x, y)| (products + x * y, squares + x * x));
        let beta = if squares > 0.0 { products / squares } else { 1.0 };
        Arc::new(clock.with(Beta::new(beta))) as Arc<dyn Law>
    };
    world.applications().iter().map(fitted).collect()
}

/// RMAP's regression, on as many measured configurations as in the paper. An application of which there is too little for
/// that is believed to do what was measured.
pub(crate) fn regression(world: &World, choices: &Choices, seed: u64) -> Vec<Arc<dyn Law>> {
    let training = Training::Random { share: TRAINED_ON, seed };
    let sizes: Vec<u32> = RMAP_SIZES.map(|step| step * RMAP_STEP).collect();
    let predicted = |(place, application): (usize, &Application)| {
        let law: Option<Arc<dyn Law>> = match world.tables().get(place) {
            Some(table) => predicted(table, &training).map(|law| Arc::new(law) as Arc<dyn Law>),
            None => regressed(&Trials::on(application, NODES, &sizes, choices), choices, &training),
        };
        law.unwrap_or_else(|| application.law.clone())
    };
    world.applications().iter().enumerate().map(predicted).collect()
}

/// What a regression says of each configuration that an application was run in.
fn predicted(table: &Table, training: &Training) -> Option<Table> {
    let fit = train_on_enough(table.profile(), training, TRAINED_ON_AT_LEAST).ok()?;
    let predict = |row: &Row| {
        let Prediction { time, power } = fit.predict(&row.configuration)?;
        Some(Row { time, power, origin: Origin::Predicted, ..*row })
    };
    let rows: Vec<Row> = table.profile().rows.iter().filter_map(predict).collect();
    let application = table.profile().application.clone();
    (!rows.is_empty()).then(|| table.with(&Profile { application, rows }))
}

/// What a regression says of any size and cap.
fn regressed(trials: &Trials, choices: &Choices, training: &Training) -> Option<Arc<dyn Law>> {
    let fit = train_on_enough(&trials.profile, training, TRAINED_ON_AT_LEAST).ok()?;
    let law = Sampled::of(|size, share| {
        let nodes = trials.nodes(size);
        let cap = cap_of(share, choices);
        let said = fit.predict(&Configuration { nodes, cores: 1, cap });
        let (time, power) = said.map_or((HOUR, cap * nodes), |said| (said.time, said.power));
        let draw = power.as_f64() / f64::from(nodes) / choices.node.highest.as_f64();
        Sample { time: time.secs_f64(), draw: draw.min(share) }
    });
    law.ok().map(|law| Arc::new(law) as Arc<dyn Law>)
}

fn cap_of(share: f64, choices: &Choices) -> Watts {
    Watts::from_milliwatts((share * choices.node.highest.milliwatts() as f64).round() as u64)
}

/// How many times as long an application takes on the reference node.
fn factor(application: &Application, asked: u32, nodes: u32, share: f64) -> Option<f64> {
    let ask = Ask { nodes: asked, beta: Beta::FULL };
    match application.law.pace(ask, Conditions { nodes, cores: None, share })? {
        Pace::Times(factor) => Some(factor.as_f64()),
        Pace::Fixed(time) => Some(time.secs_f64() / HOUR.secs_f64()),
    }
}

/// An application, measured on the reference node.
struct Trials {
    /// The nodes that the measured jobs ask for.
    asked: u32,
    /// What was measured. The power of a row is that of the capped parts of its nodes.
    profile: Profile,
}

impl Trials {
    /// On all sizes that a policy may choose, under all caps.
    fn of(world: &World, place: usize, choices: &Choices) -> Self {
        let application = &world.applications()[place];
        match world.tables().get(place).map(|table| table.nodes()) {
            Some(tried) if !tried.is_empty() => {
                Trials::on(application, tried[tried.len() / 2], tried, choices)
            }
            _ => {
                let sizes = QUARTERS.map(|quarters| NODES * quarters / 4);
                Trials::on(application, NODES, &sizes, choices)
            }
        }
    }

    /// As jobs that ask for this many nodes and get each of these numbers of them, under all caps.
    fn on(application: &Application, asked: u32, sizes: &[u32], choices: &Choices) -> Self {
        let ask = Ask { nodes: asked, beta: Beta::FULL };
        let rows = sizes.iter().flat_map(|nodes| {
            choices.levels.iter().filter_map(move |level| {
                let share = level.as_f64() / choices.node.highest.as_f64();
                let time = factor(application, asked, *nodes, share)? * HOUR.secs_f64();
                let at = Conditions { nodes: *nodes, cores: None, share };
                let drawn = cap_of(application.law.draw(ask, at), choices);
                Some(Row {
                    configuration: Configuration { nodes: *nodes, cores: 1, cap: *level },
                    time: Span::from_millis((time * 1000.0).round() as u64),
                    power: drawn.max(Watts::from_milliwatts(1)) * *nodes,
                    origin: Origin::Measured,
                })
            })
        });
        let profile = Profile { application: application.name.clone(), rows: rows.collect() };
        Trials { asked, profile }
    }

    /// So many times the nodes that were asked for.
    fn nodes(&self, size: f64) -> u32 {
        ((size * f64::from(self.asked)).round() as u32).max(1)
    }
}
