//! `feeds.csv`: what is drawn below each feed over time. `nodes.csv`: on which nodes jobs are, so that it can be added up again.

use std::io::{self, Write};
use std::ops::Range;

use crate::metrics::RunContext;
use crate::rows::quote;
use crate::sim::Run;
use crate::units::{Instant, Watts};

/// Writes a row for every change of a feed: from when, which feed, watts drawn below it, and its limit if there is one.
pub(crate) fn write_feeds(
    out: &mut dyn Write,
    subject: &RunContext<'_>,
    run: &Run,
) -> io::Result<()> {
    out.write_all(b"time,feed,watts,limit\n")?;
    for sample in &run.feed_power {
        let feed = quote(feed_name(subject, sample.feed));
        let limit = sample.limit.limited().map_or(String::new(), watts);
        writeln!(out, "{},{feed},{},{limit}", seconds(sample.at), watts(sample.power))?;
    }
    Ok(())
}

/// Writes a row for every start of a job on a machine with feeds: when, which job, and its nodes.
pub(crate) fn write_nodes(
    out: &mut dyn Write,
    subject: &RunContext<'_>,
    run: &Run,
) -> io::Result<()> {
    out.write_all(b"time,job,nodes\n")?;
    for placed in &run.placed {
        let number = subject.workload.jobs()[placed.job.index()].number;
        let nodes = stretches(&placed.nodes);
        writeln!(out, "{},{number},{}", seconds(placed.at), quote(&nodes))?;
    }
    Ok(())
}

/// The name of a feed.
pub(super) fn feed_name<'a>(subject: &RunContext<'a>, feed: usize) -> &'a str {
    subject.machine.feeds.as_ref().map_or("", |feeds| feeds.name(feed))
}

/// Nodes as machine files name them: `0-63,128-191`.
pub(super) fn stretches(nodes: &[Range<u32>]) -> String {
    let stretch = |nodes: &Range<u32>| match nodes.end - nodes.start {
        1 => nodes.start.to_string(),
        _ => format!("{}-{}", nodes.start, nodes.end - 1),
    };
    nodes.iter().map(stretch).collect::<Vec<_>>().join(",")
}

fn seconds(at: Instant) -> String {
    thousandths(at.millis())
}

fn watts(power: Watts) -> String {
    thousandths(power.milliwatts())
}

/// As in all tables: no more decimals than there are.
fn thousandths(value: u64) -> String {
    let mut line = crate::digits::Line::new();
    line.thousandths(value);
    String::from_utf8_lossy(line.as_bytes()).into_owned()
}
