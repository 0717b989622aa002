//! Power in equal parts, which needs no knowledge of the processors.

use crate::units::Watts;
use crate::variation::{Curve, Ips};

/// Power in equal parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Even {
    /// Among how many processors: the most that can all run on such a part.
    pub processors: usize,
    /// What each may draw.
    pub cap: Watts,
    /// How fast they are together.
    pub ips: Ips,
}

impl Even {
    /// Equal parts for the first of these processors; `None` if the power does not feed one.
    pub fn of<'c>(
        count: usize,
        budget: Watts,
        processor: impl Fn(usize) -> &'c Curve,
    ) -> Option<Self> {
        let part = |processors: usize| {
            Watts::from_milliwatts(budget.milliwatts() / processors.max(1) as u64)
        };
        // Parts get smaller and the neediest needs more, so who does not fit never will.
        let mut neediest = Watts::ZERO;
        let fits = |place: &usize| -> bool {
            neediest = neediest.max(processor(*place).least());
            part(place + 1) >= neediest
        };
        let processors = (0..count).take_while(fits).count();
        let cap = part(processors);
        let ips = (0..processors).map(|place| processor(place).at(cap).ips()).sum();
        (processors > 0).then_some(Even { processors, cap, ips: Ips::from_ips(ips) })
    }
}
