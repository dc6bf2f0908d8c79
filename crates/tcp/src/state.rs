//! The states of a connection and the arrows between them (RFC 9293 §3.3.2, figure 5).

use crate::rest::pack::packed_enum;

/// Where a connection stands. LISTEN is missing on purpose: a listener is no connection, it makes
/// them (see [`crate::judge_listen`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for the answer to our SYN.
    SynSent,
    /// Both SYNs are known, ours is not acknowledged yet.
    SynReceived,
    /// Data flows both ways.
    Established,
    /// We closed; our FIN is not acknowledged yet.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at the same time; our FIN is not acknowledged yet.
    Closing,
    /// The peer closed, then we did; our FIN is not acknowledged yet.
    LastAck,
    /// Everything is done; old segments are given time to leave the network.
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
    /// Has the handshake been completed, and is the connection not over?
    #[must_use]
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }

    /// May the peer still send data?
    #[must_use]
    pub const fn takes_data(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// May the application still add data to be sent? During the handshake it is kept for later.
    #[must_use]
    pub const fn may_write(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Can data or a FIN of ours be on its way, now or after the next write?
    #[must_use]
    pub const fn sends_data(self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// The application has closed its sending side.
    pub(crate) const fn after_close(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// The peer's FIN is in order.
    pub(crate) const fn after_fin(self) -> Self {
        match self {
            Self::SynReceived | Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// The peer has acknowledged our FIN.
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
    fn the_three_ways_to_close_end_in_time_wait_or_closed() {
        let first = State::Established.after_close().after_fin_acknowledged().after_fin();
        assert_eq!(first, State::TimeWait);
        let second = State::Established.after_fin().after_close().after_fin_acknowledged();
        assert_eq!(second, State::Closed);
        let together = State::Established.after_close().after_fin().after_fin_acknowledged();
        assert_eq!(together, State::TimeWait);
    }
}
