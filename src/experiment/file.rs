//! Experiments as TOML files: read with every mistake named by its line, and written.
//!
//! ```toml
//! policies = ["easy", "pb-guided(beta=known)"]
//! budgets = ["60%", "6500W", "none"]
//! workloads = ["demo", "log.swf.gz"]
//! seeds = 5
//! ```
//!
//! All keys may be left out. Paths are those seen from the folder of the file.

use std::fmt::{self, Display, Write as _};
use std::path::{Path, PathBuf};

use serde::de::{self, Deserialize, Deserializer};
use toml::Spanned;

use crate::budget::{BudgetSpec, WindowSpec};
use crate::calendar::Calendar;
use crate::experiment::checked::repeated;
use crate::experiment::{Equipment, Experiment, ExperimentError, Load, Named, Place};
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::prepared::Rules;
use crate::tariff::{
    DemandCharge, SeriesSpec, TariffError, TariffSpec, parse_carbon, parse_outdoor, parse_price,
};
use crate::text;
use crate::units::{Share, Span, parse_decimal, parse_length};
use crate::workload::{RecordsCall, Source, parse_places};

/// The file as written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: Option<String>,
    policies: Option<List<Text>>,
    budgets: Option<List<Text>>,
    workloads: Option<List<Text>>,
    seeds: Option<Spanned<Seeds>>,
    machine: Option<Spanned<Text>>,
    nodes: Option<List<u32>>,
    profiles: Option<Spanned<Text>>,
    allow: Option<Spanned<Text>>,
    believe: Option<Spanned<Text>>,
    guard: Option<Spanned<Text>>,
    applications: Option<Spanned<Text>>,
    switch_off: Option<Spanned<Text>>,
    outages: Option<Spanned<Text>>,
    start: Option<Spanned<Text>>,
    price: Option<Spanned<Text>>,
    carbon: Option<Spanned<Text>>,
    outdoor: Option<Spanned<Text>>,
    demand_charge: Option<Spanned<Text>>,
    window: Option<Spanned<Text>>,
    partitions: Option<List<Text>>,
    jobs: Option<Spanned<Text>>,
    #[serde(default)]
    enforce_limits: bool,
    bsld_threshold: Option<Spanned<Text>>,
    rank_by: Option<Spanned<Text>>,
}

type List<T> = Spanned<Vec<Spanned<T>>>;

/// Text in quotes. Numbers are not taken for it: without its unit, one could mean anything.
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text in quotes, such as \"easy\", \"60%\" or \"6500W\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

/// How many seeds, or which.
struct Seeds(Vec<u64>);

impl<'de> Deserialize<'de> for Seeds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Seeds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seeds, such as 5, or a list of them, such as [1, 7]")
            }

            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Seeds, E> {
                match u64::try_from(count) {
                    Ok(count) if (1..=Seeds::MOST).contains(&count) => {
                        Ok(Seeds((1..=count).collect()))
                    }
                    _ => Err(E::custom(format!("{count} seeds; write 1 to {}", Seeds::MOST))),
                }
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Seeds, A::Error> {
                let mut seeds = Vec::new();
                while let Some(seed) = list.next_element()? {
                    seeds.push(seed);
                }
                Ok(Seeds(seeds))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Seeds {
    /// As many as anybody needs.
    const MOST: u64 = 1_000_000;
}

/// Reads an experiment.
pub fn read(path: &Path) -> Result<Experiment, ExperimentError> {
    read_with(path, &[])
}

/// Reads an experiment with other partitions than it names, if some are given.
pub(crate) fn read_with(path: &Path, partitions: &[String]) -> Result<Experiment, ExperimentError> {
    let whole = Place::File(path.to_owned());
    let text = text::read_whole(path).map_err(|error| whole.error(error))?;
    parse(&text, path, partitions)
}

fn parse(text: &str, path: &Path, partitions: &[String]) -> Result<Experiment, ExperimentError> {
    let line = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let at = |offset: usize| Place::Line { file: path.to_owned(), line: line(offset) };
    let file: File = toml::from_str(text).map_err(|error: toml::de::Error| {
        at(error.span().map_or(0, |span| span.start)).error(error.message().to_owned())
    })?;
    let reader = Reader { folder: path.parent().unwrap_or(Path::new("")), at: &at };
    let mut experiment = Experiment { title: file.title, ..Experiment::default() };
    if let Some(policies) = file.policies {
        let named: Vec<Named<PolicySpec>> = reader.list(policies, |text: Text| text.0.parse())?;
        let values: Vec<PolicySpec> = named.iter().map(|named| named.value.clone()).collect();
        if let Some(policy) = repeated(&values)
            && let Some(last) = named.iter().rfind(|named| named.value == *policy)
        {
            return Err(last.place.error(format!("'{policy}' is given twice; keep one")));
        }
        experiment.policies = values;
    }
    if let Some(budgets) = file.budgets {
        experiment.budgets =
            reader.list(budgets, |text| reader.path(&text.0).parse::<BudgetSpec>())?;
    }
    if let Some(workloads) = file.workloads {
        experiment.workloads =
            reader.list(workloads, |text| reader.path(&text.0).parse::<Load>())?;
    }
    if let Some(seeds) = file.seeds {
        if seeds.get_ref().0.is_empty() {
            return Err(at(seeds.span().start).error("the list is empty; give at least one"));
        }
        if let Some(seed) = repeated(&seeds.get_ref().0) {
            let why = format!("{seed} is given twice; keep one");
            return Err(at(seeds.span().start).error(why));
        }
        experiment.seeds = seeds.into_inner().0;
    }
    if let Some(nodes) = file.nodes {
        experiment.nodes = reader.list(nodes, Ok::<u32, String>)?;
    }
    if let Some(named) = file.partitions {
        let named = reader.list(named, |text| Ok::<_, String>(text.0))?;
        experiment.partitions = named.into_iter().map(|named| named.value.clone()).collect();
    }
    if !partitions.is_empty() {
        experiment.partitions = partitions.to_vec();
    }
    // Which part of a machine is meant depends on the partitions.
    if let Some(machine) = file.machine {
        experiment.machine = Some(reader.one(machine, |text| {
            let text = reader.path(&text.0);
            let machine = Machine::part_of(&text, &experiment.partitions);
            machine.map(|machine| Equipment { text, machine })
        })?);
    }
    if let Some(profiles) = file.profiles {
        let named = reader.one(profiles, |text| Ok::<_, String>(reader.path(&text.0)))?;
        experiment.profiles = Some(named.value);
    }
    if let Some(allow) = file.allow {
        experiment.rules.allow = reader.one(allow, |text| text.0.parse())?.value;
    }
    if let Some(believe) = file.believe {
        experiment.rules.believe = Some(reader.one(believe, |text| text.0.parse())?.value);
    }
    if let Some(guard) = file.guard {
        experiment.rules.guard = reader.one(guard, |text| parse_guard(&text.0))?.value;
    }
    if let Some(rule) = file.switch_off {
        experiment.rules.switch_off = Some(reader.one(rule, |text| text.0.parse())?.value);
    }
    if let Some(applications) = file.applications {
        let path = |text: Text| Ok::<_, String>(PathBuf::from(reader.path(&text.0)));
        experiment.applications = Some(reader.one(applications, path)?);
    }
    if let Some(outages) = file.outages {
        let path = |text: Text| Ok::<_, String>(PathBuf::from(reader.path(&text.0)));
        experiment.outages = Some(reader.one(outages, path)?);
    }
    if let Some(start) = file.start {
        experiment.start = Some(reader.one(start, |text| text.0.parse::<Calendar>())?.value);
    }
    let tariff = &mut experiment.tariff;
    if let Some(price) = file.price {
        tariff.price = Some(reader.one(price, |text| reader.series(&text.0, parse_price))?.value);
    }
    if let Some(carbon) = file.carbon {
        tariff.carbon =
            Some(reader.one(carbon, |text| reader.series(&text.0, parse_carbon))?.value);
    }
    if let Some(outdoor) = file.outdoor {
        tariff.outdoor =
            Some(reader.one(outdoor, |text| reader.series(&text.0, parse_outdoor))?.value);
    }
    if let Some(charge) = file.demand_charge {
        tariff.demand = Some(reader.one(charge, |text| text.0.parse::<DemandCharge>())?.value);
    }
    if let Some(window) = file.window {
        experiment.window = Some(reader.one(window, |text| text.0.parse::<WindowSpec>())?.value);
    }
    if let Some(jobs) = file.jobs {
        experiment.jobs = Some(reader.one(jobs, |text| parse_places(&text.0))?.value);
    }
    experiment.enforce_limits = file.enforce_limits;
    if let Some(threshold) = file.bsld_threshold {
        experiment.bsld_threshold = reader.one(threshold, |text| parse_threshold(&text.0))?.value;
    }
    if let Some(figure) = file.rank_by {
        experiment.rank_by = reader.one(figure, |text| text.0.parse())?.value;
    }
    Ok(experiment)
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Reads values of a file with the places where they stand.
struct Reader<'a> {
    folder: &'a Path,
    at: &'a dyn Fn(usize) -> Place,
}

impl Reader<'_> {
    fn one<T, V, E: Into<AnyError>>(
        &self,
        written: Spanned<T>,
        read: impl Fn(T) -> Result<V, E>,
    ) -> Result<Named<V>, ExperimentError> {
        let place = (self.at)(written.span().start);
        match read(written.into_inner()) {
            Ok(value) => Ok(Named { value, place }),
            Err(why) => Err(place.error(why)),
        }
    }

    fn list<T, V, E: Into<AnyError>>(
        &self,
        written: List<T>,
        read: impl Fn(T) -> Result<V, E>,
    ) -> Result<Vec<Named<V>>, ExperimentError> {
        let place = (self.at)(written.span().start);
        let items = written.into_inner();
        if items.is_empty() {
            return Err(place.error("the list is empty; give at least one, or leave the key out"));
        }
        items.into_iter().map(|item| self.one(item, &read)).collect()
    }

    /// A rate; the file of a series is seen from the folder of the experiment.
    fn series<V>(
        &self,
        text: &str,
        read: fn(&str) -> Result<SeriesSpec<V>, TariffError>,
    ) -> Result<SeriesSpec<V>, TariffError> {
        // A file beside the experiment is known as one only by its whole name.
        let beside = self.folder.join(text).to_string_lossy().into_owned();
        match read(&beside) {
            Ok(file @ SeriesSpec::File { .. }) => Ok(file),
            _ => read(text),
        }
    }

    /// The path of a file that is there, seen from the folder of the experiment; other text, and
    /// files that are not there, as they are.
    fn path(&self, text: &str) -> String {
        let path = self.folder.join(text);
        let looks_like_one =
            [".toml", ".csv", ".swf", ".gz", ".db"].iter().any(|e| text.ends_with(e));
        match path.is_file() || looks_like_one {
            true => path.to_string_lossy().into_owned(),
            false => text.to_owned(),
        }
    }
}

/// Reads the share of a budget that is kept back.
pub(crate) fn parse_guard(text: &str) -> Result<Share, AnyError> {
    let share: Share = text.parse()?;
    match share < Share::WHOLE {
        true => Ok(share),
        false => Err("no budget would be left; write a share such as 5%".into()),
    }
}

/// Reads the threshold of the bounded slowdown: a number of seconds, or a length of time with its unit.
pub(crate) fn parse_threshold(text: &str) -> Result<Span, AnyError> {
    let span = match parse_decimal(text.trim(), 1000) {
        Ok(millis) => Span::from_millis(millis),
        Err(_) => parse_length(text)?,
    };
    match span {
        Span::ZERO => Err(
            "the threshold must be above zero, or jobs without a run time would have no slowdown"
                .into(),
        ),
        span => Ok(span),
    }
}

/// The experiment as a file that can be read again from any folder.
pub(crate) fn write(experiment: &Experiment) -> String {
    let mut text = String::new();
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut line = |key: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{key} = {value}");
    };
    let list = |items: Vec<String>| match items.len() {
        0 | 1 => format!("[{}]", items.concat()),
        _ => format!("[\n    {},\n]", items.join(",\n    ")),
    };
    if let Some(title) = &experiment.title {
        line("title", quoted(title));
    }
    line("policies", list(experiment.policies.iter().map(|p| quoted(&p.to_string())).collect()));
    let budget = |budget: &Named<BudgetSpec>| match &budget.value {
        BudgetSpec::File(path) => quoted(&absolute(path)),
        other => quoted(&other.to_string()),
    };
    line("budgets", list(experiment.budgets.iter().map(budget).collect()));
    let load = |load: &Named<Load>| match &load.value.source {
        Source::Log(path) => quoted(&absolute(path)),
        Source::Records(RecordsCall { file, zone: None, .. }) => quoted(&absolute(file)),
        Source::Records(RecordsCall { file, zone: Some(zone), .. }) => {
            quoted(&format!("records(file={}, zone={zone})", absolute(file)))
        }
        _ => quoted(&load.value.text),
    };
    line("workloads", list(experiment.workloads.iter().map(load).collect()));
    line("seeds", format!("{:?}", experiment.seeds));
    if let Some(Named { value: Equipment { text, .. }, .. }) = &experiment.machine {
        line("machine", quoted(&existing(text)));
    }
    if !experiment.nodes.is_empty() {
        let nodes: Vec<u32> = experiment.nodes.iter().map(|nodes| nodes.value).collect();
        line("nodes", format!("{nodes:?}"));
    }
    // Named in a file they are for all workloads.
    let are_for_all =
        experiment.workloads.iter().all(|load| load.value.source.needs_applications());
    let usual = experiment.usual_profiles.as_ref().filter(|_| are_for_all);
    if let Some(profiles) = experiment.profiles.as_ref().or(usual) {
        line("profiles", quoted(&existing(profiles)));
    }
    let Rules { allow, believe, guard, switch_off, .. } = &experiment.rules;
    let usual = Rules::default();
    if *allow != usual.allow {
        line("allow", quoted(&allow.to_string()));
    }
    if let Some(believe) = believe {
        line("believe", quoted(&believe.to_string()));
    }
    if *guard != usual.guard {
        line("guard", quoted(&guard.to_string()));
    }
    if let Some(rule) = switch_off {
        line("switch_off", quoted(&rule.to_string()));
    }
    if let Some(applications) = &experiment.applications {
        line("applications", quoted(&absolute(&applications.value)));
    }
    if let Some(outages) = &experiment.outages {
        line("outages", quoted(&absolute(&outages.value)));
    }
    if let Some(start) = &experiment.start {
        line("start", quoted(&start.to_string()));
    }
    write_tariff(experiment, &mut |key, value| line(key, quoted(&value)));
    if !experiment.partitions.is_empty() {
        line("partitions", list(experiment.partitions.iter().map(|name| quoted(name)).collect()));
    }
    if let Some(jobs) = &experiment.jobs {
        let end = if jobs.end == usize::MAX { String::new() } else { jobs.end.to_string() };
        line("jobs", quoted(&format!("{}..{end}", jobs.start)));
    }
    if experiment.enforce_limits {
        line("enforce_limits", "true".to_owned());
    }
    line("bsld_threshold", quoted(&experiment.bsld_threshold.to_string()));
    line("rank_by", quoted(experiment.rank_by.name()));
    text
}

/// What energy costs, and what is emitted for it, line by line.
fn write_tariff(experiment: &Experiment, line: &mut dyn FnMut(&str, String)) {
    fn series<V: Clone + Display>(series: &SeriesSpec<V>) -> String {
        series.clone().absolute().to_string()
    }
    let TariffSpec { price, carbon, demand, outdoor } = &experiment.tariff;
    let parts = [
        ("price", price.as_ref().map(series)),
        ("carbon", carbon.as_ref().map(series)),
        ("outdoor", outdoor.as_ref().map(series)),
        ("demand_charge", demand.as_ref().map(DemandCharge::to_string)),
        ("window", experiment.window.as_ref().map(WindowSpec::to_string)),
    ];
    for (key, value) in parts {
        if let Some(value) = value {
            line(key, value);
        }
    }
}

fn absolute(path: &Path) -> String {
    let whole: PathBuf = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.to_string_lossy().into_owned()
}

/// A file by its whole path; other names as they are.
fn existing(text: &str) -> String {
    if Path::new(text).is_file() { absolute(Path::new(text)) } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
