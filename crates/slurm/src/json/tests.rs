use std::fs;
use std::path::PathBuf;

use busbar_needs::needs;

use super::*;
use crate::model::Hold;

/// A job as 26.05 shows it, with other values for some keys.
fn new_job(changes: Value) -> Job {
    let mut job = serde_json::json!({
        "job_id": 144, "name": "wrap", "user_name": "ann", "user_id": 1000, "account": "", "partition": "main",
        "array_job_id": {"set": true, "infinite": false, "number": 0},
        "array_task_id": {"set": false, "infinite": false, "number": 0}, "array_task_string": "",
        "het_job_id": {"set": true, "infinite": false, "number": 0},
        "job_state": ["PENDING"], "state_reason": "JobHeldUser", "state_description": "",
        "priority": {"set": true, "infinite": false, "number": 0},
        "node_count": {"set": true, "infinite": false, "number": 2},
        "max_nodes": {"set": true, "infinite": false, "number": 4},
        "cpus": {"set": true, "infinite": false, "number": 2},
        "time_limit": {"set": false, "infinite": true, "number": 0},
        "start_time": {"set": true, "infinite": false, "number": 0},
        "exit_code": {"status": ["SIGNALED"], "return_code": {"set": false, "infinite": false, "number": 0},
                      "signal": {"id": {"set": true, "infinite": false, "number": 15}, "name": "TERM"}},
        "licenses": "power:400", "comment": "busbar app=lulesh", "requeue": true, "restart_cnt": 2
    });
    let (Value::Object(job), Value::Object(changes)) = (&mut job, changes) else { panic!() };
    job.extend(changes);
    let text = serde_json::json!({ "jobs": [job], "errors": [] }).to_string();
    Answer::read("squeue", &text).unwrap().jobs().unwrap().read.remove(0)
}

#[test]
fn jobs_in_the_new_shape() {
    let job = new_job(serde_json::json!({}));
    assert_eq!((job.id, job.hold, job.nodes_min, job.nodes_max), (144, Some(Hold::User), 2, 4));
    assert_eq!(
        (job.limit_minutes, job.exit, job.restarts),
        (None, Some(Exit { code: 0, signal: 15 }), 2)
    );
    assert_eq!((job.licences["power"], job.started, job.array), (400, None, None));
    let job = new_job(
        serde_json::json!({"array_job_id": {"set": true, "number": 145}, "array_task_id": {"set": true, "number": 3}}),
    );
    assert_eq!(job.reference().to_string(), "145_3");
    let job = new_job(
        serde_json::json!({"job_state": ["RUNNING", "COMPLETING"], "priority": {"set": true, "number": 9}}),
    );
    assert_eq!((job.state, job.hold, job.nodes_max), (JobState::Completing, None, 2));
    let job = new_job(serde_json::json!({"state_description": "job requeued in held state"}));
    assert_eq!(job.hold, Some(Hold::Slurm));
}

#[test]
fn jobs_in_the_old_shape() {
    let text = r#"{"meta": {"Slurm": {"release": "22.05.8"}}, "errors": [], "jobs": [{
        "job_id": 17, "name": "wrap", "user_name": "root", "user_id": 0, "job_state": "PENDING", "partition": "main,free",
        "state_reason": "JobArrayTaskLimit", "array_job_id": 17, "array_task_id": null, "array_task_string": "2-4%1",
        "node_count": 1, "max_nodes": 0, "priority": 4294901749, "cpus": 1, "time_limit": null, "exit_code": 768,
        "nodes": "", "requeue": true, "restart_cnt": 0, "submit_time": 1794880104, "het_job_id": 0}]}"#;
    let answer = Answer::read("squeue", text).unwrap();
    assert_eq!(answer.version().unwrap().to_string(), "22.05.8");
    let job = &answer.jobs().unwrap()[0];
    assert_eq!(job.array.as_ref().unwrap().tasks.to_string(), "2-4%1");
    assert_eq!(
        (job.exit.unwrap().code, job.limit_minutes, job.submitted),
        (3, None, Some(1_794_880_104))
    );
    assert_eq!(job.partitions, ["main", "free"]);
    let nodes = r#"{"nodes": [{"name": "n1", "state": "idle", "state_flags": ["DRAIN"], "cpus": 4, "alloc_cpus": 2,
        "address": "127.0.0.1", "partitions": ["main"], "reason": "busbar: no agent"}]}"#;
    let nodes = Answer::read("sinfo", nodes).unwrap().nodes().unwrap();
    assert_eq!((nodes[0].state.to_string().as_str(), nodes[0].cpus_in_use), ("IDLE+DRAIN", 2));
}

#[test]
fn reported_errors_are_errors() {
    let denied = r#"{"errors": [{"description": "Job update requested failed", "error_number": 2010, "error": "Invalid user id"}]}"#;
    let error = Answer::read("POST /job/1", denied).unwrap_err();
    assert!(matches!(error, SlurmError::Denied { .. }), "{error}");
    assert_eq!(Answer::read_whatever("x", denied).unwrap().error_numbers(), [2010]);
    for text in ["", "<html>", "{}", r#"{"jobs": 3}"#] {
        let answer = Answer::read("squeue", text).and_then(|answer| answer.jobs());
        assert!(matches!(answer, Err(SlurmError::Unreadable { .. })), "{text}");
    }
}

#[test]
fn one_record_hides_no_other() {
    let whole = serde_json::json!({"job_id": 7, "job_state": ["RUNNING"], "user_id": 1, "node_count": 1, "cpus": 4,
        "restart_cnt": 0, "nodes": "n1"});
    for (broken, reason) in [
        (serde_json::json!({}), "job: there is no job_id"),
        (serde_json::json!(3), "job: there is no job_id"),
        (serde_json::json!({"job_id": "x"}), "job x: job_id is \"x\""),
    ] {
        let text = serde_json::json!({ "jobs": [broken, whole.clone()] }).to_string();
        let jobs = Answer::read("squeue", &text).unwrap().jobs().unwrap();
        assert_eq!((jobs.len(), jobs[0].id), (1, 7));
        assert_eq!(jobs.unread[0].to_string(), reason);
    }
    let job = new_job(serde_json::json!({"node_count": "many", "nodes": 3, "user_id": null}));
    assert_eq!((job.nodes_min, job.uid), (UNKNOWN, UNKNOWN));
    assert_eq!(job.unread, ["user_id", "node_count", "nodes"]);
    let job = new_job(
        serde_json::json!({"job_state": ["UNHEARD_OF"], "nodes": "n[1-3]", "node_count": null}),
    );
    assert!(job.has_nodes() && job.nodes_min == 3);
    let nodes = r#"{"nodes": [{"name": "n1"}, {"state": ["IDLE"]}, {"name": "n2", "state": ["IDLE"], "cpus": 4, "alloc_cpus": 0}]}"#;
    let nodes = Answer::read("nodes", nodes).unwrap().nodes().unwrap();
    assert_eq!(
        (nodes.len(), nodes[0].state.is_usable(), nodes[1].state.is_usable()),
        (2, false, true)
    );
    let licences = r#"{"licenses": [{"LicenseName": "a", "Total": null}, {"LicenseName": "b", "Total": 3, "Used": 0, "Reserved": 0}]}"#;
    let licences = Answer::read("licenses", licences).unwrap().licences().unwrap();
    assert_eq!((licences.len(), licences[0].name.as_str()), (1, "b"));
}

/// The recorded answers, by version.
fn recorded() -> Vec<PathBuf> {
    let folder = std::env::var_os("BUSBAR_SLURM_ANSWERS").unwrap();
    let versions = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    versions.filter(|path| path.is_dir()).collect()
}

fn answer(path: PathBuf) -> Answer {
    let name = path.display().to_string();
    Answer::read(&name, &fs::read_to_string(&path).unwrap()).unwrap()
}

#[needs(answers)]
#[test]
fn recorded_answers_are_understood() {
    for version in recorded() {
        let of_commands = |name: &str| answer(version.join(format!("{name}.json")));
        let jobs = of_commands("scontrol-show-job").jobs().unwrap().read;
        assert!(of_commands("squeue").version().unwrap().is_supported());
        let by_id = |id: u32| jobs.iter().find(|job| job.id == id).unwrap();
        let has = |wanted: fn(&Job) -> bool| jobs.iter().any(wanted);
        assert!(has(|job| job.state == JobState::Running && !job.nodes.is_empty()));
        assert!(has(|job| job.state.is_waiting() && job.hold == Some(Hold::User)));
        assert!(has(|job| job.dependency.is_some()));
        assert!(has(|job| job.array.is_some()));
        assert!(has(
            |job| job.state == JobState::Failed && job.exit.is_some_and(|exit| exit.code == 3)
        ));
        for job in of_commands("squeue").jobs().unwrap() {
            assert_eq!(job, *by_id(job.id));
        }
        let partitions = of_commands("scontrol-show-partition").partitions().unwrap();
        assert!(partitions[0].is_up && partitions[0].nodes.len() == 16);
        assert!(of_commands("scontrol-show-reservation").reservations().unwrap().is_empty());
        let licences = of_commands("scontrol-show-licenses").licences().unwrap();
        assert_eq!((licences[0].name.as_str(), licences[0].total), ("power", 10_000));
        let node = of_commands("scontrol-show-node").nodes().unwrap().read.remove(0);
        for folder in fs::read_dir(version.join("rest")).unwrap() {
            let folder = folder.unwrap().path();
            let of_rest = |name: &str| answer(folder.join(format!("{name}.json")));
            assert_eq!(of_rest("jobs").jobs().unwrap().read, jobs, "{}", folder.display());
            // Version 0.0.43 does not say for which nodes a licence counts.
            assert_eq!(of_rest("licenses").licences().unwrap()[0], licences[0]);
            let nodes = of_rest("nodes").nodes().unwrap();
            assert_eq!(nodes[0], node);
            let of_parser = of_rest("partitions").partitions().unwrap();
            // Version 0.0.43 does not say which partition is the default.
            assert_eq!(
                (&of_parser[0].name, &of_parser[0].nodes),
                (&partitions[0].name, &partitions[0].nodes)
            );
            assert!(of_rest("ping").version().is_some());
            let denied = folder.join("job-update-denied.json");
            if denied.exists() {
                let error =
                    Answer::read("update", &fs::read_to_string(denied).unwrap()).unwrap_err();
                assert!(matches!(error, SlurmError::Denied { .. }), "{error}");
            }
        }
    }
}
