//! Jobs as JSON, in the forms that versions of Slurm write, against the parsable form of the same jobs.

use proptest::prelude::*;

use crate::records::{Import, ImportError, Importer, Options, RecordIntake, Run};
use crate::swf;

fn import(text: impl AsRef<[u8]>, options: Options) -> Result<Import, ImportError> {
    let mut importer = Importer::new(options)?;
    importer.read(text.as_ref(), "dump.json")?;
    importer.finish()
}

fn imported(text: impl AsRef<[u8]>) -> Import {
    let import = import(text, Options::default()).unwrap();
    assert_adds_up(import.intake());
    import
}

fn strictly(text: &str) -> String {
    let options = Options { is_strict: true, ..Options::default() };
    import(text, options).unwrap_err().to_string()
}

/// Every record is accounted for.
fn assert_adds_up(intake: &RecordIntake) {
    assert_eq!(intake.records, intake.usable + intake.steps + intake.skipped(), "{intake:?}");
}

/// The log, the names and the power of an import, as they are written.
fn written(import: &Import) -> [String; 3] {
    let (mut log, mut names, mut power) = (Vec::new(), Vec::new(), Vec::new());
    swf::write(&mut log, import.comments(None), import.records()).unwrap();
    import.names().write(&mut names).unwrap();
    import.write_power(&mut power).unwrap();
    [log, names, power].map(|bytes| String::from_utf8(bytes).unwrap())
}

/// Both forms were dumped from the same real Slurm 22.05 with these jobs: on whole nodes and on parts of them, with
/// steps; an array; jobs that failed, were cancelled while they ran and while they waited, were held, queued again,
/// suspended or out of time, had no limit, and had two components; one that still ran. The order of the jobs differs, as
/// it did. Users, accounts and paths are synthetic, and what each task of a step used is left out.
#[test]
fn a_real_dump_gives_the_same_log_in_both_forms() {
    let options = || Options { zone: Some("Europe/Berlin".to_owned()), ..Options::default() };
    let parsable = import(include_str!("samples/slurm-22.05.txt"), options()).unwrap();
    let json = import(include_str!("samples/slurm-22.05.json"), options()).unwrap();
    assert_adds_up(json.intake());
    assert_eq!(written(&json), written(&parsable));
    assert_eq!((json.runs().len(), json.intake().with_power), (17, 7));
    let tasks = |import: &Import| -> Vec<(u64, String)> {
        import.labels().filter(|(_, label)| label.contains('_')).collect()
    };
    assert!(!tasks(&json).is_empty());
    assert_eq!(tasks(&json), tasks(&parsable));
    // The parsable form has local times, and nothing that says how long a job ran without its pauses, and on which nodes.
    let [mut json, parsable] = [json, parsable].map(|import| import.intake().clone());
    assert_eq!((json.local_times, json.elapsed_differs), (0, 1));
    assert!(json.with_node_names > 0);
    (json.local_times, json.elapsed_differs) = (parsable.local_times, parsable.elapsed_differs);
    json.with_node_names = parsable.with_node_names;
    assert_eq!(json, parsable);
}

/// A job as newer versions write it, which say of a number whether it is set, and have states as lists.
fn newer(id: u32, state: &str, limit: &str, steps: &str) -> String {
    format!(
        r#"{{"account": "physics", "allocation_nodes": 2, "array": {{"job_id": 0, "task_id": {{"set": false, "infinite": false, "number": 0}}}},
        "association": {{"account": "other", "user": "nobody"}}, "group": "staff", "job_id": {id}, "name": "lmp_4", "nodes": "n[1-2]",
        "partition": "gpu", "qos": "normal", "required": {{"CPUs": 9, "memory_per_cpu": {{"set": false, "infinite": false, "number": 0}}}},
        "reservation": {{"id": 0, "name": ""}}, "state": {{"current": {state}, "reason": "None"}}, "steps": [{steps}],
        "time": {{"elapsed": 600, "eligible": 1710504000, "end": 1710504660, "planned": {{"set": true, "number": 60}}, "start": 1710504060,
        "submission": 1710504000, "limit": {limit}, "user": {{"seconds": 3}}}},
        "tres": {{"allocated": [{{"type": "cpu", "name": "", "id": 1, "count": 96}}, {{"type": "node", "name": "", "id": 4, "count": 2}},
        {{"type": "energy", "name": "", "id": 3, "count": -2}}, {{"type": "mem", "name": "", "id": 2, "count": 8192}},
        {{"type": "gres", "name": "gpu", "id": 1001, "count": 8}}],
        "requested": [{{"type": "cpu", "name": "", "id": 1, "count": 8}}]}}, "user": "ada"}}"#
    )
}

fn step(id: &str, energy: &str) -> String {
    format!(
        r#"{{"state": ["COMPLETED"], "step": {{"id": {id}, "name": "x"}}, "statistics": {{"CPU": {{"actual_frequency": 0}}, "energy": {{"consumed": {energy}}}}}, "time": {{"start": 1}}}}"#
    )
}

fn dump(jobs: &[String]) -> String {
    format!(
        r#"{{"meta": {{"slurm": {{"version": {{"major": "24"}}}}}}, "jobs": [{}], "warnings": [], "errors": []}}"#,
        jobs.join(",\n")
    )
}

const SET: &str = r#"{"set": true, "infinite": false, "number": 1440}"#;

#[test]
fn newer_versions_say_the_same_in_other_words() {
    let energy = |joules: u32| format!(r#"{{"set": true, "infinite": false, "number": {joules}}}"#);
    let unset = r#"{"set": false, "infinite": false, "number": 0}"#;
    let steps = [
        step("\"17.batch\"", &energy(150_000)),
        step("\"17.extern\"", &energy(300_001)),
        step("\"17.0\"", unset),
    ];
    let infinite = r#"{"set": false, "infinite": true, "number": 0}"#;
    let json = imported(dump(&[
        newer(17, r#"["COMPLETED"]"#, SET, &steps.join(",")),
        newer(18, r#"["PENDING", "REQUEUED"]"#, infinite, ""),
        newer(19, r#"["TIMEOUT"]"#, unset, ""),
    ]));
    let line = |id: &str, state: &str, limit: &str, energy: &str| {
        format!(
            "{id}|ada|physics|gpu|normal|{state}|1710504000|1710504060|1710504660|{limit}|2|96|{energy}|lmp_4|n[1-2]|\
             cpu=96,mem=8G,gres/gpu=8,node=2\n"
        )
    };
    let parsable = [
        "JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|TimelimitRaw|NNodes|AllocCPUS|ConsumedEnergyRaw|JobName|NodeList|AllocTRES\n",
        &line("17", "COMPLETED", "1440", "0"),
        &line("17.batch", "COMPLETED", "", "150000"),
        &line("17.extern", "COMPLETED", "", "300001"),
        &line("17.0", "COMPLETED", "", ""),
        &line("18", "REQUEUED", "UNLIMITED", ""),
        &line("19", "TIMEOUT", "Partition_Limit", ""),
    ];
    let parsable = imported(parsable.concat());
    assert_eq!(written(&json), written(&parsable));
    assert_eq!(json.intake(), parsable.intake());
    for import in [&json, &parsable] {
        let run = &import.runs()[0];
        assert_eq!((run.gpus(), run.memory_mib()), (Some(8), Some(8192)));
        assert_eq!(import.node_list(run), Some(&[0, 1][..]));
        assert_eq!(import.node_names(), ["n1", "n2"]);
    }
    // 300 001 J in 600 s, rounded up to milliwatts.
    assert_eq!(
        json.runs()[0].power().and_then(|power| power.mean()).unwrap().milliwatts(),
        500_002
    );
}

#[test]
fn several_dumps_are_parts_of_one_whole() {
    let one = dump(&[newer(1, r#""COMPLETED""#, SET, "")]);
    let two = dump(&[newer(1, r#""COMPLETED""#, SET, ""), newer(2, r#""FAILED""#, SET, "")]);
    for text in [format!("{one}\n{two}\n"), format!("\u{feff}\n  {one}{two}")] {
        let import = imported(text);
        assert_eq!((import.runs().len(), import.intake().skipped_duplicate), (2, 1));
    }
}

#[test]
fn what_is_missing_or_strange_is_a_defect_with_its_name() {
    let good = newer(1, r#"["COMPLETED"]"#, SET, "");
    let counts = |job: &str| {
        let import = imported(dump(&[good.clone(), job.to_owned()]));
        import.intake().lines().filter(|line| line.starts_with("skipped")).collect::<Vec<_>>()
    };
    let second = good.replace("\"job_id\": 1,", "\"job_id\": 2,");
    let with = |from: &str, to: &str| {
        assert!(second.contains(from), "{from}");
        counts(&second.replace(from, to))
    };
    let malformed = ["skipped, malformed record: 1"];
    assert_eq!(with("\"job_id\": 2,", ""), malformed);
    assert_eq!(with("\"job_id\": 2,", "\"job_id\": \"two\","), malformed);
    assert_eq!(with("\"start\": 1710504060", "\"start\": \"noon\""), malformed);
    assert_eq!(with(r#"["COMPLETED"]"#, r#"["BANANA"]"#), malformed);
    // What `squeue --json` prints has jobs, too, but no times like these.
    assert_eq!(with("\"time\"", "\"times\""), malformed);
    assert_eq!(counts("7"), malformed);
    assert_eq!(with("\"start\": 1710504060", "\"start\": 0"), ["skipped, unknown time: 1"]);
    assert_eq!(with("\"start\": 1710504060,", ""), ["skipped, unknown time: 1"]);
    assert_eq!(with("1710504660", "1710504000"), ["skipped, ended before it started: 1"]);
    assert_eq!(
        with(r#"["COMPLETED"]"#, r#"["RUNNING"]"#),
        ["skipped, still running at the end of the records: 1"]
    );
    assert_eq!(with("\"n[1-2]\"", "\"None assigned\""), ["skipped, never started: 1"]);
    let sizeless = second.replace("\"allocation_nodes\": 2", "\"allocation_nodes\": null");
    let sizeless = sizeless.replace("\"tres\"", "\"none\"").replace("\"CPUs\": 9", "\"CPUs\": 0");
    assert_eq!(counts(&sizeless), ["skipped, no processor count: 1"]);
    // An end that is not known is the start and how long it took.
    assert_eq!(with("\"end\": 1710504660", "\"end\": 0"), [""; 0]);
}

#[test]
fn a_dump_that_is_cut_off_keeps_what_is_whole() {
    let whole = dump(&[1, 2, 3].map(|id| newer(id, r#"["COMPLETED"]"#, SET, "")));
    let second = whole.find("\"job_id\": 2").unwrap();
    let import = imported(&whole[..second]);
    assert_eq!(import.runs().iter().map(Run::number).collect::<Vec<_>>(), [1]);
    assert_eq!((import.intake().skipped_cut_off, import.intake().records), (1, 2));
    // What is cut off after the last job is told, too.
    assert_eq!(imported(&whole[..whole.len() - 1]).intake().skipped_cut_off, 1);
    let line = whole[..second].lines().count();
    let column = whole[..second].lines().last().unwrap().len();
    let error = strictly(&whole[..second]);
    let place = format!("dump.json, line {line}: column {column}: the records end here");
    assert!(error.contains(&place), "{error}");
}

#[test]
fn what_is_no_dump_is_refused_with_its_place() {
    let fails = |text: &str| import(text, Options::default()).unwrap_err().to_string();
    let good = dump(&[newer(1, r#"["COMPLETED"]"#, SET, "")]);
    let broken = good.replace("\"name\": \"lmp_4\",", "\"name\": lmp_4,");
    let error = fails(&broken);
    assert!(error.starts_with("dump.json, line 2, column "), "{error}");
    assert!(error.contains("this is not valid JSON: expected value;"), "{error}");
    let error = fails(&format!("{good} and more"));
    assert!(
        error.starts_with(&format!("dump.json, line {}, column", good.lines().count())),
        "{error}"
    );
    assert!(fails("{}").contains("dump.json, line 1: there is no list 'jobs'; dump with 'sacct"));
    assert!(fails(r#"{"jobs": null}"#).contains("no list 'jobs'"));
    assert!(fails(r#"{"jobs": []}"#).contains("no run in the records"));
    assert!(fails("{").contains("skipped, cut off at the end of the file: 1"));
}

#[test]
fn the_first_defect_stops_an_import_that_is_strict() {
    let good = newer(1, r#"["COMPLETED"]"#, SET, "");
    let bad = newer(2, r#"["BANANA"]"#, SET, "");
    let line = 1 + good.lines().count();
    let error = strictly(&dump(&[good, bad]));
    let expected = format!("dump.json, line {line}: field 'State': 'BANANA' is invalid");
    assert!(error.starts_with(&expected), "{error}");
}

/// A name in another encoding does not stop the import.
#[test]
fn names_need_not_be_text() {
    let mut bytes = dump(&[newer(1, r#"["COMPLETED"]"#, SET, "")]).into_bytes();
    let place = bytes.windows(5).position(|five| five == b"lmp_4").unwrap();
    bytes[place] = 0xfc;
    assert_eq!(imported(bytes).names().of(super::super::super::Kind::Application), ["?mp"]);
}

proptest! {
    /// Wherever a dump is cut off or damaged, nothing panics, and every record is accounted for.
    #[test]
    fn every_record_is_accounted_for(cut in 0usize..5000, at in 0usize..5000, byte in any::<u8>()) {
        let steps = [step("\"1.batch\"", "7"), step("0", "null")].join(",");
        let jobs = [1, 2].map(|id| newer(id, r#"["COMPLETED"]"#, SET, &steps));
        let mut bytes = dump(&jobs).into_bytes();
        let place = at % bytes.len();
        bytes[place] = byte;
        bytes.truncate(cut.max(1));
        if let Ok(import) = import(&bytes, Options::default()) {
            assert_adds_up(import.intake());
            prop_assert_eq!(import.intake().usable, import.runs().len() as u64);
        }
    }
}
