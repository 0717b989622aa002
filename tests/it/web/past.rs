//! The past through the API: jobs that are over, what they took, and the power of the past.

use serde_json::{Value, json};

use super::Web;
use super::client::Client;
use crate::patience::wait_for;

/// Runs a job to its end, for an account.
fn run(web: &Web, client: &Client, script: &str, account: &str) -> u64 {
    let mut job = web.job(1, script);
    job["wish"]["account"] = json!(account);
    let submitted = client.send_json("POST", "/api/v2/jobs", &job);
    let number = submitted.json()["job"].as_u64().unwrap_or_else(|| panic!("{}", submitted.body));
    wait_for("its end", || {
        let state = client.get(&format!("/api/v2/jobs/{number}")).json()["state"].clone();
        ["completed", "failed"].map(Value::from).contains(&state).then_some(())
    });
    number
}

fn numbers(answer: &Value) -> Vec<u64> {
    let jobs = answer["jobs"].as_array().unwrap_or_else(|| panic!("{answer}"));
    jobs.iter().map(|job| job["job"].as_u64().unwrap()).collect()
}

#[test]
fn finished_jobs_are_listed_in_parts_and_summed_up() {
    let web = Web::new("easy");
    let operator = web.operator();
    let done = run(&web, &operator, "exit 0", "physics");
    let failed = run(&web, &operator, "exit 3", "chemistry");
    let get = |client: &Client, path: &str| {
        let answer = client.get(&format!("/api/v2/history/{path}"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    };

    let all = get(&operator, "jobs");
    assert_eq!(numbers(&all), [failed, done], "the latest first");
    assert_eq!(all.get("next"), None);
    let job = &all["jobs"][0];
    assert_eq!((&job["state"], &job["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&job["name"], &job["account"]), (&json!("web"), &json!("chemistry")));
    let own = rustix::process::geteuid().as_raw();
    assert_eq!(job["user"], own);
    if own == 0 {
        assert_eq!(job["user_name"], "root");
    }
    let (ran, energy) = (job["elapsed_s"].as_f64().unwrap(), job["energy_j"].as_f64().unwrap());
    assert!(ran > 0.0 && ran < 3600.0 && energy > 0.0, "{job}");

    // One at a time, until nothing is left.
    let first = get(&operator, "jobs?limit=1");
    assert_eq!(numbers(&first), [failed]);
    let next = first["next"].as_str().unwrap();
    let second = get(&operator, &format!("jobs?limit=1&before={next}"));
    assert_eq!(numbers(&second), [done]);
    let next = second["next"].as_str().unwrap();
    let third = get(&operator, &format!("jobs?limit=1&before={next}"));
    assert_eq!((numbers(&third), third.get("next")), (vec![], None));
    for (question, found) in [
        ("state=failed".to_owned(), vec![failed]),
        ("account=physics".to_owned(), vec![done]),
        (format!("job={done}"), vec![done]),
        (format!("user={own}&since=0"), vec![failed, done]),
        ("user=daemon".to_owned(), vec![]),
        ("until=1000".to_owned(), vec![]),
        ("since=9999999999".to_owned(), vec![]),
    ] {
        assert_eq!(numbers(&get(&operator, &format!("jobs?{question}"))), found, "{question}");
    }

    // Others see that there are jobs and what they took, and neither names nor accounts.
    for client in [web.client.clone(), web.client.with(&web.token("viewer", &[]))] {
        let seen = get(&client, "jobs");
        assert_eq!(numbers(&seen), [failed, done]);
        assert_eq!((seen["jobs"][0].get("name"), seen["jobs"][0].get("account")), (None, None));
        assert_eq!(numbers(&get(&client, "jobs?account=physics")), [] as [u64; 0]);
        let sums = get(&client, "usage");
        assert_eq!(sums["sums"][0]["jobs"], 2, "{sums}");
        let refused = client.get("/api/v2/history/usage?by=account");
        assert_eq!((refused.status, refused.error()), (403, "forbidden".to_owned()));
    }
    let users = get(&operator, "usage?by=user");
    let accounts = get(&operator, "usage?by=account");
    let energy = |sums: &Value| -> f64 {
        sums["sums"].as_array().unwrap().iter().map(|sum| sum["energy_j"].as_f64().unwrap()).sum()
    };
    let of_jobs: f64 =
        all["jobs"].as_array().unwrap().iter().map(|job| job["energy_j"].as_f64().unwrap()).sum();
    assert!((energy(&users) - of_jobs).abs() < 1e-6, "{users}, not {of_jobs} J");
    assert!((energy(&accounts) - of_jobs).abs() < 1e-6, "{accounts}, not {of_jobs} J");
    assert_eq!(accounts["sums"].as_array().unwrap().len(), 2);

    for wrong in [
        "jobs?limit=0",
        "jobs?limit=1001",
        "jobs?before=x",
        "jobs?state=done",
        "jobs?user=nobody-at-all",
        "usage?by=group",
        "usage?since=0&until=99999999",
        "power?points=1",
        "power?points=10081",
    ] {
        let answer = operator.get(&format!("/api/v2/history/{wrong}"));
        assert_eq!((answer.status, answer.error()), (400, "malformed".to_owned()), "{wrong}");
    }
    // Without a token nothing is told from elsewhere, or where the site wants none to look.
    assert_eq!(web.client.with("busbar_wrong").get("/api/v2/history/jobs").status, 401);
}

#[test]
fn the_power_of_the_past_has_its_energy() {
    let web = Web::new("easy");
    let past = || web.client.get("/api/v2/history/power").json();
    // A look a second: after some of them, energy is known for a while.
    let answer = wait_for("some seconds", || {
        let answer = past();
        (answer["counted_s"].as_f64()? > 2.0).then_some(answer)
    });
    let stretches = answer["stretches"].as_array().unwrap();
    let sum = |key: &str| -> f64 { stretches.iter().map(|one| one[key].as_f64().unwrap()).sum() };
    assert!((sum("counted_energy_j") - answer["counted_energy_j"].as_f64().unwrap()).abs() < 1e-6);
    assert!((sum("counted_s") - answer["counted_s"].as_f64().unwrap()).abs() < 1e-6);
    // Without jobs, the machine draws what it draws without jobs.
    let base = web.client.get("/api/v2/budget").json()["base_w"].as_f64().unwrap();
    let expected = base * answer["counted_s"].as_f64().unwrap();
    assert!((answer["counted_energy_j"].as_f64().unwrap() - expected).abs() < 1e-3, "{answer}");
    assert_eq!(stretches[0]["counted_w"].as_f64(), Some(base));
    assert_eq!(stretches[0]["measured_w"], Value::Null);
    let nothing = web.client.get("/api/v2/history/power?until=1000").json();
    assert_eq!((&nothing["stretches"], &nothing["counted_s"]), (&json!([]), &json!(0)));
}
