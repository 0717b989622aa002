//! Processors from the most to the least efficient, in runs of those that have the same curve.
//!
//! A machine of thousands of nodes has a few dozen kinds of them. Whatever is asked of processors one by one in the order
//! of their efficiency is the same for all of a run, so it is worked out once for the run. Where all processors differ,
//! every run has one of them, and nothing is lost.

use super::curve::Segment;
use super::{Application, Curve, Knot};

/// The processors of an application by their efficiency.
#[derive(Clone, Debug)]
pub struct Kin {
    order: Vec<u32>,
    /// By processor.
    run_of: Vec<u32>,
    runs: Vec<Run>,
    steps: Vec<Step>,
}

/// Processors with the same curve that follow each other in the order of efficiency.
#[derive(Clone, Debug)]
pub struct Run {
    /// The curve of each of them.
    pub(crate) curve: Curve,
    /// The corners of its hull, the lowest cap first. Slopes between them fall, also as rounded numbers.
    pub(crate) corners: Vec<Knot>,
    /// How steep it is from each corner to the next, as bits that rise where the slope falls.
    pub(crate) falling: Vec<u64>,
}

/// The way of each processor of a run from a corner to the next one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Its owner.
    pub run: u32,
    /// The corner it leads to.
    pub corner: u32,
}

impl Run {
    fn new(curve: &Curve) -> Self {
        let mut corners = vec![Knot { power: curve.least(), ips: curve.slowest() }];
        let mut falling: Vec<u64> = Vec::new();
        for Segment { to, slope, .. } in curve.hull() {
            // The bits of numbers above zero are in the order of the numbers.
            let bits = !slope.to_bits();
            // Two stretches that are equally steep are one.
            if falling.last() == Some(&bits) {
                corners.pop();
                falling.pop();
            }
            corners.push(*to);
            falling.push(bits);
        }
        Run { curve: curve.clone(), corners, falling }
    }

    /// The power from the corner before to this one, in milliwatts, and the speed.
    #[inline]
    pub(crate) fn step(&self, corner: u32) -> (u64, u64) {
        let [from, to] = [corner - 1, corner].map(|place| self.corners[place as usize]);
        ((to.power - from.power).milliwatts(), to.ips.ips() - from.ips.ips())
    }
}

impl Kin {
    /// The processors of this application.
    pub fn of(application: &Application) -> Self {
        let curves = &application.curves;
        let order: Vec<u32> =
            application.by_efficiency().into_iter().map(|place| place as u32).collect();
        let mut runs: Vec<Run> = Vec::new();
        let mut run_of = vec![0; curves.len()];
        for place in &order {
            let curve = &curves[*place as usize];
            if runs.last().is_none_or(|run| !run.curve.is_same(curve)) {
                runs.push(Run::new(curve));
            }
            run_of[*place as usize] = runs.len() as u32 - 1;
        }
        let mut steps: Vec<Step> = Vec::new();
        for (number, run) in (0..).zip(&runs) {
            steps.extend((1..run.corners.len() as u32).map(|corner| Step { run: number, corner }));
        }
        let falling = |step: &Step| runs[step.run as usize].falling[step.corner as usize - 1];
        steps.sort_unstable_by_key(|step| (falling(step), step.run, step.corner));
        Kin { order, run_of, runs, steps }
    }

    /// The processors from the most to the least efficient.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Which run a processor is in, if there is such a processor.
    #[inline]
    pub(crate) fn run_of(&self, processor: u32) -> Option<u32> {
        self.run_of.get(processor as usize).copied()
    }

    /// The runs in order.
    #[inline]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The run of this number.
    #[inline]
    pub fn run(&self, number: u32) -> &Run {
        &self.runs[number as usize]
    }

    /// The steps of all runs, the steepest first, and those of the more efficient processors where two are equally steep.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}
