//! The link between a host's TCP/IP stack and its simulated NIC driver.
//!
//! The stack computes TCP checksums only if frames are captured. Otherwise no receiver verifies
//! them, because the frame check sequence detects damage on the wire. The processor time of
//! checksums does not depend on this; the machine always charges it. With TSO, the stack leaves all
//! checksums to the NIC, and this link computes them in place of the NIC.

use crate::frame::{Frame, FrameId, Frames};
use linerate_stack::{
    Capabilities, Link, LinkError, Medium, PartialChecksum, RxChecksum, RxFrame, TxChecksum,
    TxFrame, segment_gso_frame,
};
use linerate_units::Instant;
use std::collections::VecDeque;

/// The link for one turn of the host.
#[derive(Debug)]
pub(super) struct Port<'a> {
    pub(super) capabilities: Capabilities,
    pub(super) frames: &'a mut Frames,
    /// The received frame to deliver in this turn, and its arrival time; `None` if there is none.
    pub(super) arrived: Option<(FrameId, Instant)>,
    /// Frames that the host has sent in this turn.
    pub(super) made: &'a mut VecDeque<FrameId>,
    /// Maximum number of frames in `made`.
    pub(super) room: usize,
}

impl Link for Port<'_> {
    fn receive(
        &mut self,
        _budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        let Some((id, arrived)) = self.arrived.take() else { return Ok(0) };
        let (bytes, segment) = (self.frames[id].bytes(), self.frames[id].segment());
        on_frame(RxFrame {
            checksum: RxChecksum::Verified,
            segment,
            ..RxFrame::plain(bytes, arrived)
        });
        Ok(1)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        let mut sent = 0;
        while sent < budget && self.made.len() < self.room {
            let cuts = self.capabilities.offloads.gso_max_size > 0;
            let id = if cuts { self.frames.take_large() } else { self.frames.take() };
            let room = self.capabilities.room();
            let frame = &mut self.frames[id];
            let Some(made) = fill(&mut frame.room()[..room]) else {
                self.frames.release(id);
                break;
            };
            frame.set_length(made.length);
            frame.set_segment(made.segment);
            if cuts && let (TxChecksum::Partial(place), None) = (made.checksum, made.segment) {
                complete(frame, place, self.capabilities.medium);
            }
            self.made.push_back(id);
            sent += 1;
        }
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

/// Completes the TCP checksum that the stack has left to the NIC.
fn complete(frame: &mut Frame, place: PartialChecksum, medium: Medium) {
    let bytes = frame.bytes().to_vec();
    let left =
        RxFrame { checksum: RxChecksum::Partial(place), ..RxFrame::plain(&bytes, Instant::ZERO) };
    segment_gso_frame(left, medium, |whole| frame.written().copy_from_slice(whole.bytes));
}
