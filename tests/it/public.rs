//! What `busbar-core` promises to other programs: its public items, compared with a committed list.
//!
//! The list is made of the sources. That is honest because the lint `unreachable_pub` is on: what is marked `pub`
//! can be reached from outside. A module that is hidden in the documentation is for Busbar's own crates, and
//! promises nothing. What a derive or a macro makes is not in the list.
//! `cargo public-api` would tell the same, and needs a nightly toolchain.
//!
//! After a change that is meant, `BUSBAR_BLESS=1 cargo test --test it public` writes the list anew. The
//! difference belongs into the same commit, and a removal into the changelog.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const LIST: &str = "crates/core/public-api.txt";

#[test]
fn the_public_interface_is_the_one_that_was_agreed_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut items = Vec::new();
    module(
        &root.join("crates/core/src/lib.rs"),
        &root.join("crates/core/src"),
        "busbar_core",
        &mut items,
    );
    let is_promised = promised(&items);
    items.retain(|item| is_promised(item));
    items.sort();
    items.dedup();
    let found = items.join("\n") + "\n";
    let file = root.join(LIST);
    if std::env::var_os("BUSBAR_BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let agreed = fs::read_to_string(&file).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (new, old) = (lines(&found), lines(&agreed));
    let gone: Vec<_> = old.iter().filter(|line| new.binary_search(line).is_err()).collect();
    let come: Vec<_> = new.iter().filter(|line| old.binary_search(line).is_err()).collect();
    assert!(
        gone.is_empty() && come.is_empty(),
        "the public interface of busbar-core is not that of {LIST}\n  gone: {gone:#?}\n  new: {come:#?}\nif that is \
         meant: BUSBAR_BLESS=1 cargo test --test it public"
    );
}

/// Whether an item is part of the promise: what traits do for types that nobody can name is not.
fn promised(items: &[String]) -> impl Fn(&str) -> bool + use<> {
    let name = |text: &str| {
        let text = text.trim_start_matches(['&', '\'']);
        text.split(|sign: char| !sign.is_alphanumeric() && sign != '_')
            .next()
            .unwrap_or("")
            .to_owned()
    };
    let types: BTreeSet<String> = items
        .iter()
        .filter_map(|item| item.split_once(": "))
        .filter_map(|(_, item)| {
            ["struct ", "enum ", "type "].iter().find_map(|kind| item.strip_prefix(kind))
        })
        .map(name)
        .collect();
    move |item| match item.split_once(": impl").and_then(|(_, rest)| rest.rsplit_once(" for ")) {
        Some((_, target)) => types.contains(&name(target)),
        None => true,
    }
}

/// A change of any kind that another program could notice is a line of the list.
#[test]
fn public_items_are_found() {
    let source = r#"
        //! Text { with braces }
        use inner::Hidden;
        pub use inner::{One,
            Two};
        #[doc(hidden)]
        pub fn not_promised() {}
        /// Comment.
        #[derive(Clone)]
        pub struct Pair<T: Copy>(pub T, u32);
        pub struct Named { pub a: u32, b: Vec<(u8, u8)>, /// x
            pub c: [u8; 2] }
        impl<T: Copy> Pair<T> {
            pub const LIMIT: u32 = 3;
            pub fn first(&self, why: &'static str) -> T where T: Ord { let x = "}"; let y = '{'; x }
            pub(crate) fn hidden(&self) {}
            fn private(&self) {}
        }
        pub enum Either { A, B(u32), C { x: u32 } }
        pub trait Rule: Send { const N: u32; fn must(&self) -> u32; fn may(&self) -> u32 { 4 } }
        pub const fn known() -> u32 { 3 }
        impl std::fmt::Display for Named { fn fmt(&self) {} }
        #[cfg(test)]
        mod tests { pub fn nothing() {} }
    "#;
    let mut items = Vec::new();
    in_source(source, "m", &mut items, &mut |_| ());
    items.sort();
    let expected = [
        "m: const LIMIT: u32 (Pair<T>)",
        "m: const fn known() -> u32",
        "m: enum Either",
        "m: enum Either, A",
        "m: enum Either, B(u32)",
        "m: enum Either, C { x: u32 }",
        "m: fn first(&self, why: &'static str) -> T where T: Ord (Pair<T>)",
        "m: impl std::fmt::Display for Named",
        "m: struct Named, a: u32",
        "m: struct Named, c: [u8; 2]",
        "m: struct Named, private fields",
        "m: struct Pair<T: Copy>(pub T, _)",
        "m: trait Rule: Send",
        "m: trait Rule: Send, const N: u32",
        "m: trait Rule: Send, fn may(&self) -> u32 (has a default)",
        "m: trait Rule: Send, fn must(&self) -> u32",
        "m: use inner::{One, Two}",
    ];
    assert_eq!(items, expected);
}

/// The items of a module's file and of the public modules below it.
fn module(file: &Path, folder: &Path, path: &str, items: &mut Vec<String>) {
    let source = fs::read_to_string(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
    let mut below: Vec<String> = Vec::new();
    in_source(&source, path, items, &mut |name| below.push(name.to_owned()));
    for name in below {
        let inside: PathBuf = folder.join(&name);
        let file = folder.join(format!("{name}.rs"));
        module(&file, &inside, &format!("{path}::{name}"), items);
    }
}

/// The items of a source; `below` hears of modules in files of their own, be they public or not: what is public in a
/// private one is used elsewhere by its name.
fn in_source(source: &str, path: &str, items: &mut Vec<String>, below: &mut dyn FnMut(&str)) {
    let plain = without_comments(source);
    for item in parts(&plain, &[';', '}']) {
        let (attributes, text) = attributes(&item);
        let is_hidden =
            attributes.iter().any(|a| a.contains("cfg(test)") || a.contains("doc(hidden)"));
        if is_hidden {
            continue;
        }
        let (head, body) = head_and_body(text);
        let head = squeezed(head);
        let modules = ["pub mod ", "pub(crate) mod ", "pub(super) mod ", "mod "];
        if let Some(name) = modules.iter().find_map(|module| head.strip_prefix(module)) {
            match body {
                Some(body) => in_source(body, &format!("{path}::{name}"), items, below),
                None => below(name.trim_end_matches(';').trim()),
            }
            continue;
        }
        if let Some(rest) = head.strip_prefix("impl") {
            implementation(rest, body.unwrap_or_default(), path, items);
            continue;
        }
        let Some(head) = head.strip_prefix("pub ") else { continue };
        let head = declaration(head);
        match head.split_once([' ', '<']).map(|(kind, _)| kind) {
            Some("use") => items.push(format!(
                "{path}: {}",
                squeezed(text).trim_start_matches("pub ").trim_end_matches(';')
            )),
            Some("struct") => structure(&head, body, path, items),
            Some("enum") => {
                items.push(format!("{path}: {head}"));
                for variant in parts(body.unwrap_or_default(), &[',']) {
                    let variant = squeezed(crate::public::attributes(&variant).1);
                    let variant = variant.trim_end_matches(',').trim();
                    if !variant.is_empty() {
                        items.push(format!("{path}: {head}, {variant}"));
                    }
                }
            }
            Some("trait") => {
                items.push(format!("{path}: {head}"));
                for item in parts(body.unwrap_or_default(), &[';', '}']) {
                    let text = crate::public::attributes(&item).1;
                    let (inner, body) = head_and_body(text);
                    let inner = declaration(&squeezed(inner));
                    let default = if body.is_some() { " (has a default)" } else { "" };
                    if !inner.is_empty() {
                        items.push(format!("{path}: {head}, {inner}{default}"));
                    }
                }
            }
            _ => items.push(format!("{path}: {head}")),
        }
    }
}

/// A structure with its public fields. Whether it has private ones matters, too: without, it can be made outside.
fn structure(head: &str, body: Option<&str>, path: &str, items: &mut Vec<String>) {
    let Some(body) = body else {
        // A tuple, or nothing at all.
        let fields = head.find('(').map(|open| (&head[..open], &head[open + 1..]));
        let Some((name, fields)) = fields else { return items.push(format!("{path}: {head}")) };
        let fields = fields.trim_end_matches(')');
        let shown = parts(fields, &[',']).into_iter().map(|field| {
            let field = squeezed(attributes(&field).1);
            let field = field.trim_end_matches(',').trim().to_owned();
            if field.starts_with("pub ") { field } else { "_".to_owned() }
        });
        return items.push(format!("{path}: {name}({})", shown.collect::<Vec<_>>().join(", ")));
    };
    let mut has_private = false;
    for field in parts(body, &[',']) {
        let field = squeezed(attributes(&field).1);
        let field = field.trim_end_matches(',').trim();
        match field.strip_prefix("pub ") {
            Some(field) => items.push(format!("{path}: {head}, {field}")),
            None => has_private |= !field.is_empty(),
        }
    }
    if has_private {
        items.push(format!("{path}: {head}, private fields"));
    }
}

/// The public items of an implementation; one of a trait is an item by itself.
fn implementation(head: &str, body: &str, path: &str, items: &mut Vec<String>) {
    let (generics, head) = match head.starts_with('<') {
        true => head.split_at(closing(head)),
        false => ("", head),
    };
    let head = head.trim();
    if head.contains(" for ") {
        items.push(format!("{path}: impl{generics} {head}"));
        return;
    }
    for item in parts(body, &[';', '}']) {
        let (attributes, text) = attributes(&item);
        let (inner, _) = head_and_body(text);
        let inner = squeezed(inner);
        let is_hidden =
            attributes.iter().any(|a| a.contains("cfg(test)") || a.contains("doc(hidden)"));
        if let Some(inner) = inner.strip_prefix("pub ").filter(|_| !is_hidden) {
            items.push(format!("{path}: {} ({head})", declaration(inner)));
        }
    }
}

/// A declaration without what it is set to: the value of a constant may change.
fn declaration(head: &str) -> String {
    let head = head.trim_end_matches(';').trim();
    let is_value =
        head.starts_with("const ") && !head.starts_with("const fn") || head.starts_with("static ");
    match head.split_once(" = ").filter(|_| is_value) {
        Some((before, _)) => before.to_owned(),
        None => head.to_owned(),
    }
}

/// Where the first angle bracket is closed.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    let mut before = ' ';
    for (at, sign) in text.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' if before != '-' && before != '=' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return at + 1;
        }
        before = sign;
    }
    text.len()
}

/// The leading attributes of an item, and the rest.
fn attributes(item: &str) -> (Vec<&str>, &str) {
    let (mut rest, mut attributes) = (item.trim_start(), Vec::new());
    while rest.starts_with('#') {
        let mut depth = 0;
        let end = rest.char_indices().find_map(|(at, sign)| {
            depth += i32::from(sign == '[') - i32::from(sign == ']');
            (sign == ']' && depth == 0).then_some(at + 1)
        });
        let (attribute, after) = rest.split_at(end.unwrap_or(rest.len()));
        attributes.push(attribute);
        rest = after.trim_start();
    }
    (attributes, rest)
}

/// What stands before the block of an item, and the inside of the block. The braces of a list of names are no block.
fn head_and_body(item: &str) -> (&str, Option<&str>) {
    let is_list = item.trim_start().starts_with("pub use") || item.trim_start().starts_with("use");
    match item.find('{').filter(|_| !is_list && item.trim_end().ends_with('}')) {
        Some(open) => {
            let close = item.rfind('}').unwrap_or(item.len());
            (&item[..open], Some(&item[open + 1..close]))
        }
        None => (item, None),
    }
}

/// The parts of a text that end with one of these signs outside of all brackets. A `}` ends a part only if it closes
/// the last bracket.
fn parts(text: &str, ends: &[char]) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0i32);
    let mut angle = 0i32;
    let mut before = ' ';
    for sign in text.chars() {
        part.push(sign);
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '<' => angle += 1,
            '>' if before != '-' && before != '=' => angle = (angle - 1).max(0),
            _ => (),
        }
        before = sign;
        let is_list = || {
            let part = part.trim_start();
            part.starts_with("pub use") || part.starts_with("use")
        };
        let is_end = ends.contains(&sign)
            && depth == 0
            && (sign != ',' || angle == 0)
            && !(sign == '}' && is_list());
        if is_end {
            parts.push(std::mem::take(&mut part));
            angle = 0;
        }
    }
    if !part.trim().is_empty() {
        parts.push(part);
    }
    parts
}

/// One line with single blanks.
fn squeezed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let tidy = [
        ("( ", "("),
        (" )", ")"),
        (",)", ")"),
        (", }", " }"),
        ("{ ", "{ "),
        (",>", ">"),
        (" ;", ";"),
    ];
    let line = tidy.iter().fold(line, |line, (from, to)| line.replace(from, to));
    match line.starts_with("pub use") || line.starts_with("use") {
        true => line.replace("{ ", "{").replace(" }", "}").replace(",}", "}"),
        false => line,
    }
}

/// The source with neither comments nor what strings and characters contain.
fn without_comments(source: &str) -> String {
    let signs: Vec<char> = source.chars().collect();
    let at = |place: usize| signs.get(place).copied().unwrap_or('\0');
    let (mut plain, mut place) = (String::new(), 0);
    while place < signs.len() {
        match (at(place), at(place + 1)) {
            ('/', '/') => {
                while place < signs.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            ('/', '*') => {
                place += 2;
                while place < signs.len() && (at(place), at(place + 1)) != ('*', '/') {
                    place += 1;
                }
                place += 2;
            }
            ('r', '#' | '"')
                if !at(place.wrapping_sub(1)).is_alphanumeric() && is_raw(&signs[place..]) =>
            {
                let hashes = signs[place + 1..].iter().take_while(|sign| **sign == '#').count();
                place += 2 + hashes;
                let closes = |place: usize| {
                    at(place) == '"' && (1..=hashes).all(|next| at(place + next) == '#')
                };
                while place < signs.len() && !closes(place) {
                    place += 1;
                }
                place += 1 + hashes;
                plain.push_str("\"\"");
            }
            ('"', _) => {
                place += 1;
                while place < signs.len() && at(place) != '"' {
                    place += if at(place) == '\\' { 2 } else { 1 };
                }
                place += 1;
                plain.push_str("\"\"");
            }
            ('\'', '\\') => {
                place += 3;
                while place < signs.len() && at(place) != '\'' {
                    place += 1;
                }
                place += 1;
                plain.push_str("' '");
            }
            ('\'', _) if at(place + 2) == '\'' => {
                place += 3;
                plain.push_str("' '");
            }
            (sign, _) => {
                plain.push(sign);
                place += 1;
            }
        }
    }
    plain
}

fn is_raw(signs: &[char]) -> bool {
    signs[1..].iter().find(|sign| **sign != '#') == Some(&'"')
}
