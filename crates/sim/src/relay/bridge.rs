//! The forwarding decision of a bridge, whose table of MAC addresses is complete from the start.
//! Unlike a real bridge, this one does not receive frames between two stations of one medium,
//! because the simulated medium delivers them only to their receiver.

use super::{Decision, Reason};
use crate::frame::{FrameId, Frames};
use crate::mac::mac_number;

/// The forwarding table of a bridge.
#[derive(Debug)]
pub(crate) struct Bridge {
    /// Number of the NIC through which each MAC address is reached, indexed by the number in the
    /// address. `None` for an address that can be reached only through a router.
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
