//! What the modules of a crate use of each other, read from their text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{code, is_test, rust_files};

/// A module by its names, from the root of its crate, which has none.
type Module = Vec<String>;

/// What a module says of others.
#[derive(Default)]
struct Said {
    /// Every path from the crate, the module or those above it, as it is written.
    paths: Vec<Vec<String>>,
    /// What it takes from elsewhere, by the name that this has here.
    taken: BTreeMap<String, Vec<String>>,
    /// From where it takes everything.
    globs: Vec<Vec<String>>,
    /// What it declares itself.
    declared: BTreeSet<String>,
}

/// The modules of a crate.
pub(super) struct Imports(BTreeMap<Module, Said>);

impl Imports {
    /// Those of the source files in a folder, without tests.
    pub(super) fn of(source: &Path) -> Self {
        let mut files = Vec::new();
        rust_files(source, &mut files);
        let modules = files.iter().filter_map(|path| {
            let inside = path.strip_prefix(source).unwrap();
            if is_test(inside) || inside == Path::new("main.rs") {
                return None;
            }
            let inside = inside.with_extension("");
            let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
            let module = parts.filter(|part| part != "lib" && part != "mod").collect();
            Some((module, Said::in_code(&code(path))))
        });
        Imports(modules.collect())
    }

    /// Which modules of the same folder use each other in a circle: by folder, all that are in one. What a module
    /// uses counts for everybody above it.
    pub(super) fn circles(&self) -> Vec<(String, Vec<String>)> {
        let mut uses: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
        for (module, said) in &self.0 {
            for used in said.paths.iter().filter_map(|path| self.home(module, path, 0)) {
                let common =
                    module.iter().zip(used).take_while(|(one, other)| one == other).count();
                // A module and what is within it are one thing.
                if let (Some(one), Some(other)) = (module.get(common), used.get(common)) {
                    let folder = uses.entry(&module[..common]).or_default();
                    folder.entry(one).or_default().insert(other);
                }
            }
        }
        let mut circles = Vec::new();
        for (folder, uses) in uses {
            let reached: BTreeMap<&str, BTreeSet<&str>> =
                uses.keys().map(|module| (*module, reached(&uses, module))).collect();
            let mut left: BTreeSet<&str> = uses.keys().copied().collect();
            while let Some(first) = left.pop_first() {
                let is_in = |other: &&str| {
                    reached[first].contains(other)
                        && reached.get(other).is_some_and(|reached| reached.contains(first))
                };
                let others: Vec<&str> = left.iter().copied().filter(is_in).collect();
                if !others.is_empty() {
                    others.iter().for_each(|other| _ = left.remove(other));
                    let circle = [&[first][..], &others].concat();
                    circles
                        .push((folder.join("/"), circle.into_iter().map(String::from).collect()));
                }
            }
        }
        circles
    }

    /// The module in which that is declared to which a path leads, if it is one of the crate.
    fn home<'a>(&'a self, from: &Module, path: &[String], depth: u32) -> Option<&'a Module> {
        let (first, rest) = path.split_first()?;
        let whole: Vec<String> = match first.as_str() {
            "crate" => rest.to_vec(),
            "self" => [from, rest].concat(),
            "super" => {
                let levels = path.iter().take_while(|part| *part == "super").count();
                let above = from.len().checked_sub(levels)?;
                [&from[..above], &path[levels..]].concat()
            }
            // Paths begin with a module within this one, or lead out of the crate.
            _ => [from, path].concat(),
        };
        let is_below = ["crate", "self", "super"].contains(&first.as_str());
        let (mut at, said) = self.0.get_key_value(&[][..] as &[String])?;
        let mut said = said;
        for (place, name) in whole.iter().enumerate() {
            if let Some((module, inside)) = self.0.get_key_value(&whole[..=place]) {
                (at, said) = (module, inside);
                continue;
            }
            if place == from.len() && !is_below {
                return None;
            }
            let taken = said.taken.get(name).filter(|_| depth < 8);
            if let Some(taken) = taken {
                return self.home(at, taken, depth + 1).or(Some(at));
            }
            let homes = said.globs.iter().filter_map(|glob| self.home(at, glob, depth + 1));
            let declares = |home: &&Module| self.0[*home].declared.contains(name);
            return homes.filter(|_| depth < 8).find(declares).or(Some(at));
        }
        Some(at)
    }
}

/// What a module uses, and what that uses, and so on.
fn reached<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(module) = next.pop() {
        next.extend(uses.get(module).into_iter().flatten().filter(|used| found.insert(**used)));
    }
    found
}

impl Said {
    fn in_code(code: &str) -> Self {
        let tokens = tokens(code);
        let mut said = Said::default();
        let mut left = &tokens[..];
        while let Some((token, rest)) = left.split_first() {
            left = rest;
            let begins = rest.first().is_some_and(|next| next == "::");
            match token.as_str() {
                "use" => left = said.take(rest, Vec::new()),
                "crate" | "super" | "self" if begins => {
                    let mut path = vec![token.clone()];
                    while let [colons, name, rest @ ..] = left
                        && colons == "::"
                        && is_word(name)
                    {
                        path.push(name.clone());
                        left = rest;
                    }
                    said.paths.push(path);
                }
                "fn" | "struct" | "enum" | "trait" | "const" | "static" | "type" => {
                    said.declared.extend(rest.first().cloned());
                }
                _ => (),
            }
        }
        said
    }

    /// Takes in a tree of `use`, and returns what follows it.
    fn take<'a>(&mut self, tokens: &'a [String], mut path: Vec<String>) -> &'a [String] {
        let mut left = tokens;
        while let Some((token, rest)) = left.split_first() {
            left = rest;
            match token.as_str() {
                "::" => (),
                "*" => {
                    self.paths.push(path.clone());
                    self.globs.push(path);
                    return left;
                }
                "{" => {
                    while left.first().is_some_and(|token| token != "}") {
                        left = match left[0] == "," {
                            true => &left[1..],
                            false => self.take(left, path.clone()),
                        };
                    }
                    return left.get(1..).unwrap_or_default();
                }
                name if is_word(name) => {
                    if name != "self" || path.is_empty() {
                        path.push(token.clone());
                    }
                    if left.first().is_some_and(|next| next == "::") {
                        continue;
                    }
                    let mut name = path.last().cloned().unwrap_or_default();
                    if let [is, other, rest @ ..] = left
                        && is == "as"
                    {
                        (name, left) = (other.clone(), rest);
                    }
                    self.paths.push(path.clone());
                    self.taken.insert(name, path);
                    return left;
                }
                _ => return left,
            }
        }
        left
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
}

/// Words, double colons and other signs, without text in quotes and comments.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut left = code;
    while let Some(sign) = left.chars().next() {
        let word = left.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
        let word = &left[..word.unwrap_or(left.len())];
        let hashes = left
            .strip_prefix('r')
            .map_or(0, |rest| rest.len() - rest.trim_start_matches('#').len());
        let end = if left.starts_with("//") {
            left.find('\n').unwrap_or(left.len())
        } else if left.starts_with('r') && left[1 + hashes..].starts_with('"') {
            let (begin, close) = (2 + hashes, format!("\"{}", "#".repeat(hashes)));
            left[begin..].find(&close).map_or(left.len(), |end| begin + end + close.len())
        } else if sign == '"' {
            let mut is_escaped = false;
            let close = left[1..].find(|sign| {
                let ends = sign == '"' && !is_escaped;
                is_escaped = sign == '\\' && !is_escaped;
                ends
            });
            close.map_or(left.len(), |end| end + 2)
        } else if let Some(quote) =
            ["'\"'", "'\\\"'"].into_iter().find(|quote| left.starts_with(quote))
        {
            quote.len()
        } else if !word.is_empty() {
            tokens.push(word.to_owned());
            word.len()
        } else if left.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !sign.is_whitespace() {
                tokens.push(sign.to_string());
            }
            sign.len_utf8()
        };
        left = &left[end..];
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Imports::of(folder.path())
    }

    /// Found: through a name that the parent hands on, from below, and by a path in the code. Not found: what a parent
    /// and its child use of each other, and what only seems to be a path.
    #[test]
    fn circles_by_hand() {
        let lib = ("lib.rs", "mod a; mod b; mod c; pub use b::{self, B as C}; fn own() {}");
        let a = ("a.rs", "mod deep; use crate::C; use deep::D; pub struct A;");
        let deep = ("a/deep.rs", "use super::A; use crate::own; pub struct D;");
        let b = ("b.rs", "pub struct B; // crate::a::A\nconst TEXT: &str = \"crate::a\";");
        let c = ("c.rs", "fn f() { crate::b::g(r#\"\"crate::a\"#, '\"') }");
        assert_eq!(imports(&[lib, a, deep, b, c]).circles(), []);
        for circular in [
            "use crate::a::A; pub struct B;",
            "use super::a::{deep::{D as E}}; pub struct B;",
            "pub struct B; fn f() -> crate::a::A { A }",
        ] {
            let found = imports(&[lib, a, deep, ("b.rs", circular), c]).circles();
            assert_eq!(
                found,
                [(String::new(), vec!["a".to_owned(), "b".to_owned()])],
                "{circular}"
            );
        }
        let below = [("b/x.rs", "use super::y::Y;"), ("b/y.rs", "use crate::b::x; pub struct Y;")];
        let found = imports(&[lib, a, deep, b, c, below[0], below[1]]).circles();
        assert_eq!(found, [("b".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    }
}
