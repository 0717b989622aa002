//! The schedule as a picture: jobs as rectangles, or, where there are too many, the tiles they cover.

use super::frame::{Frame, Scale};
use super::{clock, empty, span};
use crate::report::digest::Digest;

/// Colours by how long jobs waited: up to this many seconds, and in words.
const CLASSES: [(u64, &str, &str); 6] = [
    (1, "no wait", "#c6dbef"),
    (600, "up to 10 min", "#7fb8da"),
    (3600, "1 h", "#3d8dc4"),
    (21_600, "6 h", "#f2b04c"),
    (86_400, "1 day", "#e0712c"),
    (u64::MAX, "more", "#a63603"),
];
/// With more rectangles than this a picture is made of tiles.
const MOST_RECTANGLES: usize = 20_000;
/// Tiles across and up.
const TILES: (usize, usize) = (400, 120);

/// A rectangle: from when until when, in milliseconds, on which lanes, in which class.
struct Rectangle {
    from: u64,
    until: u64,
    lane: u64,
    lanes: u64,
    class: usize,
}

pub(super) fn schedule(digest: &Digest) -> String {
    let title = format!("Schedule under {}", digest.summary.policy);
    let rectangles = rectangles(digest);
    if rectangles.is_empty() {
        return empty(&title, "No job ran.");
    }
    let runs = std::slice::from_ref(digest);
    let (clock, time) = clock(runs);
    let nodes = f64::from(digest.summary.nodes);
    let up = ("nodes", Scale::even(0.0, nodes));
    let mut frame = Frame::new(&title, 560.0, (&*time, span(runs, clock)), up);
    let is_tiled = rectangles.len() > MOST_RECTANGLES;
    let shown = match is_tiled {
        true => tiles(&rectangles, digest.begin, digest.end, u64::from(digest.summary.nodes)),
        false => rectangles,
    };
    for rectangle in &shown {
        let Rectangle { from, until, lane, lanes, class } = *rectangle;
        let (left, right) = (frame.x(from as f64 / clock), frame.x(until as f64 / clock));
        let (bottom, top) = (frame.y(lane as f64), frame.y((lane + lanes) as f64));
        // Jobs of one colour are told apart where there is room for a gap; tiles are not.
        let gap = |length: f64| if length > 3.0 && !is_tiled { length - 0.5 } else { length };
        let size = (gap(right - left), gap(bottom - top));
        frame.svg.rectangle((left, top), size, CLASSES[class].2);
    }
    frame.key(&CLASSES.map(|(_, words, colour)| (words, colour)));
    frame.svg.finish(&title)
}

fn rectangles(digest: &Digest) -> Vec<Rectangle> {
    let (jobs, bars) = (&digest.jobs, &digest.bars);
    let rectangle = |at: usize| {
        let job = bars.job.values()[at] as usize;
        let wait = jobs.wait.values()[job];
        let start = jobs.submit.values()[job] + wait;
        let class = CLASSES.iter().position(|(most, ..)| wait / 1000 <= *most);
        Rectangle {
            from: start + bars.late.values()[at],
            until: start + jobs.run.values()[job] - bars.early.values()[at],
            lane: bars.lane.values()[at],
            lanes: bars.lanes.values()[at],
            class: class.unwrap_or(CLASSES.len() - 1),
        }
    };
    (0..bars.job.values().len()).map(rectangle).collect()
}

/// Tiles of equal size, each in the class that covers most of it, where at least half of it is
/// covered. Neighbours of one class are joined.
fn tiles(rectangles: &[Rectangle], begin: u64, end: u64, nodes: u64) -> Vec<Rectangle> {
    let (across, up) = TILES;
    let width = (end - begin).div_ceil(across as u64).max(1);
    let height = nodes.div_ceil(up as u64).max(1);
    let mut covered = vec![[0u128; CLASSES.len()]; across * up];
    for rectangle in rectangles {
        let Rectangle { from, until, lane, lanes, class } = *rectangle;
        for column in (from - begin) / width..(until - begin).div_ceil(width) {
            let left = begin + column * width;
            let time = until.min(left.saturating_add(width)) - from.max(left);
            for row in lane / height..(lane + lanes).div_ceil(height) {
                let low = row * height;
                let high = (lane + lanes).min(low + height) - lane.max(low);
                if let Some(tile) = covered.get_mut(row as usize * across + column as usize) {
                    tile[class] += u128::from(time) * u128::from(high);
                }
            }
        }
    }
    let half = u128::from(width) * u128::from(height) / 2;
    let class_of = |tile: &[u128; CLASSES.len()]| {
        let whole: u128 = tile.iter().sum();
        let most = (0..tile.len()).max_by_key(|class| tile[*class])?;
        (whole >= half && whole > 0).then_some(most)
    };
    let mut joined: Vec<Rectangle> = Vec::new();
    for (row, tiles) in covered.chunks(across).enumerate() {
        let lane = row as u64 * height;
        if lane >= nodes {
            break;
        }
        let lanes = height.min(nodes - lane);
        let mut open: Option<Rectangle> = None;
        for (column, tile) in tiles.iter().enumerate() {
            let from = begin + column as u64 * width;
            let until = from.saturating_add(width).min(end);
            let class = class_of(tile);
            match (&mut open, class) {
                (Some(last), Some(class)) if last.class == class => last.until = until,
                (_, class) => {
                    joined.extend(open.take());
                    open = class.map(|class| Rectangle { from, until, lane, lanes, class });
                }
            }
        }
        joined.extend(open);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rectangle(from: u64, until: u64, lane: u64, lanes: u64, class: usize) -> Rectangle {
        Rectangle { from, until, lane, lanes, class }
    }

    /// 400 columns of 10 ms, 120 rows of 2 lanes. The first rectangle covers row 0 in columns 0 and 1
    /// and half of column 2; the second, half of row 1 in column 0; the third a quarter of row 2.
    #[test]
    fn tiles_by_hand() {
        let rectangles = [
            rectangle(0, 25, 0, 2, 3),
            rectangle(0, 10, 2, 1, 1),
            rectangle(0, 5, 4, 1, 1),
            rectangle(3990, 4000, 238, 2, 5),
        ];
        let tiles = tiles(&rectangles, 0, 4000, 240);
        let seen: Vec<_> =
            tiles.iter().map(|t| (t.from, t.until, t.lane, t.lanes, t.class)).collect();
        assert_eq!(seen, [(0, 30, 0, 2, 3), (0, 10, 2, 2, 1), (3990, 4000, 238, 2, 5)]);
    }
}
