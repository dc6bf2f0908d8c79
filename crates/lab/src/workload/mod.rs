//! What is carried: bytes that tell where they belong.

mod bulk;
pub(crate) mod chargen;

pub use bulk::Pattern;
