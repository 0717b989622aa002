//! A trial as on a site's cluster, on any Slurm, in both modes: 64 nodes, a thousand jobs with arrays, dependencies, constraints and a
//! reservation, in mode admit of two accounts with limits of power, and 40 times the daemon, slurmctld or an agent is killed, or the
//! budget moves. It takes some minutes and runs on request only:
//!
//! `BUSBAR_SLURM_TRIAL=1 BUSBAR_SLURM_PROGRAMS=/opt/slurm cargo test --all-features --test it slurm::daemon::trial -- --nocapture`
//!
//! Without BUSBAR_SLURM_PROGRAMS, the folder of another Slurm, it is the one that is installed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbar::live::wire::Request;
use busbar::slurm::cluster::Cluster;
use busbar::slurm::lab::CONTROLLER;
use busbar::slurm::model::JobState;
use busbar_needs::needs;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Dxsm;

use super::served::Served;
use crate::patience::{PATIENCE, wait_or};
use crate::slurm::{SOMEBODY, text};

const NODES: u32 = 64;
const DISTURBANCES: u32 = 40;

/// How many jobs of each kind, a thousand in all, of which each element of an array is one.
const PLAIN: u32 = 380;
const ARRAYS: u32 = 12;
const ELEMENTS: u32 = 25;
const CHAINS: u32 = 40;
const LINKS: u32 = 3;
const CONSTRAINED: u32 = 150;
const RESERVED: u32 = 50;

/// The accounts of mode admit, with what their jobs may draw together.
const ACCOUNTS: [(&str, u64); 2] = [("blue", 3000), ("green", 4000)];

/// Submits all jobs, and says how many there are.
fn submit(served: &Served, script: &str, seed: u64, has_accounts: bool) -> u32 {
    let mut numbers = Pcg64Dxsm::seed_from_u64(seed);
    let user = |number: u32| (has_accounts || number.is_multiple_of(2)).then_some(SOMEBODY);
    let mut submit = |number: u32, more: &[&str]| {
        let account = ["-A", ACCOUNTS[number as usize % 2].0];
        let more = [more, if has_accounts { &account } else { &[] }].concat();
        let time = format!("{:.1}", 0.2 + f64::from(numbers.random_range(0..28)) / 10.0);
        let wrapped = script.replace("@TIME@", &time);
        let arguments = [&more[..], &["-t5", "--wrap", &wrapped]].concat();
        served.running.submit(&arguments, user(number))
    };
    for number in 0..PLAIN {
        submit(number, &[&format!("-N{}", 1 + number % 4)]);
    }
    for number in 0..ARRAYS {
        submit(number, &["-N1", &format!("--array=1-{ELEMENTS}")]);
    }
    for number in 0..CHAINS {
        let mut last = submit(number, &["-N1"]);
        for _ in 1..LINKS {
            last = submit(number, &["-N1", &format!("--dependency=afterok:{last}")]);
        }
    }
    for number in 0..CONSTRAINED {
        // The last four nodes are in the reservation.
        let node = 1 + number % (NODES - 4);
        let wish = match number % 3 {
            0 => "-Cbig".to_owned(),
            1 => format!("-wn{node}"),
            _ => format!("-xn[{node}-{}]", (node + 20).min(NODES - 4)),
        };
        submit(number, &["-N1", &wish]);
    }
    for number in 0..RESERVED {
        submit(2 * number, &["-N1", "--reservation=trial"]);
    }
    PLAIN + ARRAYS * ELEMENTS + CHAINS * LINKS + CONSTRAINED + RESERVED
}

/// Gives some nodes a feature. A controller that begins again knows those in slurm.conf alone.
fn name_features(served: &Served) {
    let features = ["availablefeatures=big", "activefeatures=big"];
    let arguments = [&["update", "nodename=n[1-24]"][..], &features[..]].concat();
    served.wait("nodes with features", || served.running.ask("scontrol", &arguments).ok());
}

/// What `scontrol` says of the configuration, the partitions and the nodes, but for what changes by itself.
fn cluster_as_it_is(served: &Served) -> String {
    let shown = |what: &str| served.running.ask("scontrol", &["-o", "show", what]).unwrap();
    let changes = ["BOOT_TIME", "Configuration data", "NEXT_JOB_ID", "HASH_VAL", "SLURM_CONF"];
    let config = shown("config");
    let config = config.lines().filter(|line| !changes.iter().any(|key| line.contains(key)));
    let nodes = shown("node");
    let state = |line: &str| {
        let kept = line.split(' ').filter(|word| {
            ["NodeName=", "State=", "Partitions=", "ActiveFeatures="]
                .iter()
                .any(|key| word.starts_with(key))
        });
        // Nodes whose answers are late say so for a moment.
        kept.collect::<Vec<_>>().join(" ").replace("+NOT_RESPONDING", "")
    };
    let nodes = nodes.lines().map(state);
    config
        .map(str::to_owned)
        .chain(nodes)
        .chain([shown("partition")])
        .collect::<Vec<_>>()
        .join("\n")
}

/// Two accounts of one user, with limits of power that Slurm enforces.
fn make_accounts(served: &Served) {
    let running = &served.running;
    let mut conf = File::options().append(true).open(running.lab.conf()).unwrap();
    conf.write_all(b"AccountingStorageEnforce=limits\n").unwrap();
    // One that is killed may not start again, if it has not saved yet what associations have used.
    running.lab.stop(CONTROLLER).unwrap();
    running.lab.start(CONTROLLER).unwrap();
    served.wait("slurmctld", || running.cluster.nodes().ok());
    let manage = |line: &str| {
        let arguments: Vec<&str> = ["-i"].into_iter().chain(line.split(' ')).collect();
        running.ask("sacctmgr", &arguments).unwrap();
    };
    for (account, watts) in ACCOUNTS {
        manage(&format!("add account {account}"));
        manage(&format!("modify account {account} set GrpTRES=license/power={watts}"));
    }
    manage("add user daemon account=blue,green");
    served.wait("accounts that Slurm knows", || {
        let known = |(account, _): &(&str, u64)| {
            running.try_submit(&["-A", account, "-H", "-N1", "--wrap", "true"], Some(SOMEBODY))
        };
        let submitted: Result<Vec<String>, String> = ACCOUNTS.iter().map(known).collect();
        for job in submitted.ok()? {
            running.ask("scancel", &[job.trim()]).unwrap();
        }
        Some(())
    });
}

/// Asserts that no account draws more than it may; returns the most that one draws, as a share of what it may.
fn most_of_accounts(served: &Served) -> f64 {
    let Ok(jobs) = served.running.cluster.jobs() else { return 0.0 };
    let drawn = |(account, limit): (&str, u64)| {
        let of_account =
            jobs.iter().filter(|job| job.has_nodes() && job.account.as_deref() == Some(account));
        // What is being cleaned up has given its licences back.
        let running = of_account.filter(|job| job.state == JobState::Running);
        let watts: u64 = running.filter_map(|job| job.licences.get("power")).sum();
        assert!(watts <= limit, "account {account} draws {watts} W of {limit} W");
        watts as f64 / limit as f64
    };
    ACCOUNTS.map(drawn).into_iter().fold(0.0, f64::max)
}

#[needs(slurm, trial)]
#[test]
fn a_site_with_all_kinds_of_jobs() {
    trial("steer", "share", &[]);
}

/// Slurm starts the jobs, those of each account within its limit.
#[needs(slurm, accounting, trial)]
#[test]
fn a_site_whose_accounts_have_limits_of_power() {
    trial("admit", "easy-power", &["--accounting"]);
}

fn trial(mode: &'static str, policy: &str, extras: &[&str]) {
    let mut served = Served::idle(NODES, mode, policy, extras);
    let has_accounts = !extras.is_empty();
    println!("Slurm {}, mode {mode}", served.running.cluster.version().unwrap());
    if has_accounts {
        make_accounts(&served);
    }
    name_features(&served);
    served.wait("nodes that answer", || {
        let nodes = served.running.ask("scontrol", &["-o", "show", "node"]).ok()?;
        (!nodes.contains("State=UNKNOWN")).then_some(())
    });
    let before = cluster_as_it_is(&served);
    let reservation = ["create", "reservation", "reservationname=trial", "user=daemon"];
    let terms = ["starttime=now", "duration=600", "nodes=n[61-64]"];
    served.running.ask("scontrol", &[&reservation[..], &terms[..]].concat()).unwrap();

    let record = served.running.place().join("record");
    let script = format!(
        "echo $SLURM_JOB_ID begins \"$SLURM_JOB_NODELIST\" >> {record}; sleep @TIME@
         echo $SLURM_JOB_ID ends >> {record}",
        record = record.display()
    );
    std::fs::write(&record, "").unwrap();
    std::os::unix::fs::chown(&record, Some(SOMEBODY.0), Some(SOMEBODY.1)).unwrap();
    served.begin();
    if mode == "admit" {
        served.wait("a reservation", || (served.reserved() > 0).then_some(()));
    }
    let count = submit(&served, &script, 1, has_accounts) as usize;
    println!("{count} jobs are submitted");

    let full = u64::from(NODES) * 200 * 70 / 100;
    let (mut limit, mut looks, begun) = (full, 0_u64, Instant::now());
    let (mut most, mut done): (f64, BTreeMap<&str, u32>) = (0.0, BTreeMap::new());
    let mut most_of_account: f64 = 0.0;
    let mut disturbed = 0;
    for look in 1_u64.. {
        let is_time = look % 25 == 0 && disturbed < DISTURBANCES;
        if is_time {
            disturbed += 1;
            let what = match disturbed % 5 {
                0 => {
                    limit = if limit == full { full * 60 / 100 } else { full };
                    if limit < full {
                        served.lower_budget(limit);
                    } else {
                        served.ask(&Request::Budget { set: Some(format!("{limit}W")) });
                    }
                    "budget"
                }
                1 | 3 => {
                    served.kill();
                    served.begin();
                    "daemon"
                }
                2 => {
                    served.restart(CONTROLLER);
                    name_features(&served);
                    "slurmctld"
                }
                _ => {
                    served.restart(&format!("agent.n{}", 1 + disturbed % NODES));
                    "agent"
                }
            };
            *done.entry(what).or_default() += 1;
        }
        if let Some(drawn) = served.drawn() {
            looks += 1;
            most = most.max(drawn as f64 / limit as f64);
            assert!(
                drawn <= limit,
                "{drawn} W of {limit} W: {:?}\n{}",
                served.nodes(),
                served.log()
            );
        }
        if has_accounts && look % 5 == 0 {
            most_of_account = most_of_account.max(most_of_accounts(&served));
        }
        if look % 300 == 0 {
            println!(
                "{} of {count} have ended, {:.0} s",
                served.ended(),
                begun.elapsed().as_secs_f64()
            );
        }
        if disturbed == DISTURBANCES && served.ended() >= count {
            break;
        }
        assert!(begun.elapsed() < 4 * PATIENCE, "{:?}\n{}", served.queue(), served.log());
        sleep(Duration::from_millis(100));
    }
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_each_once(count);
    println!(
        "{count} jobs in {:.0} s, within the limit at {looks} looks, {:.0} % of it at most; disturbed: {done:?}",
        begun.elapsed().as_secs_f64(),
        100.0 * most
    );
    if has_accounts {
        println!("no account has drawn more than {:.0} % of its limit", 100.0 * most_of_account);
    }
    served.kill();
    let conf = served.running.lab.conf();
    let conf = conf.to_str().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_busbar"))
        .args(["slurm", "release-all", "--conf", conf])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    served.running.ask("scontrol", &["delete", "reservationname=trial"]).unwrap();
    let differences = || -> Vec<String> {
        let after = cluster_as_it_is(&served);
        let pairs = before.lines().zip(after.lines()).filter(|(before, after)| before != after);
        pairs.map(|(before, after)| format!("{before}\n{after}")).collect()
    };
    wait_or(|| differences().is_empty().then_some(()), || format!("{:?}", differences()));
}
