//! What monitoring gets to see, by the programs that sites use for it.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use busbar_needs::needs;
use serde_json::Value;

use super::Web;
use crate::patience::wait_for;

/// The names of metrics in a text, without labels and values.
fn names(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let name = |line: &str| line.split(['{', ' ']).next().unwrap().to_owned();
    let mut names: Vec<String> = lines.map(name).collect();
    names.sort();
    names.dedup();
    names
}

/// A daemon that has done something of everything, and its metrics while a job ran.
fn busy() -> (Web, String) {
    let web = Web::new("easy-power");
    let operator = web.operator();
    let submit = |script: &str| {
        let answer = operator.send_json("POST", "/api/v2/jobs", &web.job(4, script));
        answer.json()["job"].as_u64().unwrap()
    };
    let (short, long) = (submit("true"), submit("sleep infinity"));
    let state = |job: u64| web.client.get(&format!("/api/v2/jobs/{job}")).json()["state"].clone();
    wait_for("jobs", || (state(short) == "completed" && state(long) == "running").then_some(()));
    operator.send_json("PUT", "/api/v2/budget", &serde_json::json!({"limit": "250W"}));
    let metrics = || web.client.get("/metrics").body;
    wait_for("counted events", || {
        metrics().contains("jobs_changed_total{reason=\"budget_fell\"}").then_some(())
    });
    // Only nodes with jobs have caps.
    let meanwhile = wait_for("a capped node", || {
        Some(metrics()).filter(|text| text.contains("busbar_node_cap_watts"))
    });
    operator.send_json("POST", &format!("/api/v2/jobs/{long}/cancel"), &serde_json::json!({}));
    wait_for("a counted end", || {
        metrics().contains("jobs_ended_total{outcome=\"cancelled\"} 1").then_some(())
    });
    (web, meanwhile)
}

#[test]
fn metrics_are_as_prometheus_wants_them() {
    let (web, _) = busy();
    let older = web.client.get("/metrics");
    assert!(older.headers.contains("content-type: text/plain; version=0.0.4"), "{}", older.headers);
    let accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
    let newer = web.client.ask("GET", "/metrics", accept, "");
    assert!(
        newer.headers.contains("content-type: application/openmetrics-text"),
        "{}",
        newer.headers
    );
    assert!(newer.body.ends_with("# EOF\n"), "{}", newer.body);
    let value = |name: &str| {
        let line = older.body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse::<f64>().ok())
            .unwrap_or_else(|| panic!("{name}: {}", older.body))
    };
    assert_eq!(value("busbar_budget_watts"), 250.0);
    assert_eq!(value("busbar_jobs_submitted_total"), 2.0);
    assert_eq!(value("busbar_jobs_started_total"), 2.0);
    assert_eq!(value("busbar_over_budget_seconds_total"), 0.0);
    assert_eq!(value("busbar_node_up{node=\"7\"}"), 1.0);
}

#[needs(promtool)]
#[test]
fn promtool_finds_nothing_wrong_with_metrics() {
    let (web, _) = busy();
    let metrics = web.client.get("/metrics").body;
    let mut check = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let said = check.wait_with_output().unwrap();
    let said_text =
        String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success() && said_text.trim().is_empty(), "{said_text}");
}

#[test]
fn the_queries_of_the_grafana_file_name_metrics_that_exist() {
    let dashboard = include_str!("../../../packaging/grafana/busbar.json");
    let dashboard: Value = serde_json::from_str(dashboard).unwrap();
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 8, "{queries:?}");
    let (web, meanwhile) = busy();
    let known = names(&(meanwhile + &web.client.get("/metrics").body));
    for query in queries {
        let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let named: Vec<&str> = words.filter(|word| word.starts_with("busbar_")).collect();
        assert!(!named.is_empty(), "{query}");
        for name in named {
            // Only nodes with meters have these.
            let is_measured =
                ["busbar_measured_power_watts", "busbar_node_power_watts"].contains(&name);
            assert!(
                is_measured || known.iter().any(|known| known == name),
                "{name} in {query}: {known:?}"
            );
        }
    }
}

fn collect(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            queries.extend(fields.get("expr").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|field| collect(field, queries));
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, queries)),
        _ => (),
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[needs(prometheus)]
#[test]
fn prometheus_scrapes_it_without_a_warning() {
    let (web, _) = busy();
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "global:\n  scrape_interval: 5s\nscrape_configs:\n- job_name: busbar\n  static_configs:\n  - targets: ['{}']\n",
        web.client.at
    );
    fs::write(folder.path().join("prometheus.yml"), config).unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let _running = Running(
        Command::new("prometheus")
            .arg(format!("--config.file={}", folder.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={port}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap(),
    );
    let prometheus = super::Client::new(port);
    let asked = |query: &str| -> Option<Value> {
        std::net::TcpStream::connect(port).ok()?;
        let answer = prometheus.get(&format!("/api/v1/query?query={query}"));
        let answer: Value = serde_json::from_str(&answer.body).ok()?;
        answer["data"]["result"].get(0)?["value"].get(1).cloned()
    };
    wait_for("a scrape", || (asked("up")? == "1").then_some(()));
    let budget = wait_for("a metric", || asked("busbar_budget_watts"));
    assert_eq!(budget, "250");
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.contains("scrape") && line.contains("level=warn")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[needs(schemathesis)]
#[test]
fn a_fuzzer_finds_no_answer_outside_the_description() {
    let schemathesis = std::env::var("BUSBAR_SCHEMATHESIS").unwrap();
    let web = Web::new("easy");
    let token = web.token("operator", &[]);
    let fuzzed = Command::new(schemathesis)
        .args(["run", &format!("http://{}/api/v2/openapi.json", web.client.at)])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        // Stopping the daemon ends the test. A text that is no budget or no policy fits the schema and is refused.
        .args(["--exclude-path", "/api/v2/stop", "--exclude-checks", "positive_data_acceptance"])
        .args(["--max-examples", "25", "--seed", "1", "--no-color"])
        // Neither the daemon nor the fuzzer has to be fast.
        .args(["--request-timeout", "900", "--suppress-health-check", "too_slow"])
        .current_dir(web.served.path(""))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&fuzzed.stdout);
    assert!(fuzzed.status.success(), "{said}\n{}", String::from_utf8_lossy(&fuzzed.stderr));
    assert!(web.client.get("/healthz").status == 200, "it still answers");
    let jobs = web.client.get("/api/v2/jobs").json();
    let operator = web.client.with(&token);
    for job in jobs["jobs"].as_array().unwrap() {
        operator.send_json("POST", &format!("/api/v2/jobs/{}/cancel", job["job"]), &Value::Null);
    }
}
