//! The help of the program itself: its commands in groups.

use clap::Command;

/// The commands in the order in which they are shown. Those that this program was built without are left out.
const GROUPS: &[(&str, &[&str])] = &[
    ("Simulate", &["simulate", "compare", "plan", "whatif", "tune-policy"]),
    ("Describe jobs, machines and applications", &["workload", "machine", "profile"]),
    (
        "Run the daemon",
        &[
            "serve", "status", "stop", "top", "budget", "forecast", "history", "nodes", "config",
            "token",
        ],
    ),
    ("Manage jobs", &["submit", "queue", "show", "cancel", "hold", "release", "work"]),
    ("Connect nodes and clusters", &["agent", "slurm", "site", "lab"]),
    ("Study policies", &["reproduce", "solve", "tune"]),
    ("Help", &["help", "man", "completions"]),
];

/// The command with its groups.
pub(super) fn grouped(command: Command) -> Command {
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n{}{{options}}{{after-help}}",
        groups(&command),
        heading(&command, "Options"),
    );
    command.help_template(template)
}

fn heading(command: &Command, text: &str) -> String {
    let style = command.get_styles().get_header();
    format!("{style}{text}:{style:#}\n")
}

fn groups(command: &Command) -> String {
    let width = names().map(str::len).max().unwrap_or_default();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let lines = names.iter().filter_map(|name| {
            let about = match *name {
                // It is there only when the command is built.
                "help" => "Print this message, or the help of a command".to_owned(),
                name => command.find_subcommand(name)?.get_about()?.to_string(),
            };
            Some(format!("  {literal}{name:width$}{literal:#}  {about}\n"))
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            text += &format!("\n{}{lines}", heading(command, title));
        }
    }
    text
}

fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group() {
        let mut seen = BTreeSet::new();
        assert!(names().all(|name| seen.insert(name)), "one is in two groups");
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|each| !each.is_hide_set());
        for each in shown {
            assert!(seen.contains(each.get_name()), "{} is in no group", each.get_name());
        }
        let text = grouped(command).render_help().to_string();
        for (title, _) in GROUPS.iter().filter(|(_, names)| names.contains(&"simulate")) {
            assert!(text.contains(&format!("\n{title}:\n  simulate ")), "{text}");
        }
        assert!(text.contains("\nOptions:\n"), "{text}");
        assert!(text.contains("--quiet"), "{text}");
        assert!(!text.contains("job-exec"), "{text}");
    }
}
