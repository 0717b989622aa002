//! `slurm.fail = "admit"`: while no daemon is there, Slurm goes on by itself within the last budget.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::SystemTime;

use busbar::slurm::cluster::Cluster;
use busbar::slurm::model::{Hold, Job, JobState};
use busbar::slurm::setup::{OFF_FILE, Switch};
use busbar_needs::needs;

use super::served::Served;
use super::text;
use crate::slurm::{NOBODY, other_slurm};

const NODES: u32 = 8;
const LIMIT: u64 = NODES as u64 * 200 * 70 / 100;

/// A process that ends with the test.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Served {
    /// Installs the plug-in that counts watts while no daemon is there, as an operator does, and says so in the configuration.
    fn may_be_alone(&self) {
        self.configure("see_all", "takeover = \"10s\"\nsee_all");
        self.configure(
            "mode = \"steer\"",
            "mode = \"steer\"\nfail = \"admit\"\nfail_after = \"20s\"",
        );
        let config = fs::read_to_string(self.config()).unwrap();
        fs::write(self.config(), config.replacen("within = \"15min\"", "within = \"5s\"", 1))
            .unwrap();
        let place = self.running.place();
        let mut setup = Command::new(env!("CARGO_BIN_EXE_busbar"));
        setup.args(["slurm", "setup", "--mode", "steer", "--fail", "admit", "--node-cpus", "4"]);
        setup
            .args(["--watts", &format!("{}W", NODES * 200), "--conf"])
            .arg(self.running.lab.conf());
        if let Some(other) = other_slurm() {
            setup.arg("--programs").arg(other.join("bin"));
        }
        let output = setup.arg("--write").arg(&place).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        // Slurm reads a script again if its time has changed, in whole seconds.
        let script = File::options().append(true).open(place.join("job_submit.lua")).unwrap();
        script.set_modified(SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
        self.running.ask("scontrol", &["reconfigure"]).unwrap();
    }

    fn guard(&self) -> Guard {
        let log = File::create(self.running.place().join("guard.log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.args(["slurm", "guard", "--config"]).arg(self.config()).stdin(Stdio::null());
        Guard(command.stdout(Stdio::null()).stderr(log).spawn().unwrap())
    }

    fn guard_says(&self, words: &str) {
        let log = self.running.place().join("guard.log");
        let said = || fs::read_to_string(&log).unwrap_or_default();
        self.wait(words, || said().contains(words).then_some(()));
    }

    /// Submits jobs that run until there is a file, and write down when they begin and end.
    fn submit_until(&self, file: &str, arguments: &[&str], user: Option<(u32, u32)>) -> u32 {
        let place = self.running.place();
        let (record, file) = (place.join("record"), place.join(file));
        let script = format!(
            "echo $SLURM_JOB_ID begins \"$SLURM_JOB_NODELIST\" >> {record}
             while [ ! -e {file} ]; do sleep 0.2; done
             echo $SLURM_JOB_ID ends >> {record}",
            record = record.display(),
            file = file.display()
        );
        self.running.submit(&[arguments, &["-t60", "--wrap", &script]].concat(), user)
    }

    fn go(&self, file: &str) {
        fs::write(self.running.place().join(file), "").unwrap();
    }

    fn watts_of(&self, job: u32) -> u64 {
        self.running.job(job).licences.get("power").copied().unwrap_or(0)
    }

    fn await_state(&self, job: u32, state: &JobState) -> Job {
        self.wait(&format!("job {job} {state:?}"), || {
            assert!(self.drawn().is_none_or(|drawn| drawn <= LIMIT), "{:?}", self.nodes());
            Some(self.running.job(job)).filter(|job| job.state == *state)
        })
    }
}

/// Tried on 22.05 here.
#[needs(slurm)]
#[test]
fn slurm_goes_on_by_itself_while_no_daemon_is_there() {
    let mut served = Served::idle(NODES, "steer", "share", &[]);
    served.may_be_alone();
    let record = served.running.place().join("record");
    fs::write(&record, "").unwrap();
    std::os::unix::fs::chown(&record, Some(NOBODY.0), Some(NOBODY.1)).unwrap();
    let switch = served.running.place().join(OFF_FILE);
    let _guard = served.guard();
    served.begin();
    // The daemon leaves the budget in Slurm.
    served.wait("a reservation", || (served.reserved() > 0).then_some(()));
    let first: Vec<u32> = (0..2).map(|_| served.submit_until("first", &["-N3"], None)).collect();
    for job in &first {
        served.await_state(*job, &JobState::Running);
        assert_eq!(served.watts_of(*job), 0, "the daemon counts it");
    }
    // What comes now needs more nodes than are free. Whoever sets a licence of watts by hand does not get it.
    let later = served.submit_until("later", &["-N4", "-Lpower:1"], Some(NOBODY));
    let wide = served.submit_until("later", &["-N8"], None);
    // It ends as soon as it has begun, so that it keeps no other from its licences.
    let by_tasks = served.submit_until("first", &["-n12"], None);
    let kept = served.submit_until("later", &["-N1", "-H"], Some(NOBODY));
    assert_eq!(served.watts_of(later), 0);
    served.wait("a queue", || (served.queue().len() >= 5).then_some(()));
    let reserved = served.reserved();
    served.kill();

    served.guard_says("Slurm goes on by itself");
    for job in &first {
        served.wait("watts of what runs", || (served.watts_of(*job) == 600).then_some(()));
    }
    served.wait("the plug-in", || (Switch::read(&switch) == Switch::Admit).then_some(()));
    assert_eq!(served.reserved(), reserved, "the last budget");
    for (job, watts) in [(later, 800), (wide, 1600), (by_tasks, 600)] {
        served.wait("watts of what waits", || (served.watts_of(job) == watts).then_some(()));
        served.wait("a job that Slurm may start", || {
            let job = served.running.job(job);
            (job.hold.is_none() && job.state == JobState::Pending).then_some(())
        });
    }
    served.wait("a hold that its user can release", || {
        let job = served.running.job(kept);
        (job.hold == Some(Hold::User) && job.state == JobState::Pending).then_some(())
    });
    served.go("first");
    served.await_state(later, &JobState::Running);
    // One that comes now brings its licences, and its user can release what he holds.
    let new = served.submit_until("new", &["-N1"], Some(NOBODY));
    assert_eq!(served.watts_of(new), 200);
    let release = ["release", &kept.to_string()];
    let released =
        served.running.lab.programs().run_as("scontrol", &release, Some(NOBODY)).unwrap();
    assert!(released.status.success(), "{released:?}");
    assert_eq!(served.watts_of(kept), 200);
    assert_eq!(served.running.job(kept).hold, None);
    let licence = served.running.cluster.licences().unwrap().read.remove(0);
    assert!(licence.used + licence.reserved <= licence.total, "{licence:?}");

    // A daemon takes over again: what runs is adopted, and what waits is held and started by it.
    served.begin();
    served.guard_says("a daemon is there again");
    served.wait("the plug-in", || (Switch::read(&switch) == Switch::On).then_some(()));
    served.wait("a hold", || (served.running.job(wide).hold == Some(Hold::Admin)).then_some(()));
    for file in ["later", "new"] {
        served.go(file);
    }
    // All at once it needs more licences than there are, but not more watts: the daemon lowers caps.
    let ended = served.await_state(wide, &JobState::Completed);
    assert_eq!(ended.licences.get("power"), None, "Slurm does not count it any more");
    served.wait("all ends", || (served.ended() >= 7).then_some(()));
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&[first, vec![later, wide, by_tasks, kept, new]].concat());
}
