//! `report.html`: runs in one page that needs nothing else.
//!
//! The page holds its style, its scripts and its data, and a policy that forbids the browser to
//! fetch anything. Tables are written here, so that they can be read without scripts; charts are drawn
//! by scripts of our own, as SVG, from data that the browser inflates. Figures come from [`Summary`],
//! curves from [`Digest`]: the scripts in `html/` draw and do not work figures out.

use std::fmt::Write as _;
use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use serde::Serialize;

use crate::calendar::Calendar;
use crate::metrics::Summary;
use crate::report::cases::{Absent, Case, cases};
use crate::report::digest::{
    Bars, CLASSES, Column, Digest, Envelope, MOST_JOBS, Ranks, SLOWDOWNS, STATES, WAITS,
};
use crate::report::markup::escaped;
use crate::report::ranking::RankedBy;
use crate::report::{Palette, Side, columns};
use crate::units::Instant;

use fitting::{Shades, fitted, is_same_workload};

mod all_figures;
mod figures;
mod fitting;
mod overview;
mod ranking;
mod tables;
mod waits;

/// Colours, tables and sections, which the daemon's page has, too.
pub(crate) const STYLE: &str = include_str!("html/page.css");
const BODY: &str = include_str!("html/page.html");

/// Quantities in words, and how charts are drawn: what the daemon's page has, too.
pub(crate) const SHARED: &[&str] = &[
    include_str!("html/words.js"),
    include_str!("html/ink.js"),
    include_str!("html/scale.js"),
    include_str!("html/marks.js"),
    include_str!("html/axes.js"),
    include_str!("html/hover.js"),
    include_str!("html/zoom.js"),
    include_str!("html/chart.js"),
    include_str!("html/dates.js"),
];

/// A page has at most this many bytes of data, whatever the number of jobs, and with tables and scripts 3 MB: it can
/// be mailed, and opens at once. Only the curves of very many runs may need more.
const MOST_BYTES: usize = 2_850_000;

/// With fewer single jobs than this, it is not they that take the room.
const FEWEST_JOBS: usize = 2000;

/// How many colours of policies the style has; more policies have dashes.
const COLOURS: usize = 8;

/// The page's own scripts, in the order in which they build on each other.
const SCRIPTS: &[&str] = &[
    include_str!("html/data.js"),
    include_str!("html/saving.js"),
    include_str!("html/curves.js"),
    include_str!("html/schedule.js"),
    include_str!("html/differences.js"),
    include_str!("html/sorting.js"),
    include_str!("html/page.js"),
];

/// One page about these runs, with tables and charts. Runs of the same workload under the same budget
/// are shown together; if there are several such cases, a reader chooses among them.
pub fn page(title: &str, digests: &[Digest]) -> String {
    page_with(title, digests, &Beside::default())
}

/// What a page says beside its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Policies that could not run: each is shown with its reason beside those that did.
    pub(crate) absent: Vec<Absent>,
    /// What runs are ranked by.
    pub(crate) ranked_by: RankedBy,
    /// The figures of each run with other seeds, in the order of the runs; nothing where there is one
    /// seed.
    pub(crate) other_seeds: Vec<Vec<Summary>>,
    /// What a reader has to know.
    pub(crate) notes: Vec<String>,
    /// A sentence that says the most important thing: the page opens with it.
    pub(crate) lead: Option<String>,
    /// What the page was asked for, as a table: it comes before everything else.
    pub(crate) answer: Option<Aside>,
    /// Tables that belong to the answer: they come after the notes, and before the runs.
    pub(crate) details: Vec<Aside>,
    /// This many runs, the first ones, did not have to keep the budget: the others are compared with them in all charts
    /// and tables, and they have no rank.
    pub(crate) references: usize,
    /// What people call jobs whose number is another, by that number.
    pub(crate) job_labels: Vec<(u64, String)>,
    /// Tables beside those of the runs.
    pub(crate) tables: Vec<Aside>,
}

/// A table beside those of the runs, perhaps with a picture.
#[derive(Clone, Debug)]
pub(crate) struct Aside {
    /// What it asks.
    pub(crate) title: String,
    /// What it shows, in a sentence.
    pub(crate) about: String,
    /// The headings of its columns.
    pub(crate) headings: Vec<String>,
    /// Its rows, each beginning with what it is about.
    pub(crate) rows: Vec<Vec<String>>,
    /// A picture of it, in SVG.
    pub(crate) picture: Option<String>,
}

impl Aside {
    /// The same as text, in columns.
    pub(crate) fn text(&self) -> String {
        let side = |place: usize| if place == 0 { Side::Left } else { Side::Right };
        let headings = self.headings.iter().enumerate();
        let headings: Vec<(&str, Side)> =
            headings.map(|(place, heading)| (heading.as_str(), side(place))).collect();
        format!("{}\n{}\n{}\n", self.title, self.about, columns(&headings, &self.rows))
    }
}

/// The same, with more to say.
pub(crate) fn page_with(title: &str, digests: &[Digest], beside: &Beside) -> String {
    let (mut cases, homeless) = cases(digests, beside.references, &beside.absent);
    for case in &mut cases {
        case.ranked_by = beside.ranked_by;
        for (seeds, &place) in case.seeds.iter_mut().zip(&case.places) {
            seeds.extend(beside.other_seeds.get(place).into_iter().flatten());
        }
    }
    let palette = Palette::of(digests);
    let mut tables = beside.lead.as_deref().map(tables::lead).unwrap_or_default()
        + &beside.answer.as_ref().map(tables::aside).unwrap_or_default()
        + &tables::notes(&beside.notes)
        + &ranking::homeless(&homeless);
    tables.extend(beside.details.iter().map(tables::aside));
    // An answer says the same, and more.
    if beside.answer.is_none() {
        tables += &overview::overview(&cases, &palette);
    }
    for (place, case) in cases.iter().enumerate() {
        let (heading, ranking) = (tables::heading(case), ranking::ranking(case, &palette));
        let (best, figures) = (tables::cards(case), all_figures::all_figures(case));
        let waits = waits::waits(case, &palette);
        // Writing to a string does not fail.
        let _ = write!(
            tables,
            "<section class=\"case\" data-case=\"{place}\">\n{heading}{best}{ranking}{figures}{waits}</section>\n"
        );
    }
    tables.extend(beside.tables.iter().map(tables::aside));
    let scripts = SHARED.concat() + &SCRIPTS.concat();
    let parts = [
        ("TITLE", escaped(title)),
        ("STYLE", STYLE.to_owned()),
        ("TABLES", tables),
        ("DATA", packed_within(MOST_BYTES, digests, &cases, &palette, beside)),
        ("SCRIPTS", format!("(() => {{\n\"use strict\";\n{scripts}}})();\n")),
    ];
    filled(BODY, &parts)
}

/// What the scripts draw from, in letters, with as many single jobs as there is room for.
fn packed_within(
    room: usize,
    digests: &[Digest],
    cases: &[Case<'_>],
    palette: &Palette,
    beside: &Beside,
) -> String {
    let mut most = MOST_JOBS;
    loop {
        let held = fitted(digests, most);
        let letters = STANDARD.encode(packed(&data(&held, cases, palette, beside)));
        if letters.len() <= room || most < FEWEST_JOBS {
            return letters;
        }
        most /= 2;
    }
}

/// The colour of a policy beside its name, with the dashes of its lines.
fn swatch(place: usize) -> String {
    let dashes = ["solid", "dotted", "dashed"][place / COLOURS % 3];
    let colour = place % COLOURS;
    format!("<i class=\"swatch\" style=\"--tint: var(--series-{colour}); --dash: {dashes}\"></i>")
}

/// A text with `{{NAME}}` replaced, each name as often as it comes.
fn filled(template: &str, parts: &[(&str, String)]) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text += before;
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        let part = parts.iter().find(|(known, _)| *known == name);
        text += part.map_or("", |(_, value)| value);
        rest = after;
    }
    text + rest
}

fn packed(data: &[u8]) -> Vec<u8> {
    let mut packed = GzBuilder::new().write(Vec::new(), Compression::default());
    // Writing to memory does not fail.
    let _ = packed.write_all(data);
    packed.finish().unwrap_or_default()
}

/// What the scripts draw from.
#[derive(Serialize)]
struct Data<'a> {
    states: [&'static str; 5],
    classes: Ends,
    /// Numbers and submit times of jobs, which runs share.
    workloads: Vec<Jobs<'a>>,
    cases: Vec<Shown>,
    runs: Vec<Run<'a>>,
    /// What people call jobs whose number is another.
    labels: &'a [(u64, String)],
}

/// Where the classes of colours end.
#[derive(Serialize)]
struct Ends {
    wait: [u64; CLASSES - 1],
    slowdown: [u64; CLASSES - 1],
}

#[derive(Serialize)]
struct Jobs<'a> {
    number: &'a Column,
    submit: &'a Column,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    /// Its runs: what others are compared with, then the best first.
    runs: Vec<usize>,
    /// How many of them others are compared with.
    references: usize,
}

#[derive(Serialize)]
struct Run<'a> {
    workload: usize,
    /// The place of its policy's colour.
    place: usize,
    #[serde(flatten)]
    digest: Bare<'a>,
}

/// A digest without the columns that runs share.
#[derive(Serialize)]
struct Bare<'a> {
    summary: &'a Summary,
    /// The start of the clock in milliseconds since 1970 and the time zone, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<(i64, String)>,
    begin: u64,
    end: u64,
    power: &'a Envelope,
    limit: &'a Envelope,
    busy: &'a Envelope,
    queue: &'a Envelope,
    waits: &'a Ranks,
    slowdowns: &'a Ranks,
    state: &'a Column,
    wait: &'a Column,
    run: &'a Column,
    nodes: &'a Column,
    cap: &'a Column,
    slowdown: &'a Column,
    bars: &'a Bars,
    #[serde(skip_serializing_if = "Option::is_none")]
    rest: Option<Shades>,
}

/// When the clock of a run starts, in milliseconds since 1970, and in which zone.
fn start(digest: &Digest) -> Option<(i64, String)> {
    let calendar: Calendar = digest.start.as_ref()?.parse().ok()?;
    let zone = calendar.zone().iana_name()?.to_owned();
    Some((calendar.time(Instant::ZERO).as_millisecond(), zone))
}

fn data(digests: &[Digest], cases: &[Case<'_>], palette: &Palette, beside: &Beside) -> Vec<u8> {
    let mut workloads: Vec<&Digest> = Vec::new();
    let mut runs = Vec::with_capacity(digests.len());
    for digest in digests {
        let jobs = &digest.jobs;
        let is_same = |known: &&Digest| is_same_workload(known, digest);
        let workload = workloads.iter().position(is_same).unwrap_or_else(|| {
            workloads.push(digest);
            workloads.len() - 1
        });
        let rest = Shades::of(digest);
        let Digest { summary, power, limit, busy, queue, waits, slowdowns, bars, .. } = digest;
        let place = palette.place(&summary.policy);
        let (begin, end) = (digest.begin, digest.end);
        let digest = Bare {
            summary,
            start: start(digest),
            begin,
            end,
            power,
            limit,
            busy,
            queue,
            waits,
            slowdowns,
            state: &jobs.state,
            wait: &jobs.wait,
            run: &jobs.run,
            nodes: &jobs.nodes,
            cap: &jobs.cap,
            slowdown: &jobs.slowdown,
            bars,
            rest,
        };
        runs.push(Run { workload, place, digest });
    }
    let cases = cases.iter().map(|case| Shown {
        name: case.name(),
        runs: case.order().into_iter().map(|at| case.places[at]).collect(),
        references: case.references,
    });
    let workloads = workloads
        .iter()
        .map(|Digest { jobs, .. }| Jobs { number: &jobs.number, submit: &jobs.submit });
    let data = Data {
        states: STATES,
        classes: Ends { wait: WAITS, slowdown: SLOWDOWNS },
        workloads: workloads.collect(),
        cases: cases.collect(),
        runs,
        labels: &beside.job_labels,
    };
    // Strings and numbers can always be written.
    serde_json::to_vec(&data).unwrap_or_default()
}

#[cfg(test)]
mod tests;
