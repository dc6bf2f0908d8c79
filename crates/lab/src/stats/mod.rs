//! What a handful of measurements says, and how sure it is.

mod bootstrap;
mod sample;

pub use bootstrap::{Interval, RESAMPLES, interval};
pub use sample::Sample;
