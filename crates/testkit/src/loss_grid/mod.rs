//! Measures goodput for combinations of round-trip time, loss, buffer size and congestion control,
//! in virtual time. The results do not depend on the machine. A result that differs from the stored
//! one therefore shows that the protocol implementation has changed.

mod cell;
mod table;

pub use cell::{Cell, Figures};
pub use table::LossGrid;

use linerate_tcp::CongestionName;
use linerate_units::{Bytes, Duration, Rate};

/// Round-trip times of the path without queueing, one for each part of the grid.
pub const ROUND_TRIPS: [Duration; 3] =
    [Duration::from_micros(100), Duration::from_millis(10), Duration::from_millis(100)];

/// Probabilities that a packet is lost, in thousandths, in either direction.
pub const LOSSES: [u32; 5] = [0, 1, 10, 50, 100];

/// Sizes of send buffers and receive buffers.
pub const BUFFERS: [Bytes; 4] =
    [Bytes::new(8 << 10), Bytes::new(32 << 10), Bytes::new(256 << 10), Bytes::new(4 << 20)];

/// Congestion controls to measure.
pub const CONTROLS: [CongestionName; 2] = [CongestionName::NewReno, CongestionName::Cubic];

/// Rate of the bottleneck.
const RATE: Rate = Rate::from_bits_per_second(1_000_000_000);

/// Size of the bottleneck's queue in bytes. The bottleneck sends a full queue in 4.2 ms.
const QUEUE: u64 = 512 << 10;

/// Number of transfers for each cell with losses. The median of these transfers is reported.
const SEEDS: u64 = 5;
