//! Test support for several crates. Its main parts run two connections or two hosts, with the
//! network between them, in virtual time. Other crates use it only as a dev-dependency.

#![forbid(unsafe_code)]

mod access;
mod arrival;
pub mod attack;
mod connections;
pub mod explore;
mod forger;
pub mod fuzz;
pub mod hostile;
pub mod loss_grid;
mod network;
mod pair;
mod script;
mod test_link;
pub mod transfer;
pub mod tshark;
mod wire;

pub use access::Access;
pub use connections::{Connections, End};
pub use network::{Fate, Line, Narrow, Network};
pub use pair::{Pair, Setup, Side, ipv4_end};
pub use script::{Notation, Script, Sent, pattern};
pub use test_link::TestLink;
pub use transfer::Transfer;
pub use wire::{Arrival, Wire};
