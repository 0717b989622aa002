//! A thousand jobs at once, and what that costs a daemon. On request, as it says how long things take:
//!
//! `cargo test --test it local::load -- --ignored --nocapture`

use super::*;

const JOBS: u64 = 1000;

/// Says how long something takes a job.
fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = act();
    let took = began.elapsed();
    let each = took.as_secs_f64() * 1e6 / JOBS as f64;
    println!("{what}: {:.0} ms, {each:.0} us a job", took.as_secs_f64() * 1e3);
    result
}

/// Proportional memory of this place's processes with this name, in kilobytes for each.
fn memory(place: &Place, name: &str) -> u64 {
    let sizes: Vec<u64> = place
        .processes()
        .iter()
        .filter_map(|number| {
            let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
            let is_meant = command.split(|byte| *byte == 0).nth(1) == Some(name.as_bytes());
            let rollup = fs::read_to_string(format!("/proc/{number}/smaps_rollup")).ok()?;
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            is_meant.then(|| line.trim().trim_end_matches(" kB").parse().unwrap())
        })
        .collect();
    assert!(!sizes.is_empty(), "there are some");
    sizes.iter().sum::<u64>() / sizes.len() as u64
}

/// Descriptors of this process.
fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
#[ignore = "says how long things take, which is of no use beside other tests"]
fn a_thousand_jobs() {
    let place = Place::new();
    let mut engine = place.engine_on(vec![vec![0], vec![1]]);
    let before = descriptors();
    let jobs: Vec<Launch> = (1..=JOBS).map(|job| place.command(job, &["sleep", "3600"])).collect();
    timed("start", || {
        for job in &jobs {
            engine.start(job).unwrap();
        }
    });
    timed("until all run, after that", || {
        let last = |job| place.attempt(job).join("started.json").exists();
        until("all run", || jobs.iter().all(last));
    });
    assert!(descriptors() <= before + 5, "none is kept for a job");
    println!("memory: {} kB a warden", memory(&place, "warden"));
    timed("ask who has ended", || assert_eq!(engine.ended(), []));
    timed("change speeds", || {
        for job in &jobs {
            engine.set(job.attempt, &on(&[0], 500_000), Span::ZERO).unwrap();
        }
    });
    timed("change nodes, and meet everybody", || {
        for job in &jobs {
            engine.set(job.attempt, &on(&[1], 500_000), Span::ZERO).unwrap();
        }
        meet_everybody(&mut engine);
    });
    timed("suspend, and meet everybody", || {
        for job in &jobs {
            engine.signal(job.attempt, Signal::Suspend).unwrap();
        }
        meet_everybody(&mut engine);
    });
    timed("one look at all processes", || {
        engine.signal(jobs[0].attempt, Signal::Suspend).unwrap();
        assert_eq!(engine.ended(), []);
    });

    // Another daemon comes.
    std::mem::forget(engine);
    let mut engine = place.engine_on(vec![vec![0], vec![1]]);
    timed("find", || {
        for job in &jobs {
            assert_eq!(engine.find(job.attempt).unwrap(), busbar::live::engine::Found::Running);
        }
    });
    timed("ask who has ended, of jobs that were found", || assert_eq!(engine.ended(), []));
    timed("kill, until all have ended", || {
        for job in &jobs {
            engine.signal(job.attempt, Signal::Kill).unwrap();
        }
        let mut ended = Vec::new();
        until("all ends", || {
            ended.extend(engine.ended());
            ended.len() as u64 >= JOBS
        });
        assert!(ended.iter().all(|(_, end)| *end == End::Signalled(9)));
    });
    timed("forget", || {
        for job in &jobs {
            engine.forget(job.attempt);
        }
    });
    timed("until they are removed, after that", || drop(engine));
    assert_eq!(fs::read_dir(place.path("jobs")).unwrap().count(), 0);
    place.assert_nobody_is_left();
}
