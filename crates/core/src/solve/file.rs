//! The program that PARM solves, as a file: jobs with the configurations they could run in, and the
//! nodes and watts they share.
//!
//! It is JSON, described in `docs/reference/solve.md`. Power is text with a unit or a number of watts.
//! [`lp`] writes the same program for other solvers.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::knapsack::{Instance, InstanceError, Need, Offer, Solution};
use crate::units::Watts;

pub mod lp;

/// Jobs that share nodes and watts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Nodes to share.
    pub nodes: u64,
    /// Power to share.
    #[serde(deserialize_with = "read_power", serialize_with = "write_power")]
    pub power: Watts,
    /// The jobs that share the resources.
    pub jobs: Vec<Job>,
}

/// A job that may run, or runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// What to call it; without a name it is called by its place, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether it runs already, and so must go on in one of its configurations.
    #[serde(default)]
    pub running: bool,
    /// How it could run.
    pub configurations: Vec<Configuration>,
}

/// One way to run a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// Nodes it takes.
    pub nodes: u32,
    /// What the capped part of a node may draw. It is told in the answer and means nothing to the
    /// solver.
    #[serde(
        default,
        deserialize_with = "read_cap",
        serialize_with = "write_cap",
        skip_serializing_if = "Option::is_none"
    )]
    pub cap: Option<Watts>,
    /// The total power of its nodes.
    #[serde(deserialize_with = "read_power", serialize_with = "write_power")]
    pub power: Watts,
    /// What it is worth to run the job so.
    pub value: f64,
}

/// Why a program cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The text is not JSON, or not of this form.
    #[error("{}{error}; docs/reference/solve.md describes the format", said(path))]
    Form {
        /// Where, such as `jobs[0].configurations[2].nodes`; a dot for the whole.
        path: String,
        /// The reason.
        error: serde_json::Error,
    },
    /// A job's configuration cannot be used.
    #[error("job {place} ({name}), configuration {configuration}, '{field}': {why}")]
    Configuration {
        /// Which job, from 1.
        place: usize,
        /// Its name.
        name: String,
        /// Which configuration, from 1.
        configuration: usize,
        /// The field, by its name.
        field: &'static str,
        /// The reason.
        why: String,
    },
    /// A job cannot be used.
    #[error("job {place} ({name}): {why}")]
    Job {
        /// Which job, from 1.
        place: usize,
        /// Its name.
        name: String,
        /// The reason.
        why: String,
    },
    /// There is too much to share.
    #[error("'nodes' or 'power': {0}")]
    Capacity(InstanceError),
}

/// Where something is wrong, if it is in some place.
fn said(path: &str) -> String {
    if path == "." { String::new() } else { format!("{path}: ") }
}

impl Program {
    /// Reads a program from JSON.
    pub fn from_json(text: &str) -> Result<Self, ProgramError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut json = serde_json::Deserializer::from_str(text);
        let form = |path: String, error| ProgramError::Form { path, error };
        let program = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| form(error.path().to_string(), error.into_inner()))?;
        json.end().map_err(|error| form(".".to_owned(), error))?;
        Ok(program)
    }

    /// The name of a job.
    pub fn name(&self, place: usize) -> String {
        self.jobs[place].name.clone().unwrap_or_else(|| (place + 1).to_string())
    }

    /// The program as the solver wants it.
    pub fn instance(&self) -> Result<Instance, ProgramError> {
        let mut instance = Instance::new(self.nodes, self.power).map_err(ProgramError::Capacity)?;
        let mut offers = Vec::new();
        for (place, job) in self.jobs.iter().enumerate() {
            offers.clear();
            offers.extend(job.configurations.iter().map(|way| Offer {
                nodes: way.nodes,
                power: way.power,
                value: way.value,
            }));
            let need = if job.running { Need::Required } else { Need::Optional };
            instance.add(need, &offers).map_err(|error| self.explain(place, error))?;
        }
        Ok(instance)
    }

    /// The configuration that a solution chose for each job.
    pub fn chosen<'a>(
        &'a self,
        solution: &'a Solution,
    ) -> impl Iterator<Item = (usize, &'a Configuration)> {
        let choices = self.jobs.iter().zip(solution.chosen()).enumerate();
        choices.filter_map(|(place, (job, choice))| {
            choice.map(|option| (place, &job.configurations[option]))
        })
    }

    fn explain(&self, place: usize, error: InstanceError) -> ProgramError {
        let name = self.name(place);
        let wrong = |option: usize, field, why| ProgramError::Configuration {
            place: place + 1,
            name: name.clone(),
            configuration: option + 1,
            field,
            why,
        };
        match error {
            InstanceError::Value { option, value, .. } => {
                wrong(option, "value", format!("{value} is not a number from 0 to 1e200"))
            }
            InstanceError::Power { option, power, .. } => {
                wrong(option, "power", format!("{power} is more than {}", Watts::LARGEST))
            }
            InstanceError::NoOptions { .. } => ProgramError::Job {
                place: place + 1,
                name,
                why: "it is running but has no configurations; give it at least one".to_owned(),
            },
            InstanceError::Capacity | InstanceError::TooMuch { .. } => ProgramError::Job {
                place: place + 1,
                name,
                why: "all jobs up to it could take more than can be counted with".to_owned(),
            },
        }
    }
}

/// Power as text with a unit, or as a number of watts.
struct PowerVisitor;

impl Visitor<'_> for PowerVisitor {
    type Value = Watts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("power such as \"464W\", or a number of watts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Watts, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, watts: u64) -> Result<Watts, E> {
        let power = watts.checked_mul(1000).map(Watts::from_milliwatts);
        power
            .filter(|power| *power <= Watts::LARGEST)
            .ok_or_else(|| E::custom(format!("{watts} watts is more than {}", Watts::LARGEST)))
    }

    fn visit_f64<E: de::Error>(self, watts: f64) -> Result<Watts, E> {
        // The shortest text that stands for the number is what was meant.
        format!("{watts}W").parse().map_err(E::custom)
    }
}

fn read_power<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Watts, D::Error> {
    deserializer.deserialize_any(PowerVisitor)
}

fn read_cap<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Watts>, D::Error> {
    read_power(deserializer).map(Some)
}

fn write_power<S: Serializer>(power: &Watts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(power)
}

fn write_cap<S: Serializer>(cap: &Option<Watts>, serializer: S) -> Result<S::Ok, S::Error> {
    match cap {
        Some(cap) => serializer.collect_str(cap),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"{
        "nodes": 10, "power": "1kW",
        "jobs": [
            {"name": "heat", "running": true, "configurations": [
                {"nodes": 4, "cap": "60W", "power": 464, "value": 1.7},
                {"nodes": 4, "cap": 30.5, "power": "346W", "value": 1}]},
            {"configurations": []}]}"#;

    #[test]
    fn power_is_text_or_watts_and_names_may_be_missing() {
        let program = Program::from_json(SMALL).unwrap();
        assert_eq!(program.power, Watts::from_watts(1000));
        let ways = &program.jobs[0].configurations;
        assert_eq!(ways[0].power, Watts::from_watts(464));
        assert_eq!(ways[1].cap, Some(Watts::from_milliwatts(30_500)));
        assert_eq!((program.name(0), program.name(1)), ("heat".to_owned(), "2".to_owned()));
        let again = serde_json::to_string(&program).unwrap();
        assert_eq!(Program::from_json(&again).unwrap(), program);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = |from: &str, to: &str| {
            let program = Program::from_json(&SMALL.replace(from, to));
            program.and_then(|program| program.instance()).unwrap_err().to_string()
        };
        let cases = [
            ("\"value\": 1.7", "\"value\": -1", "job 1 (heat), configuration 1, 'value': -1"),
            ("\"nodes\": 4, ", "", "missing field `nodes` at line 5"),
            (
                "\"nodes\": 4",
                "\"nodes\": -4",
                "invalid value: integer `-4`, expected u32 at line 5",
            ),
            ("\"346W\"", "\"346\"", "'346' has no known unit of power"),
            ("464", "-464", "expected power such as \"464W\""),
            ("464", "0.0001", "more decimals than are kept"),
            ("\"jobs\"", "\"tasks\"", "unknown field `tasks`"),
            (
                "{\"configurations\": []}",
                "{\"running\": true, \"configurations\": []}",
                "job 2 (2): it is running but has no configurations",
            ),
            ("464", "1e300", "too large"),
        ];
        for (from, to, expected) in cases {
            let error = error(from, to);
            assert!(error.contains(expected), "{error}");
        }
    }
}
