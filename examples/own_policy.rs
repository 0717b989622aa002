//! The program with one policy more: the shortest job that fits first.
//!
//! ```text
//! cargo run --release --example own_policy -- compare --policy easy,shortest-first --budget 60%
//! ```

use std::process::ExitCode;

use busbar::policy::{BuildContext, Decision, Policy, PolicyKind, PolicySpec, Room, View};

#[derive(Clone, Debug)]
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

/// What is not said here is as usual: it starts jobs as they were asked for, and believes that nodes draw what they are
/// rated at.
impl PolicyKind for ShortestFirst {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn about(&self) -> &str {
        "the shortest job that fits first"
    }

    fn usual(&self) -> Self {
        ShortestFirst
    }

    fn build(&self, _: &BuildContext<'_>) -> Box<dyn Policy> {
        Box::new(ShortestFirst)
    }
}

fn main() -> ExitCode {
    busbar::cli::main_with(&[PolicySpec::of(ShortestFirst)])
}
