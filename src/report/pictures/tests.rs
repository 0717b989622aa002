//! The pictures as text: that each is there, is well formed, and has what it should have.

use super::*;
use crate::budget::BudgetSpec;
use crate::machine::Machine;
use crate::reproduce::papers;
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::workload::demo::demo;

fn digest(workload: &Workload, policy: &str, keep_power: bool) -> Digest {
    let machine = Machine::of_processors(256).unwrap();
    let budget = "80%".parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let spec = policy.parse().unwrap();
    let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
    let new = Scenario::new(&machine, workload, spec, model.as_ref());
    let scenario = Scenario { budget, keep_power, ..new };
    let run = scenario.simulate().run;
    Digest::of(&scenario.context(policy), &run, &scenario.summary(&run))
}

/// Every tag that opens closes, in order.
fn is_well_formed(svg: &str) -> bool {
    let mut open = Vec::new();
    for tag in svg.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
        } else if !tag.ends_with('/') {
            open.extend(tag.split_whitespace().next());
        }
    }
    open.is_empty()
}

#[test]
fn every_picture_is_there() {
    let mut workload = demo();
    workload.slice(0..300);
    let runs = [digest(&workload, "easy", true), digest(&workload, "pb-guided(beta=known)", true)];
    let drawn = pictures(&runs);
    let names: Vec<&str> = drawn.iter().map(|picture| picture.name.as_str()).collect();
    let expected = [
        "power.svg",
        "utilisation.svg",
        "queue.svg",
        "waits.svg",
        "slowdowns.svg",
        "energy.svg",
        "schedule-1-easy.svg",
        "schedule-2-pb-guided-beta-known.svg",
    ];
    assert_eq!(names, expected);
    for Picture { name, svg } in &drawn {
        assert!(is_well_formed(svg), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
    // One rectangle a bar, one behind everything, and one for each class of the key.
    let rectangles = drawn[6].svg.matches("<rect").count();
    assert_eq!(rectangles, runs[0].bars.job.values().len() + 1 + 6);
    assert_eq!(pictures(&runs), drawn);
}

/// Two cases: each has a folder.
#[test]
fn cases_are_kept_apart() {
    let mut workload = demo();
    workload.slice(0..50);
    let run = digest(&workload, "easy", true);
    let other = Digest { budget: "half of it (12.8 kW)".to_owned(), ..run.clone() };
    let names: Vec<String> = pictures(&[run, other]).into_iter().map(|drawn| drawn.name).collect();
    assert_eq!(names.len(), 14);
    assert_eq!(names[0], "1-demo-20-48-kW/power.svg");
    assert_eq!(names[13], "2-demo-half-of-it-12-8-kW/schedule.svg");
}

#[test]
fn nothing_is_drawn_as_nothing() {
    let none = digest(&Workload::new("none", []), "easy", true);
    for Picture { name, svg } in pictures(&[none]).into_iter().chain(pictures(&[])) {
        assert!(is_well_formed(&svg), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}: {svg}");
    }
    let mut workload = demo();
    workload.slice(0..20);
    let unkept = pictures(&[digest(&workload, "easy", false)]);
    assert!(unkept[0].svg.contains("was not recorded"));
}

/// Who ran first under one budget has the same colour under another, where somebody else comes first.
#[test]
fn a_policy_has_one_colour() {
    let mut workload = demo();
    workload.slice(0..50);
    let runs = ["easy", "fcfs"].map(|policy| digest(&workload, policy, true));
    let other = Digest { budget: "another".to_owned(), ..runs[1].clone() };
    let [easy, fcfs] = runs;
    let drawn = pictures(&[easy, fcfs, other]);
    let energy: Vec<&Picture> =
        drawn.iter().filter(|picture| picture.name.ends_with("energy.svg")).collect();
    let has = |picture: &Picture| COLOURS.map(|colour| picture.svg.contains(colour));
    assert_eq!(has(energy[0])[..3], [true, true, false]);
    assert_eq!(has(energy[1])[..3], [false, true, false]);
}
