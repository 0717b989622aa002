use super::*;
use crate::budget::Allowance;
use crate::experiment::Figure;

fn read_text(text: &str) -> Result<Experiment, String> {
    let chain = |error: ExperimentError| format!("{error}: {}", error.why);
    parse(text, Path::new("exp.toml"), &[]).map_err(chain)
}

#[test]
fn what_is_left_out_is_the_default() {
    let empty = read_text("").unwrap();
    let usual = Experiment::default();
    assert_eq!(empty.policies, usual.policies);
    assert_eq!(empty.budgets, usual.budgets);
    assert_eq!(empty.workloads, usual.workloads);
    assert_eq!(empty.seeds, [1, 2, 3]);
}

#[test]
fn every_key_is_read_and_what_is_written_is_read_again() {
    let text = "\
title = \"a 'title'\"
policies = [\"easy\", \"pb-guided(lower=50%, beta=known)\"]
budgets = [
    \"60%\",
    \"none\",
    \"weekdays 14:00-18:00 nov..feb: 80%, else 100%\",
]
workloads = [\"lublin(jobs=10)\"]
seeds = [7, 9]
machine = \"cab\"
nodes = [64, 128]
profiles = \"cab\"
allow = \"caps,sizes\"
believe = \"exact\"
guard = \"5%\"
applications = \"names.csv\"
start = \"2026-11-02 00:00 Europe/Berlin\"
price = \"prices.csv:DE repeat\"
carbon = \"weekdays: 450g/kWh, else 380g/kWh\"
demand_charge = \"12EUR/kW\"
window = \"cuts\"
jobs = \"2..\"
enforce_limits = true
bsld_threshold = \"60 s\"
rank_by = \"energy\"
";
    let experiment = read_text(text).unwrap();
    assert_eq!(experiment.policies[1].to_string(), "pb-guided(lower=50%, beta=known)");
    assert_eq!(experiment.budgets[1].value, BudgetSpec::Constant(Allowance::Unlimited));
    let place = Place::Line { file: "exp.toml".into(), line: 5 };
    assert_eq!(experiment.budgets[1].place, place);
    assert_eq!(experiment.seeds, [7, 9]);
    assert_eq!(experiment.machine.as_ref().unwrap().value.machine, Machine::cab());
    assert_eq!(experiment.nodes[1].value, 128);
    assert_eq!(experiment.rules.allow.to_string(), "caps,sizes");
    assert_eq!(experiment.rules.believe.unwrap().to_string(), "exact");
    assert_eq!(experiment.rules.guard, Share::percent(5));
    assert!(experiment.applications.is_some());
    let rules = "weekdays 14:00-18:00 nov..feb: 80%, else 100%";
    assert_eq!(experiment.budgets[2].value.to_string(), rules);
    assert_eq!(experiment.budget_name(2), rules);
    let start = experiment.start.as_ref().unwrap().to_string();
    assert_eq!(start, "2026-11-02T00:00:00+01:00[Europe/Berlin]");
    let tariff = &experiment.tariff;
    assert_eq!(tariff.price.as_ref().unwrap().to_string(), "prices.csv:DE repeat");
    assert!(tariff.carbon.is_some() && tariff.demand.is_some());
    assert_eq!(experiment.window, Some(WindowSpec::Cuts));
    assert_eq!(experiment.jobs, Some(2..usize::MAX));
    assert!(experiment.enforce_limits);
    assert_eq!(experiment.bsld_threshold, Span::from_secs(60));
    assert_eq!(experiment.rank_by, Figure::Energy);
    let written = write(&experiment);
    assert_eq!(write(&read_text(&written).unwrap()), written);
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (text, what) in [
        ("seeds = 2\npolices = []", "exp.toml, line 2: unknown field `polices`, expected one of"),
        ("policies = [\n  \"easy\",\n  \"eazy\",\n]", "exp.toml, line 3: unknown policy 'eazy'"),
        ("policies = [\"easy(x=1)\"]", "exp.toml, line 1: policy 'easy' has no parameter 'x'"),
        ("policies = []", "exp.toml, line 1: the list is empty"),
        (
            "\nbudgets = [\"80\"]",
            "exp.toml, line 2: budget '80': '80' has no unit; did you mean 80%",
        ),
        (
            "\nbudgets = [\"80%\",\n80]",
            "exp.toml, line 3: invalid type: integer `80`, expected text in",
        ),
        ("workloads = [\"gone.swf\"]", "exp.toml, line 1: workload 'gone.swf': no such file"),
        ("workloads = [\"-\"]", "exp.toml, line 1: standard input"),
        ("\n\nmachine = \"gone.toml\"", "exp.toml, line 3: cannot read the machine file"),
        ("seeds = 0", "exp.toml, line 1: 0 seeds; write 1 to"),
        ("seeds = []", "exp.toml, line 1: the list is empty"),
        ("seeds = [1, -1]", "exp.toml, line 1: invalid value: integer `-1`"),
        ("seeds = \"5\"", "expected a number of seeds, such as 5, or a list"),
        ("nodes = [-4]", "exp.toml, line 1: invalid value: integer `-4`"),
        ("jobs = \"5\"", "exp.toml, line 1: write a range"),
        ("bsld_threshold = \"0s\"", "exp.toml, line 1: the threshold must be above zero"),
        ("budgets = [\"weekdays: 80%\"]", "line 1: budget: no rule applies on Saturday"),
        ("\nstart = \"2026-01-01\"", "line 2: '2026-01-01' has no time zone"),
        ("price = \"450g/kWh\"", "line 1: '450g/kWh' is not a valid price"),
        ("demand_charge = \"12\"", "line 1: '12' is not a demand charge"),
        ("window = \"sometimes\"", "line 1: 'sometimes' is not a time"),
        ("rank_by = \"speed\"", "valid: turnaround, wait, p99_wait"),
        ("seeds = = 3", "exp.toml, line 1: "),
    ] {
        let error = read_text(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
        assert!(error.starts_with("exp.toml, line "), "{text}: {error}");
    }
}

#[test]
fn paths_are_seen_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("feed.csv"), "0,60%\n").unwrap();
    std::fs::write(folder.path().join("exp.toml"), "budgets = ['feed.csv']").unwrap();
    let experiment = read(&folder.path().join("exp.toml")).unwrap();
    let path = folder.path().join("feed.csv");
    assert_eq!(experiment.budgets[0].value, BudgetSpec::File(path));
}
