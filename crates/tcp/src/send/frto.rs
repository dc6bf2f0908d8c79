//! F-RTO: detection of spurious timeouts (RFC 5682). After a timeout, one segment is retransmitted,
//! and then new data is sent. If the next acknowledgement is for data that was sent only before the
//! timeout, the timeout was spurious.

use super::delivery::Delivery;
use crate::compact::pack::packed_enum;
use linerate_wire::SeqNum;

/// The progress of F-RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// F-RTO is not examining a timeout.
    Off,
    /// Step 1: the first unacknowledged segment was retransmitted, and no acknowledgement has
    /// arrived since then.
    Retransmitted,
    /// Step 2: an acknowledgement has advanced SND.UNA, and new data was sent in place of further
    /// retransmissions.
    SentNew,
}

packed_enum!(Frto { Off, Retransmitted, SentNew });

/// The conclusion from an acknowledgement that arrives after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrtoVerdict {
    /// The data that was in flight at the timeout may be lost, and must be retransmitted.
    Lost,
    /// The retransmission is not yet acknowledged, so the sender must wait.
    Wait,
    /// It is not yet known whether the timeout was spurious, so the sender should send new data.
    AskOn,
    /// The timeout was spurious, and nothing was lost.
    Spurious,
}

impl Frto {
    pub(crate) const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Evaluates an acknowledgement by the SACK-enhanced algorithm (RFC 5682 §3.1). `advanced` is
    /// true if the acknowledgement has moved SND.UNA, and `has_new` is true if there is new data
    /// that can be sent. `recover` is RecoveryPoint, the end of the data sent before the timeout.
    pub(crate) fn judge(
        self,
        advanced: bool,
        delivery: &Delivery,
        recover: SeqNum,
        has_new: bool,
    ) -> FrtoVerdict {
        let has_original = delivery.first_original.is_some_and(|seq| seq.before(recover));
        // Data beyond `recover` was sent after the timeout. Once any of it has arrived, the
        // acknowledgement is no evidence of a spurious timeout: if earlier acknowledgements were
        // lost, it may report original segments that had arrived before the timeout (RFC 5682 §3.1
        // step 3 (a)).
        let is_beyond = delivery.forward().after(recover);
        match self {
            Self::Retransmitted if !advanced => FrtoVerdict::Wait,
            Self::Retransmitted if has_new => FrtoVerdict::AskOn,
            Self::SentNew if has_original && !is_beyond => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }

    /// Evaluates an acknowledgement by the basic algorithm (RFC 5682 §2.1). `advanced` is true if
    /// the acknowledgement has moved SND.UNA, and false if it is a duplicate. `may_ask` is true
    /// under three conditions: the acknowledgement covers the retransmission, it does not cover the
    /// whole flight, and new data can be sent.
    ///
    /// In step 2, new data was sent and nothing further was retransmitted. An acknowledgement that
    /// then moves SND.UNA covers data that was sent only before the timeout, which was thus
    /// spurious.
    pub(crate) const fn judge_in_order(self, advanced: bool, may_ask: bool) -> FrtoVerdict {
        match self {
            Self::Retransmitted if advanced && may_ask => FrtoVerdict::AskOn,
            Self::SentNew if advanced => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }
}
