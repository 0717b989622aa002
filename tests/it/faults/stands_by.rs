//! A second daemon that stands by: it takes over when the first one is killed, or stopped without a word. No job is lost, and none
//! runs twice.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use busbar::live::wire::Request;
use rustix::process::{Pid, Signal, kill_process};

use super::served::{BUSBAR, Served};
use crate::patience::wait_or;

/// A daemon that stands by, killed at the end of a test.
struct Second {
    daemon: Child,
    log: PathBuf,
}

impl Second {
    fn of(served: &Served, name: &str) -> Self {
        let log = served.path(name);
        let second = Command::new(BUSBAR)
            .args(["serve", "--standby", "--config"])
            .arg(served.path("busbar.toml"))
            .current_dir("/")
            .env_remove("BUSBAR_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).unwrap())
            .spawn();
        let second = Second { daemon: second.unwrap(), log };
        second.says("on standby; the daemon on");
        second
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn says(&self, text: &str) {
        wait_or(|| self.log().contains(text).then_some(()), || self.log());
    }

    /// Waits until it leads.
    fn lead(&self, served: &Served) {
        self.says("this daemon leads now");
        assert_eq!(served.status().process, self.daemon.id(), "{}", self.log());
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Jobs that write down when they begin and end, and end when a file is there: some run, and some wait.
fn submit(served: &Served) -> Vec<u64> {
    let script = "echo \"$BUSBAR_JOB begins\" >> $RECORD; while [ ! -e go ]; do sleep 0.05; done; \
                  echo \"$BUSBAR_JOB ends\" >> $RECORD";
    let jobs: Vec<u64> = (0..9).map(|_| served.submit(script)).collect();
    wait_or(|| (served.status().running == 5).then_some(()), || served.log());
    jobs
}

/// Lets the jobs end, and asserts that each of them ran once.
fn assert_once(served: &Served, jobs: &[u64]) {
    fs::write(served.path("go"), "").unwrap();
    served.drain();
    let record = fs::read_to_string(served.record()).unwrap();
    for job in jobs {
        for word in ["begins", "ends"] {
            let line = format!("{job} {word}");
            let times = record.lines().filter(|other| **other == line).count();
            assert_eq!(times, 1, "{line}\n{record}\n{}", served.log());
        }
    }
}

#[test]
fn the_second_daemon_leads_when_the_first_is_killed() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let second = Second::of(&served, "second.log");
    let jobs = submit(&served);
    served.kill();
    second.lead(&served);
    assert_once(&served, &jobs);
    // An orderly stop hands over as well.
    let third = Second::of(&served, "third.log");
    served.ask(&Request::Stop);
    third.lead(&served);
}

/// A daemon that is stopped keeps its lock, and gives no sign of life. When it would go on, it is gone.
#[test]
fn the_second_daemon_leads_when_the_first_stands_still() {
    let mut served = Served::new("easy", "takeover = \"2s\"");
    served.begin_and_answer();
    let second = Second::of(&served, "second.log");
    let jobs = submit(&served);
    let first = Pid::from_raw(served.process() as i32).unwrap();
    kill_process(first, Signal::STOP).unwrap();
    second.lead(&served);
    let _ = kill_process(first, Signal::CONT);
    assert!(!served.ended().success(), "it was killed before it could wake up");
    assert_once(&served, &jobs);
    assert_eq!(served.status().process, second.daemon.id());
}

/// A daemon on another host cannot be killed from here. Its place is taken, and it ends by itself before it does anything else.
#[test]
fn a_daemon_on_another_host_that_wakes_up_ends_at_once() {
    let mut served = Served::new("easy", "takeover = \"2s\"");
    served.begin_and_answer();
    let jobs = submit(&served);
    let first = Pid::from_raw(served.process() as i32).unwrap();
    kill_process(first, Signal::STOP).unwrap();
    let lock = served.state().join("lock");
    let text = fs::read_to_string(&lock).unwrap();
    let place = text.lines().nth(2).unwrap();
    fs::write(&lock, text.replace(place, "another boot")).unwrap();
    // On its own host it has a socket of its own.
    let config = fs::read_to_string(served.path("busbar.toml")).unwrap();
    let config = config.replace("socket = \"socket\"", "socket = \"elsewhere\"");
    fs::write(served.path("busbar.toml"), config).unwrap();
    let second = Second::of(&served, "second.log");
    second.says("this daemon leads now");
    second.says("busbar is running");
    kill_process(first, Signal::CONT).unwrap();
    assert_eq!(served.ended().code(), Some(1), "{}", served.log());
    assert!(served.log().contains("another daemon has taken over"), "{}", served.log());
    fs::remove_file(served.socket()).unwrap();
    symlink(served.path("elsewhere"), served.socket()).unwrap();
    assert_eq!(served.status().process, second.daemon.id());
    assert_once(&served, &jobs);
}
