//! A terminal in raw mode that other programs cannot use in the meantime.

use super::error::SerialError;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios,
    ioctl_tiocexcl, ioctl_tiocnxcl, isatty, tcflush, tcgetattr, tcsetattr,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A terminal in raw mode. When this value is dropped, the terminal gets its previous modes back.
#[derive(Debug)]
pub(super) struct Terminal {
    fd: OwnedFd,
    /// The modes that are restored on dropping. `None` for the controlling end of a
    /// pseudo-terminal: the two ends share their modes, and the other end restores them.
    former: Option<Termios>,
}

impl Terminal {
    /// Opens the terminal at `device`, and sets its rate.
    pub(super) fn open(device: &str, baud: u32) -> Result<Self, SerialError> {
        // Without NONBLOCK, opening waits for the carrier of a modem.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open(device, flags, Mode::empty())
            .map_err(|errno| SerialError::of_opening(device, &errno.into()))?;
        Self::over(fd, device, baud)
    }

    /// Creates a pseudo-terminal. Returns its controlling end and its terminal end.
    pub(super) fn pair(baud: u32) -> Result<[Self; 2], SerialError> {
        let device = "/dev/ptmx";
        let failed = |errno: Errno| SerialError::of_opening(device, &errno.into());
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let near = openpt(flags).map_err(failed)?;
        grantpt(&near).and_then(|()| unlockpt(&near)).map_err(failed)?;
        let far = ioctl_tiocgptpeer(&near, flags).map_err(failed)?;
        for end in [&near, &far] {
            rustix::io::ioctl_fionbio(end, true).map_err(failed)?;
        }
        let far = Self::over(far, device, baud)?;
        Ok([Self { fd: near, former: None }, far])
    }

    fn over(fd: OwnedFd, device: &str, baud: u32) -> Result<Self, SerialError> {
        let named = || device.to_owned();
        if !isatty(&fd) {
            return Err(SerialError::NoTerminal { device: named() });
        }
        // Locks the device against two kinds of programs. `flock` stops those that respect such
        // locks, even if they run as root. `TIOCEXCL` below stops all programs from opening the
        // device, except those of root.
        flock(&fd, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| SerialError::Busy { device: named() })?;
        let failed =
            |errno: Errno| SerialError::Open { device: named(), errno: errno.raw_os_error() };
        let former = tcgetattr(&fd).map_err(failed)?;
        let refused = |_| SerialError::Baud { device: named(), baud };
        let mut modes = raw(former.clone());
        modes.set_speed(baud).map_err(refused)?;
        ioctl_tiocexcl(&fd).map_err(failed)?;
        // The value is created before the modes are changed, so that dropping it restores the
        // previous modes if an error follows.
        let terminal = Self { fd, former: Some(former) };
        tcsetattr(&terminal.fd, OptionalActions::Now, &modes).map_err(failed)?;
        // If the hardware cannot run at this rate, the kernel keeps the old rate without an error.
        // So the rate is read back, and must differ from the requested one by at most 3 %.
        let now = tcgetattr(&terminal.fd).map_err(failed)?.output_speed();
        if now.abs_diff(baud) > baud / 33 {
            return Err(SerialError::Baud { device: named(), baud });
        }
        // Discard bytes that arrived before the change of modes: they are noise.
        tcflush(&terminal.fd, QueueSelector::IOFlush).map_err(failed)?;
        Ok(terminal)
    }

    /// Reads without waiting. Returns zero if no bytes have arrived.
    ///
    /// # Errors
    /// `EPIPE` if the other end is closed, or an error of the system.
    pub(super) fn read(&self, bytes: &mut [u8]) -> Result<usize, Errno> {
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut *bytes)) {
            Err(Errno::AGAIN) => Ok(0),
            // Both results mean that the other end is gone. A terminal reports the end of the file
            // if its line has hung up. A pseudo-terminal reports EIO if its other end is closed.
            Ok(0) | Err(Errno::IO) => Err(Errno::PIPE),
            outcome => outcome,
        }
    }

    /// Writes without waiting. Returns the number of bytes written: zero if there is no room.
    ///
    /// # Errors
    /// `EPIPE` if the other end is closed, or an error of the system.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match rustix::io::retry_on_intr(|| rustix::io::write(&self.fd, bytes)) {
            Err(Errno::AGAIN) => Ok(0),
            Err(Errno::IO) => Err(Errno::PIPE),
            outcome => outcome,
        }
    }
}

impl AsFd for Terminal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(former) = &self.former {
            // Restoring fails only if the line has hung up. There is then nothing to restore.
            let _ = tcsetattr(&self.fd, OptionalActions::Now, former);
            let _ = ioctl_tiocnxcl(&self.fd);
        }
    }
}

/// Changes `modes` so that the line carries arbitrary bytes: eight bits without parity, and no byte
/// has a special effect. Flow control by RTS and CTS stays as the user has configured it (`stty
/// crtscts`).
fn raw(mut modes: Termios) -> Termios {
    modes.make_raw();
    modes.input_modes.remove(InputModes::IXOFF | InputModes::IXANY | InputModes::INPCK);
    // Break conditions and bytes with a wrong stop bit are noise, so the kernel is to drop them. A
    // packet that thereby lacks a byte is dropped because of its checksum.
    modes.input_modes.insert(InputModes::IGNBRK | InputModes::IGNPAR);
    modes.control_modes.remove(ControlModes::CSTOPB);
    modes.control_modes.insert(ControlModes::CREAD | ControlModes::CLOCAL);
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    modes
}
