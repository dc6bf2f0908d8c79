//! The outcome of passing frames to the kernel.

use rustix::io::Errno;

/// The outcome of a system call that sends frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The kernel has taken this number of frames of a batch, or this number of bytes of one frame.
    Sent(usize),
    /// The kernel has no room for the next frame now.
    WouldBlock,
    /// The kernel has lost the next frame: it has no memory for it, or rejects its length.
    Dropped,
    /// The link cannot be used any more.
    Failed(Errno),
}

/// Calls `send` until no signal interrupts it, and classifies its result.
pub(crate) fn send_uninterrupted(mut send: impl FnMut() -> Result<usize, Errno>) -> SendOutcome {
    loop {
        return match send() {
            Ok(taken) => SendOutcome::Sent(taken),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => SendOutcome::WouldBlock,
            Err(Errno::NOBUFS | Errno::NOMEM | Errno::MSGSIZE) => SendOutcome::Dropped,
            Err(errno) => SendOutcome::Failed(errno),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_calls_are_repeated_and_other_results_are_classified() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(3)].into_iter();
        assert_eq!(send_uninterrupted(|| answers.next().unwrap()), SendOutcome::Sent(3));
        assert_eq!(send_uninterrupted(|| Err(Errno::AGAIN)), SendOutcome::WouldBlock);
        assert_eq!(send_uninterrupted(|| Err(Errno::NOBUFS)), SendOutcome::Dropped);
        assert_eq!(send_uninterrupted(|| Err(Errno::NETDOWN)), SendOutcome::Failed(Errno::NETDOWN));
    }
}
