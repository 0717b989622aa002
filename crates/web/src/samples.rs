//! The power of the last day, for the chart of the page.
//!
//! A sample stands for ten seconds, and is the highest power in them. Samples are appended to a file in the state
//! folder, so that a daemon that starts again still shows the hours before. A line that cannot be read, for instance
//! because the machine lost its power while it was written, is passed over.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use busbar_core::units::{Watts, json};
use busbar_live::wire::PowerState;
use busbar_trust::{Durability, TrustedFolder};
use rustix::fs::OFlags;
use serde::Serialize;
use utoipa::ToSchema;

/// How many seconds a sample stands for.
const EVERY: i64 = 10;

/// How many samples are kept: those of a day.
const KEPT: usize = 24 * 3600 / EVERY as usize;

/// The file in the state folder.
const FILE: &str = "power.csv";

/// The power in ten seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Sample {
    /// When they began, in seconds since 1970.
    #[serde(rename = "at_s")]
    pub at: i64,
    /// The lowest limit; `None` if there was none.
    #[serde(rename = "limit_w", with = "json")]
    #[schema(value_type = Option<f64>)]
    pub limit: Option<Watts>,
    /// The highest power that the ledger counted: what the machine draws anyway, and what jobs hold.
    #[serde(rename = "counted_w", with = "json")]
    #[schema(value_type = f64)]
    pub counted: Watts,
    /// The highest measured power, where nodes have meters.
    #[serde(rename = "measured_w", with = "json")]
    #[schema(value_type = Option<f64>)]
    pub measured: Option<Watts>,
}

/// The samples of the last day.
pub(crate) struct Samples {
    folder: TrustedFolder,
    kept: Mutex<VecDeque<Sample>>,
    /// The sample that is not complete yet.
    present: Mutex<Option<Sample>>,
}

impl Samples {
    /// Those that an earlier daemon has left in a state folder.
    pub(crate) fn open(state: TrustedFolder) -> Self {
        let text = read(&state).unwrap_or_else(|error| {
            tracing::warn!(%error, "the power of the last day cannot be read");
            String::new()
        });
        let all: Vec<Sample> = text.lines().filter_map(parse).collect();
        let kept: VecDeque<Sample> =
            all[all.len().saturating_sub(KEPT)..].iter().copied().collect();
        let samples = Samples { folder: state, kept: Mutex::new(kept), present: Mutex::default() };
        if all.len() > KEPT {
            samples.write_anew();
        }
        samples
    }

    /// Takes in the power at a time, in seconds since 1970.
    pub(crate) fn note(&self, at: i64, power: &PowerState) {
        let at = at.div_euclid(EVERY) * EVERY;
        let measured = power.measured.as_ref().map(|measured| measured.power);
        let now = Sample { at, limit: power.limit, counted: power.base + power.held, measured };
        let mut present = lock(&self.present);
        let done = match &mut *present {
            Some(sample) if sample.at == at => {
                sample.join(&now);
                return;
            }
            present => present.replace(now),
        };
        drop(present);
        if let Some(sample) = done {
            self.keep(sample);
        }
    }

    /// The samples from a time on, in seconds since 1970; the last one may not be complete.
    pub(crate) fn since(&self, from: i64) -> Vec<Sample> {
        let kept = lock(&self.kept);
        let first = kept.partition_point(|sample| sample.at < from);
        kept.range(first..).copied().chain(*lock(&self.present)).collect()
    }

    fn keep(&self, sample: Sample) {
        let mut kept = lock(&self.kept);
        // A clock that was set back makes the later samples those of a time that did not come yet.
        while kept.back().is_some_and(|last| last.at >= sample.at) {
            kept.pop_back();
        }
        kept.push_back(sample);
        let is_full = kept.len() > KEPT;
        if is_full {
            kept.pop_front();
        }
        drop(kept);
        // The chart is not worth more than a line in the log.
        if let Err(error) = self.append(sample) {
            tracing::debug!(%error, "a sample of the power cannot be written");
        }
    }

    fn append(&self, sample: Sample) -> io::Result<()> {
        let mut file = self.folder.file(FILE, OFlags::WRONLY | OFlags::APPEND)?;
        // Older lines are left out when the daemon starts, or here when there are as many as are kept.
        if file.metadata()?.len() > MOST_BYTES {
            self.write_anew();
            return Ok(());
        }
        file.write_all(line(&sample).as_bytes())
    }

    fn write_anew(&self) {
        let text: String = lock(&self.kept).iter().map(line).collect();
        let written = self.folder.replace(FILE, text.as_bytes(), 0o600, Durability::Later);
        if let Err(error) = written {
            tracing::debug!(%error, "the samples of the power cannot be written");
        }
    }
}

/// The size of the file from which on it is written anew.
const MOST_BYTES: u64 = 2 * KEPT as u64 * 60;

impl Sample {
    fn join(&mut self, other: &Sample) {
        self.limit = match (self.limit, other.limit) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.counted = self.counted.max(other.counted);
        self.measured = self.measured.max(other.measured);
    }
}

fn read(state: &TrustedFolder) -> io::Result<String> {
    let mut text = String::new();
    if let Some(mut file) = state.existing_file(FILE)? {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn line(sample: &Sample) -> String {
    let number = |power: Option<Watts>| power.map(|power| power.milliwatts().to_string());
    let mut text = String::new();
    let (limit, measured) = (number(sample.limit), number(sample.measured));
    let _ = writeln!(
        text,
        "{},{},{},{}",
        sample.at,
        limit.unwrap_or_default(),
        sample.counted.milliwatts(),
        measured.unwrap_or_default()
    );
    text
}

fn parse(line: &str) -> Option<Sample> {
    let watts = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(|power| Some(Watts::from_milliwatts(power))),
    };
    let mut fields = line.split(',');
    let mut next = || fields.next();
    let at = next()?.parse().ok()?;
    let (limit, counted, measured) = (watts(next()?)?, watts(next()?)??, watts(next()?)?);
    next().is_none().then_some(Sample { at, limit, counted, measured })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;
    use busbar_live::wire::MeasuredPower;

    fn power(limit: Option<u32>, held: u32, measured: Option<u32>) -> PowerState {
        let measured = measured.map(|watts| MeasuredPower {
            power: Watts::from_watts(watts),
            nodes: 1,
            emulated: true,
        });
        PowerState {
            limit: limit.map(Watts::from_watts),
            base: Watts::from_watts(10),
            held: Watts::from_watts(held),
            free: None,
            set_by_operator: false,
            to_come: Vec::new(),
            notice: None,
            emulated: true,
            measured,
        }
    }

    #[test]
    fn a_sample_is_the_worst_of_its_ten_seconds_and_survives() {
        let folder = tempfile::tempdir().unwrap();
        let samples = Samples::open(testing::state(&folder));
        samples.note(1000, &power(Some(500), 100, None));
        samples.note(1009, &power(Some(400), 300, Some(250)));
        samples.note(1010, &power(None, 50, Some(60)));
        let first = Sample {
            at: 1000,
            limit: Some(Watts::from_watts(400)),
            counted: Watts::from_watts(310),
            measured: Some(Watts::from_watts(250)),
        };
        let second = Sample {
            at: 1010,
            limit: None,
            counted: Watts::from_watts(60),
            measured: Some(Watts::from_watts(60)),
        };
        assert_eq!(samples.since(0), [first, second]);
        assert_eq!(samples.since(1001), [second]);
        samples.note(1020, &power(None, 0, None));
        let file = folder.path().join(FILE);
        let cut = fs::read_to_string(&file).unwrap() + "1030,12";
        fs::write(&file, cut).unwrap();
        assert_eq!(Samples::open(testing::state(&folder)).since(0), [first, second]);
    }
}
