//! A pair of socket buffers.

use crate::buffers::BufferSize;

/// A pair of socket buffers, the factors that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The sender's buffer.
    pub send: BufferSize,
    /// The receiver's buffer.
    pub receive: BufferSize,
}
