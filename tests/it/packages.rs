//! What `packaging/` needs to be right before anything is built: the scripts, the version and the release notes.
//!
//! The packages themselves are tested by `packaging/test`, on request: it takes a build of its own, and root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The version where it is written down, and the manifest around it.
fn manifest() -> (String, toml::Table) {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let version = manifest["workspace"]["package"]["version"].as_str().unwrap().to_owned();
    (version, manifest)
}

fn run(folder: &Path, program: &str, words: &[&str]) -> Output {
    Command::new(program).args(words).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Files of the repository with one of these endings, without what is built.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !["target", "dist"].contains(&&*name) {
            files(&path, endings, found);
        } else if endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
}

#[test]
fn scripts_are_free_of_syntax_errors() {
    for (shell, names) in [
        ("bash", &["build", "notes", "test", "test-package", "version"][..]),
        ("sh", &["scripts/postinst", "scripts/prerm", "scripts/postrm"]),
    ] {
        for name in names {
            let path = format!("packaging/{name}");
            assert!(read(&path).lines().next().unwrap().ends_with(shell), "{path}: another shell");
            let output = run(root(), shell, &["-n", &path]);
            assert!(output.status.success(), "{path}: {}", text(&output.stderr));
        }
    }
}

/// Arguments that cannot be meant are refused before anything is built or written.
#[test]
fn mistakes_in_arguments_are_named() {
    for (script, words, said) in [
        ("packaging/build", &["--only", "debian"][..], "'debian' is none of static deb rpm"),
        ("packaging/build", &["--profile", "fast"], "'fast' is neither dist nor release"),
        ("packaging/build", &["--out"], "--out needs a value"),
        ("packaging/build", &["deb"], "unknown argument 'deb'"),
        ("check", &["--fast"], "usage: ./check [--no-install]"),
        ("tests/under-load", &["--fast"], "no option '--fast'"),
        ("packaging/test", &["--only", "pip"], "'pip' is none of static deb rpm wheel"),
        ("packaging/test", &["--dist", "/nowhere"], "run packaging/build first"),
    ] {
        let output = run(root(), "bash", &[&[script], words].concat());
        let errors = text(&output.stderr);
        assert!(!output.status.success() && errors.contains(said), "{script} {words:?}: {errors}");
    }
}

/// Every file that a package takes from the repository is there; the others are made by `packaging/build`.
#[test]
fn packages_hold_files_that_exist() {
    let (_, manifest) = manifest();
    let metadata = &manifest["package"]["metadata"];
    let deb = metadata["deb"]["assets"].as_array().unwrap().iter().map(|asset| &asset[0]);
    let rpm = metadata["generate-rpm"]["assets"].as_array().unwrap();
    let rpm = rpm.iter().map(|asset| &asset["source"]);
    let scripts = ["post_install_script", "pre_uninstall_script", "post_uninstall_script"];
    let scripts = scripts.iter().map(|key| &metadata["generate-rpm"][*key]);
    let (build, mut seen) = (read("packaging/build"), 0);
    for source in deb.chain(rpm).chain(scripts).map(|source| source.as_str().unwrap()) {
        match source.strip_prefix("target/release/package/") {
            Some(made) => {
                let name = made.rsplit('/').next().unwrap().trim_start_matches('*');
                assert!(build.contains(name), "nothing makes {source}");
            }
            None => assert!(root().join(source).is_file(), "there is no {source}"),
        }
        seen += 1;
    }
    assert!(seen > 20, "{seen} files");
}

/// The units that packages hold name the program where packages put it, and folders that the last script removes.
#[test]
fn what_units_make_is_removed() {
    let script = read("packaging/scripts/postrm");
    for unit in ["busbar", "busbar-agent"] {
        let text = read(&format!("packaging/{unit}.service"));
        assert!(
            text.contains("\nExecStart=/usr/local/bin/busbar "),
            "packaging/build changes this path"
        );
        for (key, folders) in [
            ("RuntimeDirectory", &["/run"][..]),
            // A service with DynamicUser= has its state below private/.
            ("StateDirectory", &["/var/lib", "/var/lib/private"]),
        ] {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            assert_eq!(line, Some(unit), "{unit}.service: {key}");
            for folder in folders {
                let path = format!("{folder}/{unit}");
                let removed = script.split_whitespace().any(|word| word == path);
                assert!(removed, "packaging/scripts/postrm does not remove {path}");
            }
        }
    }
}

/// Whether a text begins with two numbers and a dot between them.
fn is_version(text: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let major = digits(text);
    major > 0 && text[major..].strip_prefix('.').is_some_and(|rest| digits(rest) > 0)
}

/// One place says the version. Cargo needs it beside the paths of the crates, too: there it is the same.
#[test]
fn the_version_is_in_one_place() {
    let (version, manifest) = manifest();
    let output = run(root(), "packaging/version", &[]);
    assert_eq!(text(&output.stdout).trim_end(), version, "packaging/version");

    for (name, crate_) in manifest["workspace"]["dependencies"].as_table().unwrap() {
        if crate_.get("path").is_some() {
            assert_eq!(crate_["version"].as_str(), Some(&*version), "Cargo.toml, {name}");
        }
    }
    for member in manifest["workspace"]["members"].as_array().unwrap() {
        let path = format!("{}/Cargo.toml", member.as_str().unwrap());
        let member: toml::Table = read(&path).parse().unwrap();
        let inherits = member["package"]["version"].get("workspace");
        assert!(inherits.is_some(), "{path}: write 'version.workspace = true'");
        let dependencies = member.get("dependencies").and_then(toml::Value::as_table);
        for (name, crate_) in dependencies.into_iter().flatten() {
            if crate_.get("path").is_some() {
                assert_eq!(crate_["version"].as_str(), Some(&*version), "{path}, {name}");
            }
        }
    }

    // The changelog begins with what is not released yet, or with this version.
    let changelog = read("CHANGELOG.md");
    let headings: Vec<&str> =
        changelog.lines().filter_map(|line| line.strip_prefix("## [")?.split(']').next()).collect();
    assert!(
        headings[0] == "Unreleased" || headings[0] == version,
        "CHANGELOG.md begins with [{}], and this is {version}",
        headings[0]
    );

    // Wheels and recipes are filled in, and pages name packages without their version.
    assert!(read("packaging/spack/package.py").contains("version(\"@VERSION@\""));
    let mut projects = Vec::new();
    files(root(), &["pyproject.toml"], &mut projects);
    for path in projects {
        let project: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        let said = project.get("project").and_then(|project| project.get("version"));
        assert!(said.is_none(), "{}: write 'dynamic = [\"version\"]'", path.display());
    }
    let mut pages = Vec::new();
    files(root(), &[".md", "Containerfile"], &mut pages);
    assert!(pages.len() > 40, "{} pages", pages.len());
    for path in pages {
        for word in fs::read_to_string(&path)
            .unwrap()
            .split(|c: char| c.is_whitespace() || "`()\"'/".contains(c))
        {
            let number = ["busbar-", "busbar_", "busbar@", "busbar=="]
                .iter()
                .find_map(|start| word.strip_prefix(start))
                .filter(|rest| is_version(rest));
            let fits = number.is_none_or(|number| number.starts_with(&version));
            assert!(fits, "{}: '{word}' names another version than {version}", path.display());
        }
    }
}

/// A changelog in a folder of its own, and what the script makes of it.
fn notes(changelog: &str, version: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("packaging")).unwrap();
    for script in ["packaging/notes", "packaging/version", "Cargo.toml"] {
        fs::copy(root().join(script), folder.path().join(script)).unwrap();
    }
    fs::write(folder.path().join("CHANGELOG.md"), changelog).unwrap();
    let words: &[&str] = if version.is_empty() { &[] } else { &[version] };
    run(folder.path(), "packaging/notes", words)
}

#[test]
fn release_notes_are_a_section_of_the_changelog() {
    let (version, _) = manifest();
    let changelog = format!(
        "# Changelog\n\n## [Unreleased]\n\n## [{version}] - 2026-11-17\n\n### Added\n\n- This.\n\n\
         ## [0.0.10] - 2026-01-01\n\n- Ten.\n\n## [0.0.1]\n\n- One.\n\n[0.0.1]: https://example.org/\n"
    );
    for (asked, printed) in [
        (&*version, "### Added\n\n- This.\n"),
        // Without an argument, those of the present version.
        ("", "### Added\n\n- This.\n"),
        ("0.0.10", "- Ten.\n"),
        // The version 0.0.10 only begins like it, and the link below is no note.
        ("0.0.1", "- One.\n"),
    ] {
        let output = notes(&changelog, asked);
        assert_eq!(text(&output.stdout), printed, "notes '{asked}'");
        assert!(output.status.success());
    }
    // An empty section and one that is missing; a dot stands for itself.
    for asked in ["Unreleased", "7.7.7", "0x0.1"] {
        let output = notes(&changelog, asked);
        let errors = text(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "notes {asked}");
        assert!(errors.contains(&format!("no section [{asked}], or an empty one")), "{errors}");
    }
}
