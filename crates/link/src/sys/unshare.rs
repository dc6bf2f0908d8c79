//! Leaving the namespaces of the system, for the calling thread or for a child about to be started.

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::process::{getegid, geteuid};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CStr;
use std::io::{self, PipeWriter};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A step on the way into new namespaces. The numbers go through a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// Asking for them.
    Unshare = 1,
    /// Giving up the right to leave groups, without which there is no map of groups.
    SetGroups,
    /// Becoming user 0 of the new user namespace.
    UserMap,
    /// Becoming group 0 of the new user namespace.
    GroupMap,
    /// There.
    Arrived,
}

impl Step {
    /// The step whose number is `number`.
    pub(crate) fn of(number: u8) -> Option<Self> {
        let steps = [Self::Unshare, Self::SetGroups, Self::UserMap, Self::GroupMap, Self::Arrived];
        steps.into_iter().find(|&step| step as u8 == number)
    }
}

/// The way into a new network namespace, prepared so that walking it takes system calls only.
#[derive(Debug)]
pub(crate) struct Way {
    flags: UnshareFlags,
    /// "0 1000 1": user 0 inside is user 1000 outside, and there is no other.
    user_map: Vec<u8>,
    group_map: Vec<u8>,
}

impl Way {
    /// The way into a new network namespace, and, if `user` is wanted, into a new user namespace that
    /// owns it.
    pub(crate) fn new(user: bool) -> Self {
        let flags = if user { UnshareFlags::NEWUSER } else { UnshareFlags::empty() };
        Self {
            flags: flags | UnshareFlags::NEWNET,
            user_map: format!("0 {} 1", geteuid().as_raw()).into_bytes(),
            group_map: format!("0 {} 1", getegid().as_raw()).into_bytes(),
        }
    }

    /// Goes there, or says which step could not be taken.
    pub(crate) fn walk(&self) -> Result<(), (Step, Errno)> {
        // SAFETY: the hazard of this call is a file table that is no longer shared; FILES is not asked
        // for.
        unsafe { unshare_unsafe(self.flags) }.map_err(|errno| (Step::Unshare, errno))?;
        if self.flags.contains(UnshareFlags::NEWUSER) {
            put(c"/proc/self/setgroups", b"deny").map_err(|errno| (Step::SetGroups, errno))?;
            put(c"/proc/self/uid_map", &self.user_map).map_err(|errno| (Step::UserMap, errno))?;
            put(c"/proc/self/gid_map", &self.group_map).map_err(|errno| (Step::GroupMap, errno))?;
        }
        Ok(())
    }

    /// Makes `command` go this way before it becomes the program. The step at which it stops goes into
    /// `report`; with `turn_back` it stops at the last one and does not become the program at all.
    pub(crate) fn precede(self, command: &mut Command, report: PipeWriter, turn_back: bool) {
        let go = move || {
            let (step, errno) = match self.walk() {
                Err(stopped) => stopped,
                Ok(()) if turn_back => (Step::Arrived, Errno::CANCELED),
                Ok(()) => return Ok(()),
            };
            let _ = write(&report, &[step as u8]);
            Err(io::Error::from_raw_os_error(errno.raw_os_error()))
        };
        // SAFETY: after a fork of a process with threads only what is safe in a signal handler may be
        // called; `walk` and the rest make system calls, without allocating or taking a lock.
        unsafe { command.pre_exec(go) };
    }
}

fn put(path: &CStr, text: &[u8]) -> Result<(), Errno> {
    let file = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(file, text).map(drop)
}
