//! The states of a connection and their transitions (RFC 9293 §3.3.2, figure 5).

use crate::compact::pack::packed_enum;

/// The state of a connection. The state LISTEN of the RFC is missing: here a listener is not a
/// connection, but creates connections (see [`crate::judge_listen`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// We have sent a SYN, and no answer has arrived.
    SynSent,
    /// This endpoint has received the peer's SYN and has sent its own, which is not yet
    /// acknowledged.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// We have closed our direction, and our FIN is not yet acknowledged. The peer may still send
    /// data.
    FinWait1,
    /// Our FIN is acknowledged. The peer may still send data.
    FinWait2,
    /// The peer has closed. We may still send data.
    CloseWait,
    /// Both endpoints have closed at about the same time: the peer's FIN has arrived, and our FIN
    /// is not yet acknowledged.
    Closing,
    /// The peer has closed first, then we have, and our FIN is not yet acknowledged.
    LastAck,
    /// Both endpoints have closed, and the connection waits until old segments have left the
    /// network.
    TimeWait,
    /// There is no connection any more.
    Closed,
}

packed_enum!(State {
    SynSent,
    SynReceived,
    Established,
    FinWait1,
    FinWait2,
    CloseWait,
    Closing,
    LastAck,
    TimeWait,
    Closed
});

impl State {
    /// Whether the handshake is complete and the connection has not ended.
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// Whether the peer may still send data.
    #[must_use]
    pub const fn takes_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Whether the application may still write. Data written during the handshake is queued.
    #[must_use]
    pub const fn may_write(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Whether we may have data or a FIN to send or in flight: from the end of the handshake until
    /// our FIN is acknowledged.
    #[must_use]
    pub const fn sends_data(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Returns the state after the application has closed the sending direction.
    pub(crate) const fn after_close(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// Returns the state after the peer's FIN was received in order.
    pub(crate) const fn after_fin(self) -> Self {
        match self {
            Self::SynReceived | Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// Returns the state after the peer has acknowledged our FIN.
    pub(crate) const fn after_fin_acknowledged(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn each_order_of_closing_ends_in_time_wait_or_closed() {
        let first = State::Established.after_close().after_fin_acknowledged().after_fin();
        assert_eq!(first, State::TimeWait);
        let second = State::Established.after_fin().after_close().after_fin_acknowledged();
        assert_eq!(second, State::Closed);
        let together = State::Established.after_close().after_fin().after_fin_acknowledged();
        assert_eq!(together, State::TimeWait);
    }
}
