//! What a host asks of the thing that carries its frames. It never knows which one it has.

use linerate_units::{Instant, Rate};
use thiserror::Error;

/// Something that carries frames: a kernel's interface, a ring in memory, a simulated NIC.
///
/// Iteration is the link's own, so that a ring can lend its memory: a frame is parsed where the NIC
/// put it, and written where the NIC will read it. Neither method waits.
pub trait Link {
    /// Hands up to `budget` arrived frames to `on_frame`, in the order of arrival, and returns how
    /// many. Fewer than `budget` means that no further frame is there at the moment.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot receive at all; frames already handed over stay so, and the
    /// call can be repeated.
    fn receive(&mut self, budget: usize, on_frame: impl FnMut(RxFrame<'_>)) -> Result<usize, LinkError>;

    /// Offers up to `budget` empty frames to `fill`, one after the other, and returns how many were
    /// sent. `fill` writes one and says how long it is, or answers `None` when there is no more to
    /// send, after which it is not asked again in this call. Each offered frame has room for the
    /// largest packet of [`Capabilities::mtu`] and the medium's header; its bytes are arbitrary.
    ///
    /// A link with no room left offers nothing: a frame that `fill` has written is on its way, as far
    /// as the host can know, and is never asked for again.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot send at all; the frames filled before that may be lost, as
    /// any frame may be.
    fn transmit(
        &mut self,
        budget: usize,
        fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError>;

    /// What the link can do. The answer stays the same as long as the link lives.
    fn capabilities(&self) -> Capabilities;
}

/// A frame as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The frame from its first header on, without preamble and frame check sequence. Padding of
    /// the medium may follow the packet.
    pub bytes: &'a [u8],
    /// When it arrived, stamped where it came in and not where it is processed.
    pub arrived: Instant,
    /// What the link already knows about the checksums inside.
    pub checksum: RxChecksum,
}

/// What a link knows about the checksums in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxChecksum {
    /// Nothing: the host sums.
    Unverified,
    /// The transport checksum was right when the link looked, or the frame never left this machine.
    Verified,
}

/// What was written into an offered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxFrame {
    /// Bytes written, from the start of the offered frame.
    pub length: usize,
}

/// What a link can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What its frames begin with.
    pub medium: Medium,
    /// Bytes of the largest IP packet that it carries: at least 68 (RFC 791).
    pub mtu: usize,
    /// The bit rate of the line, where there is a line and its driver tells.
    pub rate: Option<Rate>,
}

impl Capabilities {
    /// Bytes of the largest frame: the packet and the medium's header.
    #[must_use]
    pub const fn frame_length(&self) -> usize {
        self.mtu.saturating_add(self.medium.header_length())
    }
}

/// What the frames of a link begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// An Ethernet header; neighbours are found by ARP.
    Ethernet,
    /// The IP header itself: there are no neighbours to be told apart.
    Ip,
}

impl Medium {
    /// Bytes in front of the IP packet in a frame that a host sends.
    #[must_use]
    pub const fn header_length(self) -> usize {
        match self {
            Self::Ethernet => 14,
            Self::Ip => 0,
        }
    }
}

/// Why a link cannot carry frames. The machine is at fault, or the person who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// The other end is gone, or the interface was taken down: bring it up, or give up on the link.
    #[error("the link is down: bring the interface up, or end")]
    Down,
    /// The operating system refused.
    #[error("the operating system could not {what} (error {errno})")]
    Io {
        /// The error number of the system.
        errno: i32,
        /// What was being tried, as an infinitive: "read a frame".
        what: &'static str,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_frame_is_the_largest_packet_behind_the_header_of_the_medium() {
        let capabilities = Capabilities { medium: Medium::Ethernet, mtu: 1_500, rate: None };
        assert_eq!(capabilities.frame_length(), 1_514);
        assert_eq!(Capabilities { medium: Medium::Ip, ..capabilities }.frame_length(), 1_500);
    }
}
