//! The energy account: joules that may be consumed in a period, consumed, promised and left.
//!
//! A claim is charged for the part of its time that lies in the period, to the microjoule. Whoever
//! runs has all that it will consume promised to it, and so may a job that waits
//! ([`Ledger::promise`]). What has been consumed and what is promised is never more than the
//! budget: a claim that cannot be paid is a [`Violation`], and nothing changes.

use std::collections::HashMap;

use super::{Ledger, Violation};
use crate::budget::EnergyBudget;
use crate::model::OperatingPoint;
use crate::units::{Instant, JobId, Joules, Watts};

/// Energy consumed, promised and left.
#[derive(Clone, Debug)]
pub struct EnergyAccount {
    budget: EnergyBudget,
    now: Instant,
    /// What has been consumed in the period until now.
    consumed: Joules,
    /// What those draw that run.
    drawn: Watts,
    /// What was consumed by those that have ended, and what all others are promised in all.
    committed: Joules,
    /// Of that, what is promised to those that wait.
    pending: Joules,
    claims: HashMap<JobId, Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    from: Instant,
    until: Instant,
    power: Watts,
    runs: bool,
}

impl EnergyAccount {
    fn new(budget: EnergyBudget, now: Instant) -> Self {
        EnergyAccount {
            budget,
            now,
            consumed: Joules::ZERO,
            drawn: Watts::ZERO,
            committed: Joules::ZERO,
            pending: Joules::ZERO,
            claims: HashMap::new(),
        }
    }

    /// How much there is, and for when.
    #[inline]
    pub fn budget(&self) -> &EnergyBudget {
        &self.budget
    }

    /// What has been consumed in the period until now.
    pub(crate) fn consumed(&self) -> Joules {
        self.consumed
    }

    /// What is consumed or promised, and so nobody else's.
    #[inline]
    pub fn committed(&self) -> Joules {
        self.committed
    }

    /// What is promised to jobs that wait.
    pub fn pending(&self) -> Joules {
        self.pending
    }

    /// What those that run will still consume.
    pub fn promised(&self) -> Joules {
        self.committed.saturating_sub(self.consumed).saturating_sub(self.pending)
    }

    /// The energy that is not promised.
    #[inline]
    pub fn left(&self) -> Joules {
        self.budget.energy.saturating_sub(self.committed)
    }

    pub(super) fn advance(&mut self, now: Instant) {
        self.consumed += self.budget.charge(self.drawn, self.now, now);
        self.now = now;
    }

    fn charge(&self, claim: &Claim) -> Joules {
        self.budget.charge(claim.power, claim.from, claim.until)
    }

    /// Whether a claim can be paid, where the job's own promise counts towards it.
    fn check(&self, job: JobId, claim: &Claim) -> Result<(), Violation> {
        let asked = self.charge(claim);
        let promised = self.claims.get(&job).filter(|claim| !claim.runs);
        let left = self.left() + promised.map_or(Joules::ZERO, |claim| self.charge(claim));
        match asked <= left {
            true => Ok(()),
            false => Err(Violation::Energy { job, asked, left }),
        }
    }

    fn insert(&mut self, job: JobId, claim: Claim) {
        self.withdraw(job);
        let charge = self.charge(&claim);
        self.committed += charge;
        match claim.runs {
            true => self.drawn += claim.power,
            false => self.pending += charge,
        }
        self.claims.insert(job, claim);
    }

    /// A job starts to draw; it has been checked that this can be paid.
    pub(super) fn begin(&mut self, job: JobId, power: Watts, until: Instant) {
        self.insert(job, Claim { from: self.now, until, power, runs: true });
    }

    /// A job stops: what it did not consume is left again.
    pub(super) fn finish(&mut self, job: JobId) {
        let Some(claim) = self.claims.remove(&job) else { return };
        let until = claim.until.min(self.now);
        let unused = self.charge(&claim).saturating_sub(self.charge(&Claim { until, ..claim }));
        self.committed = self.committed.saturating_sub(unused);
        self.drawn -= claim.power;
    }

    /// Takes back what a job that waits was promised; says whether there was anything.
    fn withdraw(&mut self, job: JobId) -> bool {
        let promised = self.claims.get(&job).copied().filter(|claim| !claim.runs);
        if let Some(claim) = promised {
            self.claims.remove(&job);
            let charge = self.charge(&claim);
            self.committed = self.committed.saturating_sub(charge);
            self.pending = self.pending.saturating_sub(charge);
        }
        promised.is_some()
    }

    /// Adds everything up again and says what does not agree.
    pub(super) fn check_sums(&self) -> Result<(), String> {
        if self.committed > self.budget.energy {
            return Err(format!("{} committed of {}", self.committed, self.budget.energy));
        }
        let of = |runs: bool| self.claims.values().filter(move |claim| claim.runs == runs);
        let pending: Joules = of(false).map(|claim| self.charge(claim)).sum();
        let to_come: Joules = of(true)
            .map(|claim| self.charge(&Claim { from: self.now.min(claim.until), ..*claim }))
            .sum();
        let drawn: Watts = of(true).map(|claim| claim.power).sum();
        if (pending, drawn) != (self.pending, self.drawn) {
            return Err(format!("{pending} pending and {drawn} drawn, but the account differs"));
        }
        if self.consumed + to_come + pending != self.committed {
            let parts = format!("{} consumed, {to_come} promised, {pending}", self.consumed);
            return Err(format!("{parts} pending do not make {} committed", self.committed));
        }
        Ok(())
    }
}

impl Ledger {
    /// From now on energy is counted, within a budget.
    pub(crate) fn open_account(&mut self, budget: EnergyBudget) {
        self.energy = Some(Box::new(EnergyAccount::new(budget, self.now)));
    }

    /// The energy account, if there is one.
    #[inline]
    pub fn energy(&self) -> Option<&EnergyAccount> {
        self.energy.as_deref()
    }

    /// Promises a job that waits the energy of running at a point from then on.
    pub(crate) fn promise(
        &mut self,
        job: JobId,
        point: &OperatingPoint,
        from: Instant,
    ) -> Result<(), Violation> {
        let Some(account) = &mut self.energy else { return Err(Violation::NoAccount { job }) };
        let from = from.max(account.now);
        let claim = Claim { from, until: from + point.time, power: point.power, runs: false };
        account.check(job, &claim)?;
        account.insert(job, claim);
        Ok(())
    }

    /// Takes back what a job that waits was promised; says whether there was anything.
    pub(crate) fn withdraw(&mut self, job: JobId) -> bool {
        self.energy.as_mut().is_some_and(|account| account.withdraw(job))
    }

    /// Whether a job can pay for drawing so much from now until then.
    #[inline]
    pub(super) fn can_pay(
        &self,
        job: JobId,
        power: Watts,
        until: Instant,
    ) -> Result<(), Violation> {
        match &self.energy {
            None => Ok(()),
            Some(account) => {
                account.check(job, &Claim { from: self.now, until, power, runs: true })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::machine::Machine;
    use crate::units::Span;
    use proptest::prelude::*;

    fn point(watts: u32, seconds: u32) -> OperatingPoint {
        OperatingPoint {
            nodes: 1,
            cores: 1,
            cap: Watts::from_watts(watts),
            time: Span::from_secs(seconds),
            power: Watts::from_watts(watts),
        }
    }

    fn ledger(joules: u64, begin: u32, end: u32) -> Ledger {
        let mut ledger = Ledger::new(&Machine::of_processors(8).unwrap(), Budget::unlimited());
        let (begin, end) = (Instant::from_secs(begin), Instant::from_secs(end));
        ledger.open_account(EnergyBudget { energy: Joules::from_joules(joules), begin, end });
        ledger
    }

    fn joules(ledger: &Ledger) -> [f64; 4] {
        let account = ledger.energy().unwrap();
        let all = [account.consumed(), account.promised(), account.pending(), account.left()];
        all.map(Joules::as_f64)
    }

    /// 1000 J for the seconds from 10 to 30. A job of 10 W runs from 0 to 20: half of it counts. One
    /// of 20 W is to run from 20 to 40: half of that, too.
    #[test]
    fn only_the_period_is_charged() {
        let mut ledger = ledger(1000, 10, 30);
        ledger.start(JobId(0), &point(10, 20)).unwrap();
        assert_eq!(joules(&ledger), [0.0, 100.0, 0.0, 900.0]);
        ledger.promise(JobId(1), &point(20, 20), Instant::from_secs(20)).unwrap();
        assert_eq!(joules(&ledger), [0.0, 100.0, 200.0, 700.0]);
        ledger.advance(Instant::from_secs(15));
        assert_eq!(joules(&ledger), [50.0, 50.0, 200.0, 700.0]);
        ledger.advance(Instant::from_secs(20));
        ledger.release(JobId(0)).unwrap();
        ledger.start(JobId(1), &point(20, 20)).unwrap();
        assert_eq!(joules(&ledger), [100.0, 200.0, 0.0, 700.0]);
        ledger.advance(Instant::from_secs(40));
        ledger.release(JobId(1)).unwrap();
        assert_eq!(joules(&ledger), [300.0, 0.0, 0.0, 700.0]);
        assert_eq!(ledger.check(), Ok(()));
    }

    #[test]
    fn what_cannot_be_paid_changes_nothing() {
        let mut ledger = ledger(100, 0, 100);
        ledger.promise(JobId(0), &point(1, 60), Instant::ZERO).unwrap();
        let refused = ledger.start(JobId(1), &point(1, 41));
        let (asked, left) = (Joules::from_joules(41), Joules::from_joules(40));
        assert_eq!(refused, Err(Violation::Energy { job: JobId(1), asked, left }));
        assert_eq!(ledger.free_nodes(), 8);
        let more = ledger.promise(JobId(1), &point(1, 41), Instant::ZERO);
        assert!(matches!(more, Err(Violation::Energy { .. })));
        // Its own promise counts: 60 J of it and the 40 J that are left.
        ledger.start(JobId(0), &point(1, 100)).unwrap();
        assert_eq!(joules(&ledger), [0.0, 100.0, 0.0, 0.0]);
        // It ends early, and the rest is left again.
        ledger.advance(Instant::from_secs(30));
        ledger.release(JobId(0)).unwrap();
        assert_eq!(joules(&ledger), [30.0, 0.0, 0.0, 70.0]);
        assert!(!ledger.withdraw(JobId(0)));
        assert_eq!(ledger.check(), Ok(()));
    }

    /// A change is charged at the old power until now and at the new one from now on.
    #[test]
    fn changes_are_paid_for() {
        let mut ledger = ledger(100, 0, 100);
        ledger.start(JobId(0), &point(2, 40)).unwrap();
        ledger.advance(Instant::from_secs(10));
        let refused = ledger.change(JobId(0), &point(1, 81), Span::from_secs(81));
        assert!(matches!(refused, Err(Violation::Energy { .. })), "{refused:?}");
        assert_eq!(joules(&ledger), [20.0, 60.0, 0.0, 20.0]);
        ledger.change(JobId(0), &point(1, 80), Span::from_secs(80)).unwrap();
        assert_eq!(joules(&ledger), [20.0, 80.0, 0.0, 0.0]);
        assert_eq!(ledger.check(), Ok(()));
    }

    #[test]
    fn without_an_account_nothing_is_promised() {
        let mut ledger = Ledger::new(&Machine::of_processors(8).unwrap(), Budget::unlimited());
        let refused = ledger.promise(JobId(0), &point(1, 1), Instant::ZERO);
        assert_eq!(refused, Err(Violation::NoAccount { job: JobId(0) }));
        assert!(ledger.energy().is_none());
    }

    proptest! {
        /// Whatever is asked for, consumed and promised add up to a plain sum over seconds and stay
        /// within the budget.
        #[test]
        fn the_account_is_never_overdrawn(
            energy in 0u64..2000,
            begin in 0u32..20,
            length in 0u32..60,
            steps in prop::collection::vec((0u8..5, 0u32..6, 1u32..20, 1u32..30), 1..60),
        ) {
            let mut ledger = ledger(energy, begin, begin + length);
            let mut now = 0u32;
            // What was really drawn: job, power, first second and the one after the last.
            let mut drawn: Vec<(u32, u64, u32, u32)> = Vec::new();
            let period = |from: u32, until: u32| {
                (from.max(begin)..until.min(begin + length)).count() as u64
            };
            for (step, job, watts, seconds) in steps {
                match step {
                    0 => {
                        // Whoever has run its time gives back what it holds at that instant.
                        for _ in 0..seconds / 3 {
                            now += 1;
                            ledger.advance(Instant::from_secs(now));
                            for (job, _, _, until) in &mut drawn {
                                if *until == now && *job < 100 {
                                    ledger.release(JobId(*job)).unwrap();
                                    *job += 100;
                                }
                            }
                        }
                    }
                    1 => {
                        if let Some(entry) = drawn.iter_mut().find(|entry| entry.0 == job) {
                            ledger.release(JobId(job)).unwrap();
                            (entry.0, entry.3) = (job + 100, now);
                        }
                    }
                    2 => {
                        let from = Instant::from_secs(now + seconds / 2);
                        if !ledger.holds(JobId(job)) {
                            let _ = ledger.promise(JobId(job), &point(watts, seconds), from);
                        }
                    }
                    3 => {
                        if !ledger.holds(JobId(job)) {
                            ledger.withdraw(JobId(job));
                        }
                    }
                    _ => {
                        if ledger.start(JobId(job), &point(watts, seconds)).is_ok() {
                            drawn.push((job, u64::from(watts), now, now + seconds));
                        }
                    }
                }
                prop_assert_eq!(ledger.check(), Ok(()));
                let sum = |end: &dyn Fn(u32) -> u32| -> u64 {
                    drawn.iter().map(|(_, watts, from, until)| watts * period(*from, end(*until))).sum()
                };
                let account = ledger.energy().unwrap();
                prop_assert_eq!(account.consumed(), Joules::from_joules(sum(&|until| until.min(now))));
                let all = account.consumed() + account.promised();
                prop_assert_eq!(all, Joules::from_joules(sum(&|until| until)));
                prop_assert_eq!(
                    all + account.pending() + account.left(), Joules::from_joules(energy)
                );
            }
        }
    }
}
