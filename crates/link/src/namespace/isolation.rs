//! The namespaces that a process leaves.

/// The namespaces that a process leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The network and the user namespace. Needs no privilege if the machine allows it. Inside, the
    /// process is root of the new network only.
    UserAndNetwork,
    /// Only the network namespace. Needs the privileges of root, at least those inside of a user
    /// namespace.
    Network,
}
