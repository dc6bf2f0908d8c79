//! Records of a connection's most recent memory grant, and of the buffers of the connection that
//! use memory of the buffer pool.

/// The state of the memory accounting at the time when the host last granted buffer memory to a
/// connection. If this state has changed since, the grant is outdated (see
/// [`Memory`](super::memory::Memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) changes: u64,
    pub(crate) has_moved: bool,
}

impl Granted {
    /// The record of a connection that has not got a grant yet.
    pub(crate) const NOTHING: Self = Self { changes: u64::MAX, has_moved: false };

    /// Returns whether the connection had transferred as many bytes as it holds when it got the
    /// grant. Further transfers then do not make the grant outdated, but only changes of the
    /// accounting do.
    #[inline(always)]
    pub(crate) const fn is_final(self) -> bool {
        self.has_moved
    }
}

/// Flags that say which buffers of a connection use memory of the buffer pool. The flags are only
/// hints: a buffer that was reallocated since a flag was set no longer uses memory of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PooledBuffers {
    pub(crate) to_send: bool,
    pub(crate) to_receive: bool,
}
