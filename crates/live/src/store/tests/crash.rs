//! Killed with -9 while it commits: a batch is there as a whole or not at all, and what was said to be
//! written is.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::super::{Query, Store, StoreError};
use super::{over, submission, waiting};
use crate::job::EventKind;
use busbar_core::units::Instant;

/// Names the folder to the process that is going to be killed.
const FOLDER: &str = "BUSBAR_TEST_STORE";

/// Jobs in a batch.
const SIZE: u64 = 20;

/// What the process does that is going to be killed; nothing in an ordinary run of the tests. It goes on
/// where the one before it was stopped, and says after each batch how many jobs are written.
#[test]
fn commits_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let mut store = Store::open(Path::new(&folder)).unwrap();
    let mut output = std::io::stdout();
    loop {
        let first = store.load().unwrap().next;
        let mut batch = submission(first..first + SIZE);
        // The jobs of the batch before end in this one.
        if first > SIZE {
            let ended = first - SIZE..first;
            let end = Instant::from_millis(first);
            batch.changed = ended.map(|number| over(&waiting(number), end)).collect();
        }
        store.commit(&batch).unwrap();
        // On a line of its own, whatever the test harness has printed.
        writeln!(output, "\nwritten {}", first + SIZE - 1).unwrap();
    }
}

/// Starts that process.
fn start(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::crash::commits_until_it_is_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_batch_is_there_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Pcg64Mcg::seed_from_u64(9);
    let mut last = 0;
    for round in 0..12 {
        let mut child = start(folder.path());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        // It is at work when it has written something.
        let begun = lines.by_ref().find(|line| line.starts_with("written "));
        assert!(begun.is_some(), "round {round}");
        if round == 0 {
            let error = Store::open(folder.path()).unwrap_err();
            let who = child.id();
            assert!(
                matches!(error, StoreError::InUse { process: Some(process), .. } if process == who),
                "{error}"
            );
        }
        std::thread::sleep(Duration::from_micros(random.random_range(0..20_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let said = begun.into_iter().chain(lines).filter_map(|line| {
            line.strip_prefix("written ").and_then(|number| number.parse::<u64>().ok())
        });
        let said = said.max().unwrap();
        assert!(said > last, "round {round}");

        let store = Store::open(folder.path()).unwrap();
        let saved = store.load().unwrap();
        let written = saved.next - 1;
        // One batch may be written of which it could not say so any more.
        assert!(written == said || written == said + SIZE, "{written} are there, {said} were said");
        let waiting: Vec<u64> = saved.jobs.iter().map(|entry| entry.number).collect();
        assert_eq!(waiting, Vec::from_iter(written - SIZE + 1..=written));
        let history = store.history(Query { limit: u32::MAX, ..Query::default() }).unwrap();
        assert_eq!(history.len() as u64, written);
        for line in history {
            let submitted = EventKind::Submitted { job: line.line, element: None };
            assert_eq!(line.event.kind, submitted);
        }
        last = written;
    }
}
