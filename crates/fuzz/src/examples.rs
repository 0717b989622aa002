//! What targets begin with: files of the tests, and lines of each format.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below folders of the repository whose names end in one of these ways.
pub fn files(folders: &[&str], endings: &[&str]) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root().join(folder), endings, &mut paths);
    }
    paths.sort();
    let read = |path: &PathBuf| {
        fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}

fn collect(folder: &Path, endings: &[&str], paths: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, endings, paths);
        } else if endings.iter().any(|ending| path.to_string_lossy().ends_with(ending)) {
            paths.push(path);
        }
    }
}

/// Texts as they are.
pub fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// What is quoted in the sources of tests: much of it is what a parser reads, or refuses.
pub fn quoted(files: &[&str]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for file in files {
        let path = root().join(file);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parts = text.split('"').skip(1).step_by(2);
        let usable = parts.filter(|part| part.len() > 2 && !part.contains('{'));
        found.extend(usable.map(|part| part.replace("\\n", "\n").into_bytes()));
    }
    found
}
