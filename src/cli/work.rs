//! `busbar work`: an emulated application, for experiments with a daemon.

use std::hint::spin_loop;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant as Clock};

use anyhow::Context;
use clap::Args;

use crate::cli::solve::parse_time;
use crate::cli::warn;
use crate::live::engines::local::speed;

/// Emulate an application: sleep for a time at full speed, stretched by the job's current speed
///
/// A job with a power cap or with fewer nodes takes longer. Real applications do so by themselves;
/// this one repeatedly reads its speed from the file named by BUSBAR_SPEED_FILE. Without that
/// variable it runs at full speed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  busbar work 30s
  busbar work 500ms --burn")]
pub(super) struct Arguments {
    /// Run time at full speed: 500ms, 30s
    #[arg(value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    time: Duration,

    /// Keep a processor busy, for a share of the time equal to the speed
    #[arg(long)]
    burn: bool,
}

/// How often the speed is read.
const TICK: Duration = Duration::from_millis(20);

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let file = std::env::var_os(speed::VARIABLE).map(PathBuf::from);
    let went_on = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGCONT, Arc::clone(&went_on))
        .context("cannot listen to signals")?;
    let mut left = Left::new(arguments.time);
    let mut believed = Believed { speed: speed::FULL, has_warned: false };
    let mut last = Clock::now();
    while !left.is_nothing() {
        believed.read(file.as_deref());
        let tick = left.time(believed.speed).map_or(TICK, |time| time.min(TICK));
        pass(tick, believed.speed, arguments.burn);
        let elapsed = last.elapsed();
        last += elapsed;
        // No work is done while the process is suspended.
        let stood_still = went_on.swap(false, Ordering::Relaxed);
        left.work(if stood_still { elapsed.min(tick) } else { elapsed }, believed.speed);
    }
    Ok(())
}

/// The remaining work, in millionths of a nanosecond at full speed, so that no speed is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Left(u128);

impl Left {
    fn new(time: Duration) -> Self {
        Left(time.as_nanos() * u128::from(speed::FULL))
    }

    fn is_nothing(self) -> bool {
        self.0 == 0
    }

    fn work(&mut self, elapsed: Duration, speed: u32) {
        self.0 = self.0.saturating_sub(elapsed.as_nanos() * u128::from(speed));
    }

    /// The time it takes at a speed, rounded up; `None` if forever.
    fn time(self, speed: u32) -> Option<Duration> {
        let nanos = (speed > 0).then(|| self.0.div_ceil(u128::from(speed)))?;
        Some(u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos))
    }
}

/// The speed that was last read.
struct Believed {
    speed: u32,
    has_warned: bool,
}

impl Believed {
    fn read(&mut self, file: Option<&Path>) {
        let Some(file) = file else { return };
        match speed::read(file) {
            Ok(speed) => self.speed = speed,
            Err(error) if !self.has_warned => {
                self.has_warned = true;
                warn(&format!("{}: {error}; keeping the previous speed", file.display()));
            }
            Err(_) => {}
        }
    }
}

/// Lets time pass.
fn pass(time: Duration, speed: u32, burn: bool) {
    if burn {
        let began = Clock::now();
        let busy = time.mul_f64(f64::from(speed.min(speed::FULL)) / f64::from(speed::FULL));
        while began.elapsed() < busy {
            spin_loop();
        }
        sleep(time.saturating_sub(began.elapsed()));
    } else {
        sleep(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 s of work: 1 s at full speed, then 2 s are left, which take 8 s at a quarter of it.
    #[test]
    fn work_by_hand() {
        let mut left = Left::new(Duration::from_secs(3));
        left.work(Duration::from_secs(1), speed::FULL);
        assert_eq!(left.time(250_000), Some(Duration::from_secs(8)));
        assert_eq!(left.time(0), None);
        left.work(Duration::from_secs(8), 250_000);
        assert!(left.is_nothing());
        left.work(Duration::from_secs(1), speed::FULL);
        assert!(left.is_nothing());
    }

    #[test]
    fn the_last_step_is_never_too_short() {
        let mut left = Left::new(Duration::from_nanos(10));
        let time = left.time(300_000).unwrap();
        assert_eq!(time, Duration::from_nanos(34));
        left.work(time, 300_000);
        assert!(left.is_nothing());
    }
}
