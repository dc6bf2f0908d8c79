//! What is carried: bytes that tell where they belong.

mod bulk;

pub use bulk::Pattern;
