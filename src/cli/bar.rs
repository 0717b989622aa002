//! A bar that shows how far a long answer is, if a person is watching.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over so many things.
pub(super) fn of(what: &str, count: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(count);
    // The template is a constant but for the word; if it were wrong, the plain bar would do.
    let template = format!("{{bar:40}} {{pos}}/{{len}} {what}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}
