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
                    if let Some((why, input)) = found.fault {
                        let input = String::from_utf8_lossy(&input).into_owned();
                        faults.lock().unwrap().push(format!("{}: {why}: {input:?}", target.name));
                        continue;
                    }
                    assert_eq!(found.runs, RUNS);
                    // A target whose examples nobody understands would try nothing.
                    assert!(found.answers > 3, "{}: {} answers", target.name, found.answers);
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
