//! The state of AccECN (RFC 9768): the counters of both endpoints, the decoding of the three-bit
//! ACE field, and the schedule of AccECN options. `feedback.rs` contains the methods by which a
//! connection uses this state.

use crate::compact::pack::{packed, packed_enum};
use linerate_wire::{Ecn, EcnCounts, EcnOrder, SeqNum, TcpFlags};

/// The number of values of the ACE field (DIVACE). If an ACK covers at least this many segments,
/// the field may have wrapped since the ACK before it.
const ROUND: u32 = 8;

/// The number of segments without the option after which a growing counter is reported again (RFC
/// 9768 §3.2.3.3, "continual repetition"). With a lower number, more of our segments would carry
/// the option, and each of them takes the slow path at the peer.
const REPEAT_AFTER: u64 = 16;

/// A counter that has grown by this number of bytes is reported. This is a quarter of the 2^22
/// bytes that RFC 9768 permits, so that the loss of three consecutive options does no harm.
const REPEAT_AFTER_BYTES: u32 = 1 << 20;

/// The counters of one direction (RFC 9768 §3.2): packets with a CE mark, and bytes of data by
/// codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cep: u32,
    pub(crate) ceb: u32,
    pub(crate) e0b: u32,
    pub(crate) e1b: u32,
}

impl Counters {
    /// The initial values of the counters. They are not all zero, so that the peer can recognise
    /// counters that the path has set to zero (RFC 9768 §3.2.1).
    pub(crate) const INITIAL: Self = Self { cep: 5, ceb: 0, e0b: 1, e1b: 1 };

    /// Counts `packets` packets that arrived with the codepoint `ecn`, and carried `bytes` bytes of
    /// data together.
    fn count(&mut self, ecn: Ecn, packets: u32, bytes: u32) {
        let counter = match ecn {
            Ecn::NotEct => return,
            Ecn::Ce => &mut self.ceb,
            Ecn::Ect0 => &mut self.e0b,
            Ecn::Ect1 => &mut self.e1b,
        };
        *counter = counter.wrapping_add(bytes);
        if ecn == Ecn::Ce {
            self.cep = self.cep.wrapping_add(packets);
        }
    }

    /// Returns the growth of the byte counters since `before`, for ECT(0), CE and ECT(1) in this
    /// order.
    fn since(&self, before: &Self) -> [u32; 3] {
        [
            self.e0b.wrapping_sub(before.e0b),
            self.ceb.wrapping_sub(before.ceb),
            self.e1b.wrapping_sub(before.e1b),
        ]
    }
}

packed!(Counters { cep, ceb, e0b, e1b });

/// The evidence about the peer's AccECN options (RFC 9768 §3.2.3.2.3, §3.2.3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeerOptions {
    /// The peer has not yet sent a segment that should carry an option.
    Unknown,
    /// The peer sends options, and they arrive.
    Options,
    /// The first segment of the peer that should carry an option had none. Either the peer sends no
    /// options, or the path removes them.
    None,
    /// The path has set the counters in the peer's first option to zero, so its options are
    /// ignored.
    Zeros,
}

packed_enum!(PeerOptions { Unknown, Options, None, Zeros });

/// The feedback in one segment of the peer about CE marks on our packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// The value of the ACE field.
    pub(crate) ace: u16,
    pub(crate) option: Option<EcnCounts>,
    /// The estimated number of segments that the ACK newly acknowledges.
    pub(crate) segments: u32,
    /// The number of data bytes in a full segment.
    pub(crate) mss: u32,
}

/// The AccECN state of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accurate {
    /// `r.cep`, `r.ceb`, `r.e0b` and `r.e1b`: the counters of packets and bytes that we have
    /// received.
    pub(crate) received: Counters,
    /// The values of `received` in the AccECN option that we sent most recently.
    reported: Counters,
    /// `s.cep`, `s.ceb`, `s.e0b` and `s.e1b`: the counters of our packets and bytes that have
    /// arrived at the peer, according to its feedback.
    pub(crate) delivered: Counters,
    /// The number of segments that we had sent when the most recent mark arrived. `marks` counts
    /// the marks that had arrived since the final one of these segments was sent, and were thus not
    /// yet reported.
    marked_at: u64,
    marks: u32,
    /// The number of segments that we had received when the most recent marked segment arrived,
    /// including that segment.
    last_mark: u64,
    /// The number of segments that we had sent before the segment with our most recent AccECN
    /// option.
    option_at: u64,
    /// The number of SACK blocks for which the segment with our most recent AccECN option had room.
    pub(crate) blocks_beside: u8,
    /// The number of segments with data, from the next one on, that must carry an AccECN option.
    options_due: u8,
    /// The codepoint of the most recently received packet with data.
    last: Ecn,
    /// The codepoint of the packet with the peer's latest SYN or SYN-ACK.
    pub(crate) syn: Ecn,
    /// Whether a mark on the peer's SYN-ACK has been counted, so that a repeated SYN-ACK is not
    /// counted again.
    is_syn_ack_counted: bool,
    /// Whether the next acknowledgement without data answers the peer's SYN-ACK, and therefore
    /// reports the codepoint of that SYN-ACK.
    pub(crate) ends_handshake: bool,
    /// Whether we send no options any more, because the path seems to drop segments with them.
    pub(crate) options_disabled: bool,
    /// The number of bytes that had been sent before the first data with an option. The arrival of
    /// that data shows that the path passes options. `None` until this data is sent.
    pub(crate) first_option: Option<u64>,
    pub(crate) options: PeerOptions,
    /// The ACE field that is expected in the peer's next segment.
    pub(crate) ace: TcpFlags,
    /// SND.MAX when the peer most recently reported a mark, if it sends no options. Until all data
    /// before it is acknowledged, more marks are likely. Eight marks leave the ACE field unchanged,
    /// so an unchanged field is ambiguous during this time. Invariant: `None` if the peer's options
    /// arrive.
    marked_until: Option<SeqNum>,
    /// Whether this endpoint is the server: the peer's SYN has selected the AccECN mode.
    pub(crate) is_server: bool,
    /// Whether the handshake is complete. Before that, a server does not know whether its client is
    /// in AccECN mode.
    pub(crate) is_established: bool,
    /// Whether the path changes codepoints or the ECN fields. If so, we send Not-ECT.
    pub(crate) is_mangled: bool,
    /// Whether the peer's feedback is ignored, because the ACE field was zero in its ACK of our
    /// SYN-ACK (RFC 9768 table 4, note 1).
    pub(crate) ignores_ace: bool,
}

packed!(Accurate {
    received,
    reported,
    delivered,
    marked_at,
    marks,
    last_mark,
    option_at,
    blocks_beside,
    options_due,
    last,
    syn,
    is_syn_ack_counted,
    ends_handshake,
    options_disabled,
    first_option,
    options,
    ace,
    marked_until,
    is_server,
    is_established,
    is_mangled,
    ignores_ace,
});

impl Accurate {
    /// Creates the initial state. `is_server` is true if the peer's SYN has selected the AccECN
    /// mode, and false if the peer's SYN-ACK has selected it.
    pub(crate) const fn new(is_server: bool) -> Self {
        Self {
            received: Counters::INITIAL,
            reported: Counters::INITIAL,
            delivered: Counters::INITIAL,
            marked_at: 0,
            marks: 0,
            last_mark: 0,
            option_at: 0,
            blocks_beside: 0,
            options_due: 0,
            last: Ecn::NotEct,
            syn: Ecn::NotEct,
            is_syn_ack_counted: false,
            ends_handshake: false,
            options_disabled: false,
            first_option: None,
            options: PeerOptions::Unknown,
            ace: TcpFlags::of_ace(Counters::INITIAL.cep),
            marked_until: None,
            is_server,
            is_established: false,
            is_mangled: false,
            ignores_ace: false,
        }
    }

    /// Counts a mark on the peer's SYN-ACK. If several SYN-ACKs arrive, only one mark is counted
    /// (RFC 9768 §3.2.2.2).
    pub(crate) const fn count_marked_syn_ack(&mut self) {
        if !self.is_syn_ack_counted {
            self.is_syn_ack_counted = true;
            self.received.cep += 1;
        }
    }

    /// Counts `packets` packets that arrived together, each with the codepoint `ecn`, and with
    /// `bytes` bytes of data in all. Returns whether marks among them must be acknowledged at once
    /// (RFC 9768 §3.2.2.5.1).
    ///
    /// `received` and `sent` are the numbers of segments received and sent so far, and `pending` is
    /// the number of unacknowledged bytes. The packets of one coalesced segment cause at most one
    /// acknowledgement.
    pub(crate) fn count(
        &mut self,
        ecn: Ecn,
        [packets, bytes]: [u32; 2],
        [received, sent]: [u64; 2],
        pending: u32,
    ) -> bool {
        self.received.count(ecn, packets, bytes);
        if bytes > 0 {
            self.schedule_option(ecn, sent);
        }
        if ecn != Ecn::Ce {
            return false;
        }
        let follows_mark = self.last_mark > 0 && self.last_mark + u64::from(packets) == received;
        self.last_mark = received;
        if self.marked_at != sent {
            (self.marked_at, self.marks) = (sent, 0);
        }
        self.marks = self.marks.saturating_add(packets);
        let enough = if pending > 0 { 2 } else { 3 };
        (bytes > 0 && !follows_mark) || self.marks >= enough
    }

    /// Schedules the next options after data with the codepoint `ecn` (RFC 9768 §3.2.3.3). If the
    /// codepoint differs from that of the previous data, the next two segments with data carry an
    /// option. Otherwise one is scheduled for every mark, and for other codepoints at intervals.
    fn schedule_option(&mut self, ecn: Ecn, sent: u64) {
        let changes = ecn != Ecn::NotEct && ecn != self.last;
        self.last = ecn;
        let is_late = sent.wrapping_sub(self.option_at) >= REPEAT_AFTER
            || self.received.since(&self.reported).iter().any(|&grown| grown >= REPEAT_AFTER_BYTES);
        if changes {
            self.options_due = 2;
        } else if ecn == Ecn::Ce || (ecn != Ecn::NotEct && is_late) {
            self.options_due = self.options_due.max(1);
        }
    }

    /// Whether the next segment with data must carry an AccECN option, according to the schedule.
    pub(crate) const fn is_option_due(&self) -> bool {
        self.options_due > 0 && !self.options_disabled
    }

    /// Returns an AccECN option of at most `room` bytes. It contains every counter that has ever
    /// changed. If there is no room for all of them, those that have not changed since our most
    /// recent option are omitted (RFC 9768 §3.2.3.3). `None` if there is no room for the counters
    /// that have changed since then.
    pub(crate) fn option(&self, room: usize) -> Option<EcnCounts> {
        if self.options_disabled {
            return None;
        }
        let [e0b, ceb, e1b] = self.received.since(&Counters::INITIAL).map(|grown| grown > 0);
        let order =
            if e1b && (!e0b || self.last == Ecn::Ect1) { EcnOrder::One } else { EcnOrder::Zero };
        let [first, last] = if order == EcnOrder::One { [e1b, e0b] } else { [e0b, e1b] };
        let wanted = if last {
            3
        } else if ceb {
            2
        } else {
            u8::from(first)
        };
        let all = self.all_counts(order);
        let [new_e0b, new_ceb, new_e1b] =
            self.received.since(&self.reported).map(|grown| grown > 0);
        let new_last = if order == EcnOrder::One { new_e0b } else { new_e1b };
        let needed = if new_last { 3 } else { 2 * u8::from(new_ceb) };
        (needed.max(1)..=wanted)
            .rev()
            .map(|count| all.cut_to(count))
            .find(|counts| counts.option_length() <= room)
    }

    /// Returns the AccECN option of a SYN-ACK, or of the ACK that answers it: all counters, or as
    /// many as fit `room` bytes. All have their initial values, which the peer knows. If they
    /// arrive unchanged, the path passes the option (RFC 9768 §3.2.3.2.1).
    pub(crate) fn first_option(&self, room: usize) -> Option<EcnCounts> {
        if self.options_disabled {
            return None;
        }
        let all = self.all_counts(EcnOrder::Zero);
        (0..=3).rev().map(|count| all.cut_to(count)).find(|counts| counts.option_length() <= room)
    }

    const fn all_counts(&self, order: EcnOrder) -> EcnCounts {
        EcnCounts::new(order, self.received.e0b, self.received.ceb, self.received.e1b)
    }

    /// Records that a segment with the option is sent. `sent` segments were sent before it.
    pub(crate) const fn on_option_sent(&mut self, sent: u64) {
        self.reported = self.received;
        self.option_at = sent;
        self.options_due = self.options_due.saturating_sub(1);
    }

    /// Whether the most recently sent segment carried an AccECN option. `sent` is the number of
    /// segments sent so far.
    pub(crate) const fn has_just_reported(&self, sent: u64) -> bool {
        self.option_at + 1 == sent
    }

    /// Draws conclusions from `option`, the option of the first segment of the peer that should
    /// carry one, if it has one (RFC 9768 §3.2.3.2.3, §3.2.3.2.4).
    pub(crate) fn note_first_option(&mut self, option: Option<EcnCounts>) {
        let is_zeroed = |option: EcnCounts| option.e0b() == Some(0) || option.e1b() == Some(0);
        self.options = match option {
            None => PeerOptions::None,
            Some(option) if is_zeroed(option) => PeerOptions::Zeros,
            Some(_) => PeerOptions::Options,
        };
    }

    /// Processes the ACK of our SYN-ACK, whose ACE field reports the codepoint with which the
    /// SYN-ACK arrived (RFC 9768 table 4). Returns whether that codepoint was CE. We sent the
    /// SYN-ACK as Not-ECT, so a report of another codepoint means that the path has changed it.
    pub(crate) const fn process_handshake_ack(&mut self, ace: u16) -> bool {
        let is_marked = ace == 0b110;
        self.ignores_ace = ace == 0;
        self.is_mangled |= matches!(ace, 0b000 | 0b011 | 0b100 | 0b110);
        if is_marked {
            self.delivered.cep = 6;
        }
        self.ace = TcpFlags::of_ace(if self.ignores_ace { 0 } else { self.delivered.cep });
        is_marked
    }

    /// Processes the feedback of an acknowledgement that is newer than all processed before.
    /// Returns the number of marks that it newly reports.
    pub(crate) fn process_feedback(
        &mut self,
        feedback: &Feedback,
        una: SeqNum,
        sent: SeqNum,
    ) -> u32 {
        let option = feedback.option.filter(|_| self.options != PeerOptions::Zeros);
        if option.is_some() && self.options != PeerOptions::Options {
            // The peer's first segment had no option, but this later segment of the peer has one,
            // so options arrive (RFC 9768 §3.2.3.2.3).
            self.options = PeerOptions::Options;
            self.marked_until = None;
        }
        let marked_bytes = option.and_then(|option| self.process_counts(option));
        if self.marked_until.is_some_and(|until| !una.before(until)) {
            self.marked_until = None;
        }
        self.ace = TcpFlags::of_ace(feedback.ace.into());
        if self.ignores_ace {
            return 0;
        }
        let marks = self.decode_ace(feedback, marked_bytes);
        if marks > 0 {
            self.delivered.cep = self.delivered.cep.wrapping_add(marks);
            self.marked_until = (self.options != PeerOptions::Options).then_some(sent);
        } else if marked_bytes.is_some_and(|bytes| bytes > 0) && feedback.segments < ROUND {
            // The option reports newly marked bytes, but the ACE field reports no newly marked
            // packet. The path therefore changes one of the two (RFC 9768 §3.2.3.2.5).
            self.is_mangled = true;
        }
        marks
    }

    /// Updates the byte counters. Returns the number of newly marked bytes, or `None` if the option
    /// does not contain the counter of marked bytes (RFC 9768 §3.2.3.1).
    fn process_counts(&mut self, option: EcnCounts) -> Option<u32> {
        let advance = |count: &mut u32, field: u32| {
            let grown = field.wrapping_sub(*count) & EcnCounts::MASK;
            *count = count.wrapping_add(grown);
            grown
        };
        option.e0b().map(|field| advance(&mut self.delivered.e0b, field));
        option.e1b().map(|field| advance(&mut self.delivered.e1b, field));
        option.ceb().map(|field| advance(&mut self.delivered.ceb, field))
    }

    /// Returns the number of new marks that the ACE field reports. The field counts modulo eight.
    /// If the ACK covers too few segments for a wrap of the field, the smallest possible number is
    /// returned. Otherwise the largest number that the segments permit is returned, unless the
    /// option or the recent past makes the smallest number more likely (RFC 9768 §3.2.2.5.2,
    /// appendix A.2). The result may exceed the number of segments, since ACKs without data may be
    /// marked too.
    fn decode_ace(&self, feedback: &Feedback, marked_bytes: Option<u32>) -> u32 {
        let fewest = u32::from(feedback.ace).wrapping_sub(self.delivered.cep) % ROUND;
        let segments = feedback.segments;
        if segments < ROUND {
            return fewest;
        }
        let safe = segments - (segments - fewest) % ROUND;
        match marked_bytes {
            Some(0) => fewest,
            Some(bytes) if bytes > feedback.mss.saturating_mul(fewest) => safe,
            Some(bytes) if bytes / safe < feedback.mss / 2 => fewest,
            Some(_) => safe,
            // The ACE field is unchanged, no option counts marked bytes, and there were no recent
            // marks. So it is more likely that no mark was added than that eight or sixteen were.
            None if fewest == 0 && !self.is_ambiguous() => 0,
            None => safe,
        }
    }

    /// Whether an unchanged ACE field may mean that eight marks were added. The counters in each
    /// ACK must then be processed, even if the field is unchanged.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.marked_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const MSS: u32 = 1_460;

    fn seq(number: u32) -> SeqNum {
        SeqNum::new(number)
    }

    /// Returns the number of new marks that are decoded from the ACE field `ace` in an ACK of
    /// `segments` segments, if `before` marks were counted before this ACK. `ceb` is the number of
    /// newly marked bytes, if an option reports it.
    fn marks_after(before: u32, ace: u16, segments: u32, ceb: Option<u32>) -> (u32, Accurate) {
        let mut accurate = Accurate::new(true);
        accurate.delivered.cep += before;
        if before > 0 {
            accurate.marked_until = Some(seq(10));
        }
        let option = ceb.map(|ceb| EcnCounts::new(EcnOrder::Zero, 1, ceb, 1));
        let feedback = Feedback { ace, option, segments, mss: MSS };
        (accurate.process_feedback(&feedback, seq(0), seq(20)), accurate)
    }

    #[test]
    fn the_ace_field_means_the_fewest_possible_marks() {
        for marks in 0..8 {
            let ace = u16::try_from((5 + marks) % 8).unwrap();
            assert_eq!(marks_after(0, ace, 7, None).0, marks);
            assert_eq!(
                marks_after(0, ace, 0, None).0,
                marks,
                "more marks than segments are possible"
            );
        }
    }

    /// RFC 9768 appendix A.2.1: the ACE field grows by two. If the ACK covers nine segments, two
    /// marks are decoded. If it covers ten, the field may have wrapped, and ten marks are decoded.
    #[test]
    fn an_ace_field_that_may_have_wrapped_is_decoded_safely() {
        assert_eq!(marks_after(0, 7, 9, None).0, 2);
        assert_eq!(marks_after(0, 7, 10, None).0, 10);
        assert_eq!(marks_after(0, 6, 17, None).0, 17);
        assert_eq!(marks_after(0, 5, 24, None).0, 0, "unchanged, without earlier marks");
        assert_eq!(marks_after(3, 0, 24, None).0, 24, "unchanged, after marks");
    }

    /// RFC 9768 appendix A.2.2 with its three examples: the number of newly marked bytes shows
    /// whether the ACE field has wrapped.
    #[test]
    fn the_ceb_counter_resolves_a_wrap_of_the_ace_field() {
        assert_eq!(marks_after(0, 5, 8, Some(1_460)).0, 8, "more bytes than one segment has");
        assert_eq!(marks_after(0, 7, 10, Some(1_460)).0, 2, "too few bytes for ten segments");
        assert_eq!(marks_after(0, 4, 15, Some(10_200)).0, 7);
        assert_eq!(marks_after(0, 5, 24, Some(0)).0, 0);
    }

    /// RFC 9768 §3.2.3.1: the counters in the AccECN option have 24 bits and wrap, so their growth
    /// is computed modulo 2^24.
    #[test]
    fn byte_counters_grow_by_the_least_that_a_field_can_mean() {
        let mut accurate = Accurate::new(true);
        accurate.delivered.ceb = 0x0200_0001;
        let option = EcnCounts::new(EcnOrder::One, 0, 1_461, 1).cut_to(2);
        assert_eq!(accurate.process_counts(option), Some(1_460));
        assert_eq!(accurate.delivered, Counters { ceb: 0x0200_05b5, ..Counters::INITIAL });
    }

    /// RFC 9768 §3.2.3.2.5: if the option reports marked bytes while the ACE field reports no
    /// marked packet, the path has changed the fields.
    #[test]
    fn marked_bytes_without_a_marked_packet_reveal_a_mangling_path() {
        assert!(marks_after(0, 5, 7, Some(1_460)).1.is_mangled);
        assert!(!marks_after(0, 6, 7, Some(1_460)).1.is_mangled);
        assert!(!marks_after(0, 5, 8, Some(1_460)).1.is_mangled, "the ACE field has wrapped");
    }

    fn after(packets: &[(Ecn, u32)]) -> Accurate {
        let mut accurate = Accurate::new(true);
        for &(ecn, bytes) in packets {
            let _ = accurate.count(ecn, [1, bytes], [0, 0], 0);
        }
        accurate
    }

    #[test]
    fn the_option_holds_the_changed_counters_in_the_shorter_order() {
        let option = |packets: &[(Ecn, u32)]| {
            let option = after(packets).option(12);
            option.map(|option| (option.order(), option.count()))
        };
        let (zero, one) = (EcnOrder::Zero, EcnOrder::One);
        assert_eq!(option(&[]), None);
        assert_eq!(option(&[(Ecn::Ect0, 9)]), Some((zero, 1)));
        assert_eq!(option(&[(Ecn::Ce, 9)]), Some((zero, 2)));
        assert_eq!(option(&[(Ecn::Ect1, 9)]), Some((one, 1)));
        assert_eq!(option(&[(Ecn::Ect1, 9), (Ecn::Ce, 9)]), Some((one, 2)));
        assert_eq!(option(&[(Ecn::Ect1, 9), (Ecn::Ect0, 9)]), Some((zero, 3)));
        assert_eq!(option(&[(Ecn::Ect0, 9), (Ecn::Ect1, 9)]), Some((one, 3)));
    }

    /// RFC 9768 §3.2.3.3: an option must contain each counter that has changed since the previous
    /// option. If one of these counters does not fit, the whole option is omitted.
    #[test]
    fn only_unchanged_counters_are_cut_off_when_space_is_short() {
        let mut accurate = after(&[(Ecn::Ect0, 9), (Ecn::Ce, 9), (Ecn::Ect1, 9)]);
        assert_eq!(accurate.option(8), None);
        accurate.on_option_sent(0);
        let _ = accurate.count(Ecn::Ect1, [1, 5], [0, 0], 0);
        assert_eq!(accurate.option(8), Some(EcnCounts::new(EcnOrder::One, 10, 9, 15).cut_to(2)));
        assert_eq!(accurate.option(3), None);
        let _ = accurate.count(Ecn::Ect0, [1, 5], [0, 0], 0);
        assert_eq!(accurate.option(11), None, "ECT(0) has changed, too");
    }

    #[test]
    fn a_counter_is_reported_twice_when_it_begins_to_grow_and_then_regularly() {
        let mut accurate = Accurate::new(true);
        let mut reported = Vec::new();
        for sent in 0..40 {
            let _ = accurate.count(Ecn::Ect0, [1, 1_000], [sent, sent], 0);
            if accurate.is_option_due() {
                accurate.on_option_sent(sent);
                reported.push(sent);
            }
        }
        assert_eq!(reported, [0, 1, 17, 33]);
        for sent in 40..43 {
            let _ = accurate.count(Ecn::Ce, [1, 1_000], [sent, sent], 0);
            assert!(accurate.is_option_due(), "marks are always reported");
            accurate.on_option_sent(sent);
        }
        let _ = accurate.count(Ecn::Ce, [1, 0], [43, 43], 0);
        let _ = accurate.count(Ecn::NotEct, [1, 1_000], [44, 44], 0);
        while accurate.is_option_due() {
            accurate.on_option_sent(44);
        }
        let _ = accurate.count(Ecn::Ect0, [1, REPEAT_AFTER_BYTES], [45, 45], 0);
        while accurate.is_option_due() {
            accurate.on_option_sent(45);
        }
        let _ = accurate.count(Ecn::Ect0, [1, REPEAT_AFTER_BYTES], [46, 46], 0);
        assert!(accurate.is_option_due(), "long before the counter wraps");
    }

    /// RFC 9768 §3.2.2.5.1: a mark after an unmarked packet is acknowledged at once. Of consecutive
    /// marks, every second one causes an ACK on data, and every third one on segments without data.
    #[test]
    fn marks_are_acknowledged_promptly() {
        let mut accurate = Accurate::new(true);
        let mut count = |ecn, bytes, received, sent, pending| {
            accurate.count(ecn, [1, bytes], [received, sent], pending)
        };
        assert!(!count(Ecn::Ect0, 9, 1, 1, 9));
        assert!(count(Ecn::Ce, 9, 2, 1, 9), "the first mark");
        assert!(!count(Ecn::Ce, 9, 3, 2, 9));
        assert!(count(Ecn::Ce, 9, 4, 2, 9), "the second since the last ACK");
        assert!(!count(Ecn::Ce, 0, 5, 3, 0));
        assert!(!count(Ecn::Ce, 0, 6, 3, 0));
        assert!(count(Ecn::Ce, 0, 7, 3, 0), "the third mark on segments without data");
        assert!(!count(Ecn::Ce, 9, 8, 4, 9), "the previous packet was marked, too");
        assert!(count(Ecn::Ce, 9, 10, 4, 9), "an unmarked packet came between");
    }

    /// RFC 9768 table 4: the meaning of the ACE field in the ACK of a SYN-ACK.
    #[test]
    fn the_ack_of_the_syn_ack_is_decoded_by_table_4() {
        for (ace, cep, is_mangled, ignores_ace) in [
            (0, 5, true, true),
            (1, 5, false, false),
            (2, 5, false, false),
            (3, 5, true, false),
            (4, 5, true, false),
            (5, 5, false, false),
            (6, 6, true, false),
            (7, 5, false, false),
        ] {
            let mut accurate = Accurate::new(true);
            assert_eq!(accurate.process_handshake_ack(ace), ace == 6);
            assert_eq!(
                (accurate.delivered.cep, accurate.is_mangled, accurate.ignores_ace),
                (cep, is_mangled, ignores_ace),
                "{ace}"
            );
        }
    }
}
