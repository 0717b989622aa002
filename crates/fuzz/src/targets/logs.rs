//! Logs and records of batch systems.

use std::io::Write;

use busbar::workload::records::{Format, Importer, Options, SubmitLine};
use busbar::workload::swf::{self, BadRecords, SwfError};

use super::told;
use crate::engine::Place;
use crate::examples::{files, quoted, texts};

pub(super) fn swf_examples() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd"], &[".swf"]);
    all.extend(quoted(&["crates/workloads/src/swf/tests.rs"]));
    all
}

pub(super) fn swf_log(_: &Place, input: &[u8]) -> String {
    let strict = swf::read(input, "log.swf", BadRecords::Stop);
    let lenient = swf::read(input, "log.swf", BadRecords::Skip);
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
    // What is read can be written, and is then read the same.
    let records: Vec<_> =
        swf::records(input, "log.swf", BadRecords::Skip).filter_map(Result::ok).collect();
    let mut written = Vec::new();
    swf::write(&mut written, ["from the fuzzer"], records.iter().copied())
        .expect("memory can be written to");
    let again: Result<Vec<_>, _> = swf::records(&written, "log.swf", BadRecords::Stop).collect();
    assert_eq!(again.expect("what was written is sound"), records);
    told(strict)
}

pub(super) fn packed_examples() -> Vec<Vec<u8>> {
    let pack = |log: Vec<u8>| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&log).expect("memory can be written to");
        packed.finish().expect("memory can be written to")
    };
    files(&["tests/cmd"], &[".swf"]).into_iter().map(pack).collect()
}

pub(super) fn packed_log(place: &Place, input: &[u8]) -> String {
    told(swf::read_path(place.file("log.swf.gz", input), BadRecords::Skip))
}

pub(super) fn submit_lines() -> Vec<Vec<u8>> {
    quoted(&[
        "crates/workloads/src/records/submit_line.rs",
        "crates/core/src/structure/dependency.rs",
    ])
}

pub(super) fn submit_line(_: &Place, input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let said = SubmitLine::read(&text);
    let written = said.needs.to_string();
    assert_eq!(written.parse().as_ref(), Ok(&said.needs), "{written}");
    told(text.parse::<busbar::structure::Needs>().map(|needs| (said, needs)))
}

pub(super) fn import(format: Format, input: &[u8]) -> String {
    let mut answer = String::new();
    for is_strict in [false, true] {
        let options = Options { format: Some(format), is_strict, ..Options::default() };
        let mut importer = Importer::new(options).expect("UTC is a time zone");
        let read = importer.read(input, "records");
        let imported = match read {
            Ok(()) => importer.finish(),
            Err(error) => Err(error),
        };
        if let Ok(imported) = &imported {
            let intake = imported.intake();
            assert_eq!(intake.records, intake.usable + intake.steps + intake.skipped());
            let mut log = Vec::new();
            swf::write(
                &mut log,
                imported.comments(None).iter().map(String::as_str),
                imported.records(),
            )
            .expect("memory can be written to");
            let again: Result<Vec<_>, _> =
                swf::records(&log, "log.swf", BadRecords::Stop).collect();
            again.expect("what was imported is a log");
        }
        answer += &told(imported);
    }
    answer
}

pub(super) fn sacct_examples() -> Vec<Vec<u8>> {
    let mut all =
        files(&["crates/workloads/src/records/sacct/json/samples", "examples"], &[".txt"]);
    all.extend(quoted(&["crates/workloads/src/records/tests.rs"]));
    all
}

pub(super) fn sacct_json_examples() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/workloads/src/records/sacct/json/samples"], &[".json"]);
    all.push(br#"{"jobs":[{"job_id":7,"name":"a","user":"u","account":"x","partition":"p","nodes":"n[1-2]","state":{"current":["COMPLETED"]},"time":{"submission":1710504000,"start":1710504060,"end":1710504660,"elapsed":600,"limit":{"set":true,"number":60}},"tres":{"allocated":[{"type":"cpu","count":8},{"type":"node","count":2}],"requested":[]},"steps":[]}],"errors":[]}"#.to_vec());
    all
}

pub(super) fn pbs_examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "03/15/2024 12:00:00;E;101.server;user=alice group=users jobname=a queue=batch ctime=1710504000 qtime=1710504000 \
         etime=1710504000 start=1710504060 exec_host=n1/0*4+n2/0*4 Resource_List.ncpus=8 Resource_List.nodect=2 \
         Resource_List.walltime=01:00:00 session=1 end=1710504660 Exit_status=0 resources_used.cput=00:10:00 \
         resources_used.walltime=00:10:00\n",
        "03/15/2024 12:00:00;Q;102.server;queue=batch\n03/15/2024 12:01:00;D;102.server;requestor=alice@host\n",
    ]);
    all.extend(quoted(&["crates/workloads/src/records/tests.rs"]));
    all
}

pub(super) fn lsf_examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\"JOB_FINISH\" \"10.1\" 1710504660 101 1001 33554438 4 1710504000 0 0 1710504060 \"alice\" \"batch\" \"span[hosts=1]\" \"\" \"\" \
         \"host\" \"/home\" \"\" \"out\" \"\" \"1710504000.101\" 0 1 \"n1\" 64 100.0 \"a\" \"sleep 600\" 0.1 0.2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
         0 0 \"\" \"default\" 0 4 \"\" \"\" 0 0 0 \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" -1 \"\" \"\" \"\" \"\" -1 \"\" \"\" 5136 \"\" 1710504000 \"\" \"\" 0\n",
    ]);
    all.extend(quoted(&["crates/workloads/src/records/tests.rs"]));
    all
}

pub(super) fn tables_of_jobs() -> Vec<Vec<u8>> {
    quoted(&["crates/workloads/src/records/tests.rs", "crates/workloads/src/records/dataset.rs"])
}
