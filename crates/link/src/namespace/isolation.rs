//! The kinds of isolation of a process.

/// The new namespaces that a process gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A new user namespace and a new network namespace. Requires no privilege if the machine
    /// permits unprivileged user namespaces. In them, the process has root's rights over the new
    /// network only, and not over the machine.
    UserAndNetwork,
    /// A new network namespace only. Requires the privileges of root, either of the machine or of
    /// the user namespace in which the process is.
    Network,
}
