//! The state of a machine that the timeline shows.

use super::cpu::Level;
use crate::timeline::Activity;

/// The state that the timeline shows of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineSnapshot {
    /// The NIC's share of the bus in per cent.
    pub(crate) bus: u64,
    /// The event that its TCP waits for, if the machine is idle.
    pub(crate) waits_for: Option<Activity>,
    /// Processors, each with its queue of the NIC.
    pub(crate) processors: Vec<ProcessorSnapshot>,
}

/// The state that the timeline shows of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorSnapshot {
    /// The level that runs.
    pub(crate) level: Option<Level>,
    /// Frames in the driver's queue, in the transmit ring and in the receive ring.
    pub(crate) frames: [usize; 3],
}
