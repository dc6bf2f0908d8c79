//! Records of a connection's last memory grant, and of its use of the buffer pool.

/// The state of a connection's memory accounting when the host last granted buffer memory to it. If
/// the present state differs, the grant is outdated (see [`Memory`](super::memory::Memory)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) changes: u64,
    pub(crate) has_moved: bool,
}

impl Granted {
    /// The value of a connection that has no grant yet.
    pub(crate) const NOTHING: Self = Self { changes: u64::MAX, has_moved: false };

    /// Returns whether the grant stays valid if only this connection transfers more data. The grant
    /// then becomes outdated only when some connection changes the amount of memory that it holds.
    #[inline(always)]
    pub(crate) const fn is_final(self) -> bool {
        self.has_moved
    }
}

/// Flags that say which buffers of a connection use memory of the buffer pool. The flags are only
/// hints, because a buffer may have been reallocated since they were set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PooledBuffers {
    pub(crate) to_send: bool,
    pub(crate) to_receive: bool,
}
