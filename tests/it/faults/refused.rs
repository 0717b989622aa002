//! Daemons that must not begin: the state is damaged, or is somebody else's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use busbar::live::wire::{Reply, Request, State};
use busbar_needs::needs;

use super::served::{BUSBAR, Served, files};
use crate::patience::{PATIENCE, wait_for};

/// What a daemon says that does not begin.
#[track_caller]
pub(crate) fn refused(arguments: &[&str]) -> String {
    let mut daemon = Command::new(BUSBAR)
        .arg("serve")
        .args(arguments)
        .env_remove("BUSBAR_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = std::time::Instant::now();
    let status = wait_for("that it gives up", || {
        if began.elapsed() > PATIENCE / 2 {
            daemon.kill().unwrap();
        }
        daemon.try_wait().unwrap()
    });
    let said = std::io::read_to_string(daemon.stderr.take().unwrap()).unwrap();
    assert!(status.code().is_some_and(|code| code != 0), "{status}: {said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Damages a file, sees that no daemon begins with it and that nothing is touched, and mends the file.
#[track_caller]
fn assert_refused(served: &Served, path: &Path, damage: fn(&mut Vec<u8>)) {
    let sound = fs::read(path).unwrap();
    let mut damaged = sound.clone();
    damage(&mut damaged);
    fs::write(path, damaged).unwrap();
    let before = files(&served.state());
    let said = refused(&["--config", text(&served.path("busbar.toml"))]);
    for part in
        [text(&served.database()), "is damaged", "Restore a backup", ".recover", "move it aside"]
    {
        assert!(said.contains(part), "no '{part}' in: {said}");
    }
    assert!(before == files(&served.state()), "it was touched");
    fs::write(path, sound).unwrap();
}

fn zero(bytes: &mut [u8]) {
    bytes.fill(0);
}

#[test]
fn a_damaged_state() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    for _ in 0..20 {
        served.submit("exit 0");
    }
    served.drain();
    served.stop();
    let database = served.database();
    assert_refused(&served, &database, |bytes| zero(&mut bytes[..16]));
    assert_refused(&served, &database, |bytes| {
        let middle = bytes.len() / 2 / 4096 * 4096;
        zero(&mut bytes[middle..middle + 4096]);
    });
    assert_refused(&served, &database, |bytes| bytes.truncate(bytes.len() / 2));
    assert_refused(&served, &database, Vec::clear);

    // What was written last stands in the log if the daemon was killed. Of its commits the first is damaged: in the last one,
    // it could be what was being written when the daemon was killed.
    served.begin_and_answer();
    let held = served.submit("exit 0");
    served.drain();
    served.kill();
    let log = served.state().join("busbar.db-wal");
    assert_refused(&served, &log, |bytes| {
        // Beyond the headers of the log and of its first page.
        bytes[32 + 24 + 100] ^= 1;
    });

    // With sound files all is as before.
    served.begin_and_answer();
    let Reply::Show(shown) = served.ask(&Request::Show { job: held }) else { panic!("it is kept") };
    assert_eq!(shown.line.state, State::Completed);
    served.stop();
}

#[test]
fn a_second_daemon() {
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    let config = served.path("busbar.toml");
    let said = refused(&["--config", text(&config)]);
    let who = format!("used by another daemon, process {};", served.process());
    assert!(said.contains(&who) && said.contains(text(&served.state())), "{said}");
    // Another folder, and the same socket.
    let (other, socket) = (served.path("other"), served.socket());
    let options = ["--machine", "8", "--budget", "500W"];
    let places = ["--state", text(&other), "--socket", text(&socket)];
    let said = refused(&[options, places].concat());
    let what = format!("another daemon listens on {}; stop it", socket.display());
    assert!(said.contains(&what), "{said}");
    // The first one serves on.
    assert_eq!(served.status().process, served.process());
    let job = served.submit("exit 0");
    served.drain();
    let Reply::Show(shown) = served.ask(&Request::Show { job }) else { panic!("it is kept") };
    assert_eq!(shown.line.state, State::Completed);
    served.stop();
}

/// A state folder that is not the daemon's work.
struct Resolved {
    outside: tempfile::TempDir,
}

impl Resolved {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let resolved = Resolved { outside };
        fs::create_dir(resolved.state()).unwrap();
        resolved.allow("state", 0o700);
        resolved
    }

    fn path(&self, name: &str) -> PathBuf {
        self.outside.path().join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("state")
    }

    fn allow(&self, name: &str, mode: u32) {
        fs::set_permissions(self.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }

    /// What is said to somebody who wants a token for it.
    #[track_caller]
    fn token_refused(&self) -> String {
        let asked = Command::new(BUSBAR)
            .args(["token", "create", "--role", "operator", "--state"])
            .arg(self.state())
            .output()
            .unwrap();
        assert!(!asked.status.success(), "{asked:?}");
        String::from_utf8(asked.stderr).unwrap()
    }

    /// What a daemon says that does not begin with it.
    #[track_caller]
    fn refused(&self, more: &[&str]) -> String {
        let (state, socket) = (self.state(), self.path("socket"));
        let places = ["--machine", "2", "--state", text(&state), "--socket", text(&socket)];
        refused(&[&places, more].concat())
    }
}

/// What was under somebody else's control stays so, whatever its owner and its permissions are made.
#[track_caller]
fn assert_advises_a_new_folder(said: &str) {
    assert!(said.contains("name a new folder with 'state = …'"), "{said}");
    assert!(!said.contains("chown") && !said.contains("chmod"), "{said}");
}

#[test]
fn a_state_folder_that_others_can_write_to() {
    let resolved = Resolved::new();
    for mode in [0o777, 0o702] {
        resolved.allow("state", mode);
        let said = resolved.refused(&[]);
        let in_background = resolved.refused(&["--background"]);
        assert!(said.ends_with(&in_background), "{in_background}");
        assert!(said.contains("is writable by others"), "{said}");
        assert_advises_a_new_folder(&said);
    }
    resolved.allow("state", 0o700);
    resolved.allow("", 0o777);
    let said = resolved.refused(&[]);
    assert!(said.contains("could replace Busbar's files"), "{said}");
    assert_eq!(fs::read_dir(resolved.state()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn links_in_a_state_folder() {
    let resolved = Resolved::new();
    let (target, folder) = (resolved.path("target"), resolved.path("folder"));
    fs::write(&target, "as it was").unwrap();
    fs::create_dir(&folder).unwrap();
    resolved.allow("folder", 0o750);
    for name in ["lock", "busbar.db", "jobs", "tokens.json", "tokens.lock", "power.csv", "anything"]
    {
        let behind = if name == "jobs" { &folder } else { &target };
        let link = resolved.state().join(name);
        symlink(behind, &link).unwrap();
        let said = resolved.refused(&[]);
        assert!(said.contains(&format!("{} is a symbolic link", link.display())), "{said}");
        assert!(said.ends_with(&resolved.token_refused()), "{said}");
        fs::remove_file(&link).unwrap();
        if name != "jobs" {
            fs::hard_link(behind, &link).unwrap();
            let said = resolved.refused(&[]);
            assert!(said.contains(&format!("{} is the same file", link.display())), "{said}");
            assert!(said.ends_with(&resolved.token_refused()), "{said}");
            fs::remove_file(&link).unwrap();
        }
    }
    // In the folder of an attempt.
    let attempt = resolved.state().join("jobs/1.1");
    fs::create_dir_all(&attempt).unwrap();
    resolved.allow("state/jobs", 0o711);
    resolved.allow("state/jobs/1.1", 0o700);
    symlink(&target, attempt.join("started.json.unfinished")).unwrap();
    let said = resolved.refused(&[]);
    assert!(said.contains("jobs/1.1/started.json.unfinished is a symbolic link"), "{said}");
    fs::remove_dir_all(resolved.state().join("jobs")).unwrap();
    // Where a daemon in the background writes.
    let link = resolved.state().join("log");
    symlink(&target, &link).unwrap();
    let said = resolved.refused(&["--background"]);
    assert!(said.contains(&format!("{} is a symbolic link", link.display())), "{said}");
    assert_eq!(fs::read_to_string(&target).unwrap(), "as it was");
    let mode = folder.metadata().unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read_dir(&folder).unwrap().count()), (0o750, 0));
}

#[needs(root)]
#[test]
fn a_state_folder_of_somebody_else() {
    // What a daemon that stopped properly has left, given to somebody else piece by piece.
    let mut served = Served::new("easy", "");
    served.begin_and_answer();
    served.submit("exit 0");
    served.drain();
    served.stop();
    let config = served.path("busbar.toml");
    let token = Command::new(BUSBAR)
        .args(["token", "create", "--role", "operator", "--state"])
        .arg(served.state())
        .output()
        .unwrap();
    assert!(token.status.success(), "{token:?}");
    for name in ["power.csv", "anything"] {
        fs::write(served.state().join(name), "").unwrap();
    }
    let all =
        ["", "busbar.db", "lock", "jobs", "tokens.json", "tokens.lock", "power.csv", "anything"];
    for name in all {
        let path = match name {
            "" => served.state(),
            name => served.state().join(name),
        };
        chown(&path, Some(65_533), None).unwrap();
        let before = files(&served.state());
        let said = refused(&["--config", text(&config)]);
        assert!(said.contains(&format!("{} belongs to user 65533", path.display())), "{said}");
        assert_advises_a_new_folder(&said);
        assert!(before == files(&served.state()), "it was touched");
        chown(&path, Some(0), None).unwrap();
    }
    served.begin_and_answer();
    served.stop();
}
