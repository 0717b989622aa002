//! Runs targets for as long as one likes.

use std::panic;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use busbar_fuzz::engine::{Found, Target, once, run};
use busbar_fuzz::targets::TARGETS;
use clap::Parser;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Feeds damaged input to the parsers of Busbar
///
/// A fault is written to a file, and ends the program with status 1 when all targets have had their time.
#[derive(Parser)]
struct Options {
    /// Targets [default: all]
    targets: Vec<String>,
    /// How long all targets run together, in minutes
    #[arg(long, default_value_t = 1.0, conflicts_with = "runs")]
    minutes: f64,
    /// How often each target runs, instead
    #[arg(long)]
    runs: Option<u64>,
    /// What the damage is drawn from; another one in each run of the program unless it is given
    #[arg(long)]
    seed: Option<u64>,
    /// How many targets run at the same time [default: as many as there are cores]
    #[arg(long)]
    threads: Option<usize>,
    /// The folder for inputs that are faults
    #[arg(long, default_value = "target/fuzz")]
    folder: PathBuf,
    /// Writes each input to the folder before it is run, for a fault that ends the program
    #[arg(long)]
    trace: bool,
    /// Lists the targets
    #[arg(long)]
    list: bool,
    /// Runs this file through the targets, once
    #[arg(long)]
    input: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let chosen: Vec<&Target> = match options.targets.is_empty() {
        true => TARGETS.iter().collect(),
        false => TARGETS
            .iter()
            .filter(|target| options.targets.iter().any(|name| name == target.name))
            .collect(),
    };
    if let Some(unknown) =
        options.targets.iter().find(|name| !TARGETS.iter().any(|target| target.name == **name))
    {
        eprintln!("error: there is no target '{unknown}'; --list shows all");
        return ExitCode::from(2);
    }
    if options.list {
        TARGETS.iter().for_each(|target| println!("{}", target.name));
        return ExitCode::SUCCESS;
    }
    if let Some(file) = &options.input {
        let input = match std::fs::read(file) {
            Ok(input) => input,
            Err(error) => {
                eprintln!("error: {}: {error}", file.display());
                return ExitCode::from(1);
            }
        };
        for target in chosen {
            println!("{}: {}", target.name, once(target, &input));
        }
        return ExitCode::SUCCESS;
    }
    // Who asks for much memory ends here instead of taking it from others.
    let most = 6 << 30;
    let _ = setrlimit(Resource::As, Rlimit { current: Some(most), maximum: Some(most) });
    panic::set_hook(Box::new(|_| ()));
    let threads = options
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |count| count.get()));
    let each =
        Duration::from_secs_f64(60.0 * options.minutes * threads as f64 / chosen.len() as f64);
    let seed = options.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |passed| passed.as_nanos() as u64)
    });
    println!("seed {seed}");
    let waiting = Mutex::new(chosen.into_iter());
    let (runs, faults) = (Mutex::new(0_u64), Mutex::new(0_u32));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(target) = waiting.lock().expect("nobody panics here").next() else {
                        return;
                    };
                    let found = run_one(target, seed, &options, each);
                    *runs.lock().expect("nobody panics here") += found.runs;
                    *faults.lock().expect("nobody panics here") += u32::from(found.fault.is_some());
                }
            });
        }
    });
    let (runs, faults) =
        (runs.into_inner().expect("all have ended"), faults.into_inner().expect("all have ended"));
    println!("{runs} runs, {faults} faults");
    ExitCode::from(u8::from(faults > 0))
}

fn run_one(target: &Target, seed: u64, options: &Options, each: Duration) -> Found {
    let begun = Instant::now();
    let goes_on = |runs: u64| match options.runs {
        Some(most) => runs < most,
        // The clock is not asked each time.
        None => !runs.is_multiple_of(16) || begun.elapsed() < each,
    };
    let write = |name: String, input: &[u8]| {
        let path = options.folder.join(name);
        let written =
            std::fs::create_dir_all(&options.folder).and_then(|()| std::fs::write(&path, input));
        written.unwrap_or_else(|error| eprintln!("error: {}: {error}", path.display()));
        path
    };
    let before = |input: &[u8]| {
        if options.trace {
            write(format!("{}.last", target.name), input);
        }
    };
    let found = run(target, seed, goes_on, before);
    let passed = begun.elapsed().as_secs_f64();
    println!(
        "{:<16} {:>10} runs in {passed:.0} s, {} answers, slowest {} ms",
        target.name, found.runs, found.answers, found.slowest.0
    );
    if let Some((why, input)) = &found.fault {
        let path = write(format!("{}-{seed}", target.name), input);
        println!("{}: {why}\n  the input is in {}", target.name, path.display());
    }
    found
}
