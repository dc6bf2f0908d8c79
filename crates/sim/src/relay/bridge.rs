//! What a bridge makes of a frame. It knows from the beginning behind which card every station is, as one does that has
//! heard each of them, and hears only what must cross it: who is on the frame's own side gets it without the bridge.

use super::{Decision, Reason};
use crate::frame::{FrameId, Frames};
use crate::station::station_number;

/// The stations behind its cards.
#[derive(Debug)]
pub(crate) struct Bridge {
    /// By the number of a station, the card that it is behind; none if a router stands between.
    behind: Vec<Option<u16>>,
}

impl Bridge {
    /// A bridge that knows behind which card each station is.
    pub(crate) const fn new(behind: Vec<Option<u16>>) -> Self {
        Self { behind }
    }

    /// Where a frame goes that came in by `card`.
    pub(super) fn decide(&self, card: u16, frame: FrameId, frames: &Frames) -> Decision {
        let Some(number) = station_number(frames[frame].destination()) else {
            return Decision::Flood;
        };
        match self.behind.get(number) {
            Some(&Some(behind)) if behind != card => Decision::Forward { card: behind, frame },
            Some(_) | None => Decision::Drop(Reason::Ignored),
        }
    }
}
