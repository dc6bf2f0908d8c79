//! Goodput of one connection over round-trip time, loss, buffers and congestion control, in virtual
//! time: the same numbers on every machine, so that a change of them is a change of the protocol.

mod cell;
mod table;

pub use cell::{Cell, Figures};
pub use table::LossGrid;

use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration, Rate};

/// Round-trip times of the empty path.
pub const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_micros(100), Duration::from_millis(10), Duration::from_millis(100)];

/// Packets lost in either direction, of a thousand.
pub const LOSSES: [u32; 5] = [0, 1, 10, 50, 100];

/// Send buffer and receive buffer, of both ends.
pub const BUFFERS: [Bytes; 4] =
    [Bytes::new(8 << 10), Bytes::new(32 << 10), Bytes::new(256 << 10), Bytes::new(4 << 20)];

/// What controls congestion.
pub const CONTROLS: [CongestionName; 2] = [CongestionName::NewReno, CongestionName::Cubic];

/// The width of the path.
const RATE: Rate = Rate::from_bits_per_second(1_000_000_000);

/// Bytes that may wait in front of the path's narrowest part: 4.2 ms of it.
const QUEUE: u64 = 512 << 10;

/// Each cell with losses is the median of so many transfers.
const SEEDS: u64 = 5;
