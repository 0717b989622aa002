//! The program of an external policy: a process that is asked one line at a time, within a time limit.
//!
//! One thread writes each question and reads the answer, so that a program that does not read cannot hold up the
//! simulation either; another keeps the end of what the program writes to standard error. Neither is waited for:
//! a child of the program that left its group may hold its pipes open for as long as it likes.
//!
//! The program and all that it starts are in one [group](Group), and none of them is left when the program is not
//! needed any more, or when this process has ended in whatever way.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant as Clock};

use super::group::{self, Group};
use crate::units::{Length, Span};

/// The most bytes that an answer may have.
const LONGEST_ANSWER: u64 = 16 << 20;

/// How much of standard error is kept: enough for the traceback of an exception.
const KEPT: usize = 2 << 10;

/// How much of a wrong answer is shown.
const SHOWN: usize = 200;

/// How long a program may take to end when there is nothing more to decide.
const GRACE: Duration = Duration::from_secs(1);

/// How long to wait until a program that has closed its output has ended, and for its last words. They come at once,
/// unless the machine is busy.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Why a program cannot decide any more.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// It cannot be started.
    #[error("'{program}' cannot be started: {why}")]
    Start { program: String, why: String },
    /// It took too long.
    #[error(
        "the program did not answer within {}; give it more time (limit=1min), and check that it writes one line \
         per question and flushes its output after each",
        Length(*limit)
    )]
    Late { limit: Span },
    /// It has ended, or at least its output has.
    #[error("the program ended instead of answering ({how})")]
    Ended { how: String },
    /// An answer has no end.
    #[error("the program wrote a line of more than {} MiB; write one JSON object per line", LONGEST_ANSWER >> 20)]
    TooLong,
    /// It wrote more than an answer.
    #[error("the program wrote an unexpected line, '{0}'; write exactly one line per question")]
    Unasked(String),
    /// The pipes broke.
    #[error("communication with the program failed: {0}")]
    Pipe(io::Error),
    /// An answer makes no sense.
    #[error("the program answered '{line}', which is invalid: {why}")]
    Answer { line: String, why: String },
    /// It speaks another version of the protocol.
    #[error("the program speaks version {theirs} of the protocol, and this Busbar version {ours}")]
    Version { theirs: u32, ours: u32 },
}

impl Fault {
    /// An answer that makes no sense, and why.
    pub(super) fn answer(line: &str, why: String) -> Self {
        Fault::Answer { line: shortened(line), why }
    }
}

/// A program that runs.
pub(super) struct Program {
    child: Child,
    group: Group,
    /// Nothing, once there is nothing more to be asked: then the program's input ends.
    questions: Option<SyncSender<Vec<u8>>>,
    answers: Receiver<Result<String, Fault>>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Hears when standard error has ended.
    silence: Receiver<()>,
}

impl Program {
    /// Starts a program; the words of the command are separated by blanks.
    pub(super) fn start(command: &str) -> Result<Self, Fault> {
        let mut words = command.split_whitespace();
        let program = words.next().unwrap_or_default();
        let fault = |error: io::Error| Fault::Start {
            program: program.to_owned(),
            why: not_started(program, &error),
        };
        let group = Group::start().map_err(|error| Fault::Start {
            program: group::GUARD.to_owned(),
            why: not_started(group::GUARD, &error),
        })?;
        let mut child = Command::new(program)
            .args(words)
            .process_group(group.number())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(fault)?;
        let (questions, asked) = sync_channel(1);
        let (answered, answers) = channel();
        let (silent, silence) = channel();
        let errors = Arc::new(Mutex::new(Vec::new()));
        if let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) {
            thread::spawn(move || {
                converse(input, BufReader::new(output), &asked, |answer| {
                    answered.send(answer).is_ok()
                });
            });
        }
        if let Some(stream) = child.stderr.take() {
            let errors = errors.clone();
            thread::spawn(move || {
                keep_end(stream, &errors);
                let _ = silent.send(());
            });
        }
        Ok(Program { child, group, questions: Some(questions), answers, errors, silence })
    }

    /// Asks a question and waits for the answer, as long as the limit allows.
    pub(super) fn ask(&mut self, question: Vec<u8>, limit: Span) -> Result<String, Fault> {
        let sent = self.questions.as_ref().is_some_and(|each| each.send(question).is_ok());
        let within = Duration::from_millis(limit.millis());
        let heard = match sent {
            true => self.answers.recv_timeout(within),
            false => Err(RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(Err(Fault::Ended { .. })) | Err(RecvTimeoutError::Disconnected) => {
                let how = match self.wait(LAST_WORDS) {
                    Some(status) => status.to_string(),
                    None => "it still runs, but has closed its input or its output".to_owned(),
                };
                Err(Fault::Ended { how })
            }
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(Fault::Late { limit }),
        }
    }

    /// Ends the program, and returns the end of what it wrote to standard error.
    pub(super) fn end(mut self) -> String {
        self.kill();
        // What it wrote before it ended may still be on its way.
        let _ = self.silence.recv_timeout(LAST_WORDS);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&errors).trim().to_owned()
    }

    /// Waits for the program to end by itself; nothing, if it does not.
    fn wait(&mut self, most: Duration) -> Option<ExitStatus> {
        let begun = Clock::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < most => thread::sleep(pause),
                Ok(status) => return status,
                Err(_) => return None,
            }
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Ends the program and all that it has started. It is waited for, so that nothing is left of it.
    fn kill(&mut self) {
        self.group.kill();
        // If somebody has taken the program out of its group, it is ended by itself; one that has ended cannot be,
        // which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program whose input ends may still write its own files; if it goes on for no reason it is ended, and so is
/// whatever it leaves behind.
impl Drop for Program {
    fn drop(&mut self) {
        self.questions = None;
        self.wait(GRACE);
        self.kill();
    }
}

/// Why a program could not be started, and what to do.
fn not_started(program: &str, error: &io::Error) -> String {
    let (is_path, is_there) = (program.contains('/'), Path::new(program).is_file());
    match error.kind() {
        ErrorKind::NotFound if is_path && is_there => {
            "the interpreter in its first line (#!) does not exist".to_owned()
        }
        ErrorKind::NotFound if is_path => {
            "no such file; paths are relative to the current folder".to_owned()
        }
        ErrorKind::NotFound if is_there => {
            format!("it is not in PATH; for the file in the current folder, write ./{program}")
        }
        ErrorKind::NotFound => "no folder of PATH has it".to_owned(),
        ErrorKind::PermissionDenied => format!(
            "it is not executable; make it executable (chmod +x {program}), or name its interpreter \
             (external(python3 {program}))"
        ),
        _ => format!("{error}; a script needs a first line such as #!/usr/bin/env python3"),
    }
}

/// Writes each question and reads the answer to it, until there are no more questions or something is wrong.
/// Whoever hears the answers says whether to go on.
fn converse(
    mut input: ChildStdin,
    mut output: BufReader<ChildStdout>,
    questions: &Receiver<Vec<u8>>,
    mut heard: impl FnMut(Result<String, Fault>) -> bool,
) {
    for question in questions {
        let unasked = output.buffer();
        let answer = match unasked.is_empty() {
            false => Err(Fault::Unasked(shortened(&String::from_utf8_lossy(unasked)))),
            true => exchange(&mut input, &mut output, &question),
        };
        let is_wrong = answer.is_err();
        if !heard(answer) || is_wrong {
            return;
        }
    }
}

fn exchange(
    input: &mut ChildStdin,
    output: &mut BufReader<ChildStdout>,
    question: &[u8],
) -> Result<String, Fault> {
    let ended = || Fault::Ended { how: String::new() };
    input.write_all(question).and_then(|()| input.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => ended(),
        _ => Fault::Pipe(error),
    })?;
    let mut line = Vec::new();
    output.take(LONGEST_ANSWER).read_until(b'\n', &mut line).map_err(Fault::Pipe)?;
    if line.last() != Some(&b'\n') {
        return Err(if line.len() as u64 == LONGEST_ANSWER { Fault::TooLong } else { ended() });
    }
    String::from_utf8(line).map_err(|error| {
        let line = String::from_utf8_lossy(error.as_bytes()).into_owned();
        Fault::answer(&line, "it is not UTF-8".to_owned())
    })
}

/// Reads a stream to its end and keeps the last of it.
fn keep_end(mut stream: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut chunk = [0; KEPT];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&chunk[..read]);
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(_) => return,
        }
    }
}

/// The beginning of a line, to be shown.
fn shortened(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_is_written_is_kept() {
        let kept = Mutex::new(Vec::new());
        let text: Vec<u8> =
            (0..100_000u32).flat_map(|number| number.to_string().into_bytes()).collect();
        keep_end(&text[..], &kept);
        assert_eq!(*kept.lock().unwrap(), text[text.len() - KEPT..]);
    }

    #[test]
    fn long_lines_are_shortened_between_characters() {
        assert_eq!(shortened("short\n"), "short");
        let long = "ü".repeat(SHOWN + 1);
        assert_eq!(shortened(&long), format!("{}...", "ü".repeat(SHOWN)));
        assert_eq!(shortened(&long[..2 * SHOWN]), "ü".repeat(SHOWN));
    }
}
