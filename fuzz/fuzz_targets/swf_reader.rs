//! Feeds bytes to the log reader, in both modes: it must read or refuse them, account for every
//! record, and never panic.
//!
//! Run with `cargo +nightly fuzz run swf_reader`.

#![no_main]

use busbar::workload::swf::{self, BadRecords, SwfError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let strict = swf::read(bytes, "log.swf", BadRecords::Stop);
    let lenient = swf::read(bytes, "log.swf", BadRecords::Skip);

    let intake = match &lenient {
        Ok(log) => {
            assert_eq!(log.workload.jobs().len() as u64, log.intake.usable);
            &log.intake
        }
        Err(SwfError::NothingUsable { intake, .. }) => intake,
        Err(error) => panic!("skipping bad records must not fail with: {error}"),
    };
    assert_eq!(intake.records, intake.usable + intake.skipped());

    match &strict {
        Ok(log) => assert_eq!(&log.intake, intake),
        Err(SwfError::Malformed { .. }) => assert!(intake.skipped_malformed > 0),
        Err(_) => assert_eq!(intake.usable, 0),
    }
    if let Err(error) = &strict {
        assert!(!error.to_string().is_empty());
    }

    // What is read can be written, and is then read the same.
    let records: Vec<_> =
        swf::records(bytes, "log.swf", BadRecords::Skip).filter_map(Result::ok).collect();
    let mut written = Vec::new();
    swf::write(&mut written, ["from the fuzzer"], records.iter().copied())
        .expect("memory can be written to");
    let again: Result<Vec<_>, _> = swf::records(&written, "log.swf", BadRecords::Stop).collect();
    assert_eq!(again.expect("what was written is sound"), records);
});
