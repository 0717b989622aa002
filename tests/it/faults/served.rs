//! The real program `busbar serve` as a child of the test, with a folder of its own.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use busbar::live::job::{JobRequest, Program};
use busbar::live::server::socket::Client;
use busbar::live::wire::{HistoryLine, Reply, Request, Status, Submission};
use busbar::units::Span;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::patience::{wait_for, wait_or};

pub(crate) const BUSBAR: &str = env!("CARGO_BIN_EXE_busbar");

/// A state folder, and the daemon that serves it, while there is one.
pub(crate) struct Served {
    folder: TempDir,
    daemon: Option<Child>,
}

impl Served {
    /// Eight nodes of 100 W and power for five of them; more lines of the configuration may be given.
    pub(crate) fn new(policy: &str, more: &str) -> Self {
        let served = Served { folder: tempfile::tempdir().unwrap(), daemon: None };
        let config = format!(
            "state = \"state\"\nsocket = \"socket\"\nmachine = \"machine.toml\"\nbudget = \"500W\"\n\
             policy = \"{policy}\"\n{more}\n"
        );
        // Idle nodes draw nothing, so that the lowest limits still feed somebody.
        let machine = "nodes = 8\n[power]\nnode = \"100W\"\nidle = \"0W\"\nrest = \"0W\"\n";
        fs::write(served.path("machine.toml"), machine).unwrap();
        fs::write(served.path("busbar.toml"), config).unwrap();
        served
    }

    /// Its nodes draw through feeds, each of which may carry what its nodes can draw. Those that name nodes of an earlier one are
    /// below it.
    pub(crate) fn add_feeds(&self, feeds: &[(&str, Range<u32>)]) {
        let mut machine = fs::read_to_string(self.path("machine.toml")).unwrap();
        for (place, (name, nodes)) in feeds.iter().enumerate() {
            let (first, last) = (nodes.start, nodes.end - 1);
            machine += &format!(
                "[[feed]]\nname = \"{name}\"\nlimit = \"100%\"\nnodes = \"{first}-{last}\"\n"
            );
            let mut above = feeds[..place].iter().rev();
            if let Some((parent, _)) = above.find(|(_, above)| above.contains(&first)) {
                machine += &format!("parent = \"{parent}\"\n");
            }
        }
        fs::write(self.path("machine.toml"), machine).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.state().join("busbar.db")
    }

    /// What daemons of this folder have said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// A daemon begins. Nobody waits until it answers.
    pub(crate) fn begin(&mut self) {
        self.begin_by(Command::new(BUSBAR));
    }

    /// A daemon begins in a shell that has done this before.
    pub(crate) fn begin_after(&mut self, script: &str) {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{script}\nexec \"$0\" \"$@\""), BUSBAR]);
        self.begin_by(shell);
    }

    /// A daemon begins, by a command that takes the arguments of `busbar`.
    pub(crate) fn begin_by(&mut self, mut command: Command) {
        assert!(self.daemon.is_none(), "one at a time");
        let log = File::options().create(true).append(true).open(self.path("log")).unwrap();
        let daemon = command
            .args(["serve", "--config"])
            .arg(self.path("busbar.toml"))
            .current_dir("/")
            .env_remove("BUSBAR_SOCKET")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        self.daemon = Some(daemon.unwrap());
    }

    /// A daemon begins; how long it takes until it answers.
    pub(crate) fn begin_and_answer(&mut self) -> Duration {
        let began = Instant::now();
        self.begin();
        self.wait_for_answer();
        began.elapsed()
    }

    /// Waits until the daemon that has begun answers.
    pub(crate) fn wait_for_answer(&mut self) {
        wait_for("a daemon that answers", || {
            let ended = self.daemon.as_mut().and_then(|daemon| daemon.try_wait().unwrap());
            assert!(ended.is_none(), "it did not begin: {ended:?}");
            let mut client = Client::connect(&self.socket()).ok()?;
            client.ask(&Request::Status).ok()
        });
    }

    /// The daemon is killed by the kernel, without a word.
    pub(crate) fn kill(&mut self) {
        let mut daemon = self.daemon.take().expect("a daemon to kill");
        let ended = daemon.try_wait().unwrap();
        assert!(ended.is_none(), "it ended by itself: {ended:?}\n{}", self.log());
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }

    /// The daemon stops as it is asked to.
    pub(crate) fn stop(&mut self) {
        assert_eq!(self.ask(&Request::Stop), Reply::Stopping);
        let ended = self.daemon.take().expect("a daemon to stop").wait().unwrap();
        assert!(ended.success(), "{ended}\n{}", self.log());
    }

    /// How the daemon ended, which it does without being asked to.
    pub(crate) fn ended(&mut self) -> std::process::ExitStatus {
        self.daemon.take().expect("a daemon that ends").wait().unwrap()
    }

    /// The daemon's process.
    pub(crate) fn process(&self) -> u32 {
        self.daemon.as_ref().expect("a daemon").id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    /// Asks once it can be asked. What is asked twice must do no harm.
    pub(crate) fn ask(&self, request: &Request) -> Reply {
        wait_for("an answer", || Client::connect(&self.socket()).ok()?.ask(request).ok())
    }

    pub(crate) fn status(&self) -> Status {
        match self.ask(&Request::Status) {
            Reply::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    /// Submits a job, once.
    pub(crate) fn submit(&self, script: &str) -> u64 {
        let mut client = Client::connect(&self.socket()).unwrap();
        match client.ask(&self.job(1, script)).unwrap() {
            Reply::Submitted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    /// A request to run a script on so many nodes. It can write to the file `$RECORD`.
    pub(crate) fn job(&self, nodes: u32, script: &str) -> Request {
        let request = JobRequest {
            name: "fault".to_owned(),
            nodes,
            moldable: None,
            // Nothing here ends at its limit.
            time: Span::from_secs(36_000),
            application: None,
            slowdown: None,
            after: Vec::new(),
            held: false,
            account: None,
            part: Default::default(),
        };
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let program = Program {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            folder: self.folder.path().to_owned(),
            environment: vec![
                ("PATH".to_owned(), std::env::var("PATH").unwrap()),
                ("RECORD".to_owned(), text(self.record())),
            ],
            output: "/dev/null".into(),
            errors: None,
        };
        Request::Submit(Box::new(Submission { request, program, array: None }))
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.path("record")
    }

    /// All that was written down, page by page.
    pub(crate) fn history(&self) -> Vec<HistoryLine> {
        let mut lines: Vec<HistoryLine> = Vec::new();
        loop {
            let after = Some(lines.last().map_or(0, |last| last.line));
            match self.ask(&Request::History { job: None, after, limit: Some(1000) }) {
                Reply::History(page) if page.is_empty() => return lines,
                Reply::History(page) => lines.extend(page),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Waits until nobody waits or runs.
    pub(crate) fn drain(&self) {
        let is_empty = || {
            let status = self.status();
            (status.waiting == 0 && status.running == 0).then_some(())
        };
        // Who is left says more than that somebody is.
        wait_or(is_empty, || format!("an empty queue: {:?}", self.ask(&Request::Queue)));
    }

    /// The folders of attempts that are there.
    pub(crate) fn attempts(&self) -> Vec<PathBuf> {
        let jobs = fs::read_dir(self.state().join("jobs"));
        jobs.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    /// The processes of all jobs, wardens included.
    pub(crate) fn jobs_processes(&self) -> Vec<i32> {
        let Ok(state) = self.state().canonicalize() else { return Vec::new() };
        let mark = format!("BUSBAR_SPEED_FILE={}/", state.join("jobs").display());
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let number: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
            let mut entries = environment.split(|byte| *byte == 0);
            entries.any(|entry| entry.starts_with(mark.as_bytes())).then_some(number)
        });
        numbers.collect()
    }

    /// Asserts that nothing is left of jobs that are over: no process, and no file of an attempt.
    pub(crate) fn assert_nothing_is_left(&self) {
        wait_for("that no process is left", || self.jobs_processes().is_empty().then_some(()));
        // They are removed beside everything else.
        wait_for("that no file is left", || self.attempts().is_empty().then_some(()));
    }
}

/// Ends a process of a job.
pub(crate) fn kill(number: i32) {
    // Whoever has ended meanwhile need not be killed.
    let _ = kill_process(Pid::from_raw(number).unwrap(), Signal::KILL);
}

/// The words with which a process was started.
pub(crate) fn words(number: i32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
    let words = bytes.split(|byte| *byte == 0);
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// All files below a folder with what is in them, but for the lock: that has the number of whoever held it
/// last.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else if path.is_file() && entry.file_name() != "lock" {
            files.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// A test that fails leaves nobody, either.
impl Drop for Served {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            // It may have ended by itself.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for number in self.jobs_processes() {
            kill(number);
        }
        if std::thread::panicking() {
            if std::env::var_os("BUSBAR_KEEP").is_some() {
                self.folder.disable_cleanup(true);
                eprintln!("kept: {}", self.folder.path().display());
            }
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}
