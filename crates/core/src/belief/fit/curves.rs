//! A curve for each node: its speed over what it adds to what is drawn.

use crate::belief::Choices;
use crate::units::{NodeId, Watts};
use crate::variation::{Application as OnNodes, Curve, CurveError, Ips, Knot, Processors};
use crate::world::law::Curved;
use crate::world::{Application, Ask, CLASSES, Conditions, Factor, Pace, World};

use crate::model::Beta;

/// Caps between the lowest and the highest at which each node is measured.
const CAPS: u64 = 16;

/// Instructions per second that stand for full speed.
const FULL_SPEED: f64 = 1e9;

/// The curves of all nodes, as they are measured one by one without error.
///
/// # Errors
///
/// If some application does not run at all under any cap.
pub(crate) fn curves(world: &World, choices: &Choices) -> Result<Processors, CurveError> {
    let floor = choices.node.added(choices.levels[0]);
    if let Some(processors) = world.curved().first().map(Curved::processors) {
        return shifted(processors, choices, floor);
    }
    let classes: Vec<usize> =
        (0..choices.nodes).map(|node| world.parts().class(NodeId(node))).collect();
    let mut applications = Vec::with_capacity(world.applications().len());
    for application in world.applications() {
        let mut of_class: Vec<Option<Curve>> = vec![None; CLASSES];
        let mut curves = Vec::with_capacity(classes.len());
        for class in &classes {
            if of_class[*class].is_none() {
                let knots = knots(world, choices, application, *class);
                of_class[*class] = Some(Curve::new(floor, knots)?);
            }
            curves.extend(of_class[*class].clone());
        }
        applications.push(OnNodes { name: application.name.clone(), curves });
    }
    let names = (0..choices.nodes).map(|node| format!("n{node}")).collect();
    Processors::new(names, floor, applications).ok_or(CurveError::Empty)
}

/// The curves of processors that were measured one by one, over what each adds to what is drawn.
fn shifted(
    processors: &Processors,
    choices: &Choices,
    floor: Watts,
) -> Result<Processors, CurveError> {
    let highest = choices.node.highest;
    let shifted = |curve: &Curve| {
        let knot = |power: Watts, ips| Knot { power: choices.node.added(power), ips };
        let within = curve.knots().iter().filter(|knot| knot.power < highest);
        let mut knots: Vec<Knot> = within.map(|each| knot(each.power, each.ips)).collect();
        let last = curve.most().min(highest);
        knots.push(knot(last, curve.at(last)));
        Curve::new(floor, knots)
    };
    let mut applications = Vec::new();
    for application in processors.applications() {
        let curves = application.curves.iter().map(shifted).collect::<Result<_, _>>()?;
        applications.push(OnNodes { name: application.name.clone(), curves });
    }
    Processors::new(processors.names().to_vec(), floor, applications).ok_or(CurveError::Empty)
}

/// What is measured of an application on a node of a class.
fn knots(world: &World, choices: &Choices, application: &Application, class: usize) -> Vec<Knot> {
    let (lowest, highest) = (choices.levels[0], choices.node.highest);
    let greed = world.parts().greed(class);
    let ask = Ask { nodes: 1, beta: Beta::FULL };
    let measured = |step: u64| {
        let beyond = (highest.milliwatts() - lowest.milliwatts()) * step / CAPS;
        let cap = Watts::from_milliwatts(lowest.milliwatts() + beyond);
        let share = cap.as_f64() / highest.as_f64();
        let at = Conditions { nodes: 1, cores: None, share: share / greed };
        let speed = match application.law.pace(ask, at)? {
            Pace::Times(factor) => Factor::ONE.as_f64() / factor.as_f64(),
            Pace::Fixed(_) => return None,
        };
        let drawn = (application.law.draw(ask, at) * greed).min(share) * highest.as_f64();
        let drawn = Watts::from_f64_rounded_up(drawn)?.min(cap);
        let ips = Ips::from_ips((speed * FULL_SPEED).round() as u64);
        Some(Knot { power: choices.node.added(drawn), ips })
    };
    let mut knots: Vec<Knot> = Vec::new();
    for knot in (0..=CAPS).filter_map(measured) {
        // A node that is hardly busier than idle adds next to nothing. Of two that add as much, the faster
        // counts.
        let knot = Knot { power: knot.power.max(Watts::from_milliwatts(1)), ..knot };
        knots.pop_if(|last| last.power >= knot.power);
        knots.push(knot);
    }
    knots
}
