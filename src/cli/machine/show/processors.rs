//! How far apart processors are, in a table and over power.

use serde::Serialize;

use crate::cli::print;
use crate::report::{Point, Side, Spread, boxes, columns, plot};
use crate::units::Watts;
use crate::variation::{Application, Curve, Processors};

/// The machine in JSON.
#[derive(Serialize)]
struct Answer {
    processors: usize,
    floor_w: f64,
    applications: Vec<Row>,
}

/// An application on all processors. Five numbers are the least, the quartiles and the most.
#[derive(Serialize)]
struct Row {
    application: String,
    peak_gips: [f64; 5],
    uncapped_w: [f64; 5],
    floor_gips: [f64; 5],
    /// By how much the slowest is slower than the fastest at the lowest cap, in per cent.
    difference_at_floor: f64,
    /// The power at which most is done for each watt.
    most_efficient_w: [f64; 5],
    /// How far a curve lies below its concave hull at most, in per cent.
    deepest_dent: f64,
}

/// Shows all applications, or the one that is named.
pub(super) fn show(
    processors: &Processors,
    source: &str,
    app: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let named = app.map(|name| processors.application(name)).transpose()?;
    let shown = named.or(processors.applications().first());
    let row = |application| row(application, processors.floor());
    let rows: Vec<Row> = match named {
        Some(application) => vec![row(application)],
        None => processors.applications().iter().map(row).collect(),
    };
    if !json {
        return print(&describe(processors, source, &rows, shown));
    }
    let answer = Answer {
        processors: processors.names().len(),
        floor_w: processors.floor().as_f64(),
        applications: rows,
    };
    print(&(serde_json::to_string_pretty(&answer)? + "\n"))
}

fn row(application: &Application, floor: Watts) -> Row {
    let spread = |value: &dyn Fn(&Curve) -> f64| spread(application.curves.iter().map(value));
    // A processor that draws more than the lowest cap is as fast there as at its least.
    let at_floor = |curve: &Curve| curve.at(floor.max(curve.least())).billions();
    let floor_gips = spread(&at_floor);
    Row {
        application: application.name.clone(),
        peak_gips: spread(&|curve| curve.peak().billions()),
        uncapped_w: spread(&|curve| curve.most().as_f64()),
        floor_gips,
        difference_at_floor: 100.0 * (1.0 - floor_gips[0] / floor_gips[4]),
        most_efficient_w: spread(&|curve| curve.most_efficient().power.as_f64()),
        deepest_dent: 100.0
            * application.curves.iter().map(Curve::deepest_dent).fold(0.0, f64::max),
    }
}

/// The least, the lower quartile, the median, the upper quartile and the most.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 5] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    [0, 1, 2, 3, 4].map(|quarters| values.get(last * quarters / 4).copied().unwrap_or(f64::NAN))
}

fn describe(
    processors: &Processors,
    source: &str,
    rows: &[Row],
    shown: Option<&Application>,
) -> String {
    let mut text = format!(
        "     machine  {source}\n  processors  {}\n  lowest cap  {}\n\n",
        processors.names().len(),
        processors.floor()
    );
    let headings = [
        ("application", Side::Left),
        ("peak (GIPS)", Side::Right),
        ("uncapped (W)", Side::Right),
        ("at the lowest cap (GIPS)", Side::Right),
        ("differ by", Side::Right),
        ("best for a watt (W)", Side::Right),
        ("deepest dent", Side::Right),
    ];
    let span = |values: &[f64; 5]| format!("{:.1}–{:.1}", values[0], values[4]);
    let cells = rows.iter().map(|row| {
        vec![
            row.application.clone(),
            format!("{:.1}", row.peak_gips[2]),
            span(&row.uncapped_w),
            span(&row.floor_gips),
            format!("{:.1} %", row.difference_at_floor),
            span(&row.most_efficient_w),
            format!("{:.2} %", row.deepest_dent),
        ]
    });
    text += &columns(&headings, &cells.collect::<Vec<_>>());
    text += "\ndrawn without a cap\n";
    let set = |row: &Row| Spread { name: row.application.clone(), values: row.uncapped_w };
    text += &boxes("power (W)", &rows.iter().map(set).collect::<Vec<_>>());
    if let Some(application) = shown {
        text += &plots(processors, application);
    }
    text
}

fn plots(processors: &Processors, application: &Application) -> String {
    let order = application.by_efficiency();
    let mut places = vec![0, order.len() / 2, order.len() - 1];
    places.dedup();
    let chosen: Vec<(char, usize)> =
        ['●', '○', '◆'].into_iter().zip(places.into_iter().map(|place| order[place])).collect();
    let line = |value: fn(f64, f64) -> f64| -> Vec<Vec<Point>> {
        let points = |(mark, processor): &(char, usize)| {
            let knots = application.curves[*processor].knots().iter();
            let point =
                |watts: f64, gips: f64| Point { x: watts, y: value(watts, gips), mark: *mark };
            knots.map(|knot| point(knot.power.as_f64(), knot.ips.billions())).collect()
        };
        chosen.iter().map(points).collect()
    };
    let named = |(mark, processor): &(char, usize)| {
        let most = application.curves[*processor].most();
        format!("{mark} {} ({most} without a cap)", processors.names()[*processor])
    };
    let legend = chosen.iter().map(named).collect::<Vec<_>>().join(", ");
    let power = "power of a processor (W)";
    format!(
        "\n{}: {legend}\n{}\n{}",
        application.name,
        plot("speed (GIPS)", power, &line(|_, gips| gips)),
        plot("speed for each watt (GIPS/W)", power, &line(|watts, gips| gips / watts))
    )
}
