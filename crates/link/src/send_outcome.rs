//! The outcome of passing frames to the kernel.

use rustix::io::Errno;

/// The outcome of a system call that sends frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The kernel has taken this many frames if a batch was passed, or this many bytes if a single
    /// frame was passed.
    Sent(usize),
    /// The kernel has no room for the next frame now.
    WouldBlock,
    /// The next frame is lost: the kernel has no memory for it, or rejects its length.
    Dropped,
    /// Sending failed for a reason that also affects later frames, so the link cannot be used any
    /// more.
    Failed(Errno),
}

/// Calls `send`, again if a signal has interrupted the call, and classifies its result.
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
