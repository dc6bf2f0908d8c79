//! Segments that do not belong to a connection. A listener decides about them (RFC 9293 §3.10.7.2);
//! if there is no listener, they are answered by a reset (§3.10.7.1).

use crate::output::reset::Reset;
use linerate_wire::{Segment, TcpFlags};

/// The decision of a listener about a segment that does not belong to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenVerdict {
    /// The segment is ignored.
    Ignore,
    /// The segment must be answered by this reset.
    Reset(Reset),
    /// The segment requests a connection, which [`crate::Connection::accept`] opens.
    Open,
}

/// Returns the decision of a listener about `segment` (RFC 9293 §3.10.7.2).
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

/// Returns the answer to a segment for which there is neither a connection nor a listener (RFC 9293
/// §3.10.7.1). `None` for a reset, which must not be answered.
#[must_use]
pub fn judge_unconnected(segment: &Segment<'_>) -> Option<Reset> {
    (!segment.flags().contains(TcpFlags::RST)).then(|| Reset::answering(segment))
}
