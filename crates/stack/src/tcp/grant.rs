//! Buffer memory granted to a connection, and buffers from the pool.

/// The last grant of buffer memory to a connection (see [`Memory`](super::memory::Memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) changes: u64,
    pub(crate) has_moved: bool,
}

impl Granted {
    /// No grant yet.
    pub(crate) const NOTHING: Self = Self { changes: u64::MAX, has_moved: false };

    /// Does the grant hold until the memory of other connections changes?
    #[inline(always)]
    pub(crate) const fn is_final(self) -> bool {
        self.has_moved
    }
}

/// The buffers that use memory of the pool. Only a hint: a buffer may have been reallocated since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PooledBuffers {
    pub(crate) to_send: bool,
    pub(crate) to_receive: bool,
}
