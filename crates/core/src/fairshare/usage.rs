//! What associations have used, which counts less the longer ago it was.
//!
//! Usage is entered once in each period: at its end, what was held in it, times how long. With a half-life, what was entered
//! before then counts less, by 2^(−period / half-life). Instead of making all that was entered smaller, what is entered is made
//! larger by as much: proportions are the same, and whoever holds nothing costs nothing.

use super::tree::{AssociationId, Shares};
use crate::units::{Instant, Span};

/// How often usage is entered, and how fast it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decay {
    /// After this long it counts half as much; nothing if it always counts as much.
    pub half_life: Option<Span>,
    /// It is entered, and factors are worked out, once in each period; at least a second.
    pub period: Span,
    /// How long the first period has lasted when the clock begins.
    pub lead: Span,
    /// All is forgotten when the first period ends at or after one of these instants, which ascend.
    pub resets: Vec<Instant>,
}

impl Decay {
    /// When the period began in which an instant is; the beginning of the clock at the earliest.
    pub fn began(&self, now: Instant) -> Instant {
        let (period, lead) = (self.period.millis().max(1000), self.lead.millis());
        let began = (now.millis() + lead) / period * period;
        Instant::from_millis(began.saturating_sub(lead))
    }
}

/// What was used, by association. Its own clock begins with the first period.
#[derive(Clone, Debug)]
pub struct Usage {
    decay: Decay,
    of: Vec<Used>,
    /// Those that held something in this period.
    holders: Vec<AssociationId>,
    /// When the present period began; nothing before the first.
    period_began: Option<Instant>,
    now: Instant,
    /// At this instant an entry counts as it is.
    scale_from: Instant,
    /// How many resets have been.
    resets_done: usize,
    changed: Changed,
}

/// Whose usage is another since somebody asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Changed {
    /// Everybody's.
    All,
    /// Of these, some of them named more than once.
    Some(Vec<AssociationId>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    /// Thousandths of units times milliseconds, each entry scaled by when it was made.
    weighted: f64,
    /// Thousandths of units that are held now.
    held: u64,
    /// What was held in this period, in thousandths of units times milliseconds, less what it would be if what is
    /// held now had been held all the time.
    correction: i128,
    is_holder: bool,
}

/// The scale is moved once entries would be enlarged by more than 2 to this.
const MOST_HALVINGS: u64 = 256;

/// Thousandths of units times milliseconds, for a unit and a second.
const UNIT_SECOND: f64 = 1e6;

impl Usage {
    /// A half-life is at least a period.
    pub(super) fn new(decay: Decay) -> Self {
        let period = decay.period.max(Span::from_secs(1));
        let half_life = decay.half_life.map(|half_life| half_life.max(period));
        Usage {
            decay: Decay {
                lead: Span::from_millis(decay.lead.millis() % period.millis()),
                period,
                half_life,
                ..decay
            },
            of: Vec::new(),
            holders: Vec::new(),
            period_began: None,
            now: Instant::ZERO,
            scale_from: Instant::ZERO,
            resets_done: 0,
            changed: Changed::All,
        }
    }

    fn at(&mut self, association: AssociationId) -> &mut Used {
        if self.of.len() <= association.index() {
            self.of.resize(association.index() + 1, Used::default());
        }
        &mut self.of[association.index()]
    }

    /// Enters usage, in units times seconds, as if it were of now.
    pub(super) fn add(&mut self, shares: &Shares, association: AssociationId, unit_seconds: f64) {
        let scale = self.scale(self.now);
        self.enter(shares, association, unit_seconds * UNIT_SECOND * scale);
    }

    fn enter(&mut self, shares: &Shares, association: AssociationId, weighted: f64) {
        for above in shares.upward(association) {
            self.at(above).weighted += weighted;
            if let Changed::Some(changed) = &mut self.changed {
                changed.push(above);
            }
        }
    }

    /// Whose usage is another since it was last asked.
    pub(super) fn take_changed(&mut self) -> Changed {
        std::mem::replace(&mut self.changed, Changed::Some(Vec::new()))
    }

    /// By how much an entry is enlarged that is made then.
    fn scale(&self, then: Instant) -> f64 {
        match self.decay.half_life {
            None => 1.0,
            Some(half_life) => libm::exp2(halvings(then.since(self.scale_from), half_life)),
        }
    }

    /// When the next period begins, if it is known when this one began.
    pub(super) fn next_period(&self) -> Option<Instant> {
        let next = self.period_began? + self.decay.period;
        Some(Instant::from_millis(next.millis() - self.decay.lead.millis()))
    }

    /// Moves the clock; says whether a period began since, or this is the first.
    pub(super) fn advance(&mut self, shares: &Shares, now: Instant) -> bool {
        let lead = self.decay.lead;
        let now = now + lead;
        self.now = now;
        let period = self.decay.period.millis();
        let latest = Instant::from_millis(now.millis() - now.millis() % period);
        let Some(began) = self.period_began else {
            self.period_began = Some(latest);
            // What was used before counts as of now.
            self.scale_from = now;
            self.resets_done = self.decay.resets.partition_point(|reset| *reset + lead <= now);
            return true;
        };
        if latest <= began {
            return false;
        }
        while let Some(reset) = self.decay.resets.get(self.resets_done) {
            let ends = Instant::from_millis((*reset + lead).millis().div_ceil(period) * period);
            if ends > latest {
                break;
            }
            self.close_periods(shares, ends);
            self.of.iter_mut().for_each(|used| used.weighted = 0.0);
            self.changed = Changed::All;
            self.resets_done += 1;
        }
        self.close_periods(shares, latest);
        true
    }

    /// Enters what was held in all periods that end until then, which is the end of one.
    fn close_periods(&mut self, shares: &Shares, until: Instant) {
        let period = self.decay.period.millis();
        let at_once = match self.decay.half_life {
            // No more than the scale bears.
            Some(half_life) => half_life.millis().saturating_mul(MOST_HALVINGS) / period * period,
            None => u64::MAX,
        };
        while let Some(began) = self.period_began.filter(|began| *began < until) {
            let part = began.millis().saturating_add(at_once).min(until.millis());
            self.close_some(shares, began, Instant::from_millis(part));
            self.move_scale();
        }
    }

    fn close_some(&mut self, shares: &Shares, began: Instant, until: Instant) {
        let period = self.decay.period;
        self.period_began = Some(until);
        if self.holders.is_empty() {
            return;
        }
        // What is held now was held in all periods, all but what the corrections say of the first.
        let mut scales = 0.0;
        let first = self.scale(began + period);
        let mut end = began + period;
        while end <= until {
            scales += self.scale(end);
            end = end + period;
        }
        let holders = std::mem::take(&mut self.holders);
        for &holder in &holders {
            let used = self.at(holder);
            let in_a_period = used.held as f64 * period.millis() as f64;
            let weighted = in_a_period * scales + used.correction as f64 * first;
            used.correction = 0;
            self.enter(shares, holder, weighted.max(0.0));
        }
        self.holders = holders;
        let of = &mut self.of;
        self.holders.retain(|holder| {
            let used = &mut of[holder.index()];
            used.is_holder = used.held > 0;
            used.is_holder
        });
    }

    /// Keeps the numbers small, by a power of two, which changes no other digit.
    fn move_scale(&mut self) {
        let (Some(half_life), Some(began)) = (self.decay.half_life, self.period_began) else {
            return;
        };
        let passed = began.since(self.scale_from);
        let whole = passed.millis() / half_life.millis();
        if whole < MOST_HALVINGS {
            return;
        }
        let smaller = libm::exp2(-(whole as f64));
        self.of.iter_mut().for_each(|used| used.weighted *= smaller);
        self.changed = Changed::All;
        self.scale_from = self.scale_from + Span::from_millis(whole * half_life.millis());
    }

    /// From now on it holds so much more.
    pub(super) fn begins(&mut self, association: AssociationId, thousandths: u64) {
        let before = self.in_period(thousandths);
        let used = self.at(association);
        used.held += thousandths;
        used.correction -= before;
        if !used.is_holder {
            used.is_holder = true;
            self.holders.push(association);
        }
    }

    /// From now on it holds so much less.
    pub(super) fn ends(&mut self, association: AssociationId, thousandths: u64) {
        let before = self.in_period(thousandths);
        let used = self.at(association);
        used.held = used.held.saturating_sub(thousandths);
        used.correction += before;
    }

    /// So much, times how long the period has lasted.
    fn in_period(&self, thousandths: u64) -> i128 {
        let lasted = self.now.since(self.period_began.unwrap_or(self.now));
        i128::from(thousandths) * i128::from(lasted.millis())
    }

    /// What was used, in units that are the same for all associations at one time.
    #[inline]
    pub(super) fn weighted(&self, association: AssociationId) -> f64 {
        self.of.get(association.index()).map_or(0.0, |used| used.weighted)
    }

    /// What was used, in units times seconds, as it counts at the beginning of the period.
    pub(super) fn unit_seconds(&self, association: AssociationId) -> f64 {
        let then = self.period_began.unwrap_or(self.now).max(self.scale_from);
        self.weighted(association) / self.scale(then) / UNIT_SECOND
    }
}

fn halvings(passed: Span, half_life: Span) -> f64 {
    passed.millis() as f64 / half_life.millis() as f64
}
