//! The books added up again from the single holdings.

use super::Ledger;
use crate::units::Watts;

impl Ledger {
    /// Adds everything up again and says what does not agree.
    pub fn check(&self) -> Result<(), String> {
        let (mut nodes, mut power, mut count) = (0u32, Watts::ZERO, 0);
        let mut previous = None;
        for holding in self.running.iter() {
            nodes += holding.nodes;
            power += holding.power;
            count += 1;
            if previous.replace(holding.until).is_some_and(|earlier| earlier > holding.until) {
                return Err(format!("{} is out of order among the running jobs", holding.job));
            }
            if self.until.get(holding.job.index()) != Some(&holding.until) {
                return Err(format!("{} runs, but is not known to hold anything", holding.job));
            }
        }
        if count != self.running.len() {
            return Err(format!("{count} jobs run, but {} are counted", self.running.len()));
        }
        let counted =
            nodes.checked_add(self.free_nodes).and_then(|n| n.checked_add(self.down_nodes));
        if counted != Some(self.total_nodes) {
            return Err(format!(
                "{nodes} nodes held, {} free and {} down do not make {}",
                self.free_nodes, self.down_nodes, self.total_nodes
            ));
        }
        self.check_switched()?;
        self.check_feeds()?;
        self.check_seats()?;
        if power != self.held {
            return Err(format!("jobs hold {power}, but the ledger says {}", self.held));
        }
        if let Some(job) = self.suspended.keys().find(|job| !self.stands_still(**job)) {
            return Err(format!("{job} is suspended, but does not hold what that means"));
        }
        self.energy.as_ref().map_or(Ok(()), |account| account.check_sums())?;
        self.placement.as_ref().map_or(Ok(()), |placement| placement.check(&self.running))
    }
}
