//! What is typed, and what is written instead of it: policies, workloads, programs, experiments, quantities and arrays.

use busbar::budget::{Allowance, Limit};
use busbar::policy::PolicySpec;
use busbar::solve::file::{Program, lp};
use busbar::units::{Joules, Length, Share, Watts};
use busbar::workload::Source;

use super::{round_trip, text, told, told_why};
use crate::engine::Place;
use crate::examples::{files, quoted, texts};

pub(super) fn policies() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        PolicySpec::all().into_iter().map(|policy| policy.to_string().into_bytes()).collect();
    all.extend(texts(&[
        "easy(order=aged(7s))",
        "pb-guided(lower=2, upper=4, threshold=600s)",
        "parm(window=10, guard=60s, rigid)",
        "share(use=measured, predict=last)",
        "external(python3 first_fit.py, limit=10s, wants=caps+sizes, believes=rated)",
        "utility(heuristic=max, every=60s)",
        "rmap-adaptive(order=aged)",
        "ppartition(sharing=equal)",
        "uniform(cap=60W)",
    ]));
    all.extend(quoted(&["crates/core/src/policy/spec.rs"]));
    all
}

pub(super) fn policy(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    round_trip::<PolicySpec>(text)
}

pub(super) fn workloads() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "demo",
        "lublin(jobs=20, load=0.9, seed=3)",
        "lublin(jobs=5, kind=batch)",
        "rmap(jobs=9, seed=1)",
        "cab(jobs=10)",
        "swf(log.swf, enlarge=20%)",
        "records(file=sacct.txt, zone=Europe/Berlin)",
        "essc(jobs=10)",
        "log.swf[100..200]",
    ]);
    all.extend(quoted(&["crates/workloads/src/source.rs"]));
    all
}

pub(super) fn workload(_: &Place, input: &[u8]) -> String {
    text(input, str::parse::<Source>)
}

pub(super) fn programs() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"nodes":8,"power":"800W","jobs":[{"name":"a","configurations":[{"nodes":2,"power":"200W","value":3.5},{"nodes":4,"power":"350W","value":5}]},{"configurations":[{"nodes":1,"power":"90W","value":1}]}]}"#,
        r#"{"nodes":4,"power":400,"jobs":[{"name":"b","required":true,"configurations":[{"nodes":1,"power":100,"value":2}]}]}"#,
    ])
}

pub(super) fn program(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let program = Program::from_json(text)?;
        lp::write(&mut Vec::new(), &program).expect("memory can be written to");
        program.instance().map(|_| ())
    })
}

pub(super) fn experiments() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd/compare.in", "examples/snakemake"], &[".toml"]);
    all.extend(texts(&[
        "title = \"a\"\npolicies = [\"easy\", \"share\"]\nbudgets = [\"60%\", \"80%\"]\nworkloads = [\"lublin(jobs=20)\"]\nmachine = \"64\"\nseeds = 2\n",
        "policies = [{ name = \"e\", value = \"easy\" }]\nseeds = [1, 5, 9]\nfigure = \"turnaround\"\nworld = \"paper\"\n",
    ]));
    all
}

pub(super) fn experiment(place: &Place, input: &[u8]) -> String {
    told_why(busbar::experiment::file::read(&place.file("experiment.toml", input)))
}

pub(super) fn quantities() -> Vec<Vec<u8>> {
    texts(&[
        "15.36 kW",
        "100W",
        "1.5MW",
        "42mW",
        "5GJ",
        "3.6kWh",
        "60%",
        "0.5 %",
        "10min",
        "1.5 h",
        "3d",
        "90s",
        "250ms",
        "21.5C",
        "2-8",
        "+caps",
        "caps,sizes",
        "idle for 300s, keep 1 spare",
        "0.5x",
        "unlimited",
        "100%, 5GJ per day",
    ])
}

pub(super) fn quantity(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    round_trip::<Watts>(text)
        + &round_trip::<Joules>(text)
        + &round_trip::<Share>(text)
        + &round_trip::<Allowance>(text)
        + &told(text.parse::<Length>())
        + &told(text.parse::<Limit>())
        + &told(text.parse::<busbar::job::NodeRange>())
        + &told(text.parse::<busbar::job::Weight>())
        + &told(text.parse::<busbar::job::Tolerance>())
        + &told(text.parse::<busbar::freedom::Freedoms>())
        + &told(text.parse::<busbar::switching::SwitchOff>())
        + &told(text.parse::<busbar::budget::WindowSpec>())
}

pub(super) fn arrays() -> Vec<Vec<u8>> {
    texts(&[
        "1-10",
        "1-10:2",
        "1-10%3",
        "1,5,7-9",
        "7.3",
        "12.[1-4]",
        "22:00: 60%; 06:00: 100%",
        "0-3,8",
        "0-63:2",
    ])
}

pub(super) fn array(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    told(text.parse::<busbar::live::job::ArraySpec>())
        + &told(text.parse::<busbar::live::control::schedule::ScheduleSpec>())
}
