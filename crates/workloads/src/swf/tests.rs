use std::error::Error;
use std::io::{self, Write};
use std::num::NonZeroU32;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::clean::cleaned;
use super::reader::Scan;
use super::*;
use busbar_core::job::{ApplicationId, Entry, GroupId, Job, UserId};
use busbar_core::units::{Instant, JobId, Span};
use busbar_core::workload::Workload;

/// A record in which every field is sound; tests change one of them.
const SOUND: [&str; 18] = [
    "7", "100", "5", "60", "4", "50", "1024", "8", "3600", "2048", "1", "3", "2", "9", "1", "1",
    "-1", "-1",
];

/// A line with these fields, given by their number, changed.
fn line_with(changes: &[(usize, &str)]) -> String {
    let mut fields = SOUND;
    for &(field, text) in changes {
        fields[field - 1] = text;
    }
    fields.join(" ") + "\n"
}

fn read_text(text: impl AsRef<[u8]>) -> Result<Log, SwfError> {
    read(text.as_ref(), "folder/some.swf", BadRecords::Stop)
}

/// The header of a log with these comments and a job.
fn header_of(comments: impl AsRef<[u8]>) -> Header {
    read_text([comments.as_ref(), b"\n", line_with(&[]).as_bytes()].concat()).unwrap().header
}

fn skip_text(text: impl AsRef<[u8]>) -> Result<Log, SwfError> {
    read(text.as_ref(), "folder/some.swf", BadRecords::Skip)
}

fn only_job(text: impl AsRef<[u8]>) -> (Job, Span) {
    let log = read_text(text).unwrap();
    assert_eq!(log.workload.jobs().len(), 1);
    (log.workload.jobs()[0], log.workload.run_times()[0])
}

fn user(number: u32) -> Option<UserId> {
    NonZeroU32::new(number).map(UserId)
}

fn application(number: u32) -> Option<ApplicationId> {
    NonZeroU32::new(number).map(ApplicationId)
}

fn sound_job() -> (Job, Span) {
    let asked = Job::new(7, Instant::from_secs(100), 8, Span::from_secs(3600));
    let group = NonZeroU32::new(2).map(GroupId);
    let entry = Entry { queue: 1, partition: 1 };
    let job = Job { user: user(3), group, application: application(9), entry, ..asked };
    (job, Span::from_secs(60))
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// The preceding job and the think time.
#[test]
fn a_job_follows_another() {
    let text = line_with(&[]) + &line_with(&[(1, "8"), (17, "7"), (18, "120")]);
    let workload = read_text(text).unwrap().workload;
    let of = |place| workload.structures().of(JobId(place)).map(|known| known.needs.to_string());
    assert_eq!((of(0), of(1)), (None, Some("afterany:7+2".to_owned())));
    assert!(read_text(line_with(&[])).unwrap().workload.structures().is_empty());
}

#[test]
fn a_record_becomes_a_job() {
    let log = read_text(line_with(&[])).unwrap();
    assert_eq!(log.workload.name(), "some");
    assert_eq!(log.workload.processors(), None);
    assert_eq!(log.intake, Intake { records: 1, usable: 1, ..Intake::default() });
    assert_eq!(only_job(line_with(&[])), sound_job());
}

#[test]
fn layout_does_not_matter() {
    let fields = SOUND.join(" ");
    let tabs = SOUND.join("\t");
    let padded = SOUND.join("             ");
    for text in [
        fields.clone(),
        format!("{fields}\r\n"),
        format!("{fields}\r"),
        format!(" \t {fields} \t \r\n"),
        format!("{tabs}\n"),
        format!("{padded}\n"),
        format!("\u{FEFF}{fields}\n"),
        format!("\u{FEFF}; a comment\r\n{fields}\r\n"),
        format!("\n\r\n  \t\n{fields}\n\n   "),
        format!(";\n;comment\n  ; MaxProcs: 4\n# another\n\t#\n{fields}\n; the end"),
        format!("; not text: \u{0}\n{fields}"),
    ] {
        assert_eq!(only_job(&text), sound_job(), "{text:?}");
    }
    assert_eq!(only_job([b"; \xFF\xFE\n", fields.as_bytes()].concat()), sound_job());
}

#[test]
fn size_falls_back_to_allocated_processors() {
    for missing in ["-1", "0", "-7"] {
        let log = read_text(line_with(&[(8, missing)])).unwrap();
        assert_eq!(log.workload.jobs()[0].nodes, 4);
        assert_eq!((log.intake.usable, log.intake.size_from_allocated), (1, 1));
    }
}

#[test]
fn requested_time_falls_back_to_run_time() {
    for missing in ["-1", "0", "-3600"] {
        let log = read_text(line_with(&[(9, missing)])).unwrap();
        assert_eq!(log.workload.jobs()[0].requested, Span::from_secs(60));
        assert_eq!((log.intake.usable, log.intake.estimate_from_run_time), (1, 1));
    }
    // A requested time below the run time is the log's business.
    let (job, run_time) = only_job(line_with(&[(9, "1")]));
    assert_eq!((job.requested, run_time), (Span::from_secs(1), Span::from_secs(60)));
}

#[test]
fn unusable_records_are_counted_once_each() {
    let text = [
        line_with(&[]),
        line_with(&[(5, "-1"), (8, "-1")]),
        line_with(&[(5, "0"), (8, "0"), (4, "-1"), (2, "-1")]),
        line_with(&[(4, "-1")]),
        line_with(&[(4, "-2"), (2, "-1")]),
        line_with(&[(2, "-1")]),
        line_with(&[(4, "0")]),
    ]
    .concat();
    let log = read_text(&text).unwrap();
    let expected = Intake {
        records: 7,
        usable: 2,
        skipped_no_size: 2,
        skipped_no_run_time: 2,
        skipped_no_submit: 1,
        // All of them are job 1.
        repeated_numbers: 1,
        ..Intake::default()
    };
    assert_eq!(log.intake, expected);
    assert_eq!(log.intake.skipped(), 5);
    assert_eq!(log.workload.run_times()[1], Span::ZERO);
}

#[test]
fn unknown_users_and_applications_are_none() {
    for missing in ["-1", "0"] {
        let (job, _) = only_job(line_with(&[(12, missing), (14, missing)]));
        assert_eq!((job.user, job.application), (None, None));
    }
}

#[test]
fn a_job_without_a_number_gets_its_place() {
    let text = [line_with(&[(1, "0")]), line_with(&[(4, "-1")]), line_with(&[(1, "-1")])].concat();
    let log = read_text(text).unwrap();
    let numbers: Vec<u64> = log.workload.jobs().iter().map(|job| job.number).collect();
    assert_eq!(numbers, [0, 3]);
}

#[test]
fn records_are_put_in_submit_order() {
    let text: String = [("1", "50"), ("2", "10"), ("3", "50"), ("4", "49"), ("5", "60")]
        .map(|(number, submit)| line_with(&[(1, number), (2, submit)]))
        .concat();
    let log = read_text(text).unwrap();
    let numbers: Vec<u64> = log.workload.jobs().iter().map(|job| job.number).collect();
    assert_eq!(numbers, [2, 4, 1, 3, 5]);
    assert_eq!(log.intake.out_of_order, 2);
}

/// Two partitions with names, one without, and a job of which nothing is said; the second job waited.
#[test]
fn a_log_says_when_jobs_started_and_where() {
    let log = read_text(
        "; MaxProcs: 640\n; Partition: 1 cpu (the rest)\n; Partition: 2 gpu\n\
         1 0 0 100 8 -1 -1 8 100 -1 1 1 1 1 1 1 -1 -1\n\
         2 9 1 100 4 -1 -1 4 100 -1 1 1 1 1 1 2 -1 -1\n\
         3 5 0 100 2 -1 -1 2 100 -1 1 1 1 1 1 2 -1 -1\n\
         4 300 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 7 -1 -1\n\
         5 300 0 100 1 -1 -1 1 100 -1 1 1 1 1 1 -1 -1 -1\n",
    );
    let workload = log.unwrap().workload;
    let expected = [("cpu", 1), ("gpu", 2), ("7", 1)].map(|(name, jobs)| (name.to_owned(), jobs));
    assert_eq!(workload.partitions(), expected);
    assert_eq!(workload.processors(), Some(640));
    let starts: Vec<_> = workload.recorded_starts().unwrap();
    let starts: Vec<_> = starts.iter().map(|(at, job)| (at.millis() / 1000, job.0)).collect();
    assert_eq!(starts, [(0, 0), (5, 1), (10, 2), (300, 3), (300, 4)]);
    let gpu = workload.in_partitions(&["gpu".to_owned()]).unwrap();
    let numbers: Vec<u64> = gpu.jobs().iter().map(|job| job.number).collect();
    assert_eq!(numbers, [3, 2]);
    assert_eq!((gpu.selection().unwrap().left_out(), gpu.processors()), (3, Some(6)));
    // Nothing is said by a log that knows it of no job.
    let unknown = read_text(line_with(&[(3, "-1"), (16, "-1")])).unwrap().workload;
    assert_eq!(unknown.recorded_starts(), None);
    assert_eq!(unknown.partitions(), []);
}

#[test]
fn every_field_is_read_to_its_own_place() {
    let fields: [i64; 18] = std::array::from_fn(|i| 10 + i as i64);
    let text = fields.map(|value| value.to_string()).join(" ");
    let record = records(text.as_bytes(), "log", BadRecords::Stop).next().unwrap().unwrap();
    assert_eq!(record.fields(), fields);
    assert_eq!(record, Record::from_fields(fields));
    assert_eq!((record.number, record.status, record.think_time), (10, 20, 27));
}

#[test]
fn numbers_of_every_form() {
    for (text, value) in [
        ("0", 0),
        ("-0", 0),
        ("9", 9),
        ("-1", -1),
        ("-10", -10),
        ("12345678", 12_345_678),
        ("99999999", 99_999_999),
        ("100000000", 100_000_000),
        ("000000000000000000000000012", 12),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("7.98", 7),
        ("259.00", 259),
        ("-1.00", -1),
        ("-0.9", 0),
        (".5", 0),
        ("5.", 5),
        ("1234567.9", 1_234_567),
        ("12345678.999999999999999999999999999", 12_345_678),
    ] {
        // In the middle of a line and as the last thing of a file.
        let middle = line_with(&[(7, text)]);
        let last = line_with(&[(18, text)]);
        let read_one =
            |text: &str| records(text.as_bytes(), "log", BadRecords::Stop).next().unwrap().unwrap();
        assert_eq!(read_one(&middle).used_memory, value, "{text}");
        assert_eq!(read_one(last.trim_end()).think_time, value, "{text}");
    }
}

#[test]
fn what_is_not_a_number_is_malformed() {
    for text in [
        "NaN",
        "nan",
        "inf",
        "-inf",
        "1e5",
        "+1",
        "--1",
        "-",
        ".",
        "-.",
        "1.2.3",
        "1,5",
        "0x10",
        "1-1",
        "12:30",
        "1/2",
        "?",
        "1;",
        "\u{0}",
        "1\u{0}",
        "1\u{b}",
        "½",
        "−1",
        "1?",
        "=5",
        "1234567?",
        "12345678x",
        "123456789x",
        "1.5e3",
        "1.x",
        "'quoted'",
    ] {
        for field in [1, 7, 18] {
            for ending in ["\n", ""] {
                let line = line_with(&[(field, text)]);
                let line = line.trim_end_matches('\n').to_owned() + ending;
                let error = read_text(&line).unwrap_err();
                assert!(matches!(error, SwfError::Malformed { .. }), "{text:?}: {error}");
                let skipped = skip_text(format!("{line}\n{}", line_with(&[]))).unwrap().intake;
                assert_eq!((skipped.records, skipped.skipped_malformed), (2, 1), "{text:?}");
            }
        }
    }
}

#[test]
fn what_a_job_cannot_hold_is_out_of_range() {
    for field in [2, 4, 5, 8, 9, 12, 14] {
        read_text(line_with(&[(field, "4294967295")])).unwrap();
        let error = read_text(line_with(&[(field, "4294967296")])).unwrap_err();
        let SwfError::Malformed { field: found, problem, .. } = error else { panic!("{error}") };
        let text = "4294967296".to_owned();
        assert_eq!(found, field);
        assert_eq!(problem, Problem::OutOfRange { text, largest: u32::MAX.into() });
    }
    for field in 1..=18 {
        for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999.5"] {
            let error = read_text(line_with(&[(field, text)])).unwrap_err();
            assert!(
                matches!(
                    error,
                    SwfError::Malformed { field: found, problem: Problem::OutOfRange { .. }, .. }
                        if found == field
                ),
                "{error}"
            );
        }
    }
}

#[test]
fn messages_say_where_what_and_what_to_do() {
    let remedy = "; correct the line, or skip and count such lines: 'busbar workload convert --skip-bad-records' \
    writes the rest";
    let long = "x".repeat(41);
    let shortened = format!("'{}…' is not a number", "x".repeat(40));
    let cases = [
        (line_with(&[(6, "1e5")]), "field 6 (average CPU time used): '1e5' is not a number"),
        (
            line_with(&[(4, "4294967296")]),
            "field 4 (run time): '4294967296' is out of range; the largest value is 4294967295",
        ),
        (
            SOUND[..4].join(" ") + "\n",
            "field 5 (allocated processors): missing; a record has 18 fields",
        ),
        (
            line_with(&[(18, "-1 extra things")]),
            "field 19 (one too many): 'extra' stands after the last field; a record has 18 fields",
        ),
        (line_with(&[(1, &long)]), &format!("field 1 (job number): {shortened}")),
        (line_with(&[(3, "a\u{1}b")]), "field 3 (wait time): 'a\\u{1}b' is not a number"),
    ];
    for (line, message) in cases {
        // Blank lines, comments and records all count as lines.
        let text = format!("; comment\n\n{}{line}{}", line_with(&[]), line_with(&[]));
        let error = read_text(&text).unwrap_err();
        assert_eq!(error.to_string(), format!("folder/some.swf, line 4, {message}{remedy}"));
        let error = records(text.as_bytes(), "log", BadRecords::Stop).last().unwrap().unwrap_err();
        assert_eq!(error.to_string(), format!("log, line 4, {message}{remedy}"));
    }
}

#[test]
fn skipping_leaves_malformed_lines_out() {
    let text =
        [line_with(&[]), "not a record\n".into(), line_with(&[(1, "8")]), "1 2 3".into()].concat();
    let log = skip_text(&text).unwrap();
    assert_eq!(log.workload.jobs().len(), 2);
    assert_eq!(
        log.intake,
        Intake { records: 4, usable: 2, skipped_malformed: 2, ..Intake::default() }
    );

    let mut records = records(text.as_bytes(), "log", BadRecords::Skip);
    assert_eq!(records.by_ref().map(|record| record.unwrap().number).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(records.skipped(), 2);
}

#[test]
fn records_stop_after_an_error() {
    let text = format!("{}bad\n{}", line_with(&[]), line_with(&[]));
    let results: Vec<bool> =
        records(text.as_bytes(), "log", BadRecords::Stop).map(|record| record.is_ok()).collect();
    assert_eq!(results, [true, false]);
}

#[test]
fn a_log_without_usable_records_is_an_error_with_counts() {
    let error = read_text("").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no usable record in the log 'folder/some.swf' (it has no records)"
    );
    let error = skip_text(line_with(&[(4, "-1")]) + "bad\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "no usable record in the log 'folder/some.swf' (records: 2; skipped, malformed line: 1; \
         skipped, no run time: 1)"
    );
}

#[test]
fn intake_reports_what_is_not_zero() {
    let intake = Intake { records: 9, usable: 8, skipped_no_size: 1, ..Intake::default() };
    let lines: Vec<String> = intake.lines().collect();
    assert_eq!(lines, ["records: 9", "usable: 8", "skipped, no processor count: 1"]);
    let json = serde_json::to_value(&intake).unwrap();
    assert_eq!((&json["skipped_no_size"], &json["out_of_order"]), (&1.into(), &0.into()));
}

#[test]
fn header_is_read_from_the_opening_comments() {
    let text = "; Version: 2.2\n;Computer:  IBM SP2 \r\n; Installation: KTH\n\
                ; UnixStartTime: -843480031\n; TimeZoneString: Europe/Stockholm\n\
                ;       indented: 1\n;\n; MaxNodes: 100\n; maxprocs: 400 (100 × 4)\n\
                ; MaxJobs: 28490, more or less\n; MaxRecords: 28476\n; MaxProcs: 800\n"
        .to_owned()
        + &line_with(&[])
        + "; Acknowledge: nobody\n";
    let log = read_text(&text).unwrap();
    let header = &log.header;
    assert_eq!(header.version.as_deref(), Some("2.2"));
    assert_eq!(header.computer.as_deref(), Some("IBM SP2"));
    assert_eq!(header.installation.as_deref(), Some("KTH"));
    assert_eq!(header.acknowledge, None);
    assert_eq!(header.unix_start_time, Some(-843480031));
    assert_eq!(header.time_zone.as_deref(), Some("Europe/Stockholm"));
    assert_eq!((header.max_nodes, header.max_procs), (Some(100), Some(400)));
    assert_eq!((header.max_jobs, header.max_records), (Some(28490), Some(28476)));
    assert_eq!(header.comments.len(), 12);
    assert_eq!(header.comments[5], "      indented: 1");
    assert_eq!(header.comments[6], "");
    assert_eq!(log.workload.processors(), Some(400));
}

#[test]
fn garbage_in_a_header_is_as_good_as_nothing() {
    for value in ["", "-1", "0", "many", "1,024", "4294967296", "12x", "99999999999999999999"] {
        let text = format!("; MaxProcs: {value}\n; MaxNodes: 12\n");
        let header = header_of(&text);
        assert_eq!((header.max_procs, header.processors(12)), (None, Some(12)), "{value}");
        let header = header_of(format!("{text}; MaxProcs: 48"));
        assert_eq!(header.processors(48), Some(48), "{value}");
        assert_eq!(header.processors(64 * 48), header.max_procs, "a job speaks against it");
    }
    for value in ["128", "128 (some text)", "128(some text)", "128, 256", "128 256", "128;"] {
        let header = header_of(format!("; MaxProcs: {value}\n"));
        assert_eq!(header.max_procs, Some(128), "{value}");
    }
    let header = header_of(b"; Computer:\n; Computer: \xFF\n");
    assert_eq!(header.computer.as_deref(), Some("\u{FFFD}"));
}

#[test]
fn workloads_are_named_after_their_files() {
    for (path, name) in [
        ("some.swf", "some"),
        ("a/b.c/some-2.1-cln.swf.gz", "some-2.1-cln"),
        ("/a/some.gz", "some"),
        ("some.txt", "some.txt"),
        ("stdin", "stdin"),
        (".swf", ".swf"),
    ] {
        let log = read(line_with(&[]).as_bytes(), path, BadRecords::Stop).unwrap();
        assert_eq!(log.workload.name(), name);
    }
}

#[test]
fn files_may_be_plain_or_gzip_whatever_their_name() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (line_with(&[]), line_with(&[(1, "8"), (2, "200")]));
    let both = format!("{first}{second}");
    let members = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    for (file, bytes) in [
        ("plain.swf", both.clone().into_bytes()),
        ("misnamed.swf.gz", both.clone().into_bytes()),
        ("packed.swf.gz", gzip(both.as_bytes())),
        ("misnamed.swf", gzip(both.as_bytes())),
        ("members.swf.gz", members),
    ] {
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        let log = read_path(&path, BadRecords::Stop).unwrap();
        assert_eq!(log.workload.jobs().len(), 2, "{file}");
        assert_eq!(Some(log.workload.name()), file.split('.').next());
    }
}

/// A file is read piece by piece, and lines stand across the ends of pieces.
#[test]
fn a_file_is_read_as_if_it_were_in_memory() {
    let mut text = String::from("\u{feff}; MaxProcs: 64\n;\n; Note: ends here\n");
    for number in 0..20_000 {
        text += &match number % 7 {
            0 => "\n  \t\r\n".to_owned(),
            1 => "; not an opening comment\n".to_owned(),
            2 => format!("{number} bad\n"),
            3 => line_with(&[(1, &number.to_string()), (4, "-1")]),
            _ => line_with(&[(1, &number.to_string()), (2, &(number ^ 5).to_string()), (8, "-1")]),
        };
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.swf.gz");
    std::fs::write(&path, gzip(text.as_bytes())).unwrap();
    let whole = skip_text(&text).unwrap();
    let clean = clean_path(&path, BadRecords::Skip).unwrap();
    for log in [read_path(&path, BadRecords::Skip).unwrap(), clean.log("some.swf").unwrap()] {
        assert_eq!((&log.header, &log.intake), (&whole.header, &whole.intake));
        assert_eq!(log.workload.jobs(), whole.workload.jobs());
        assert_eq!(log.workload.run_times(), whole.workload.run_times());
        assert_eq!(log.workload.partitions(), whole.workload.partitions());
        assert_eq!(log.workload.processors(), Some(64));
    }
    let mut records = Vec::new();
    let mut scan = Scan::new("some.swf", BadRecords::Skip);
    scan.take(1, text.as_bytes(), |record, job, run| records.push(cleaned(record, job, run)))
        .unwrap();
    let records = CleanLog::new(records, scan.finish().unwrap()).records;
    assert_eq!(clean.records, records);
    // A bad line in a later piece is named by its number.
    let wrong = line_with(&[]) + &"\n".repeat(200_000) + &line_with(&[(3, "x")]);
    std::fs::write(&path, gzip(wrong.as_bytes())).unwrap();
    let error = read_path(&path, BadRecords::Stop).unwrap_err();
    assert!(matches!(error, SwfError::Malformed { line: 200_002, field: 3, .. }), "{error}");
}

/// A gigabyte of one line fits in a megabyte of gzip; here, 64 MB of it. The reader stops in the line,
/// whatever it is and whether bad records are to be skipped.
#[test]
fn a_line_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let long = "1".repeat(64 << 20);
    let comment = format!("; MaxProcs: 8\n;{long}\n{}", line_with(&[]));
    let record = format!("; MaxProcs: 8\n{}\n{long}", line_with(&[]).trim_end());
    for (text, line) in [(comment, 2), (record, 3)] {
        for (name, bytes) in [("plain", text.clone().into_bytes()), ("gzip", gzip(text.as_bytes()))]
        {
            let path = folder.path().join(format!("{name}.swf"));
            std::fs::write(&path, bytes).unwrap();
            for bad in [BadRecords::Stop, BadRecords::Skip] {
                let error = read_path(&path, bad).unwrap_err();
                let file = path.display().to_string();
                assert!(
                    matches!(&error, SwfError::LongLine { line: found, .. } if *found == line),
                    "{error}"
                );
                let message = error.to_string();
                assert!(
                    message.starts_with(&format!("the log '{file}': line {line} has more than"))
                );
            }
        }
    }
}

#[test]
fn unreadable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.swf");
    for path in [missing.as_path(), folder.path()] {
        let error = read_path(path, BadRecords::Skip).unwrap_err();
        assert!(matches!(error, SwfError::Unreadable { .. }));
        assert_eq!(error.to_string(), format!("cannot read the log '{}'", path.display()));
        assert!(error.source().is_some());
    }

    let cut = folder.path().join("cut.swf.gz");
    let packed = gzip(line_with(&[]).as_bytes());
    for length in [2, packed.len() / 2, packed.len() - 1] {
        std::fs::write(&cut, &packed[..length]).unwrap();
        let error = read_path(&cut, BadRecords::Skip).unwrap_err();
        assert!(matches!(error, SwfError::Damaged { .. }));
        assert!(error.to_string().contains("cut.swf.gz"), "{error}");
    }
}

fn written(records: impl IntoIterator<Item = Record>) -> String {
    let mut out = Vec::new();
    write(&mut out, [""; 0], records).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn records_are_written_with_all_fields() {
    let (job, run_time) = sound_job();
    let record = Record::new(&job, run_time);
    assert_eq!(
        written([record, record.waited(Span::from_secs(12)).ended(Status::Cancelled)]),
        "7 100 -1 60 8 -1 -1 8 3600 -1 -1 3 2 9 -1 -1 -1 -1\n\
         7 100 12 60 8 -1 -1 8 3600 -1 5 3 2 9 -1 -1 -1 -1\n"
    );
}

#[test]
fn numbers_of_every_length_are_written() {
    let mut power: i64 = 1;
    let mut values = vec![0, i64::MIN, i64::MAX];
    for _ in 0..19 {
        values.extend([power, power - 1, power + 1, -power, 1 - power, -power - 1]);
        power = power.saturating_mul(10);
    }
    for value in values {
        let line = written([Record::from_fields([value; 18])]);
        assert_eq!(line, vec![value.to_string(); 18].join(" ") + "\n");
    }
}

#[test]
fn fractions_of_a_second_are_rounded() {
    let (mut job, _) = sound_job();
    job.submit = Instant::from_millis(1499);
    job.requested = Span::from_millis(1);
    let record = Record::new(&job, Span::from_millis(1500)).waited(Span::from_millis(499));
    assert_eq!((record.submit, record.requested_time, record.run_time, record.wait), (1, 1, 2, 0));
    // The end of the clock must not come out as something else.
    job.submit = Instant::NEVER;
    assert_eq!(Record::new(&job, Span::ZERO).submit, 18_446_744_073_709_552);
}

#[test]
fn comments_stay_comments() {
    let mut writer = Writer::new(Vec::new());
    for comment in ["MaxProcs: 4", "", "  indented", "two\nlines", "a\r1 2 3", "trailing \n"] {
        writer.comment(comment).unwrap();
    }
    writer.record(&Record::UNKNOWN).unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    let missing = ["-1"; 18].join(" ");
    assert_eq!(
        text,
        format!(
            "; MaxProcs: 4\n;\n;   indented\n; two\n; lines\n; a\n; 1 2 3\n; trailing\n;\n\
             {missing}\n"
        )
    );
}

#[test]
fn a_failing_writer_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert!(write(&mut Full, ["comment"], []).is_err());
    assert!(write(&mut Full, [""; 0], [Record::UNKNOWN]).is_err());
}

prop_compose! {
    /// A job as the format can hold it: whole seconds, and a requested time that is not zero.
    fn any_job()(
        number in 0..=i64::MAX as u64,
        submit in any::<u32>(),
        requested in 1..=u32::MAX,
        nodes in 1..=u32::MAX,
        user_number in prop_oneof![Just(0), any::<u32>()],
        application_number in prop_oneof![Just(0), any::<u32>()],
        run_time in any::<u32>(),
    ) -> (Job, Span) {
        let asked =
            Job::new(number, Instant::from_secs(submit), nodes, Span::from_secs(requested));
        let (user, application) = (user(user_number), application(application_number));
        let group = NonZeroU32::new(user_number / 2).map(GroupId);
        let job = Job { user, group, application, ..asked };
        (job, Span::from_secs(run_time))
    }
}

/// Text that comes close to being a log, so that more than the first byte of it is looked at.
fn almost_a_log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        10 => any::<i64>().prop_map(|value| value.to_string()),
        10 => (0..100_000_000i64).prop_map(|value| value.to_string()),
        5 => any::<f64>().prop_map(|value| value.to_string()),
        5 => "[-0-9.;#: \\t\\r\\n]{0,12}",
        5 => Just(line_with(&[])),
        1 => Just("; MaxProcs: ".to_owned()),
        1 => any::<String>(),
    ];
    let separator = prop_oneof![20 => Just(" "), 1 => Just("\n"), 1 => Just("\t"), 1 => Just("")];
    prop::collection::vec((piece, separator), 0..80).prop_map(|pieces| {
        pieces.into_iter().map(|(piece, separator)| piece + separator).collect::<String>().into()
    })
}

/// What holds for any bytes at all.
fn check_any_bytes(bytes: &[u8]) -> Result<(), TestCaseError> {
    let strict = read(bytes, "log", BadRecords::Stop);
    let lenient = read(bytes, "log", BadRecords::Skip);
    let intake = match &lenient {
        Ok(log) => {
            prop_assert_eq!(log.workload.jobs().len() as u64, log.intake.usable);
            prop_assert!(log.workload.jobs().is_sorted_by_key(|job| job.submit));
            prop_assert!(log.workload.jobs().iter().all(|job| job.nodes > 0));
            &log.intake
        }
        Err(SwfError::NothingUsable { intake, .. }) => intake,
        Err(error) => return Err(TestCaseError::fail(error.to_string())),
    };
    prop_assert_eq!(intake.records, intake.usable + intake.skipped());

    match &strict {
        Ok(log) => prop_assert_eq!(&log.intake, intake),
        Err(SwfError::Malformed { line, field, .. }) => {
            prop_assert!(intake.skipped_malformed > 0);
            prop_assert!(*line <= 1 + bytes.iter().filter(|&&byte| byte == b'\n').count());
            prop_assert!((1..=19).contains(field));
        }
        Err(_) => prop_assert_eq!(intake.usable, 0),
    }

    let mut all = records(bytes, "log", BadRecords::Skip);
    let sound = all.by_ref().filter(|record| record.is_ok()).count() as u64;
    prop_assert_eq!(
        (sound + all.skipped(), all.skipped()),
        (intake.records, intake.skipped_malformed)
    );
    Ok(())
}

proptest! {
    #[test]
    fn a_workload_written_is_the_workload_read(
        jobs in prop::collection::vec(any_job(), 1..50),
        processors in prop::option::of(1..=u32::MAX),
        packed: bool,
    ) {
        let workload = Workload::new("some", jobs).on_processors(processors);
        let records = workload.jobs().iter().zip(workload.run_times());
        let mut out = Vec::new();
        write(
            &mut out,
            describe(&workload),
            records.map(|(job, &run_time)| Record::new(job, run_time)),
        )
        .unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), if packed { gzip(&out) } else { out }).unwrap();

        let log = read_path(file.path(), BadRecords::Stop).unwrap();
        prop_assert_eq!(log.workload.jobs(), workload.jobs());
        prop_assert_eq!(log.workload.run_times(), workload.run_times());
        prop_assert_eq!(log.workload.processors(), processors);
        let usable = workload.jobs().len() as u64;
        prop_assert_eq!(log.intake, Intake { records: usable, usable, ..Intake::default() });
    }

    #[test]
    fn a_record_written_is_the_record_read(
        fields in prop::array::uniform18(prop_oneof![Just(-1), any::<i64>(), -99_999..999_999i64])
    ) {
        let record = Record::from_fields(fields);
        let text = written([record, record]);
        let in_range = fields.iter().zip(record::LARGEST).all(|(&value, largest)| value <= largest);
        let read: Vec<Record> =
            records(text.as_bytes(), "log", BadRecords::Skip).map(|record| record.unwrap()).collect();
        prop_assert_eq!(read, if in_range { vec![record; 2] } else { vec![] });
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_any_bytes(&bytes)?;
    }

    #[test]
    fn almost_any_log_is_read_or_refused(bytes in almost_a_log()) {
        check_any_bytes(&bytes)?;
    }

    #[test]
    fn numbers_are_read_like_the_standard_library_reads_them(text in "-?[0-9]{0,20}(\\.[0-9]{0,3})?") {
        let whole = text.split('.').next().unwrap_or_default();
        let has_digits = text.bytes().any(|byte| byte.is_ascii_digit());
        let expected = match whole {
            "" | "-" => has_digits.then_some(0),
            whole => whole.parse::<i64>().ok(),
        };
        let line = line_with(&[(10, if text.is_empty() { "-" } else { &text })]);
        let read = records(line.as_bytes(), "log", BadRecords::Stop).next().unwrap();
        prop_assert_eq!(read.ok().map(|record| record.requested_memory), expected);
    }
}

#[test]
fn numbers_that_stand_twice_are_counted() {
    let line = |number: u32, submit: u32| {
        format!("{number} {submit} 0 10 1 -1 -1 1 20 -1 1 1 1 1 1 1 -1 -1\n")
    };
    for (numbers, repeated) in [(vec![1, 2, 3], 0), (vec![3, 1, 2], 0), (vec![1, 2, 2, 1, 1], 3)] {
        let text: String =
            (0..).zip(&numbers).map(|(submit, number)| line(*number, submit)).collect();
        let log = read(text.as_bytes(), "log", BadRecords::Stop).unwrap();
        assert_eq!(log.intake.repeated_numbers, repeated, "{numbers:?}");
    }
}
