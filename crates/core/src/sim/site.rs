//! The power of the site while a machine runs: the machine and its cooling.

use crate::machine::{Cooling, Machine};
use crate::tariff::{Curve, Reading};
use crate::units::{Celsius, Instant, Joules, Span, Watts};

/// The site's own meter.
#[derive(Clone, Debug)]
pub(super) struct SiteMeter<'a> {
    cooling: Cooling,
    /// The most that the machine can draw.
    most: Watts,
    /// The temperature outdoors, if cooling depends on it and it is known at all.
    outdoor: Option<(&'a Curve<Celsius>, Reading)>,
    now: Instant,
    drawn: SiteFigures,
}

/// What a site drew for a machine and its cooling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteFigures {
    /// All energy.
    pub energy: Joules,
    /// The most power.
    pub peak: Watts,
    /// For how long cooling took what it takes at the worst temperature, because that outdoors was not known.
    pub unknown: Span,
}

impl<'a> SiteMeter<'a> {
    /// The meter of the site of a machine, if it is said what cooling takes there.
    pub(super) fn of(
        machine: &Machine,
        outdoor: Option<&'a Curve<Celsius>>,
        begin: Instant,
    ) -> Option<Self> {
        let cooling = machine.cooling.clone()?;
        let outdoor = outdoor.filter(|_| cooling.needs_outdoor());
        Some(SiteMeter {
            cooling,
            most: machine.max_power(),
            outdoor: outdoor.map(|curve| (curve, Reading::default())),
            now: begin,
            drawn: SiteFigures::default(),
        })
    }

    /// The machine drew so much until now. Each stretch in which the site drew the same is told with its end.
    #[inline]
    pub(super) fn advance(
        &mut self,
        machine: Watts,
        until: Instant,
        mut each: impl FnMut(Instant, Watts),
    ) {
        let SiteMeter { cooling, most, outdoor, now, drawn } = self;
        let begin = *now;
        let mut draw = |end: Instant, outdoor: Option<Celsius>| {
            let (power, time) = (cooling.of_site(machine, *most, outdoor), end.since(*now));
            drawn.energy += power.over(time);
            drawn.peak = drawn.peak.max(power);
            if outdoor.is_none() && cooling.needs_outdoor() {
                drawn.unknown = drawn.unknown + time;
            }
            *now = end;
            each(end, power);
        };
        match outdoor {
            None => draw(until, None),
            Some((curve, reading)) => {
                let mut end = begin;
                curve.stretches(reading, end, until, |millis, outdoor| {
                    end = end + Span::from_millis(millis);
                    draw(end, outdoor);
                });
            }
        }
    }

    pub(super) fn figures(&self) -> SiteFigures {
        self.drawn
    }
}
