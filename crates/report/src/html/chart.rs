//! Charts as inline SVG: scales, axes, and the marks of series.
//!
//! Colours are classes of the page's style sheet, so a chart follows the light or dark colour
//! scheme of the page.

use crate::xml::escaped;
use linerate_evidence::stats::as_f64;
use std::fmt::Write;

/// Left margin of the plot area of a chart, in units of the view box.
const LEFT: f64 = 70.0;
/// Right margin of the plot area, in units of the view box.
const RIGHT: f64 = 42.0;
/// Top margin of the plot area, in units of the view box.
const TOP: f64 = 14.0;
/// Bottom margin of the plot area, in units of the view box.
const BOTTOM: f64 = 52.0;
/// Approximate width of a character in an axis label, in units of the view box.
const CHARACTER: f64 = 7.2;

/// Size of a chart, in units of the view box.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    width: f64,
    height: f64,
}

/// Size of a chart that occupies a whole row.
pub(crate) const LARGE: Size = Size { width: 720.0, height: 320.0 };
/// Size of a chart that has other charts beside it.
pub(crate) const SMALL: Size = Size { width: 480.0, height: 200.0 };

/// A chart: its scales, and the elements drawn so far.
#[derive(Debug)]
pub(crate) struct Chart {
    size: Size,
    /// Right edge of the plot area, in units of the view box.
    right: f64,
    /// Bottom edge of the plot area, in units of the view box.
    bottom: f64,
    x: Scale,
    y: Scale,
    /// The SVG elements that have been drawn.
    body: String,
}

/// A linear scale from values to positions in the view box.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Smallest value that the scale shows.
    low: f64,
    /// Largest value that the scale shows.
    high: f64,
    /// Position of the smallest value, in units of the view box.
    start: f64,
    /// Position of the largest value, in units of the view box.
    end: f64,
}

impl Scale {
    fn new([low, high]: [f64; 2], start: f64, end: f64) -> Self {
        // If the smallest and the largest value are equal, the scale is extended. Otherwise
        // `Scale::place` would divide by zero.
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, start, end }
    }

    /// Returns the position of a value. Values outside the scale are placed at its nearest edge.
    fn place(self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.start + share * (self.end - self.start)
    }
}

impl Chart {
    /// Creates an empty chart. `x` and `y` are the smallest and the largest value of each axis.
    pub(crate) fn new(size: Size, x: [f64; 2], y: [f64; 2]) -> Self {
        let (right, bottom) = (size.width - RIGHT, size.height - BOTTOM);
        let (x, y) = (Scale::new(x, LEFT, right), Scale::new(y, bottom, TOP));
        Self { size, right, bottom, x, y, body: String::new() }
    }

    /// Returns the maximum number of intervals between the labels of the y axis, which depends on
    /// the height of the chart.
    fn most_ticks(&self) -> u32 {
        if self.size.height > 250.0 { 6 } else { 4 }
    }

    /// Draws the y axis with labels and grid lines at round values. `label` formats a value.
    pub(crate) fn y_axis(&mut self, title: &str, label: impl Fn(f64) -> String) {
        for value in ticks(self.y.low, self.y.high, self.most_ticks()) {
            let (y, end) = (self.y.place(value), self.right);
            self.draw(format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
            ));
            self.text(LEFT - 8.0, y + 4.0, "end", &label(value));
        }
        let middle = f64::midpoint(TOP, self.bottom);
        self.draw(format_args!(
            "<text class=\"title\" text-anchor=\"middle\" transform=\"translate(14 {middle}) \
             rotate(-90)\">{}</text>",
            escaped(title)
        ));
    }

    /// Draws the x axis with labels at round values. `label` formats a value.
    pub(crate) fn x_axis(&mut self, title: &str, label: impl Fn(f64) -> String) {
        for value in ticks(self.x.low, self.x.high, 8) {
            self.x_label(value, &label(value));
        }
        self.x_title(title);
    }

    /// Draws the x axis with names for the positions 0, 1, 2, …. Names that would touch their left
    /// neighbour are left out.
    pub(crate) fn x_names(&mut self, title: &str, names: &[String]) {
        let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(1);
        let wide = CHARACTER * as_f64(widest as u64);
        let mut end = f64::MIN;
        for (name, index) in names.iter().zip(0_u32..) {
            let place = self.x.place(f64::from(index));
            if place - wide / 2.0 > end {
                self.x_label(f64::from(index), name);
                end = place + wide / 2.0 + CHARACTER;
            }
        }
        self.x_title(title);
    }

    /// Draws a mark and a label at a value of the x axis.
    fn x_label(&mut self, value: f64, label: &str) {
        let (x, bottom) = (self.x.place(value), self.bottom);
        self.draw(format_args!(
            "<line class=\"axis\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom}\" y2=\"{}\"/>",
            bottom + 5.0
        ));
        self.text(x, bottom + 19.0, "middle", label);
    }

    /// Draws the line of the x axis, and the title below it.
    fn x_title(&mut self, title: &str) {
        let (bottom, end) = (self.bottom, self.right);
        self.draw(format_args!(
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{bottom}\" y2=\"{bottom}\"/>"
        ));
        self.draw(format_args!(
            "<text class=\"title\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>",
            f64::midpoint(LEFT, end),
            self.size.height - 10.0,
            escaped(title)
        ));
    }

    /// Draws a series of points: a line with a mark at each point, and an area between the lower
    /// and the upper bounds of their intervals.
    pub(crate) fn curve(&mut self, class: &str, points: &[Point]) {
        let place = |x: f64, y: f64| format!("{:.1} {:.1}", self.x.place(x), self.y.place(y));
        let upper = points.iter().map(|point| place(point.x, point.high));
        let lower = points.iter().rev().map(|point| place(point.x, point.low));
        let area = upper.chain(lower).collect::<Vec<_>>().join("L");
        let line = points.iter().map(|point| place(point.x, point.y)).collect::<Vec<_>>().join("L");
        self.draw(format_args!(
            "<g class=\"{class}\"><path class=\"area\" d=\"M{area}Z\"/><path class=\"line\" \
             d=\"M{line}\"/>"
        ));
        for point in points {
            let (x, y) = (self.x.place(point.x), self.y.place(point.y));
            self.draw(format_args!(
                "<circle class=\"mark\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{}</title>\
                 </circle>",
                escaped(&point.told)
            ));
        }
        self.draw(format_args!("</g>"));
    }

    /// Draws many small marks at `points` as a single path element.
    pub(crate) fn dots(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut path = String::new();
        for (x, y) in points {
            // Writing to a string cannot fail.
            let _ = write!(path, "M{:.1} {:.1}h0", self.x.place(x), self.y.place(y));
        }
        self.draw(format_args!("<path class=\"dots {class}\" d=\"{path}\"/>"));
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        self.draw(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    fn draw(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.body.write_fmt(element);
    }

    /// Returns the chart as an SVG image with alternative text. Readers can scroll the image on a
    /// narrow page.
    pub(crate) fn image(self, title: &str) -> String {
        let title = escaped(title);
        let Size { width, height } = self.size;
        format!(
            "<div class=\"wide\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\"><svg \
             class=\"chart\" role=\"img\" aria-label=\"{title}\" viewBox=\"0 0 {width} \
             {height}\">{}</svg></div>\n",
            self.body
        )
    }
}

/// A point of a series, with the bounds of its interval on the y axis.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Description of the point, which browsers show beside the pointer.
    pub(crate) told: String,
}

/// Returns at most `most` + 1 round values between `low` and `high`: multiples of 1, 2 or 5 times a
/// power of ten.
fn ticks(low: f64, high: f64, most: u32) -> Vec<f64> {
    let rough = (high - low) / f64::from(most);
    if !(rough.is_finite() && rough > 0.0) {
        return vec![low];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil();
    let values = (0..=most).map(|index| (first + f64::from(index)) * step);
    values.take_while(|value| *value <= high + step * 1e-9).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(ticks(0.0, 10.0, 6), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.0, 4_373.0, 6), [0.0, 1_000.0, 2_000.0, 3_000.0, 4_000.0]);
        assert_eq!(ticks(3.0, 3.0, 6), [3.0]);
        assert!(ticks(0.0, 1.7e308, 6).len() <= 7);
        assert_eq!(ticks(0.0, f64::INFINITY, 6), [0.0]);
    }

    #[test]
    fn names_that_would_touch_are_left_out() {
        let names: Vec<String> = (1..=64).map(|size| format!("{} KiB", size * 1_024)).collect();
        let mut chart = Chart::new(LARGE, [0.0, 63.0], [0.0, 1.0]);
        chart.x_names("receive buffer", &names);
        let shown = names.iter().filter(|name| chart.body.contains(&format!(">{name}<"))).count();
        assert!((5..=12).contains(&shown), "{shown}");
    }
}
