//! The buffer memory that a connection may use, and its buffers that use memory of the pool.

/// The last grant of buffer memory to a connection (see [`Memory`](super::memory::Memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) changes: u64,
    pub(crate) has_moved: bool,
}

impl Granted {
    /// The value before the first grant.
    pub(crate) const NOTHING: Self = Self { changes: u64::MAX, has_moved: false };

    /// Returns whether the grant stays valid until the memory of other connections changes.
    #[inline(always)]
    pub(crate) const fn is_final(self) -> bool {
        self.has_moved
    }
}

/// The buffers of a connection that use memory of the pool. It is only a hint, because a buffer may
/// have been reallocated since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PooledBuffers {
    pub(crate) to_send: bool,
    pub(crate) to_receive: bool,
}
