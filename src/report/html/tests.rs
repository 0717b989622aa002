//! The page as text. What it does in a browser is tested there: `tests/it/browser.rs`.

use super::*;
use crate::budget::BudgetSpec;
use crate::machine::Machine;
use crate::policy::PolicySpec;
use crate::report::digest::MOST_PARTS;
use crate::reproduce::papers;
use crate::scenario::Scenario;
use crate::units::Watts;
use crate::workload::Workload;
use crate::workload::demo::demo;
use crate::workload::lublin::Lublin;

fn digests(workload: &Workload, policies: &[&str], budget: &str) -> Vec<Digest> {
    let machine = Machine::of_processors(256).unwrap();
    let limit = budget.parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let digest = |policy: &&str| {
        let spec: PolicySpec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, workload, spec, model.as_ref());
        let scenario = Scenario { budget: limit.clone(), keep_power: true, ..new };
        let run = scenario.simulate().run;
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

/// No address of anything outside the file, and the browser is told to fetch nothing.
#[test]
fn nothing_is_fetched() {
    let text = page("demo", &digests(&demo(), &["easy"], "80%"));
    for tag in ["src=", "href=\"http", "@import", "url("] {
        assert!(!text.contains(tag), "{tag}");
    }
    assert!(text.contains("default-src 'none'"));
    let size = text.len();
    assert!(size < 300_000, "{size} bytes");
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
    let (cases, homeless) = cases(&runs, 0, &absent);
    assert_eq!(
        cases.iter().map(|case| case.places.clone()).collect::<Vec<_>>(),
        [vec![0, 1, 2], vec![3]]
    );
    assert_eq!(cases[0].name(), "demo, 60 % (15.36 kW)");
    let palette = Palette::of(&runs);
    let table = ranking::ranking(&cases[0], &palette);
    let places = ["pb-guided", "easy-power", "easy<"].map(|policy| table.find(policy).unwrap());
    assert!(places.is_sorted(), "{table}");
    assert!(table.contains("class=\"aside\""), "EASY turned jobs away");
    let slowdown = runs[2].summary.mean_bsld.unwrap();
    let best =
        format!("<td class=\"best\" data-value=\"{slowdown}\"><span>{slowdown:.2}</span></td>");
    assert!(table.contains(&best), "{table}");
    assert_eq!(ranking::ranking(&cases[1], &palette), "");
    // Who could not run is there too, folded away, with the reason.
    let (before, folded) = table.split_once("<details class=\"cannot\">").unwrap();
    assert!(folded.contains("<strong>rmap-naive</strong>: there is no profile of job 1 &lt; 2"));
    assert!(folded.contains("<summary>1 policy cannot run</summary>") && !before.contains("rmap"));
    let elsewhere = ranking::homeless(&homeless);
    assert!(elsewhere.contains("<strong>rmap-naive</strong> on demo under 7%"));
}

/// What others are compared with is in every case before them, is never best, and does not change their order.
#[test]
fn references_are_shown_with_all_others_and_have_no_rank() {
    let workload = demo();
    let mut runs = digests(&workload, &["easy"], "none");
    runs[0].summary.policy = "no budget".to_owned();
    runs.extend(digests(&workload, &["easy-power", "pb-guided"], "60%"));
    runs.extend(digests(&workload, &["easy-power"], "80%"));
    let (cases, _) = cases(&runs, 1, &[]);
    let places: Vec<_> = cases.iter().map(|case| case.places.clone()).collect();
    assert_eq!(places, [vec![0, 1, 2], vec![0, 3]]);
    assert_eq!((cases[0].order()[0], cases[0].name().as_str()), (0, "demo, 60 % (15.36 kW)"));
    let table = ranking::ranking(&cases[0], &Palette::of(&runs));
    let row =
        |policy: &str| table.lines().find(|line| line.contains(&format!("</i>{policy}</th>")));
    let reference = row("no budget").unwrap();
    assert!(
        reference.starts_with("<tr class=\"aside\">") && !reference.contains("best"),
        "{table}"
    );
    assert!(row("pb-guided").unwrap().contains(">1</td>"), "{table}");
    // Alone, they are runs like others.
    let alone = super::cases(&runs[..1], 1, &[]).0;
    assert_eq!((alone.len(), alone[0].references), (1, 0));
}

#[test]
fn a_page_about_nothing_is_a_page() {
    assert!(page("empty", &[]).ends_with("</html>\n"));
    let text = page("no jobs", &digests(&Workload::new("none", []), &["easy", "fcfs"], "80%"));
    assert!(text.contains("2 policies"));
}

/// Two budgets: a row for each policy with its colour, a column for each budget. EASY, which turned jobs
/// away under 60 %, is not compared there; who did not run has a dash.
#[test]
fn policies_and_budgets_are_seen_at_a_glance() {
    let workload = demo();
    let mut runs = digests(&workload, &["easy", "easy-power", "pb-guided"], "60%");
    runs.extend(digests(&workload, &["easy-power", "pb-guided"], "80%"));
    let (both, _) = cases(&runs, 0, &[]);
    let text = overview::overview(&both, &Palette::of(&runs));
    let row = |policy: &str| {
        text.lines().find(|line| line.contains(&format!("</i>{policy}</th>"))).unwrap().to_owned()
    };
    assert!(text.contains("60 % (15.36 kW)") && text.contains("80 % (20.48 kW)"), "{text}");
    assert!(text.contains("<p>Mean turnaround."), "{text}");
    assert!(row("easy").contains(" not</small>") && row("easy").ends_with("–</td></tr>"));
    assert_eq!(row("pb-guided").matches("class=\"best\"").count(), 2, "{text}");
    assert_eq!(row("easy-power").matches("--behind: 0.").count(), 2, "{text}");
    assert!(row("easy-power").contains("--tint: var(--series-1)"));
    let (one, _) = cases(&runs[..3], 0, &[]);
    assert_eq!(overview::overview(&one, &Palette::of(&runs)), "");
}

/// The means of 2 h and 4 h, and of 3 h and 3 h; nothing has twelve digits.
#[test]
fn seeds_have_means_and_spreads() {
    let mut runs = digests(&demo(), &["easy-power", "pb-guided"], "80%");
    let hours = |run: &Digest, hours: f64| Summary {
        mean_turnaround_s: Some(3600.0 * hours),
        ..run.summary.clone()
    };
    runs[0].summary = hours(&runs[0], 2.0);
    runs[1].summary = hours(&runs[1], 3.0);
    let other_seeds = vec![vec![hours(&runs[0], 4.0)], vec![hours(&runs[1], 3.0)]];
    let text = page_with("seeds", &runs, &Beside { other_seeds, ..Beside::default() });
    assert!(text.contains("means over 2 seeds"));
    assert!(text.contains(">3.0 ±1.4 h<") && text.contains(">3.0 ±0.0 h<"));
    assert!(text.contains("All figures of the first seed"));
    let alone = page("one seed", &runs);
    assert!(!alone.contains('±') && alone.contains(">2.0 h</span>"));
}

/// Waits by size and length, for each policy; the demo does not say whose its jobs are.
#[test]
fn waits_are_told_apart() {
    let runs = digests(&demo(), &["easy", "pb-guided"], "60%");
    let (cases, _) = cases(&runs, 0, &[]);
    let text = waits::waits(&cases[0], &Palette::of(&runs));
    assert!(
        text.contains("<caption>Waits by size</caption>") && text.contains(">under 10 min</th>")
    );
    assert_eq!(text.contains("Waits by user"), demo().jobs().iter().any(|job| job.user.is_some()));
    let jobs: u64 = runs[0].waits_by[0].classes.iter().map(|class| class.jobs).sum();
    assert_eq!(jobs, 2000);
    // EASY turned large jobs away.
    assert!(text.contains(" ran</small>"));
    let alone = waits::waits(&super::cases(&runs[..1], 0, &[]).0[0], &Palette::of(&runs));
    assert!(!alone.contains("colgroup") && alone.contains("99th percentile"));
}

/// Two runs in less room than they would need: single jobs are left out until they fit. Both keep the same ones.
#[test]
fn a_page_fits_the_room_there_is() {
    let runs = digests(&demo(), &["easy", "pb-guided"], "80%");
    let (cases, _) = cases(&runs, 0, &[]);
    let (palette, beside) = (Palette::of(&runs), Beside::default());
    let whole = packed_within(MOST_BYTES, &runs, &cases, &palette, &beside);
    let less = packed_within(whole.len() - 1, &runs, &cases, &palette, &beside);
    assert!(less.len() < whole.len(), "{} of {}", less.len(), whole.len());
    let held = fitted(&runs, 1000);
    assert!(is_same_workload(&held[0], &held[1]));
    for (run, whole) in held.iter().zip(&runs) {
        assert_eq!((run.singles(), run.rest.as_ref().map(|rest| rest.jobs)), (500, Some(1500)));
        let highest = |curve: &Envelope| curve.high.values().iter().max().copied();
        assert_eq!(highest(&run.power), highest(&whole.power));
    }
}

/// Three times as many jobs as a page shows one by one: it is no larger than any other, and no peak is lost.
#[test]
fn a_page_of_300_000_jobs_is_small() {
    let lublin = Lublin { jobs: 300_000, load: 0.85, processors: 256, ..Lublin::default() };
    let workload = lublin.generate().unwrap();
    let machine = Machine::of_processors(256).unwrap();
    let spec = PolicySpec::easy();
    let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
    let new = Scenario::new(&machine, &workload, spec, model.as_ref());
    let scenario = Scenario { keep_power: true, ..new };
    let run = scenario.simulate().run;
    let digest = Digest::with(MOST_JOBS, &scenario.context("easy"), &run, &scenario.summary(&run));
    let size = page("large", std::slice::from_ref(&digest)).len();
    assert!((1_000_000..=3_000_000).contains(&size), "{size} bytes");
    assert!(run.power.len() > MOST_PARTS && digest.power.from.values().len() <= MOST_PARTS);
    // A sample that another one replaces at the same instant never held.
    let pairs = || run.power.iter().zip(run.power.iter().skip(1));
    let powers = || pairs().filter(|(one, next)| one.at < next.at).map(|(one, _)| one.power);
    let [least, most] = [powers().min(), powers().max()].map(|power| power.map(Watts::milliwatts));
    assert_eq!(digest.power.high.values().iter().copied().max(), most);
    assert_eq!(digest.power.low.values().iter().copied().min(), least);
}
