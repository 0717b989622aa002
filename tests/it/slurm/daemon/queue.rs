//! A long queue: what a control cycle costs.

use std::time::{Duration, Instant};

use super::is_in_full;
use super::served::{Served, jobs};

/// Jobs that wait cost little: with BUSBAR_SLURM=1 those of 256 nodes with 5000 jobs in the queue.
#[test]
fn a_long_queue_costs_little() {
    let (nodes, count) = if is_in_full() { (256, 5000) } else { (8, 300) };
    let Some(mut served) = Served::idle(nodes, "steer", "share", &[]) else { return };
    served.submit(&jobs(count, 5));
    served.begin();
    let begun = Instant::now();
    served.wait_for(Duration::from_secs(300), "all jobs", || {
        let status = served.status();
        (status.waiting + status.running + served.ended() >= count as usize).then_some(())
    });
    println!("{count} jobs were taken in within {:.1} s", begun.elapsed().as_secs_f64());
    // From here on jobs start and end while the others wait.
    std::thread::sleep(Duration::from_secs(20));
    let status = served.status();
    let pace = status.engine_pace.unwrap();
    let ms = |micros: u64| micros as f64 / 1000.0;
    println!(
        "{nodes} nodes, {} jobs run and {} wait: longest cycle {:.1} ms; longest look {:.0} ms, {:.1} ms of them in Busbar; \
         longest acts {:.0} ms, {:.1} ms of them in Busbar",
        status.running,
        status.waiting,
        ms(status.longest_cycle),
        ms(pace.longest_look),
        ms(pace.longest_own_look),
        ms(pace.longest_act),
        ms(pace.longest_own_act)
    );
    assert!(pace.looks > 5 && served.ended() > 0, "{status:?}\n{}", served.log());
    // A loose bound, since this is built without optimisation, and the machine may be busy.
    let own = [status.longest_cycle, pace.longest_own_look, pace.longest_own_act];
    assert!(own.iter().all(|micros| ms(*micros) < 2000.0), "{own:?}");
}
