//! EASY backfilling (Lifka 1995; Mu'alem and Feitelson 2001), at nominal speed.
//!
//! Rule: jobs start in the order of the queue while they fit. The first that does not gets a
//! reservation at the earliest time its nodes and its power are expected to be free; any later
//! job may start now if it fits and does not delay that one reservation: it ends before it, or
//! uses only what is left over at it.
//!
//! Power is a second resource beside nodes: under a budget, watts can block and reserve as nodes
//! do. What it deliberately does not do: lower anybody's speed.

use crate::freedom::Freedoms;
use crate::ledger::Vacancy;
use crate::model::OperatingPoint;
use crate::policy::{
    Ahead, Backfill, BuildContext, Chooser, OrderSpec, Parameter, Policy, PolicyKind, Room, View,
};
use crate::units::JobId;

/// EASY backfilling with every job at its nominal operating point.
pub type Easy = Backfill<Nominal>;

/// EASY backfilling with its parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct EasySpec {
    /// In which order jobs are looked at.
    pub(crate) order: OrderSpec,
}

impl PolicyKind for EasySpec {
    fn name(&self) -> &str {
        "easy"
    }

    fn about(&self) -> &str {
        "EASY backfilling"
    }

    fn usual(&self) -> Self {
        EasySpec::default()
    }

    fn parameters(&self) -> Vec<Parameter<Self>> {
        Parameter::of_order().into()
    }

    fn build(&self, context: &BuildContext<'_>) -> Box<dyn Policy> {
        self.order.backfill(Nominal, context)
    }

    fn minds_kinds(&self, _: Freedoms) -> bool {
        true
    }

    fn minds_limits(&self, _: Freedoms) -> bool {
        true
    }

    fn order_mut(&mut self) -> Option<&mut OrderSpec> {
        Some(&mut self.order)
    }
}

/// The policy that others are measured by: plain EASY backfilling.
pub fn plain() -> Box<dyn Policy> {
    Box::new(Easy::default())
}

/// Every job runs as asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nominal;

impl Chooser for Nominal {
    #[inline]
    fn choose(&mut self, view: &View<'_>, job: JobId, room: &Room) -> Option<OperatingPoint> {
        let point = view.nominal(job);
        room.admits(&point).then_some(point)
    }

    #[inline]
    fn reserve(
        &mut self,
        view: &View<'_>,
        job: JobId,
        ahead: &Ahead<'_>,
    ) -> Option<(OperatingPoint, Vacancy)> {
        let point = view.nominal(job);
        Some((point, ahead.vacancy(&point)?))
    }

    #[inline]
    fn promises_outlive_ends(&self) -> bool {
        true
    }

    #[inline]
    fn starts_as_asked(&self) -> bool {
        true
    }
}
