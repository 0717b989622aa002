//! What `busbar plan` answers: one machine with what it costs, or none with the reason.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::busbar;

/// A plan for 64 nodes with this under it, as JSON.
fn plan(more: &[&str], folder: &Path) -> Value {
    let usual =
        ["plan", "-w", "lublin(jobs=120, processors=64, load=0.6)", "--policy", "easy-power"];
    let arguments = [&usual[..], &["--seeds", "1", "--json"], more].concat();
    serde_json::from_str(&busbar(&arguments, folder).unwrap()).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// With nodes and energy for nothing, what remains is twelve times the charge for the highest quarter of an hour of a
/// month. That is no less than what the machine draws in the mean, and no more than it may draw at all.
#[test]
fn the_charge_of_a_month_is_paid_twelve_times_a_year() {
    let folder = tempfile::tempdir().unwrap();
    // The second date is two days before the end of a month, so that the runs touch two.
    for start in ["2026-01-02 00:00 UTC", "2026-01-30 00:00 UTC"] {
        let prices = ["--node-price", "0EUR", "--price", "0EUR/kWh", "--demand-charge", "10EUR/kW"];
        let plan = plan(&[&prices[..], &["--start", start]].concat(), folder.path());
        let places = plan["map"]["places"].as_array().unwrap().iter();
        let places: Vec<&Value> = places.filter(|place| !place["work_nodes"].is_null()).collect();
        assert!(places.len() > 10, "{plan}");
        for place in places {
            let a_year = |watts: &Value| 12.0 * 10.0 * number(watts) / 1000.0;
            let cost = number(&place["cost_per_year"]);
            assert!(cost >= 0.999 * a_year(&place["mean_power_w"]), "{start}: {place}");
            assert!(cost <= 1.001 * a_year(&place["budget_w"]), "{start}: {place}");
        }
    }
}

/// The machine that is recommended is under the budget that was asked about, has a price, and is the one that is
/// marked everywhere.
#[test]
fn the_answer_is_one_machine_with_its_price() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("9000EUR", "0.25EUR/kWh", "60%"),
        ("100EUR", "0.9EUR/kWh", "60%"),
        ("9000EUR", "0.25EUR/kWh", "90%"),
    ];
    for (nodes, energy, budget) in cases {
        let prices =
            ["--node-price", nodes, "--price", energy, "--budget", budget, "--out", "plan"];
        let plan = plan(&prices, folder.path());
        let machine = &plan["recommended"];
        assert_eq!(machine["budget_w"], plan["budget_w"], "{plan}");
        let map = &plan["map"];
        let place = &map["places"][map["recommended"].as_u64().unwrap() as usize];
        for key in ["nodes", "budget_w", "cost_per_year", "work_nodes"] {
            assert_eq!(machine[key], place[key], "{key}");
        }
        let sentence = plan["recommendation"].as_str().unwrap();
        let cost = number(&machine["cost_per_year"]);
        assert!(sentence.contains(&format!("take {} nodes", machine["nodes"])), "{sentence}");
        assert!(sentence.contains(&format!("at {cost:.0} EUR a year")), "{sentence}");
        // No other machine does more for the money under this budget, of those that keep up with the log; if none does,
        // no other does more at all.
        let keeps_up = |place: &Value| number(&place["load"]) <= 1.0;
        let worth = |place: &Value| match machine["by"].as_str().unwrap() {
            "work_for_money" => number(&place["work_nodes"]) / number(&place["cost_per_year"]),
            "work" => number(&place["work_nodes"]),
            other => panic!("{other}"),
        };
        assert_eq!(keeps_up(place), machine["by"] == "work_for_money", "{place}");
        let places = map["places"].as_array().unwrap().iter();
        for other in places.filter(|other| other["budget_w"] == plan["budget_w"]) {
            let is_complete = number(&other["undone"]) <= number(&place["undone"]);
            if is_complete && keeps_up(other) == keeps_up(place) {
                assert!(worth(other) <= worth(place), "{other} does more than {place}");
            }
            assert!(keeps_up(place) || !is_complete || !keeps_up(other), "{other} keeps up");
        }
        // The files mark the same machine, and no other.
        for (name, column) in [("nodes.csv", 0), ("map.csv", 0)] {
            let rows = fs::read_to_string(folder.path().join("plan").join(name)).unwrap();
            let marked: Vec<&str> = rows.lines().filter(|row| row.ends_with(",true")).collect();
            assert_eq!(marked.len(), 1, "{name}: {rows}");
            let first = marked[0].split(',').nth(column).unwrap();
            assert_eq!(first.parse::<f64>().unwrap(), number(&machine["nodes"]), "{name}");
        }
        let page = fs::read_to_string(folder.path().join("plan/report.html")).unwrap();
        assert!(page.contains(sentence.trim_end_matches('.')), "{sentence}");
        assert!(page.contains("Throughput with a full queue"));
    }
}

/// Under a budget that is enough for all jobs at once, any number of nodes is as good as any other.
#[test]
fn nothing_is_recommended_where_nothing_can_be_told() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&["--budget", "4MW", "--out", "plan"], folder.path());
    assert_eq!(plan["recommended"], Value::Null);
    let sentence = plan["recommendation"].as_str().unwrap();
    assert!(
        sentence.starts_with("No number of nodes is recommended: 4.00 MW supply 40000"),
        "{plan}"
    );
    let rows = fs::read_to_string(folder.path().join("plan/nodes.csv")).unwrap();
    assert!(rows.lines().skip(1).all(|row| row.ends_with(",false")), "{rows}");
    assert!(folder.path().join("plan/report.html").exists());
}

/// A price by the calendar needs a date, which generated workloads do not have.
#[test]
fn a_price_by_the_calendar_takes_a_start() {
    let folder = tempfile::tempdir().unwrap();
    let price = "weekdays 07:00-20:00: 0.32EUR/kWh, else 0.24EUR/kWh";
    let arguments = ["plan", "--policy", "easy", "--seeds", "1", "--price", price];
    let refused = busbar(&arguments, folder.path()).unwrap_err();
    assert!(refused.contains("--start"), "{refused}");
    let dated = [&arguments[..], &["--start", "2026-01-05 00:00 Europe/Berlin", "--json"]].concat();
    let plan: Value = serde_json::from_str(&busbar(&dated, folder.path()).unwrap()).unwrap();
    let machine = &plan["recommended"];
    // A year of the recommended machine, at a price between the two.
    let most = number(&plan["budget_w"]) / 1000.0 * 24.0 * 365.25 * 0.32;
    let cost = number(&machine["power_cost_per_year"]);
    assert!(cost > 0.1 * most && cost <= most, "{cost} of at most {most}");
    assert_eq!(plan["currency"], "EUR");
    assert!(plan["recommendation"].as_str().unwrap().contains("power costs"), "{plan}");
}
