//! The power of the past, for the charts of the page: ten seconds long for a day, minutes for a week, and quarters of an
//! hour for a year.
//!
//! What is kept of a stretch of time is its highest power and its energy, so that peaks stay and energy is exact however
//! coarse a stretch is. Each resolution has a file in the state folder, to which complete stretches are appended; a daemon
//! that starts again goes on from there, and makes up coarse stretches that were not complete from finer ones. A line that
//! cannot be read, for instance because the machine lost its power while it was written, is passed over.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use busbar_core::units::{Joules, Span, Watts, json};
use busbar_live::wire::PowerState;
use busbar_trust::{Durability, TrustedFolder};
use rustix::fs::OFlags;
use serde::Serialize;
use utoipa::ToSchema;

/// A resolution: how many seconds a stretch is, how many are kept, and in which file of the state folder.
struct Resolution {
    every: i64,
    kept: usize,
    file: &'static str,
}

const DAY: i64 = 24 * 3600;

/// The resolutions, the finest first.
const RESOLUTIONS: [Resolution; 3] = [
    Resolution { every: 10, kept: (DAY / 10) as usize, file: "power.csv" },
    Resolution { every: 60, kept: (7 * DAY / 60) as usize, file: "power-minutes.csv" },
    Resolution { every: 900, kept: (366 * DAY / 900) as usize, file: "power-quarters.csv" },
];

/// The bytes of a line in a file, at most as a rule.
const LINE: u64 = 120;

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

/// What is kept of a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// When it began, in seconds since 1970.
    pub at: i64,
    /// The lowest limit; `None` if there was none.
    pub limit: Option<Watts>,
    /// The highest power that the ledger counted.
    pub counted: Watts,
    /// The highest measured power.
    pub measured: Option<Watts>,
    /// The counted energy, and for how long it is known.
    pub counted_energy: Known,
    /// The measured energy, and for how long it is known.
    pub measured_energy: Known,
}

/// Energy, and for how long it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The energy in that time.
    pub energy: Joules,
    /// For how long it is known.
    pub time: Span,
}

impl Known {
    fn of(power: Watts, time: Span) -> Self {
        Known { energy: power.over(time), time }
    }

    pub(crate) fn add(&mut self, other: Known) {
        self.energy += other.energy;
        self.time = self.time + other.time;
    }
}

impl Stretch {
    /// What was seen at a time, in seconds since 1970, and held for a while before.
    fn seen(at: i64, during: Duration, power: &PowerState) -> Self {
        let counted = power.base + power.held;
        let measured = power.measured.as_ref().map(|measured| measured.power);
        let time = Span::from_millis(u64::try_from(during.as_millis()).unwrap_or(u64::MAX));
        Stretch {
            at,
            limit: power.limit,
            counted,
            measured,
            counted_energy: Known::of(counted, time),
            measured_energy: measured.map_or(Known::default(), |power| Known::of(power, time)),
        }
    }

    fn join(&mut self, other: &Stretch) {
        self.limit = match (self.limit, other.limit) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.counted = self.counted.max(other.counted);
        self.measured = self.measured.max(other.measured);
        self.counted_energy.add(other.counted_energy);
        self.measured_energy.add(other.measured_energy);
    }

    fn sample(&self) -> Sample {
        let Stretch { at, limit, counted, measured, .. } = *self;
        Sample { at, limit, counted, measured }
    }
}

/// The power of the past, in all resolutions.
pub(crate) struct Samples {
    folder: TrustedFolder,
    tiers: [Mutex<Tier>; 3],
}

/// The stretches of one resolution, in order, and the one that is not complete yet.
#[derive(Default)]
struct Tier {
    kept: VecDeque<Stretch>,
    present: Option<Stretch>,
}

impl Tier {
    fn all(&self) -> impl Iterator<Item = &Stretch> {
        self.kept.iter().chain(&self.present)
    }

    /// Takes in what is finer; returns a stretch that is complete.
    fn take(&mut self, resolution: &Resolution, finer: &Stretch) -> Option<Stretch> {
        let at = finer.at.div_euclid(resolution.every) * resolution.every;
        match &mut self.present {
            Some(present) if present.at == at => {
                present.join(finer);
                None
            }
            present => {
                let done = present.replace(Stretch { at, ..*finer })?;
                self.keep(resolution, done);
                Some(done)
            }
        }
    }

    fn keep(&mut self, resolution: &Resolution, stretch: Stretch) {
        // A clock that was set back makes the later ones those of a time that did not come yet.
        while self.kept.back().is_some_and(|last| last.at >= stretch.at) {
            self.kept.pop_back();
        }
        self.kept.push_back(stretch);
        if self.kept.len() > resolution.kept {
            self.kept.pop_front();
        }
    }
}

impl Samples {
    /// Those that an earlier daemon has left in a state folder.
    pub(crate) fn open(state: TrustedFolder) -> Self {
        let samples = Samples { folder: state, tiers: Default::default() };
        for (resolution, tier) in RESOLUTIONS.iter().zip(&samples.tiers) {
            samples.read(resolution, &mut lock(tier));
        }
        // What an earlier daemon had not completed is in the finer stretches, as far as they reach.
        for (place, resolution) in RESOLUTIONS.iter().enumerate().skip(1) {
            let finer: Vec<Stretch> = lock(&samples.tiers[place - 1]).all().copied().collect();
            let known = lock(&samples.tiers[place]).kept.back().map(|last| last.at);
            let from = known.map_or(i64::MIN, |last| last + resolution.every);
            for stretch in finer.iter().filter(|stretch| stretch.at >= from) {
                samples.take(place, stretch);
            }
        }
        samples
    }

    /// Takes in the power at a time, in seconds since 1970, which held for a while before.
    pub(crate) fn note(&self, at: i64, during: Duration, power: &PowerState) {
        let seen = Stretch::seen(at, during, power);
        (0..RESOLUTIONS.len()).for_each(|place| self.take(place, &seen));
    }

    /// The samples of the last day from a time on, in seconds since 1970; the last one may not be complete.
    pub(crate) fn since(&self, from: i64) -> Vec<Sample> {
        let tier = lock(&self.tiers[0]);
        tier.all().filter(|stretch| stretch.at >= from).map(Stretch::sample).collect()
    }

    /// The stretches from one time until before another, in seconds since 1970, at most so many, and how many seconds
    /// long they are: in the finest resolution that reaches so far back, and joined if there are too many.
    pub(crate) fn between(&self, from: i64, until: i64, most: u32) -> (i64, Vec<Stretch>) {
        let latest = lock(&self.tiers[0]).all().last().map_or(i64::MAX, |last| last.at);
        let reaches = |resolution: &Resolution| {
            let reach = resolution.every.saturating_mul(resolution.kept as i64);
            latest.saturating_sub(reach) <= from
        };
        let place = RESOLUTIONS.iter().position(reaches).unwrap_or(RESOLUTIONS.len() - 1);
        let every = RESOLUTIONS[place].every;
        let tier = lock(&self.tiers[place]);
        let within: Vec<&Stretch> =
            tier.all().filter(|stretch| (from..until).contains(&stretch.at)).collect();
        let (Some(first), Some(last)) = (within.first(), within.last()) else {
            return (every, Vec::new());
        };
        let steps = (last.at - first.at) / every + 1;
        // One more than fits may be needed, because joined stretches begin at round times.
        let step = match steps <= i64::from(most) {
            true => every,
            false => every * steps.div_euclid(i64::from(most.max(2)) - 1).saturating_add(1),
        };
        let mut joined: BTreeMap<i64, Stretch> = BTreeMap::new();
        for stretch in within {
            let at = stretch.at.div_euclid(step) * step;
            let known = joined.get_mut(&at);
            match known {
                Some(known) => known.join(stretch),
                None => _ = joined.insert(at, Stretch { at, ..*stretch }),
            }
        }
        (step, joined.into_values().collect())
    }

    fn take(&self, place: usize, finer: &Stretch) {
        let resolution = &RESOLUTIONS[place];
        let mut tier = lock(&self.tiers[place]);
        let Some(done) = tier.take(resolution, finer) else { return };
        // The chart is not worth more than a line in the log.
        if let Err(error) = self.append(resolution, &tier, &done) {
            tracing::debug!(%error, "a sample of the power cannot be written");
        }
    }

    fn append(&self, resolution: &Resolution, tier: &Tier, done: &Stretch) -> io::Result<()> {
        let mut file = self.folder.file(resolution.file, OFlags::WRONLY | OFlags::APPEND)?;
        // Older lines are left out when the daemon starts, or here when there are twice as many as are kept.
        if file.metadata()?.len() > 2 * LINE * resolution.kept as u64 {
            self.write_anew(resolution, tier);
            return Ok(());
        }
        file.write_all(line(done).as_bytes())
    }

    fn write_anew(&self, resolution: &Resolution, tier: &Tier) {
        let text: String = tier.kept.iter().map(line).collect();
        let written =
            self.folder.replace(resolution.file, text.as_bytes(), 0o600, Durability::Later);
        if let Err(error) = written {
            tracing::debug!(%error, "the samples of the power cannot be written");
        }
    }

    fn text(&self, resolution: &Resolution) -> io::Result<String> {
        let mut text = String::new();
        if let Some(mut file) = self.folder.existing_file(resolution.file)? {
            file.read_to_string(&mut text)?;
        }
        Ok(text)
    }

    fn read(&self, resolution: &Resolution, tier: &mut Tier) {
        let text = self.text(resolution).unwrap_or_else(|error| {
            tracing::warn!(%error, file = resolution.file, "the power of the past cannot be read");
            String::new()
        });
        let mut lines = 0;
        for stretch in text.lines().filter_map(parse) {
            tier.keep(resolution, stretch);
            lines += 1;
        }
        if lines > resolution.kept {
            self.write_anew(resolution, tier);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliwatts, milliseconds and microjoules, exactly.
fn line(stretch: &Stretch) -> String {
    let number = |power: Option<Watts>| power.map(|power| power.milliwatts().to_string());
    let known =
        |Known { energy, time }: Known| format!("{},{}", time.millis(), energy.microjoules());
    format!(
        "{},{},{},{},{},{}\n",
        stretch.at,
        number(stretch.limit).unwrap_or_default(),
        stretch.counted.milliwatts(),
        number(stretch.measured).unwrap_or_default(),
        known(stretch.counted_energy),
        known(stretch.measured_energy),
    )
}

fn parse(line: &str) -> Option<Stretch> {
    let watts = |text: &str| match text {
        "" => Some(None),
        text => text.parse().ok().map(|power| Some(Watts::from_milliwatts(power))),
    };
    let known = |time: &str, energy: &str| {
        let (time, energy) = (time.parse().ok()?, energy.parse().ok()?);
        Some(Known { energy: Joules::from_microjoules(energy), time: Span::from_millis(time) })
    };
    let fields: Vec<&str> = line.split(',').collect();
    let (seen, energies) = match &fields[..] {
        // Earlier daemons wrote no energy, which is not known then.
        [at, limit, counted, measured] => {
            ([at, limit, counted, measured], (Known::default(), Known::default()))
        }
        [at, limit, counted, measured, time, energy, measured_time, measured_energy] => (
            [at, limit, counted, measured],
            (known(time, energy)?, known(measured_time, measured_energy)?),
        ),
        _ => return None,
    };
    let [at, limit, counted, measured] = seen;
    Some(Stretch {
        at: at.parse().ok()?,
        limit: watts(limit)?,
        counted: watts(counted)??,
        measured: watts(measured)?,
        counted_energy: energies.0,
        measured_energy: energies.1,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;
    use busbar_live::wire::MeasuredPower;

    const SECOND: Duration = Duration::from_secs(1);

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
            feeds: Vec::new(),
        }
    }

    #[test]
    fn a_sample_is_the_worst_of_its_ten_seconds_and_survives() {
        let folder = tempfile::tempdir().unwrap();
        let samples = Samples::open(testing::state(&folder));
        samples.note(1000, SECOND, &power(Some(500), 100, None));
        samples.note(1009, SECOND, &power(Some(400), 300, Some(250)));
        samples.note(1010, SECOND, &power(None, 50, Some(60)));
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
        samples.note(1020, SECOND, &power(None, 0, None));
        let file = folder.path().join("power.csv");
        let cut = fs::read_to_string(&file).unwrap() + "1030,12";
        fs::write(&file, cut).unwrap();
        assert_eq!(Samples::open(testing::state(&folder)).since(0), [first, second]);
    }

    /// The energy and the time of stretches together.
    fn total(stretches: &[Stretch]) -> Known {
        let mut total = Known::default();
        stretches.iter().for_each(|stretch| total.add(stretch.counted_energy));
        total
    }

    /// Ten days in steps of ten seconds, at 100 W but for one second of 500 W: peaks and energy stay, however coarse the
    /// stretches are, and what is kept is bounded.
    #[test]
    fn energy_is_exact_in_all_resolutions_and_little_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let samples = Samples::open(testing::state(&folder));
        let (begin, days) = (900_000 * 900, 10);
        for at in (begin..begin + days * DAY).step_by(10) {
            let held = if at == begin + 5000 { 490 } else { 90 };
            samples.note(at, Duration::from_secs(10), &power(None, held, None));
        }
        let expected = |seconds: i64, more: u64| Known {
            energy: Joules::from_joules(100 * seconds as u64 + more),
            time: Span::from_millis(1000 * seconds as u64),
        };
        let end = begin + days * DAY;
        // All of it is there in quarters of an hour, at most a hundred times as coarse: with the peak.
        let (step, all) = samples.between(begin, end, 10_000);
        assert_eq!((step, all.len()), (900, 960));
        assert_eq!(total(&all), expected(days * DAY, 4000));
        let highest = all.iter().map(|stretch| stretch.counted).max();
        assert_eq!(highest, Some(Watts::from_watts(500)));
        let (step, few) = samples.between(begin, end, 100);
        assert!(few.len() <= 100 && step % 900 == 0, "{} of {step} s", few.len());
        assert_eq!(total(&few), expected(days * DAY, 4000));
        assert_eq!(few.iter().map(|stretch| stretch.counted).max(), highest);
        // The last days are there in minutes, and the last hours in steps of ten seconds.
        let (step, week) = samples.between(end - 6 * DAY, end, 10_000);
        assert_eq!((step, week.len() as i64), (60, 6 * DAY / 60));
        assert_eq!(total(&week), expected(6 * DAY, 0));
        let (step, hour) = samples.between(end - 3600, end, 10_000);
        assert_eq!((step, hour.len(), total(&hour)), (10, 360, expected(3600, 0)));
        // Nothing is asked for that nobody has.
        assert_eq!(samples.between(end, end + DAY, 10).1, []);
        assert_eq!(samples.between(end, begin, 10).1, []);
        for (resolution, tier) in RESOLUTIONS.iter().zip(&samples.tiers) {
            assert!(lock(tier).kept.len() <= resolution.kept, "{}", resolution.file);
            let bytes = fs::metadata(folder.path().join(resolution.file)).unwrap().len();
            assert!(bytes <= (2 * resolution.kept as u64 + 1) * LINE, "{}", resolution.file);
        }
        // Another daemon finds it all again, up to the last ten seconds.
        drop(samples);
        let again = Samples::open(testing::state(&folder));
        let (_, all) = again.between(begin, end, 10_000);
        assert_eq!(total(&all), expected(days * DAY - 10, 4000));
    }

    /// A file of an earlier daemon has no energy: it is not known, and not nothing.
    #[test]
    fn what_an_earlier_daemon_left_is_shown_without_energy() {
        let folder = tempfile::tempdir().unwrap();
        drop(testing::state(&folder));
        let file = folder.path().join("power.csv");
        fs::write(&file, "1800,500000,310000,\n1810,,60000,50000\n").unwrap();
        let samples = Samples::open(testing::state(&folder));
        let (_, all) = samples.between(0, 10_000, 10);
        assert_eq!(total(&all).time, Span::ZERO);
        assert_eq!(samples.since(0).len(), 2);
        let quarters = lock(&samples.tiers[2]);
        let present = quarters.present.unwrap();
        assert_eq!((present.at, present.counted), (1800, Watts::from_watts(310)));
    }
}
