//! F-RTO: detection of spurious timeouts (RFC 5682). After the first retransmission, new data is
//! sent instead of further retransmissions. If the peer then acknowledges data that was sent only
//! before the timeout, the timeout was spurious.

use super::delivery::Delivery;
use crate::compact::pack::packed_enum;
use linerate_wire::SeqNum;

/// The state of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// No timeout is being judged.
    Off,
    /// Step 1: the first segment was retransmitted, and no acknowledgement has arrived since.
    Retransmitted,
    /// Step 2: an acknowledgement of new data has arrived, and new data was sent instead of
    /// retransmissions.
    SentNew,
}

packed_enum!(Frto { Off, Retransmitted, SentNew });

/// The conclusion from an acknowledgement after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrtoVerdict {
    /// The flight is lost, or the cause of the timeout cannot be determined: retransmit the flight.
    Lost,
    /// The retransmission is not yet acknowledged: wait.
    Wait,
    /// Undecided: continue by sending new data.
    AskOn,
    /// The timeout was spurious: nothing was lost.
    Spurious,
}

impl Frto {
    pub(crate) const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Judges an acknowledgement by the SACK-enhanced algorithm (RFC 5682 §3.1). The inputs are:
    /// whether it `advanced` SND.UNA, the delivery, and whether there is new data to send.
    /// `recover` is RecoveryPoint, the end of the data sent before the timeout.
    pub(crate) fn judge(
        self,
        advanced: bool,
        delivery: &Delivery,
        recover: SeqNum,
        has_new: bool,
    ) -> FrtoVerdict {
        let has_original = delivery.first_original.is_some_and(|seq| seq.before(recover));
        // Answers to new data repeat SACK blocks whose first reports may have been lost (RFC 5682
        // §3.1 step 3 (a)).
        let is_beyond = delivery.forward().after(recover);
        match self {
            Self::Retransmitted if !advanced => FrtoVerdict::Wait,
            Self::Retransmitted if has_new => FrtoVerdict::AskOn,
            Self::SentNew if has_original && !is_beyond => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }

    /// Judges an acknowledgement by the basic algorithm (§2.1): whether it `advanced` SND.UNA or
    /// was a duplicate. `may_ask` says that the acknowledgement covers the retransmission but not
    /// the whole flight, and that new data can be sent. A second acknowledgement that advances
    /// SND.UNA covers data sent before the timeout only, so the timeout was spurious.
    pub(crate) const fn judge_in_order(self, advanced: bool, may_ask: bool) -> FrtoVerdict {
        match self {
            Self::Retransmitted if advanced && may_ask => FrtoVerdict::AskOn,
            Self::SentNew if advanced => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }
}
