//! Every target for some seconds: a number of runs that is the same on every machine, with the same inputs.

use std::sync::Mutex;

use busbar_fuzz::engine::run;
use busbar_fuzz::targets::TARGETS;

const RUNS: u64 = 2000;

#[test]
fn every_parser_reads_or_refuses_what_it_gets() {
    let (waiting, faults) = (Mutex::new(TARGETS.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some(target) = waiting.lock().unwrap().next() else { return };
                    let found = run(target, 1, |runs| runs < RUNS, |_| ());
                    let fault = match found.fault {
                        Some((why, input)) => {
                            format!("{why}: {:?}", String::from_utf8_lossy(&input))
                        }
                        // A target whose examples nobody understands tries nothing.
                        None if found.answers <= 3 => format!("{} answers", found.answers),
                        None => continue,
                    };
                    faults.lock().unwrap().push(format!("{}: {fault}", target.name));
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
