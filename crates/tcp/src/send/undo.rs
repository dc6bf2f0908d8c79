//! The record of a loss recovery: the state to restore if the recovery proves spurious, and the
//! evidence for that (RFC 3522, RFC 3708). `frto.rs` collects further evidence after timeouts.

use super::frto::{Frto, FrtoVerdict};
use super::loss::{Loss, Phase};
use super::recovery::News;
use crate::Connection;
use crate::compact::pack::packed;
use crate::congestion::Congestion;
use crate::options::before;
use alloc::boxed::Box;
use alloc::vec::Vec;
use linerate_units::Instant;
use linerate_wire::{SackBlock, SeqNum};

/// The maximum number of retransmitted ranges that are recorded for a recovery. If a recovery has
/// more of them, reports of duplicates cannot undo it.
const MOST_RANGES: usize = 256;

/// A loss recovery that may be undone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undo {
    /// The state of congestion control before the recovery reduced the window.
    pub(crate) before: Congestion,
    /// Whether the first retransmission of the recovery was sent.
    has_begun: bool,
    /// RetransmitTS (RFC 3522 §3.2 step 2): the timestamp of the first retransmission. `None`
    /// before this retransmission is sent, and once an acknowledgement was compared with it.
    retransmit_stamp: Option<u32>,
    /// The retransmitted ranges that the peer has not yet reported as duplicates. `None` if reports
    /// of duplicates cannot undo this recovery any more.
    unexplained: Option<Vec<SackBlock>>,
}

packed!(Undo { before, has_begun, retransmit_stamp, unexplained });

impl Undo {
    pub(crate) const fn new(before: Congestion) -> Self {
        Self { before, has_begun: false, retransmit_stamp: None, unexplained: Some(Vec::new()) }
    }

    /// Records the retransmission of `range` with the timestamp `stamp`. `una` is the oldest
    /// unacknowledged sequence number.
    pub(crate) fn note_retransmission(&mut self, range: SackBlock, una: SeqNum, stamp: u32) {
        if !self.has_begun {
            self.has_begun = true;
            // Eifel detection compares this timestamp with the echo in the next acknowledgement.
            // The echo is that of the segment that fills the hole at SND.UNA. So the comparison is
            // valid only if the range at SND.UNA was retransmitted (RFC 3522 §3.2). Otherwise, the
            // echo may be that of a retransmission in the previous recovery, and would look like
            // the echo of an original segment.
            self.retransmit_stamp = (range.left == una).then_some(stamp);
        }
        let Some(ranges) = &mut self.unexplained else { return };
        // If a range was retransmitted twice, two copies may arrive even if the original was lost.
        // A reported duplicate then does not show a spurious retransmission, so duplicates cannot
        // undo this recovery.
        if ranges.len() == MOST_RANGES || ranges.iter().any(|&known| overlaps(known, range)) {
            self.unexplained = None;
        } else if let Some(last) = ranges.last_mut().filter(|last| last.right == range.left) {
            last.right = range.right;
        } else {
            ranges.push(range);
        }
    }

    /// Returns and clears RetransmitTS, because only the first acceptable acknowledgement after the
    /// retransmission is compared with it (RFC 3522 §3.2 step 3).
    pub(crate) const fn take_stamp(&mut self) -> Option<u32> {
        self.retransmit_stamp.take()
    }

    /// Handles a report that the peer has received `range` twice. Returns whether every
    /// retransmission has now arrived as a duplicate. If so, all original segments have arrived too
    /// (RFC 3708 §2). If `range` was not retransmitted in this recovery, the network has duplicated
    /// it, and the report is no evidence.
    pub(crate) fn explain(&mut self, range: SackBlock) -> bool {
        let Some(ranges) = &mut self.unexplained else { return false };
        let mut explains = false;
        let mut beyond = None;
        ranges.retain_mut(|known| {
            if !overlaps(*known, range) {
                return true;
            }
            explains = true;
            let end = core::mem::replace(&mut known.right, range.left);
            if end.after(range.right) {
                beyond = Some(SackBlock { left: range.right, right: end });
            }
            known.left.before(known.right)
        });
        ranges.extend(beyond);
        explains && ranges.is_empty()
    }
}

impl Connection {
    /// Saves the state of congestion control at the start of a recovery. It can be restored until
    /// the next recovery begins.
    pub(super) fn remember_for_undo(&mut self) {
        self.sender.undo = Some(Box::new(Undo::new(self.sender.congestion.clone())));
    }

    /// Records the retransmission of `range`. A tail loss probe, which is sent outside recovery, is
    /// not recorded.
    pub(super) fn note_retransmission(&mut self, now: Instant, range: SackBlock) {
        let recovers = self.sender.loss.phase != Phase::Open;
        if let Some(undo) = self.sender.undo.as_mut().filter(|_| recovers) {
            undo.note_retransmission(range, self.snd.una, self.timestamps.clock(now));
        }
    }

    /// Undoes the recovery in progress or the most recent recovery, if the acknowledgement `news`
    /// shows that it was spurious.
    pub(super) fn judge_recovery(
        &mut self,
        now: Instant,
        news: &News<'_>,
        duplicate: Option<SackBlock>,
    ) {
        let by_timeout = self.sender.loss.phase == Phase::AfterTimeout;
        let is_spurious_timeout = self.judge_timeout(news);
        if is_spurious_timeout || self.is_spurious(news, duplicate) {
            if by_timeout { self.undo_timeout(now) } else { self.undo(now) }
        }
    }

    /// Whether the acknowledgement shows that nothing was lost. It does if every retransmission has
    /// now arrived as a duplicate (RFC 3708). The first acceptable acknowledgement after the first
    /// retransmission also does, if it echoes a timestamp from before this retransmission (Eifel
    /// detection, RFC 3522 §3.2 steps 3 to 5).
    fn is_spurious(&mut self, news: &News<'_>, duplicate: Option<SackBlock>) -> bool {
        let Some(undo) = &mut self.sender.undo else { return false };
        let stamp = if news.advanced { undo.take_stamp() } else { None };
        if let Some(block) = duplicate {
            return undo.explain(block);
        }
        // If all acknowledgements of the original segments were lost, the acknowledgement of the
        // retransmission covers all data and echoes an old timestamp. This loss was real, so an
        // acknowledgement of all data does not undo the recovery. The exception is a peer that has
        // sent D-SACKs before. Its acknowledgement of the retransmission would contain a D-SACK.
        let is_whole_flight = self.snd.una == self.snd.max;
        if is_whole_flight && self.statistics.duplicates_reported == 0 {
            return false;
        }
        let Some(stamp) = stamp else { return false };
        let echo = self.timestamps.of(&news.segment).map_or(0, |timestamps| timestamps.echo);
        let is_original = echo != 0 && before(echo, stamp);
        // Recovery began because segments that were sent after the original had arrived before it.
        // Hence the path reorders segments (RFC 8985 §6.2 step 3).
        self.sender.rack.reordering_seen |=
            is_original && self.sender.loss.phase == Phase::FastRecovery;
        is_original
    }

    /// Passes the acknowledgement to F-RTO, and returns whether it shows that the timeout was
    /// spurious (RFC 5682 §3.1). Segments with data that acknowledge nothing new are ignored,
    /// because they are no duplicate ACKs.
    fn judge_timeout(&mut self, news: &News<'_>) -> bool {
        let frto = self.sender.loss.frto;
        let is_answer = news.advanced || news.delivery.bytes > 0 || news.segment.payload.is_empty();
        if !frto.is_on() || !is_answer {
            return false;
        }
        // SND.WND is updated only after this step. The right edge of the peer's window is therefore
        // computed from the segment.
        let edge = news.segment.ack + self.scaled(news.segment.window);
        let has_new = self.sender.has_unsent(self.snd.nxt) && edge.after(self.snd.nxt);
        let verdict = frto.judge(news.advanced, &news.delivery, self.sender.loss.recover, has_new);
        self.sender.loss.frto = match verdict {
            FrtoVerdict::Wait => frto,
            FrtoVerdict::AskOn => Frto::SentNew,
            FrtoVerdict::Lost | FrtoVerdict::Spurious => Frto::Off,
        };
        verdict == FrtoVerdict::Spurious
    }

    /// Undoes a spurious timeout. The segments that were sent before the timeout were only late, so
    /// their round-trip times become valid samples.
    pub(super) fn undo_timeout(&mut self, now: Instant) {
        self.sender.rtt.accept_late_samples();
        self.undo(now);
    }

    /// Restores the congestion window from before the recovery, because nothing was lost. Ends the
    /// recovery if it is in progress.
    fn undo(&mut self, now: Instant) {
        self.statistics.spurious_recoveries += 1;
        if let Some(undo) = self.sender.undo.take() {
            self.sender.congestion.restore(undo.before);
            // The segment size in the saved state may be larger than the present one, because the
            // path MTU has decreased since.
            let full = self.full_segment();
            self.sender.congestion.controller().window_mut().set_mss(full);
        }
        if self.sender.loss.phase != Phase::Open {
            self.sender.scoreboard.forgive();
            self.sender.loss = Loss::new(self.sender.loss.recover);
            self.watch_what_is_left(now);
        }
    }
}

fn overlaps(one: SackBlock, other: SackBlock) -> bool {
    one.left.before(other.right) && other.left.before(one.right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::CongestionName;

    fn block(left: u32, right: u32) -> SackBlock {
        SackBlock { left: SeqNum::new(left), right: SeqNum::new(right) }
    }

    /// Returns a recovery that has retransmitted `ranges`. The oldest unacknowledged number is 0.
    fn recovery(ranges: &[(u32, u32)]) -> Undo {
        let mut undo = Undo::new(Congestion::new(CongestionName::NewReno, 1_000, 10, false, 0));
        for (stamp, &(left, right)) in (7..).zip(ranges) {
            undo.note_retransmission(block(left, right), SeqNum::new(0), stamp);
        }
        undo
    }

    #[test]
    fn only_the_first_retransmission_of_the_oldest_segment_is_judged_and_only_once() {
        let mut undo = recovery(&[(0, 10), (20, 30)]);
        assert_eq!((undo.take_stamp(), undo.take_stamp()), (Some(7), None));
        assert_eq!(recovery(&[(20, 30), (0, 10)]).take_stamp(), None);
    }

    #[test]
    fn every_retransmitted_byte_has_to_be_reported_as_a_duplicate() {
        let mut undo = recovery(&[(0, 10), (10, 20), (40, 50)]);
        for (range, is_all) in [
            ((5, 15), false),
            ((20, 40), false),
            ((0, 5), false),
            ((30, 60), false),
            ((15, 20), true),
        ] {
            assert_eq!(undo.explain(block(range.0, range.1)), is_all, "{range:?}");
        }
    }

    #[test]
    fn duplicates_prove_nothing_of_what_was_retransmitted_twice_or_in_too_many_ranges() {
        let mut undo = recovery(&[(0, 10), (5, 15)]);
        assert!(!undo.explain(block(0, 15)));
        for (count, is_all) in [(256, true), (257, false)] {
            let ranges: Vec<_> = (0..count).map(|index| (index * 20, index * 20 + 10)).collect();
            assert_eq!(recovery(&ranges).explain(block(0, 20 * count)), is_all, "{count} ranges");
        }
        assert!(!recovery(&[]).explain(block(0, 10)));
    }
}
