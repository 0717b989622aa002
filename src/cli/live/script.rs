//! Scripts with options: lines `#BUSBAR -N 2 -t 10m` before the first command, with the options of
//! `submit` and the quoting of a shell.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Parser;

use super::options::{JobOptions, Places};
use crate::live::job::ArraySpec;

const MARK: &str = "#BUSBAR";

/// The largest file that is searched for options, in bytes.
const LARGEST: u64 = 16 << 20;

/// A script with its options.
#[derive(Debug)]
pub(super) struct Script {
    /// Options that describe the job.
    pub(super) job: JobOptions,
    /// Options for files and folders.
    pub(super) places: Places,
    /// The indices, if it is an array.
    pub(super) array: Option<ArraySpec>,
    /// The interpreter, if one is needed, and the script.
    pub(super) command: Vec<String>,
    /// Warnings for the user.
    pub(super) warnings: Vec<String>,
}

/// The options of a line.
#[derive(Debug, Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Line {
    #[command(flatten)]
    job: JobOptions,
    #[command(flatten)]
    places: Places,
    #[arg(long)]
    array: Option<ArraySpec>,
}

/// Reads a script.
pub(super) fn read(path: &Path) -> anyhow::Result<Script> {
    let cannot = || {
        let name = path.display();
        format!("cannot read the script {name}; write a command that is not a script after --")
    };
    let found = fs::metadata(path).with_context(cannot)?;
    if !found.is_file() {
        bail!("{} is not a file; write a command that is not a script after --", path.display());
    }
    let whole = std::path::absolute(path).with_context(cannot)?;
    let Some(whole) = whole.to_str() else {
        bail!("{}: the name of a script must be UTF-8", path.display());
    };
    let bytes = match found.len() <= LARGEST {
        true => fs::read(path).with_context(cannot)?,
        false => Vec::new(),
    };
    let is_executable = found.permissions().mode() & 0o111 != 0;
    // A binary has no lines.
    let is_text = found.len() <= LARGEST && !bytes.contains(&0);
    if !is_text {
        if !is_executable {
            bail!("{} is neither a script nor executable (chmod +x)", path.display());
        }
        let command = vec![whole.to_owned()];
        let (job, places) = Default::default();
        return Ok(Script { job, places, array: None, command, warnings: Vec::new() });
    }
    let text = String::from_utf8_lossy(&bytes);
    let (line, warnings) = parse(&text, path)?;
    let command = command(&text, whole, is_executable);
    let Line { job, places, array } = line;
    Ok(Script { job, places, array, command, warnings })
}

/// The command that runs a script: the script itself if it is executable and names an interpreter;
/// otherwise the named interpreter, or the shell.
fn command(text: &str, path: &str, is_executable: bool) -> Vec<String> {
    let said = text.lines().next().and_then(|first| first.strip_prefix("#!")).map(str::trim);
    let interpreter: Vec<String> = match said.filter(|said| !said.is_empty()) {
        Some(_) if is_executable => Vec::new(),
        // Like the kernel, which passes everything after the program as one argument.
        Some(said) => {
            let (program, argument) = said.split_once([' ', '\t']).unwrap_or((said, ""));
            let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
            [Some(program), argument].into_iter().flatten().map(str::to_owned).collect()
        }
        None => vec!["sh".to_owned()],
    };
    interpreter.into_iter().chain([path.to_owned()]).collect()
}

/// The options in a script, and warnings. Later lines override earlier ones.
fn parse(text: &str, path: &Path) -> anyhow::Result<(Line, Vec<String>)> {
    let mut all = Line::default();
    let mut warnings = Vec::new();
    let mut is_begun = false;
    for (number, line) in (1..).zip(text.lines()) {
        let place = || format!("{}, line {number}", path.display());
        let options = line.strip_prefix(MARK).filter(|rest| {
            rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_whitespace())
        });
        let Some(options) = options else {
            is_begun |= !line.trim().is_empty() && !line.trim_start().starts_with('#');
            continue;
        };
        if is_begun {
            let text = "this line is ignored, because it comes after the first command";
            warnings.push(format!("{}: {text}", place()));
            continue;
        }
        let words = words(options).map_err(|why| anyhow::anyhow!("{}: {why}", place()))?;
        let line = Line::try_parse_from(words)
            .map_err(|error| anyhow::anyhow!("{}: {}", place(), first_line(&error)))?;
        let after = [all.job.after.clone(), line.job.after.clone()].concat();
        let after_any = [all.job.after_any.clone(), line.job.after_any.clone()].concat();
        all.job = JobOptions { after, after_any, ..line.job.over(all.job) };
        all.places = line.places.over(all.places);
        all.array = line.array.or(all.array);
    }
    Ok((all, warnings))
}

/// The error without the usage of the program, which does not apply to a script.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// Splits a line like a shell: both kinds of quotes, backslashes, and a comment at the end. Nothing
/// is expanded.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next() {
                        None => return Err(format!("the quote {c} is not closed")),
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' => match rest.next() {
                            None => return Err(format!("the quote {c} is not closed")),
                            Some(taken @ ('"' | '\\' | '$' | '`')) => word.push(taken),
                            Some(other) => word.extend(['\\', other]),
                        },
                        Some(inside) => word.push(inside),
                    }
                }
            }
            '\\' => match rest.next() {
                Some(taken) => word.get_or_insert_default().push(taken),
                None => return Err("nothing follows the last backslash".to_owned()),
            },
            '#' if word.is_none() => break,
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The name of a file without its folder.
pub(super) fn base_name(path: &str) -> String {
    let name = PathBuf::from(path);
    name.file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Tolerance;
    use crate::units::{Share, Span};

    fn parsed(text: &str) -> anyhow::Result<(Line, Vec<String>)> {
        parse(text, Path::new("job.sh"))
    }

    #[test]
    fn words_are_quoted_as_in_a_shell() {
        for (line, expected) in [
            ("", &[][..]),
            ("  -N 2\t-t 10m ", &["-N", "2", "-t", "10m"]),
            ("-J 'two words' x", &["-J", "two words", "x"]),
            (r#"-J "a \"b\" \n" c\ d"#, &["-J", r#"a "b" \n"#, "c d"]),
            ("a'b'\"c\"d", &["abcd"]),
            ("'' x # the rest", &["", "x"]),
            ("a#b #c", &["a#b"]),
            (r"'a\b'", &[r"a\b"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{line}");
        }
        for line in ["'open", "\"open", "\"open\\", "x\\"] {
            assert!(words(line).is_err(), "{line}");
        }
    }

    #[test]
    fn lines_before_the_first_command_count() {
        let text = "#!/bin/sh\n# what it is\n#BUSBAR -N 2 -t 10m --after 3 # and why\n\n\
                    #BUSBAR -t 20m -J 'a job' --slowdown 10% --after 4 -o out/%j --array 1-9%2\n#BUSBARK -N 7\n\
                    cd /\n#BUSBAR -N 9\n";
        let (line, warnings) = parsed(text).unwrap();
        assert_eq!(
            line.job,
            JobOptions {
                nodes: Some(2),
                time: Some(Span::from_secs(1200)),
                name: Some("a job".to_owned()),
                slowdown: Some(Tolerance::Slowdown(Share::percent(10))),
                after: vec![3.into(), 4.into()],
                ..JobOptions::default()
            }
        );
        assert_eq!(line.places.output, Some("out/%j".into()));
        assert_eq!(line.array, Some("1-9%2".parse().unwrap()));
        assert_eq!(
            warnings,
            ["job.sh, line 8: this line is ignored, because it comes after the first command"]
        );
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, what) in [
            (
                "#!/bin/sh\n#BUSBAR -N none",
                "job.sh, line 2: invalid value 'none' for '--nodes <N>'",
            ),
            ("#BUSBAR -N 0", "job.sh, line 1: invalid value '0' for '--nodes <N>'"),
            ("\n\n#BUSBAR --fly", "job.sh, line 3: unexpected argument '--fly' found"),
            ("#BUSBAR -t soon", "job.sh, line 1: invalid value 'soon' for '--time <TIME>'"),
            ("#BUSBAR --array 9-1", "job.sh, line 1: invalid value '9-1' for '--array <ARRAY>'"),
            ("#BUSBAR -- sh", "job.sh, line 1: unexpected argument"),
            ("#BUSBAR -h", "job.sh, line 1: unexpected argument '-h' found"),
            ("#BUSBAR -J 'x", "job.sh, line 1: the quote ' is not closed"),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}, not {what}");
        }
    }

    #[test]
    fn a_script_is_run_by_what_it_says() {
        let run = |text, is_executable| command(text, "/s", is_executable);
        assert_eq!(run("#!/bin/bash -e -u\n", true), ["/s"]);
        assert_eq!(run("#!/bin/bash -e -u\n", false), ["/bin/bash", "-e -u", "/s"]);
        assert_eq!(run("#! /usr/bin/python3\n", false), ["/usr/bin/python3", "/s"]);
        assert_eq!(run("echo\n", true), ["sh", "/s"]);
        assert_eq!(run("", false), ["sh", "/s"]);
        assert_eq!(run("#!\n", false), ["sh", "/s"]);
    }

    #[test]
    fn what_is_typed_wins_over_the_script() {
        let (line, _) = parsed("#BUSBAR -N 2 -t 10m --after 3 --hold").unwrap();
        let typed = JobOptions { nodes: Some(5), after: vec![9.into()], ..JobOptions::default() };
        let both = typed.over(line.job);
        assert_eq!((both.nodes, both.time), (Some(5), Some(Span::from_secs(600))));
        assert_eq!((both.after, both.hold), (vec![9.into()], true));
    }
}
