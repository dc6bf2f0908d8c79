//! Network namespaces: private networks, in which a program without privileges can create
//! interfaces and addresses.

mod enter;
mod error;
mod isolated_test;
mod isolation;
mod network;

pub use enter::{enter, enter_private_network, join, probe, spawn};
pub use error::NamespaceError;
pub use isolated_test::{isolated_test, isolated_test_of_root, skip_test};
pub use isolation::Isolation;
pub use network::Network;

#[cfg(test)]
mod tests;
