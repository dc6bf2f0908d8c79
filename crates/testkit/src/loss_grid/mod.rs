//! Goodput of one connection over round-trip time, loss, buffers and congestion control, in virtual
//! time. The figures are equal on every machine, so a change of them is a change of the protocol.

mod cell;
mod table;

pub use cell::{Cell, Figures};
pub use table::LossGrid;

use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration, Rate};

/// Round-trip times without queueing.
pub const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_micros(100), Duration::from_millis(10), Duration::from_millis(100)];

/// Packets lost in either direction, in thousandths.
pub const LOSSES: [u32; 5] = [0, 1, 10, 50, 100];

/// Sizes of the send buffer and of the receive buffer, at both ends.
pub const BUFFERS: [Bytes; 4] =
    [Bytes::new(8 << 10), Bytes::new(32 << 10), Bytes::new(256 << 10), Bytes::new(4 << 20)];

/// Congestion controls.
pub const CONTROLS: [CongestionName; 2] = [CongestionName::NewReno, CongestionName::Cubic];

/// Rate of the bottleneck.
const RATE: Rate = Rate::from_bits_per_second(1_000_000_000);

/// Bytes that the queue of the bottleneck holds: 4.2 ms at its rate.
const QUEUE: u64 = 512 << 10;

/// Transfers of a cell with losses; their median is reported.
const SEEDS: u64 = 5;
