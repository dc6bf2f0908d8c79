//! A cell of a sweep: one combination of a send buffer and a receive buffer.

use crate::buffers::BufferSize;

/// One combination of a send buffer and a receive buffer, the two parameters that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Size of the sender's socket buffer.
    pub send: BufferSize,
    /// Size of the receiver's socket buffer.
    pub receive: BufferSize,
}
