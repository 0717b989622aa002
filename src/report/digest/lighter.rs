//! A digest with less in it, for a page that has no room for all.

use super::rest::{Looks, Rectangle, Tiles};
use super::{Bars, Column, Digest, Envelope, Jobs, range};

impl Digest {
    /// How many jobs it has one by one.
    pub(in crate::report) fn singles(&self) -> usize {
        self.jobs.number.values().len()
    }

    /// How much node time each of its jobs had: by this, jobs are large or small.
    pub(in crate::report) fn sizes(&self) -> impl Iterator<Item = u64> {
        let Jobs { run, nodes, .. } = &self.jobs;
        run.values().iter().zip(nodes.values()).map(|(run, nodes)| run.saturating_mul(*nodes))
    }

    /// The same with only some of its jobs one by one, with curves of at most this many parts, and with at most so many
    /// tiles across and up for the jobs that are not kept, unless it has tiles already.
    pub(in crate::report) fn lighter(
        &self,
        kept: &[bool],
        parts: usize,
        tiles: (u64, u64),
    ) -> Digest {
        let Digest { begin, end, jobs, bars, .. } = self;
        let mut tiles = match &self.rest {
            Some(rest) => Tiles::of_others(rest),
            None => {
                let caps = range(jobs.cap.values().iter().copied());
                Tiles::new([*begin, *end], self.summary.nodes, caps, tiles)
            }
        };
        let mut kept_bars = Vec::new();
        for place in 0..bars.job.values().len() {
            let job = bars.job.values()[place] as usize;
            let start = jobs.submit.values()[job] + jobs.wait.values()[job];
            let rectangle = Rectangle {
                from: start + bars.late.values()[place],
                until: start + jobs.run.values()[job] - bars.early.values()[place],
                lane: bars.lane.values()[place],
                lanes: bars.lanes.values()[place],
            };
            if kept[job] {
                kept_bars.push(place);
                tiles.add_single(rectangle);
                continue;
            }
            let [wait, slowdown, cap] =
                [&jobs.wait, &jobs.slowdown, &jobs.cap].map(|column| column.values()[job]);
            tiles.add(rectangle, Looks { wait, slowdown, cap });
        }
        let of_kept = |column: &Column| -> Column {
            let values = column.values().iter().zip(kept);
            values.filter(|(_, is_kept)| **is_kept).map(|(value, _)| *value).collect()
        };
        let of_kept_bars = |column: &Column| -> Column {
            kept_bars.iter().map(|place| column.values()[*place]).collect()
        };
        let places: Vec<u64> = kept
            .iter()
            .scan(0, |before, is_kept| {
                Some(std::mem::replace(before, *before + u64::from(*is_kept)))
            })
            .collect();
        let dropped = kept.iter().filter(|is_kept| !**is_kept).count() as u64;
        let coarser = |curve: &Envelope| curve.coarser(*end, parts);
        Digest {
            power: coarser(&self.power),
            limit: coarser(&self.limit),
            busy: coarser(&self.busy),
            queue: coarser(&self.queue),
            jobs: Jobs {
                number: of_kept(&jobs.number),
                submit: of_kept(&jobs.submit),
                state: of_kept(&jobs.state),
                wait: of_kept(&jobs.wait),
                run: of_kept(&jobs.run),
                nodes: of_kept(&jobs.nodes),
                cap: of_kept(&jobs.cap),
                slowdown: of_kept(&jobs.slowdown),
            },
            bars: Bars {
                job: of_kept_bars(&bars.job)
                    .values()
                    .iter()
                    .map(|job| places[*job as usize])
                    .collect(),
                late: of_kept_bars(&bars.late),
                early: of_kept_bars(&bars.early),
                lane: of_kept_bars(&bars.lane),
                lanes: of_kept_bars(&bars.lanes),
            },
            rest: Some(tiles.rest(dropped + self.rest.as_ref().map_or(0, |rest| rest.jobs))),
            summary: self.summary.clone(),
            budget: self.budget.clone(),
            variant: self.variant.clone(),
            start: self.start.clone(),
            waits: self.waits.clone(),
            slowdowns: self.slowdowns.clone(),
            waits_by: self.waits_by.clone(),
            begin: *begin,
            end: *end,
        }
    }
}
