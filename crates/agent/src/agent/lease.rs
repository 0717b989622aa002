//! The lease: the right of one controller to set caps, as long as it renews it.

use std::fmt;
use std::time::{Duration, Instant};

use time::OffsetDateTime;

use crate::instance::Instance;
use crate::record::Controller;

/// A controller, as the agent tells one from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The user or certificate.
    pub(crate) name: String,
    /// Which of several controllers of that name; older ones do not say.
    pub(crate) instance: Option<Instance>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.instance.iter().try_for_each(|instance| write!(f, ", instance {instance}"))
    }
}

/// The right to set caps, and the duty to renew it.
#[derive(Clone, Debug)]
pub(super) struct Lease {
    pub(super) holder: Holder,
    pub(super) length: Duration,
    pub(super) until: Instant,
    /// When the holder got it, in milliseconds since 1970.
    since: u64,
}

impl Lease {
    pub(super) fn new(holder: Holder, length: Duration, now: Instant, since: u64) -> Self {
        Lease { holder, length, until: now + length, since }
    }

    /// The lease from before a restart of the agent, from now on.
    pub(super) fn resumed(kept: &Controller, now: Instant) -> Self {
        let holder = Holder { name: kept.name.clone(), instance: kept.instance.clone() };
        Lease::new(holder, kept.lease, now, kept.since)
    }

    /// What is kept of it for a restart.
    pub(super) fn kept(&self) -> Controller {
        let Holder { name, instance } = self.holder.clone();
        Controller { name, instance, lease: self.length, since: self.since }
    }

    /// Whether it is this controller's. One that did not say which instance it is may have been updated meanwhile.
    pub(super) fn is_of(&self, other: &Holder) -> bool {
        let is_same_instance = self.holder.instance == other.instance;
        self.holder.name == other.name && (is_same_instance || self.holder.instance.is_none())
    }

    /// When the holder got it, for the next lease of the same one.
    pub(super) fn since(&self) -> u64 {
        self.since
    }

    /// Why somebody else cannot have it now. The text is the same as long as the holder is.
    pub(super) fn refusal(&self) -> String {
        format!(
            "another controller holds the lease: {}, since {}. A node has one controller at a time: stop one of the two",
            self.holder,
            utc(self.since)
        )
    }
}

/// A time in milliseconds since 1970, for people.
fn utc(at: u64) -> String {
    let seconds = i64::try_from(at / 1000).unwrap_or(i64::MAX);
    match OffsetDateTime::from_unix_timestamp(seconds) {
        Ok(time) => {
            let (hour, minute, second) = time.to_hms();
            format!("{} {hour:02}:{minute:02}:{second:02} UTC", time.date())
        }
        Err(_) => format!("second {seconds}"),
    }
}
