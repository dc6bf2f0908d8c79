//! Taking back what a loss has cost that was none: the acknowledgement was of the first copy (Eifel, RFC
//! 3522), every repetition arrived as a duplicate (D-SACK, RFC 3708), or the timeout was spurious
//! (`frto.rs`).

use crate::congestion::Congestion;
use crate::rest::pack::packed;
use linerate_wire::SeqNum;

/// How things were before the window was reduced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undo {
    /// The controller and its window.
    pub(crate) before: Congestion,
    /// SND.UNA, and the end of what had been sent.
    pub(crate) from: SeqNum,
    pub(crate) to: SeqNum,
    /// The clock of the timestamps option when the first repetition left, until an acknowledgement has
    /// shown which copy it means.
    pub(crate) first_repetition: Option<u32>,
    /// Bytes sent again that the peer has not reported as duplicates; `None` once that cannot be told.
    pub(crate) unexplained: Option<u32>,
}

packed!(Undo { before, from, to, first_repetition, unexplained });

impl Undo {
    pub(crate) const fn new(before: Congestion, from: SeqNum, to: SeqNum) -> Self {
        Self { before, from, to, first_repetition: None, unexplained: None }
    }

    /// `bytes` are sent again when the timestamps' clock shows `clock`.
    pub(crate) fn note_repetition(&mut self, bytes: u32, clock: u32) {
        if self.unexplained.is_none() {
            self.first_repetition = Some(clock);
        }
        self.unexplained = Some(self.unexplained.unwrap_or(0).saturating_add(bytes));
    }

    /// The peer has received `left` up to `right` twice. Was that the last repetition to be explained?
    pub(crate) fn explain(&mut self, left: SeqNum, right: SeqNum) -> bool {
        let ours = left.all_within(right - left, self.from, self.to - self.from);
        let Some(unexplained) = self.unexplained.as_mut().filter(|_| ours) else { return false };
        *unexplained = unexplained.saturating_sub(right - left);
        *unexplained == 0
    }
}
