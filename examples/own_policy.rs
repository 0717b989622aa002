//! The program with one policy more: the shortest job that fits first.
//!
//! ```text
//! cargo run --release --example own_policy -- compare --policy easy,shortest-first --budget 60%
//! ```

use std::process::ExitCode;

use busbar::freedom::Freedoms;
use busbar::policy::{Decision, Own, Policy, Published, Room, View};

struct ShortestFirst;

impl Policy for ShortestFirst {
    fn decide(&mut self, view: &View<'_>, decisions: &mut Vec<Decision>) {
        let mut room = Room::of(view);
        let mut waiting: Vec<_> = view.queue.iter().collect();
        waiting.sort_by_key(|job| (view.job(*job).requested, *job));
        for job in waiting {
            let point = view.nominal(job);
            if room.admits(&point) {
                room.take(&point);
                decisions.push(Decision::Start { job, point });
            }
        }
    }
}

/// It starts jobs as they were asked for, and believes that nodes draw what they are rated at.
static SHORTEST_FIRST: Own = Own {
    name: "shortest-first",
    wants: Freedoms::NONE,
    needs: Freedoms::NONE,
    believes: Published::Rated,
    is_fixed: true,
    build: &|_| Box::new(ShortestFirst),
};

fn main() -> ExitCode {
    busbar::cli::main_with(&[&SHORTEST_FIRST])
}
