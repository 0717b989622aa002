//! The plug-in, run by an interpreter of Lua with requests that are made up. The tests on a real Slurm run it as well.

use std::process::{Command, Stdio};

use busbar_needs::needs;

use super::*;

/// What Slurm gives to a plug-in: partitions `main` and `cheap` are Busbar's, `free` is not.
const SLURM: &str = r#"
slurm = { SUCCESS = 0, ERROR = -1, NO_VAL = 4294967294, log_info = function() end }
function slurm.log_user(form, ...) said = string.format(form, ...) end
parts = { main = { flag_default = 1, name = "main" }, cheap = { name = "cheap" }, free = { name = "free" } }
function outcome(code, job)
  local text = code == slurm.SUCCESS and (job.licenses or "-") or ("refused: " .. (said or ""))
  said = nil
  print(text)
end
function submit(job)
  outcome(slurm_job_submit(job, parts, 1000), job)
  return job
end
function modify(change, job, user)
  outcome(slurm_job_modify(change, job, parts, user or 1000), change)
end
"#;

/// What the plug-in of a site makes of requests: a line for each.
fn told(site: &Site, requests: &str) -> Vec<String> {
    assert_eq!(site.mistake(), None);
    let text = job_submit(site);
    let plug_in = text.trim_end().strip_suffix("return slurm.SUCCESS").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trial.lua");
    fs::write(&file, format!("{SLURM}\n{plug_in}\n{requests}")).unwrap();
    let run = |program: &str| Command::new(program).arg(&file).stdin(Stdio::null()).output().ok();
    let output = ["lua", "lua5.4", "lua5.3", "lua5.1"].into_iter().find_map(run).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn admit() -> Site {
    let mut site = Site { watts: 10_000, off_file: "/nowhere".into(), ..Site::new(Mode::Admit) };
    site.partitions = vec!["main".to_owned(), "cheap".to_owned()];
    site.partition_watts = BTreeMap::from([("cheap".to_owned(), 100)]);
    site.app_watts = BTreeMap::from([("ep".to_owned(), 150)]);
    site
}

fn with_gpus() -> Site {
    let gpu_watts = BTreeMap::from([(String::new(), 300), ("a100".to_owned(), 400)]);
    Site { gpu_watts, node_gpus: 4, node_cpus: 8, ..admit() }
}

#[needs(lua)]
#[test]
fn a_job_gets_a_licence_for_each_watt() {
    // Numbers come as floats from some versions, and what is not said as a large one.
    let requests = r#"
        submit { min_nodes = 2.0, max_nodes = 4294967294 }
        submit { min_nodes = 2, max_nodes = 4, licenses = "foo:1;power:1" }
        submit { num_tasks = 3, partition = "cheap" }
        submit { num_tasks = 3, partition = "cheap,main", comment = "busbar app=ep" }
        submit { min_nodes = 2, partition = "free" }
    "#;
    let told = told(&admit(), requests);
    assert_eq!(told, ["power:400", "foo:1,power:800", "power:300", "power:450", "-"]);
}

#[needs(lua)]
#[test]
fn what_cannot_be_counted_is_refused_at_submission() {
    let requests = r#"
        submit { min_nodes = 1, licenses = "foo:1|bar:1" }
        submit { min_nodes = 1, partition = "main,free" }
        submit { min_nodes = 1, het_job_offset = 0 }
        submit { min_nodes = 1, het_job_offset = 1.0 }
        submit { min_nodes = 1, het_job_offset = 4294967294.0 }
        submit { min_nodes = 1, partition = "free", licenses = "foo:1|bar:1" }
    "#;
    let told = told(&admit(), requests);
    let expected = [
        "refused: busbar: a choice of licences ('|') is not possible here, as the watts of a job are licences too; name one of them",
        "refused: busbar: the job names partitions that Busbar looks after and others; name only the ones or the others",
        "refused: busbar: heterogeneous jobs are not supported; submit the parts as separate jobs",
        "refused: busbar: heterogeneous jobs are not supported; submit the parts as separate jobs",
        "power:200",
        "foo:1|bar:1",
    ];
    assert_eq!(told, expected);
}

/// In steer nothing is added to the licences of a job, so they may be a choice.
#[needs(lua)]
#[test]
fn a_choice_of_licences_stays_in_steer() {
    let site = Site { off_file: "/nowhere".into(), ..Site::new(Mode::Steer) };
    let told = told(&site, r#"submit { licenses = "foo:1|bar:1" }"#);
    assert_eq!(told, ["foo:1|bar:1"]);
}

/// A marked job stays Busbar's when its mark says why it waits; one with another comment is Slurm's.
#[needs(lua)]
#[test]
fn a_mark_may_say_why_a_job_waits() {
    let site = Site { off_file: "/nowhere".into(), ..Site::new(Mode::Steer) };
    let requests = r#"
        for _, mark in ipairs { "busbar", "busbar: waits for power, expected 14:20", "busbars", "ours: busbar:" } do
          local change = { priority = 7 }
          modify(change, { partition = "main", admin_comment = mark })
          print(change.priority == slurm.NO_VAL)
        end
        local change = { priority = 7 }
        modify(change, { partition = "main" })
        print(change.priority == slurm.NO_VAL)
    "#;
    let told = told(&site, requests);
    assert_eq!(told, ["-", "true", "-", "true", "-", "false", "-", "false", "-", "false"]);
}

/// A job that waits in `main` on three nodes, as Slurm tells of it.
#[needs(lua)]
#[test]
fn a_job_that_moves_counts_with_other_watts() {
    let requests = r#"
        job = { job_state = 0, min_nodes = 3, max_nodes = 3, partition = "main", licenses = "foo:1,power:600" }
        modify({ partition = "cheap" }, job)
        modify({ partition = "cheap,main" }, job)
        modify({ partition = "cheap" }, job, 0)
        modify({ partition = "cheap", licenses = "power:1" }, job, 0)
        modify({ comment = "busbar app=ep" }, job)
        modify({ comment = "it is mine" }, job)
        modify({ priority = 7 }, job)
        modify({ partition = "main,free" }, job)
        modify({ partition = "free" }, job)
        modify({ licenses = "power:1" }, job)
        modify({ min_nodes = 1.0 }, job)
        modify({ partition = "main,free" }, { job_state = 0, partition = "free" })
        modify({ partition = "main" }, { job_state = 0, partition = "free" })
        job.job_state = 1
        modify({ comment = "busbar app=ep" }, job)
    "#;
    let told = told(&admit(), requests);
    let told: Vec<&str> = told.iter().map(|line| line.get(..40).unwrap_or(line)).collect();
    let expected = [
        "foo:1,power:300",
        "-",
        "foo:1,power:300",
        "power:1",
        "foo:1,power:450",
        "-",
        "-",
        "refused: busbar: the job names partition",
        "refused: busbar: the job cannot be moved",
        "refused: busbar: the nodes and licences o",
        "refused: busbar: the nodes and licences o",
        "refused: busbar: the job names partition",
        "refused: busbar: a job cannot be moved in",
        "-",
    ];
    assert_eq!(told, expected.map(|line| line.get(..40).unwrap_or(line)));
}

#[needs(lua)]
#[test]
fn the_watts_of_gpus_are_counted() {
    let requests = r#"
        submit { min_nodes = 2, tres_per_node = "gres:gpu:2" }
        submit { min_nodes = 2, tres_per_node = "gres/gpu:a100:2,license/x=1" }
        submit { min_nodes = 2, tres_per_node = "gpu:v100:1" }
        submit { min_nodes = 2, tres_per_node = "gres:gpu" }
        submit { min_nodes = 2, tres_per_node = "gres/gpu:a100" }
        submit { min_nodes = 2, tres_per_job = "gres/gpu=3" }
        submit { tres_per_job = "gres:gpu:6" }
        submit { min_nodes = 2, num_tasks = 3, tres_per_task = "cpu=2,gres/gpu:v100=1" }
        submit { min_nodes = 2, sockets_per_node = 2, tres_per_socket = "gres:gpu:v100:1" }
        submit { min_nodes = 2, num_tasks = 5, ntasks_per_tres = 2 }
        submit { min_nodes = 2, tres_per_job = "gres:gpu:v100:4", tres_per_node = "gres:gpu:v100:2" }
        submit { min_nodes = 2, tres_per_node = "gres:mic:1" }
    "#;
    let told = told(&with_gpus(), requests);
    let watts = [2000, 2000, 1000, 1200, 1200, 1600, 2800, 1300, 1600, 1600, 1600, 400];
    assert_eq!(told, watts.map(|watts| format!("power:{watts}")));
}

/// Two nodes with four GPUs of the most watts each.
#[needs(lua)]
#[test]
fn gpus_that_cannot_be_read_count_as_all() {
    let requests = r#"
        submit { min_nodes = 2, tres_per_node = "gres:gpu:many:and:more" }
        submit { min_nodes = 2, tres_per_node = "gres:gpu:2(S:0-1)" }
        submit { min_nodes = 2, tres_per_node = "gres:mps:50" }
        submit { min_nodes = 2, tres_per_job = "gres/shard:1" }
        submit { min_nodes = 2, num_tasks = 4294967294, tres_per_task = "gres:gpu:1" }
        submit { min_nodes = 2, tres_per_socket = "gres:gpu:1" }
        submit { min_nodes = 2, ntasks_per_gpu = 2 }
        job = { job_state = 0, min_nodes = 2, max_nodes = 2, partition = "main", licenses = "power:1200", tres_per_task = "gres:gpu:1" }
        modify({ partition = "cheap" }, job)
        modify({ num_tasks = 9 }, job)
        modify({ tres_per_node = "gres:gpu:4" }, job)
        modify({ num_tasks = 9 }, { job_state = 0, max_nodes = 2, partition = "main", licenses = "power:400" })
    "#;
    let told = told(&with_gpus(), requests);
    assert_eq!(told[..7], ["power:3600"; 7]);
    assert_eq!(told[7], "power:3400");
    let gpus =
        "refused: busbar: the GPUs of a job decide about its watts; submit it again to change them";
    assert_eq!(told[8..], [gpus, gpus, "-"]);
}

/// Where a job does not say how its GPUs are spread, all may be on one of its nodes.
#[needs(lua)]
#[test]
fn layers_count_the_gpus_that_a_node_may_have() {
    let nodes = "n[1-8]".parse().unwrap();
    let site = Site { layers: vec![Layer { nodes, watts: 9000 }], ..with_gpus() };
    let requests = r#"
        submit { min_nodes = 2, tres_per_job = "gres:gpu:v100:2" }
        submit { min_nodes = 2, tres_per_node = "gres:gpu:v100:2" }
    "#;
    let told = told(&site, requests);
    assert_eq!(told, ["power:1000,watts:800", "power:1600,watts:800"]);
}

#[needs(lua)]
#[test]
fn the_plug_in_does_nothing_while_it_is_off() {
    let folder = tempfile::tempdir().unwrap();
    let site = Site { off_file: folder.path().join("busbar.off"), ..admit() };
    for (is_off, expected) in [(true, "-"), (false, "power:200")] {
        match is_off {
            true => Switch::Off.write(&site.off_file).unwrap(),
            false => Switch::On.write(&site.off_file).unwrap(),
        }
        let told = told(&site, "submit { min_nodes = 1 }");
        assert_eq!(told, [expected]);
    }
}

/// In steer, where Slurm goes on by itself while no daemon is there: whoever releases a job then has it counted, as many nodes as it
/// needs; users may not count by themselves, and what they hold stays a wish.
#[needs(lua)]
#[test]
fn jobs_are_counted_while_no_daemon_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let off_file = folder.path().join("busbar.off");
    let site = Site { fail: Fail::Admit, off_file, node_cpus: 4, ..admit() };
    let site = Site { mode: Mode::Steer, ..site };
    let requests = r#"
        local function change(job, wish, user)
          job.partition, job.admin_comment, job.job_state = "main", "busbar: waits for power", 0
          modify(wish, job, user)
          print(wish.max_nodes or "-", wish.comment or "-", wish.priority or "-")
        end
        local job = submit { min_nodes = 2, licenses = "foo:1,power:1" }
        print(job.priority, job.admin_comment, job.max_nodes or "-")
        change({ min_nodes = 2, max_nodes = 2, licenses = "foo:1" }, { priority = 4294967295 }, 0)
        change({ min_nodes = 2, max_nodes = 6, min_cpus = 6 }, { priority = 4294967295 }, 0)
        change({ min_nodes = 1, max_nodes = 0, min_cpus = 9 }, { priority = 4294967295 }, 0)
        change({ min_nodes = 1, max_nodes = 1, comment = "busbar-wait; x" }, { priority = 4294967295 })
        change({ min_nodes = 1, max_nodes = 1, comment = "x" }, { priority = 0 })
        change({ min_nodes = 1, max_nodes = 1 }, { licenses = "power:1" })
        change({ min_nodes = 1, max_nodes = 1 }, { priority = 0 }, 0)
    "#;
    let expected = |switch: Switch| match switch {
        Switch::Admit => [
            "foo:1,power:400",
            "nil\tbusbar\t2",
            "foo:1,power:400",
            "-\t-\t4294967295",
            "power:400",
            "2\t-\t4294967295",
            "power:600",
            "3\t-\t4294967295",
            "power:200",
            "-\tx\t4294967295",
            // A change of the comment counts again.
            "power:200",
            "-\tx; busbar-wait\t0",
            "refused: busbar: the licences of a job cannot be changed, as they count its watts while Busbar is away; submit it again",
            "-\t-\t-",
            "-",
            "-\t-\t0",
        ],
        _ => [
            "foo:1",
            "0\tbusbar\t-",
            "-",
            "-\t-\t4294967295",
            "-",
            "-\t-\t4294967295",
            "-",
            "-\t-\t4294967295",
            "-",
            "-\tx\t4294967294",
            "-",
            "-\tx; busbar-wait\t4294967294",
            "refused: busbar: the licences of a job cannot be changed, as they count its watts while Busbar is away; submit it again",
            "-\t-\t-",
            "-",
            "-\t-\t0",
        ],
    };
    for switch in [Switch::Admit, Switch::On] {
        switch.write(&site.off_file).unwrap();
        assert_eq!(told(&site, requests), expected(switch), "{switch:?}");
    }
}
