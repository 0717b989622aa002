//! The daemon's page in a real browser, against a real daemon: jobs, budgets and plans through the page, and what
//! the daemon says about them. Where there is no browser these tests are ignored.
//!
//! `BUSBAR_AXE` names the script of axe-core, which looks for what keeps people with other eyes and hands out; `./check`
//! fetches it. `BUSBAR_SCREENSHOTS=DIR` leaves pictures to look at.

use std::fs;

use busbar::policy::PolicySpec;
use busbar::units::Watts;
use busbar_needs::needs;
use serde_json::{Value, json};

use crate::devtools::{Browser, Looks, Plot};
use crate::patience::wait_for;

mod served;

use served::Served;

/// The narrowest of usual phones.
const SMALL_PHONE: Looks = Looks { width: 360, height: 740, is_dark: true, is_phone: true };

/// A job that runs until the test lets it go, or the folder of the test is gone.
const UNTIL_GO: &str = "while [ ! -e go ] && [ -e lab.toml ]; do sleep 0.05; done";

/// Fills in the form for a job that waits for the test.
fn fill_in_job(browser: &mut Browser, served: &Served, nodes: u32) {
    browser.write("#submit-command", UNTIL_GO);
    browser.write("#submit-folder", served.path("").to_str().unwrap());
    browser.write("#submit-nodes", &nodes.to_string());
    browser.write("#submit-time", "10h");
    browser.write("#submit-name", "waiter");
}

fn give_token(browser: &mut Browser, token: &str) {
    browser.wait_until("document.getElementById('token-dialog').open");
    browser.write("#token-text", token);
    browser.click("#token-form button[type=submit]");
}

fn text(id: &str) -> String {
    format!("document.getElementById('{id}').textContent")
}

/// What is wrong with the page for people who do not see it, or use no mouse.
fn assert_accessible(browser: &mut Browser, what: &str) {
    if let Some(found) = axe(browser) {
        let grave = |one: &&Value| one["impact"] == "serious" || one["impact"] == "critical";
        let grave: Vec<&Value> = found.iter().filter(grave).collect();
        assert!(grave.is_empty(), "{what}: {grave:#?}");
    }
}

/// What axe-core finds on the page that is shown; nothing without axe-core, which one of the tests says is missing.
fn axe(browser: &mut Browser) -> Option<Vec<Value>> {
    let file = std::env::var_os("BUSBAR_AXE")?;
    browser.evaluate(&format!("{}; true", fs::read_to_string(file).unwrap()));
    let found = browser.evaluate(
        "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(
           ({ id, impact, nodes }) => ({ id, impact, where: nodes.map(({ html }) => html).slice(0, 5) })))",
    );
    Some(found.as_array().unwrap().clone())
}

/// The other tests ask axe-core as they go, where it is there: it is there, and sees what they would not want.
#[needs(chromium, axe)]
#[test]
fn axe_core_sees_a_picture_without_words() {
    let mut browser = Browser::start();
    let served = Served::new(4);
    browser.look(Looks::DESK);
    browser.visit(&served.page);
    browser.wait_until(&format!("{} === 'of 400.0 W'", text("allowed")));
    assert_accessible(&mut browser, "the page as it is");
    browser.evaluate("document.body.append(new Image()); true");
    let found = axe(&mut browser).unwrap();
    assert!(found.iter().any(|one| one["id"] == "image-alt"), "{found:#?}");
}

/// Complaints but for requests that were refused, as they had to be: browsers write these down, too.
fn complaints(browser: &Browser, served: &Served, refused: &str) -> Vec<String> {
    let all = browser.complaints_about(&[&served.page, "data:", "blob:"]);
    all.into_iter().filter(|one| refused.is_empty() || !one.contains(refused)).collect()
}

#[needs(chromium)]
#[test]
fn jobs_and_budget_through_the_page() {
    let mut browser = Browser::start();
    let served = Served::new(4);
    browser.look(Looks::DESK);
    browser.visit(&served.page);
    browser.wait_until(&format!("{} === 'of 400.0 W'", text("allowed")));
    assert_eq!(browser.evaluate(&text("drawn")), "0.0 W");
    assert_eq!(browser.evaluate(&text("machine")), "lab");

    // A wrong token changes nothing, and that is said.
    fill_in_job(&mut browser, &served, 2);
    browser.click("#submit-form button[type=submit]");
    give_token(&mut browser, "busbar_wrong");
    browser.wait_until(&format!(
        "{}.includes('the token is invalid or expired')",
        text("token-answer")
    ));
    assert_eq!(browser.evaluate("sessionStorage.length"), 0);
    assert_accessible(&mut browser, "the question for a token");
    browser.press("Escape");
    browser.wait_until("!document.getElementById('token-dialog').open");
    browser.wait_until(&format!("{} === 'Nothing was changed.'", text("submit-answer")));
    assert_eq!(served.jobs(), 0);

    // A token that may only look changes nothing either.
    browser.click("#submit-form button[type=submit]");
    give_token(&mut browser, &served.token("viewer"));
    browser.wait_until(&format!(
        "{}.includes('needs a token with the role user')",
        text("submit-answer")
    ));
    assert_eq!(served.jobs(), 0);
    browser.click("#token");

    // A job is submitted and seen running, with its cap on its nodes.
    let token = served.token("operator");
    browser.click("#submit-form button[type=submit]");
    give_token(&mut browser, &token);
    browser.wait_until(&format!("{} === 'Submitted job 1.'", text("submit-answer")));
    let row = "document.querySelector('#running tr[data-key=\"1\"]')";
    browser.wait_until(&format!("{row}?.textContent.includes('100.0 W') ?? false"));
    browser.wait_until(&format!("{} === '200.0 W'", text("drawn")));
    browser.wait_until("document.querySelectorAll('#map li[data-state=busy]').length === 2");
    let address = browser.evaluate("location.href");
    assert!(!address.as_str().unwrap().contains(&token), "{address}");

    // Another one waits, and the page says for what.
    fill_in_job(&mut browser, &served, 3);
    browser.click("#submit-form button[type=submit]");
    browser.wait_until(&format!("{} === 'Submitted job 2.'", text("submit-answer")));
    let row = "document.querySelector('#queue tr[data-key=\"2\"]')";
    browser.wait_until(&format!("/waits for 3 nodes; 2 are free/.test({row}?.textContent)"));
    // When it starts stands in a column of its own, and only there.
    browser.wait_until(&format!("/\\d\\d:\\d\\d/.test({row}.children[2].textContent)"));
    let why = browser.evaluate(&format!("{row}.children[1].innerText"));
    assert!(!why.as_str().unwrap().contains("start"), "{why}");

    // What if the budget were lower: drawn, and not applied.
    browser.write("#whatif-limit", "120W");
    browser.write("#whatif-nodes", "1");
    browser.write("#whatif-time", "10m");
    browser.click("#whatif-form button[type=submit]");
    browser.wait_until("document.getElementById('whatif-chart').chart?.lines.length === 4");
    let highest = "Math.max(...document.getElementById('whatif-chart').chart.lines[1].y)";
    assert!(browser.evaluate(highest).as_f64().unwrap() <= 120.0);
    browser.wait_until(&format!("{}.includes('The last job would end')", text("whatif-words")));
    let plot = Plot::of(&mut browser, "whatif-chart");
    browser.mouse("mouseMoved", plot.at((0.2, 0.5)), false);
    browser.wait_until(
        "/present plan: .*what if: .*budget: /.test(document.getElementById('tip').textContent)",
    );
    // A part that was chosen stays chosen while the chart goes on.
    let plot = Plot::of(&mut browser, "hours-chart");
    plot.drag(&mut browser, (0.3, 0.5), (0.5, 0.5));
    let hours = "document.getElementById('hours-chart')";
    let chosen = browser.evaluate(&format!("window.before = {hours}.chart, {hours}.drawn.x.range"));
    browser.wait_until(&format!("{hours}.chart !== window.before"));
    assert_eq!(browser.evaluate(&format!("{hours}.drawn.x.range")), chosen);
    assert_ne!(browser.evaluate(&format!("{hours}.chart.x.range")), chosen);
    browser.double_click(plot.at((0.5, 0.5)));
    browser.wait_until(&format!("{hours}.drawn.x.range === {hours}.chart.x.range"));
    assert_eq!(served.power().limit, Some(Watts::from_watts(400)));
    assert_eq!(served.jobs(), 2);
    assert_accessible(&mut browser, "everything in light colours");
    browser.picture("page-light.png");

    // The budget is lowered, and the caps follow: on the page as at the daemon.
    browser.write("#budget-limit", "120W");
    browser.click("#budget-form button[type=submit]");
    browser
        .wait_until(&format!("{} === 'The limit is 120.0 W from now on.'", text("budget-answer")));
    browser.wait_until(&format!("{} === 'of 120.0 W'", text("allowed")));
    browser.wait_until(
        "/cap (60|[1-5]?[0-9])\\.\\d W/.test(document.querySelector('#map li').textContent)",
    );
    let caps: Vec<Watts> = served.nodes().iter().filter_map(|node| node.cap).collect();
    let sum = caps.iter().fold(Watts::ZERO, |sum, cap| sum + *cap);
    assert!(caps.len() == 2 && sum <= Watts::from_watts(120), "{caps:?}");
    browser.wait_until(&format!("parseFloat({}) <= 120", text("drawn")));

    // Holding, releasing and cancelling.
    let click = |browser: &mut Browser, change: &str| {
        browser.click(&format!("#queue [data-change={change}][data-job=\"2\"]"));
    };
    click(&mut browser, "hold");
    browser
        .wait_until(&format!("{row}?.textContent.includes('held until it is released') ?? false"));
    click(&mut browser, "release");
    browser.wait_until(&format!("{row}?.textContent.includes('waits') ?? false"));
    click(&mut browser, "cancel");
    browser.wait_until("document.getElementById('sure-dialog').open");
    browser.click("#sure-no");
    assert_eq!(served.jobs(), 2);
    click(&mut browser, "cancel");
    browser.click("#sure-yes");
    browser.wait_until(&format!("{row} === null"));
    assert_eq!(served.jobs(), 1);

    // The job's own page: its power over time, and why it changed. Then it ends.
    browser.click("#running a");
    browser.wait_until("location.hash === '#/jobs/1' && !document.getElementById('job').hidden");
    browser.wait_until(&format!("{}.includes('the budget fell')", text("job-decisions")));
    browser.wait_until(
        "document.getElementById('job-chart').chart?.lines[0].y.includes(200) ?? false",
    );
    assert_eq!(browser.evaluate("document.activeElement.id"), "job-title");
    assert_accessible(&mut browser, "the page of a job");
    fs::write(served.path("go"), "").unwrap();
    browser.wait_until(&format!("{}.includes('completed, exit code 0')", text("job-why")));
    browser.picture("page-job.png");

    assert_eq!(complaints(&browser, &served, "with a status of 40"), [""; 0]);
}

/// On a phone in the dark nothing is wider than the screen. Everything can be reached by keys.
#[needs(chromium)]
#[test]
fn the_page_on_a_phone_and_by_keys() {
    let mut browser = Browser::start();
    let served = Served::new(100);
    served.command(&["submit", "-N", "60", "-t", "10h", "--", "sh", "-c", UNTIL_GO]);
    served.command(&["submit", "-N", "60", "-t", "10h", "--", "sh", "-c", UNTIL_GO]);
    browser.look(SMALL_PHONE);
    browser.visit(&served.page);
    browser.wait_until("document.querySelectorAll('#map li[data-state=busy]').length === 60");
    browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 1");
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "dark");
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 360);
    assert_accessible(&mut browser, "a phone in the dark");
    browser.picture("page-phone.png");

    // The first key leads to the content.
    browser.press("Tab");
    assert_eq!(browser.evaluate("document.activeElement.className"), "skip");
    browser.press("Enter");
    browser.wait_until("document.activeElement.id === 'content'");

    // Keys choose among the nodes, of which only the map itself is a stop.
    browser.evaluate("document.getElementById('map').focus()");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    browser.wait_until(&format!("{}.startsWith('node 1 runs job 1')", text("node-detail")));
    browser.press("Tab");
    assert_eq!(browser.evaluate("document.activeElement.textContent"), "show job 1");

    // From key to key every stop is seen, and the last one leads out of the page: there is no trap.
    let mut seen = Vec::new();
    for _ in 0..80 {
        browser.press("Tab");
        let here = browser.evaluate(
            "document.activeElement === document.body ? '' : document.activeElement.id || document.activeElement.textContent",
        );
        if here == "" || seen.contains(&here) && here != "Cancel" {
            break;
        }
        seen.push(here);
    }
    for id in ["budget-limit", "whatif-limit", "whatif-policy", "submit-command"] {
        assert!(seen.contains(&json!(id)), "{id} cannot be reached: {seen:?}");
    }

    // The button overrides the system's colours, also after the page is opened again.
    browser.click("#theme");
    browser.visit(&served.page);
    assert_eq!(browser.evaluate("document.documentElement.dataset.theme"), "light");
    assert_eq!(complaints(&browser, &served, ""), [""; 0]);

    // What the page offers to try are the policies that there are.
    let offered = browser.evaluate(
        "Array.from(document.querySelectorAll('#policies option'), (option) => option.value)",
    );
    let mut offered: Vec<String> = serde_json::from_value(offered).unwrap();
    let mut known: Vec<String> =
        PolicySpec::all().iter().map(|policy| policy.name().to_owned()).collect();
    offered.sort();
    known.sort();
    assert_eq!(offered, known);
}

/// A daemon that is gone is missed, and one that is back is found.
#[needs(chromium)]
#[test]
fn a_lost_connection_is_said_and_heals() {
    let mut browser = Browser::start();
    let mut served = Served::new(4);
    browser.look(Looks::DESK);
    browser.visit(&served.page);
    let lost = "!document.getElementById('lost').hidden";
    browser.wait_until(&format!("{} === '● live'", text("connection")));
    served.kill();
    browser.wait_until(lost);
    let said = browser.evaluate(&text("lost"));
    assert!(said.as_str().unwrap().starts_with("The daemon does not answer since"), "{said}");
    browser.picture("page-lost.png");
    served.begin_again();
    browser.wait_until(&format!("{lost} === false"));
    browser.wait_until(&format!("{} === '● live'", text("connection")));
    assert_eq!(complaints(&browser, &served, "net::ERR_"), [""; 0]);
}

/// Ten thousand waiting jobs and a thousand nodes: the page shows some of them, and leaves what is shown as it is when the
/// same list comes again. How long that holds the page up is printed. The jobs are held, so that the daemon has no plan
/// to make for them, which takes longer than a test may.
#[needs(chromium)]
#[test]
fn a_long_queue_is_shown_and_kept() {
    let mut browser = Browser::start();
    let served = Served::new(1000);
    served.command(&["submit", "-N", "1000", "-t", "10h", "--", "sh", "-c", UNTIL_GO]);
    for _ in 0..10 {
        served.command(&["submit", "--hold", "--array", "1-1000", "-t", "10m", "--", "true"]);
    }
    browser.look(Looks::DESK);
    browser.call(
        "Page.addScriptToEvaluateOnNewDocument",
        json!({ "source": "globalThis.longTasks = []; new PerformanceObserver((list) => { \
                for (const { startTime, duration } of list.getEntries()) longTasks.push([startTime, duration]); }) \
                .observe({ type: 'longtask', buffered: true });" }),
    );
    browser.visit(&served.page);
    browser.wait_until(&format!("{} === '10,000'", text("waiting-count")));
    browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 200");
    browser.wait_until("document.querySelectorAll('#map li[data-state=busy]').length === 1000");

    // The filter finds one of each array among them all, and more can be shown.
    browser.write("#queue-filter", "_777 ");
    browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 10");
    browser.write("#queue-filter", "");
    browser.click("#queue-more");
    browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 400");

    // Once everything is there, lists come again and again, and the rows that are there stay.
    browser.evaluate(
        "{ globalThis.settled = performance.now(); globalThis.refreshes = 0; globalThis.rows = 0; \
         new MutationObserver((changes) => { refreshes += changes.length; }) \
           .observe(document.documentElement, { attributeFilter: ['data-shown'] }); \
         new MutationObserver((changes) => { for (const { addedNodes } of changes) \
           for (const { nodeName } of addedNodes) if (nodeName === 'TR') rows += 1; }) \
           .observe(document.getElementById('queue'), { childList: true, subtree: true }); }",
    );
    browser.wait_until("refreshes >= 3");
    assert_eq!(browser.evaluate("rows"), 0, "rows are made again");
    let late =
        browser.evaluate("longTasks.filter(([at]) => at > settled).map(([, length]) => length)");
    let took = browser.evaluate("Number(document.documentElement.dataset.shown)");
    println!("a refresh of the tables took {took} ms; tasks that held the page up, in ms: {late}");
    assert_eq!(complaints(&browser, &served, ""), [""; 0]);
    browser.picture("page-many.png");
}

/// What is in sight of the reader, without scrolling anything sideways.
fn in_sight(browser: &mut Browser, selector: &str) -> bool {
    let seen = browser.evaluate(&format!(
        "(() => {{ const box = document.querySelector('{selector}').getBoundingClientRect(), \
         around = document.querySelector('{selector}').closest('.scroll').getBoundingClientRect(); \
         return box.width > 0 && box.left >= around.left && box.right <= Math.min(around.right, innerWidth); }})()"
    ));
    seen == true
}

/// People are called by their names, the page by that of the cluster, and buttons are in sight on usual screens.
#[needs(chromium)]
#[test]
fn names_and_buttons_are_in_sight() {
    let mut browser = Browser::start();
    let served = Served::new(4);
    served.command(&["submit", "-N", "4", "-t", "10h", "--", "sh", "-c", UNTIL_GO]);
    served.command(&[
        "submit",
        "-N",
        "3",
        "-t",
        "2h",
        "-J",
        "a-job-with-quite-a-long-name",
        "--",
        "true",
    ]);
    browser.look(Looks { width: 1280, height: 800, is_dark: false, is_phone: false });
    browser.visit(&served.page);
    browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 1");
    let row = "document.querySelector('#queue tr[data-key=\"2\"]')";
    browser.wait_until(&format!("/\\d\\d:\\d\\d/.test({row}.children[2].textContent)"));
    for change in ["hold", "cancel"] {
        assert!(in_sight(&mut browser, &format!("#queue [data-change={change}]")), "{change}");
    }
    assert!(in_sight(&mut browser, "#running [data-change=cancel]"));
    // A job whose name is hidden has its owner's, which the system knows.
    if rustix::process::geteuid().is_root() {
        assert_eq!(browser.evaluate(&format!("{row}.children[0].textContent")), "2 root");
        browser.write("#queue-filter", "root");
        browser.wait_until("document.querySelectorAll('#queue tbody tr').length === 1");
        browser.write("#queue-filter", "");
    }
    // Operators see the owner beside the name.
    browser.click("#token");
    give_token(&mut browser, &served.token("operator"));
    browser.wait_until(&format!(
        "{row}?.children[0].textContent.includes(' · a-job-with-quite-a-long-name') ?? false"
    ));
    for change in ["hold", "cancel"] {
        assert!(in_sight(&mut browser, &format!("#queue [data-change={change}]")), "{change}");
    }
    browser.picture("page-1280.png");
    browser.click("#queue [data-change=hold][data-job=\"2\"]");
    browser.wait_until(&format!("{row}.textContent.includes('held until it is released')"));
    if rustix::process::geteuid().is_root() {
        browser.wait_until(&format!("{}.includes('job 2 is held by root')", text("lately")));
    }

    // Who may only look is offered nothing, and asked nothing.
    browser.click("#token");
    browser.click("#token");
    give_token(&mut browser, &served.token("viewer"));
    browser.wait_until("document.querySelectorAll('[data-change]').length === 0");
    assert_eq!(browser.evaluate("document.querySelector('#submit-form button').disabled"), true);
    assert_eq!(browser.evaluate("document.querySelector('#budget-form button').disabled"), true);
    assert_accessible(&mut browser, "the page of somebody who may only look");

    // Without a token the question for one comes first, and what is not allowed is not asked about.
    browser.click("#token");
    browser.wait_until("document.querySelectorAll('#queue [data-change=cancel]').length === 1");
    browser.click("#queue [data-change=cancel]");
    give_token(&mut browser, &served.token("viewer"));
    browser.wait_until(&format!(
        "{}.includes('your token may not change job 2')",
        text("jobs-answer")
    ));
    assert_eq!(browser.evaluate("document.getElementById('sure-dialog').open"), false);
    assert_eq!(served.jobs(), 2);
    browser.click("#token");

    // A job is assumed with what the fields say, also where they say what happens if they are empty.
    browser.write("#whatif-nodes", "1");
    browser.click("#whatif-form button[type=submit]");
    browser.wait_until(&format!("{}.includes('The job would')", text("whatif-words")));

    // On a phone, the start stands below the reason.
    browser.look(Looks { width: 390, height: 844, is_dark: true, is_phone: true });
    served.command(&["release", "2"]);
    // The date stands before the time from two in the afternoon on: the job starts in ten hours.
    browser.wait_until(&format!("/start .*\\d\\d:\\d\\d/.test({row}.children[1].innerText)"));
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 390);
    browser.picture("page-390.png");
    fs::write(served.path("go"), "").unwrap();
}

/// Jobs that are over, the energy of users and accounts, and the power of the past.
#[needs(chromium)]
#[test]
fn the_past_on_the_page() {
    let mut browser = Browser::start();
    let served = Served::new(4);
    // Jobs of one node begin in order; when the last ones are over, all are.
    served.command(&["submit", "-t", "1m", "-J", "bad", "-A", "chemistry", "--", "false"]);
    served.command(&["submit", "-t", "1m", "-J", "good", "--", "true"]);
    let many = ["submit", "--wait", "--array", "1-60", "-t", "1m", "-A", "physics", "--", "true"];
    served.command(&many);
    wait_for("the ends of all", || (served.jobs() == 0).then_some(()));
    browser.look(Looks { width: 1280, height: 800, is_dark: false, is_phone: false });
    browser.visit(&served.page);
    let rows = "document.querySelectorAll('#finished tbody tr').length";
    // Sixty elements and two jobs: a page is full, and the rest is on the next.
    browser.wait_until(&format!("{rows} === 50"));
    browser.wait_until("!document.getElementById('finished-older').disabled");
    browser.click("#finished-older");
    browser.wait_until(&format!("{rows} === 12"));
    assert_eq!(browser.evaluate("document.getElementById('finished-older').disabled"), true);
    browser.wait_until(&format!("{}.startsWith('Page 2: 12 jobs')", text("finished-note")));
    browser.click("#finished-newer");
    browser.wait_until(&format!("{rows} === 50"));
    browser.choose("#finished-state", "failed");
    browser.wait_until(&format!("{rows} === 1"));
    let row = "document.querySelector('#finished tbody tr').textContent";
    assert!(browser.evaluate(row).as_str().unwrap().contains("failed: exit code 1"));
    // Names and accounts are for those who may see them.
    browser.click("#token");
    give_token(&mut browser, &served.token("operator"));
    browser.wait_until(&format!("{row}.includes('bad') && {row}.includes('chemistry')"));
    browser.write("#finished-account", "physics");
    browser.choose("#finished-state", "");
    browser.wait_until(&format!("{rows} === 50"));
    browser.write("#finished-user", "nobody-at-all");
    browser.choose("#finished-state", "completed");
    browser.wait_until(&format!("{}.includes('there is no user')", text("finished-answer")));
    browser.write("#finished-user", "");
    browser.write("#finished-account", "");
    browser.choose("#finished-state", "");
    browser.wait_until(&format!("{}.startsWith('Page 1: 50 jobs')", text("finished-note")));

    browser.choose("#usage-by", "account");
    browser.wait_until("document.querySelectorAll('#usage tbody tr').length === 3");
    let usage = browser.evaluate(&text("usage"));
    for account in ["physics", "chemistry", "no account"] {
        assert!(usage.as_str().unwrap().contains(account), "{usage}");
    }
    browser.wait_until(&format!("{}.includes('62 jobs ended')", text("usage-note")));

    for days in ["1", "30", "366", "7"] {
        browser.choose("#past-days", days);
        browser
            .wait_until(&format!("document.getElementById('past-chart').chart?.about === {days}"));
    }
    browser.wait_until(&format!("{}.includes('the machine drew')", text("past-words")));
    assert_accessible(&mut browser, "the past in light colours");
    browser.picture("page-past-light.png");
    browser.click("#theme");
    browser.look(Looks { width: 390, height: 844, is_dark: true, is_phone: true });
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth"), 390);
    assert_accessible(&mut browser, "the past on a phone");
    browser.picture("page-past-phone.png");
    assert_eq!(complaints(&browser, &served, "with a status of 400"), [""; 0]);
}
