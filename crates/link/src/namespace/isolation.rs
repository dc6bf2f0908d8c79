//! The kinds of isolation of a process.

/// The namespaces of its own that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A user and a network namespace. Needs no privilege if the machine allows it. Inside, the
    /// process is root, but only of the new network.
    UserAndNetwork,
    /// A network namespace only. Needs the privileges of root, which a user namespace grants as
    /// well.
    Network,
}
