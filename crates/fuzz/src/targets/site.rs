//! What a site writes down: its machine, its budget, its calendar and its tariffs.

use std::path::Path;

use busbar::budget::{BudgetSpec, Limits, TimeBase};
use busbar::calendar::{Calendar, Condition, RunDates};
use busbar::machine::Machine;
use busbar::priority::{LogNames, SiteFile};
use busbar::tariff::{parse_carbon, parse_outdoor, parse_price};
use busbar::units::Instant;

use super::{FILE, round_trip, text, told};
use crate::engine::Place;
use crate::examples::{files, texts};

pub(super) fn machine_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd", "examples"], &[".toml"]);
    all.extend(texts(&[
        "nodes = 8\ncores_per_node = 4\nnode_power = \"100W\"\nidle_power = \"20W\"\nmin_cap = \"40W\"\ncap_steps = 6\nbase_power = \"1kW\"\n",
        "nodes = 8\nname = \"lab\"\n[[partition]]\nname = \"a\"\nnodes = 4\n[[partition]]\nname = \"b\"\nnodes = 4\n",
        "nodes = 4\nsockets_per_node = 2\n[[gear]]\nfrequency = \"2.3GHz\"\npower = \"100W\"\n[off]\npower = \"2W\"\nstart = \"60s\"\nstop = \"30s\"\n",
    ]));
    all
}

pub(super) fn machine_file(place: &Place, input: &[u8]) -> String {
    told(Machine::from_file(&place.file("machine.toml", input)))
}

pub(super) fn priority_files() -> Vec<Vec<u8>> {
    texts(&[
        "names = \"names.csv\"\n[priority]\nfair_share = \"classic\"\ndampening = 2\nhalf_life = \"none\"\nreset = \"monthly\"\n",
        "[priority]\ncalc_period = \"5min\"\nmax_age = \"7d\"\n[priority.weights]\nage = 1000\n[priority.billing]\ncpu = 0.5\n",
        "[[account]]\nname = \"a\"\nparent = \"b\"\n[[account]]\nname = \"b\"\n[[user]]\nname = \"1\"\naccount = \"a\"\nshares = 3\nusage = 1e6\n",
        "[[qos]]\nname = \"high\"\npriority = 10\n[[partition]]\nname = \"debug\"\npriority = 1\ntier = 4\n",
        "[jobs]\nover_time_limit = \"5min\"\n[[qos]]\nname = \"1\"\ngrp_tres = \"cpu=64,mem=4G\"\nmax_jobs_per_user = 2\n[[partition]]\n\
         name = \"2\"\nqos = \"1\"\nmax_wall = \"1d\"\nmin_nodes = 2\n[[account]]\nname = \"3\"\nmax_submit = 4\n",
    ])
}

/// A site's file, and what it means for a log of unknown names.
pub(super) fn priority_file(place: &Place, input: &[u8]) -> String {
    let read = SiteFile::read(&place.file("site.toml", input));
    if let Ok(site) = &read {
        let _ = site.limits(LogNames::default(), &RunDates::unknown());
    }
    told(read.and_then(|site| site.priorities(LogNames::default(), &RunDates::unknown())))
}

pub(super) fn machines() -> Vec<Vec<u8>> {
    texts(&[
        "64",
        "cab",
        "demo",
        "catalyst(processors=12, seed=3)",
        "cab(nodes=100)",
        "machine.toml",
        "curves.csv",
        "curves.csv:8",
    ])
}

pub(super) fn budgets() -> Vec<Vec<u8>> {
    texts(&[
        "60%",
        "15.36 kW",
        "1.2MW",
        "100%, 5GJ per day",
        "weekdays 14:00-18:00: 80%, else 100%",
        "Sat, Sun 22:00-06:00: 3kW; 2026-12-24..2026-12-26: 50%; else unlimited",
        "unlimited",
        "50W + 3%",
        "feed.csv",
        "every 15 min: 5kWh",
        "Jan-Mar: 10kW\nelse: 20kW",
    ])
}

pub(super) fn budget(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let spec = match text.parse::<BudgetSpec>() {
        Ok(BudgetSpec::File(_)) => return "a file".to_owned(),
        other => other,
    };
    let Ok(spec) = spec else { return told(spec) };
    let written = spec.to_string();
    assert_eq!(written.parse::<BudgetSpec>().ok(), Some(spec.clone()), "'{written}'");
    let machine = Machine::of_processors(64).expect("a machine");
    let dates = dates();
    told(spec.resolve_on(&machine, &dates))
}

/// A year of which dates are known.
fn dates() -> RunDates {
    let calendar = "2026-01-01T00:00:00+01:00[Europe/Berlin]".parse::<Calendar>();
    RunDates {
        calendar: Ok(calendar.expect("a start")),
        until: Instant::from_secs(366 * 24 * 3600),
    }
}

pub(super) fn budget_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd"], &["feed.csv", "budget.csv", "limits.csv"]);
    all.extend(texts(&[
        "time,budget\n0,60%\n3600,80%\n7200,15.36kW\n",
        "time,budget\n2026-01-01T00:00:00,60%\n2026-01-02 12:00,80%\n2026-01-03T00:00:00Z,3kW\n",
        "weekdays 14:00-18:00: 80%\nelse: 100%\n",
        "0,60%\n10:30,80%\n",
    ]));
    all
}

pub(super) fn budget_file(_: &Place, input: &[u8]) -> String {
    let machine = Machine::of_processors(64).expect("a machine");
    let dates = dates();
    let calendar = dates.calendar.as_ref().expect("dates are known");
    let zone = calendar.zone();
    let bases = [TimeBase::Log(Ok(zone)), TimeBase::Wall(zone)];
    let all =
        bases.map(|base| text(input, |text| Limits::parse(text, Path::new(FILE), &machine, &base)));
    all.concat()
}

pub(super) fn calendars() -> Vec<Vec<u8>> {
    texts(&[
        "1996-09-23T14:00:31+02:00[Europe/Stockholm]",
        "2026-01-01",
        "2026-03-29T02:30 Europe/Berlin",
        "851779231 UTC",
        "weekdays 14:00-18:00",
        "Sat, Sun",
        "2026-12-24..2026-12-26",
        "22:00-06:00",
        "Jan-Mar weekends 10:00-12:30",
        "every 2nd day",
        "21.5",
        "2026-11-15 22:00",
    ])
}

pub(super) fn calendar(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let rules = busbar::budget::parse_rules(text);
    let when = busbar::calendar::When::parse(text).map(|_| ());
    round_trip::<Calendar>(text)
        + &round_trip::<Condition>(text)
        + &told(rules)
        + if when.is_ok() { "a time" } else { "no time" }
}

pub(super) fn tariffs() -> Vec<Vec<u8>> {
    texts(&[
        "0.32EUR/kWh",
        "450g/kWh",
        "weekdays 7:00-20:00: 0.40EUR/kWh, else 25ct/kWh",
        "120EUR/kW",
        "prices.csv:price repeat",
        "21.5C",
        "Jun-Aug: 25C, else 8C",
        "-3.5C",
        "12.5 $/MWh",
        "0.3 GBP per kWh",
    ])
}

pub(super) fn tariff(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    // Files have a target of their own.
    if text.contains(".csv") {
        return "a file".to_owned();
    }
    let (dates, begin, end) = (dates(), Instant::ZERO, Instant::from_secs(1_000_000));
    let rates = [parse_price(text), parse_carbon(text)].map(|spec| match spec {
        Ok(spec) => told(spec.resolve(&dates, begin, end)),
        Err(error) => told(Err::<(), _>(error)),
    });
    let outdoor = match parse_outdoor(text) {
        Ok(spec) => told(spec.resolve(&dates, begin, end)),
        Err(error) => told(Err::<(), _>(error)),
    };
    rates.concat() + &outdoor + &told(text.parse::<busbar::tariff::DemandCharge>())
}

pub(super) fn tariff_files() -> Vec<Vec<u8>> {
    texts(&[
        "time,price\n2026-01-01T00:00:00Z,0.30 EUR/kWh\n2026-01-01T01:00:00Z,0.25 EUR/kWh\n",
        "time,price_eur_per_mwh\n2026-01-01T00:00,85.3\n2026-01-01T01:00,-4\n2026-01-01T02:00,\n",
        "seconds,g/kWh\n0,400\n3600,380\n7200,100\n",
        "Date;Price [EUR/MWh]\n01.01.2026 00:00;85,3\n01.01.2026 01:00;-4,0\n",
    ])
}

pub(super) fn tariff_file(place: &Place, input: &[u8]) -> String {
    let path = place.file(FILE, input);
    let dates = dates();
    let forms = ["", " repeat", ":price"].map(|form| {
        match parse_price(&format!("{}{form}", path.display())) {
            Ok(spec) => told(spec.resolve(&dates, Instant::ZERO, Instant::from_secs(7000))),
            Err(error) => told(Err::<(), _>(error)),
        }
    });
    forms.concat()
}
