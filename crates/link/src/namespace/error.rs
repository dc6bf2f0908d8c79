//! The errors of entering a namespace.

use super::isolation::Isolation;
use crate::kernel_interface::InterfaceError;
use crate::sys::unshare::Step;
use rustix::io::Errno;
use std::fs;
use std::io;
use thiserror::Error;

/// The reason why a network namespace cannot be entered.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The process has several threads, so it cannot enter a user namespace.
    #[error(
        "a process with several threads cannot enter a user namespace: enter it before the first \
         thread starts, or start a child in it"
    )]
    Threads,
    /// The kernel, or the confinement of this process, forbids unprivileged user namespaces.
    #[error("this machine forbids unprivileged namespaces (error {errno}): {remedy}")]
    Forbidden {
        /// The error number of the system.
        errno: i32,
        /// The setting of the machine that is to be changed.
        remedy: &'static str,
    },
    /// The process lacks the privilege to create a network namespace without a user namespace.
    #[error(
        "a new network namespace needs root (error {errno}): run as root, or enter a user \
         namespace, too"
    )]
    Privilege {
        /// The error number of the system.
        errno: i32,
    },
    /// The machine already has the maximum number of namespaces.
    #[error(
        "this machine has as many namespaces as it allows: raise \
         /proc/sys/user/max_user_namespaces and /proc/sys/user/max_net_namespaces"
    )]
    TooMany,
    /// The network namespace of a process cannot be joined.
    #[error(
        "the network of process {process} cannot be joined ({source}): it must run, and belong to \
         this user"
    )]
    Join {
        /// The ID of the process.
        process: u32,
        /// The error of the system.
        source: io::Error,
    },
    /// The loopback interface of the new network cannot be configured.
    #[error("the new network cannot be used: {0}")]
    Interface(#[from] InterfaceError),
    /// The program cannot be started.
    #[error("the program could not be started: {0}")]
    Program(#[source] io::Error),
}

impl NamespaceError {
    pub(super) fn of(isolation: Isolation, step: Step, errno: Errno) -> Self {
        let number = errno.raw_os_error();
        match (step, errno) {
            (_, Errno::NOSPC | Errno::USERS) => Self::TooMany,
            (Step::Unshare, Errno::INVAL) => Self::Forbidden {
                errno: number,
                remedy: "its kernel was built without user or network namespaces \
                         (CONFIG_USER_NS, CONFIG_NET_NS)",
            },
            _ if isolation == Isolation::Network => Self::Privilege { errno: number },
            _ => Self::Forbidden { errno: number, remedy: remedy() },
        }
    }
}

/// Returns a remedy for the setting of this machine that forbids unprivileged namespaces. If no
/// such setting is found, the remedy is general advice.
fn remedy() -> &'static str {
    let is = |path, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "run as root, or `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "run as root, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "run as root, or `sysctl user.max_user_namespaces=1000`"
    } else {
        "run as root, and in a container with --privileged, or with --cap-add SYS_ADMIN and an \
         unconfined seccomp profile"
    }
}
