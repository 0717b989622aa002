//! Small files that unpack to very large ones: they are read as streams, within bounds that are told.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;

/// How much memory the program may have, in KiB: enough for what it keeps, and far less than what is unpacked.
const MEMORY: u32 = 40 << 10;

/// A record that is a job.
const RECORD: &str = "1 0 0 60 1 -1 -1 1 60 -1 1 1 1 1 1 1 -1 -1\n";

/// The text in gzip.
fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// A file with so many MiB of a text that is repeated, between two others. Gzip may have several members, so that the
/// text need not be packed again and again.
fn write(path: &Path, begin: &str, repeated: &str, mebibytes: usize, end: &str) {
    let block = packed(&repeated.repeat((1 << 20) / repeated.len()));
    let bytes = [packed(begin), block.repeat(mebibytes), packed(end)].concat();
    assert!(bytes.len() < mebibytes << 14, "it is a small file");
    std::fs::write(path, bytes).unwrap();
}

/// Runs the program where it can have no more memory than this. One that needs more is ended.
fn run(arguments: &[&str], folder: &Path) -> Output {
    let script = format!("ulimit -d {MEMORY} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_busbar")]).args(arguments);
    command.current_dir(folder).output().unwrap()
}

#[track_caller]
fn assert_done(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn assert_refused(output: &Output, message: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{}: {said}", output.status);
    assert!(said.contains(message), "{said}");
}

#[test]
fn logs_are_read_as_streams() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Nothing but lines of which nothing is kept.
    for (name, line) in
        [("blank", "\n"), ("blanks", "  \t \r\n"), ("comments", ";\n"), ("bad", "1 x\n")]
    {
        let file = format!("{name}.swf.gz");
        write(&path(&file), RECORD, line, 64, RECORD);
        let simulate = ["simulate", "--skip-bad-records", "--json", "--workload", &file];
        let answer = assert_done(&run(&simulate, folder.path()));
        assert!(answer.contains("\"completed\": 2"), "{name}: {answer}");
    }
    // The number of a line is what it was.
    write(&path("wrong.swf.gz"), "", "\n", 64, "1 x\n");
    let message = format!("wrong.swf.gz, line {}, field 2", (64 << 20) + 1);
    let convert = ["workload", "convert", "--workload", "wrong.swf.gz"];
    assert_refused(&run(&convert, folder.path()), &message);
}

#[test]
fn opening_comments_have_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("header.swf.gz"), "", ";\n", 64, RECORD);
    let output = run(&["simulate", "--workload", "header.swf.gz"], folder.path());
    assert_refused(&output, "the comments up to line 131073 take more than 4 MiB");
}

#[test]
fn records_in_json_are_held_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let import = |name: &str| {
        let arguments = ["workload", "import", name, "--format", "sacct", "--out", "out.swf"];
        run(&arguments, folder.path())
    };
    for (name, begin, repeated, mebibytes, end, message) in [
        (
            "text",
            "{\"jobs\": [{\"name\": \"",
            "name",
            64,
            "\"}]}",
            "line 1: a text or a number has more than 16 MiB, so this is not what sacct prints",
        ),
        ("key", "{\"", "name", 64, "\": 1}", "more than 16 MiB"),
        ("number", "{\"meta\": 1", "0000", 64, "}", "more than 16 MiB"),
        ("deep", "{\"meta\": ", "[[[[", 64, "", "more than 128 lists and objects inside"),
        // What is cut off is counted, and there is nothing else.
        ("steps", "{\"jobs\": [{\"steps\": [{}", ",{},{}", 16, "", "no run in the records"),
        ("blank", "{\"jobs\": [", "\n", 16, "]}", "no run in the records"),
        ("lines", "JobIDRaw|Submit|Start|End|NCPUS\n", "\n", 64, "", "no run in the records"),
    ] {
        let file = format!("{name}.json.gz");
        write(&folder.path().join(&file), begin, repeated, mebibytes, end);
        assert_refused(&import(&file), message);
    }
}
