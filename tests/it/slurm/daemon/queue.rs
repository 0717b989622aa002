//! A long queue: jobs start and end beside it. What a control cycle costs then is printed. And arrays, whose elements wait
//! as one entry.

use std::time::Instant;

use busbar_needs::needs;

use super::is_in_full;
use super::served::{Served, jobs};

/// With BUSBAR_SLURM=1 there are 256 nodes and 5000 jobs in the queue.
#[needs(slurm)]
#[test]
fn jobs_start_and_end_beside_a_long_queue() {
    let (nodes, count) = if is_in_full() { (256, 5000) } else { (8, 300) };
    let mut served = Served::idle(nodes, "steer", "share", &[]);
    served.submit(&jobs(count, 5));
    served.begin();
    let begun = Instant::now();
    served.wait("all jobs", || {
        let status = served.status();
        (status.waiting + status.running + served.ended() >= count as usize).then_some(())
    });
    println!("{count} jobs were taken in within {:.1} s", begun.elapsed().as_secs_f64());
    // From here on jobs start and end while the others wait.
    let (looks, ended) = (served.looks(), served.ended());
    served.wait("more looks and ends", || {
        (served.looks() > looks + 5 && served.ended() > ended).then_some(())
    });
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
}

/// On nodes for all of them at once, more elements are started together than jobs are read one by one: each runs, once, and
/// nothing is reported as missing. Tried with Slurm 22.05.
#[needs(slurm)]
#[test]
fn every_element_of_an_array_runs() {
    const ELEMENTS: usize = 40;
    let mut served = Served::idle(16, "steer", "easy-power", &[]);
    let record = served.running.place().join("record");
    let script = format!(
        "echo $SLURM_JOB_ID begins \"$SLURM_JOB_NODELIST\" >> {record}; sleep 0.3
         echo $SLURM_JOB_ID ends >> {record}",
        record = record.display()
    );
    served.running.submit(&["-N1", "-t5", "--array=1-40", "--wrap", &script], None);
    served.begin();
    served.wait("all elements", || (served.ended() >= ELEMENTS).then_some(()));
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    assert_eq!(served.ended(), ELEMENTS);
    let log = served.log();
    assert!(!log.contains("Slurm has no such job"), "{log}");
}
