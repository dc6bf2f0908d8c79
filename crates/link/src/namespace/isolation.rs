//! The kinds of isolation of a process.

/// The new namespaces that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A user and a network namespace. Requires no privilege, if the machine permits unprivileged
    /// user namespaces. Inside, the process is root, but only of the new network.
    UserAndNetwork,
    /// A network namespace only. Requires the privileges of root, either of the machine or of the
    /// process's user namespace.
    Network,
}
