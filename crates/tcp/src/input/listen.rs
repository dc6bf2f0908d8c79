//! Segments that find no connection: what a listener makes of them (RFC 9293 §3.10.7.2), and what
//! nobody does (§3.10.7.1).

use crate::output::reset::Reset;
use linerate_wire::{Segment, TcpFlags};

/// What a segment means to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenVerdict {
    /// Nothing.
    Ignore,
    /// It belongs to no connection: answer so.
    Reset(Reset),
    /// It asks for a connection: see [`crate::Connection::accept`].
    Open,
}

/// What a listener does with `segment` (RFC 9293 §3.10.7.2).
#[must_use]
pub fn judge_listen(segment: &Segment<'_>) -> ListenVerdict {
    let flags = segment.flags();
    if flags.contains(TcpFlags::RST) {
        ListenVerdict::Ignore
    } else if flags.contains(TcpFlags::ACK) {
        ListenVerdict::Reset(Reset::answering(segment))
    } else if flags.contains(TcpFlags::SYN) {
        ListenVerdict::Open
    } else {
        ListenVerdict::Ignore
    }
}

/// The answer to a segment for which there is neither connection nor listener (RFC 9293
/// §3.10.7.1). A reset is never answered.
#[must_use]
pub fn judge_unconnected(segment: &Segment<'_>) -> Option<Reset> {
    (!segment.flags().contains(TcpFlags::RST)).then(|| Reset::answering(segment))
}
