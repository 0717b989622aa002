//! The daemon's clock: milliseconds that only increase, whatever happens to the wall clock.
//!
//! It counts from the first start of a daemon with its state folder, by the machine's clock since boot
//! (`CLOCK_BOOTTIME`), which nobody can set and which goes on while the machine is suspended. A
//! [`Stamp`] is stored with every batch, so that a daemon that starts again continues:
//!
//! - in the same boot of the machine, as if it had never been away;
//! - after a reboot, from the last stamp and the time that has passed on the wall since; if the wall
//!   says that none has, from the last stamp.
//!
//! It never goes back. The wall clock is for display only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::store::Stamp;
use busbar_core::units::{Instant, Span};

/// The kernel's file with the ID of the current boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The daemon's clock. It may be read by several threads.
#[derive(Debug)]
pub struct Clock {
    source: Source,
    /// The ID of the current boot.
    boot: String,
    /// The value of this clock at boot; negative if it started later.
    origin: i64,
    /// The latest value returned.
    said: AtomicU64,
}

/// Where the time comes from.
#[derive(Clone, Debug)]
enum Source {
    /// The kernel's clocks.
    Kernel,
    /// A clock that is moved by a [`Hand`].
    Hand(Hand),
}

impl Source {
    /// Milliseconds since boot.
    fn since_boot(&self) -> i64 {
        match self {
            Source::Kernel => millis(clock_gettime(ClockId::Boottime)),
            Source::Hand(hand) => hand.lock().since_boot,
        }
    }

    /// Milliseconds since 1970 by the wall clock.
    fn wall(&self) -> i64 {
        match self {
            Source::Kernel => millis(clock_gettime(ClockId::Realtime)),
            Source::Hand(hand) => hand.lock().wall,
        }
    }

    /// The ID of this boot; empty if it is not known.
    fn boot(&self) -> String {
        match self {
            Source::Kernel => {
                std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
            }
            Source::Hand(hand) => format!("boot {}", hand.lock().boots),
        }
    }
}

fn millis(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

impl Clock {
    /// The clock of this machine, continuing from the last stored stamp if there is one.
    pub fn begin(last: Option<&Stamp>) -> Self {
        Clock::from(Source::Kernel, last)
    }

    /// A clock that stands still until it is moved by its hand.
    pub fn by_hand() -> (Self, Hand) {
        let hand = Hand::default();
        (hand.clock(None), hand)
    }

    fn from(source: Source, last: Option<&Stamp>) -> Self {
        let (boot, since_boot) = (source.boot(), source.since_boot());
        let said = last.map_or(0, |last| last.now.millis());
        let begun_at = |now: u64| signed(now).saturating_sub(since_boot);
        let origin = match last {
            None => begun_at(0),
            // A boot clock that has gone back is a different one, even if the boot ID is the same:
            // containers may have their own clocks.
            Some(last)
                if last.boot == boot
                    && !boot.is_empty()
                    && last.origin.saturating_add(since_boot) >= signed(said) =>
            {
                last.origin
            }
            Some(last) => {
                let passed = source.wall().saturating_sub(last.wall);
                begun_at(said.saturating_add(u64::try_from(passed).unwrap_or(0)))
            }
        };
        Clock { source, boot, origin, said: AtomicU64::new(said) }
    }

    /// The current time; never earlier than a value returned before.
    pub fn now(&self) -> Instant {
        let now = self.origin.saturating_add(self.source.since_boot());
        let now = u64::try_from(now).unwrap_or(0);
        Instant::from_millis(self.said.fetch_max(now, Ordering::Relaxed).max(now))
    }

    /// The wall clock, in milliseconds since 1970.
    pub(crate) fn wall_now(&self) -> i64 {
        self.source.wall()
    }

    /// The wall clock at a time of this clock, in milliseconds since 1970, if it is not set in
    /// between. For display.
    pub fn wall(&self, instant: Instant) -> i64 {
        self.walls()(instant)
    }

    /// The same for many times, with one reading of the clocks.
    pub(crate) fn walls(&self) -> impl Fn(Instant) -> i64 + use<> {
        let (now, wall) = (signed(self.now().millis()), self.wall_now());
        move |instant| wall.saturating_add(signed(instant.millis()).saturating_sub(now))
    }

    /// The current time by all clocks, to be stored.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp {
            now: self.now(),
            wall: self.wall_now(),
            boot: self.boot.clone(),
            origin: self.origin,
        }
    }
}

/// Values that do not fit saturate.
fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

/// Moves a clock by hand, in tests and in simulations of a daemon. Several clocks may share a hand,
/// like successive daemons on one machine.
#[derive(Clone, Debug, Default)]
pub struct Hand(Arc<Mutex<Moved>>);

#[derive(Debug, Default)]
struct Moved {
    since_boot: i64,
    wall: i64,
    boots: u32,
}

impl Hand {
    fn lock(&self) -> MutexGuard<'_, Moved> {
        // The numbers are consistent even after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A clock moved by this hand, like [`Clock::begin`] for this machine.
    pub fn clock(&self, last: Option<&Stamp>) -> Clock {
        Clock::from(Source::Hand(self.clone()), last)
    }

    /// Lets time pass, whether the machine is awake or suspended.
    pub fn advance(&self, by: Span) {
        let mut moved = self.lock();
        moved.since_boot = moved.since_boot.saturating_add(signed(by.millis()));
        moved.wall = moved.wall.saturating_add(signed(by.millis()));
    }

    /// Sets the wall clock, in milliseconds since 1970.
    pub fn set_wall(&self, wall: i64) {
        self.lock().wall = wall;
    }

    /// Reboots the machine after it was off for some time.
    pub fn reboot(&self, off: Span) {
        let mut moved = self.lock();
        moved.boots += 1;
        moved.since_boot = 0;
        moved.wall = moved.wall.saturating_add(signed(off.millis()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u32) -> Instant {
        Instant::from_secs(seconds)
    }

    #[test]
    fn it_begins_at_zero_and_goes_on_in_the_same_boot() {
        let hand = Hand::default();
        hand.advance(Span::from_secs(1000));
        let clock = hand.clock(None);
        assert_eq!(clock.now(), Instant::ZERO);
        hand.advance(Span::from_secs(7));
        assert_eq!(clock.now(), at(7));
        let stamp = clock.stamp();
        assert_eq!((stamp.now, stamp.origin, stamp.wall), (at(7), -1_000_000, 1_007_000));
        // A daemon that was away for 5 s, in which somebody set the wall back by a day.
        hand.advance(Span::from_secs(5));
        hand.set_wall(1_012_000 - 86_400_000);
        assert_eq!(hand.clock(Some(&stamp)).now(), at(12));
    }

    #[test]
    fn the_wall_may_be_set_as_anybody_likes() {
        let (clock, hand) = Clock::by_hand();
        hand.set_wall(5_000_000);
        hand.advance(Span::from_secs(10));
        assert_eq!((clock.wall(at(10)), clock.wall(at(4))), (5_010_000, 5_004_000));
        for wall in [0, i64::MIN, i64::MAX, -1] {
            hand.set_wall(wall);
            assert_eq!((clock.now(), clock.wall(clock.now())), (at(10), wall));
        }
    }

    #[test]
    fn after_a_reboot_the_wall_says_how_long_it_took_unless_it_was_set_back() {
        let (clock, hand) = Clock::by_hand();
        hand.advance(Span::from_secs(100));
        let stamp = clock.stamp();
        hand.reboot(Span::from_secs(60));
        let after = hand.clock(Some(&stamp));
        assert_eq!(after.now(), at(160));
        hand.advance(Span::from_secs(1));
        assert_eq!(after.now(), at(161));
        let stamp = after.stamp();
        hand.reboot(Span::from_secs(60));
        hand.set_wall(stamp.wall - 3_600_000);
        let after = hand.clock(Some(&stamp));
        assert_eq!(after.now(), at(161));
        hand.advance(Span::from_secs(2));
        assert_eq!(after.now(), at(163));
    }

    #[test]
    fn a_boot_clock_that_is_behind_is_another_one() {
        let (clock, hand) = Clock::by_hand();
        hand.advance(Span::from_secs(100));
        let stamp = Stamp { boot: "boot 0".to_owned(), ..clock.stamp() };
        let other = Hand::default();
        other.set_wall(stamp.wall + 30_000);
        assert_eq!(other.clock(Some(&stamp)).now(), at(130));
    }

    #[test]
    fn nobody_knows_the_boot_without_its_name() {
        let (clock, hand) = Clock::by_hand();
        hand.advance(Span::from_secs(100));
        let stamp = Stamp { boot: String::new(), ..clock.stamp() };
        hand.reboot(Span::from_secs(3));
        assert_eq!(hand.clock(Some(&stamp)).now(), at(103));
    }

    #[test]
    fn this_machine_has_a_boot_and_its_clock_moves() {
        let clock = Clock::begin(None);
        let stamp = clock.stamp();
        assert_eq!(stamp.boot.len(), 36, "{}", stamp.boot);
        // It began a moment ago, and the machine was booted before that.
        assert!(stamp.now < at(60) && stamp.origin <= 0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        let again = Clock::begin(Some(&stamp));
        assert!(again.now().since(stamp.now) >= Span::from_millis(20));
        assert_eq!(again.stamp().origin, stamp.origin);
    }

    #[derive(Clone, Debug)]
    enum Fate {
        Passes(u32),
        WallIsSet(i64),
        Reboots(u32),
        Restarts,
    }

    proptest! {
        /// Whatever happens, no daemon sees time go back, and in one boot all of it is counted.
        #[test]
        fn it_never_goes_back(fates in prop::collection::vec(prop_oneof![
            any::<u32>().prop_map(Fate::Passes),
            any::<i64>().prop_map(Fate::WallIsSet),
            any::<u32>().prop_map(Fate::Reboots),
            Just(Fate::Restarts),
        ], 0..40)) {
            let (mut clock, hand) = Clock::by_hand();
            let mut last = clock.now();
            for fate in fates {
                let stamp = clock.stamp();
                match fate {
                    Fate::Passes(span) => {
                        hand.advance(Span::from_millis(u64::from(span)));
                        let passed = clock.now().since(last).millis();
                        // Unless so much has passed that it can hardly be counted.
                        let countable = last.millis() < 1 << 62;
                        prop_assert!(!countable || passed == u64::from(span));
                    }
                    Fate::WallIsSet(wall) => hand.set_wall(wall),
                    Fate::Reboots(off) => {
                        hand.reboot(Span::from_millis(u64::from(off)));
                        clock = hand.clock(Some(&stamp));
                    }
                    Fate::Restarts => clock = hand.clock(Some(&stamp)),
                }
                prop_assert!(clock.now() >= last);
                last = clock.now();
            }
        }
    }
}
