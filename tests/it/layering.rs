//! The rooms of the house: lower ones do not know the upper ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use busbar::policy::PolicySpec;

use imports::Imports;

mod imports;

/// Each module of the core and of the program with the modules it may use, and `workloads`, a crate, with those of the
/// core. What is not named here may not be used, and a module that is not named here may not exist. What other crates
/// may use, Cargo sees to.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("digits", &[]),
    ("spelling", &[]),
    ("call", &["spelling"]),
    ("rows", &["text", "spelling"]),
    ("mixing", &[]),
    ("linear", &[]),
    ("parallel", &[]),
    ("text", &[]),
    ("variation", &["units", "spelling", "rows"]),
    ("solve", &["units", "model", "variation"]),
    ("utility", &["units", "rows"]),
    ("heterogeneity", &["units", "rows", "utility"]),
    ("job", &["units", "utility"]),
    ("machine", &["units", "mixing", "spelling", "text", "rows", "variation", "calendar"]),
    ("seats", &["units", "job", "machine"]),
    ("calendar", &["units", "spelling"]),
    ("tariff", &["units", "rows", "calendar"]),
    ("budget", &["units", "rows", "calendar", "machine"]),
    ("freedom", &["spelling"]),
    (
        "model",
        &[
            "units",
            "linear",
            "freedom",
            "job",
            "machine",
            "profile",
            "variation",
            "heterogeneity",
            "seats",
        ],
    ),
    (
        "world",
        &[
            "units",
            "mixing",
            "rows",
            "spelling",
            "freedom",
            "job",
            "machine",
            "profile",
            "variation",
            "model",
            "seats",
        ],
    ),
    (
        "belief",
        &["units", "freedom", "job", "machine", "profile", "variation", "model", "world", "seats"],
    ),
    ("fairshare", &["units"]),
    ("structure", &["units", "job"]),
    ("limits", &["units", "job"]),
    (
        "priority",
        &["units", "spelling", "text", "rows", "calendar", "job", "machine", "fairshare", "limits"],
    ),
    ("queue", &["units", "model"]),
    ("ledger", &["units", "freedom", "machine", "budget", "model", "seats"]),
    ("availability", &["units", "machine", "budget", "model", "ledger"]),
    (
        "policy",
        &[
            "units",
            "mixing",
            "spelling",
            "call",
            "utility",
            "heterogeneity",
            "job",
            "machine",
            "budget",
            "model",
            "freedom",
            "world",
            "belief",
            "queue",
            "ledger",
            "availability",
            "solve",
            "variation",
            "seats",
            "fairshare",
            "priority",
            "limits",
        ],
    ),
    (
        "dispatch",
        &[
            "units", "freedom", "job", "machine", "budget", "model", "queue", "ledger", "policy",
            "seats", "limits",
        ],
    ),
    ("switching", &["units", "job", "machine", "model", "dispatch"]),
    ("workload", &["units", "spelling", "job", "machine", "calendar", "seats", "structure"]),
    (
        "workloads",
        &[
            "units",
            "text",
            "spelling",
            "call",
            "digits",
            "rows",
            "utility",
            "heterogeneity",
            "job",
            "machine",
            "calendar",
            "structure",
            "workload",
        ],
    ),
    ("profile", &["units", "text", "rows", "linear"]),
    (
        "sim",
        &[
            "priority",
            "limits",
            "structure",
            "units",
            "rows",
            "job",
            "machine",
            "budget",
            "model",
            "world",
            "ledger",
            "policy",
            "dispatch",
            "workload",
            "switching",
            "calendar",
            "tariff",
        ],
    ),
    (
        "metrics",
        &[
            "units", "utility", "freedom", "world", "job", "machine", "budget", "policy",
            "dispatch", "sim", "workload", "calendar",
        ],
    ),
    (
        "report",
        &[
            "priority",
            "units",
            "digits",
            "rows",
            "parallel",
            "heterogeneity",
            "job",
            "machine",
            "budget",
            "model",
            "policy",
            "metrics",
            "sim",
            "workload",
            "calendar",
        ],
    ),
    (
        "scenario",
        &[
            "limits",
            "units",
            "heterogeneity",
            "freedom",
            "machine",
            "budget",
            "model",
            "world",
            "policy",
            "sim",
            "metrics",
            "workload",
            "switching",
            "calendar",
            "tariff",
            "priority",
        ],
    ),
    (
        "prepared",
        &[
            "limits",
            "priority",
            "units",
            "heterogeneity",
            "freedom",
            "job",
            "machine",
            "budget",
            "model",
            "world",
            "policy",
            "workload",
            "scenario",
            "switching",
            "tariff",
            "belief",
            "seats",
        ],
    ),
    (
        "tuning",
        &[
            "units", "machine", "budget", "policy", "metrics", "workload", "world", "scenario",
            "prepared", "parallel",
        ],
    ),
    (
        "experiment",
        &[
            "units", "text", "freedom", "machine", "budget", "profile", "world", "policy",
            "metrics", "workload", "report", "sim", "scenario", "prepared", "parallel", "calendar",
            "tariff", "job",
        ],
    ),
    (
        "cli",
        &[
            "units",
            "switching",
            "mixing",
            "text",
            "call",
            "heterogeneity",
            "freedom",
            "job",
            "world",
            "agent",
            "live",
            "machine",
            "budget",
            "policy",
            "sim",
            "workload",
            "profile",
            "model",
            "metrics",
            "report",
            "scenario",
            "prepared",
            "tuning",
            "experiment",
            "reproduce",
            "slurm",
            "solve",
            "variation",
            "web",
            "calendar",
            "tariff",
            "priority",
        ],
    ),
];

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// The source files in some folders, each with the folder.
fn sources(folders: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in folders.iter().map(|folder| root.join(folder)) {
        let mut files = Vec::new();
        rust_files(&folder, &mut files);
        all.extend(files.into_iter().map(|file| (folder.clone(), file)));
    }
    assert!(all.len() > 200, "the source is where it is expected");
    all
}

/// The code of a file without its unit tests and comments, which may look anywhere.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Whether a file holds tests alone: `tests.rs`, or one in a folder of that name.
fn is_test(inside: &Path) -> bool {
    inside.ends_with("tests.rs") || inside.iter().any(|part| part == "tests")
}

/// A policy's name decides nothing outside of `policy`: only the papers' experiments know single ones.
#[test]
fn nobody_asks_which_policy_it_is() {
    let knows = |inside: &Path| {
        let first = inside.iter().next().unwrap().to_string_lossy().into_owned();
        ["policy", "policy.rs"].contains(&first.as_str())
            || inside == Path::new("cli/reproduce.rs")
            || is_test(inside)
    };
    let external: PolicySpec = "external(./mine)".parse().unwrap();
    let policies: Vec<PolicySpec> = PolicySpec::all().into_iter().chain([external]).collect();
    // Such as `busbar_core::policy::rmap::spec::RmapSpec`.
    let paths: Vec<Vec<&str>> =
        policies.iter().map(|policy| words(policy.rust_name()).collect()).collect();
    let kinds: BTreeSet<&str> = paths.iter().map(|path| path[path.len() - 1]).collect();
    let modules: BTreeSet<&str> = paths.iter().map(|path| path[2]).collect();
    assert!(kinds.contains("ShareSpec") && modules.contains("pb_guided"), "{kinds:?}, {modules:?}");
    let is_policy = |word: &str| {
        let is_kind = |kind: &&str| kind.trim_end_matches("Spec") == word;
        modules.contains(word) || kinds.iter().any(is_kind)
    };
    let is_compared = |rest: &str| {
        let name = ["==", "!="].into_iter().find_map(|sign| rest.trim_start().strip_prefix(sign));
        let name = name.and_then(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        name.is_some_and(|name| policies.iter().any(|policy| policy.name() == name))
    };
    let mut looked_at = 0;
    for (source, path) in sources(&[
        "crates/core/src",
        "crates/live/src",
        "crates/profiles/src",
        "crates/python/src",
        "crates/slurm/src",
        "crates/web/src",
        "crates/workloads/src",
        "src",
    ]) {
        let inside = path.strip_prefix(&source).unwrap();
        if knows(inside) {
            continue;
        }
        looked_at += 1;
        let code = code(&path);
        // An order has the name of a policy, too.
        let is_kind = |word: &&str| kinds.contains(word) && word.ends_with("Spec");
        let named = words(&code).find(is_kind);
        let imports = code.split("::policy::").skip(1);
        let mut imported =
            imports.flat_map(|rest| words(rest.split(';').next().unwrap_or_default()));
        let named = named.or_else(|| imported.find(|word| is_policy(word)));
        assert_eq!(named, None, "{} names a policy", inside.display());
        let is_asked = code.split(".name()").skip(1).any(is_compared);
        assert!(!is_asked, "{} asks for a policy by its name", inside.display());
    }
    assert!(looked_at > 200, "the source is where it is expected");
}

#[test]
fn no_module_looks_upward() {
    let may_use: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut needed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (source, path) in sources(&["crates/core/src", "crates/workloads/src", "src"]) {
        let inside = path.strip_prefix(&source).unwrap();
        let first = inside.iter().next().unwrap().to_string_lossy();
        let module = first.trim_end_matches(".rs");
        if ["main", "lib"].contains(&module) || is_test(inside) {
            continue;
        }
        let (module, house) = match source.ends_with("crates/workloads/src") {
            true => ("workloads", "busbar_core::"),
            false => (module, "crate::"),
        };
        let allowed = may_use.get(module).unwrap_or_else(|| panic!("{module} is not on the map"));
        for used in code(&path).split(house).skip(1) {
            let used: String =
                used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(
                used == module || allowed.contains(&used.as_str()),
                "{} uses {used}, which {module} may not know",
                inside.display()
            );
            needed.entry(module.to_owned()).or_default().insert(used);
        }
    }
    for (module, allowed) in may_use {
        let needed = needed.remove(module).unwrap_or_default();
        for other in allowed {
            assert!(needed.contains(*other), "{module} may use {other}, and has no need to");
        }
    }
}

/// Every crate of the workspace, by the folder of its source.
fn crates() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let named = |folder: PathBuf| {
        (folder.file_name().unwrap().to_string_lossy().into_owned(), folder.join("src"))
    };
    let mut crates: Vec<_> =
        folders.filter(|folder| folder.join("Cargo.toml").exists()).map(named).collect();
    crates.push(("busbar".to_owned(), root.join("src")));
    crates.sort();
    crates
}

/// Modules that lie beside each other may use each other in one direction alone.
#[test]
fn no_modules_use_each_other_in_a_circle() {
    let crates = crates();
    assert!(crates.len() > 8, "the crates are where they are expected: {crates:?}");
    for (name, source) in &crates {
        let circles = Imports::of(source).circles();
        assert!(circles.is_empty(), "modules of {name} use each other in a circle: {circles:?}");
    }
}

/// The rooms of the daemon, from the bottom up, each with those that it may use.
const ROOMS: &[(&str, &[&str])] = &[
    ("job", &[]),
    ("engine", &["job"]),
    ("host", &["engine"]),
    ("wire", &["job", "engine"]),
    ("store", &["job", "engine", "host", "wire"]),
    ("engines", &["job", "engine", "host", "store"]),
    ("control", &["job", "engine", "host", "wire", "store"]),
    ("server", &["job", "engine", "host", "wire", "store", "engines", "control"]),
];

#[test]
fn no_room_of_the_daemon_looks_upward() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/live/src");
    let mut files = Vec::new();
    rust_files(&source, &mut files);
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files {
        let inside = path.strip_prefix(&source).unwrap();
        let first = inside.iter().next().unwrap().to_string_lossy();
        let room = first.trim_end_matches(".rs").to_owned();
        if ["lib", "patience"].contains(&room.as_str()) || is_test(inside) {
            continue;
        }
        let code = code(&path);
        let names = code.split("crate::").skip(1).filter_map(|rest| words(rest).next());
        let others = names.filter(|name| *name != room).map(str::to_owned);
        used.entry(room.clone()).or_default().extend(others);
    }
    let may_use = ROOMS.iter().map(|(room, others)| {
        (room.to_string(), others.iter().map(|other| other.to_string()).collect())
    });
    assert_eq!(
        used,
        may_use.collect(),
        "each room uses those below it that are named, and no others"
    );
    let mut below = BTreeSet::new();
    for (room, others) in ROOMS {
        assert!(others.iter().all(|other| below.contains(other)), "{room} uses one above it");
        below.insert(room);
    }
}
