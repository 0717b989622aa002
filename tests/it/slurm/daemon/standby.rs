//! A second daemon that stands by, in mode `steer`: the first one is killed, and then one stands still, while jobs come and go.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use busbar_needs::needs;

use super::served::{Served, jobs};

impl Served {
    /// A daemon that stands by.
    fn stand_by(&self, log: &str) -> Child {
        let log = self.running.place().join(log);
        let mut command = Command::new(env!("CARGO_BIN_EXE_busbar"));
        command.args(["serve", "--standby", "--config"]).arg(self.config()).stdin(Stdio::null());
        let second = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn();
        self.says(&log, "on standby");
        second.unwrap()
    }

    fn says(&self, log: &std::path::Path, text: &str) {
        let said = || std::fs::read_to_string(log).unwrap_or_default();
        self.wait(text, || said().contains(text).then_some(()));
    }
}

#[needs(slurm)]
#[test]
fn a_second_daemon_steers_on() {
    let mut served = Served::idle(8, "steer", "share", &[]);
    // A command may take half as long.
    served.configure("see_all", "takeover = \"20s\"\nsee_all");
    let conf = "conf = \"slurm.conf\"\nwithin = ";
    served.configure(&format!("{conf}\"15min\""), &format!("{conf}\"10s\""));
    served.begin();
    let limit = 8 * 200 * 70 / 100;
    served.wait("an answer", || (served.status().process > 0).then_some(()));
    let second = served.stand_by("second.log");
    let numbers = served.submit(&jobs(24, 7));
    served.wait("some that have ended", || (served.ended() >= 4).then_some(()));
    served.kill();
    served.says(&served.running.place().join("second.log"), "this daemon leads now");
    served.take(second);
    assert!(served.status().process > 0);
    let ended = served.ended();
    served.wait("more that have ended", || {
        assert!(served.drawn().is_none_or(|drawn| drawn <= limit), "{:?}", served.nodes());
        (served.ended() >= (ended + 4).min(numbers.len())).then_some(())
    });

    // It keeps its lock while it stands still, and is killed before it can wake up.
    let third = served.stand_by("third.log");
    served.signal("-STOP");
    served.says(&served.running.place().join("third.log"), "this daemon leads now");
    served.signal("-CONT");
    served.take(third);
    served.wait("all that have ended", || {
        assert!(served.drawn().is_none_or(|drawn| drawn <= limit), "{:?}", served.nodes());
        (served.ended() >= numbers.len()).then_some(())
    });
    served.wait("an empty queue", || served.queue().is_empty().then_some(()));
    served.assert_once(&numbers);
}
