//! A cell of a sweep: one pair of socket buffers.

use crate::buffers::BufferSize;

/// One pair of socket buffers: the two factors that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The sender's buffer.
    pub send: BufferSize,
    /// The receiver's buffer.
    pub receive: BufferSize,
}
