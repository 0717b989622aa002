//! The frame of a chart: a title, two axes with round numbers, and a key.

use super::svg::{Anchor, Svg};
use crate::report::plot::{Axis, Ends};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 64.0;
const BOTTOM: f64 = 52.0;

/// A direction of a chart: which numbers it covers, and which are written beside it.
pub(super) struct Scale {
    low: f64,
    high: f64,
    is_logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From one number to another, with round numbers between them.
    pub(super) fn even(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let ticks = Axis::over([low, high].into_iter(), 8, Ends::Values);
        let ticks = ticks.map(|axis| axis.ticks()).unwrap_or_default();
        Scale { low, high, is_logarithmic: false, ticks }
    }

    /// From zero to a little above a number.
    pub(super) fn up_to(most: f64) -> Self {
        Scale::even(0.0, most * 1.05)
    }

    /// By factors, with these numbers beside it. Both ends are above zero.
    pub(super) fn by_factors(low: f64, high: f64, ticks: Vec<(f64, String)>) -> Self {
        let high = if high > low { high } else { low * 10.0 };
        let ticks = ticks.into_iter().filter(|(at, _)| (low..=high).contains(at)).collect();
        Scale { low, high, is_logarithmic: true, ticks }
    }

    /// With these words beside it instead of numbers.
    pub(super) fn with_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Scale { ticks, ..self }
    }

    /// Without numbers beside it.
    pub(super) fn bare(self) -> Self {
        Scale { ticks: Vec::new(), ..self }
    }

    /// How far along a number is, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let share = match self.is_logarithmic {
            true => libm::log(value.max(self.low) / self.low) / libm::log(self.high / self.low),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }
}

/// A chart to be drawn into.
pub(super) struct Frame {
    pub(super) svg: Svg,
    across: Scale,
    up: Scale,
    height: f64,
}

impl Frame {
    /// A chart with its axes, each with its name.
    pub(super) fn new(title: &str, height: f64, across: (&str, Scale), up: (&str, Scale)) -> Self {
        let mut svg = Svg::new(WIDTH, height);
        svg.text((LEFT, 26.0), Anchor::Start, "title", title);
        let ((across_name, across), (up_name, up)) = (across, up);
        let mut frame = Frame { svg, across, up, height };
        let (left, right) = (LEFT, WIDTH - RIGHT);
        let bottom = height - BOTTOM;
        for (at, text) in frame.across.ticks.clone() {
            let x = frame.x(at);
            frame.svg.line(&[(x, TOP), (x, bottom)], "#e6eaee", "");
            frame.svg.text((x, bottom + 18.0), Anchor::Middle, "", &text);
        }
        for (at, text) in frame.up.ticks.clone() {
            let y = frame.y(at);
            frame.svg.line(&[(left, y), (right, y)], "#e6eaee", "");
            frame.svg.text((left - 8.0, y + 4.0), Anchor::End, "", &text);
        }
        frame.svg.line(&[(left, TOP), (left, bottom), (right, bottom)], "#a9b3bd", "");
        let middle = (left + right) / 2.0;
        frame.svg.text((middle, height - 14.0), Anchor::Middle, "soft", across_name);
        frame.svg.upright((20.0, (TOP + bottom) / 2.0), up_name);
        frame
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.across.share(value) * (WIDTH - LEFT - RIGHT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.up.share(value) * (self.height - TOP - BOTTOM)
    }

    /// Draws steps: each value holds until the next place, the last one until `end`.
    pub(super) fn steps(&mut self, steps: &[(f64, f64)], end: f64, colour: &str, style: &str) {
        let points = self.outline(steps, end);
        if !points.is_empty() {
            self.svg.line(&points, colour, style);
        }
    }

    /// Fills what is between two lines of steps at the same places.
    pub(super) fn band(&mut self, low: &[(f64, f64)], high: &[(f64, f64)], end: f64, colour: &str) {
        let mut points = self.outline(low, end);
        points.extend(self.outline(high, end).into_iter().rev());
        if !points.is_empty() {
            self.svg.area(&points, colour, 0.16);
        }
    }

    fn outline(&self, steps: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
        let ends = steps.iter().skip(1).map(|step| step.0).chain([end]);
        let corners = |(&(from, value), until): (&(f64, f64), f64)| {
            [(self.x(from), self.y(value)), (self.x(until), self.y(value))]
        };
        steps.iter().zip(ends).flat_map(corners).collect()
    }

    /// Names with their colours, above the chart, in one line or two. Names that do not fit are left out.
    pub(super) fn key(&mut self, names: &[(&str, &str)]) {
        // Letters are narrower than this.
        let width = |name: &str| 34.0 + 7.5 * name.chars().count() as f64;
        let is_long = names.iter().map(|(name, _)| width(name)).sum::<f64>() > WIDTH - LEFT;
        let (mut x, mut y) = (LEFT, if is_long { 42.0 } else { 49.0 });
        for (place, (name, colour)) in names.iter().enumerate() {
            if x + width(name) > WIDTH {
                if y > 50.0 || !is_long {
                    break;
                }
                (x, y) = (LEFT, 58.0);
            }
            // Where a colour comes again, its lines are dashed.
            match names[..place].iter().any(|(_, other)| other == colour) {
                false => self.svg.rectangle((x, y - 6.0), (14.0, 4.0), colour),
                true => {
                    self.svg.rectangle((x, y - 6.0), (5.0, 4.0), colour);
                    self.svg.rectangle((x + 9.0, y - 6.0), (5.0, 4.0), colour);
                }
            }
            self.svg.text((x + 20.0, y), Anchor::Start, "", name);
            x += width(name);
        }
    }
}
