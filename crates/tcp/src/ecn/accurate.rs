//! The accurate mode of ECN (RFC 9768): what both ends count, how a counter of three bits is read, and when
//! the option with the counts of bytes is sent. Pure: what follows from it for a connection is in
//! `feedback.rs`.

use crate::rest::pack::{packed, packed_enum};
use linerate_wire::{Ecn, EcnCounts, EcnOrder, SeqNum, TcpFlags};

/// An acknowledgement of so many segments can hide that the counter of three bits has come round (DIVACE).
const ROUND: u32 = 8;

/// Segments without the option after which a count that goes on growing is told once more (RFC 9768
/// §3.2.3.3, "continual repetition"). Each one that bears it takes the peer's slow path.
const REPEAT_AFTER: u64 = 16;

/// Bytes that a count may grow without being told: a quarter of the 2^22 that the RFC allows, so that three
/// losses in a row do no harm.
const REPEAT_AFTER_BYTES: u32 = 1 << 20;

/// The counters of one direction (RFC 9768 §3.2): of packets that came marked, and of the bytes in packets
/// of each codepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) cep: u32,
    pub(crate) ceb: u32,
    pub(crate) e0b: u32,
    pub(crate) e1b: u32,
}

impl Counters {
    /// RFC 9768 §3.2.1: what zeros on the way would be told from.
    pub(crate) const INITIAL: Self = Self { cep: 5, ceb: 0, e0b: 1, e1b: 1 };

    /// So many packets have come, with so many bytes of data together.
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

    /// What has changed since `before`, as bytes of each codepoint.
    fn since(&self, before: &Self) -> [u32; 3] {
        [
            self.e0b.wrapping_sub(before.e0b),
            self.ceb.wrapping_sub(before.ceb),
            self.e1b.wrapping_sub(before.e1b),
        ]
    }
}

packed!(Counters { cep, ceb, e0b, e1b });

/// What is known of the peer's options (RFC 9768 §3.2.3.2.3, §3.2.3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// No segment has come that should have had one.
    Unknown,
    /// They come.
    Options,
    /// The first segment that should have had one had none.
    None,
    /// The first was zeroed on the way: they say nothing.
    Zeros,
}

packed_enum!(Heard { Unknown, Options, None, Zeros });

/// What a segment says of marks on what we have sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feedback {
    /// The counter of three bits.
    pub(crate) ace: u16,
    pub(crate) option: Option<EcnCounts>,
    /// Segments that it acknowledges, as far as can be told.
    pub(crate) segments: u32,
    /// Bytes of a full one.
    pub(crate) mss: u32,
}

/// A connection in the accurate mode, at both its ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Accurate {
    /// `r.cep` and its companions: what has come.
    pub(crate) received: Counters,
    /// What of it the last option has told.
    told: Counters,
    /// `s.cep` and its companions: what the peer says that has come to it.
    pub(crate) heard: Counters,
    /// Segments that had been sent when the last mark came, and the marks since an acknowledgement left.
    marked_at: u64,
    marks: u32,
    /// Segments that had come when the last marked one came, itself counted.
    last_mark: u64,
    /// Segments that had been sent when the last option left.
    option_at: u64,
    /// Blocks of selective acknowledgement that had room beside it.
    pub(crate) blocks_beside: u8,
    /// Segments that shall still bear the option.
    options_due: u8,
    /// The codepoint of the last packet with data.
    last: Ecn,
    /// The codepoint of the peer's latest SYN, or SYN-ACK.
    pub(crate) syn: Ecn,
    /// Was a mark on the peer's SYN-ACK counted?
    syn_ack_counted: bool,
    /// Is the next bare acknowledgement that of a SYN-ACK?
    pub(crate) ends_handshake: bool,
    /// Options of ours do not come through, as it seems.
    pub(crate) muted: bool,
    /// Bytes that had been sent before the first data that bore one to try the way.
    pub(crate) first_option: Option<u64>,
    pub(crate) options: Heard,
    /// The three bits that the peer's next segment is expected to have.
    pub(crate) ace: TcpFlags,
    /// With a peer whose options do not come: marks were told of what was sent before this, so the counter
    /// may well come round. Invariant: `None` with one whose options do.
    marked_until: Option<SeqNum>,
    /// Was the mode entered by the peer's SYN, as a server does?
    pub(crate) serves: bool,
    /// Is the handshake complete? Before, a server cannot know which mode its client is in.
    pub(crate) established: bool,
    /// Something on the way changes codepoints, or the peer contradicts itself: nothing invites marks.
    pub(crate) mangled: bool,
    /// What the peer counts means nothing (table 4, note 1).
    pub(crate) deaf: bool,
}

packed!(Accurate {
    received,
    told,
    heard,
    marked_at,
    marks,
    last_mark,
    option_at,
    blocks_beside,
    options_due,
    last,
    syn,
    syn_ack_counted,
    ends_handshake,
    muted,
    first_option,
    options,
    ace,
    marked_until,
    serves,
    established,
    mangled,
    deaf,
});

impl Accurate {
    /// Entered by the peer's SYN, or by its SYN-ACK.
    pub(crate) const fn new(serves: bool) -> Self {
        Self {
            received: Counters::INITIAL,
            told: Counters::INITIAL,
            heard: Counters::INITIAL,
            marked_at: 0,
            marks: 0,
            last_mark: 0,
            option_at: 0,
            blocks_beside: 0,
            options_due: 0,
            last: Ecn::NotEct,
            syn: Ecn::NotEct,
            syn_ack_counted: false,
            ends_handshake: false,
            muted: false,
            first_option: None,
            options: Heard::Unknown,
            ace: TcpFlags::of_ace(Counters::INITIAL.cep),
            marked_until: None,
            serves,
            established: false,
            mangled: false,
            deaf: false,
        }
    }

    /// The peer's SYN-ACK bore a mark: counted once, however many of them come (RFC 9768 §3.2.2.2).
    pub(crate) const fn count_marked_syn_ack(&mut self) {
        if !self.syn_ack_counted {
            self.syn_ack_counted = true;
            self.received.cep += 1;
        }
    }

    /// So many packets have come at once, each with `ecn`, with so many bytes of data together; now `came` have
    /// come and `sent` were sent. Shall they be acknowledged at once, with so many bytes `pending` (RFC 9768
    /// §3.2.2.5.1)? Those that a link has joined are one event, with one acknowledgement at its end.
    pub(crate) fn count(
        &mut self,
        ecn: Ecn,
        [packets, bytes]: [u32; 2],
        [came, sent]: [u64; 2],
        pending: u32,
    ) -> bool {
        self.received.count(ecn, packets, bytes);
        if bytes > 0 {
            self.schedule_option(ecn, sent);
        }
        if ecn != Ecn::Ce {
            return false;
        }
        let follows_mark = self.last_mark > 0 && self.last_mark + u64::from(packets) == came;
        self.last_mark = came;
        if self.marked_at != sent {
            (self.marked_at, self.marks) = (sent, 0);
        }
        self.marks = self.marks.saturating_add(packets);
        let enough = if pending > 0 { 2 } else { 3 };
        (bytes > 0 && !follows_mark) || self.marks >= enough
    }

    /// Data has come with `ecn`: which of our next segments tell the counts of bytes (§3.2.3.3)? A count
    /// that was not growing before is told twice, that of marks always, and any other every so often.
    fn schedule_option(&mut self, ecn: Ecn, sent: u64) {
        let changes = ecn != Ecn::NotEct && ecn != self.last;
        self.last = ecn;
        let is_late = sent.wrapping_sub(self.option_at) >= REPEAT_AFTER
            || self.received.since(&self.told).iter().any(|&grown| grown >= REPEAT_AFTER_BYTES);
        if changes {
            self.options_due = 2;
        } else if ecn == Ecn::Ce || (ecn != Ecn::NotEct && is_late) {
            self.options_due = self.options_due.max(1);
        }
    }

    /// Shall the next segment bear the option?
    pub(crate) const fn owes_option(&self) -> bool {
        self.options_due > 0 && !self.muted
    }

    /// The option that fits `room` bytes: every count that has ever changed, or as many as fit if no other
    /// has changed since the last one (§3.2.3.3).
    pub(crate) fn option(&self, room: usize) -> Option<EcnCounts> {
        if self.muted {
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
        let [new_e0b, new_ceb, new_e1b] = self.received.since(&self.told).map(|grown| grown > 0);
        let new_last = if order == EcnOrder::One { new_e0b } else { new_e1b };
        let needed = if new_last { 3 } else { 2 * u8::from(new_ceb) };
        (needed.max(1)..=wanted)
            .rev()
            .map(|count| all.cut_to(count))
            .find(|counts| counts.option_length() <= room)
    }

    /// The option of a SYN-ACK, and of its acknowledgement: all counts, so that both that begin with one can
    /// be seen to have come through, or what of it fits `room` bytes (§3.2.3.2.1).
    pub(crate) fn first_option(&self, room: usize) -> Option<EcnCounts> {
        if self.muted {
            return None;
        }
        let all = self.all_counts(EcnOrder::Zero);
        (0..=3).rev().map(|count| all.cut_to(count)).find(|counts| counts.option_length() <= room)
    }

    const fn all_counts(&self, order: EcnOrder) -> EcnCounts {
        EcnCounts::new(order, self.received.e0b, self.received.ceb, self.received.e1b)
    }

    /// A segment with the option leaves, after `sent` others.
    pub(crate) const fn on_option_sent(&mut self, sent: u64) {
        self.told = self.received;
        self.option_at = sent;
        self.options_due = self.options_due.saturating_sub(1);
    }

    /// The option left with the segment that was the last of `sent`.
    pub(crate) const fn has_just_told(&self, sent: u64) -> bool {
        self.option_at + 1 == sent
    }

    /// The first segment of the peer that should bear an option has come (§3.2.3.2.3, §3.2.3.2.4).
    pub(crate) fn note_first_option(&mut self, option: Option<EcnCounts>) {
        let is_zeroed = |option: EcnCounts| option.e0b() == Some(0) || option.e1b() == Some(0);
        self.options = match option {
            None => Heard::None,
            Some(option) if is_zeroed(option) => Heard::Zeros,
            Some(_) => Heard::Options,
        };
    }

    /// The acknowledgement of our SYN-ACK says in what state that has come (table 4): was it marked? We do
    /// not let handshakes be marked, so any codepoint was put on it on the way.
    pub(crate) const fn hear_end_of_handshake(&mut self, ace: u16) -> bool {
        let is_marked = ace == 0b110;
        self.deaf = ace == 0;
        self.mangled |= matches!(ace, 0b000 | 0b011 | 0b100 | 0b110);
        if is_marked {
            self.heard.cep = 6;
        }
        self.ace = TcpFlags::of_ace(if self.deaf { 0 } else { self.heard.cep });
        is_marked
    }

    /// Takes in what an acknowledgement says that was not superseded by another: how many marks are new.
    pub(crate) fn hear(&mut self, feedback: &Feedback, una: SeqNum, sent: SeqNum) -> u32 {
        let option = feedback.option.filter(|_| self.options != Heard::Zeros);
        if option.is_some() && self.options != Heard::Options {
            // They come through by now (§3.2.3.2.3).
            self.options = Heard::Options;
            self.marked_until = None;
        }
        let marked_bytes = option.and_then(|option| self.hear_counts(option));
        if self.marked_until.is_some_and(|until| !una.before(until)) {
            self.marked_until = None;
        }
        self.ace = TcpFlags::of_ace(feedback.ace.into());
        if self.deaf {
            return 0;
        }
        let marks = self.read_counter(feedback, marked_bytes);
        if marks > 0 {
            self.heard.cep = self.heard.cep.wrapping_add(marks);
            self.marked_until = (self.options != Heard::Options).then_some(sent);
        } else if marked_bytes.is_some_and(|bytes| bytes > 0) && feedback.segments < ROUND {
            // Bytes were marked and no packet: something on the way meddles (§3.2.3.2.5).
            self.mangled = true;
        }
        marks
    }

    /// Takes in the counts of bytes; how many were marked since the last, if that is told (§3.2.3.1).
    fn hear_counts(&mut self, option: EcnCounts) -> Option<u32> {
        let catch_up = |count: &mut u32, field: u32| {
            let grown = field.wrapping_sub(*count) & EcnCounts::MASK;
            *count = count.wrapping_add(grown);
            grown
        };
        option.e0b().map(|field| catch_up(&mut self.heard.e0b, field));
        option.e1b().map(|field| catch_up(&mut self.heard.e1b, field));
        option.ceb().map(|field| catch_up(&mut self.heard.ceb, field))
    }

    /// How many marks the counter tells of: the fewest that it can mean, unless so much was acknowledged
    /// that it may have come round; then what is safe and likely (§3.2.2.5.2, appendix A.2). More marks than
    /// segments are believed: who knows what else was marked.
    fn read_counter(&self, feedback: &Feedback, marked_bytes: Option<u32>) -> u32 {
        let fewest = u32::from(feedback.ace).wrapping_sub(self.heard.cep) % ROUND;
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
            // Without any sign of a mark, none is likelier than eight times as many.
            None if fewest == 0 && !self.is_ambiguous() => 0,
            None => safe,
        }
    }

    /// Must every acknowledgement be looked at, because a counter that has not moved may have come round?
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

    /// What a sender that has heard of `before` marks makes of a counter that says `ace`, in an
    /// acknowledgement of `segments`.
    fn told(before: u32, ace: u16, segments: u32, ceb: Option<u32>) -> (u32, Accurate) {
        let mut accurate = Accurate::new(true);
        accurate.heard.cep += before;
        if before > 0 {
            accurate.marked_until = Some(seq(10));
        }
        let option = ceb.map(|ceb| EcnCounts::new(EcnOrder::Zero, 1, ceb, 1));
        let feedback = Feedback { ace, option, segments, mss: MSS };
        (accurate.hear(&feedback, seq(0), seq(20)), accurate)
    }

    #[test]
    fn the_counter_tells_the_fewest_marks_that_it_can_mean() {
        for marks in 0..8 {
            let ace = u16::try_from((5 + marks) % 8).unwrap();
            assert_eq!(told(0, ace, 7, None).0, marks);
            assert_eq!(told(0, ace, 0, None).0, marks, "also more marks than segments");
        }
    }

    /// Appendix A.2.1: nine segments and two marks are two; ten and two are ten.
    #[test]
    fn a_counter_that_may_have_come_round_is_read_in_the_safe_way() {
        assert_eq!(told(0, 7, 9, None).0, 2);
        assert_eq!(told(0, 7, 10, None).0, 10);
        assert_eq!(told(0, 6, 17, None).0, 17);
        assert_eq!(told(0, 5, 24, None).0, 0, "a counter that stands still among none");
        assert_eq!(told(3, 0, 24, None).0, 24, "and among marks");
    }

    /// Appendix A.2.2, with its three examples.
    #[test]
    fn the_count_of_marked_bytes_says_whether_the_counter_has_come_round() {
        assert_eq!(told(0, 5, 8, Some(1_460)).0, 8, "no segment is so large");
        assert_eq!(told(0, 7, 10, Some(1_460)).0, 2, "ten would be too small");
        assert_eq!(told(0, 4, 15, Some(10_200)).0, 7);
        assert_eq!(told(0, 5, 24, Some(0)).0, 0);
    }

    /// §3.2.3.1: fields come round, too.
    #[test]
    fn counts_of_bytes_grow_by_the_fewest_that_a_field_can_mean() {
        let mut accurate = Accurate::new(true);
        accurate.heard.ceb = 0x0200_0001;
        let option = EcnCounts::new(EcnOrder::One, 0, 1_461, 1).cut_to(2);
        assert_eq!(accurate.hear_counts(option), Some(1_460));
        assert_eq!(accurate.heard, Counters { ceb: 0x0200_05b5, ..Counters::INITIAL });
    }

    /// §3.2.3.2.5.
    #[test]
    fn bytes_that_were_marked_without_a_packet_show_that_something_meddles() {
        assert!(told(0, 5, 7, Some(1_460)).1.mangled);
        assert!(!told(0, 6, 7, Some(1_460)).1.mangled);
        assert!(!told(0, 5, 8, Some(1_460)).1.mangled, "the counter has come round");
    }

    fn after(packets: &[(Ecn, u32)]) -> Accurate {
        let mut accurate = Accurate::new(true);
        for &(ecn, bytes) in packets {
            let _ = accurate.count(ecn, [1, bytes], [0, 0], 0);
        }
        accurate
    }

    #[test]
    fn the_option_has_the_counts_that_have_ever_changed_in_the_order_that_is_shorter() {
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

    /// §3.2.3.3: what has changed since the last option is not cut off; else all of it is left out.
    #[test]
    fn where_room_is_scarce_only_what_has_not_changed_is_cut_off() {
        let mut accurate = after(&[(Ecn::Ect0, 9), (Ecn::Ce, 9), (Ecn::Ect1, 9)]);
        assert_eq!(accurate.option(8), None);
        accurate.on_option_sent(0);
        let _ = accurate.count(Ecn::Ect1, [1, 5], [0, 0], 0);
        assert_eq!(accurate.option(8), Some(EcnCounts::new(EcnOrder::One, 10, 9, 15).cut_to(2)));
        assert_eq!(accurate.option(3), None);
        let _ = accurate.count(Ecn::Ect0, [1, 5], [0, 0], 0);
        assert_eq!(accurate.option(11), None, "the other has changed, too");
    }

    #[test]
    fn a_count_is_told_twice_when_it_begins_to_grow_and_then_every_so_often() {
        let mut accurate = Accurate::new(true);
        let mut told = Vec::new();
        for sent in 0..40 {
            let _ = accurate.count(Ecn::Ect0, [1, 1_000], [sent, sent], 0);
            if accurate.owes_option() {
                accurate.on_option_sent(sent);
                told.push(sent);
            }
        }
        assert_eq!(told, [0, 1, 17, 33]);
        for sent in 40..43 {
            let _ = accurate.count(Ecn::Ce, [1, 1_000], [sent, sent], 0);
            assert!(accurate.owes_option(), "marks always");
            accurate.on_option_sent(sent);
        }
        let _ = accurate.count(Ecn::Ce, [1, 0], [43, 43], 0);
        let _ = accurate.count(Ecn::NotEct, [1, 1_000], [44, 44], 0);
        while accurate.owes_option() {
            accurate.on_option_sent(44);
        }
        let _ = accurate.count(Ecn::Ect0, [1, REPEAT_AFTER_BYTES], [45, 45], 0);
        while accurate.owes_option() {
            accurate.on_option_sent(45);
        }
        let _ = accurate.count(Ecn::Ect0, [1, REPEAT_AFTER_BYTES], [46, 46], 0);
        assert!(accurate.owes_option(), "long before the count comes round");
    }

    /// §3.2.2.5.1: the first mark, and every second or third after it.
    #[test]
    fn marks_are_acknowledged_in_time() {
        let mut accurate = Accurate::new(true);
        let mut count = |ecn, bytes, came, sent, pending| {
            accurate.count(ecn, [1, bytes], [came, sent], pending)
        };
        assert!(!count(Ecn::Ect0, 9, 1, 1, 9));
        assert!(count(Ecn::Ce, 9, 2, 1, 9), "the first");
        assert!(!count(Ecn::Ce, 9, 3, 2, 9));
        assert!(count(Ecn::Ce, 9, 4, 2, 9), "the second since one was acknowledged");
        assert!(!count(Ecn::Ce, 0, 5, 3, 0));
        assert!(!count(Ecn::Ce, 0, 6, 3, 0));
        assert!(count(Ecn::Ce, 0, 7, 3, 0), "the third without data");
        assert!(!count(Ecn::Ce, 9, 8, 4, 9), "a packet without data counts as the one before");
        assert!(count(Ecn::Ce, 9, 10, 4, 9), "another one lay between");
    }

    /// Table 4.
    #[test]
    fn the_end_of_the_handshake_is_read_by_its_own_table() {
        for (ace, cep, mangled, deaf) in [
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
            assert_eq!(accurate.hear_end_of_handshake(ace), ace == 6);
            assert_eq!(
                (accurate.heard.cep, accurate.mangled, accurate.deaf),
                (cep, mangled, deaf),
                "{ace}"
            );
        }
    }
}
