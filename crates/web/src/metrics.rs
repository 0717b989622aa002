//! Metrics for the monitoring that sites already have, in OpenMetrics and in Prometheus' own text format.
//!
//! What can be read at any time is read when somebody asks ([`Metrics::render`]). What must be added up over time is
//! added up by [`watch`](crate::watch). Labels have few values: nodes, states, kinds; never jobs or users.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use busbar_core::units::Watts;
use busbar_live::control::answers;
use busbar_live::job::{ChangeReason, Event, EventKind, JobOutcome, NodeState};
use busbar_live::wire::{CycleTimes, FeedPower, NodeLine, PowerState, State, Status};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

/// One label and its value.
type Label = [(&'static str, String); 1];

/// Labels of a node's power: the node, what of it, and how that is known.
type NodeLabels = [(&'static str, String); 3];

/// A gauge of watts, joules or seconds.
type Amount = Gauge<f64, AtomicU64>;

/// An amount that only grows.
type Total = Counter<f64, AtomicU64>;

/// The durations of requests, by what they asked for and the kind of answer.
type Requests = Family<[(&'static str, String); 2], Histogram, fn() -> Histogram>;

/// The bounds by which the durations of requests are counted, in seconds.
const REQUEST_BOUNDS: [f64; 7] = [0.001, 0.003, 0.01, 0.03, 0.1, 1.0, 10.0];

/// What is added up over time.
pub(crate) struct Metrics {
    submitted: Counter,
    started: Counter,
    changed: Family<Label, Counter>,
    suspended: Counter,
    ended: Family<Label, Counter>,
    energy: Family<Label, Total>,
    over_budget: Total,
    requests: Requests,
}

impl Default for Metrics {
    fn default() -> Self {
        Metrics {
            submitted: Counter::default(),
            started: Counter::default(),
            changed: Family::default(),
            suspended: Counter::default(),
            ended: Family::default(),
            energy: Family::default(),
            over_budget: Total::default(),
            requests: Family::new_with_constructor(|| Histogram::new(REQUEST_BOUNDS)),
        }
    }
}

impl Metrics {
    /// Takes in an event of the history.
    pub(crate) fn note(&self, event: &Event) {
        match &event.kind {
            EventKind::Submitted { .. } => _ = self.submitted.inc(),
            EventKind::Started { .. } => _ = self.started.inc(),
            EventKind::Changed { reason, .. } => {
                let reason = match reason {
                    ChangeReason::Policy => "policy",
                    ChangeReason::Squeezed => "budget_fell",
                    ChangeReason::Restored => "budget_rose",
                    ChangeReason::Placed => "placed",
                };
                self.changed.get_or_create(&[("reason", reason.to_owned())]).inc();
            }
            EventKind::Suspended { .. } => _ = self.suspended.inc(),
            EventKind::Ended { outcome, .. } => {
                self.ended.get_or_create(&[("outcome", word(outcome).to_owned())]).inc();
            }
            _ => (),
        }
    }

    /// Adds up power over a time.
    pub(crate) fn add(&self, power: &PowerState, during: Duration) {
        let seconds = during.as_secs_f64();
        let counted = power.base + power.held;
        let total =
            |source: &str| self.energy.get_or_create(&[("source", source.to_owned())]).clone();
        total("counted").inc_by(watts(counted) * seconds);
        if let Some(measured) = &power.measured {
            total(source(measured.emulated)).inc_by(watts(measured.power) * seconds);
        }
        if power.limit.is_some_and(|limit| counted > limit) {
            self.over_budget.inc_by(seconds);
        }
    }

    /// Takes in an answered request.
    pub(crate) fn answered(&self, route: &str, status: u16, took: Duration) {
        let labels = [("route", route.to_owned()), ("status", format!("{}xx", status / 100))];
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// All metrics in OpenMetrics' text format.
    pub(crate) fn render(&self, status: &Status, nodes: &[NodeLine]) -> String {
        let mut registry = Registry::with_prefix("busbar");
        describe(&mut registry, status);
        describe_power(&mut registry, &status.power);
        describe_nodes(&mut registry, nodes);
        let mut put = |name, help, metric: &Counter| registry.register(name, help, metric.clone());
        put("jobs_submitted", "Jobs that were submitted", &self.submitted);
        put("jobs_started", "Jobs that were started", &self.started);
        put("jobs_suspended", "Jobs that were suspended for lack of power", &self.suspended);
        registry.register(
            "jobs_changed",
            "Changes of the power or the nodes of running jobs",
            self.changed.clone(),
        );
        registry.register("jobs_ended", "Finished jobs, by how they ended", self.ended.clone());
        let help = "Energy since the daemon started, by its source";
        registry.register_with_unit("energy", help, Unit::Joules, self.energy.clone());
        let help = "Time in which the counted power was above the budget";
        registry.register_with_unit("over_budget", help, Unit::Seconds, self.over_budget.clone());
        let help = "Duration of web requests";
        registry.register_with_unit("http_request", help, Unit::Seconds, self.requests.clone());
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }
}

fn watts(power: Watts) -> f64 {
    power.milliwatts() as f64 / 1000.0
}

/// How a power is known.
fn source(is_emulated: bool) -> &'static str {
    if is_emulated { "emulated" } else { "measured" }
}

/// How a job ended, as a label.
fn word(outcome: &JobOutcome) -> &'static str {
    match answers::state(outcome) {
        State::Completed => "completed",
        State::TimedOut => "timed_out",
        State::Cancelled => "cancelled",
        State::Lost => "lost",
        _ => "failed",
    }
}

fn amount(registry: &mut Registry, name: &str, help: &str, unit: Unit, value: f64) {
    let gauge = Amount::default();
    gauge.set(value);
    registry.register_with_unit(name, help, unit, gauge);
}

fn in_watts() -> Unit {
    Unit::Other("watts".to_owned())
}

fn describe(registry: &mut Registry, status: &Status) {
    let labels = [
        ("version", status.version.clone()),
        ("policy", status.policy.clone()),
        ("engine", status.engine.clone()),
        ("machine", status.machine.clone()),
    ];
    registry.register("daemon", "The daemon", Info::new(labels));
    amount(registry, "start_time", "When the daemon started", Unit::Seconds, status.since as f64);
    let jobs = Family::<Label, Gauge>::default();
    for (state, count) in [("waiting", status.waiting), ("running", status.running)] {
        jobs.get_or_create(&[("state", state.to_owned())])
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    registry.register("jobs", "Jobs that wait or run", jobs);
    let notices = Gauge::<i64>::default();
    notices.set(i64::try_from(status.notices.len()).unwrap_or(i64::MAX));
    registry.register(
        "notices",
        "Problems that the daemon reports; 'busbar status' shows them",
        notices,
    );
    let cycles = Cycles { count: status.cycles, times: status.cycle_times.clone() };
    registry.register_with_unit("cycle", "Duration of control cycles", Unit::Seconds, cycles);
}

fn describe_power(registry: &mut Registry, power: &PowerState) {
    if let Some(limit) = power.limit {
        amount(registry, "budget", "The limit in force", in_watts(), watts(limit));
    }
    let counted = power.base + power.held;
    let help = "Power that counts against the budget: that of the machine without jobs, and what jobs hold";
    amount(registry, "counted_power", help, in_watts(), watts(counted));
    let help = "Power of the machine without jobs";
    amount(registry, "base_power", help, in_watts(), watts(power.base));
    if let Some(free) = power.free {
        amount(registry, "free_power", "Power left for further jobs", in_watts(), watts(free));
    }
    describe_feeds(registry, &power.feeds);
    let Some(measured) = &power.measured else { return };
    let family = Family::<Label, Amount>::default();
    family
        .get_or_create(&[("source", source(measured.emulated).to_owned())])
        .set(watts(measured.power));
    registry.register_with_unit(
        "measured_power",
        "Power of all nodes with meters",
        in_watts(),
        family,
    );
    let count = Gauge::<i64>::default();
    count.set(measured.nodes.into());
    registry.register("measured_nodes", "Nodes whose power is known", count);
}

fn describe_feeds(registry: &mut Registry, feeds: &[FeedPower]) {
    if feeds.is_empty() {
        return;
    }
    let family = Family::<Label, Amount>::default;
    let (limits, counted, measured) = (family(), family(), family());
    for feed in feeds {
        let label = [("feed", feed.name.clone())];
        counted.get_or_create(&label).set(watts(feed.base + feed.held));
        if let Some(limit) = feed.limit {
            limits.get_or_create(&label).set(watts(limit));
        }
        if let Some(power) = feed.measured {
            measured.get_or_create(&label).set(watts(power));
        }
    }
    let help = "Power that counts against the limit of a feed: that of its idle nodes, and what jobs hold on them";
    registry.register_with_unit("feed_counted_power", help, in_watts(), counted);
    registry.register_with_unit("feed_limit", "The limit of a feed in force", in_watts(), limits);
    let help = "Power of the nodes below a feed that have meters";
    registry.register_with_unit("feed_measured_power", help, in_watts(), measured);
}

fn describe_nodes(registry: &mut Registry, nodes: &[NodeLine]) {
    let states = Family::<Label, Gauge>::default();
    for state in ["up", "awaited", "drained", "down", "stopping", "off", "starting"] {
        states.get_or_create(&[("state", state.to_owned())]).set(0);
    }
    let (power, caps) =
        (Family::<NodeLabels, Amount>::default(), Family::<Label, Amount>::default());
    let up = Family::<Label, Gauge>::default();
    for node in nodes {
        let state = match node.state {
            NodeState::Up => "up",
            NodeState::Awaited => "awaited",
            NodeState::Drained { .. } => "drained",
            NodeState::Down { .. } => "down",
        };
        let state = node.switched.map_or(state.to_owned(), |switched| switched.to_string());
        states.get_or_create(&[("state", state)]).inc();
        let name = || node.name.clone().unwrap_or_else(|| node.node.to_string());
        up.get_or_create(&[("node", name())]).set(i64::from(node.state == NodeState::Up));
        if let Some(cap) = node.cap {
            caps.get_or_create(&[("node", name())]).set(watts(cap));
        }
        let Some(measured) = &node.measured else { continue };
        let how = source(measured.is_emulated);
        let put = |domain: &str, value: Watts| {
            let labels =
                [("node", name()), ("domain", domain.to_owned()), ("source", how.to_owned())];
            power.get_or_create(&labels).set(watts(value));
        };
        put("node", measured.power);
        for domain in &measured.domains {
            put(&domain.name, domain.power);
        }
    }
    registry.register("nodes", "Nodes by state", states);
    registry.register("node_up", "Whether jobs can start on the node", up);
    registry.register_with_unit("node_cap", "The cap of the job on the node", in_watts(), caps);
    let help = "Power of a node, and of the parts of it that have meters";
    registry.register_with_unit("node_power", help, in_watts(), power);
}

/// The durations of cycles, as the daemon has counted them.
struct Cycles {
    count: u64,
    times: CycleTimes,
}

impl fmt::Debug for Cycles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.count)
    }
}

impl EncodeMetric for Cycles {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        // The encoder adds up by itself.
        let mut below = 0;
        let mut buckets: Vec<(f64, u64)> = Vec::new();
        for within in &self.times.at_most {
            buckets.push((within.time as f64 / 1e6, within.cycles - below));
            below = within.cycles;
        }
        buckets.push((f64::INFINITY, self.count.saturating_sub(below)));
        let sum = self.times.sum as f64 / 1e6;
        encoder.encode_histogram::<NoLabelSet>(sum, self.count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The same in the older text format, for programs that know no other: counters and information carry their ending in
/// their name, and units are not said apart.
pub(crate) fn in_older_format(text: &str) -> String {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let kinds: std::collections::HashMap<&str, &str> = kinds.collect();
    let mut older = String::with_capacity(text.len());
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, word, name, rest) = (words.next(), words.next(), words.next(), words.next());
        let (Some("#"), Some(word), name, rest) =
            (mark, word, name.unwrap_or(""), rest.unwrap_or(""))
        else {
            older.extend([line, "\n"]);
            continue;
        };
        let (ending, kind) = match kinds.get(name) {
            Some(&"counter") => ("_total", rest),
            Some(&"info") => ("_info", if word == "TYPE" { "gauge" } else { rest }),
            _ => ("", rest),
        };
        if matches!(word, "HELP" | "TYPE") {
            older.extend(["# ", word, " ", name, ending, " ", kind, "\n"]);
        }
    }
    older
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_keep_their_ending_in_the_older_format() {
        let newer = "# HELP a Help.\n# TYPE a counter\na_total 5\n# HELP b_watts Of b.\n# TYPE b_watts gauge\n\
                     # UNIT b_watts watts\nb_watts{x=\"# y\"} 1.5\n# TYPE c info\nc_info{v=\"1\"} 1\n# EOF\n";
        let older = "# HELP a_total Help.\n# TYPE a_total counter\na_total 5\n# HELP b_watts Of b.\n\
                     # TYPE b_watts gauge\nb_watts{x=\"# y\"} 1.5\n# TYPE c_info gauge\nc_info{v=\"1\"} 1\n";
        assert_eq!(in_older_format(newer), older);
    }
}
