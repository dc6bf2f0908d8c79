//! The data of transfers, in which each byte depends on its position.

pub(crate) mod chargen;
mod pattern;

pub use pattern::Pattern;
