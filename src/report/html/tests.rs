//! The page as text. What it does in a browser is tested there: `tests/it/browser.rs`.

use super::*;
use crate::budget::BudgetSpec;
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::reproduce::papers;
use crate::scenario::Scenario;
use crate::workload::Workload;
use crate::workload::demo::demo;

fn digests(workload: &Workload, policies: &[&str], budget: &str) -> Vec<Digest> {
    let machine = Machine::of_processors(256).unwrap();
    let limit = budget.parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let digest = |policy: &&str| {
        let spec: PolicySpec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, workload, spec, model.as_ref());
        let scenario = Scenario { budget: limit.clone(), keep_power: true, ..new };
        let run = scenario.simulate(&mut |_| {}).run;
        let digest = Digest::of(&scenario.context(policy), &run, &scenario.summary(&run));
        Digest { budget: budget.to_owned(), ..digest }
    };
    policies.iter().map(digest).collect()
}

#[test]
fn a_template_is_filled() {
    let parts = [("A", "1".to_owned()), ("B", "{{A}}".to_owned())];
    assert_eq!(filled("<{{A}} {{B}} {{A}}> {{C}}!", &parts), "<1 {{A}} 1> !");
    assert_eq!(filled("{{A", &parts), "1");
}

#[test]
fn names_cannot_become_markup() {
    let workload = Workload::new("<script>alert(1)</script>", []);
    let text = page("a & b </title>", &digests(&workload, &["easy"], "80%"));
    assert!(text.contains("<title>a &amp; b &lt;/title&gt;</title>"));
    assert!(text.contains("&lt;script&gt;alert(1)"));
    assert!(!text.contains("<script>alert"));
}

/// No address of anything outside the file; what the scripts of plotly.js mention the browser is told
/// not to fetch.
#[test]
fn nothing_is_fetched() {
    let text = page("demo", &digests(&demo(), &["easy"], "80%"));
    for tag in ["src=", "href=\"http", "@import", "url("] {
        assert!(!text.contains(tag), "{tag}");
    }
    assert!(text.contains("default-src 'none'"));
    let size = text.len();
    assert!(size < 3_000_000, "{size} bytes");
}

/// Runs under 80 % and under 60 % are two cases; within a case the best comes first, and who turned
/// jobs away last.
#[test]
fn runs_that_differ_in_the_policy_alone_are_ranked() {
    let workload = demo();
    let mut runs = digests(&workload, &["easy", "easy-power", "pb-guided"], "60%");
    runs.extend(digests(&workload, &["fcfs"], "80%"));
    let absent = Absent {
        policy: "rmap-naive".to_owned(),
        workload: "demo".to_owned(),
        budget: "60%".to_owned(),
        variant: String::new(),
        reason: "there is no profile of job 1 < 2".to_owned(),
    };
    let lost = Absent { budget: "7%".to_owned(), ..absent.clone() };
    let absent = [absent, lost];
    let (cases, homeless) = cases(&runs, &absent);
    assert_eq!(
        cases.iter().map(|case| case.places.clone()).collect::<Vec<_>>(),
        [vec![0, 1, 2], vec![3]]
    );
    assert_eq!(cases[0].name(), "demo, 60 % (15.36 kW)");
    let table = tables::ranking(&cases[0]);
    let places = ["pb-guided", "easy-power", "easy<"].map(|policy| table.find(policy).unwrap());
    assert!(places.is_sorted(), "{table}");
    assert!(table.contains("class=\"aside\""), "EASY turned jobs away");
    let slowdown = runs[2].summary.mean_bsld.unwrap();
    let best =
        format!("<td class=\"best\" data-value=\"{slowdown}\"><span>{slowdown:.2}</span></td>");
    assert!(table.contains(&best), "{table}");
    assert_eq!(tables::ranking(&cases[1]), "");
    // Who could not run is there too, with the reason.
    assert!(table.contains("cannot run here: there is no profile of job 1 &lt; 2"), "{table}");
    let elsewhere = tables::homeless(&homeless);
    assert!(elsewhere.contains("<strong>rmap-naive</strong> cannot run on demo under 7%"));
}

#[test]
fn a_page_about_nothing_is_a_page() {
    assert!(page("empty", &[]).ends_with("</html>\n"));
    let text = page("no jobs", &digests(&Workload::new("none", []), &["easy", "fcfs"], "80%"));
    assert!(text.contains("2 policies"));
}
