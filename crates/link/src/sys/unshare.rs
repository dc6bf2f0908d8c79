//! Enters new namespaces, in the calling thread or in a child process before it runs its program.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CStr;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A step of entering new namespaces. If a step fails in a child process, the child sends the
/// number of the step to the parent through a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// Creating the new namespaces.
    Unshare = 1,
    /// Forbidding `setgroups`, which the kernel requires before the group map is written.
    SetGroups,
    /// Mapping this user to root of the new user namespace.
    UserMap,
    /// Mapping this group to group 0 of the new user namespace.
    GroupMap,
    /// No step: all have succeeded.
    Done,
}

impl Step {
    /// Returns the step that has this number.
    pub(crate) fn of(number: u8) -> Option<Self> {
        let steps = [Self::Unshare, Self::SetGroups, Self::UserMap, Self::GroupMap, Self::Done];
        steps.into_iter().find(|&step| step as u8 == number)
    }
}

/// The data for entering new namespaces. They are prepared before a process is forked, because the
/// child may only make system calls.
#[derive(Debug)]
pub(crate) struct NewNamespaces {
    flags: UnshareFlags,
    /// Line of the user map, such as `0 1000 1`: user 0 inside is user 1000 outside, and no other
    /// user exists inside.
    user_map: Vec<u8>,
    group_map: Vec<u8>,
}

impl NewNamespaces {
    /// Prepares entering a new network namespace, and with `user` also a new user namespace that
    /// owns it.
    pub(crate) fn new(user: bool) -> Self {
        let flags = if user { UnshareFlags::NEWUSER } else { UnshareFlags::empty() };
        Self {
            flags: flags | UnshareFlags::NEWNET,
            user_map: format!("0 {} 1", geteuid().as_raw()).into_bytes(),
            group_map: format!("0 {} 1", getegid().as_raw()).into_bytes(),
        }
    }

    /// Enters the namespaces. Returns the failed step in case of an error.
    pub(crate) fn enter(&self) -> Result<(), (Step, Errno)> {
        // SAFETY: this call is hazardous only if it ends the sharing of the file table, and FILES
        // is not in the flags.
        unsafe { unshare_unsafe(self.flags) }.map_err(|errno| (Step::Unshare, errno))?;
        if self.flags.contains(UnshareFlags::NEWUSER) {
            put(c"/proc/self/setgroups", b"deny").map_err(|errno| (Step::SetGroups, errno))?;
            put(c"/proc/self/uid_map", &self.user_map).map_err(|errno| (Step::UserMap, errno))?;
            put(c"/proc/self/gid_map", &self.group_map).map_err(|errno| (Step::GroupMap, errno))?;
        }
        Ok(())
    }

    /// Makes `command` enter the namespaces in the child process, before the child runs its
    /// program. If a step fails, the child writes the number of this step to `report`. With
    /// `stop_after`, the child ends after the last step, without running the program.
    pub(crate) fn enter_before(self, command: &mut Command, report: PipeWriter, stop_after: bool) {
        let enter = move || {
            let (step, errno) = match self.enter() {
                Err(stopped) => stopped,
                Ok(()) if stop_after => (Step::Done, Errno::CANCELED),
                Ok(()) => return Ok(()),
            };
            let _ = write(&report, &[step as u8]);
            Err(io::Error::from_raw_os_error(errno.raw_os_error()))
        };
        // SAFETY: after the fork of a process with threads, only async-signal-safe functions may be
        // called. `enter` and this closure make system calls, and neither allocate nor lock.
        unsafe { command.pre_exec(enter) };
    }
}

fn put(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(file, text).map(drop)
}
