//! F-RTO: was a timeout spurious, and what it took for lost only late (RFC 5682)? After the first
//! retransmission new data is sent instead of old, and if what was sent before the timeout, and not since, is
//! acknowledged nevertheless, it was never lost.

use super::delivery::Delivery;
use crate::rest::pack::packed_enum;
use linerate_wire::SeqNum;

/// Where the algorithm stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frto {
    /// There is nothing to find out.
    Off,
    /// Step 1: the first segment was sent again; nothing else is, until it is answered.
    Retransmitted,
    /// Step 2: the answer was new, and new data was sent instead of old.
    SentNew,
}

packed_enum!(Frto { Off, Retransmitted, SentNew });

/// What an acknowledgement after a timeout shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrtoVerdict {
    /// What was in flight is lost, or there is no telling: send it again.
    Lost,
    /// The retransmission is not answered yet.
    Wait,
    /// Ask on, with new data.
    AskOn,
    /// The timeout came too early: nothing was lost.
    Spurious,
}

impl Frto {
    pub(crate) const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// The SACK-enhanced algorithm (§3.1): judges an acknowledgement, whether it `advanced` SND.UNA, what it
    /// delivered, and whether there is new data to send. `recover` is RecoveryPoint, the end of what was sent before
    /// the timeout.
    pub(crate) fn judge(
        self,
        advanced: bool,
        delivery: &Delivery,
        recover: SeqNum,
        has_new: bool,
    ) -> FrtoVerdict {
        let has_original = delivery.first_original.is_some_and(|seq| seq.before(recover));
        // Answers to new data repeat blocks that the path may have lost before the timeout (step 3 (a)).
        let is_beyond = delivery.forward().after(recover);
        match self {
            Self::Retransmitted if !advanced => FrtoVerdict::Wait,
            Self::Retransmitted if has_new => FrtoVerdict::AskOn,
            Self::SentNew if has_original && !is_beyond => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }

    /// With one that does not (§2.1): judges an acknowledgement, whether it `advanced` SND.UNA or was a
    /// duplicate, and whether it `may_ask`: it covers what was sent again and not all that was in flight,
    /// and there is new data that can be sent. What advances it once more was sent before the timeout and
    /// not since.
    pub(crate) const fn judge_in_order(self, advanced: bool, may_ask: bool) -> FrtoVerdict {
        match self {
            Self::Retransmitted if advanced && may_ask => FrtoVerdict::AskOn,
            Self::SentNew if advanced => FrtoVerdict::Spurious,
            _ => FrtoVerdict::Lost,
        }
    }
}
