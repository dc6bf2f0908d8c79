//! The part of a machine's state that the timeline shows.

use super::cpu::Level;
use crate::timeline::Activity;

/// The part of a machine's state that the timeline shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineSnapshot {
    /// Percentage of bus time that the NIC uses.
    pub(crate) bus: u64,
    /// Event that the host's TCP waits for, if the machine is idle.
    pub(crate) waits_for: Option<Activity>,
    /// State of each processor and its NIC queue.
    pub(crate) processors: Vec<ProcessorSnapshot>,
}

/// The part of a processor's state that the timeline shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorSnapshot {
    /// Priority level of the running job; `None` if the processor is idle.
    pub(crate) level: Option<Level>,
    /// Numbers of frames in the driver's queue, in the transmit ring and in the receive ring.
    pub(crate) frames: [usize; 3],
}
