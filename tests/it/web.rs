//! The daemon's web server: its API, who may use it, and its metrics, by a real daemon.

mod client;
mod crowded;
mod elsewhere;
mod monitored;
mod past;

use std::io::BufReader;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use busbar_needs::needs;
use serde_json::{Value, json};

use crate::faults::refused::refused;
use crate::faults::served::{BUSBAR, Served};
use crate::patience::wait_for;
use client::{Client, chunk};

/// A daemon with a web server.
struct Web {
    served: Served,
    client: Client,
}

impl Web {
    fn new(policy: &str) -> Self {
        Web::listening(policy, "listen = \"127.0.0.1:0\"")
    }

    fn listening(policy: &str, web: &str) -> Self {
        Web::configured(policy, &format!("[web]\n{web}"))
    }

    fn configured(policy: &str, more: &str) -> Self {
        let mut served = Served::new(policy, more);
        served.begin_and_answer();
        let at = wait_for("an address", || {
            let log = served.log();
            let (_, rest) = log.split_once("the web page is at http")?;
            rest.split_once("://")?.1.split_once('/')?.0.parse::<SocketAddr>().ok()
        });
        Web { served, client: Client::new(at) }
    }

    /// Makes a token by the command that people use.
    fn token(&self, role: &str, more: &[&str]) -> String {
        let made = Command::new(BUSBAR)
            .args(["token", "create", "--role", role, "--name", "test", "--state"])
            .arg(self.served.state())
            .args(more)
            .output()
            .unwrap();
        let text = String::from_utf8(made.stdout.clone()).unwrap();
        assert!(made.status.success() && text.starts_with("busbar_"), "{made:?}");
        text.trim().to_owned()
    }

    fn operator(&self) -> Client {
        self.client.with(&self.token("operator", &[]))
    }

    /// A job for the API, which runs a script.
    fn job(&self, nodes: u32, script: &str) -> Value {
        json!({
            "wish": {"name": "web", "nodes": nodes, "time_s": 36_000},
            "program": {
                "command": ["sh", "-c", script],
                "folder": self.served.path(""),
                "environment": [["PATH", std::env::var("PATH").unwrap()]],
                "output": "/dev/null"
            }
        })
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.served.drain();
            self.served.stop();
        }
    }
}

#[test]
fn reading_needs_no_token_here_and_changes_do() {
    let web = Web::new("easy");
    let paths = ["status", "nodes", "jobs", "budget", "power", "history", "forecast", "whoami"];
    let past = ["history/jobs", "history/usage", "history/power"];
    for path in paths.into_iter().chain(past) {
        let answer = web.client.get(&format!("/api/v2/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json();
    }
    let before = web.client.get("/api/v2/budget").json();
    let set = json!({"limit": "300W"});
    let refused = [
        (web.client.clone(), 401),
        (web.client.with("busbar_wrong"), 401),
        (web.client.with(&web.token("viewer", &[])), 403),
        (web.client.with(&web.token("user", &["--user", "root"])), 403),
    ];
    for (client, status) in refused {
        let answer = client.send_json("PUT", "/api/v2/budget", &set);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert_eq!(answer.error(), if status == 401 { "unauthorised" } else { "forbidden" });
    }
    assert_eq!(web.client.get("/api/v2/budget").json(), before, "nothing has changed");
    let operator = web.operator();
    let set = operator.send_json("PUT", "/api/v2/budget", &set);
    assert_eq!((set.status, &set.json()["limit_w"]), (200, &json!(300)), "{}", set.body);
    // Who made a change sees it at once.
    assert_eq!(web.client.get("/api/v2/budget").json()["limit_w"], 300);
    assert_eq!(operator.ask("DELETE", "/api/v2/budget", "", "").status, 200);
    assert_eq!(web.client.get("/api/v2/budget").json()["limit_w"], before["limit_w"]);
    // A wrong token is refused although none would be needed.
    assert_eq!(web.client.with("busbar_wrong").get("/api/v2/status").status, 401);
}

#[test]
fn a_revoked_token_is_worth_nothing() {
    let web = Web::new("easy");
    let token = web.token("operator", &[]);
    let client = web.client.with(&token);
    assert_eq!(client.get("/api/v2/whoami").json()["role"], "operator");
    let command = |arguments: &[&str]| {
        let state = web.served.state();
        let done =
            Command::new(BUSBAR).arg("token").args(arguments).arg("--state").arg(state).output();
        String::from_utf8(done.unwrap().stdout).unwrap()
    };
    let listed: Value = serde_json::from_str(&command(&["list", "--json"])).unwrap();
    assert_eq!(listed[0]["role"], "operator");
    assert!(!listed.to_string().contains(&token), "the list does not show it");
    command(&["revoke", listed[0]["id"].as_str().unwrap()]);
    assert_eq!(client.get("/api/v2/whoami").status, 401);
}

/// Whoever starts a daemon, or asks how it is, hears where its page is; a list of tokens says until when each is valid.
#[test]
fn people_hear_where_the_page_is_and_how_long_tokens_last() {
    let served = Served::new("easy", "");
    let run = |arguments: &[&str]| {
        let output = Command::new(BUSBAR)
            .args(arguments)
            .env("BUSBAR_SOCKET", served.socket())
            .current_dir(served.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let said = run(&["serve", "--background", "--config", "busbar.toml", "--web=127.0.0.1:0"]);
    let page = |text: &str| {
        let (_, rest) = text.split_once("http://")?;
        let (address, _) = rest.split_once('/')?;
        address.parse::<SocketAddr>().ok()
    };
    let at = page(&said).unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("the web page is at http://127.0.0.1:"), "{said}");
    assert_eq!(Client::new(at).get("/healthz").status, 200);
    assert_eq!(page(&run(&["status"])), Some(at));
    let look: Value = serde_json::from_str(&run(&["top", "--json"])).unwrap();
    assert_eq!(look["status"]["page"], format!("http://{at}/"));
    assert!(look["jobs"].as_array().unwrap().is_empty() && !look["nodes"][0].is_null());
    let state = served.state();
    let token =
        |more: &[&str]| run(&[&["token"], more, &["--state", state.to_str().unwrap()]].concat());
    token(&["create", "--role", "viewer", "--name", "forever"]);
    token(&["create", "--role", "viewer", "--name", "short", "--expires", "12h"]);
    let listed = token(&["list"]);
    let line = |name: &str| listed.lines().find(|line| line.ends_with(name)).unwrap().to_owned();
    assert!(line("forever").contains("until revoked"), "{listed}");
    assert!(line("short").contains("until 20"), "{listed}");
    run(&["stop"]);
}

/// The role says what a token is for: that of a user is good for that user's jobs, also if the user is root or an operator.
#[needs(root)]
#[test]
fn a_users_token_is_good_for_that_users_jobs() {
    const NOBODY: u32 = 65_534;
    let more = format!("operators = [{NOBODY}]\n[web]\nlisten = \"127.0.0.1:0\"");
    let web = Web::configured("easy", &more);
    let of =
        |role: &str, user: u32| web.client.with(&web.token(role, &["--user", &user.to_string()]));
    let submit = |client: &Client| {
        let mut job = web.job(1, "exit 0");
        job["wish"]["held"] = json!(true);
        let submitted = client.send_json("POST", "/api/v2/jobs", &job);
        assert_eq!(submitted.status, 201, "{}", submitted.body);
        submitted.json()["job"].as_u64().unwrap()
    };
    let act = |client: &Client, job: u64, what: &str| {
        client.send_json("POST", &format!("/api/v2/jobs/{job}/{what}"), &json!({}))
    };
    for (owner, other) in [(NOBODY, 0), (0, NOBODY)] {
        let (owns, user) = (of("user", owner), of("user", other));
        let (operator, viewer) = (of("operator", other), of("viewer", owner));
        let job = submit(&owns);
        let path = format!("/api/v2/jobs/{job}");
        // Whoever may see the name asks first: what is kept of that answer is not for others.
        for client in [&operator, &owns] {
            assert_eq!(client.get("/api/v2/jobs").json()["jobs"][0]["name"], "web");
            assert_eq!(client.get(&path).json()["command"][2], "exit 0");
            assert!(client.get("/api/v2/forecast").body.contains("\"web\""));
        }
        for client in [&user, &viewer, &web.client] {
            let listed = client.get("/api/v2/jobs").json()["jobs"][0].clone();
            assert_eq!((&listed["job"], listed.get("name")), (&json!(job), None), "{listed}");
            assert!(client.get(&path).json().get("command").is_none());
            assert!(!client.get("/api/v2/forecast").body.contains("\"web\""));
        }
        for what in ["cancel", "hold", "release"] {
            let refused = act(&user, job, what);
            assert_eq!(refused.status, 403, "{what}: {}", refused.body);
            assert!(refused.body.contains("belongs to another user"), "{}", refused.body);
            assert_eq!(act(&viewer, job, what).status, 403);
        }
        assert_eq!(owns.get(&path).json()["state"], "held", "nothing has changed");
        for (client, method, path) in [
            (&user, "DELETE", "/api/v2/budget"),
            (&owns, "DELETE", "/api/v2/budget"),
            (&user, "POST", "/api/v2/stop"),
        ] {
            assert_eq!(client.ask(method, path, "", "").status, 403);
        }
        // The jobs of its own user are a token's own, also those of root; and an operator's token is good for all.
        let own = submit(&user);
        assert_eq!(user.get(&format!("/api/v2/jobs/{own}")).json()["user"], other);
        assert_eq!(act(&user, own, "cancel").status, 200);
        assert_eq!(act(&operator, job, "cancel").status, 200);
    }
}

#[test]
fn a_job_is_submitted_followed_and_cancelled() {
    let web = Web::new("easy");
    let operator = web.operator();
    let mut events = BufReader::new(web.client.send("GET", "/api/v2/events", "", ""));
    let submitted = operator.send_json("POST", "/api/v2/jobs", &web.job(2, "sleep infinity"));
    assert_eq!(submitted.status, 201, "{}", submitted.body);
    let job = submitted.json()["job"].as_u64().unwrap();
    let path = format!("/api/v2/jobs/{job}");
    wait_for("a running job", || {
        (web.client.get(&path).json()["state"] == "running").then_some(())
    });
    // Only its owner and operators see what it runs.
    assert!(web.client.get(&path).json().get("command").is_none());
    assert_eq!(operator.get(&path).json()["command"][2], "sleep infinity");
    let all = web.client.get("/api/v2/jobs").json();
    assert_eq!((&all["total"], &all["jobs"][0]["job"]), (&json!(1), &json!(job)));
    assert_eq!(
        web.client.get("/api/v2/jobs?state=waiting").json(),
        json!({"total": 0, "jobs": []})
    );
    assert_eq!(web.client.get("/api/v2/jobs?limit=0").json(), json!({"total": 1, "jobs": []}));
    let cancelled = operator.send_json("POST", &format!("{path}/cancel"), &json!({}));
    assert_eq!((cancelled.status, &cancelled.json()[0]["job"]), (200, &json!(job)));
    wait_for("an end", || (web.client.get(&path).json()["state"] == "cancelled").then_some(()));
    let again = operator.send_json("POST", &format!("{path}/cancel"), &json!({}));
    assert!([404, 409].contains(&again.status), "{}", again.body);
    again.error();
    // Those who watch have heard of it.
    let mut heard = String::new();
    wait_for("an event", || {
        heard += &chunk(&mut events).unwrap_or_default();
        heard.contains("\"ended\"").then_some(())
    });
    assert!(heard.contains("event: status") && heard.contains("\"started\""), "{heard}");
}

#[test]
fn caps_follow_the_budget_and_a_what_if_changes_nothing() {
    let web = Web::new("easy-power");
    let operator = web.operator();
    let submit = |nodes| {
        let answer = operator.send_json("POST", "/api/v2/jobs", &web.job(nodes, "sleep infinity"));
        answer.json()["job"].as_u64().unwrap_or_else(|| panic!("{}", answer.body))
    };
    let job = submit(4);
    let path = format!("/api/v2/jobs/{job}");
    wait_for("a running job", || {
        (web.client.get(&path).json()["state"] == "running").then_some(())
    });
    let before = web.client.get(&path).json()["power_w"].as_f64().unwrap();
    let question = json!({"budget": [{"in_s": 0, "limit": "250W"}], "policy": "fcfs",
                          "job": {"name": "one more", "nodes": 2, "time_s": 60}});
    let what_if = web.client.send_json("POST", "/api/v2/forecast", &question);
    assert_eq!(what_if.status, 200, "{}", what_if.body);
    let what_if = what_if.json();
    assert_eq!(what_if["limits"][0]["limit_w"], 250, "{what_if}");
    assert!(!what_if["power"].as_array().unwrap().is_empty(), "{what_if}");
    let lines = what_if["jobs"].as_array().unwrap();
    assert!(lines.len() == 2 && lines[1]["job"].is_null(), "{what_if}");
    assert_eq!(web.client.get("/api/v2/status").json()["policy"], "easy-power");
    assert_eq!(web.client.get(&path).json()["power_w"], before);

    let set = operator.send_json("PUT", "/api/v2/budget", &json!({"limit": "250W"}));
    assert_eq!(set.status, 200, "{}", set.body);
    let caps = || -> f64 {
        let nodes = web.client.get("/api/v2/nodes").json();
        nodes.as_array().unwrap().iter().filter_map(|node| node["cap_w"].as_f64()).sum()
    };
    wait_for("lower caps", || (caps() > 0.0 && caps() <= 250.0).then_some(()));
    let power = web.client.get("/api/v2/budget").json();
    assert!(
        power["base_w"].as_f64().unwrap() + power["held_w"].as_f64().unwrap() <= 250.0,
        "{power}"
    );
    operator.send_json("POST", &format!("{path}/cancel"), &json!({}));
}

#[test]
fn every_error_has_the_same_form() {
    let web = Web::new("easy");
    let operator = web.operator();
    let json_body = "Content-Type: application/json\r\n";
    let large = format!("{{\"limit\": \"{}\"}}", "x".repeat(2 << 20));
    let cases = [
        (operator.get("/api/v2/nothing"), 404, "unknown"),
        (operator.get("/api/v1/status"), 410, "gone"),
        (operator.send_json("POST", "/api/v1/jobs", &json!({})), 410, "gone"),
        (operator.get("/api/v2/jobs/77"), 404, "unknown"),
        (operator.get("/api/v2/jobs/x"), 400, "malformed"),
        (operator.get("/api/v2/jobs?colour=red"), 400, "malformed"),
        (operator.get("/api/v2/history?limit=10001"), 400, "malformed"),
        (operator.ask("PATCH", "/api/v2/jobs", "", ""), 405, "method"),
        (operator.ask("PUT", "/api/v2/budget", "", "{}"), 415, "unsupported"),
        (operator.ask("PUT", "/api/v2/budget", json_body, "{"), 400, "malformed"),
        (
            operator.ask("PUT", "/api/v2/budget", json_body, "{\"limit\": \"lots\"}"),
            400,
            "malformed",
        ),
        (operator.ask("PUT", "/api/v2/budget", json_body, "{\"limit\": 5}"), 400, "malformed"),
        (operator.ask("PUT", "/api/v2/budget", json_body, &large), 413, "too_much"),
        (Client { host: "evil.example".to_owned(), ..operator.clone() }.get("/"), 403, "forbidden"),
    ];
    for (answer, status, kind) in cases {
        assert_eq!((answer.status, answer.error().as_str()), (status, kind), "{}", answer.body);
    }
    let old = operator.get("/api/v1/status").body;
    assert!(old.contains("/api/v2/openapi.json") && old.contains("power_w"), "{old}");
}

/// The description names the unit of every quantity, in watts, seconds or joules.
#[test]
fn the_description_names_units() {
    /// Properties that count something, name it by a number, or are a share.
    const PLAIN: &[&str] = &[
        "after",
        "age",
        "all",
        "array",
        "association",
        "at_once",
        "attempt",
        "attempts",
        "baseline",
        "by",
        "completed",
        "cores",
        "count",
        "cycles",
        "element",
        "exit_code",
        "exited",
        "fair_share",
        "first",
        "free_gpus",
        "free_processors",
        "gpus",
        "group",
        "index",
        "job",
        "job_size",
        "jobs",
        "killed",
        "least",
        "line",
        "looks",
        "mean_bsld",
        "measured_jobs",
        "median",
        "moldable",
        "most",
        "node",
        "nodes",
        "on",
        "p90",
        "percent",
        "process",
        "processors",
        "resources",
        "running",
        "signal",
        "signalled",
        "speed",
        "switched",
        "total",
        "unconfirmed",
        "under",
        "user",
        "waiting",
    ];
    fn look(key: &str, value: &Value, found: &mut usize) {
        let is_number = match &value["type"] {
            Value::String(kind) => ["number", "integer"].contains(&kind.as_str()),
            Value::Array(kinds) => {
                kinds.contains(&"number".into()) || kinds.contains(&"integer".into())
            }
            _ => false,
        };
        if is_number {
            let has_unit = ["_w", "_s", "_j", "_mib"].iter().any(|unit| key.ends_with(unit));
            *found += usize::from(has_unit);
            assert!(has_unit || PLAIN.contains(&key), "{key}: {value}");
        }
        match value {
            Value::Array(parts) => parts.iter().for_each(|part| look(key, part, found)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    let key = if STRUCTURE.contains(&name.as_str()) { key } else { name };
                    look(key, value, found);
                }
            }
            _ => (),
        }
    }
    /// Words of the description itself.
    const STRUCTURE: &[&str] = &["items", "prefixItems", "oneOf", "allOf", "anyOf", "properties"];
    let document = busbar::web::openapi();
    let mut found = 0;
    look("", &document["components"]["schemas"], &mut found);
    assert!(found > 40, "only {found} quantities");
    let text = document.to_string();
    for gone in ["milliwatts", "microjoules", "milliseconds", "microseconds", "millionths"] {
        assert!(!text.contains(gone), "{gone}");
    }
}

#[test]
fn browsers_are_told_to_fetch_nothing_elsewhere() {
    let web = Web::new("easy");
    for path in ["/", "/page.css", "/page.js", "/api/v2/status", "/nothing"] {
        let headers = web.client.get(path).headers;
        for header in
            ["content-security-policy: default-src 'none'", "x-content-type-options: nosniff"]
        {
            assert!(headers.contains(header), "{path}: {headers}");
        }
    }
    let page = web.client.get("/").body;
    assert!(
        !page.contains("http://") && !page.contains("https://"),
        "the page names another server"
    );
}

#[needs(curl)]
#[test]
fn with_a_certificate_it_speaks_tls() {
    let keys = tempfile::tempdir().unwrap();
    let made = Command::new(BUSBAR)
        .args(["agent", "keys", "--node", "localhost"])
        .arg(keys.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let file = |name: &str| keys.path().join(name).display().to_string();
    let config = format!(
        "listen = \"127.0.0.1:0\"\ncertificate = \"{}\"\nkey = \"{}\"",
        file("localhost.pem"),
        file("localhost.key")
    );
    // A key that others can read is not used.
    let served = Served::new("easy", &format!("[web]\n{config}"));
    let allow = |mode| {
        std::fs::set_permissions(file("localhost.key"), PermissionsExt::from_mode(mode)).unwrap();
    };
    for mode in [0o644, 0o640] {
        allow(mode);
        let said = refused(&["--config", served.path("busbar.toml").to_str().unwrap()]);
        assert!(said.contains(&format!("chmod 600 {}", file("localhost.key"))), "{said}");
    }
    allow(0o600);
    let web = Web::listening("easy", &config);
    let ask = |more: &[&str]| {
        let url = format!("https://localhost:{}/api/v2/status", web.client.at.port());
        Command::new("curl")
            .args(["-sS", "--cacert", &file("authority.pem")])
            .args(more)
            .arg(url)
            .output()
            .unwrap()
    };
    let answer = ask(&[]);
    assert!(answer.status.success(), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.stdout).contains("\"policy\":\"easy\""), "{answer:?}");
    assert!(!ask(&["--cacert", "/dev/null"]).status.success(), "a stranger's certificate");
}
