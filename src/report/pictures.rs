//! The pictures of a report as files, drawn without a browser.
//!
//! The same curves, rectangles and colours as in `report.html`, in SVG: for papers and slides, and for
//! machines that nobody looks at. What the page lets a reader choose is settled here: all policies, the
//! whole run, one picture of the schedule for each policy, coloured by the wait.

use crate::calendar::Calendar;
use crate::report::cases::cases;
use crate::report::digest::{Digest, Envelope, Ranks};
use crate::report::{Palette, human_energy};
use crate::units::Instant;

mod frame;
mod heat_map;
mod schedule;
mod svg;

use frame::{Frame, Scale};
pub(crate) use heat_map::{HeatMap, heat_map};
use svg::Anchor;

/// The colours of policies, one after another; they are told apart by people who see fewer colours.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#b0569a", "#a87900", "#5a4fcf", "#3b9fd4", "#6b7680"];
/// The most parts of a curve that are drawn: about one a pixel.
const MOST_PARTS: usize = 800;

/// The most dates beside an axis.
const MOST_DATES: u64 = 10;

/// A picture as a file: its name, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The file's name, perhaps with a folder.
    pub(crate) name: String,
    /// The picture, in SVG.
    pub(crate) svg: String,
}

/// The pictures of these runs. Runs that differ in the workload or the budget have pictures of their own,
/// each in a folder that is named in front of the file.
pub(crate) fn pictures(digests: &[Digest]) -> Vec<Picture> {
    let (cases, _) = cases(digests, 0, &[]);
    let palette = Palette::of(digests);
    if cases.len() == 1 {
        return pictures_of(digests, &palette);
    }
    let mut pictures = Vec::new();
    for (number, case) in (1..).zip(&cases) {
        let runs: Vec<Digest> = case.runs.iter().map(|run| (*run).clone()).collect();
        let folder = format!("{number}-{}", file_name(&case.name()));
        pictures.extend(
            pictures_of(&runs, &palette)
                .into_iter()
                .map(|picture| Picture { name: format!("{folder}/{}", picture.name), ..picture }),
        );
    }
    pictures
}

/// The pictures of one workload under one budget.
fn pictures_of(digests: &[Digest], palette: &Palette) -> Vec<Picture> {
    let mut pictures = vec![
        picture("power.svg", power(digests, palette)),
        picture("utilisation.svg", utilisation(digests, palette)),
        picture("queue.svg", queue(digests, palette)),
        picture("waits.svg", waits(digests, palette)),
        picture("slowdowns.svg", slowdowns(digests, palette)),
        picture("energy.svg", energy(digests, palette)),
    ];
    for (place, digest) in digests.iter().enumerate() {
        let name = match digests.len() {
            1 => "schedule.svg".to_owned(),
            _ => format!("schedule-{}-{}.svg", place + 1, file_name(&digest.summary.policy)),
        };
        pictures.push(picture(&name, schedule::schedule(digest)));
    }
    pictures
}

/// Lines of several policies over the same steps, which have names.
#[derive(Clone, Debug)]
pub(crate) struct Course<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// What goes up.
    pub(crate) up: &'a str,
    /// The steps, from left to right.
    pub(crate) steps: &'a [String],
    /// Each policy, with its values as far as it has any.
    pub(crate) lines: Vec<(String, Vec<Option<f64>>)>,
    /// The colours of the policies.
    pub(crate) palette: &'a Palette,
}

/// A picture of it.
pub(crate) fn course(course: &Course<'_>) -> String {
    let values = || course.lines.iter().flat_map(|(_, values)| values.iter().flatten());
    let Some(most) = values().copied().reduce(f64::max) else {
        return empty(course.title, "No policy ran.");
    };
    // The names of steps stand where numbers would.
    let last = course.steps.len().saturating_sub(1) as f64;
    let ticks = course.steps.iter().enumerate().map(|(at, name)| (at as f64, name.clone()));
    let across = ("", Scale::even(-0.4, last + 0.4).with_ticks(ticks.collect()));
    let up = (course.up, Scale::up_to(most));
    let mut frame = Frame::new(course.title, 440.0, across, up);
    for (name, values) in &course.lines {
        let place = course.palette.place(name);
        let known = values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
        let points: Vec<(f64, f64)> =
            known.map(|(at, value)| (frame.x(at as f64), frame.y(value))).collect();
        frame.svg.line(&points, colour(place), &stroke("2", place));
        for (x, y) in points {
            frame.svg.rectangle((x - 3.0, y - 3.0), (6.0, 6.0), colour(place));
        }
    }
    let has_points = |(_, values): &&(String, Vec<Option<f64>>)| values.iter().any(Option::is_some);
    let drawn = course.lines.iter().filter(has_points).map(|(name, _)| name.as_str());
    let names: Vec<(&str, &str)> =
        drawn.map(|name| (name, colour(course.palette.place(name)))).collect();
    frame.key(&names);
    frame.svg.finish(course.title)
}

fn picture(name: &str, svg: String) -> Picture {
    Picture { name: name.to_owned(), svg }
}

/// A policy's name, or what else tells runs apart, as a part of a file's name: not too long, and of plain
/// letters.
fn file_name(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    let joined = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    joined.chars().take(60).collect()
}

fn colour(place: usize) -> &'static str {
    COLOURS[place % COLOURS.len()]
}

/// A line of this width, with dashes if there are more policies than colours.
fn stroke(width: &str, place: usize) -> String {
    let dashes = ["", " stroke-dasharray=\"2 3\"", " stroke-dasharray=\"7 4\""];
    format!("stroke-width=\"{width}\"{}", dashes[place / COLOURS.len() % dashes.len()])
}

fn names<'a>(digests: &'a [Digest], palette: &Palette) -> Vec<(&'a str, &'static str)> {
    let policies = digests.iter().map(|digest| digest.summary.policy.as_str());
    policies.map(|policy| (policy, colour(palette.place(policy)))).collect()
}

/// The unit of time that suits runs of this length, in milliseconds, and what stands beside its axis.
fn clock(digests: &[Digest]) -> (f64, String) {
    let length = digests.iter().map(|run| run.end.saturating_sub(run.begin)).max().unwrap_or(0);
    let (clock, name) = match length / 1000 {
        s if s >= 4 * 86_400 => (86_400_000.0, "time (days)"),
        s if s >= 4 * 3600 => (3_600_000.0, "time (hours)"),
        s if s >= 4 * 60 => (60_000.0, "time (minutes)"),
        _ => (1000.0, "time (seconds)"),
    };
    match calendar(digests).as_ref().and_then(|calendar| calendar.zone().iana_name()) {
        Some(zone) => (clock, format!("time in {zone}")),
        None => (clock, name.to_owned()),
    }
}

/// The dates of these runs, if they have the same.
fn calendar(digests: &[Digest]) -> Option<Calendar> {
    let first = digests.first()?.start.as_ref()?;
    let is_same = digests.iter().all(|run| run.start.as_ref() == Some(first));
    first.parse().ok().filter(|_| is_same)
}

/// The unit that suits values up to this one, and its prefix.
fn unit(most: f64) -> (f64, &'static str) {
    let prefixes = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    prefixes.into_iter().find(|(size, _)| most >= *size).unwrap_or((1.0, ""))
}

/// From when until when the runs go on.
fn span(digests: &[Digest], clock: f64) -> Scale {
    let begin = digests.iter().map(|run| run.begin).min().unwrap_or(0);
    let end = digests.iter().map(|run| run.end).max().unwrap_or(0);
    let scale = Scale::even(begin as f64 / clock, end as f64 / clock);
    match calendar(digests) {
        Some(calendar) => {
            let [begin, end] = [begin, end].map(Instant::from_millis);
            let ticks = calendar.ticks(begin, end, MOST_DATES).into_iter();
            scale.with_ticks(ticks.map(|(at, text)| (at.millis() as f64 / clock, text)).collect())
        }
        None => scale,
    }
}

/// A chart without a single value.
fn empty(title: &str, why: &str) -> String {
    let mut svg = svg::Svg::new(960.0, 120.0);
    svg.text((76.0, 26.0), Anchor::Start, "title", title);
    svg.text((480.0, 72.0), Anchor::Middle, "soft", why);
    svg.finish(title)
}

/// A curve as a chart takes it: places and values in the chart's units.
type Steps = Vec<(f64, f64)>;

/// The lowest, highest and mean values of a curve, in no more parts than a picture shows.
fn curves(curve: &Envelope, end: u64, clock: f64, scale: f64) -> [Steps; 3] {
    let shown = curve.coarser(end, MOST_PARTS);
    [&shown.low, &shown.high, &shown.mean].map(|values| {
        let steps = shown.from.values().iter().zip(values.values());
        steps.map(|(from, value)| (*from as f64 / clock, *value as f64 * scale)).collect()
    })
}

/// Curves of all runs over time, each with its band.
fn over_time(
    frame: &mut Frame,
    digests: &[Digest],
    clock: f64,
    palette: &Palette,
    curve: impl Fn(&Digest) -> (&Envelope, f64),
) {
    for digest in digests {
        let place = palette.place(&digest.summary.policy);
        let (envelope, scale) = curve(digest);
        let [low, high, mean] = curves(envelope, digest.end, clock, scale);
        let end = digest.end as f64 / clock;
        frame.band(&low, &high, end, colour(place));
        frame.steps(&mean, end, colour(place), &stroke("1.5", place));
    }
    frame.key(&names(digests, palette));
}

fn power(digests: &[Digest], palette: &Palette) -> String {
    let title = "Power over time";
    if digests.iter().all(|run| run.power.from.values().is_empty()) {
        return empty(title, "The power over time was not recorded.");
    }
    let highest = |curve: &Envelope| curve.high.values().iter().max().copied().unwrap_or(0);
    let most = digests.iter().map(|run| highest(&run.power).max(highest(&run.limit))).max();
    let most = most.unwrap_or(0) as f64 / 1000.0;
    let ((size, prefix), (clock, time)) = (unit(most), clock(digests));
    let up = (&*format!("power ({prefix}W)"), Scale::up_to(most / size));
    let mut frame = Frame::new(title, 420.0, (&*time, span(digests, clock)), up);
    let scale = 1.0 / 1000.0 / size;
    over_time(&mut frame, digests, clock, palette, |run| (&run.power, scale));
    if let Some(run) = digests.iter().max_by_key(|run| run.end) {
        let [_, _, limit] = curves(&run.limit, run.end, clock, scale);
        let style = "stroke-width=\"1.5\" stroke-dasharray=\"8 5\"";
        frame.steps(&limit, run.end as f64 / clock, "#17202a", style);
    }
    frame.svg.finish(title)
}

fn utilisation(digests: &[Digest], palette: &Palette) -> String {
    let title = "Utilisation over time";
    let (clock, time) = clock(digests);
    let up = ("nodes in use (%)", Scale::even(0.0, 100.0));
    let mut frame = Frame::new(title, 420.0, (&*time, span(digests, clock)), up);
    let share = |run: &Digest| 100.0 / f64::from(run.summary.nodes.max(1));
    over_time(&mut frame, digests, clock, palette, |run| (&run.busy, share(run)));
    frame.svg.finish(title)
}

fn queue(digests: &[Digest], palette: &Palette) -> String {
    let title = "Queue length over time";
    let highest = |run: &Digest| run.queue.high.values().iter().max().copied();
    let Some(most) = digests.iter().filter_map(highest).max() else {
        return empty(title, "No job was submitted.");
    };
    let (clock, time) = clock(digests);
    let up = ("jobs waiting", Scale::up_to(most.max(1) as f64));
    let mut frame = Frame::new(title, 420.0, (&*time, span(digests, clock)), up);
    over_time(&mut frame, digests, clock, palette, |run| (&run.queue, 1.0));
    frame.svg.finish(title)
}

fn waits(digests: &[Digest], palette: &Palette) -> String {
    let ticks = [
        (1.0, "1 s"),
        (10.0, "10 s"),
        (60.0, "1 min"),
        (600.0, "10 min"),
        (3600.0, "1 h"),
        (21_600.0, "6 h"),
        (86_400.0, "1 day"),
        (864_000.0, "10 days"),
        (8_640_000.0, "100 days"),
    ];
    let ticks = ticks.map(|(at, text)| (at, text.to_owned())).to_vec();
    let name = "wait (less than a second is shown as one)";
    distribution("Waits", digests, palette, (name, ticks), |run| (&run.waits, 1000.0))
}

fn slowdowns(digests: &[Digest], palette: &Palette) -> String {
    let ticks = [1u32, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000];
    let ticks = ticks.map(|at| (f64::from(at), at.to_string())).to_vec();
    distribution("Bounded slowdowns", digests, palette, ("bounded slowdown", ticks), |run| {
        (&run.slowdowns, 10_000.0)
    })
}

/// The share of jobs that have at most so much of something, which is never less than one.
fn distribution(
    title: &str,
    digests: &[Digest],
    palette: &Palette,
    (name, ticks): (&str, Vec<(f64, String)>),
    ranks: impl Fn(&Digest) -> (&Ranks, f64),
) -> String {
    let largest = |run| {
        let (ranks, unit) = ranks(run);
        ranks.values.values().last().map(|value| *value as f64 / unit)
    };
    let Some(most) = digests.iter().filter_map(largest).reduce(f64::max) else {
        return empty(title, "No job ran.");
    };
    let across = (name, Scale::by_factors(1.0, most, ticks));
    let mut frame = Frame::new(title, 420.0, across, ("jobs (%)", Scale::even(0.0, 100.0)));
    for digest in digests {
        let place = palette.place(&digest.summary.policy);
        let (ranks, unit) = ranks(digest);
        let values = ranks.values.values().iter().zip(ranks.ranks.values());
        let share = |rank: u64| 100.0 * rank as f64 / ranks.count.max(1) as f64;
        let steps: Steps =
            values.map(|(value, rank)| (*value as f64 / unit, share(*rank))).collect();
        frame.steps(&steps, most, colour(place), &stroke("2", place));
    }
    frame.key(&names(digests, palette));
    frame.svg.finish(title)
}

fn energy(digests: &[Digest], palette: &Palette) -> String {
    let title = "Energy";
    let most = digests.iter().map(|run| run.summary.energy_j).fold(0.0, f64::max);
    if most <= 0.0 {
        return empty(title, "No energy was drawn.");
    }
    let (size, prefix) = unit(most);
    let rows = digests.len() as f64;
    // With room for the number behind the longest bar.
    let across = (&*format!("energy ({prefix}J)"), Scale::up_to(1.1 * most / size));
    let up = ("", Scale::even(0.0, rows).bare());
    let mut frame = Frame::new(title, 130.0 + 30.0 * rows, across, up);
    for (row, digest) in digests.iter().enumerate() {
        let joules = digest.summary.energy_j / size;
        let (top, bottom) = (frame.y(rows - row as f64 - 0.15), frame.y(rows - row as f64 - 0.85));
        let tint = colour(palette.place(&digest.summary.policy));
        let (left, right) = (frame.x(0.0), frame.x(joules));
        frame.svg.rectangle((left, top), (right - left, bottom - top), tint);
        let text = human_energy(digest.summary.energy_j);
        frame.svg.text((right + 6.0, (top + bottom) / 2.0 + 4.0), Anchor::Start, "", &text);
    }
    frame.key(&names(digests, palette));
    frame.svg.finish(title)
}

#[cfg(test)]
mod tests;
