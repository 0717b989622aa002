//! The goals for speed and memory, measured: `cargo bench`.
//!
//! `cargo bench -- --quick` is a short form of it; words choose sections, as in
//! `cargo bench -- overload logs`. The tables are printed as Markdown. What is timed and how is
//! told in `benches/README.md`, beside the figures.

// An allocator that counts cannot do without.
#[allow(unsafe_code)]
mod allocator;
mod bench;
mod calendar;
mod command;
mod easy;
mod files;
mod kinds;
mod large;
mod limited;
mod records;
mod table;
mod turns;

use bench::{Bench, load_average};

/// The word that chooses a section, its title, and what runs it.
type Section = (&'static str, &'static str, fn(&Bench));

const SECTIONS: [Section; 20] = [
    ("command", "The command: busbar simulate LOG", command::command),
    ("scale", "The command under 60 % of the power, by policy", command::scale),
    ("easy", "EASY at load 0.85", easy::easy),
    ("overload", "EASY at load 1.5", easy::overload),
    ("priority", "EASY in the order of priorities, with 1 000 users", easy::priority),
    ("files", "From file to file at load 0.85", files::files),
    ("folder", "The command with all its files at load 0.85", files::folder),
    ("records", "Import of records of Slurm", records::records),
    ("logs", "Whole logs, EASY", easy::logs),
    ("growth", "Growth with the number of jobs, EASY at load 0.85", easy::growth),
    ("memory", "Memory, EASY", easy::memory),
    ("conservative", "Conservative backfilling at load 0.85", limited::conservative),
    ("guided", "Under a power limit, beside EASY without one", limited::guided),
    (
        "binding",
        "Whole logs under a limit that binds, beside EASY under the same",
        limited::binding,
    ),
    ("calendar", "A queue that only grows, while limits are to come", calendar::calendar),
    ("malleable", "PARM on 40 960 nodes", turns::malleable),
    ("moldable", "RMAP with 10 000 jobs in the queue", turns::moldable),
    ("share", "Share with 10 000 jobs in the queue", turns::share),
    ("kinds", "A month of a site whose nodes are of four kinds and shared", kinds::kinds),
    ("large", "A month of a large site", large::large),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument == "--bench") {
        println!("not run as a benchmark; see cargo bench");
        return;
    }
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    if let Some(word) = words.iter().find(|word| SECTIONS.iter().all(|section| section.0 != **word))
    {
        let valid = SECTIONS.map(|section| section.0).join(", ");
        eprintln!("no section '{word}'; valid: {valid}");
        std::process::exit(2);
    }
    let bench = Bench::new(arguments.iter().any(|argument| argument == "--quick"));
    bench.introduce();
    for (word, title, run) in SECTIONS {
        if words.is_empty() || words.contains(&&word.to_owned()) {
            println!("\n## {title}\n");
            run(&bench);
        }
    }
    println!("\nLoad average after: {}", load_average());
}
