//! What tests of several crates need. It is only ever a dev-dependency.

#![forbid(unsafe_code)]

mod pair;
mod test_link;
mod wire;

pub use pair::{Pair, Setup, Side};
pub use test_link::TestLink;
pub use wire::{Impairment, Wire};
