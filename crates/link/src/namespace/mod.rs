//! Network namespaces of one's own: a network that nobody else sees, where interfaces and addresses
//! may be had for the asking.

mod isolated_test;
mod network;

pub use isolated_test::{isolated_test, isolated_test_of_root, skip_test};
pub use network::Network;

use crate::kernel_interface::{InterfaceError, KernelInterface};
use crate::sys::unshare::{Step, Way};
use rustix::io::{Errno, ioctl_fionbio};
use std::fs;
use std::io::{self, Read};
use std::process::{Child, Command};
use thiserror::Error;

/// What is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// The network and the user. Needs no privilege where the machine allows it; inside, one is root
    /// over the new network and nothing else.
    UserAndNetwork,
    /// The network only. Needs the privileges of root, those inside of a user namespace included.
    Network,
}

/// Moves the calling thread, and all threads and processes that it starts from now on, into a new
/// network, where only a loopback interface exists, and is down. There is no way back.
///
/// With [`Isolation::UserAndNetwork`] the process must not have any other thread: call it first thing
/// in `main`.
///
/// # Errors
/// [`NamespaceError`], which says what the machine forbids and what to do.
pub fn enter(isolation: Isolation) -> Result<(), NamespaceError> {
    let user = isolation == Isolation::UserAndNetwork;
    if user && fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(NamespaceError::Threads);
    }
    Way::new(user).walk().map_err(|(step, errno)| NamespaceError::of(isolation, step, errno))
}

/// [`enter`]s a new network, whichever way this process may, and brings its loopback interface up.
///
/// # Errors
/// As for [`enter`].
pub fn enter_private_network() -> Result<(), NamespaceError> {
    if enter(Isolation::Network).is_err() {
        enter(Isolation::UserAndNetwork)?;
    }
    Ok(KernelInterface::loopback()?.set_up()?)
}

/// Starts `command` in a new network, as [`enter`] describes it. This process stays where it is, and may
/// have as many threads as it likes.
///
/// # Errors
/// [`NamespaceError`], which says what the machine forbids and what to do, or that the program itself
/// cannot be started.
pub fn spawn(command: Command, isolation: Isolation) -> Result<Child, NamespaceError> {
    start(command, isolation, false).map_err(|stopped| stopped.explain(isolation))
}

/// Whether a process started by this one could enter a new network, found out by doing so.
///
/// # Errors
/// [`NamespaceError`], which says what the machine forbids and what to do.
pub fn probe(isolation: Isolation) -> Result<(), NamespaceError> {
    match start(Command::new("/"), isolation, true) {
        Err(Stopped { step: Some(Step::Arrived), .. }) | Ok(_) => Ok(()),
        Err(stopped) => Err(stopped.explain(isolation)),
    }
}

fn start(mut command: Command, isolation: Isolation, turn_back: bool) -> Result<Child, Stopped> {
    let (mut report, reporter) = io::pipe().map_err(|error| Stopped { step: None, error })?;
    Way::new(isolation == Isolation::UserAndNetwork).precede(&mut command, reporter, turn_back);
    command.spawn().map_err(|error| {
        // The other end of the pipe lives as long as the command: an empty pipe must not be waited for.
        let mut step = [0];
        let reported = ioctl_fionbio(&report, true).is_ok() && report.read(&mut step).is_ok();
        Stopped { step: if reported { Step::of(step[0]) } else { None }, error }
    })
}

/// How far a child came on its way; without a step it had arrived, and could not become the program.
struct Stopped {
    step: Option<Step>,
    error: io::Error,
}

impl Stopped {
    fn explain(self, isolation: Isolation) -> NamespaceError {
        match (self.step, Errno::from_io_error(&self.error)) {
            (Some(step), Some(errno)) => NamespaceError::of(isolation, step, errno),
            _ => NamespaceError::Program(self.error),
        }
    }
}

/// Why there is no network of one's own. The machine, or whoever runs it, forbids it.
#[derive(Debug, Error)]
pub enum NamespaceError {
    /// The caller has started threads already.
    #[error(
        "a process with several threads cannot enter a user namespace: enter it before the first thread starts, or start a child in it"
    )]
    Threads,
    /// The kernel, or what confines this process, allows no unprivileged user namespaces.
    #[error("this machine forbids namespaces of one's own (error {errno}): {remedy}")]
    Forbidden {
        /// The error number of the system.
        errno: i32,
        /// What to change.
        remedy: &'static str,
    },
    /// A network alone was asked for, without privilege.
    #[error(
        "a new network namespace needs root (error {errno}): run as root, or take a user namespace along"
    )]
    Privilege {
        /// The error number of the system.
        errno: i32,
    },
    /// There are as many namespaces as the machine allows.
    #[error(
        "this machine has as many namespaces as it allows: raise /proc/sys/user/max_user_namespaces and /proc/sys/user/max_net_namespaces"
    )]
    TooMany,
    /// The new network is there and cannot be set up.
    #[error("the new network cannot be used: {0}")]
    Interface(#[from] InterfaceError),
    /// The namespaces can be had; what was to be run in them cannot be started.
    #[error("the program could not be started: {0}")]
    Program(#[source] io::Error),
}

impl NamespaceError {
    fn of(isolation: Isolation, step: Step, errno: Errno) -> Self {
        let number = errno.raw_os_error();
        match (step, errno) {
            (_, Errno::NOSPC | Errno::USERS) => Self::TooMany,
            (Step::Unshare, Errno::INVAL) => Self::Forbidden {
                errno: number,
                remedy: "its kernel was built without user or network namespaces (CONFIG_USER_NS, CONFIG_NET_NS)",
            },
            _ if isolation == Isolation::Network => Self::Privilege { errno: number },
            _ => Self::Forbidden { errno: number, remedy: remedy() },
        }
    }
}

/// The switch that is off on this machine, as far as it shows.
fn remedy() -> &'static str {
    let is = |path, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "run as root, or `sysctl kernel.unprivileged_userns_clone=1`"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "run as root, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "run as root, or `sysctl user.max_user_namespaces=1000`"
    } else {
        "run as root, and in a container with --privileged, or with --cap-add SYS_ADMIN and an unconfined seccomp profile"
    }
}

#[cfg(test)]
mod tests;
