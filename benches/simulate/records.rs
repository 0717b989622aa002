//! The import of records of Slurm.

use std::io::{self, Write};
use std::path::Path;

use busbar::report::write_whole;
use busbar::workload::records::{Importer, Options};
use busbar::workload::swf;

use super::allocator::Counting;
use super::bench::{Bench, timed};
use super::table::{Table, grouped, met};

/// Lines of `sacct` in a file, to a log in another; the peak of memory is that of the import alone.
pub(super) fn records(bench: &Bench) {
    let mut table = Table::new("lines | what | run | s | lines/s | bytes/line | goal | met");
    let counts = if bench.quick { &[100_000u32][..] } else { &[100_000, 1_000_000] };
    for (lines, steps) in counts.iter().flat_map(|lines| [(*lines, 0), (*lines, 2)]) {
        let folder = bench.folder.path();
        let (dump, log) = (folder.join("dump.txt"), folder.join("dump.swf"));
        write_whole(&dump, &|out| write_sacct(out, lines, steps)).expect("a dump");
        let mut peak = 0;
        let runs = bench.repeat(|| {
            let before = Counting::restart_peak();
            let (seconds, ()) = timed(|| import(&dump, &log));
            peak = Counting::peak() - before;
            [seconds]
        });
        let bytes = peak as f64 / f64::from(lines);
        for (run, [seconds]) in [("best", runs[0]), ("median", runs[runs.len() / 2])] {
            let speed = f64::from(lines) / seconds;
            table.row(vec![
                grouped(lines.into()),
                if steps == 0 { "jobs" } else { "jobs and steps" }.to_owned(),
                run.to_owned(),
                format!("{seconds:.2}"),
                grouped(speed as u64),
                format!("{bytes:.0}"),
                "≥ 200 000 lines/s, ≤ 200 bytes".to_owned(),
                met(speed >= 200_000.0 && bytes <= 200.0),
            ]);
        }
    }
    table.print();
}

fn import(dump: &Path, log: &Path) {
    let mut importer = Importer::new(Options::default()).expect("UTC");
    importer.read_path(dump).expect("a dump");
    let import = importer.finish().expect("runs");
    let comments = import.comments(None);
    let write = |mut out: &mut dyn Write| swf::write(&mut out, &comments, import.records());
    write_whole(log, &write).expect("a log");
}

/// A dump of jobs with so many steps each, and the columns that the documentation recommends.
fn write_sacct(out: &mut dyn Write, lines: u32, steps: u32) -> io::Result<()> {
    writeln!(
        out,
        "JobIDRaw|JobID|User|Account|Partition|QOS|State|Submit|Start|End|Timelimit|NNodes|AllocCPUS|ConsumedEnergyRaw|\
         JobName"
    )?;
    for line in 0..lines {
        let (job, step) = (line / (1 + steps), line % (1 + steps));
        let (day, hour, minute) = (1 + job / 1440 % 28, job / 60 % 24, job % 60);
        let time = |second: u32| format!("2024-03-{day:02}T{hour:02}:{minute:02}:{second:02}");
        let id = format!("{}{}", 1000 + job, ["", ".batch", ".extern"][step as usize]);
        let (submit, start, end) = (time(1), time(7), time(7 + job % 50));
        let (user, account) = (job * 7 % 400, job * 7 % 60);
        let (nodes, state) = (1 + job % 8, ["COMPLETED", "FAILED", "TIMEOUT"][(job % 3) as usize]);
        let (cpus, energy) = (48 * nodes, 20_000 + job % 9000);
        writeln!(
            out,
            "{id}|{id}|user{user}|account{account}|main|normal|{state}|{submit}|{start}|{end}|1-00:00:00|{nodes}|{cpus}|\
             {energy}|run_{job}"
        )?;
    }
    Ok(())
}
