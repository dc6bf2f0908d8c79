//! The data of transfers, which depends on the position.

pub(crate) mod chargen;
mod pattern;

pub use pattern::Pattern;
