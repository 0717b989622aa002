//! Small records in each layout, made by hand, with every defect that has a name.

use proptest::prelude::*;

use super::*;
use busbar_core::units::Watts;

fn import(text: &str, options: Options) -> Result<Import, ImportError> {
    let mut importer = Importer::new(options)?;
    importer.read(text.as_bytes(), "records.txt")?;
    importer.finish()
}

fn imported(text: &str) -> Import {
    let import = import(text, Options::default()).unwrap();
    assert_adds_up(import.intake());
    import
}

/// Every record is accounted for.
fn assert_adds_up(intake: &RecordIntake) {
    assert_eq!(intake.records, intake.usable + intake.steps + intake.skipped(), "{intake:?}");
}

/// The counts that are not zero, but for those that are in every import.
fn counts(import: &Import) -> Vec<String> {
    let usual = ["records", "usable", "local times", "on whole nodes"];
    let is_usual =
        |line: &String| usual.iter().any(|usual| line.starts_with(&format!("{usual}: ")));
    import.intake().lines().filter(|line| !is_usual(line)).collect()
}

const HEADING: &str = "JobID|JobIDRaw|User|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|JobName\n";

fn sacct(lines: &[&str]) -> Import {
    imported(&[&[HEADING.trim_end()], lines].concat().join("\n"))
}

const NOON: i64 = 1_710_504_000;

#[test]
fn a_job_of_slurm_with_its_steps() {
    let import = sacct(&[
        "17|17|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:11:00|1-00:00:00|2|96||lmp_4",
        "17.batch|17.batch||COMPLETED|2024-03-15T12:01:00|2024-03-15T12:01:00|2024-03-15T12:11:00||1|48|150000|batch",
        "17.extern|17.extern||COMPLETED|2024-03-15T12:01:00|2024-03-15T12:01:00|2024-03-15T12:11:00||2|96|300001|extern",
        "17.0|17.0||COMPLETED|2024-03-15T12:01:00|2024-03-15T12:01:00|2024-03-15T12:11:00||2|96|280000|lmp",
    ]);
    let [run] = import.runs() else { panic!("{:?}", import.runs()) };
    assert_eq!((run.submit(), run.start(), run.end()), (NOON, NOON + 60, NOON + 660));
    assert_eq!((run.processors(), run.nodes(), run.number()), (96, Some(2), 17));
    // 300 001 J in 600 s, rounded up to milliwatts.
    let power = run.power().unwrap();
    assert_eq!((power.mean(), power.peak()), (Some(Watts::from_milliwatts(500_002)), None));
    let record = import.records().next().unwrap();
    assert_eq!((record.submit, record.wait, record.run_time), (0, 60, 600));
    assert_eq!(
        (record.requested_time, record.user, record.application, record.group),
        (86_400, 1, 1, -1)
    );
    assert_eq!(counts(&import), ["steps, part of their jobs: 3", "with measured power: 1"]);
    assert_eq!(import.names().of(Kind::Application), ["lmp"]);
}

#[test]
fn the_states_of_slurm() {
    let job = |id: u32, state: &str, start: &str, end: &str| {
        format!("{id}|{id}|al|{state}|2024-03-15T12:00:00|{start}|{end}|UNLIMITED|1|48||x")
    };
    let (start, end) = ("2024-03-15T12:01:00", "2024-03-15T12:02:00");
    let lines = [
        job(1, "CANCELLED by 1000", start, end),
        job(2, "CANCELLED by 1000", "None", "2024-03-15T12:02:00"),
        job(3, "PENDING", "Unknown", "Unknown"),
        job(4, "RUNNING", start, "Unknown"),
        job(5, "NODE_FAIL", start, end),
        job(6, "OUT_OF_MEMORY", start, end),
        job(7, "COMPLETED", "Unknown", end),
        job(8, "TIMEOUT", end, start),
        job(9, "BANANA", start, end),
        job(10, "COMPLETED", start, end),
        job(10, "COMPLETED", start, end),
        "11|11|al|COMPLETED|2024-03".to_owned(),
        job(12, "COMPLETED", start, "soon"),
        "13_[5-9]|13|al|PENDING|2024-03-15T12:00:00|Unknown|Unknown|1:00|1|48||x".to_owned(),
        "14|14|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T11:59:00|2024-03-15T12:59:00|1:00|1|48||x".to_owned(),
        "15|15|al|FAILED|2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:02:00|1:00|||99|x".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let import = sacct(&lines);
    let mut numbers: Vec<u64> = import.runs().iter().map(Run::number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 5, 6, 10, 14]);
    assert_eq!(
        counts(&import),
        [
            "skipped, malformed record: 3",
            "skipped, duplicate: 1",
            "skipped, never started: 3",
            "skipped, still running at the end of the records: 1",
            "skipped, unknown time: 1",
            "skipped, ended before it started: 1",
            "skipped, no processor count: 1",
            "requested time unknown: 4",
            "submit time after the start, moved to it: 1",
        ]
    );
    let endings: Vec<Ending> = import.runs().iter().map(Run::ending).collect();
    let expected =
        [Ending::Completed, Ending::Cancelled, Ending::Failed, Ending::Failed, Ending::Completed];
    assert_eq!(endings, expected);
}

/// A job that lost its node and ran again is two runs. An array has a line for each task; without raw numbers,
/// tasks get numbers of their own.
#[test]
fn jobs_that_ran_again_and_tasks_of_arrays() {
    let line = |id: &str, state: &str, minute: u32| {
        let (start, end) = (minute, minute + 1);
        format!(
            "{id}|{state}|2024-03-15T12:00:00|2024-03-15T12:{start:02}:00|2024-03-15T12:{end:02}:00|4"
        )
    };
    let lines = [
        "JobID|State|Submit|Start|End|NCPUS".to_owned(),
        line("7", "NODE_FAIL", 1),
        line("7", "COMPLETED", 5),
        line("9_1", "COMPLETED", 2),
        line("9_2", "COMPLETED", 2),
        line("5+1", "COMPLETED", 3),
    ];
    let import = imported(&lines.join("\n"));
    let found: Vec<(u64, i64)> =
        import.runs().iter().map(|run| (run.number(), (run.start() - NOON) / 60)).collect();
    assert_eq!(found, [(7, 1), (8, 2), (9, 2), (10, 3), (11, 5)]);
    let intake = import.intake();
    assert_eq!((intake.further_runs, intake.renumbered), (1, 4));
    assert_eq!(import.most_processors(), 8);
    // People look them up by what Slurm calls them.
    let labels: Vec<(u64, String)> = import.labels().collect();
    let expected = [(8, "9_1"), (9, "9_2"), (10, "5+1"), (11, "7")];
    assert_eq!(labels, expected.map(|(number, label)| (number, label.to_owned())));
}

/// Where the records have both numbers of a task, it is known by the one that people type.
#[test]
fn a_task_of_an_array_is_known_by_its_array() {
    let times = "2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:02:00|10|1|48||x";
    let import = sacct(&[
        &format!("40_3|43|al|COMPLETED|{times}"),
        &format!("40_4|40|al|COMPLETED|{times}"),
    ]);
    let labels: Vec<(u64, String)> = import.labels().collect();
    assert_eq!(labels, [(40, "40_4".to_owned()), (43, "40_3".to_owned())]);
    let text = format!("{HEADING}40_3|43|al|COMPLETED|{times}\n");
    let hidden = Options { is_anonymous: true, ..Options::default() };
    assert_eq!(super::tests::import(&text, hidden).unwrap().labels().count(), 0);
}

/// By hand, in Berlin in the night of 27 October 2024, when 02:00 to 03:00 came twice: from 02:50 to 02:10, twenty minutes;
/// from 02:20 to 02:10, fifty minutes; from 02:30 to 03:10, forty minutes, so that it was the second half past two.
#[test]
fn the_length_of_a_run_tells_times_apart_that_come_twice() {
    let job = |id: u32, start: &str, end: &str, elapsed: u32| {
        format!(
            "{id}|COMPLETED|2024-10-27T01:00:00|2024-10-27T{start}:00|2024-10-27T{end}:00|{elapsed}|4"
        )
    };
    let lines = [
        "JobID|State|Submit|Start|End|ElapsedRaw|NCPUS".to_owned(),
        job(1, "02:50", "02:10", 1200),
        job(2, "02:20", "02:10", 3000),
        job(3, "02:30", "03:10", 2400),
        job(4, "02:05", "02:15", 600),
    ];
    let options = Options { zone: Some("Europe/Berlin".to_owned()), ..Options::default() };
    let import = super::tests::import(&lines.join("\n"), options).unwrap();
    // The first 02:00 is at 00:00 in UTC.
    let (first, minutes) = (1_729_987_200, |at: i64| (at - 1_729_987_200) / 60);
    let mut runs: Vec<_> = import
        .runs()
        .iter()
        .map(|run| (run.number(), minutes(run.start()), run.run_time().millis() / 60_000))
        .collect();
    runs.sort_unstable();
    assert_eq!(runs, [(1, 50, 20), (2, 20, 50), (3, 90, 40), (4, 5, 10)]);
    assert_eq!(import.start(), first - 3600);
    let intake = import.intake();
    assert_adds_up(intake);
    assert_eq!((intake.skipped(), intake.elapsed_differs), (0, 0));
    // Of the last one nobody knows whether it was the first time or the second.
    assert_eq!((intake.twice_told, intake.twice_times), (5, 2));
}

/// By hand: jobs of 2 and 3 nodes overlap, on nodes of 48 processors. The first drew 1000 W on two nodes, the second, for
/// 600 s, 900 000 J on three: 500 W a node.
#[test]
fn records_tell_of_nodes() {
    let line = |id: u32, nodes: u32, cpus: u32, energy: &str| {
        format!(
            "{id}|{id}|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:10:00|20|{nodes}|{cpus}|{energy}|x"
        )
    };
    let seen = |lines: &[String]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        sacct(&lines).nodes_seen(&[])
    };
    let whole = [line(1, 2, 96, "600000"), line(2, 3, 144, "900000")];
    let expected = NodesSeen {
        nodes: Some(5),
        processors_per_node: Some(48),
        node_power: Some(Watts::from_watts(500)),
        doubt: None,
    };
    assert_eq!(seen(&whole), expected);
    let unmeasured = [line(1, 2, 96, ""), line(2, 3, 144, "")];
    assert_eq!(seen(&unmeasured).doubt, Some(NodeDoubt::NotMeasured));
    // The shared node counts with its processors: 96 + 24 fill three nodes.
    let shared = seen(&[line(1, 2, 96, "600000"), line(2, 1, 24, "")]);
    assert_eq!((shared.nodes, shared.doubt), (Some(3), Some(NodeDoubt::Shared(1))));
    let text = format!("{HEADING}{}\n", line(1, 0, 96, "600000"));
    let uncounted = imported(&text).nodes_seen(&[]);
    assert_eq!((uncounted.nodes, uncounted.doubt), (None, Some(NodeDoubt::NotCounted(1))));
}

/// By hand: nodes of the partition have 48 processors, since the largest job had 96 on two. The energy of a job on
/// half a node is that of others, too.
#[test]
fn shared_nodes() {
    let line = |id: u32, nodes: u32, cpus: u32| {
        let times = "2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:02:00";
        format!("{id}|{id}|al|COMPLETED|{times}|10|{nodes}|{cpus}|6000|x")
    };
    let lines = [line(1, 2, 96), line(2, 1, 24), line(3, 1, 48)];
    let import = sacct(&lines.each_ref().map(String::as_str));
    let intake = import.intake();
    assert_eq!((intake.exclusive, intake.shared, intake.power_of_others), (2, 1, 1));
    let powers: Vec<(u64, u64)> =
        import.powers().map(|(job, power)| (job, power.mean().unwrap().milliwatts())).collect();
    assert_eq!(powers, [(1, 100_000), (3, 100_000)]);
    // Nobody can say how many nodes were busy.
    assert_eq!((import.most_processors(), import.most_nodes()), (168, None));
}

#[test]
fn steps_find_their_jobs_wherever_they_stand() {
    let times = "2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:01:00";
    let import = sacct(&[
        &format!("2.0|2.0||COMPLETED|{times}||1|48|3000|a"),
        &format!("1|1|al|COMPLETED|{times}|10|1|48||x"),
        &format!("2|2|al|COMPLETED|{times}|10|1|48||x"),
        &format!("2.1|2.1||COMPLETED|{times}||1|48|18446744073709551614|a"),
        &format!("3.batch|3.batch||COMPLETED|{times}||1|48|3000|a"),
    ]);
    let powers: Vec<u64> = import.powers().map(|(job, _)| job).collect();
    assert_eq!(powers, [2]);
    assert_eq!(import.intake().steps_without_job, 1);
}

#[test]
fn times_have_zones() {
    let text = format!(
        "{HEADING}1|1|al|COMPLETED|2024-10-27T01:30:00|2024-10-27T02:30:00|2024-10-27T02:30:00+0100|10|1|48||x\n"
    );
    let options = Options { zone: Some("Europe/Berlin".to_owned()), ..Options::default() };
    let import = import(&text, options).unwrap();
    // From the first half past two to the second is an hour.
    assert_eq!(import.runs()[0].run_time().millis(), 3_600_000);
    let intake = import.intake();
    assert_eq!((intake.local_times, intake.offset_times, intake.twice_times), (2, 1, 1));
    let comments = import.comments(None);
    assert!(comments.contains(&"TimeZoneString: Europe/Berlin".to_owned()), "{comments:?}");
    assert!(comments.contains(&"UnixStartTime: 1729985400".to_owned()), "{comments:?}");
    let unknown = Options { zone: Some("Europe/Atlantis".to_owned()), ..Options::default() };
    let error = super::Importer::new(unknown).err().unwrap().to_string();
    assert!(error.contains("no time zone 'Europe/Atlantis'"), "{error}");
}

#[test]
fn mistakes_stop_an_import_that_is_strict() {
    let strict = |text: &str| {
        let options = Options { is_strict: true, ..Options::default() };
        import(text, options).unwrap_err().to_string()
    };
    let good =
        "1|1|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:01:00|10|1|48||x\n";
    for (line, why) in [
        ("2|2|al\n", "records.txt, line 3: 3 fields instead of 12"),
        (&good.replace("T12:01:00", "noon"), "line 3: field 'End': '2024-03-15noon' is not a time"),
        (&good.replace("1|1|", "x|x|"), "line 3: field 'JobID': 'x' is invalid"),
        (good, "1 jobs are in the records more than once"),
    ] {
        let error = strict(&format!("{HEADING}{good}{line}"));
        assert!(error.contains(why), "{error}");
    }
    // What is no defect stops nothing.
    let waits = good.replace("COMPLETED", "PENDING").replace("1|1|", "2|2|");
    let options = Options { is_strict: true, ..Options::default() };
    assert!(import(&format!("{HEADING}{good}{waits}"), options).is_ok());
}

#[test]
fn what_is_no_record_at_all() {
    let fails = |text: &str| import(text, Options::default()).unwrap_err().to_string();
    assert!(
        fails("hello\n").contains("records.txt, line 1: the format of these records is unknown")
    );
    assert!(fails("\n\n1 2 3\n").contains("line 3"));
    assert!(fails("JobID|State\n1|COMPLETED\n").contains("there is no column Submit"));
    assert!(fails(HEADING).contains("no run in the records"));
    assert!(fails("").contains("no run in the records"));
    let options = Options { format: Some(Format::Sacct), ..Options::default() };
    let error = import("1|2|3\n", options).unwrap_err().to_string();
    assert!(error.contains("there is no heading"), "{error}");
}

#[test]
fn a_log_of_pbs() {
    let job = "user=al group=staff account=\"my account\" jobname=heat_3 queue=workq ctime=1710504000 qtime=1710504000 \
        etime=1710504000 start=1710504060 exec_host=n1/0*36+n2/0*36 Resource_List.ncpus=72 Resource_List.nodect=2";
    let end = "Resource_List.walltime=01:00:00 end=1710504660 Exit_status=0 resources_used.walltime=00:10:00";
    let text = [
        "03/15/2024 12:00:00;Q;17.pbs;queue=workq".to_owned(),
        format!("03/15/2024 12:01:00;S;17.pbs;{job}"),
        format!("03/15/2024 12:11:00;E;17.pbs;{job} {end}"),
        format!(
            "03/15/2024 12:11:00;E;18[3].pbs;{job} {}",
            end.replace("Exit_status=0", "Exit_status=271")
        ),
        "03/15/2024 12:11:00;E;18[].pbs;user=al start=1710504060 end=1710504660 Exit_status=0"
            .to_owned(),
        format!("03/15/2024 12:11:00;R;19.pbs;{job} {end}"),
        "03/15/2024 12:11:00;R;20.pbs;user=al".to_owned(),
        "03/15/2024 12:11:00;L;license;floating license hour:1".to_owned(),
        format!("03/15/2024 12:11:00;E;21.pbs;{job} Resource_List.place=scatter:excl {end}")
            .replace("ncpus=72", "ncpus=2"),
        "03/15/2024 12:1".to_owned(),
    ];
    let import = imported(&text.join("\n"));
    assert_eq!(import.formats(), [Format::Pbs]);
    let found: Vec<(u64, u32, Ending)> =
        import.runs().iter().map(|run| (run.number(), run.processors(), run.ending())).collect();
    let expected = [
        (17, 72, Ending::Completed),
        (22, 72, Ending::Failed),
        (19, 72, Ending::Completed),
        (21, 72, Ending::Completed),
    ];
    assert_eq!(found, expected);
    assert_eq!(import.names().of(Kind::Group), ["my account"]);
    assert_eq!(import.names().of(Kind::Application), ["heat"]);
    let intake = import.intake();
    assert_eq!((intake.skipped_other, intake.skipped_malformed, intake.size_raised), (5, 1, 1));
    assert_eq!(import.most_nodes(), Some(8));
}

/// A job of LSF in the order of fields of IBM's documentation.
fn lsf(job: u32, index: u32, times: [u32; 3], hosts: &str, status: u32) -> String {
    let [submit, start, end] = times;
    format!(
        "\"JOB_FINISH\" \"10.1\" {end} {job} 1000 33554435 32 {submit} 0 0 {start} \"al\" \"normal\" \"\" \"\" \"\" \
         \"login\" \"work\" \"\" \"out\" \"\" \"1710504000.17\" 0 {hosts} {status} 60.0 \"heat \"\"3\"\"\" \"./heat 3\" \
         {usage} \"\" \"projectA\" 0 32 \"\" \"\" {index} 2048 0 \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" -1 \"/al\" \"\" \"\" \"\" -1 \"\" \"\" \
         4112 \"\" {start} \"\" \"a job\" 1 1032 \"0\" 1 \"hostA\" 0 0 0 0 0 3600 12 \"\"",
        usage = ["0"; 19].join(" ")
    )
}

#[test]
fn a_file_of_lsf() {
    let times = [1_710_504_000, 1_710_504_060, 1_710_504_660];
    let cut = lsf(21, 0, times, "1 \"hostA\"", 64);
    let text = [
        lsf(17, 0, times, "2 \"16*hostA\" \"16*hostB\"", 64),
        lsf(18, 4, times, "3 \"hostA\" \"hostA\" \"hostB\"", 32),
        lsf(19, 0, [1_710_504_000, 0, 1_710_504_660], "0", 32),
        "\"EVENT_ADRSV_FINISH\" \"10.1\" 1710504000".to_owned(),
        cut[..cut.len() / 2].to_owned(),
    ];
    let import = imported(&text.join("\n"));
    let found: Vec<(u64, u32, Option<u32>, Ending)> = import
        .runs()
        .iter()
        .map(|run| (run.number(), run.processors(), run.nodes(), run.ending()))
        .collect();
    assert_eq!(found, [(17, 32, Some(2), Ending::Completed), (18, 3, Some(2), Ending::Failed)]);
    let record = import.records().next().unwrap();
    assert_eq!((record.wait, record.run_time, record.requested_time), (60, 600, 3600));
    assert_eq!(import.names().of(Kind::Group), ["projectA"]);
    assert_eq!(import.names().of(Kind::Application), ["heat \"3\""]);
    let intake = import.intake();
    assert_eq!(
        (intake.skipped_never_started, intake.skipped_other, intake.skipped_malformed),
        (1, 1, 1)
    );
    assert_eq!(intake.limit_unknown, 0);
}

#[test]
fn a_table_of_pm100() {
    let text = "\
job_id,user_id,group_id,num_nodes_alloc,num_cores_alloc,submit_time,start_time,end_time,run_time,time_limit,job_state,partition,qos,node_power_consumption
7,3,1,2,256,2020-06-01 10:00:00+00:00,2020-06-01 10:00:10+00:00,2020-06-01 10:01:10+00:00,60,1440,COMPLETED,1,0,\"[1000, 1500, 1001]\"
8,3,1,1,128,2020-06-01 10:00:00+00:00,2020-06-01 10:00:10+00:00,2020-06-01 10:01:10+00:00,60,INFINITE,FAILED,1,0,[900 800]
9,4,1,1,128,2020-06-01 10:00:00+00:00,2020-06-01 10:00:10+00:00,2020-06-01 10:01:10+00:00,60,30,TIMEOUT,1,0,\"[900, ..., 800]\"
10,4,1,1,128,2020-06-01 10:00:00+00:00,2020-06-01 10:00:10+00:00,2020-06-01 10:01:10+00:00,60,30,COMPLETED,1,0,[]
";
    let import = imported(text);
    assert_eq!(import.formats(), [Format::Pm100]);
    let powers: Vec<(u64, Option<u64>, Option<u64>)> = import
        .powers()
        .map(|(job, power)| {
            let milliwatts = |watts: Option<Watts>| watts.map(Watts::milliwatts);
            (job, milliwatts(power.mean()), milliwatts(power.peak()))
        })
        .collect();
    let expected = [(7, Some(1_167_000), Some(1_500_000)), (8, Some(850_000), Some(900_000))];
    assert_eq!(powers, expected);
    let intake = import.intake();
    assert_eq!((intake.with_power, intake.power_unreadable, intake.limit_unknown), (2, 1, 1));
    assert_eq!(import.records().next().unwrap().requested_time, 86_400);
}

#[test]
fn a_table_of_fdata() {
    let text = "\
jid,usr,jnam,cnumr,cnumat,nnumr,nnuma,adt,sdt,edt,elpl,duration,econ,avgpcon,minpcon,maxpcon,exit state
jid_1,usr_1,jnam_1,96,96,2,2,2021-04-01 00:00:00,2021-04-01 00:01:00,2021-04-01 00:11:00,3600.0,600.0,33.3,200.25,180.0,240.0,completed
jid_2,usr_2,jnam_1,48,48,1,1,2021-04-01 00:00:00,2021-04-01 00:01:00,2021-04-01 00:11:00,3600.0,600.0,,,,,failed
";
    let import = imported(text);
    assert_eq!(import.formats(), [Format::Fdata]);
    // Their numbers are names, so they are counted from 1.
    let [first, second] = import.runs() else { panic!("{:?}", import.runs()) };
    assert_eq!((first.number(), second.number(), second.power()), (1, 2, None));
    let power = first.power().unwrap();
    assert_eq!(power.mean(), Some(Watts::from_milliwatts(200_250)));
    assert_eq!(power.peak(), Some(Watts::from_watts(240)));
}

#[test]
fn without_names_nothing_tells_who_it_was() {
    let line = "4711|4711|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:01:00|10|1|48||secret";
    let options = Options { is_anonymous: true, ..Options::default() };
    let import = import(&format!("{HEADING}{line}"), options).unwrap();
    assert_eq!(import.runs()[0].number(), 1);
    let comments = import.comments(Some("a.power.csv")).join("\n");
    for secret in ["4711", "secret", "records.txt"] {
        assert!(!comments.contains(secret), "{comments}");
    }
    assert!(comments.contains("BusbarPower: a.power.csv"), "{comments}");
}

#[test]
fn files_are_parts_of_one_whole() {
    let line = |id: u32| {
        format!(
            "{id}|{id}|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:01:00|10|1|48||x\n"
        )
    };
    let mut importer = Importer::new(Options::default()).unwrap();
    importer.read(format!("{HEADING}{}{}", line(1), line(2)).as_bytes(), "one").unwrap();
    importer.read(format!("{HEADING}{}{}", line(2), line(3)).as_bytes(), "two").unwrap();
    let import = importer.finish().unwrap();
    assert_eq!(import.runs().len(), 3);
    assert_eq!(import.intake().skipped_duplicate, 1);
    assert_adds_up(import.intake());
}

proptest! {
    /// Whatever stands in the records, nothing panics, and every record is accounted for.
    #[test]
    fn every_record_is_accounted_for(
        lines in prop::collection::vec("[0-9|]{0,3}[A-Z0-9_|:.+\\[-]{0,40}", 0..20),
        cuts in prop::collection::vec(0usize..120, 0..6),
    ) {
        let good = "17|17|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:00:00|2024-03-15T12:01:00|10|1|48|9|x\n";
        let pbs = "03/15/2024 12:11:00;E;17.s;user=a start=1710504060 end=1710504660 ctime=1 Resource_List.ncpus=1\n";
        let finish = lsf(1, 0, [10, 20, 30], "1 \"a\"", 64);
        for (format, sample) in [(Format::Sacct, good), (Format::Pbs, pbs), (Format::Lsf, &finish)] {
            let heading = if format == Format::Sacct { HEADING } else { "" };
            let cut = cuts.iter().map(|cut| &sample[..sample.len().min(*cut)]);
            let text: Vec<&str> = cut.chain(lines.iter().map(String::as_str)).collect();
            let text = format!("{heading}{sample}\n{}", text.join("\n"));
            let options = Options { format: Some(format), ..Options::default() };
            if let Ok(import) = import(&text, options) {
                let intake = import.intake();
                prop_assert_eq!(intake.records, intake.usable + intake.steps + intake.skipped());
                prop_assert_eq!(intake.usable, import.runs().len() as u64);
            }
        }
    }
}

/// Nodes and processors are never mixed: whoever has no processors among others that have some had whole nodes. By hand:
/// others had 96 on a node.
#[test]
fn sizes_are_of_one_unit() {
    let text = "JobID|State|Submit|Start|End|NNodes|AllocCPUS|Partition|ConsumedEnergyRaw\n\
                1|COMPLETED|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T10:10:00|2|192|cpu|60000\n\
                2|COMPLETED|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T10:10:00|3||cpu|90000\n\
                3|COMPLETED|2026-01-05T10:00:00|2026-01-05T10:00:00|2026-01-05T10:10:00|1||new|abc\n";
    let import = imported(text);
    let sizes: Vec<i64> = import.records().map(|record| record.requested_processors).collect();
    assert_eq!(sizes, [192, 288, 96]);
    let intake = import.intake();
    assert_eq!((intake.size_of_whole_nodes, intake.size_from_nodes), (2, 0));
    assert_eq!((intake.with_power, intake.power_unreadable, intake.shared), (2, 1, 0));
    assert_eq!(import.nodes_seen(&[]).doubt, None);
    let alone = imported(&text.replace("|192|", "||"));
    let sizes: Vec<i64> = alone.records().map(|record| record.requested_processors).collect();
    assert_eq!((sizes, alone.intake().size_from_nodes), (vec![2, 3, 1], 3));
}

/// What held jobs back: what their command lines say, and when they became eligible.
#[test]
fn the_structure_of_jobs_of_slurm() {
    let heading = "JobIDRaw|JobID|User|State|Submit|Eligible|Start|End|AllocCPUS|Reservation|JobName|SubmitLine";
    let row = |job: &str, user: &str, state: &str, eligible: &str, line: &str| {
        format!(
            "{job}|{user}|{state}|2024-03-15T12:00:00|2024-03-15T{eligible}|2024-03-15T13:00:00|2024-03-15T13:10:00|1||x|{line}"
        )
    };
    let lines = [
        heading.to_owned(),
        row("17|17", "al", "FAILED", "12:00:00", "sbatch a.sh"),
        row("18|18", "al", "COMPLETED", "12:30:00", "sbatch -d afternotok:17 a.sh"),
        row("19|19", "al", "COMPLETED", "12:40:00", "sbatch --begin=now+40minutes a.sh"),
        row("20|20", "al", "COMPLETED", "12:20:00", "sbatch --dependency=afterok:3 a.sh"),
        row("31|30_0", "al", "COMPLETED", "12:00:00", "sbatch --array=0-1%1 a.sh"),
        row("30|30_1", "al", "COMPLETED", "12:00:00", "sbatch --array=0-1%1 a.sh"),
        row(
            "32|32",
            "al",
            "COMPLETED",
            "12:00:00",
            "sbatch --dependency=afterany:30,singleton --nice=7 a.sh",
        ),
        // Nobody says why.
        row("33|33", "al", "COMPLETED", "12:10:00", ""),
    ];
    let records = imported(&lines.join("\n"));
    let log = records.workload("log").unwrap();
    let of = |number: u64| {
        let place = log.workload.jobs().iter().position(|job| job.number == number).unwrap();
        let known = log.workload.structures().of(busbar_core::units::JobId(place as u32));
        known.cloned().unwrap_or_default()
    };
    let minute = |minutes: u32| Some(busbar_core::units::Instant::from_secs(60 * minutes));
    let needs = |number: u64| of(number).needs.to_string();
    assert!(of(17).failed && !of(18).failed);
    assert_eq!(
        (needs(18), of(18).begin, of(18).eligible),
        ("afternotok:17".to_owned(), None, minute(30))
    );
    assert_eq!((needs(19), of(19).begin), (String::new(), minute(40)));
    // Job 3 is not among the records.
    assert_eq!((of(20).needs.is_empty(), of(20).begin, of(20).eligible), (false, None, minute(20)));
    let array = of(30).array.unwrap();
    assert_eq!((array.task, array.at_most, of(31).array.unwrap().array), (1, Some(1), array.array));
    assert_eq!(needs(32), format!("afterany:{},singleton", array.array));
    assert_eq!((of(32).nice, of(32).name), (7, of(17).name));
    assert_eq!((of(33).begin, of(33).needs.is_empty()), (minute(10), true));
    // Numbers that tell nothing are those of the jobs all the same.
    let hidden = Options { is_anonymous: true, ..Options::default() };
    let hidden = import(&lines.join("\n"), hidden).unwrap().workload("log").unwrap().workload;
    let second = hidden.structures().of(busbar_core::units::JobId(1)).unwrap();
    assert_eq!(second.needs.to_string(), format!("afternotok:{}", hidden.jobs()[0].number));
}

/// Records without such columns, or in which nobody was held back, say nothing of it.
#[test]
fn most_records_have_no_structure() {
    let import = sacct(&[
        "17|17|al|COMPLETED|2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:11:00|1-00:00:00|2|96||lmp_4",
        "18|18|al|FAILED|2024-03-15T12:00:00|2024-03-15T12:01:00|2024-03-15T12:11:00|1-00:00:00|2|96||lmp_4",
    ]);
    assert!(import.workload("log").unwrap().workload.structures().is_empty());
}
