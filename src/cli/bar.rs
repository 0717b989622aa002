//! A progress bar, if standard error is a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::cli::host;

/// A bar of this length, with the remaining time from `left`.
pub(super) fn with_estimate(
    what: &str,
    count: u64,
    left: impl Fn() -> Option<String> + Clone + Send + Sync + 'static,
) -> ProgressBar {
    if !host::is_watched() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(count);
    // The template is a constant but for the word; if it were wrong, the plain bar would do.
    let template = format!("{{bar:40}} {{pos}}/{{len}} {what}{{left}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.with_key("left", move |_: &ProgressState, out: &mut dyn Write| {
            if let Some(left) = left() {
                // Nobody is told if a bar cannot be drawn.
                let _ = write!(out, ", {left}");
            }
        }));
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    bar
}
