//! A link that records the initial sequence numbers of connections.

use linerate_link::Readiness;
use linerate_stack::{Capabilities, Link, LinkError, RxFrame, TxFrame};
use linerate_units::Instant;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

/// The initial sequence numbers of connections, by the port of our host. The first is that of our
/// host, the second that of the peer; `None` if the SYN of that direction has not been seen.
pub(crate) type Recorded = Arc<Mutex<HashMap<u16, [Option<u32>; 2]>>>;

/// A link that passes all frames on, and records the sequence numbers of SYNs in both directions.
pub(crate) struct IsnRecorder<L> {
    pub(crate) link: L,
    pub(crate) recorded: Recorded,
}

/// Returns the source port, the destination port and the sequence number of a SYN. Recognises only
/// SYNs in Ethernet frames whose IPv4 header has no options; returns `None` for all other frames.
fn syn(frame: &[u8]) -> Option<(u16, u16, u32)> {
    let is_tcp = frame.get(12..15) == Some(&[8, 0, 0x45]) && frame.get(23) == Some(&6);
    let segment =
        frame.get(34..).filter(|segment| is_tcp && segment.len() >= 20 && segment[13] & 2 != 0)?;
    let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    Some((port(0), port(2), u32::from_be_bytes(segment[4..8].try_into().unwrap())))
}

impl<L: Link> Link for IsnRecorder<L> {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        self.link.receive(budget, |frame| {
            if let Some((_, ours, number)) = syn(frame.bytes) {
                self.recorded.lock().unwrap().entry(ours).or_default()[1] = Some(number);
            }
            on_frame(frame);
        })
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        self.link.transmit(budget, |bytes| {
            let frame = fill(bytes)?;
            if let Some((ours, _, number)) = syn(&bytes[..frame.length]) {
                self.recorded.lock().unwrap().entry(ours).or_default()[0] = Some(number);
            }
            Some(frame)
        })
    }

    fn capabilities(&self) -> Capabilities {
        self.link.capabilities()
    }
}

impl<L: Readiness> Readiness for IsnRecorder<L> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.link.fd()
    }

    fn wants_room(&self) -> bool {
        self.link.wants_room()
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        self.link.wakeup_fd()
    }

    fn is_ready(&mut self) -> bool {
        self.link.is_ready()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        self.link.prepare_to_sleep()
    }

    fn awake(&mut self, signalled: bool) {
        self.link.awake(signalled);
    }

    fn next_deadline(&self) -> Instant {
        self.link.next_deadline()
    }
}
