//! The size of a socket buffer: fixed, or growing up to a maximum.

use crate::compact::pack::{Pack, Packer, Unpacker};
use crate::receive::saturated;

/// The largest size of a socket buffer in bytes, which is the largest window that window scaling
/// can express (RFC 7323 §2.3).
pub const LARGEST_BUFFER: usize = 1 << 30;

/// The size of a send or receive buffer, in bytes of data. Memory is allocated for queued data
/// only, not for the whole size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// A fixed size, as after `SO_SNDBUF` or `SO_RCVBUF`.
    Fixed(u32),
    /// A size that grows with the needs of the path and the application.
    Tuned {
        /// The initial size in bytes.
        initial: u32,
        /// The maximum size in bytes.
        most: u32,
    },
}

/// A compact connection stores a fixed size as a tuned size whose initial size is zero, which no
/// tuned size has.
impl Pack for BufferSize {
    fn pack(&self, into: &mut Packer<'_>) {
        match *self {
            Self::Fixed(size) => (0_u32, size).pack(into),
            Self::Tuned { initial, most } => (initial, most).pack(into),
        }
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        match Pack::unpack(from) {
            (0, size) => Self::Fixed(size),
            (initial, most) => Self::Tuned { initial, most },
        }
    }
}

impl BufferSize {
    /// Returns the initial size in bytes.
    #[must_use]
    pub const fn initial(self) -> usize {
        match self {
            Self::Fixed(size) => size as usize,
            Self::Tuned { initial, .. } => initial as usize,
        }
    }

    /// Returns the maximum size in bytes.
    #[must_use]
    pub const fn most(self) -> usize {
        match self {
            Self::Fixed(size) => size as usize,
            Self::Tuned { most, .. } => most as usize,
        }
    }

    /// Returns the buffer size with every value limited to the range from one byte to `most` bytes.
    #[inline(always)]
    #[must_use]
    pub(crate) fn within(self, most: usize) -> Self {
        let most = saturated(most.clamp(1, LARGEST_BUFFER));
        match self {
            Self::Fixed(size) => Self::Fixed(size.clamp(1, most)),
            Self::Tuned { initial, most: wanted } => {
                let most = wanted.clamp(1, most);
                Self::Tuned { initial: initial.clamp(1, most), most }
            }
        }
    }

    /// Returns the size with `bytes` as the initial size of a tuned buffer, limited to its maximum.
    /// A fixed size is unchanged.
    #[must_use]
    pub(crate) fn starting_at(self, bytes: u32) -> Self {
        match self {
            Self::Fixed(_) => self,
            Self::Tuned { most, .. } => Self::Tuned { initial: bytes.clamp(1, most.max(1)), most },
        }
    }
}

/// Creates a fixed size, limited to [`LARGEST_BUFFER`].
impl From<usize> for BufferSize {
    fn from(size: usize) -> Self {
        Self::Fixed(saturated(size))
    }
}
