//! The buffer memory that a connection has been granted by its host, and lent.

/// The grant of buffer memory that a connection knows (see [`Memory`](super::memory::Memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) changes: u64,
    pub(crate) has_moved: bool,
}

impl Granted {
    /// Nothing was granted yet.
    pub(crate) const NOTHING: Self = Self { changes: u64::MAX, has_moved: false };

    /// Does it stay the same, until something changes that others hold, too?
    #[inline(always)]
    pub(crate) const fn is_for_good(self) -> bool {
        self.has_moved
    }
}

/// Which of its buffers a connection was lent memory for. No more than a guess: a buffer may have grown since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lent {
    pub(crate) to_send: bool,
    pub(crate) to_receive: bool,
}
