//! A policy of one's own, beside EASY on the built-in workload: the shortest job that fits first.

use busbar::machine::Machine;
use busbar::metrics::wait;
use busbar::policy::{Decision, Easy, Policy, Room, View};
use busbar::sim::Simulation;
use busbar::workload::demo::demo;

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (workload, machine) = (demo(), Machine::of_processors(256)?);
    let policies: [(&str, &mut dyn Policy); 2] =
        [("easy", &mut Easy::default()), ("shortest first", &mut ShortestFirst)];
    for (name, policy) in policies {
        let run = Simulation::new(&machine, &workload).run(policy);
        let waits = workload.jobs().iter().zip(&run.records).map(|(job, record)| wait(job, record));
        let mean = waits.map(|wait| wait.secs_f64()).sum::<f64>() / run.records.len() as f64;
        println!("{name:>14}: mean wait {:.1} h", mean / 3600.0);
    }
    Ok(())
}
