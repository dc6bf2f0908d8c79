//! How large a socket buffer is, and whether it may become larger.

use crate::receive::saturated;
use crate::rest::pack::{Pack, Packer, Unpacker};

/// The largest socket buffer: what a scaled window can offer (RFC 7323 §2.3).
pub const LARGEST_BUFFER: usize = 1 << 30;

/// The size of a send or a receive buffer, in bytes of data. Memory is taken only for data that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// This size and no other, as after `SO_SNDBUF` or `SO_RCVBUF`.
    Fixed(u32),
    /// It grows with what the path and the application make use of.
    Tuned {
        /// What it begins with.
        initial: u32,
        /// What it never exceeds.
        most: u32,
    },
}

/// A fixed size is one that is the most without being the first.
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
    /// What the buffer begins with.
    #[must_use]
    pub const fn initial(self) -> usize {
        match self {
            Self::Fixed(size) => size as usize,
            Self::Tuned { initial, .. } => initial as usize,
        }
    }

    /// The largest that it can become.
    #[must_use]
    pub const fn most(self) -> usize {
        match self {
            Self::Fixed(size) => size as usize,
            Self::Tuned { most, .. } => most as usize,
        }
    }

    /// The same, of at least one byte and at most `most`.
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
}

/// A size that somebody has chosen is fixed. More than [`LARGEST_BUFFER`] is that.
impl From<usize> for BufferSize {
    fn from(size: usize) -> Self {
        Self::Fixed(saturated(size))
    }
}
