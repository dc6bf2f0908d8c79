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
    /// A fixed size, like that of a socket after `SO_SNDBUF` or `SO_RCVBUF` was set.
    Fixed(u32),
    /// A size that grows with the needs of the path and the application.
    Tuned {
        /// The initial size in bytes.
        initial: u32,
        /// The maximum size in bytes.
        most: u32,
    },
}

/// Packs the buffer size of a compact connection. A fixed size is encoded as a tuned size whose
/// initial size is zero. No tuned size has this value.
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

    /// Returns this buffer size with its initial and maximum size limited to the range from one
    /// byte to `most` bytes.
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

    /// Returns this buffer size with `bytes` as the initial size, but not more than the maximum
    /// size. A fixed size is returned unchanged.
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
