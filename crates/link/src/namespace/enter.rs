//! Entering new namespaces.

use super::error::NamespaceError;
use super::isolation::Isolation;
use crate::kernel_interface::KernelInterface;
use crate::sys::unshare::{NewNamespaces, Step};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command};

/// Moves the calling thread into a new network namespace, which threads and processes that it
/// starts later inherit. The namespace contains only a loopback interface, which is down. The
/// thread cannot return to its previous namespace.
///
/// With [`Isolation::UserAndNetwork`], the process must have no other thread. So `main` must call
/// this function before it starts threads.
///
/// # Errors
/// [`NamespaceError`], which names the restriction of the machine, and the remedy.
pub fn enter(isolation: Isolation) -> Result<(), NamespaceError> {
    let user = isolation == Isolation::UserAndNetwork;
    if user && fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        return Err(NamespaceError::Threads);
    }
    NewNamespaces::new(user)
        .enter()
        .map_err(|(step, errno)| NamespaceError::of(isolation, step, errno))
}

/// Moves the calling thread into the network namespace of another process, and into the user
/// namespace that owns that network namespace. The calling process must have no other thread,
/// because the kernel refuses to change the user namespace of a process with several threads.
///
/// # Errors
/// [`NamespaceError::Join`], for example if the process does not exist.
pub fn join(process: u32) -> Result<(), NamespaceError> {
    let explain = |source| NamespaceError::Join { process, source };
    let open = |kind| fs::File::open(format!("/proc/{process}/ns/{kind}")).map_err(explain);
    let (user, network) = (open("user")?, open("net")?);
    let own = fs::File::open("/proc/self/ns/user").map_err(explain)?;
    let identity = |file: &fs::File| file.metadata().map(|status| status.ino());
    if identity(&user).map_err(explain)? != identity(&own).map_err(explain)? {
        move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))
            .map_err(|errno| explain(errno.into()))?;
    }
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|errno| explain(errno.into()))
}

/// Enters a new network namespace, and brings its loopback interface up. If the process lacks the
/// privilege for that, it enters a new user namespace as well.
///
/// # Errors
/// [`NamespaceError`], which names the restriction of the machine, and the remedy.
pub fn enter_private_network() -> Result<(), NamespaceError> {
    if enter(Isolation::Network).is_err() {
        enter(Isolation::UserAndNetwork)?;
    }
    Ok(KernelInterface::loopback()?.set_up()?)
}

/// Starts `command` in new namespaces. Its network contains only a loopback interface, which is
/// down. The calling process stays in its own namespaces, and may have any number of threads.
///
/// # Errors
/// [`NamespaceError`], which names the restriction of the machine and the remedy, or that the
/// program cannot be started.
pub fn spawn(command: Command, isolation: Isolation) -> Result<Child, NamespaceError> {
    start(command, isolation, false).map_err(|stopped| stopped.explain(isolation))
}

/// Checks whether child processes can enter new namespaces, by starting a child that does so and
/// then ends.
///
/// # Errors
/// [`NamespaceError`], which names the restriction of the machine, and the remedy.
pub fn probe(isolation: Isolation) -> Result<(), NamespaceError> {
    match start(Command::new("/"), isolation, true) {
        Err(Stopped { step: Some(Step::Done), .. }) | Ok(_) => Ok(()),
        Err(stopped) => Err(stopped.explain(isolation)),
    }
}

fn start(mut command: Command, isolation: Isolation, stop_after: bool) -> Result<Child, Stopped> {
    let (mut report, reporter) = io::pipe().map_err(|error| Stopped { step: None, error })?;
    NewNamespaces::new(isolation == Isolation::UserAndNetwork).enter_before(
        &mut command,
        reporter,
        stop_after,
    );
    command.spawn().map_err(|error| {
        // Reads without blocking. If the child has reported nothing, a blocking read would wait
        // forever, because `command` keeps the write end of the pipe open.
        let mut step = [0];
        let reported = ioctl_fionbio(&report, true).is_ok() && report.read(&mut step).is_ok();
        Stopped { step: if reported { Step::of(step[0]) } else { None }, error }
    })
}

/// The failure of a child. `step` is the step at which it failed to enter the namespaces. `None`
/// means that it entered them, but could not run the program.
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
