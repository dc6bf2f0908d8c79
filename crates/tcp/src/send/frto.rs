//! F-RTO: detection of spurious timeouts (RFC 5682). After the first retransmission new data is
//! sent instead of old. If data sent only before the timeout is then acknowledged, nothing was
//! lost.

use super::delivery::Delivery;
use crate::compact::pack::packed_enum;
use linerate_wire::SeqNum;

/// The state of the algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// No timeout is being judged.
    Off,
    /// Step 1: the first segment was retransmitted; its answer is outstanding.
    Retransmitted,
    /// Step 2: after a new acknowledgement, new data was sent instead of old.
    SentNew,
}

packed_enum!(Frto { Off, Retransmitted, SentNew });

/// The conclusion from an acknowledgement after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrtoVerdict {
    /// The flight is lost, or it is undecidable: retransmit it.
    Lost,
    /// The retransmission is not yet answered.
    Wait,
    /// Continue by sending new data.
    AskOn,
    /// The timeout was spurious: nothing was lost.
    Spurious,
}

impl Frto {
    pub(crate) const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Judges an acknowledgement by the SACK-enhanced algorithm (§3.1): whether it `advanced`
    /// SND.UNA, its delivery, and whether there is new data to send. `recover` is RecoveryPoint,
    /// the end of the data sent before the timeout.
    pub(crate) fn judge(
        self,
        advanced: bool,
        delivery: &Delivery,
        recover: SeqNum,
        has_new: bool,
    ) -> FrtoVerdict {
        let has_original = delivery.first_original.is_some_and(|seq| seq.before(recover));
        // Answers to new data repeat blocks whose first reports may have been lost (step 3 (a)).
        let is_beyond = delivery.forward().after(recover);
        match self {
            Self::Retransmitted if !advanced => FrtoVerdict::Wait,
            Self::Retransmitted if has_new => FrtoVerdict::AskOn,
            Self::SentNew if has_original && !is_beyond => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }

    /// Judges an acknowledgement by the basic algorithm (§2.1): whether it `advanced` SND.UNA or
    /// was a duplicate. `may_ask` says that it covers the retransmission but not the whole flight,
    /// and that new data can be sent. A second advance was sent before the timeout only.
    pub(crate) const fn judge_in_order(self, advanced: bool, may_ask: bool) -> FrtoVerdict {
        match self {
            Self::Retransmitted if advanced && may_ask => FrtoVerdict::AskOn,
            Self::SentNew if advanced => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }
}
