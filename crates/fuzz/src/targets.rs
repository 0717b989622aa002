//! A target for each parser. What is read must also be written, resolved or read again, where that is what comes next.

use std::cell::RefCell;
use std::fmt::{Debug, Display};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::str::FromStr;

use busbar::agent::{config as agent_config, wire as agent_wire};
use busbar::budget::{Allowance, BudgetSpec, Limit, Limits, TimeBase};
use busbar::calendar::{Calendar, Condition, RunDates};
use busbar::heterogeneity::{Site, Tables};
use busbar::live::server::socket::frame::{Lines, line_of, parse};
use busbar::live::wire::{RefusalKind, Reply, Sent};
use busbar::machine::Machine;
use busbar::policy::PolicySpec;
use busbar::profile::csv::{Layout, Sheet};
use busbar::slurm::calls::Reading;
use busbar::slurm::commands::Commands;
use busbar::slurm::hosts::HostList;
use busbar::slurm::json::Answer;
use busbar::slurm::program::Programs;
use busbar::slurm::record::{Recording, format};
use busbar::slurm::rest::{Address, Rest};
use busbar::slurm::site::SiteReader;
use busbar::slurm::{tasks as slurm_tasks, text as slurm_text, version as slurm_version, words};
use busbar::solve::file::{Program, lp};
use busbar::tariff::{parse_carbon, parse_outdoor, parse_price};
use busbar::units::{Instant, Joules, Length, Share, Watts};
use busbar::utility::Utilities;
use busbar::variation::csv::Table;
use busbar::variation::runs::Runs;
use busbar::workload::Source;
use busbar::workload::essc::Tasks;
use busbar::workload::records::{Format, Importer, Options};
use busbar::workload::swf::{self, BadRecords, SwfError};

use crate::engine::{Place, Target};
use crate::examples::{files, quoted, texts};

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "swf", examples: swf_examples, run: swf_log },
    Target { name: "swf-packed", examples: packed_examples, run: packed_log },
    Target {
        name: "sacct",
        examples: sacct_examples,
        run: |_, input| import(Format::Sacct, input),
    },
    Target {
        name: "sacct-json",
        examples: sacct_json_examples,
        run: |_, input| import(Format::Sacct, input),
    },
    Target { name: "pbs", examples: pbs_examples, run: |_, input| import(Format::Pbs, input) },
    Target { name: "lsf", examples: lsf_examples, run: |_, input| import(Format::Lsf, input) },
    Target {
        name: "pm100",
        examples: tables_of_jobs,
        run: |_, input| import(Format::Pm100, input),
    },
    Target {
        name: "fdata",
        examples: tables_of_jobs,
        run: |_, input| import(Format::Fdata, input),
    },
    Target { name: "machine-file", examples: machine_files, run: machine_file },
    Target { name: "machine", examples: machines, run: |_, input| text(input, Machine::from_text) },
    Target { name: "budget", examples: budgets, run: budget },
    Target { name: "budget-file", examples: budget_files, run: budget_file },
    Target { name: "calendar", examples: calendars, run: calendar },
    Target { name: "tariff", examples: tariffs, run: tariff },
    Target { name: "tariff-file", examples: tariff_files, run: tariff_file },
    Target { name: "policy", examples: policies, run: policy },
    Target { name: "workload", examples: workloads, run: workload },
    Target { name: "profiles", examples: profile_files, run: profiles },
    Target { name: "variation", examples: variation_files, run: variation },
    Target { name: "variation-runs", examples: run_files, run: variation_runs },
    Target { name: "utilities", examples: utility_files, run: utilities },
    Target { name: "tasks", examples: task_files, run: tasks },
    Target { name: "program", examples: programs, run: program },
    Target { name: "experiment", examples: experiments, run: experiment },
    Target { name: "daemon-config", examples: daemon_configs, run: daemon_config },
    Target { name: "agent-config", examples: agent_configs, run: agent_config },
    Target { name: "requests", examples: requests, run: request_lines },
    Target { name: "replies", examples: replies, run: reply },
    Target { name: "agent-messages", examples: agent_messages, run: agent_message },
    Target { name: "slurm-jobs", examples: slurm_jobs, run: slurm_job_list },
    Target { name: "slurm-texts", examples: slurm_texts, run: slurm_listings },
    Target { name: "slurm-json", examples: slurm_answers, run: slurm_answer },
    Target { name: "slurm-site", examples: slurm_sites, run: slurm_site },
    Target { name: "slurm-recording", examples: slurm_indices, run: slurm_recording },
    Target { name: "slurmrestd", examples: rest_answers, run: rest_answer },
    Target { name: "slurm-words", examples: slurm_phrases, run: slurm_words },
    Target { name: "quantities", examples: quantities, run: quantity },
    Target { name: "job-arrays", examples: arrays, run: array },
];

/// What came of something, in words.
fn told<T, E: Display>(result: Result<T, E>) -> String {
    match result {
        Ok(_) => "it is read".to_owned(),
        Err(error) => {
            let said = error.to_string();
            assert!(!said.is_empty(), "an error says what is wrong");
            said
        }
    }
}

/// The same of an error that has its reasons behind it.
fn told_why<T, E: std::error::Error>(result: Result<T, E>) -> String {
    let mut said = String::new();
    if let Err(error) = &result {
        let mut reason = error.source();
        while let Some(why) = reason {
            said += &why.to_string();
            reason = why.source();
        }
    }
    said + &told(result)
}

/// What a reader of texts makes of bytes; those that are no text do not get to it.
fn text<T, E: Display>(input: &[u8], read: impl FnOnce(&str) -> Result<T, E>) -> String {
    match std::str::from_utf8(input) {
        Ok(text) => told(read(text)),
        Err(_) => "no text".to_owned(),
    }
}

/// What is read is written, and read again as the same.
fn round_trip<T>(input: &str) -> String
where
    T: FromStr<Err: Display> + Display + PartialEq + Debug,
{
    let read = input.parse::<T>();
    if let Ok(value) = &read {
        let written = value.to_string();
        match written.parse::<T>() {
            Ok(again) => assert_eq!(again, *value, "'{written}'"),
            Err(error) => panic!("'{written}' was written and is not read: {error}"),
        }
    }
    told(read)
}

const FILE: &str = "file.csv";

fn swf_examples() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd"], &[".swf"]);
    all.extend(quoted(&["crates/workloads/src/swf/tests.rs"]));
    all
}

fn swf_log(_: &Place, input: &[u8]) -> String {
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

fn packed_examples() -> Vec<Vec<u8>> {
    let pack = |log: Vec<u8>| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&log).expect("memory can be written to");
        packed.finish().expect("memory can be written to")
    };
    files(&["tests/cmd"], &[".swf"]).into_iter().map(pack).collect()
}

fn packed_log(place: &Place, input: &[u8]) -> String {
    told(swf::read_path(place.file("log.swf.gz", input), BadRecords::Skip))
}

fn import(format: Format, input: &[u8]) -> String {
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

fn sacct_examples() -> Vec<Vec<u8>> {
    let mut all =
        files(&["crates/workloads/src/records/sacct/json/samples", "examples"], &[".txt"]);
    all.extend(quoted(&["crates/workloads/src/records/tests.rs"]));
    all
}

fn sacct_json_examples() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/workloads/src/records/sacct/json/samples"], &[".json"]);
    all.push(br#"{"jobs":[{"job_id":7,"name":"a","user":"u","account":"x","partition":"p","nodes":"n[1-2]","state":{"current":["COMPLETED"]},"time":{"submission":1710504000,"start":1710504060,"end":1710504660,"elapsed":600,"limit":{"set":true,"number":60}},"tres":{"allocated":[{"type":"cpu","count":8},{"type":"node","count":2}],"requested":[]},"steps":[]}],"errors":[]}"#.to_vec());
    all
}

fn pbs_examples() -> Vec<Vec<u8>> {
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

fn lsf_examples() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\"JOB_FINISH\" \"10.1\" 1710504660 101 1001 33554438 4 1710504000 0 0 1710504060 \"alice\" \"batch\" \"span[hosts=1]\" \"\" \"\" \
         \"host\" \"/home\" \"\" \"out\" \"\" \"1710504000.101\" 0 1 \"n1\" 64 100.0 \"a\" \"sleep 600\" 0.1 0.2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 \
         0 0 \"\" \"default\" 0 4 \"\" \"\" 0 0 0 \"\" \"\" \"\" \"\" 0 \"\" 0 \"\" -1 \"\" \"\" \"\" \"\" -1 \"\" \"\" 5136 \"\" 1710504000 \"\" \"\" 0\n",
    ]);
    all.extend(quoted(&["crates/workloads/src/records/tests.rs"]));
    all
}

fn tables_of_jobs() -> Vec<Vec<u8>> {
    quoted(&["crates/workloads/src/records/tests.rs", "crates/workloads/src/records/dataset.rs"])
}

fn machine_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd", "examples"], &[".toml"]);
    all.extend(texts(&[
        "nodes = 8\ncores_per_node = 4\nnode_power = \"100W\"\nidle_power = \"20W\"\nmin_cap = \"40W\"\ncap_steps = 6\nbase_power = \"1kW\"\n",
        "nodes = 8\nname = \"lab\"\n[[partition]]\nname = \"a\"\nnodes = 4\n[[partition]]\nname = \"b\"\nnodes = 4\n",
        "nodes = 4\nsockets_per_node = 2\n[[gear]]\nfrequency = \"2.3GHz\"\npower = \"100W\"\n[off]\npower = \"2W\"\nstart = \"60s\"\nstop = \"30s\"\n",
    ]));
    all
}

fn machine_file(place: &Place, input: &[u8]) -> String {
    told(Machine::from_file(&place.file("machine.toml", input)))
}

fn machines() -> Vec<Vec<u8>> {
    texts(&[
        "64",
        "cab",
        "demo",
        "catalyst(processors=12, seed=3)",
        "cab(nodes=100)",
        "machine.toml",
        "curves.csv",
        "curves.csv:8",
    ])
}

fn budgets() -> Vec<Vec<u8>> {
    texts(&[
        "60%",
        "15.36 kW",
        "1.2MW",
        "100%, 5GJ per day",
        "weekdays 14:00-18:00: 80%, else 100%",
        "Sat, Sun 22:00-06:00: 3kW; 2026-12-24..2026-12-26: 50%; else unlimited",
        "unlimited",
        "50W + 3%",
        "feed.csv",
        "every 15 min: 5kWh",
        "Jan-Mar: 10kW\nelse: 20kW",
    ])
}

fn budget(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let spec = match text.parse::<BudgetSpec>() {
        Ok(BudgetSpec::File(_)) => return "a file".to_owned(),
        other => other,
    };
    let Ok(spec) = spec else { return told(spec) };
    let written = spec.to_string();
    assert_eq!(written.parse::<BudgetSpec>().ok(), Some(spec.clone()), "'{written}'");
    let machine = Machine::of_processors(64).expect("a machine");
    let dates = dates();
    told(spec.resolve_on(&machine, &dates))
}

/// A year of which dates are known.
fn dates() -> RunDates {
    let calendar = "2026-01-01T00:00:00+01:00[Europe/Berlin]".parse::<Calendar>();
    RunDates {
        calendar: Ok(calendar.expect("a start")),
        until: Instant::from_secs(366 * 24 * 3600),
    }
}

fn budget_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd"], &["feed.csv", "budget.csv", "limits.csv"]);
    all.extend(texts(&[
        "time,budget\n0,60%\n3600,80%\n7200,15.36kW\n",
        "time,budget\n2026-01-01T00:00:00,60%\n2026-01-02 12:00,80%\n2026-01-03T00:00:00Z,3kW\n",
        "weekdays 14:00-18:00: 80%\nelse: 100%\n",
        "0,60%\n10:30,80%\n",
    ]));
    all
}

fn budget_file(_: &Place, input: &[u8]) -> String {
    let machine = Machine::of_processors(64).expect("a machine");
    let dates = dates();
    let calendar = dates.calendar.as_ref().expect("dates are known");
    let zone = calendar.zone();
    let bases = [TimeBase::Log(Ok(zone)), TimeBase::Wall(zone)];
    let all =
        bases.map(|base| text(input, |text| Limits::parse(text, Path::new(FILE), &machine, &base)));
    all.concat()
}

fn calendars() -> Vec<Vec<u8>> {
    texts(&[
        "1996-09-23T14:00:31+02:00[Europe/Stockholm]",
        "2026-01-01",
        "2026-03-29T02:30 Europe/Berlin",
        "851779231 UTC",
        "weekdays 14:00-18:00",
        "Sat, Sun",
        "2026-12-24..2026-12-26",
        "22:00-06:00",
        "Jan-Mar weekends 10:00-12:30",
        "every 2nd day",
        "21.5",
        "2026-11-15 22:00",
    ])
}

fn calendar(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let rules = busbar::budget::parse_rules(text);
    let when = busbar::calendar::When::parse(text).map(|_| ());
    round_trip::<Calendar>(text)
        + &round_trip::<Condition>(text)
        + &told(rules)
        + if when.is_ok() { "a time" } else { "no time" }
}

fn tariffs() -> Vec<Vec<u8>> {
    texts(&[
        "0.32EUR/kWh",
        "450g/kWh",
        "weekdays 7:00-20:00: 0.40EUR/kWh, else 25ct/kWh",
        "120EUR/kW",
        "prices.csv:price repeat",
        "21.5C",
        "Jun-Aug: 25C, else 8C",
        "-3.5C",
        "12.5 $/MWh",
        "0.3 GBP per kWh",
    ])
}

fn tariff(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    // Files have a target of their own.
    if text.contains(".csv") {
        return "a file".to_owned();
    }
    let (dates, begin, end) = (dates(), Instant::ZERO, Instant::from_secs(1_000_000));
    let rates = [parse_price(text), parse_carbon(text)].map(|spec| match spec {
        Ok(spec) => told(spec.resolve(&dates, begin, end)),
        Err(error) => told(Err::<(), _>(error)),
    });
    let outdoor = match parse_outdoor(text) {
        Ok(spec) => told(spec.resolve(&dates, begin, end)),
        Err(error) => told(Err::<(), _>(error)),
    };
    rates.concat() + &outdoor + &told(text.parse::<busbar::tariff::DemandCharge>())
}

fn tariff_files() -> Vec<Vec<u8>> {
    texts(&[
        "time,price\n2026-01-01T00:00:00Z,0.30 EUR/kWh\n2026-01-01T01:00:00Z,0.25 EUR/kWh\n",
        "time,price_eur_per_mwh\n2026-01-01T00:00,85.3\n2026-01-01T01:00,-4\n2026-01-01T02:00,\n",
        "seconds,g/kWh\n0,400\n3600,380\n7200,100\n",
        "Date;Price [EUR/MWh]\n01.01.2026 00:00;85,3\n01.01.2026 01:00;-4,0\n",
    ])
}

fn tariff_file(place: &Place, input: &[u8]) -> String {
    let path = place.file(FILE, input);
    let dates = dates();
    let forms = ["", " repeat", ":price"].map(|form| {
        match parse_price(&format!("{}{form}", path.display())) {
            Ok(spec) => told(spec.resolve(&dates, Instant::ZERO, Instant::from_secs(7000))),
            Err(error) => told(Err::<(), _>(error)),
        }
    });
    forms.concat()
}

fn policies() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        PolicySpec::all().into_iter().map(|policy| policy.to_string().into_bytes()).collect();
    all.extend(texts(&[
        "easy(order=aged(7s))",
        "pb-guided(lower=2, upper=4, threshold=600s)",
        "parm(window=10, guard=60s, rigid)",
        "share(use=measured, predict=last)",
        "external(python3 first_fit.py, limit=10s, wants=caps+sizes, believes=rated)",
        "utility(heuristic=max, every=60s)",
        "rmap-adaptive(order=aged)",
        "ppartition(sharing=equal)",
        "uniform(cap=60W)",
    ]));
    all.extend(quoted(&["crates/core/src/policy/spec.rs"]));
    all
}

fn policy(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    round_trip::<PolicySpec>(text)
}

fn workloads() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "demo",
        "lublin(jobs=20, load=0.9, seed=3)",
        "lublin(jobs=5, kind=batch)",
        "rmap(jobs=9, seed=1)",
        "cab(jobs=10)",
        "swf(log.swf, enlarge=20%)",
        "records(file=sacct.txt, zone=Europe/Berlin)",
        "essc(jobs=10)",
        "log.swf[100..200]",
    ]);
    all.extend(quoted(&["crates/workloads/src/source.rs"]));
    all
}

fn workload(_: &Place, input: &[u8]) -> String {
    text(input, str::parse::<Source>)
}

fn profile_files() -> Vec<Vec<u8>> {
    let mut all =
        files(&["tests/cmd", "examples"], &["profiles.csv", "rows.csv", "measurements.csv"]);
    all.extend(texts(&[
        "application,nodes,cores,cap_w,time_s,power_w,origin\nEP,1,1,40,2,80,predicted\nEP,1,1,100,1,200,predicted\n",
        "application,nodes,cores,cap_w,time_s,energy_j\nLU,2,16,60,100.5,22000\n\"LU, big\",2,16,80,90.25,25000\n",
        "application;nodes;cores;cap;time;power\nCG;4;24;120W;3min;400W\n",
    ]));
    all
}

fn profiles(_: &Place, input: &[u8]) -> String {
    let layout = Layout::new(Vec::new(), Vec::new()).expect("a layout without renamed columns");
    let sheet = Sheet::decode(input, Path::new(FILE), &layout);
    if let Ok(sheet) = &sheet {
        let _ = sheet.profiles();
    }
    told(sheet)
}

fn variation_files() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd", "examples"], &["curves.csv"]);
    all.extend(texts(&[
        "processor,application,cap_w,power_w,ips\n1,EP,50,50,1000\n1,EP,80,80,1500\n2,EP,50,50,900\n2,EP,80,79,1450\n",
        "processor,cap_w,power_w,ips\n1,50,50,1000\n1,80,80,1500\n",
    ]));
    all
}

fn variation(_: &Place, input: &[u8]) -> String {
    text(input, |text| Table::parse(text, Path::new(FILE)))
}

fn run_files() -> Vec<Vec<u8>> {
    texts(&[
        "processor,application,cap,power,ips\ngpu-1,sgemm,300W,290,1000\ngpu-2,sgemm,300W,295,980\n",
        "processor,application,cap,power,time\na,EP,50,49,12.5\na,EP,60,58,11.0\nb,EP,50,50,12.7\n",
    ])
}

fn variation_runs(_: &Place, input: &[u8]) -> String {
    text(input, |text| -> Result<(), String> {
        let runs =
            Runs::parse(text, Path::new(FILE), &[], &[]).map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        let _ = busbar::variation::csv::write_relative(&mut written, runs.measurements());
        Ok(())
    })
}

fn utility_files() -> Vec<Vec<u8>> {
    texts(&[
        "high,0,8,0\nhigh,60,4,0.1\nhigh,600,0,0\nlow,0,1,0\n",
        "gold,0,10,0.5\ngold,10.5,3,0\n",
    ])
}

fn utilities(_: &Place, input: &[u8]) -> String {
    text(input, |text| -> Result<(), String> {
        let read = Utilities::parse(text, Path::new(FILE)).map_err(|error| error.to_string())?;
        let mut written = Vec::new();
        read.write(&mut written).expect("memory can be written to");
        let written = String::from_utf8(written).expect("a text");
        let again = Utilities::parse(&written, Path::new(FILE));
        assert!(again.is_ok(), "{written}");
        Ok(())
    })
}

/// The files of a folder, with a line between them.
const BETWEEN: &str = "\n----\n";

fn task_files() -> Vec<Vec<u8>> {
    let four = [
        "cpu,2,general\ngpu,1,special\n",
        "x,cpu,0,10,100\nx,cpu,1,20,60\nx,gpu,0,5,200\ny,cpu,0,8,90\n",
        "high,0,8,0.1\nhigh,60,4,0\nlow,0,1,0\n",
        "1,0,x,high\n2,3.5,y,low\n",
    ];
    texts(&[&four.join(BETWEEN)])
}

fn tasks(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let mut parts = text.split(BETWEEN);
    let [machines, entries, utilities, tasks] =
        std::array::from_fn(|_| parts.next().unwrap_or_default());
    let path = Path::new(FILE);
    let (tables, utilities) =
        (Tables::parse((machines, path), (entries, path)), Utilities::parse(utilities, path));
    let (Ok(tables), Ok(utilities)) = (&tables, &utilities) else {
        return told(tables) + &told(utilities);
    };
    let site = Site { tables: tables.clone().into(), utilities: utilities.clone().into() };
    told(Tasks::parse(tasks, path, "tasks", site))
}

fn programs() -> Vec<Vec<u8>> {
    texts(&[
        r#"{"nodes":8,"power":"800W","jobs":[{"name":"a","configurations":[{"nodes":2,"power":"200W","value":3.5},{"nodes":4,"power":"350W","value":5}]},{"configurations":[{"nodes":1,"power":"90W","value":1}]}]}"#,
        r#"{"nodes":4,"power":400,"jobs":[{"name":"b","required":true,"configurations":[{"nodes":1,"power":100,"value":2}]}]}"#,
    ])
}

fn program(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let program = Program::from_json(text)?;
        lp::write(&mut Vec::new(), &program).expect("memory can be written to");
        program.instance().map(|_| ())
    })
}

fn experiments() -> Vec<Vec<u8>> {
    let mut all = files(&["tests/cmd/compare.in", "examples/snakemake"], &[".toml"]);
    all.extend(texts(&[
        "title = \"a\"\npolicies = [\"easy\", \"share\"]\nbudgets = [\"60%\", \"80%\"]\nworkloads = [\"lublin(jobs=20)\"]\nmachine = \"64\"\nseeds = 2\n",
        "policies = [{ name = \"e\", value = \"easy\" }]\nseeds = [1, 5, 9]\nfigure = \"turnaround\"\nworld = \"paper\"\n",
    ]));
    all
}

fn experiment(place: &Place, input: &[u8]) -> String {
    told_why(busbar::experiment::file::read(&place.file("experiment.toml", input)))
}

fn daemon_configs() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/live/src/server/config"], &[".toml"]);
    // The template has every key, behind a mark.
    let plain = |template: &Vec<u8>| {
        let text = String::from_utf8_lossy(template);
        let lines = text.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if rest.contains(" = ") || rest.starts_with('[') => rest.trim_start(),
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n").into_bytes()
    };
    all.extend(all.iter().map(plain).collect::<Vec<_>>());
    all.extend(texts(&[
        "machine = \"8\"\nbudget = \"60%\"\npolicy = \"easy\"\nperiod = \"1s\"\n[limits]\nconnections = 10\n[jobs]\numask = \"027\"\nulimits = { nofile = 200, cpu = \"77:88\" }\n",
        "machine = \"8\"\nengine = \"slurm\"\n[slurm]\nmode = \"steer\"\n[web]\nlisten = \"127.0.0.1:7411\"\n[agents]\nnodes = [{ name = \"n1\", address = \"n1:7410\" }]\n",
    ]));
    all
}

fn daemon_config(place: &Place, input: &[u8]) -> String {
    told_why(busbar::live::server::config::Config::load(&place.file("busbar.toml", input)))
}

fn agent_configs() -> Vec<Vec<u8>> {
    let mut all = files(&["crates/agent/src/config"], &[".toml"]);
    all.extend(texts(&[
        "node = \"n1\"\nstate = \"state\"\nperiod = \"1s\"\nsocket = \"socket\"\n[caps]\ndomains = [\"package\"]\nsafe = \"60W\"\nlease = \"60s\"\n[hardware]\npowercap = \"tree\"\n",
    ]));
    all
}

fn agent_config(place: &Place, input: &[u8]) -> String {
    told(agent_config::Config::load(&place.file("agent.toml", input)))
}

fn requests() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\x07\"status\"\n",
        "\x30{\"show\":{\"job\":7}}\n\"queue\"\n",
        "\x05{\"budget\":{\"set\":\"60%\"}}\n",
        "\x7f{\"protocol\":\"2.0\",\"history\":{\"job\":null,\"after\":0,\"limit\":10}}\n",
        "\x10{\"cancel\":{\"jobs\":[1,2,3]}}\n{\"hold\":{\"jobs\":[1]}}\n{\"release\":{\"jobs\":[1]}}\n",
        "\x20{\"forecast\":{\"budget\":[{\"after\":60000,\"limit\":\"500W\"}],\"policy\":\"share\",\"percent\":50}}\n",
        "\x40{\"submit\":{\"wish\":{\"nodes\":2,\"time\":60000,\"name\":\"a\",\"held\":true},\"command\":[\"true\"],\"folder\":\"/\",\"environment\":[]}}\n",
    ]);
    all.extend(quoted(&["crates/live/src/server/socket/tests.rs"]));
    all
}

/// The first byte says how long the pieces are in which the rest arrives.
fn request_lines(_: &Place, input: &[u8]) -> String {
    const LIMIT: usize = 4096;
    let Some((piece, bytes)) = input.split_first() else { return "nothing".to_owned() };
    let (mut lines, mut answer) = (Lines::new(LIMIT), String::new());
    for piece in bytes.chunks(usize::from(*piece) + 1) {
        lines.push(piece);
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(oversized) => {
                    assert_eq!(oversized.limit, LIMIT);
                    return answer + "too long";
                }
            };
            assert!(line.len() <= LIMIT && !line.contains(&b'\n'));
            match parse(&line) {
                Ok(request) => {
                    let written =
                        serde_json::to_vec(&Sent::new(&request)).expect("a request can be written");
                    assert_eq!(parse(&written).expect("and read again"), request);
                    answer += "a request";
                }
                Err(refusal) => {
                    assert!(!refusal.message.is_empty());
                    answer += &refusal.message;
                    let is_malformed = refusal.kind == RefusalKind::Malformed;
                    answer += if is_malformed { "malformed" } else { "refused" };
                    let line = line_of(&Reply::Error(refusal));
                    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
                }
            }
        }
    }
    answer
}

fn replies() -> Vec<Vec<u8>> {
    texts(&[
        "\"stopping\"",
        "{\"error\":{\"kind\":\"malformed\",\"message\":\"no\"}}",
        "{\"queue\":[]}",
        "{\"submitted\":{\"job\":7,\"remark\":null}}",
        "{\"done\":[{\"job\":7,\"refusal\":null}]}",
        "{\"history\":[]}",
        "{\"budget\":{\"limit\":100000}}",
    ])
}

fn reply(_: &Place, input: &[u8]) -> String {
    let read = serde_json::from_slice::<Reply>(input);
    if let Ok(reply) = &read {
        let line = line_of(reply);
        assert_eq!(serde_json::from_slice::<Reply>(&line).ok().as_ref(), Some(reply));
    }
    told(read)
}

fn agent_messages() -> Vec<Vec<u8>> {
    let mut all = texts(&[
        "\"read\"",
        "{\"number\":1,\"read\":null}",
        "{\"set\":{\"caps\":{\"node\":120000},\"lease\":60000}}",
        "{\"watch\":{\"period\":1000}}",
        "{\"sample\":{\"at\":1,\"domains\":[]}}",
        "{\"answer\":{\"number\":1}}",
        "\"release\"",
        "{\"hello\":{\"protocol\":\"1.0\",\"name\":\"a\"}}",
    ]);
    all.extend(quoted(&["crates/agent/src/wire.rs"]));
    all
}

fn agent_message(_: &Place, input: &[u8]) -> String {
    told(serde_json::from_slice::<agent_wire::Numbered>(input))
        + &told(serde_json::from_slice::<agent_wire::Request>(input))
        + &told(serde_json::from_slice::<agent_wire::Message>(input))
}

const RECORDED: &str = "crates/slurm/recorded";

fn slurm_jobs() -> Vec<Vec<u8>> {
    files(&[RECORDED], &["jobs.txt", "elements.txt"])
}

fn slurm_job_list(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let jobs = format().read(text);
    listed(&jobs.read, &jobs.unread)
}

/// Whether anything was read, and what was not.
fn listed<T: Debug, U: Debug>(read: &[T], unread: &[U]) -> String {
    format!("{} {:?}", if read.is_empty() { "none" } else { "some" }, unread.first())
}

fn slurm_texts() -> Vec<Vec<u8>> {
    files(
        &[RECORDED],
        &["nodes.txt", "partitions.txt", "licences.txt", "reservations.txt", "configuration.txt"],
    )
}

fn slurm_listings(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let (nodes, partitions) = (slurm_text::nodes(text), slurm_text::partitions(text));
    let (licences, reservations) = (slurm_text::licences(text), slurm_text::reservations(text));
    listed(&nodes.read, &nodes.unread)
        + &listed(&partitions.read, &partitions.unread)
        + &listed(&licences.read, &licences.unread)
        + &listed(&reservations.read, &reservations.unread)
}

fn slurm_answers() -> Vec<Vec<u8>> {
    files(
        &[RECORDED],
        &["jobs.json", "nodes.json", "partitions.json", "licences.json", "reservations.json"],
    )
}

fn slurm_answer(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let answer = Answer::read("an answer", text)?;
        let _ = (answer.complaint(), answer.version(), answer.error_numbers());
        let jobs = answer.jobs().map(|jobs| listed(&jobs.read, &jobs.unread));
        let nodes = answer.nodes().map(|nodes| listed(&nodes.read, &nodes.unread));
        let _ = (answer.partitions(), answer.licences(), answer.reservations());
        jobs.and(nodes).map(|_| ())
    })
}

fn slurm_sites() -> Vec<Vec<u8>> {
    let recorded =
        files(&[RECORDED], &["nodes.txt", "partitions.txt", "nodes.json", "partitions.json"]);
    let configuration = "ClusterName=alps\nNodeName=DEFAULT CPUs=64 RealMemory=1000\nNodeName=c[1-9] Feature=ib \\\n  Gres=gpu:2\n\
        NodeSet=fast Feature=ib\nPartitionName=all Nodes=ALL\nPartitionName=fast Nodes=fast\nSwitchName=s1 Nodes=c[1-4]\n\
        NodeName=c1 Name=gpu Type=a100 File=/dev/nvidia[0-1]\n";
    [recorded, vec![configuration.as_bytes().to_vec()]].concat()
}

fn slurm_site(_: &Place, input: &[u8]) -> String {
    text(input, |text| {
        let mut reader = SiteReader::default();
        reader.read("a description", text)?;
        reader.finish(&[]).map(|_| ())
    })
}

fn slurm_indices() -> Vec<Vec<u8>> {
    files(&[RECORDED], &["index.json"])
}

fn slurm_recording(place: &Place, input: &[u8]) -> String {
    place.file("index.json", input);
    let recording = Recording::read(&place.path(""));
    if let Ok(recording) = &recording {
        let _ = recording.answer(Reading::Jobs);
    }
    told(recording)
}

fn rest_answers() -> Vec<Vec<u8>> {
    texts(&[
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"errors\": [] } ",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"errors\r\n7;x=y\r\n\": [] }\r\n0\r\n\r\n",
        "HTTP/1.1 401 UNAUTHORIZED\r\nConnection: close\r\n\r\nAuthentication failure",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    ])
}

/// An answer of slurmrestd, from a socket. The client asks again and again while it agrees on a version, and gets the same.
fn rest_answer(place: &Place, input: &[u8]) -> String {
    thread_local!(static LISTENER: RefCell<Option<(std::path::PathBuf, UnixListener)>> = const { RefCell::new(None) });
    LISTENER.with_borrow_mut(|listener| {
        let path = place.path("socket");
        if listener.as_ref().is_none_or(|(of, _)| *of != path) {
            *listener =
                Some((path.clone(), UnixListener::bind(&path).expect("a socket can be made")));
        }
        let (path, listener) = listener.as_ref().expect("it was made");
        let address: Address = path.display().to_string().parse().expect("an address");
        let rest = Rest::new(address, None, Commands::new(Programs::default()));
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while let Ok((mut stream, _)) = listener.accept() {
                    if is_over.load(std::sync::atomic::Ordering::Acquire) {
                        return;
                    }
                    let mut request = [0; 4096];
                    let _ = stream.read(&mut request);
                    // Who has read enough closes the connection.
                    let _ = stream.write_all(input);
                }
            });
            let agreed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rest.parser()));
            is_over.store(true, std::sync::atomic::Ordering::Release);
            drop(std::os::unix::net::UnixStream::connect(path));
            match agreed {
                Ok(agreed) => told(agreed),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    })
}

fn slurm_phrases() -> Vec<Vec<u8>> {
    texts(&[
        "n[1-3,7],m[01-10]x",
        "n1",
        "rack[1-2]node[001-004]",
        "busbar app=EP slowdown=30% nodes=2-8 malleable",
        "busbar app=ep",
        "1-5,7%3",
        "101_[1-10:2%4]",
        "slurm 23.11.4",
        "26.05.3",
        "22.05.8-pre1",
        "/run/slurmrestd.sock",
        "http://localhost:6820",
        "http://[::1]:6820",
    ])
}

fn slurm_words(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    let hosts = text.parse::<HostList>();
    if let Ok(hosts) = &hosts {
        let again: HostList = hosts.to_string().parse().expect("what was written is read");
        assert!(again.is_same_set(hosts), "{hosts}");
    }
    told(hosts)
        + &told(words::Words::read(text))
        + &told(text.parse::<slurm_tasks::Tasks>())
        + &told(text.parse::<slurm_version::Version>())
        + &told(text.parse::<Address>())
}

fn quantities() -> Vec<Vec<u8>> {
    texts(&[
        "15.36 kW",
        "100W",
        "1.5MW",
        "42mW",
        "5GJ",
        "3.6kWh",
        "60%",
        "0.5 %",
        "10min",
        "1.5 h",
        "3d",
        "90s",
        "250ms",
        "21.5C",
        "2-8",
        "+caps",
        "caps,sizes",
        "idle for 300s, keep 1 spare",
        "0.5x",
        "unlimited",
        "100%, 5GJ per day",
    ])
}

fn quantity(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    round_trip::<Watts>(text)
        + &round_trip::<Joules>(text)
        + &round_trip::<Share>(text)
        + &round_trip::<Allowance>(text)
        + &told(text.parse::<Length>())
        + &told(text.parse::<Limit>())
        + &told(text.parse::<busbar::job::NodeRange>())
        + &told(text.parse::<busbar::job::Weight>())
        + &told(text.parse::<busbar::job::Tolerance>())
        + &told(text.parse::<busbar::freedom::Freedoms>())
        + &told(text.parse::<busbar::switching::SwitchOff>())
        + &told(text.parse::<busbar::budget::WindowSpec>())
}

fn arrays() -> Vec<Vec<u8>> {
    texts(&[
        "1-10",
        "1-10:2",
        "1-10%3",
        "1,5,7-9",
        "7.3",
        "12.[1-4]",
        "22:00: 60%; 06:00: 100%",
        "0-3,8",
        "0-63:2",
    ])
}

fn array(_: &Place, input: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(input) else { return "no text".to_owned() };
    told(text.parse::<busbar::live::job::ArraySpec>())
        + &told(text.parse::<busbar::live::control::schedule::ScheduleSpec>())
}
