//! What is carried: bytes that tell where they belong.

pub(crate) mod chargen;
mod pattern;

pub use pattern::Pattern;
