//! The budget of mode `admit`: licences that the limit does not allow are reserved, so that no job gets them.
//!
//! Slurm hands out whatever is not reserved, so at every look the licences are compared with what was left there last:
//! administrators may have deleted or changed the reservation, or given Slurm other licences. One call tells both what there is and
//! what is reserved. The reservation itself is read only if they differ, and every now and then for its end.

use std::time::{Duration, Instant};

use busbar_core::units::Watts;
use busbar_slurm::cluster::Cluster;
use busbar_slurm::error::SlurmError;
use busbar_slurm::model::{Amounts, Licence};
use busbar_slurm::release_all::RESERVATION;

/// How often the reservation itself is read though its licences are all there: for its end, and for whom it is.
const RARELY: Duration = Duration::from_secs(600);

/// The reservation, as it should be and as it was left.
pub(super) struct Reserved {
    licence: String,
    /// What jobs may draw. Until the daemon has said that, the reservation stays as it is.
    limit: Option<Option<Watts>>,
    left: Option<Left>,
    /// Why it could not be put right the last time.
    failure: Option<String>,
}

/// How it was left.
struct Left {
    /// The licences that there were.
    total: u64,
    /// Those in the reservation.
    reserved: u64,
    /// Those that were reserved in all, also by others.
    reserved_in_all: u64,
    /// Whether that was for the present limit.
    is_due: bool,
    at: Instant,
}

impl Left {
    /// Whether the licences say that nothing has changed.
    fn is_still_so(&self, found: &Licence) -> bool {
        !self.is_due
            && self.total == found.total
            && self.reserved_in_all == found.reserved
            && self.at.elapsed() < RARELY
    }
}

impl Reserved {
    pub(super) fn new(licence: String) -> Self {
        Reserved { licence, limit: None, left: None, failure: None }
    }

    /// Sets what jobs may draw.
    pub(super) fn set_limit(&mut self, limit: Option<Watts>) {
        self.limit = Some(limit);
        if let Some(left) = &mut self.left {
            left.is_due = true;
        }
    }

    /// Takes the reservation that is there for what is wanted.
    pub(super) fn adopt(&mut self, cluster: &dyn Cluster) -> Result<(), SlurmError> {
        let (total, reserved) = (self.licences(cluster)?.total, self.reserved(cluster)?);
        let left = total.saturating_sub(reserved).saturating_mul(1000);
        self.set_limit(Some(Watts::from_milliwatts(left)));
        Ok(())
    }

    /// How many licences there were at the last look.
    pub(super) fn total(&self) -> u64 {
        self.left.as_ref().map_or(0, |left| left.total)
    }

    /// Looks whether everything is as it was left, and puts it right if not. Says what somebody else has changed, or why it could
    /// not be put right; the same failure is said once.
    pub(super) fn look(&mut self, cluster: &dyn Cluster) -> Option<String> {
        match self.put_right(cluster) {
            Ok(notice) => {
                self.failure = None;
                notice
            }
            Err(error) => {
                let text = format!("the budget of Slurm cannot be set; retrying: {error}");
                let is_new = self.failure.as_ref() != Some(&text);
                self.failure = Some(text.clone());
                is_new.then_some(text)
            }
        }
    }

    fn put_right(&mut self, cluster: &dyn Cluster) -> Result<Option<String>, SlurmError> {
        let Some(limit) = self.limit else { return Ok(None) };
        let found = self.licences(cluster)?;
        if self.left.as_ref().is_some_and(|left| left.is_still_so(&found)) {
            return Ok(None);
        }
        // Whole watts, rounded down: what is not quite there is not handed out.
        let allowed = limit.map_or(found.total, |limit| limit.milliwatts() / 1000);
        let wanted = found.total.saturating_sub(allowed);
        let before = self.reserved(cluster)?;
        let changed = self.left.as_ref().and_then(|left| self.difference(left, &found, before));
        cluster.reserve(RESERVATION, &Amounts::from([(self.licence.clone(), wanted)]))?;
        let (total, at) = (found.total, Instant::now());
        // Slurm says what others have reserved only together with ours.
        let reserved_in_all = self.licences(cluster)?.reserved;
        let left = Left { total, reserved: wanted, reserved_in_all, is_due: false, at };
        self.left = Some(left);
        Ok(changed.map(|changed| {
            let name = &self.licence;
            format!("{changed}; {wanted} of {total} licences '{name}' are reserved again")
        }))
    }

    /// What somebody else has changed, in words.
    fn difference(&self, left: &Left, found: &Licence, reserved: u64) -> Option<String> {
        let name = &self.licence;
        if left.total != found.total {
            return Some(format!(
                "Slurm has {} licences '{name}' instead of {}",
                found.total, left.total
            ));
        }
        match reserved {
            same if same == left.reserved => None,
            0 => Some(format!("the reservation '{RESERVATION}' of Slurm was removed")),
            other => Some(format!(
                "the reservation '{RESERVATION}' of Slurm had {other} licences instead of {}",
                left.reserved
            )),
        }
    }

    fn licences(&self, cluster: &dyn Cluster) -> Result<Licence, SlurmError> {
        let all = cluster.licences()?;
        let found =
            all.into_iter().find(|licence| licence.name == self.licence && licence.total > 0);
        found.ok_or_else(|| SlurmError::NotFound {
            what: format!("licence '{}'", self.licence),
            text: "'scontrol show licenses' does not name it".to_owned(),
        })
    }

    /// What the reservation holds.
    fn reserved(&self, cluster: &dyn Cluster) -> Result<u64, SlurmError> {
        let all = cluster.reservations()?;
        let ours = all.iter().find(|one| one.name == RESERVATION);
        Ok(ours.and_then(|ours| ours.licences.get(&self.licence)).copied().unwrap_or(0))
    }
}
