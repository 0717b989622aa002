//! What a test needs of the machine. It is written above the test:
//!
//! ```ignore
//! #[needs(root, chromium)]
//! #[test]
//! fn somebody_looks_at_the_page() {}
//! ```
//!
//! Where something of that is missing, the test harness says `ignored, needs Chromium, in the path or in BUSBAR_CHROMIUM`, and
//! counts the test as ignored. A test harness has to know that before it runs a test, so the build script of this crate looks
//! at the machine, and again when the environment or the folders of programs have changed. A test does not look again: where
//! what it needs has gone meanwhile, it fails.

use proc_macro::{Delimiter, TokenStream, TokenTree};

mod table;

use table::NEEDS;

/// The names of what is missing here.
const LACKING: &str = env!("BUSBAR_NEEDS_LACKING");

/// Makes a test ignored where something of what it needs is missing.
#[proc_macro_attribute]
pub fn needs(names: TokenStream, test: TokenStream) -> TokenStream {
    let mut missing = Vec::new();
    for token in names {
        let name = match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => continue,
            other => other.to_string(),
        };
        let Some((name, what)) = NEEDS.iter().find(|(known, _)| *known == name) else {
            return mistake(&format!(
                "nobody knows how to look for '{name}'; see crates/needs/src/table.rs"
            ));
        };
        if LACKING.split(' ').any(|lacking| lacking == *name) {
            missing.push(*what);
        }
    }
    if !has_test(&test) {
        return mistake("'#[needs(...)]' belongs above '#[test]'");
    }
    if missing.is_empty() {
        return test;
    }
    let reason = format!("needs {}", missing.join("; and "));
    let mut ignored: TokenStream = format!("#[ignore = {reason:?}]").parse().expect("an attribute");
    ignored.extend(test);
    ignored
}

/// Whether an item has the attribute `#[test]`.
fn has_test(item: &TokenStream) -> bool {
    item.clone().into_iter().any(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            group.stream().to_string() == "test"
        }
        _ => false,
    })
}

fn mistake(message: &str) -> TokenStream {
    format!("compile_error!({message:?});").parse().expect("a macro")
}
