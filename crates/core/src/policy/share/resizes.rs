//! Sizes and settings may be changed while jobs run: at each event, nodes and watts are given out anew.
//!
//! Rule: the program of [PARM](crate::policy::parm) with other weights. A job counts one over the square root of what is left of
//! it, and twice as much after each halving time that it waited.
//!
//! While it is `calm`, the program offers nobody less speed than he asks for; and more nodes only to those
//! that can give them back, and only while all together ask for no more than half of the machine. Where there is no room for
//! that, jobs start as with `sizes`.
//!
//! Once the oldest has waited for eight halving times, the program is not asked. Then nobody passes the oldest who would delay
//! it: jobs start in the order of the queue as with sizes, and those that run keep what they have.
//!
//! What it deliberately does not do: keep the program where more comes than can be done. It serves those first of whom little is
//! left, and there nobody else would ever be served.

use super::sizes::BySize;
use crate::policy::calm::is_calm;
use crate::policy::{Backfill, Decision, Parm, PastJob, Policy, Predictions, View};

/// The program, and what is done without it.
pub(crate) struct Resized {
    program: Parm,
    oldest_first: Backfill<BySize>,
}

impl Resized {
    pub(crate) fn by(program: Parm) -> Self {
        Resized { program, oldest_first: Backfill::default() }
    }

    /// Who starts if the oldest goes first.
    fn oldest_first(&mut self, view: &View<'_>) -> Vec<Decision> {
        let mut decisions = Vec::new();
        self.oldest_first.decide(view, &mut decisions);
        decisions
    }
}

impl Policy for Resized {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        if !self.program.begin(view) {
            return;
        }
        if view.ledger.power() <= view.ledger.limit() {
            let is_calm = is_calm(view);
            if is_calm && self.program.go_on_as_asked(view, decisions) {
                return;
            }
            if is_calm || self.program.is_somebody_impatient(view) {
                let starting = self.oldest_first(view);
                return self.program.start(view, starting, decisions);
            }
        }
        self.program.go_on(view, decisions);
    }

    fn adjusts(&self) -> bool {
        true
    }

    fn recall(&mut self, past: &[PastJob]) {
        self.program.recall(past);
    }

    fn predictions(&self) -> Option<Predictions> {
        self.program.predictions()
    }
}
