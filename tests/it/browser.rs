//! The report in a real browser: it opens from a file without a complaint, and does what it should.
//! Where there is no browser nothing is tested, and that is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use busbar::budget::BudgetSpec;
use busbar::machine::Machine;
use busbar::policy::PolicySpec;
use busbar::report::digest::Digest;
use busbar::report::html::page;
use busbar::reproduce::papers;
use busbar::scenario::Scenario;
use busbar::workload::demo::demo;
use busbar::workload::{Source, SourceDefaults, Workload};
use busbar_needs::needs;
use serde_json::json;
use tempfile::TempDir;

use crate::devtools::{Browser, Looks, Plot};

fn digests(workload: &Workload, nodes: u32, policies: &[&str], budget: &str) -> Vec<Digest> {
    digests_with(usize::MAX, workload, nodes, policies, budget)
}

/// Digests with at most so many jobs one by one.
fn digests_with(
    most: usize,
    workload: &Workload,
    nodes: u32,
    policies: &[&str],
    budget: &str,
) -> Vec<Digest> {
    let machine = Machine::of_processors(nodes).unwrap();
    let limit = budget.parse::<BudgetSpec>().unwrap().resolve(&machine).unwrap();
    let digest = |policy: &&str| {
        let spec: PolicySpec = policy.parse().unwrap();
        let model = papers::model(&spec, &machine, workload.jobs(), 1).unwrap();
        let new = Scenario::new(&machine, workload, spec, model.as_ref());
        let scenario = Scenario { budget: limit.clone(), keep_power: true, ..new };
        let run = scenario.simulate().run;
        let digest = Digest::with(most, &scenario.context(policy), &run, &scenario.summary(&run));
        Digest { budget: budget.to_owned(), ..digest }
    };
    policies.iter().map(digest).collect()
}

fn written(title: &str, digests: &[Digest]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    let text = page(title, digests);
    println!("{title}: {} bytes", text.len());
    fs::write(&file, text).unwrap();
    (folder, file)
}

const WINDOW: &str = "(() => { const [a, b] = document.getElementById('schedule').chart.x.range; \
                      return b - a; })()";

/// The nodes that the schedule shows.
const LANES: &str = "document.getElementById('schedule').chart.y.range";

#[needs(chromium)]
#[test]
fn the_demo_report_works_in_a_browser() {
    let mut browser = Browser::start();
    let workload = demo();
    let mut runs = digests(&workload, 256, &["easy-power", "pb-guided", "parm"], "60%");
    runs.extend(digests(&workload, 256, &["easy", "conservative"], "100%"));
    let (_folder, file) = written("Policies on demo", &runs);

    browser.open(&file, Looks::DESK);
    browser.picture("light.png");
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "light");

    // Zooming by buttons: every step halves the window, in all charts over time.
    let whole = browser.evaluate(WINDOW).as_f64().unwrap();
    let rectangles = "Number(document.getElementById('schedule').dataset.count)";
    let all = browser.evaluate(rectangles).as_u64().unwrap();
    assert!(all > 2000, "{all} rectangles");
    for step in 1..=3 {
        browser.click("[data-zoom=in]");
        let wanted = whole / f64::from(1 << step);
        browser.wait_until(&format!("Math.abs({WINDOW} / {wanted} - 1) < 1e-6"));
    }
    browser.wait_until(&format!("{rectangles} < {}", all / 2));
    let power = WINDOW.replace("schedule", "power");
    assert!((browser.evaluate(&power).as_f64().unwrap() / whole - 0.125).abs() < 1e-6);
    browser.picture("zoomed.png");

    // And by dragging, over the middle half of the schedule.
    let plot = Plot::of(&mut browser, "schedule");
    plot.drag(&mut browser, (0.25, 0.5), (0.75, 0.5));
    browser.wait_until(&format!("Math.abs({WINDOW} / {} - 1) < 0.02", whole / 16.0));
    assert_eq!(browser.evaluate(LANES), json!([0, 256]));

    // The job under the mouse tells about itself: somewhere in this row there is one.
    let tip = "document.getElementById('tip')";
    let found = (0..40).any(|step| {
        browser.mouse("mouseMoved", plot.at((f64::from(step) / 40.0, 0.95)), false);
        browser
            .evaluate(&format!("!{tip}.hidden && /^Job \\d+\\n\\d+ node/.test({tip}.textContent)"))
            == true
    });
    assert!(found, "no job in the lowest lanes");
    browser.click("[data-zoom=all]");
    browser.wait_until(&format!("{rectangles} === {all}"));
    zooms_and_resets(&mut browser, whole);
    tells_what_is_pointed_at(&mut browser);

    // A line for each policy, and the budget. Who is not shown has none.
    let lines = "document.getElementById('power').chart.lines.length";
    assert_eq!(browser.evaluate(lines), 3 + 1);
    browser.click(".policy");
    browser.wait_until(&format!("{lines} === 2 + 1"));
    assert_eq!(
        browser.evaluate("document.querySelector('.policy').getAttribute('aria-pressed')"),
        "false"
    );

    saves_what_it_shows(&mut browser);

    // Both themes.
    let colour = "document.querySelector('#power text').getAttribute('fill')";
    let light = browser.evaluate(colour);
    browser.click("#theme");
    browser.wait_until(&format!("{colour} !== {light}"));
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "dark");
    browser.wait_until(
        "document.querySelector('#differences text').getAttribute('fill') !== '#17202a'",
    );
    browser.picture("dark.png");

    // Job by job, counted here too: the best policy against the second.
    let [second, best] = [1, 2].map(|place| runs[place].jobs.wait.values());
    let earlier = second.iter().zip(best).filter(|(second, best)| best < second).count();
    let later = second.iter().zip(best).filter(|(second, best)| best > second).count();
    let about = browser
        .evaluate("document.getElementById('differences-about').textContent.replaceAll(',', '')");
    let about = about.as_str().unwrap().to_owned();
    assert!(
        about.contains(&format!(" {earlier} are earlier under parm than under pb-guided")),
        "{about}"
    );
    assert!(about.contains(&format!(" {later} are later")), "{about}");

    // The other case has its own table and its own policies.
    browser.choose("#case", "1");
    browser.wait_until("document.querySelectorAll('.policy').length === 2");
    browser.wait_until(&format!("{lines} === 2 + 1"));
    let shown = "Array.from(document.querySelectorAll('.case'), (section) => section.hidden)";
    assert_eq!(browser.evaluate(shown), json!([true, false]));

    assert_eq!(browser.complaints(), [""; 0]);
}

/// A box in the schedule chooses times and nodes, a drag in a curve times alone; in a distribution it
/// leaves the other charts as they are. A double click takes each back.
fn zooms_and_resets(browser: &mut Browser, whole: f64) {
    let is_whole = format!("Math.abs({WINDOW} / {whole} - 1) < 1e-9");
    let is_half = format!("Math.abs({WINDOW} / {whole} - 0.5) < 0.02");
    let plot = Plot::of(browser, "schedule");
    plot.drag(browser, (0.25, 0.25), (0.75, 0.75));
    browser.wait_until(&is_half);
    let lanes = browser.evaluate(LANES);
    let lane = |end: usize| lanes[end].as_f64().unwrap();
    assert!((lane(0) - 64.0).abs() < 2.0 && (lane(1) - 192.0).abs() < 2.0, "{lanes}");
    browser.double_click(plot.at((0.5, 0.5)));
    browser.wait_until(&is_whole);
    assert_eq!(browser.evaluate(LANES), json!([0, 256]));

    let plot = Plot::of(browser, "queue");
    plot.drag(browser, (0.7, 0.1), (0.2, 0.9));
    browser.wait_until(&is_half);
    browser.double_click(plot.at((0.5, 0.5)));
    browser.wait_until(&is_whole);

    let range = "document.getElementById('slowdowns').drawn.x.range";
    let before = browser.evaluate(range);
    let plot = Plot::of(browser, "slowdowns");
    plot.drag(browser, (0.2, 0.5), (0.6, 0.5));
    browser.wait_until(&format!("{range}[0] > 1.5 && {range}[1] < {}", before[1]));
    assert_eq!(browser.evaluate(&is_whole), true);
    browser.double_click(plot.at((0.5, 0.5)));
    browser.wait_until(&format!("{range}[1] === {}", before[1]));
}

/// Over a curve every run's value at that time is named, over a distribution the nearest point, over a bar its number.
fn tells_what_is_pointed_at(browser: &mut Browser) {
    let told = |browser: &mut Browser, chart: &str, place: (f64, f64)| {
        let plot = Plot::of(browser, chart);
        browser.mouse("mouseMoved", plot.at(place), false);
        browser.wait_until("!document.getElementById('tip').hidden");
        let tip = browser.evaluate("document.getElementById('tip').textContent");
        tip.as_str().unwrap().to_owned()
    };
    let power = told(browser, "power", (0.3, 0.5));
    assert!(power.starts_with("day ") && power.contains("budget: 15.36 kW"), "{power}");
    for policy in ["easy-power", "pb-guided", "parm"] {
        assert!(power.contains(&format!("{policy}: ")), "{power}");
    }
    assert_eq!(
        browser.evaluate("document.querySelectorAll('#tip .swatch, #power circle').length"),
        8
    );
    let energy = told(browser, "energy", (0.2, 0.1));
    assert!(energy.contains(" GJ\nthe budget allowed "), "{energy}");
    let bars = told(browser, "differences", (0.5, 0.9));
    assert!(bars.ends_with(": same"), "{bars}");
    // Where the line of the best policy ends.
    let point = browser.evaluate(
        "(() => { const { drawn, chart } = document.getElementById('waits'), { x, y } = chart.lines[0]; \
         return [drawn.x.to(x[128]) / drawn.area.width, (drawn.y.to(y[128]) + 5) / drawn.area.height]; })()",
    );
    let point = [0, 1].map(|part| point[part].as_f64().unwrap());
    let waits = told(browser, "waits", (point[0], point[1]));
    assert!(waits.contains(" % up to "), "{waits}");
    browser.mouse("mouseMoved", (2.0, 2.0), false);
    browser.wait_until("document.getElementById('tip').hidden");
    assert_eq!(browser.evaluate("document.querySelectorAll('.chart circle').length"), 0);
}

/// Every chart has its numbers as CSV and its picture as PNG. Two policies are shown; the files are caught
/// on their way to the disk.
fn saves_what_it_shows(browser: &mut Browser) {
    browser.evaluate(
        "{ window.saved = new Map(); const make = URL.createObjectURL; \
         URL.createObjectURL = (blob) => { window.blob = blob; return make.call(URL, blob); }; \
         HTMLAnchorElement.prototype.click = function () { saved.set(this.download, this.href.startsWith('data:') ? this.href : window.blob); }; }",
    );
    let charts =
        ["power", "busy", "queue", "schedule", "waits", "slowdowns", "energy", "differences"];
    for chart in charts {
        browser.click(&format!("[data-save={chart}-csv]"));
        browser.click(&format!("[data-save={chart}-png]"));
        browser.wait_until(&format!("saved.has('{chart}.csv') && saved.has('{chart}.png')"));
        // A picture that is not small, not of nothing, and not transparent.
        let size = format!(
            "(async () => {{ const image = new Image(); image.src = saved.get('{chart}.png'); await image.decode(); \
                            const {{ naturalWidth: width, naturalHeight: height }} = image, canvas = Object.assign(document.createElement('canvas'), {{ width, height }}); \
                            const brush = canvas.getContext('2d'); brush.drawImage(image, 0, 0); \
                            return [width, height, image.src.length, ...brush.getImageData(1, 1, 1, 1).data]; }})()"
        );
        let size = browser.evaluate(&size);
        assert!(size[0].as_u64() >= Some(1280) && size[2].as_u64() > Some(9000), "{chart}: {size}");
        assert_eq!([3, 4, 5, 6].map(|at| size[at].as_u64()), [Some(255); 4], "{chart}: {size}");
    }
    let mut lines = |chart: &str| {
        let text = browser.evaluate(&format!("saved.get('{chart}.csv').text()"));
        text.as_str().unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let queue = lines("queue");
    assert_eq!(queue[0], "policy,time_s,mean_jobs,lowest_jobs,highest_jobs");
    let policies: std::collections::BTreeSet<&str> =
        queue[1..].iter().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(policies.len(), 2, "{policies:?}");
    assert!(
        lines("power")
            .iter()
            .any(|line| line.starts_with("budget,") && line.ends_with(",15360,15360,15360"))
    );
    assert_eq!(lines("energy").len(), 3);
    assert!(lines("schedule").len() > 2000);
    let counts = lines("differences");
    let jobs: u64 = counts[1..]
        .iter()
        .map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap())
        .sum();
    assert_eq!(jobs, 2000);
}

/// The colour of a policy's line, in the queue's chart.
fn colour_of(browser: &mut Browser, policy: &str) -> String {
    let line = format!(
        "document.getElementById('queue').chart.lines.find((line) => line.name === '{policy}').colour"
    );
    browser.evaluate(&line).as_str().unwrap().to_owned()
}

/// One colour for one policy: under another budget, and in the tables.
#[needs(chromium)]
#[test]
fn a_policy_keeps_its_colour() {
    let mut browser = Browser::start();
    let mut workload = demo();
    workload.slice(0..300);
    let mut runs = digests(&workload, 256, &["easy-power", "pb-guided", "share"], "60%");
    runs.extend(digests(&workload, 256, &["share", "pb-guided"], "100%"));
    let (_folder, file) = written("Colours", &runs);
    browser.open(&file, Looks::DESK);
    let before = ["share", "pb-guided"].map(|policy| colour_of(&mut browser, policy));
    assert_ne!(before[0], before[1]);
    browser.choose("#case", "1");
    browser.wait_until("document.querySelectorAll('.policy').length === 2 && document.getElementById('queue').chart.lines.length === 2");
    assert_eq!(["share", "pb-guided"].map(|policy| colour_of(&mut browser, policy)), before);
    // The swatch of the third policy of the page, beside its name in every table.
    let swatches = "Array.from(document.querySelectorAll('.ranking th, .overview th, .waits th')) \
                    .filter((cell) => cell.textContent === 'share').map((cell) => getComputedStyle(cell.querySelector('.swatch')).borderTopColor)";
    let swatches = browser.evaluate(swatches);
    let swatches = swatches.as_array().unwrap();
    assert!(
        swatches.len() >= 5 && swatches.iter().all(|colour| *colour == swatches[0]),
        "{swatches:?}"
    );
    assert_eq!(browser.complaints(), [""; 0]);
}

/// On a phone in the dark nothing is wider than the screen, and what there is not is said.
#[needs(chromium)]
#[test]
fn a_report_fits_a_phone() {
    let mut browser = Browser::start();
    let (_folder, file) = written("easy on demo", &digests(&demo(), 256, &["easy"], "80%"));
    browser.open(&file, Looks::PHONE);
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "dark");
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 390);
    assert_eq!(browser.evaluate("document.getElementById('differences-section').hidden"), true);
    browser.picture("phone.png");
    // A tap tells what a mouse would; a finger that moves scrolls, and chooses nothing.
    let plot = Plot::of(&mut browser, "power");
    browser.tap(plot.at((0.4, 0.5)));
    let tip = "document.getElementById('tip')";
    browser.wait_until(&format!("!{tip}.hidden && {tip}.textContent.includes('easy: ')"));
    let sides = browser.evaluate(&format!(
        "(({{ left, right }}) => [left, right])({tip}.getBoundingClientRect())"
    ));
    assert!(sides[0].as_f64() >= Some(0.0) && sides[1].as_f64() <= Some(390.0), "{sides}");
    let whole = browser.evaluate(WINDOW);
    // Not to the right, by which browsers go back to the page before.
    browser.swipe(plot.at((0.8, 0.5)), plot.at((0.2, 0.4)));
    assert_eq!(browser.evaluate(WINDOW), whole);
    browser.tap((5.0, 5.0));
    browser.wait_until(&format!("{tip}.hidden"));
    // No label is cut off.
    let outside = "Array.from(document.querySelectorAll('.chart text')).filter((text) => { \
                   const inner = text.getBoundingClientRect(), outer = text.closest('.chart').getBoundingClientRect(); \
                   return inner.left < outer.left || inner.right > outer.right || inner.bottom > outer.bottom; }).length";
    assert_eq!(browser.evaluate(outside), 0);

    let none = digests(&Workload::new("none", []), 256, &["easy", "fcfs"], "80%");
    let (_folder, file) = written("no jobs", &none);
    browser.open(&file, Looks::PHONE);
    for chart in ["schedule", "waits", "slowdowns", "differences"] {
        let text = browser.evaluate(&format!("document.getElementById('{chart}').textContent"));
        assert!(text.as_str().unwrap().starts_with("No job ran"), "{chart}: {text}");
    }
    browser.picture("empty.png");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// More jobs than a page shows one by one: it says what it leaves out, shades it, and tells of it where one points. A
/// job that is there is found by zooming.
#[needs(chromium)]
#[test]
fn a_report_of_too_many_jobs_says_what_it_leaves_out() {
    let mut browser = Browser::start();
    let runs = digests_with(200, &demo(), 256, &["easy"], "none");
    let (_folder, file) = written("Too many", &runs);
    browser.open(&file, Looks::DESK);
    let note = browser.evaluate("document.getElementById('schedule-note').textContent");
    let note = note.as_str().unwrap().to_owned();
    assert!(note.contains("This page holds 200 jobs one by one"), "{note}");
    assert!(note.contains("The other 1,800 jobs shade what they cover"), "{note}");
    browser.picture("many.png");
    let rectangles = "Number(document.getElementById('schedule').dataset.count)";
    let all = browser.evaluate(rectangles).as_u64().unwrap();
    for _ in 0..3 {
        browser.click("[data-zoom=in]");
    }
    browser.wait_until(&format!("{rectangles} < {}", all / 4));
    let plot = Plot::of(&mut browser, "schedule");
    let tip = "document.getElementById('tip')";
    let mut told = [false; 2];
    for (across, up) in (0..40).flat_map(|across| (0..8).map(move |up| (across, up))) {
        browser.mouse(
            "mouseMoved",
            plot.at((f64::from(across) / 40.0, 0.1 * f64::from(up + 1))),
            false,
        );
        let text = browser.evaluate(&format!("{tip}.hidden ? '' : {tip}.textContent"));
        let text = text.as_str().unwrap_or_default();
        told[0] |= text.starts_with("Job ");
        told[1] |= text.starts_with("Jobs that are not shown one by one\ncover ");
    }
    assert_eq!(told, [true; 2]);
    browser.picture("many-zoomed.png");
    browser.choose("#schedule-colour", "cap");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Makes the picture in the README, from the report of a comparison.
#[test]
#[ignore = "it writes docs/images/report.png; run it after the report has changed"]
fn the_picture_of_the_readme() {
    let folder = tempfile::tempdir().unwrap();
    let compared = Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["compare", "--budget", "60%", "--policy", "easy,easy-power,pb-guided,parm"])
        .args(["--allow", "caps,sizes,recaps", "--seeds", "1", "--brief", "--no-cache", "--out"])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    let mut browser = Browser::start();
    browser.open(&folder.path().join("report.html"), Looks::DESK);
    // An eighth of the time, so that single changes can be seen.
    let whole = browser.evaluate(WINDOW).as_f64().unwrap();
    for step in 1..=3 {
        browser.click("[data-zoom=in]");
        let wanted = whole / f64::from(1 << step);
        browser.wait_until(&format!("Math.abs({WINDOW} / {wanted} - 1) < 1e-6"));
    }
    // The tables of waits between the ranking and the charts would make it too long, the last column too wide.
    browser.evaluate(
        "for (const cell of document.querySelectorAll('.ranking .freedoms')) cell.remove(); \
         for (const waits of document.querySelectorAll('.breakdown')) { \
         waits.previousElementSibling.previousElementSibling.remove(); waits.previousElementSibling.remove(); waits.remove(); }",
    );
    let picture = browser.part(
        "[document.querySelector('.ranking').closest('.case').querySelector('h2').getBoundingClientRect().top + scrollY - 16, \
         document.getElementById('power').closest('section').getBoundingClientRect().bottom \
         + scrollY + 12]",
    );
    assert!(picture.len() < 150_000, "{} bytes", picture.len());
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/images");
    fs::create_dir_all(&images).unwrap();
    fs::write(images.join("report.png"), picture).unwrap();
    assert_eq!(browser.complaints(), [""; 0]);
}

/// How long a large report takes to open; `docs/reference/report.md` says what was measured. It has no place among
/// tests that must pass on a machine that does other things meanwhile.
#[test]
#[ignore = "it measures; run it alone, with --nocapture"]
fn a_report_of_100_000_jobs_opens() {
    let source: Source = "lublin(jobs=100000, load=0.9)".parse().unwrap();
    let given = SourceDefaults { processors: Some(1024), ..SourceDefaults::default() };
    let workload = source.load(&given).unwrap().workload;
    let runs = digests(&workload, 1024, &["easy", "pb-guided"], "80%");
    for count in [1, 2] {
        let (_folder, file) = written(&format!("100 000 jobs, {count} runs"), &runs[..count]);
        for _ in 0..3 {
            // A new browser each time: it remembers scripts that it has seen.
            let mut browser = Browser::start();
            println!("all charts are drawn after {} ms", browser.open(&file, Looks::DESK));
            assert_eq!(browser.complaints(), [""; 0]);
        }
    }
}
