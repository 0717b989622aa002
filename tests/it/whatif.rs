//! What a budget would have done to records that are small enough to be worked out by hand.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use busbar_needs::needs;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::devtools::{Browser, Looks};

const HEADING: &str = "JobID|User|Account|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|JobName";

/// Two nodes. Each job takes ten minutes on one of them, at 100 W. Anna and the first task of Ben's array come at noon; the
/// task waited for half a minute. The other task comes an hour later. What follows is not to be counted.
const RECORDS: &[&str] = &[
    "100|anna|physics|cpu|COMPLETED|2026-01-05T12:00:00|2026-01-05T12:00:00|2026-01-05T12:10:00|00:20:00|1|4|60000|a",
    "7_1|ben|chem|cpu|COMPLETED|2026-01-05T12:00:00|2026-01-05T12:00:30|2026-01-05T12:10:30|00:20:00|1|4|60000|b",
    "7_2|ben|chem|gpu|COMPLETED|2026-01-05T13:00:00|2026-01-05T13:00:00|2026-01-05T13:10:00|00:20:00|1|4|60000|b",
    "103|anna|physics|cpu|PENDING|2026-01-05T13:00:00|Unknown|Unknown|00:20:00|1|4||a",
    "104|anna|physics|cpu|RUNNING|2026-01-05T13:00:00|2026-01-05T13:00:00|Unknown|00:20:00|1|4||a",
    "105|anna|physics|cpu|COMPLE",
];

/// A node draws 100 W, within 8 %, and 20 W if it is idle: 65 % of both, 130 W, are enough for one job at a time.
const MACHINE: &str =
    "nodes = 2\nprocessors_per_node = 4\n[power]\nnode = \"100W\"\nidle = \"20W\"\n";

fn site() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let records = [&[HEADING], RECORDS].concat().join("\n") + "\n";
    fs::write(folder.path().join("records.txt"), records).unwrap();
    fs::write(folder.path().join("site.toml"), MACHINE).unwrap();
    folder
}

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
    command.arg("whatif").args(["--no-cache", "--policy", "easy-power"]).args(arguments);
    command.current_dir(folder).output().unwrap()
}

fn text(arguments: &[&str], folder: &Path) -> String {
    let output = busbar(arguments, folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn answer(arguments: &[&str], folder: &Path) -> Value {
    serde_json::from_str(&text(&[arguments, &["--json"]].concat(), folder)).unwrap()
}

fn mistake(arguments: &[&str], folder: &Path) -> String {
    let output = busbar(arguments, folder);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// The words of the line of a table that begins with a name.
fn line<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let found = text.lines().find(|line| line.trim_start().starts_with(name));
    let found = found.unwrap_or_else(|| panic!("no line '{name}' in\n{text}"));
    found.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
}

const BUDGET: &[&str] = &["--sacct", "records.txt", "--machine", "site.toml", "--budget", "65%"];

/// By hand: under the budget Ben's first task waits until Anna's job is over, ten minutes, and nobody else waits. So
/// Ben's two tasks wait five minutes in the mean, and all three jobs 200 s.
#[test]
fn users_accounts_and_partitions_have_names_and_differences() {
    let folder = site();
    let with_out = [BUDGET, &["--out", "out"]].concat();
    let text = text(&with_out, folder.path());
    assert_eq!(line(&text, "ben"), ["ben", "2", "15.0 s", "0.0 s", "5.0 min", "+5.0 min"]);
    assert_eq!(line(&text, "anna"), ["anna", "1", "0.0 s", "0.0 s", "0.0 s", "0.0 s"]);
    assert_eq!(line(&text, "chem"), ["chem", "2", "15.0 s", "0.0 s", "5.0 min", "+5.0 min"]);
    assert_eq!(line(&text, "cpu"), ["cpu", "2", "15.0 s", "0.0 s", "5.0 min", "+5.0 min"]);
    let lead = "On 5 January 2026, under a budget of 65%, jobs would have waited 3.3 min on average instead of 0.0 s \
                (+3.3 min), under the site";
    assert!(text.starts_with(lead), "{text}");

    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    let json: Value = serde_json::from_str(&read("whatif.json")).unwrap();
    let waits = &json["waits"];
    assert_eq!([&waits["before"], &waits["after"]], ["easy, no budget", "easy, budget"]);
    let ben = &waits["by_user"][0];
    assert_eq!([&ben["name"], &waits["by_account"][0]["name"]], ["ben", "chem"]);
    let figures = ["jobs", "before_mean_wait_s", "after_mean_wait_s", "difference_s"];
    assert_eq!(
        figures.map(|key| &ben[key]),
        [&json!(2), &json!(0.0), &json!(300.0), &json!(300.0)]
    );
    assert_eq!(ben["runs"][0]["mean_wait_s"], 15.0);
    let partitions: Vec<&Value> =
        waits["by_partition"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert_eq!(partitions, ["cpu", "gpu"]);

    let jobs = read("jobs.csv");
    let jobs: Vec<&str> = jobs.lines().collect();
    assert_eq!(
        jobs[0],
        "job,user,account,partition,submitted,submit_s,nodes,run_s,wait_as_recorded_s,wait_no_budget_s,wait_budget_s,\
         difference_s,state,wait_easy-power_s"
    );
    // The task is what Slurm calls it, and not the number that it has in a log.
    let task = "7_1,ben,chem,cpu,2026-01-05T12:00:00+00:00[UTC],0,1,600,30,0,600,600,completed,";
    assert!(jobs[2].starts_with(task), "{jobs:#?}");
    assert!(jobs[1].starts_with("100,anna,physics,cpu,") && jobs.len() == 4, "{jobs:#?}");

    let page = read("report.html");
    let opening = page.split("<main>").nth(1).unwrap().trim_start();
    assert!(opening.starts_with(&format!("<p class=\"lead\">{lead}")), "{opening:.300}");
    for heading in ["<h2>Mean wait by user</h2>", "<h2>Mean wait by account</h2>"] {
        assert!(page.contains(heading));
    }
    assert!(page.contains("<th scope=\"row\">ben</th><td>2</td><td>15.0 s</td><td>0.0 s</td><td>5.0 min</td><td>+5.0 min</td>"));
    // What happened, and what would have without a budget, are shown with the policies, without a rank.
    let case = page.split("<section class=\"case\"").nth(1).unwrap();
    for reference in ["as recorded", "easy, no budget"] {
        let row =
            case.lines().find(|line| line.contains("class=\"rank\"") && line.contains(reference));
        assert!(
            row.is_some_and(|row| row.starts_with("<tr class=\"aside\">")),
            "{reference}: {row:?}"
        );
    }
    assert_eq!(page.matches("<section class=\"case\"").count(), 1);
    assert!(page.contains("<th scope=\"col\">difference under easy-power</th>"));
}

#[test]
fn numbers_stand_for_names_only_if_that_is_asked_for() {
    let folder = site();
    let text = text(&[BUDGET, &["--anonymise", "--out", "out"]].concat(), folder.path());
    assert_eq!(line(&text, "user 2"), ["user 2", "2", "15.0 s", "0.0 s", "5.0 min", "+5.0 min"]);
    assert_eq!(line(&text, "account 2")[5], "+5.0 min");
    let mut all = text;
    for file in ["whatif.json", "report.html", "jobs.csv"] {
        all += &fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    }
    for name in ["anna", "physics", "7_1"] {
        assert!(!all.contains(name), "{name}");
    }
    let jobs = fs::read_to_string(folder.path().join("out/jobs.csv")).unwrap();
    assert!(jobs.lines().nth(2).unwrap().starts_with("2,user 2,account 2,1,"), "{jobs}");
}

#[test]
fn records_that_were_left_out_are_counted_with_their_reasons() {
    let folder = site();
    let said = "note: of 6 records, 3 were left out, and nothing here counts them: 1 malformed, 1 never started, 1 still \
                running at the end of the records\n";
    let text = text(BUDGET, folder.path());
    assert!(text.contains(said), "{text}");
    let piped = mistake(&["--sacct", "-", "--machine", "site.toml"], folder.path());
    assert!(piped.contains("--sacct: standard input can be read only once"), "{piped}");
    let records = &answer(BUDGET, folder.path())["records"];
    assert_eq!([&records["records"], &records["usable"], &records["skipped_malformed"]], [6, 3, 1]);
    // The other commands read the same records, and say the same; without a machine file, that of the records.
    let of_records = "the machine is that of the records: 2 nodes of 4 processors";
    let utc = "the local times of the records are UTC";
    for command in [
        &["simulate"][..],
        &["compare", "--seeds", "1"],
        &["plan", "--seeds", "1"],
        &["workload", "info"],
    ] {
        let mut busbar = Command::new(env!("CARGO_BIN_EXE_busbar"));
        busbar.args(command).arg("records.txt").current_dir(folder.path());
        busbar.env("XDG_CACHE_HOME", folder.path());
        let output = busbar.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        for said in ["of 6 records, 3 were left out", utc] {
            assert!(text.contains(said), "{command:?}: {said}: {text}");
        }
        assert!(command[0] == "workload" || text.contains(of_records), "{command:?}: {text}");
    }
}

/// By hand: the job without a wait is left out, and the others waited 0 s and 60 s.
#[test]
fn jobs_without_a_recorded_wait_are_counted_and_the_others_are_shown() {
    let folder = site();
    let log = "; MaxProcs: 4\n\
               1 0 0 600 2 -1 -1 2 900 -1 1 1 1 1 1 1 -1 -1\n\
               2 0 -1 600 2 -1 -1 2 900 -1 1 1 1 1 1 1 -1 -1\n\
               3 900 60 600 4 -1 -1 4 900 -1 1 2 1 1 1 1 -1 -1\n";
    fs::write(folder.path().join("log.swf"), log).unwrap();
    let arguments = ["--workload", "log.swf", "--machine", "site.toml", "--budget", "90%"];
    let text = text(&arguments, folder.path());
    assert_eq!(line(&text, "as recorded")[1], "30.0 s", "{text}");
    let note = "note: jobs without a recorded start: 1 of 3; 'as recorded' excludes them and their energy\n";
    assert!(text.contains(note) && !text.contains("does not say when jobs started"), "{text}");
    assert!(!text.contains("within the budget at all times"), "{text}");
    let json = answer(&arguments, folder.path());
    let recorded = &json["rows"][0];
    assert_eq!([&recorded["what"], &json["start_unknown"]], [&json!("as recorded"), &json!(1)]);
    assert_eq!([&recorded["jobs"], &recorded["completed"], &recorded["unfinished"]], [2, 2, 0]);
    fs::write(
        folder.path().join("log.swf"),
        log.replace(" 0 0 600", " 0 -1 600").replace(" 900 60 ", " 900 -1 "),
    )
    .unwrap();
    let none = self::text(&arguments, folder.path());
    assert!(none.contains("note: the log does not say when jobs started"), "{none}");
}

/// By hand: at noon two jobs ran at once, each on one node of four processors, at 60 000 J in 600 s.
#[test]
fn without_a_machine_file_the_records_are_asked_and_nothing_is_made_up() {
    let folder = site();
    let arguments = ["--sacct", "records.txt", "--budget", "80%"];
    let json = answer(&arguments, folder.path());
    let machine = &json["machine"];
    assert_eq!([&machine["nodes"], &machine["processors_per_node"]], [2, 4]);
    assert_eq!(
        [&machine["node_power_w"], &machine["known_by"]],
        [&json!(100.0), &json!("records")]
    );
    let text = text(&arguments, folder.path());
    // 160 W are not enough for the 200 W that both drew for nine and a half minutes.
    assert!(
        text.contains("exceeded the budget for at least 9.5 min, by a peak of at least 40.0 W"),
        "{text}"
    );
    assert!(
        text.contains("note: the machine is that of the records: 2 nodes of 4 processors"),
        "{text}"
    );
    let enough = self::text(&["--sacct", "records.txt", "--budget", "100%"], folder.path());
    assert!(
        enough.contains("the known power, 200.0 W at most, was within the budget;"),
        "{enough}"
    );
    assert!(!enough.contains("within the budget at all times"), "{enough}");

    // Nobody knows what a node draws.
    let unmeasured = [&[HEADING], RECORDS].concat().join("\n").replace("|60000|", "||");
    fs::write(folder.path().join("unmeasured.txt"), unmeasured).unwrap();
    let error = mistake(&["--sacct", "unmeasured.txt"], folder.path());
    assert!(error.contains("no job on whole nodes has a measured energy"), "{error}");
    assert!(
        error.contains("busbar machine init --nodes 2 --processors 4 --node-power …W"),
        "{error}"
    );

    // The built-in jobs have a number of processors, and no power.
    let assumed = self::text(&["--workload", "demo", "--budget", "80%"], folder.path());
    assert!(!assumed.contains("within the budget at all times"), "{assumed}");
    assert!(assumed.contains("The power of its nodes is assumed"), "{assumed}");
    let error = mistake(&["--workload", "demo", "--budget", "20kW"], folder.path());
    assert!(error.contains("a limit in watts needs a machine whose power is known"), "{error}");
}

#[test]
fn a_budget_whose_cuts_fall_elsewhere_says_so() {
    let folder = site();
    let under = |budget: &str| {
        let arguments = ["--sacct", "records.txt", "--machine", "site.toml", "--budget", budget];
        text(&arguments, folder.path())
    };
    let summer = under("jun..aug: 65%, else 100%");
    let none = "The budget has no cut during these records, on 5 January 2026: the rule 'jun..aug: 65%' never \
    applies then, and the limit is 200.0 W all the time. ";
    assert!(summer.starts_with(none), "{summer}");
    let past = under("2020-01-05: 65%, else 100%");
    assert!(past.contains("the rule '2020-01-05: 65%' never applies then"), "{past}");
    let one_of_two = under("12:00-13:00: 65%, jun..aug: 80%, else 100%");
    let note = "note: the rule 'jun..aug: 80%' of the budget never applies during these records, on 5 January 2026\n";
    assert!(one_of_two.contains(note) && !one_of_two.contains("no cut"), "{one_of_two}");
    fs::write(
        folder.path().join("summer.csv"),
        "time,budget\n2026-01-01 00:00,100%\n2026-06-01 00:00,65%\n",
    )
    .unwrap();
    let rows = under("summer.csv");
    assert!(rows.starts_with("The budget has no cut during these records"), "{rows}");
    // It never falls, but it is always low.
    let low = under("jun..aug: 50%, else 65%");
    assert!(low.starts_with("The limit does not change during these records"), "{low}");
    let held = under("12:00-13:00: 65%, else 100%");
    assert!(!held.contains("no cut") && !held.contains("never applies"), "{held}");
}

/// By hand: in the hour of the cut both jobs of noon start in any case, but with a limit one after the other.
#[test]
fn the_hours_of_a_cut_are_compared_with_the_same_hours_without_it() {
    let folder = site();
    let arguments = [
        "--sacct",
        "records.txt",
        "--machine",
        "site.toml",
        "--window",
        "cuts",
        "--budget",
        "12:00-13:00: 65%, else 100%",
    ];
    let text = text(&arguments, folder.path());
    let cuts = text.split("In the cuts\n").nth(1).unwrap_or_else(|| panic!("{text}"));
    let columns = |name: &str| -> Vec<String> {
        let words = line(cuts, name);
        [1, 5, 6, 7].map(|place| words[place].to_owned()).to_vec()
    };
    assert_eq!(columns("as recorded"), ["60.0 min", "2", "2", "15.0 s"]);
    assert_eq!(columns("easy, no budget"), ["60.0 min", "2", "2", "0.0 s"]);
    assert_eq!(columns("easy, budget"), ["60.0 min", "2", "2", "5.0 min"]);
    // The same energy, and half the power at once.
    let peak = |name: &str| line(cuts, name)[3].trim_end_matches(" W").parse::<f64>().unwrap();
    assert!(peak("easy, no budget") > 180.0 && peak("easy, budget") < 130.0, "{cuts}");
    let constant = self::text(&[BUDGET, &["--window", "cuts"]].concat(), folder.path());
    assert!(constant.contains("note: --window cuts: the budget never changes"), "{constant}");
}

/// The page shows what happened and what would have without a budget in its charts, compares jobs with that at once, and
/// calls a task of an array what Slurm calls it.
#[needs(chromium)]
#[test]
fn the_page_compares_with_what_happened() {
    let mut browser = Browser::start();
    let folder = site();
    text(&[BUDGET, &["--out", "out"]].concat(), folder.path());
    for looks in [Looks::DESK, Looks::PHONE] {
        browser.open(&folder.path().join("out/report.html"), looks);
        let shown = browser.evaluate(
            "Array.from(document.querySelectorAll('.policy[aria-pressed=true]'), (button) => button.textContent)",
        );
        let names = ["as recorded", "easy, no budget", "easy, budget", "easy-power, budget"];
        assert_eq!(shown, json!(names));
        let chosen =
            |id: &str| format!("document.getElementById('{id}').selectedOptions[0].textContent");
        assert_eq!(browser.evaluate(&chosen("differences-from")), "easy, no budget");
        assert_eq!(browser.evaluate(&chosen("differences-to")), "easy, budget");
        let row = "Array.from(document.querySelectorAll('#differences-table tbody tr')[0].cells, (cell) => cell.textContent)";
        let row = browser.evaluate(row);
        let cells = [&row[0], &row[3], &row[4], &row[5]];
        assert_eq!(cells, ["7_1", "0.0 s", "10.0 min", "+ 10.0 min"]);
        let width = browser.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert!(width.as_f64() <= Some(0.0), "{width}");
        browser.picture("whatif.png");
    }
    assert_eq!(browser.complaints(), [""; 0]);
}
