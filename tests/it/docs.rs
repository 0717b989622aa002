//! The commands in the README and in `docs/`, each run as a reader would.
//!
//! A fenced block without a language, or in `sh` or `console`, may hold commands: lines that begin with
//! `busbar` or `$ busbar`. All commands of a page run one after another in one empty folder, with one cache of results
//! for all pages, and each must end well. What stands below a `$ busbar` must be printed, line for line; `...` stands for any
//! lines, what comes after the last line need not be shown, and timings may differ. What stands below
//! `$ cat NAME` is the content of a file that later commands use. Comments on the line above a block
//! change that:
//!
//! - `<!-- not run: why -->`: for what needs a file of the reader's own, or minutes;
//! - `<!-- takes long -->`: for what runs only if `BUSBAR_LONG` is set;
//! - `<!-- file: NAME -->`: the block is the content of a file; with `added to file`, more of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use busbar::policy::PolicySpec;

/// A fenced block, with the line it begins on.
struct Block {
    line: usize,
    language: String,
    /// What the comment above it says.
    comment: String,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut inside, mut above) = (false, "");
    for (number, line) in (1..).zip(text.lines()) {
        match (line.strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(language), false) => {
                inside = true;
                let comment =
                    above.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
                blocks.push(Block {
                    line: number,
                    language: language.trim().to_owned(),
                    comment: comment.unwrap_or_default().to_owned(),
                    lines: Vec::new(),
                });
            }
            (None, true) => blocks.last_mut().unwrap().lines.push(line.to_owned()),
            (None, false) => above = line,
        }
    }
    blocks
}

/// A command and what the page says that it prints.
struct Session {
    line: usize,
    command: String,
    printed: Vec<String>,
}

fn sessions(block: &Block) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut goes_on = false;
    for (line, text) in (block.line + 1..).zip(&block.lines) {
        if goes_on {
            let command = &mut sessions.last_mut().unwrap().command;
            command.push('\n');
            command.push_str(text);
        } else if let Some(command) = text.strip_prefix("$ ") {
            let command = command.to_owned();
            sessions.push(Session { line, command, printed: Vec::new() });
        } else if text.starts_with("busbar ") {
            let command = text.clone();
            sessions.push(Session { line, command, printed: Vec::new() });
        } else if let Some(session) = sessions.last_mut() {
            session.printed.push(text.clone());
        }
        goes_on = (goes_on || text.starts_with("$ ") || text.starts_with("busbar "))
            && text.ends_with('\\');
    }
    sessions
}

/// Whether a line tells how long something took, which differs from time to time.
fn is_timing(line: &str) -> bool {
    line.contains("simulated in ") || line.contains("; took ")
}

/// The first line that should have been printed and was not.
fn missing<'a>(expected: &'a [String], printed: &str) -> Option<&'a str> {
    let mut rest = printed.lines();
    let mut may_skip = false;
    for line in expected {
        if line.trim() == "..." {
            may_skip = true;
            continue;
        }
        let same = |other: &str| {
            other.trim_end() == line.trim_end() || (is_timing(line) && is_timing(other))
        };
        let found = if may_skip { rest.any(same) } else { rest.next().is_some_and(same) };
        if !found {
            return Some(line);
        }
        may_skip = false;
    }
    None
}

/// A daemon of a page's own: it is configured to be in a folder that is removed, and stopped with the page.
struct Daemon(tempfile::TempDir);

impl Daemon {
    fn nowhere() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = "state = \"state\"\nsocket = \"socket\"\n";
        fs::write(folder.path().join("busbar.toml"), paths).unwrap();
        Daemon(folder)
    }

    fn configuration(&self) -> PathBuf {
        self.0.path().join("busbar.toml")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.0.path().join("socket").exists() {
            let mut stop = Command::new(env!("CARGO_BIN_EXE_busbar"));
            let _ = stop.arg("stop").env("BUSBAR_CONFIG", self.configuration()).output();
        }
    }
}

/// Runs the commands of a page, and returns how many there were and what is wrong.
fn run_page(page: &Path, cache: &Path) -> (usize, Vec<String>) {
    let mut wrong = Vec::new();
    let text = fs::read_to_string(page).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = page.strip_prefix(root).unwrap().display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_busbar")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    let daemon = Daemon::nowhere();
    // Commands are those of somebody in the root of the repository.
    let examples = folder.path().join("examples");
    fs::create_dir(&examples).unwrap();
    fs::copy(root.join("examples/january.txt"), examples.join("january.txt")).unwrap();
    // Files may be shown after the commands that use them.
    for block in blocks(&text) {
        if let Some(file) = block.comment.strip_prefix("file: ") {
            fs::write(folder.path().join(file), block.lines.join("\n") + "\n").unwrap();
        }
    }
    for block in blocks(&text) {
        let write = |name: &str, before: &str, lines: &[String]| {
            fs::write(folder.path().join(name), before.to_owned() + &lines.join("\n") + "\n")
                .unwrap();
        };
        if let Some(name) = block.comment.strip_prefix("added to file: ") {
            write(name, &fs::read_to_string(folder.path().join(name)).unwrap(), &block.lines);
        }
        let may_run = ["", "sh", "console"].contains(&block.language.as_str());
        let is_left_out =
            block.comment == "takes long" && std::env::var_os("BUSBAR_LONG").is_none();
        if !may_run || is_left_out || block.comment.starts_with("not run: ") {
            continue;
        }
        for session in sessions(&block) {
            if let Some(name) = session.command.strip_prefix("cat ") {
                write(name, "", &session.printed);
            }
            if !session.command.starts_with("busbar") {
                continue;
            }
            let at = format!("{name}, line {}: {}", session.line, session.command);
            let output = Command::new("sh")
                .args(["-c", &session.command])
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("XDG_CACHE_HOME", cache)
                .env("BUSBAR_CONFIG", daemon.configuration())
                .env_remove("BUSBAR_SOCKET")
                .output()
                .unwrap();
            count += 1;
            if !output.status.success() {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{at}\n    {error}"));
            }
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            if let Some(line) = missing(&session.printed, &printed) {
                wrong.push(format!("{at}\n    does not print: {line}"));
            }
        }
    }
    (count, wrong)
}

/// The README and all pages below `docs/`.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The lines of a page that are not in a fenced block, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    })
}

/// The anchors of a page, made from its headings as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let plain = title.trim().to_lowercase();
        let kept = plain.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = anchors.iter().filter(|other| **other == anchor).count();
        anchors.push(if before > 0 { format!("{anchor}-{before}") } else { anchor });
    }
    anchors
}

/// The targets of a line's links and images.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

#[test]
fn every_link_in_the_documentation_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = pages();
    for other in [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "benches/README.md",
        "packaging/RELEASE.md",
        "tests/frozen/README.md",
    ] {
        pages.push(root.join(other));
    }
    let (mut wrong, mut count) = (Vec::new(), 0);
    for page in &pages {
        let text = fs::read_to_string(page).unwrap();
        for (number, line) in prose(&text) {
            for target in targets(line).filter(|target| !target.contains("://")) {
                count += 1;
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let file = match path {
                    "" => page.clone(),
                    path => page.parent().unwrap().join(path),
                };
                let leads = file.exists()
                    && (anchor.is_empty()
                        || anchors(&fs::read_to_string(&file).unwrap())
                            .iter()
                            .any(|a| a == anchor));
                if !leads {
                    wrong.push(format!("{}, line {number}: {target}", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 100, "only {count} links were found");
}

/// The table of policies says of each what that says of itself, and the page of each explains its parameters.
#[test]
fn the_table_of_policies_is_that_of_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference");
    let table = fs::read_to_string(folder.join("policies.md")).unwrap();
    let external: PolicySpec = "external(PROGRAM)".parse().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| [`")).collect();
    assert_eq!(rows.len(), PolicySpec::all().len() + 1);
    for policy in PolicySpec::all().into_iter().chain([external]) {
        let begin = format!("| [`{policy}`](");
        let row = rows.iter().find(|row| row.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("{policy} is not in the table"));
        let names: Vec<&str> = policy.parameters().into_iter().map(|(name, _)| name).collect();
        let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!((cells[2], cells[4]), (policy.about(), listed.as_str()), "{policy}");
        let page = row[begin.len()..].split(')').next().unwrap();
        let page = fs::read_to_string(folder.join(page)).unwrap();
        for name in names {
            assert!(page.contains(&format!("`{name}`")), "the page of {policy} has no '{name}'");
        }
    }
}

#[test]
fn every_command_in_the_documentation_runs() {
    let cache = tempfile::tempdir().unwrap();
    let (pages, next) = (pages(), AtomicUsize::new(0));
    let work = || {
        let (mut count, mut wrong) = (0, Vec::new());
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (found, mistakes) = run_page(page, cache.path());
            count += found;
            wrong.extend(mistakes);
        }
        (count, wrong)
    };
    // Most commands use one core.
    let (mut count, mut wrong) = (0, Vec::new());
    thread::scope(|scope| {
        for worker in [scope.spawn(work), scope.spawn(work)] {
            let (found, mistakes) = worker.join().unwrap();
            count += found;
            wrong.extend(mistakes);
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "only {count} commands were found");
}

#[test]
fn what_is_not_printed_is_noticed() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(missing(&lines("a\nb"), "a\nb\n"), None);
    assert_eq!(missing(&lines("a\n...\nd"), "a\nb\nc\nd\n"), None);
    assert_eq!(missing(&lines("a\nc"), "a\nb\n"), Some("c"));
    assert_eq!(missing(&lines("a"), "a\nb\n"), None);
    assert_eq!(missing(&lines("...\nb"), "a\n"), Some("b"));
    assert_eq!(missing(&lines("simulated in 3 s"), "simulated in 4 s\n"), None);
    let text =
        "<!-- not run: it is a secret -->\n```\n$ busbar x \\\n  y\nz\n```\n```sh\nbusbar w\n```\n";
    let [first, second] = &blocks(text)[..] else { panic!() };
    assert_eq!(first.comment, "not run: it is a secret");
    let session = &sessions(first)[0];
    assert_eq!((session.command.as_str(), session.line), ("busbar x \\\n  y", 3));
    assert_eq!(session.printed, ["z"]);
    assert_eq!(sessions(second)[0].command, "busbar w");
}
