//! The lines that Busbar and the program of an external policy write to each other.
//!
//! Every line is one JSON object. Keys may be added to what Busbar writes without a new version of the protocol;
//! an answer with a key that nobody knows is refused, because a misspelt key would otherwise be a decision that
//! was never taken. Times are seconds of the simulated clock and powers are watts, both exact to a thousandth.

use std::fmt;

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::freedom::Freedoms;
use crate::machine::Machine;
use crate::policy::View;
use crate::units::{Instant, JobId, Span, Watts};

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;

/// The first line to the program.
#[derive(Serialize)]
struct Hello<'a> {
    protocol: u32,
    machine: MachineFacts<'a>,
    may: Vec<&'static str>,
    limits: Vec<Limit>,
    limit_s: f64,
}

#[derive(Serialize)]
struct MachineFacts<'a> {
    name: &'a str,
    nodes: u32,
    processors_per_node: u32,
}

/// A limit of the budget, from an instant on.
#[derive(Serialize)]
struct Limit {
    from_s: f64,
    watts: Option<f64>,
}

/// What happened since the program was last asked, and what is free now.
#[derive(Serialize)]
struct Turn<'a> {
    now_s: f64,
    ended: &'a [Ended],
    arrived: Vec<Arrived>,
    refused: &'a [Refused],
    machine_changed: bool,
    free_nodes: u32,
    free_watts: Option<f64>,
    budget_watts: Option<f64>,
    base_watts: f64,
}

/// A job that ended, or lost its nodes.
#[derive(Serialize)]
pub(super) struct Ended {
    job: u32,
    watts: Option<f64>,
}

/// A job that waits from now on.
#[derive(Serialize)]
struct Arrived {
    job: u32,
    number: u64,
    nodes: u32,
    requested_s: f64,
    submit_s: f64,
    user: Option<u32>,
    application: Option<u32>,
    points: Vec<Point>,
}

/// A way to run a job.
#[derive(Serialize)]
struct Point {
    nodes: u32,
    cores: u32,
    cap_watts: f64,
    watts: f64,
    seconds: f64,
    limit_s: f64,
}

/// A decision that was refused.
#[derive(Serialize)]
pub(super) struct Refused {
    pub(super) job: Option<u32>,
    pub(super) why: String,
}

/// What has happened and was not told yet.
#[derive(Default)]
pub(super) struct News {
    ended: Vec<Ended>,
    arrived: Vec<JobId>,
    pub(super) refused: Vec<Refused>,
    machine_changed: bool,
}

impl News {
    /// Takes in what a view says has happened.
    pub(super) fn note(&mut self, view: &View<'_>) {
        for holding in view.changes.released {
            let drawn = view.changes.drawn.iter().find(|drawn| drawn.job == holding.job);
            let watts = drawn.map(|drawn| drawn.power.as_f64());
            self.ended.push(Ended { job: holding.job.0, watts });
        }
        self.arrived.extend(view.changes.arrived);
        self.machine_changed |= view.changes.machine;
    }

    fn clear(&mut self) {
        self.ended.clear();
        self.arrived.clear();
        self.refused.clear();
        self.machine_changed = false;
    }
}

/// The first line to the program.
pub(super) fn hello(
    view: &View<'_>,
    machine: Option<&Machine>,
    may: Freedoms,
    limit: Span,
) -> Vec<u8> {
    let now = (view.now, view.ledger.limit());
    let limits = std::iter::once(now).chain(view.ledger.limits_to_come().iter().copied());
    let limit_of = |(at, watts): (Instant, Watts)| Limit {
        from_s: at.secs_f64(),
        watts: watts.limited().map(Watts::as_f64),
    };
    line(&Hello {
        protocol: VERSION,
        machine: MachineFacts {
            name: machine.map_or("", |machine| &machine.name),
            nodes: view.ledger.total_nodes(),
            processors_per_node: machine.map_or(1, |machine| machine.processors_per_node),
        },
        may: may.iter().map(|freedom| freedom.name()).collect(),
        limits: limits.map(limit_of).collect(),
        limit_s: limit.secs_f64(),
    })
}

/// The line of a turn. What it tells is no news any more.
pub(super) fn turn(view: &View<'_>, news: &mut News) -> Vec<u8> {
    let limit = view.ledger.limit().limited();
    let text = line(&Turn {
        now_s: view.now.secs_f64(),
        ended: &news.ended,
        arrived: news.arrived.iter().map(|job| arrived(view, *job)).collect(),
        refused: &news.refused,
        machine_changed: news.machine_changed,
        free_nodes: view.ledger.free_nodes(),
        free_watts: limit.map(|_| view.ledger.free_power().as_f64()),
        budget_watts: limit.map(Watts::as_f64),
        base_watts: view.ledger.base_power().as_f64(),
    });
    news.clear();
    text
}

fn arrived(view: &View<'_>, id: JobId) -> Arrived {
    let job = view.job(id);
    let ways = view.model.ways(id, job);
    let points = ways.iter().map(|way| Point {
        nodes: way.point.nodes,
        cores: way.point.cores,
        cap_watts: way.point.cap.as_f64(),
        watts: way.point.power.as_f64(),
        seconds: way.believed.secs_f64(),
        limit_s: way.point.time.secs_f64(),
    });
    Arrived {
        job: id.0,
        number: job.number,
        nodes: job.nodes,
        requested_s: job.requested.secs_f64(),
        submit_s: job.submit.secs_f64(),
        user: job.user.map(|user| user.0.get()),
        application: job.application.map(|application| application.0.get()),
        points: points.collect(),
    }
}

/// A value as one line. Plain structures of numbers and texts can always be written.
fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The program's answer to the first line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Greeting {
    protocol: u32,
}

/// The version of the protocol that the program speaks.
pub(super) fn greeting(line: &str) -> Result<u32, String> {
    parsed(line).map(|greeting: Greeting| greeting.protocol)
}

/// What the program decides.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Answer {
    pub(super) start: Vec<Named>,
    pub(super) change: Vec<Named>,
    pub(super) drop: Vec<u32>,
    wake_s: Option<f64>,
}

/// A job and one of its points: `12`, which means its first point, or `{"job": 12, "point": 2}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Named {
    pub(super) job: JobId,
    pub(super) point: usize,
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the number of a job, or {\"job\": 12, \"point\": 2}")
            }

            fn visit_u64<E: de::Error>(self, job: u64) -> Result<Named, E> {
                let job = u32::try_from(job).map_err(|_| E::custom("not a valid job number"))?;
                Ok(Named { job: JobId(job), point: 0 })
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Named, M::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Object {
                    job: u32,
                    #[serde(default)]
                    point: usize,
                }
                let object = Object::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Named { job: JobId(object.job), point: object.point })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl Answer {
    /// Reads the line of an answer, or says what is wrong with it.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let answer: Answer = parsed(line)?;
        if answer.wake_s.is_some() && answer.wake().is_none() {
            return Err(
                "wake_s: not a valid simulation time; write seconds, or leave it out".to_owned()
            );
        }
        Ok(answer)
    }

    /// When the program wants to be asked again, rounded up to the next millisecond, so that it is never asked
    /// too early.
    pub(super) fn wake(&self) -> Option<Instant> {
        let span = Span::from_secs_f64_rounded_up(self.wake_s?)?;
        Some(Instant::ZERO + span)
    }
}

fn parsed<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    // A list would be taken for the values of an object without their keys.
    if !line.trim_start().starts_with('{') {
        return Err("a line must be one JSON object, from '{' to '}'".to_owned());
    }
    let mut deserializer = serde_json::Deserializer::from_str(line);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner().to_string();
        if path == "." { why } else { format!("{path}: {why}") }
    })?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read() {
        let answer = Answer::parse(
            r#"{"start": [12, {"job": 13, "point": 2}, {"job": 4}], "change": [{"job": 1, "point": 3}],
                "drop": [7], "wake_s": 12.0005}"#,
        );
        let named = |job, point| Named { job: JobId(job), point };
        let expected = Answer {
            start: vec![named(12, 0), named(13, 2), named(4, 0)],
            change: vec![named(1, 3)],
            drop: vec![7],
            wake_s: Some(12.0005),
        };
        assert_eq!(answer.as_ref(), Ok(&expected));
        assert_eq!(expected.wake(), Some(Instant::from_millis(12_001)));
        assert_eq!(Answer::parse("{}"), Ok(Answer::default()));
        assert_eq!(greeting(r#" {"protocol": 1} "#), Ok(1));
    }

    #[test]
    fn wrong_answers_are_named() {
        for (line, why) in [
            ("", "one JSON object"),
            ("starting job 12", "one JSON object"),
            ("{", "EOF"),
            ("{\"start\": [1]} {}", "trailing characters"),
            (
                r#"{"strat": [1]}"#,
                "unknown field `strat`, expected one of `start`, `change`, `drop`, `wake_s`",
            ),
            (r#"{"start": [1, {"job": 2, "pont": 1}]}"#, "start[1]"),
            (r#"{"start": [1, {"job": 2, "pont": 1}]}"#, "unknown field `pont`"),
            (r#"{"start": [{"point": 1}]}"#, "missing field `job`"),
            (
                r#"{"start": ["a"]}"#,
                "start[0]: invalid type: string \"a\", expected the number of a job, or {",
            ),
            (r#"{"start": [-1]}"#, "start[0]"),
            (r#"{"start": [5000000000]}"#, "not a valid job number"),
            (r#"{"drop": [1.5]}"#, "drop[0]"),
            (r#"{"wake_s": -3}"#, "wake_s: not a valid simulation time"),
            (r#"{"wake_s": 1e300}"#, "wake_s"),
            ("[]", "one JSON object"),
        ] {
            let error = Answer::parse(line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
        assert!(greeting("{}").unwrap_err().contains("missing field `protocol`"));
        assert!(greeting(r#"{"protocol": 1, "name": "x"}"#).unwrap_err().contains("unknown field"));
    }
}
