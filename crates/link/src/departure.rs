//! What becomes of frames that are handed to the system.

use rustix::io::Errno;

/// What has become of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The system has taken so much: frames of several, bytes of one.
    Left(usize),
    /// The system has no room for the first of them now.
    Again,
    /// The system has no memory for the first of them, or takes none of its length: it is lost.
    Refused,
    /// The link is of no use any more.
    Failed(Errno),
}

/// Hands frames over, however often that is interrupted.
pub(crate) fn leave(mut send: impl FnMut() -> Result<usize, Errno>) -> Departure {
    loop {
        return match send() {
            Ok(taken) => Departure::Left(taken),
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => Departure::Again,
            Err(Errno::NOBUFS | Errno::NOMEM | Errno::MSGSIZE) => Departure::Refused,
            Err(errno) => Departure::Failed(errno),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_is_no_answer_and_every_other_one_is() {
        let mut answers = [Err(Errno::INTR), Err(Errno::INTR), Ok(3)].into_iter();
        assert_eq!(leave(|| answers.next().unwrap()), Departure::Left(3));
        assert_eq!(leave(|| Err(Errno::AGAIN)), Departure::Again);
        assert_eq!(leave(|| Err(Errno::NOBUFS)), Departure::Refused);
        assert_eq!(leave(|| Err(Errno::NETDOWN)), Departure::Failed(Errno::NETDOWN));
    }
}
