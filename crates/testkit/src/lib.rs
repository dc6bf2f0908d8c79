//! What the tests of several crates share: two connections, or two hosts, and what lies between
//! them, in virtual time. Only ever a dev-dependency.

#![forbid(unsafe_code)]

mod connections;
pub mod explore;
pub mod fuzz;
pub mod hostile;
pub mod loss_grid;
mod network;
mod pair;
mod script;
pub mod siege;
mod test_link;
pub mod transfer;
mod way;
mod wire;

pub use connections::{Connections, End};
pub use network::{Fate, Line, Narrow, Network};
pub use pair::{Pair, Setup, Side};
pub use script::{Notation, Script, Sent, pattern};
pub use test_link::TestLink;
pub use transfer::Transfer;
pub use way::Way;
pub use wire::{Arrival, Wire};
