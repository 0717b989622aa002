//! Watts shared among 10 000 nodes below four levels of feeds: `cargo bench --bench feeds`.
//!
//! Each node has a least power, and eight steps up to its most, each worth less than the one before it. Above every 20 nodes is a
//! rack, above ten racks a row, above ten rows a hall, and above the five halls the site. Every feed carries 60 to 95 % of what is
//! below it, so that some bind on each level. What is timed is `solve::feeds::share`, from the input to what each node gets, 200 times
//! for each of ten machines. The bound is worked out from the prices of the feeds, which prove how good the answer is: it is that of the
//! linear program's dual, so a gap of 0 is the optimum.

use std::time::Instant;

use busbar::solve::feeds::{Consumer, Line, Step, bound, prices, share, worth};
use busbar::units::{Share, Watts};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

const NODES: usize = 10_000;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    println!("\n## Watts below feeds\n");
    println!("| machine | feeds | bound | worth, gap to the bound | median ms | worst ms |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for seed in 1..=10 {
        let (lines, nodes) = machine(seed);
        let mut times = Vec::new();
        let mut shares = Vec::new();
        for _ in 0..if quick { 20 } else { 200 } {
            let begin = Instant::now();
            shares = share(&lines, &nodes).expect("feeds carry what nodes draw at least");
            times.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let prices = prices(&lines, &nodes, &shares);
        let (ours, most) = (worth(&nodes, &shares), bound(&lines, &nodes, &prices));
        let binding = prices.iter().filter(|price| **price > 0).count();
        let gap = (most - ours) as f64 / most as f64 * 100.0;
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        println!(
            "| {seed} | {} | {binding} | {gap:.4} % | {median:.2} | {worst:.2} |",
            lines.len()
        );
    }
}

/// A site, halls, rows and racks, and their nodes.
fn machine(seed: u64) -> (Vec<Line>, Vec<Consumer>) {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let nodes = (0..NODES).map(|node| {
        let mut worths: Vec<u64> = (0..8).map(|_| numbers.random_range(1..1_000_000)).collect();
        worths.sort_unstable_by(|one, other| other.cmp(one));
        let step = |worth| Step {
            power: Watts::from_milliwatts(numbers.random_range(10_000..60_000)),
            worth,
        };
        let steps = worths.into_iter().map(step).collect();
        Consumer {
            feed: 1 + 5 + 50 + node / 20,
            least: Watts::from_watts(numbers.random_range(60..100)),
            steps,
        }
    });
    let nodes: Vec<Consumer> = nodes.collect();
    let levels = [1, 5, 50, 500];
    let mut lines: Vec<Line> = Vec::new();
    for (level, count) in levels.into_iter().enumerate() {
        let (first, before) = (lines.len(), level.checked_sub(1).map(|before| levels[before]));
        for place in 0..count {
            let above = before.map(|before| first - before + place * before / count);
            lines.push(Line { limit: Watts::ZERO, above });
        }
    }
    for node in &nodes {
        let most: Watts = node.steps.iter().map(|step| step.power).sum::<Watts>() + node.least;
        let mut above = Some(node.feed);
        while let Some(feed) = above {
            lines[feed].limit += most;
            above = lines[feed].above;
        }
    }
    for (place, line) in lines.iter_mut().enumerate() {
        // Racks are tightest by themselves, the site on the average.
        let least = if place < 56 { 60 } else { 70 };
        line.limit = Share::percent(numbers.random_range(least..95)).of(line.limit);
    }
    (lines, nodes)
}
