//! A picture in SVG, shape by shape.

use std::fmt::Write;

use crate::report::markup::escaped;

/// Which end of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn. Places are in pixels from the top left, and written to a tenth of one.
pub(super) struct Svg {
    width: f64,
    height: f64,
    shapes: String,
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Svg { width, height, shapes: String::new() }
    }

    // Writing to a string does not fail, so nothing below looks at what comes of it.

    pub(super) fn rectangle(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        fill: &str,
    ) {
        let _ = writeln!(
            self.shapes,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        );
    }

    /// A line through points; `style` is further attributes.
    pub(super) fn line(&mut self, points: &[(f64, f64)], colour: &str, style: &str) {
        let points = written(points);
        let _ = writeln!(
            self.shapes,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" {style}/>"
        );
    }

    pub(super) fn area(&mut self, points: &[(f64, f64)], fill: &str, opacity: f64) {
        let points = written(points);
        let _ = writeln!(
            self.shapes,
            "<polygon points=\"{points}\" fill=\"{fill}\" fill-opacity=\"{opacity}\"/>"
        );
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        let _ = writeln!(
            self.shapes,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        );
    }

    /// A text that is read from the bottom up.
    pub(super) fn upright(&mut self, (x, y): (f64, f64), text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.shapes,
            "<text transform=\"translate({x:.1} {y:.1}) rotate(-90)\" text-anchor=\"middle\" \
             class=\"soft\">{text}</text>"
        );
    }

    /// The file.
    pub(super) fn finish(self, title: &str) -> String {
        let Svg { width, height, shapes } = self;
        let title = escaped(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{title}</title>\n\
             <style>text {{ font: 12px system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif; \
             fill: #17202a }} .soft {{ fill: #55616e }} .light {{ fill: #ffffff }} .title {{ font-size: 15px; \
             font-weight: 600 }}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{shapes}</svg>\n"
        )
    }
}

fn written(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(12 * points.len());
    for (x, y) in points {
        let _ = write!(text, "{x:.1},{y:.1} ");
    }
    text.truncate(text.trim_end().len());
    text
}
