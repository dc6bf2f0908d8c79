//! The forwarding decision of a bridge, whose table of MAC addresses is complete from the start.
//! The bridge receives only frames that must cross it, because the medium delivers other frames
//! directly.

use super::{Decision, Reason};
use crate::frame::{FrameId, Frames};
use crate::mac::mac_number;

/// The forwarding table of a bridge.
#[derive(Debug)]
pub(crate) struct Bridge {
    /// Number of the NIC that leads to each MAC address, by address number; `None` for addresses
    /// behind a router.
    behind: Vec<Option<u16>>,
}

impl Bridge {
    /// Creates a bridge with this forwarding table.
    pub(crate) const fn new(behind: Vec<Option<u16>>) -> Self {
        Self { behind }
    }

    /// Decides what to do with a frame that arrived on NIC `nic`.
    pub(super) fn decide(&self, nic: u16, frame: FrameId, frames: &Frames) -> Decision {
        let Some(number) = mac_number(frames[frame].destination()) else {
            return Decision::Flood;
        };
        match self.behind.get(number) {
            Some(&Some(behind)) if behind != nic => Decision::Forward { nic: behind, frame },
            Some(_) | None => Decision::Drop(Reason::Ignored),
        }
    }
}
