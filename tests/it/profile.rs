//! The profile database from the outside: all or nothing, and tables that come back as they went.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use busbar_needs::needs;

fn busbar(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_busbar"))
        .arg("profile")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs a command that must succeed.
fn answer(arguments: &[&str], folder: &Path) -> Vec<u8> {
    let output = busbar(arguments, folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn a_table_comes_back_as_it_went() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    answer(&["generate", "cab"], folder);
    answer(&["export", "--out", "first.csv"], folder);
    answer(&["import", "first.csv", "--profiles", "copy.db"], folder);
    let second = answer(&["export", "--profiles", "copy.db"], folder);
    assert!(second == fs::read(folder.join("first.csv")).unwrap());
    assert_eq!(
        answer(&["list"], folder),
        answer(&["list", "--profiles", "copy.db"], folder),
        "applications have the numbers they had"
    );
}

#[test]
fn a_table_with_a_mistake_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let good = "application,nodes,cores,cap_w,time_s,power_w\nSP,1,1,50,10,20\n";
    fs::write(folder.join("bad.csv"), format!("{good}SP,2,1,50,0,20\n")).unwrap();
    assert_eq!(busbar(&["import", "bad.csv"], folder).status.code(), Some(2));
    let files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["bad.csv"]);

    fs::write(folder.join("good.csv"), good).unwrap();
    answer(&["import", "good.csv"], folder);
    let before = answer(&["export"], folder);
    for table in ["bad.csv", "good.csv"] {
        assert_eq!(busbar(&["import", table], folder).status.code(), Some(2), "{table}");
        assert_eq!(answer(&["export"], folder), before, "{table}");
    }
}

#[test]
fn a_table_may_come_from_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let import = |table: &str| {
        let mut child = Command::new(env!("CARGO_BIN_EXE_busbar"))
            .args(["profile", "import", "-"])
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(table.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let table = "application\tnodes\tcores\tcap_w\ttime_s\tpower_w\nSP\t1\t1\t50\t1e1\t20.0001\n";
    assert!(import(table).status.success());
    let exported = String::from_utf8(answer(&["export"], folder)).unwrap();
    assert_eq!(exported.lines().last(), Some("SP,1,1,50,10,20.001,measured"));
    let output = import(table);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: standard input, line 2: SP on 1 node"), "{message}");
}

/// What somebody may read and not write stays as it is, and nothing appears beside it that would
/// keep its owner from writing.
#[cfg(unix)]
#[needs(ordinary)]
#[test]
fn looking_at_somebody_elses_database_leaves_nothing_behind() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    answer(&["generate", "cab"], folder);
    let database = folder.join("profiles.db");
    let set = |mode| fs::set_permissions(&database, fs::Permissions::from_mode(mode)).unwrap();
    set(0o444);
    for arguments in [&["list"][..], &["show", "SP-MZ"], &["fit", "SP-MZ"], &["export"]] {
        answer(arguments, folder);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "{arguments:?}");
    }
    let output = busbar(&["remove", "SP-MZ"], folder);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("is read-only for you; ask its owner"), "{message}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    set(0o644);
    answer(&["remove", "SP-MZ"], folder);
}

/// The keys that scripts rely on.
#[test]
fn answers_have_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    answer(&["generate", "cab"], folder);
    let keys = |arguments: &[&str]| {
        let answer: serde_json::Value = serde_json::from_slice(&answer(arguments, folder)).unwrap();
        let first = if answer.is_array() { answer[0].clone() } else { answer };
        first.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        keys(&["list", "--json"]),
        "application bound cap_w cores emulated measured nodes number predicted"
    );
    assert_eq!(keys(&["show", "SP-MZ", "--json"]), "application number rows");
    assert_eq!(
        keys(&["fit", "SP-MZ", "--save", "--json"]),
        "application choose coefficients compared measured no_prediction power_error \
         power_not_foreseen saved seed time_error train trained_on"
    );
    assert_eq!(
        keys(&["fit", "SP-MZ", "--model", "pass", "--json"]),
        "application choose compared cores lowest_cap_w measured model parameters residual seed \
         time_error train trained_on"
    );
}

#[test]
fn plots_fit_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    answer(&["generate", "cab"], folder);
    let pass = ["fit", "SP-MZ", "--model", "pass", "--train", "50%"];
    for arguments in [&["show", "SP-MZ"][..], &["fit", "SP-MZ"], &pass, &["list"]] {
        let text = String::from_utf8(answer(arguments, folder)).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{text}");
    }
}
