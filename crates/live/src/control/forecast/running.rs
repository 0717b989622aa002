//! Running forecasts, each in a thread of its own so that neither the daemon's loop nor other clients
//! wait for them.
//!
//! A user may have one at a time, and their total number is limited. A forecast is cancelled when the
//! client disconnects, when it takes too long, and when the daemon stops.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant as Moment};

use crate::wire::{ClientGone, Forecast, Refusal, RefusalKind, Reply, ReplyTo};
use busbar_core::units::Span;

/// The largest number of forecasts at the same time.
const MOST: usize = 4;

/// Tells a forecast when to stop.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation {
    gone: ClientGone,
    begun: Moment,
    most: Duration,
}

impl Cancellation {
    /// A time limit that starts now.
    pub(crate) fn for_at_most(most: Span, gone: ClientGone) -> Self {
        Cancellation { gone, begun: Moment::now(), most: Duration::from_millis(most.millis()) }
    }

    /// An error if the forecast must stop.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.gone.is_set() {
            return Err(stopping());
        }
        if self.begun.elapsed() >= self.most {
            let message = format!(
                "the forecast took more than {} s and was stopped; 'limits.forecast_time' in the configuration \
                sets its maximum time",
                self.most.as_secs_f64()
            );
            return Err(Refusal { kind: RefusalKind::TooMuch, message });
        }
        Ok(())
    }
}

/// How long a forecast counts as what is expected.
const GOOD_FOR: Duration = Duration::from_secs(15 * 60);

/// Running forecasts by user; those who are no user share one.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunningForecasts {
    asked: Arc<Mutex<BTreeMap<Option<u32>, Asked>>>,
    latest: Arc<Mutex<Option<Starts>>>,
}

/// When jobs start by a forecast, in seconds since 1970.
#[derive(Debug)]
struct Starts {
    worked_out: Moment,
    of: BTreeMap<u64, i64>,
}

#[derive(Debug)]
struct Asked {
    gone: ClientGone,
    reply: ReplyTo,
}

impl RunningForecasts {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Option<u32>, Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a user may start a forecast now.
    pub(crate) fn check(&self, user: Option<u32>) -> Result<(), Refusal> {
        let all = self.all();
        let message = if all.contains_key(&user) {
            "one of your forecasts is running; wait for it, or stop it, and try again".to_owned()
        } else if all.len() >= MOST {
            format!("{MOST} forecasts are running already; try again later")
        } else {
            return Ok(());
        };
        Err(Refusal { kind: RefusalKind::TooMuch, message })
    }

    /// When jobs start by the latest forecast that somebody asked for and that assumed nothing, while it is fresh.
    pub(crate) fn expected_starts(&self) -> BTreeMap<u64, i64> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = latest.as_ref().filter(|starts| starts.worked_out.elapsed() < GOOD_FOR);
        fresh.map(|starts| starts.of.clone()).unwrap_or_default()
    }

    fn keep(&self, forecast: &Forecast) {
        let starts = forecast.jobs.iter().filter_map(|line| line.job.zip(line.start));
        let starts = Starts { worked_out: Moment::now(), of: starts.collect() };
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(starts);
    }

    /// Starts a forecast for a user who [may have](Self::check) one. One that `is_expected` assumes nothing.
    pub(crate) fn begin(
        &self,
        user: Option<u32>,
        reply: ReplyTo,
        gone: ClientGone,
        most: Span,
        is_expected: bool,
        work: impl FnOnce(&Cancellation) -> Result<Forecast, Refusal> + Send + 'static,
    ) {
        let wanted = Cancellation::for_at_most(most, gone.clone());
        self.all().insert(user, Asked { gone, reply: reply.clone() });
        let place = Place { under_way: self.clone(), user };
        let spawned = thread::Builder::new().name("forecast".to_owned()).spawn({
            let reply = reply.clone();
            move || {
                let answer = work(&wanted);
                if let (true, Ok(forecast)) = (is_expected, &answer) {
                    place.under_way.keep(forecast);
                }
                let answer = answer.map_or_else(Reply::Error, Reply::Forecast);
                // A client that has its answer may ask for the next forecast.
                drop(place);
                // The client may be gone.
                let _ = reply.send(answer);
            }
        });
        if let Err(error) = spawned {
            let message = format!("cannot start a thread for a forecast: {error}; try again later");
            let _ = reply.send(Reply::Error(Refusal { kind: RefusalKind::TooMuch, message }));
        }
    }

    /// Cancels all forecasts. Clients are told at once; the threads end when they notice.
    pub(crate) fn give_up(&self) {
        for asked in self.all().values() {
            asked.gone.set();
            let _ = asked.reply.send(Reply::Error(stopping()));
        }
    }
}

fn stopping() -> Refusal {
    let message = "the daemon is stopping; try again later".to_owned();
    Refusal { kind: RefusalKind::Stopping, message }
}

/// Removes the user's entry when it is dropped.
struct Place {
    under_way: RunningForecasts,
    user: Option<u32>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.under_way.all().remove(&self.user);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Answers, ForecastLine, answers};
    use busbar_core::units::Watts;
    use std::sync::mpsc::channel;

    /// A forecast that goes on until it is not wanted, and tells that it has begun.
    fn endless(under_way: &RunningForecasts, user: u32, most: Span) -> (Answers, ClientGone) {
        let ((reply, answers), gone) = (answers(), ClientGone::default());
        let (begun, has_begun) = channel();
        under_way.begin(Some(user), reply, gone.clone(), most, false, move |wanted| {
            begun.send(()).unwrap();
            loop {
                wanted.check()?;
                thread::yield_now();
            }
        });
        has_begun.recv().unwrap();
        (answers, gone)
    }

    fn refused(answer: &mut Answers) -> Refusal {
        match answer.blocking_recv().unwrap() {
            Reply::Error(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }

    const LONG: Span = Span::from_secs(100_000);

    #[test]
    fn a_user_has_one_and_there_are_few() {
        let under_way = RunningForecasts::default();
        let (mut answers, gone) = endless(&under_way, 1, LONG);
        assert!(under_way.check(Some(1)).unwrap_err().message.contains("one of your forecasts"));
        let mut others: Vec<_> = (2..=4).map(|user| endless(&under_way, user, LONG)).collect();
        assert!(under_way.check(Some(5)).unwrap_err().message.contains("4 forecasts are running"));
        // Whoever asked goes away, and makes room.
        gone.set();
        refused(&mut answers);
        assert_eq!((under_way.check(Some(1)), under_way.check(Some(5))), (Ok(()), Ok(())));
        // The daemon stops: all others are told so, whatever their threads do.
        under_way.give_up();
        for (answers, _) in &mut others {
            assert_eq!(refused(answers).kind, RefusalKind::Stopping);
        }
    }

    #[test]
    fn the_latest_one_that_assumes_nothing_says_when_jobs_start() {
        let under_way = RunningForecasts::default();
        let ask = |start: i64, is_expected: bool| {
            let (reply, mut answers) = answers();
            let line = ForecastLine {
                job: Some(7),
                name: None,
                start: Some(start),
                end: None,
                nodes: 1,
                power: None,
                reason: None,
                array: None,
            };
            let forecast = Forecast {
                jobs: vec![line],
                peak: Watts::ZERO,
                power: Vec::new(),
                limits: Vec::new(),
                all_over: start,
                assumptions: Vec::new(),
            };
            let gone = ClientGone::default();
            under_way.begin(None, reply, gone, LONG, is_expected, move |_| Ok(forecast));
            assert!(matches!(answers.blocking_recv().unwrap(), Reply::Forecast(_)));
            under_way.expected_starts()
        };
        assert_eq!(ask(1000, false), BTreeMap::new());
        assert_eq!(ask(2000, true), BTreeMap::from([(7, 2000)]));
        assert_eq!(ask(3000, false), BTreeMap::from([(7, 2000)]));
    }

    #[test]
    fn one_that_takes_too_long_is_given_up() {
        let under_way = RunningForecasts::default();
        let (mut answers, _) = endless(&under_way, 1, Span::from_millis(20));
        let refusal = refused(&mut answers);
        assert_eq!(refusal.kind, RefusalKind::TooMuch);
        assert!(refusal.message.contains("took more than 0.02 s"), "{refusal}");
        assert_eq!(under_way.check(Some(1)), Ok(()));
    }

    #[test]
    fn one_that_fails_leaves_its_place() {
        let under_way = RunningForecasts::default();
        let (reply, mut answers) = answers();
        under_way
            .begin(Some(1), reply, ClientGone::default(), LONG, false, |_| panic!("as it should"));
        // No answer comes, as nobody is left to send one.
        assert!(answers.blocking_recv().is_none());
        assert_eq!(under_way.check(Some(1)), Ok(()));
    }
}
