//! Reports of a sweep as text, HTML, SVG, CSV and JSON, and of a comparison of two sweeps.
//!
//! A report depends only on the recorded evidence, and not on the engine that made the runs.
//! Reports on all engines therefore have one form.

#![forbid(unsafe_code)]

mod cells;
mod comparison;
mod csv;
mod diagonal;
mod fast_path;
mod heading;
mod heat_map;
mod html;
mod json;
mod live;
mod model;
mod paint;
mod picture;
mod prometheus;
mod report;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod tests;
mod text;
mod unit;
mod xml;

pub use comparison::{ComparisonReport, Incomparable, Side};
pub use live::LiveMap;
pub use paint::Style;
pub use prometheus::{MetricKind, Metrics};
pub use report::Report;
