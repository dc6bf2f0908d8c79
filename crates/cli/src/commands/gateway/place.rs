//! The clients of a gateway: a namespace, or a virtual machine behind a Unix socket.

use super::addresses::Addresses;
use super::args::GatewayArgs;
use crate::output::Failure;
use linerate_link::namespace::{Isolation, spawn};
use linerate_link::tap::QUEUES;
use linerate_link::{SteeredTap, passing};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::env;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

/// The user's program, which runs inside the namespace.
#[derive(Debug)]
pub(super) struct Child {
    process: std::process::Child,
    exit: OwnedFd,
}

impl Child {
    /// Returns a descriptor that becomes readable when the program ends, for use in `poll`.
    pub(super) fn exit(&self) -> BorrowedFd<'_> {
        self.exit.as_fd()
    }

    /// Waits until the user's program has ended. Returns its exit code, or 128 plus the number of
    /// the signal that ended it, as shells do.
    pub(super) fn wait(mut self) -> Result<ExitCode, Failure> {
        let status = self.process.wait().map_err(|error| cannot_wait(&error))?;
        Ok(exit_code(status))
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn cannot_wait(error: &io::Error) -> Failure {
    Failure::running(format!("the program inside cannot be waited for ({error})"))
}

/// Starts a process that opens a TUN device inside the namespace of the clients and passes the
/// device back. Returns the device. Also returns the user's program, if the command line names one,
/// which the process executes afterwards. If the process fails, it prints the reason itself. This
/// function then returns the exit code of the process as the inner error.
pub(super) fn open_inside(
    args: &GatewayArgs,
    addresses: &[Addresses],
    mtu: usize,
) -> Result<Result<(SteeredTap, Option<Child>), ExitCode>, Failure> {
    let broken =
        |error: io::Error| Failure::running(format!("no process can be started ({error})"));
    let (ours, theirs) = UnixStream::pair().map_err(broken)?;
    // FD_CLOEXEC is cleared, so that the child process inherits this descriptor. No other child can
    // inherit it by mistake, because no other thread starts a process at this time.
    fcntl_setfd(&theirs, FdFlags::empty()).map_err(|errno| broken(errno.into()))?;
    let mut command = Command::new(env::current_exe().map_err(broken)?);
    command.arg("gateway-inside").arg(theirs.as_raw_fd().to_string());
    command.arg(args.into.unwrap_or(0).to_string()).arg(mtu.to_string());
    let pairs = addresses.iter().map(|of| format!("{},{}", of.client, of.gateway));
    command.arg(pairs.collect::<Vec<_>>().join(","));
    command.arg("--").args(&args.command);
    let process = if args.into.is_some() {
        command.spawn().map_err(broken)?
    } else {
        let spawned = spawn(command, Isolation::UserAndNetwork);
        spawned.map_err(|error| Failure::input(error.to_string()))?
    };
    drop(theirs);
    let mut process = process;
    let queues = (0..QUEUES).map(|_| passing::receive(&ours)).collect::<Result<Vec<_>, _>>();
    let Ok(queues) = queues else {
        let status = process.wait().map_err(|error| cannot_wait(&error))?;
        return Ok(Err(exit_code(status)));
    };
    let tap =
        SteeredTap::from_fds(queues, mtu).map_err(|error| Failure::input(error.to_string()))?;
    if args.into.is_some() {
        process.wait().map_err(|error| cannot_wait(&error))?;
        return Ok(Ok((tap, None)));
    }
    let number = Pid::from_child(&process);
    let exit =
        pidfd_open(number, PidfdFlags::empty()).map_err(|errno| cannot_wait(&errno.into()))?;
    Ok(Ok((tap, Some(Child { process, exit }))))
}

/// Creates a Unix socket at `path`, and waits for the first program that connects to it. Returns
/// the stream to this program.
pub(super) fn first_client(path: &Path) -> Result<UnixStream, Failure> {
    let cannot = |error: io::Error| {
        Failure::input(format!(
            "no socket can be at {} ({error}): choose another path, or remove the old one",
            path.display()
        ))
    };
    let listener = UnixListener::bind(path).map_err(cannot)?;
    let stream = listener.accept().map_err(cannot);
    // Only one client is served, so the path is removed, and no other program can connect. The
    // stream stays open without the path.
    let _ = std::fs::remove_file(path);
    Ok(stream?.0)
}
