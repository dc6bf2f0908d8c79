//! Explicit congestion notification: what the SYNs agree on, none, RFC 3168 or the accurate mode of RFC 9768,
//! which segments may be marked, and what is said of marks. Which bits a packet bears in its IP header is
//! told by [`crate::Transmit::ecn`], and learned by [`crate::Connection::handle_segment_bearing`].

mod accurate;
mod classic;
mod feedback;

use crate::rest::pack::{Pack, Packer, Unpacker, packed, packed_enum};
use accurate::Accurate;
use alloc::boxed::Box;
use bitflags::bitflags;
use linerate_wire::{Ecn, TcpFlags};

/// Both bits of RFC 3168 in the header.
const BOTH: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR);

/// Does a connection take part in explicit congestion notification, or in its accurate mode?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnRule {
    /// No.
    Off,
    /// If the peer asks for it (Linux's default for RFC 3168, `tcp_ecn` 2).
    Accept,
    /// If the peer can; our own SYN asks for it. Because there are boxes that drop a SYN that asks, the
    /// second try does without, and in the accurate mode the third (`tcp_ecn` 1 and 3).
    Request,
}

packed_enum!(EcnRule { Off, Accept, Request });

bitflags! {
    /// What has happened, and is due.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct Past: u8 {
        /// A SYN, or SYN-ACK, of ours has said yes: an "ECN-setup SYN" (RFC 3168 §6.1.1).
        const SENT_SETUP = 0x01;
        /// One has said no.
        const SENT_PLAIN = 0x02;
        /// One of the peer's has said yes.
        const HEARD_SETUP = 0x04;
        /// One has said no.
        const HEARD_PLAIN = 0x08;
        /// A packet has come that took part.
        const SEEN = 0x10;
        /// The next new data says that the window was reduced.
        const CWR_DUE = 0x20;
        /// The next segment has to bear the option of the accurate mode.
        const OPTION_DUE = 0x40;
        /// The first one with data has to, to try the way.
        const FIRST_DATA = 0x80;
        /// What makes a segment with data bear it.
        const OPTION_WITH_DATA = 0xc0;
    }
}

impl Pack for Past {
    fn pack(&self, into: &mut Packer<'_>) {
        self.bits().pack(into);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_bits_retain(Pack::unpack(from))
    }
}

/// The ECN state of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notification {
    /// The accurate mode, once it was entered; there it stays (RFC 9768 §3.1.5).
    accurate: Option<Box<Accurate>>,
    /// One more than the bytes that had been sent when a mark last reduced the window: marks on these tell
    /// nothing new. Zero if none has.
    reduced_before: u64,
    /// Our rule for RFC 3168, and the one for the accurate mode.
    rule: EcnRule,
    accurate_rule: EcnRule,
    past: Past,
    /// What new data bears; ECT(0) once both ends have agreed.
    codepoint: Ecn,
    /// What every segment says of marks: ECE from a mark on until the peer says that it has reduced its
    /// window, or the counter of the accurate mode.
    echo: TcpFlags,
}

packed!(Notification { accurate, reduced_before, rule, accurate_rule, past, codepoint, echo });

impl Notification {
    pub(crate) const fn new(rule: EcnRule, accurate_rule: EcnRule) -> Self {
        Self {
            accurate: None,
            reduced_before: 0,
            rule,
            accurate_rule,
            past: Past::empty(),
            codepoint: Ecn::NotEct,
            echo: TcpFlags::empty(),
        }
    }

    /// The bits of our SYN, of which `sent` were sent in vain. The accurate mode is asked for twice (RFC 9768
    /// §3.1.4.1), and then nothing is: never first one mode and then the other (§3.1.5).
    pub(crate) fn flags_of_syn(&self, sent: u32) -> TcpFlags {
        match (self.accurate_rule, self.rule) {
            (EcnRule::Request, _) if sent < 2 => TcpFlags::ACE,
            (EcnRule::Off | EcnRule::Accept, EcnRule::Request) if sent == 0 => BOTH,
            _ => TcpFlags::empty(),
        }
    }

    /// The bits of our SYN-ACK: an answer in kind to what the peer has asked for. In the accurate mode, the
    /// codepoint of its latest SYN (RFC 9768 table 2), until `sent` were sent in vain (§3.2.3.2.2).
    pub(crate) fn flags_of_syn_ack(&self, sent: u32) -> TcpFlags {
        if let Some(accurate) = &self.accurate {
            return if sent < 2 { answer_to(accurate.syn) } else { TcpFlags::empty() };
        }
        let yes = self.rule != EcnRule::Off
            && self.has_heard_yes()
            && !self.past.contains(Past::SENT_PLAIN);
        if yes { TcpFlags::ECE } else { TcpFlags::empty() }
    }

    pub(crate) fn note_sent_syn(&mut self, flags: TcpFlags) {
        let yes = self.accurate.is_some() && !flags.intersection(TcpFlags::ACE).is_empty();
        let says_yes = yes || says_yes(flags);
        self.past |= if says_yes { Past::SENT_SETUP } else { Past::SENT_PLAIN };
        self.settle();
    }

    pub(crate) fn note_heard_syn(&mut self, flags: TcpFlags) {
        let is_first = !self.past.intersects(Past::HEARD_SETUP.union(Past::HEARD_PLAIN));
        if is_first && self.leads_to_accurate_mode(flags) {
            self.enter_accurate_mode(flags);
        }
        if let Some(accurate) = &mut self.accurate {
            accurate.syn = Ecn::NotEct;
        }
        let any = self.accurate.is_some() && !flags.intersection(TcpFlags::ACE).is_empty();
        let says_yes = any || says_yes(flags);
        self.past |= if says_yes { Past::HEARD_SETUP } else { Past::HEARD_PLAIN };
        self.settle();
    }

    /// Is this, the first SYN or SYN-ACK of the peer, one that asks for the accurate mode or agrees to it?
    /// What has no meaning yet is one (RFC 9768 §3.1.3).
    fn leads_to_accurate_mode(&self, flags: TcpFlags) -> bool {
        if flags.contains(TcpFlags::ACK) {
            self.accurate_rule == EcnRule::Request && !matches!(flags.ace(), 0b000 | 0b001 | 0b111)
        } else {
            self.accurate_rule != EcnRule::Off && flags.asks_for_accurate_ecn()
        }
    }

    #[cold]
    fn enter_accurate_mode(&mut self, flags: TcpFlags) {
        let is_answer = flags.contains(TcpFlags::ACK);
        let mut accurate = Accurate::new(!is_answer);
        // Our SYN left without a codepoint: another was put on it on the way (§3.2.2.3). An answer without a
        // meaning says that it came as it was sent.
        accurate.mangled = is_answer && !matches!(flags.ace(), 0b010 | 0b101);
        self.echo = TcpFlags::of_ace(accurate.received.cep);
        self.accurate = Some(Box::new(accurate));
    }

    /// Does a SYN that comes during the handshake ask for another mode than one before (RFC 9768 §3.1.5)?
    pub(crate) fn is_contradicted_by(&self, flags: TcpFlags) -> bool {
        let asks = flags.intersection(TcpFlags::ACE);
        let classic = asks == BOTH;
        let was_classic = self.accurate.is_none() && self.past.contains(Past::HEARD_SETUP);
        self.accurate_rule != EcnRule::Off
            && !flags.contains(TcpFlags::ACK)
            && ((self.accurate.is_some() && classic)
                || (was_classic && !classic && !asks.is_empty()))
    }

    /// May data be marked by now? In the accurate mode only once the handshake is complete, and a server not
    /// at all if it has said or heard a no: the client may have understood that (RFC 9768 §3.1.5).
    fn settle(&mut self) {
        let agreed = match &self.accurate {
            Some(accurate) => {
                let refused = self.past.intersects(Past::SENT_PLAIN.union(Past::HEARD_PLAIN));
                accurate.established && !accurate.mangled && !(accurate.serves && refused)
            }
            None => {
                let yes = Past::SENT_SETUP.union(Past::HEARD_SETUP);
                self.past.contains(yes)
                    && !self.past.intersects(Past::SENT_PLAIN.union(Past::HEARD_PLAIN))
            }
        };
        self.codepoint = if agreed { Ecn::Ect0 } else { Ecn::NotEct };
    }

    /// The handshake is complete.
    pub(crate) fn on_established(&mut self) {
        if let Some(accurate) = self.accurate.as_deref_mut() {
            accurate.established = true;
        }
        self.settle();
    }

    fn has_heard_yes(&self) -> bool {
        self.past & Past::HEARD_SETUP.union(Past::HEARD_PLAIN) == Past::HEARD_SETUP
    }

    /// Are marks counted, and told of by the number (RFC 9768)?
    pub(crate) const fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }

    /// Have both ends agreed on either mode?
    pub(crate) fn is_on(&self) -> bool {
        self.accurate.is_some() || self.codepoint != Ecn::NotEct
    }

    /// Must marks be echoed as RFC 3168 says? Even if our last SYN said no: the peer may have heard the one
    /// before (§6.1.1).
    fn hears_marks(&self) -> bool {
        self.accurate.is_none() && self.past.contains(Past::SENT_SETUP) && self.has_heard_yes()
    }

    /// Has a packet come that took part (`TCPI_OPT_ECN_SEEN`)?
    pub(crate) const fn is_seen(&self) -> bool {
        self.past.contains(Past::SEEN)
    }

    /// The codepoint of new data.
    pub(crate) const fn codepoint(&self) -> Ecn {
        self.codepoint
    }

    /// What every segment says beside its number.
    pub(crate) const fn echo(&self) -> TcpFlags {
        self.echo
    }

    /// What new data says beside its number.
    pub(crate) fn flags_of_new_data(&self) -> TcpFlags {
        if self.past.contains(Past::CWR_DUE) { TcpFlags::CWR } else { TcpFlags::empty() }
    }

    pub(crate) fn on_new_data_sent(&mut self) {
        self.past.remove(Past::CWR_DUE);
    }

    /// Must the next segment bear the option of the accurate mode, for one of these reasons?
    pub(crate) const fn owes_option(&self, reasons: Past) -> bool {
        self.past.intersects(reasons)
    }

    /// Has a mark reduced the window for all that is sent up to `acknowledged` bytes?
    fn has_reduced_for(&self, acknowledged: u64) -> bool {
        acknowledged < self.reduced_before
    }

    /// The connection is only there to let old segments die (RFC 3168 §6.1.1, RFC 9768 §3.1.2: what was
    /// agreed on is ignored from TIME-WAIT on).
    pub(crate) fn forget(&mut self) {
        *self = Self { past: self.past & Past::SEEN, ..Self::new(EcnRule::Off, EcnRule::Off) };
    }
}

/// Is this SYN, or SYN-ACK, one that says yes to RFC 3168? A peer that reflects reserved bits answers with
/// both: it does not know what they mean (§6.1.1.2).
fn says_yes(flags: TcpFlags) -> bool {
    let yes = if flags.contains(TcpFlags::ACK) { TcpFlags::ECE } else { BOTH };
    flags & BOTH == yes
}

/// How a SYN-ACK, or its acknowledgement, says which codepoint the SYN, or SYN-ACK, bore (RFC 9768 tables 2
/// and 3).
fn answer_to(ecn: Ecn) -> TcpFlags {
    TcpFlags::of_ace(match ecn {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: TcpFlags = TcpFlags::SYN;
    const SYN_ACK: TcpFlags = TcpFlags::SYN.union(TcpFlags::ACK);

    /// What a connection believes that has sent and heard these, without the accurate mode.
    fn after(rule: EcnRule, sent: &[TcpFlags], heard: &[TcpFlags]) -> Notification {
        tell(Notification::new(rule, EcnRule::Off), sent, heard)
    }

    fn tell(mut notification: Notification, sent: &[TcpFlags], heard: &[TcpFlags]) -> Notification {
        sent.iter().for_each(|&flags| notification.note_sent_syn(flags));
        heard.iter().for_each(|&flags| notification.note_heard_syn(flags));
        notification
    }

    #[test]
    fn both_sides_have_to_say_yes_and_never_no() {
        let (ask, answer) = (SYN | BOTH, SYN_ACK | TcpFlags::ECE);
        let is_on =
            |sent: &[TcpFlags], heard: &[TcpFlags]| after(EcnRule::Request, sent, heard).is_on();
        assert!(is_on(&[ask], &[answer]));
        assert!(is_on(&[answer], &[ask]));
        assert!(!is_on(&[ask], &[SYN_ACK]));
        assert!(!is_on(&[ask, SYN], &[answer]), "our last SYN has said no");
        assert!(!is_on(&[answer], &[ask, SYN]), "and so has the peer's");
        assert!(!is_on(&[ask], &[SYN_ACK | BOTH]), "a peer that reflects reserved bits");
        assert!(!is_on(&[ask], &[SYN_ACK | TcpFlags::CWR]));
    }

    #[test]
    fn marks_are_heard_even_if_the_last_syn_said_no() {
        let answer = SYN_ACK | TcpFlags::ECE;
        assert!(after(EcnRule::Request, &[SYN | BOTH, SYN], &[answer]).hears_marks());
        assert!(!after(EcnRule::Request, &[SYN], &[answer]).hears_marks());
    }

    #[test]
    fn only_a_syn_that_asks_is_answered_with_yes() {
        let answer = |rule, heard: &[TcpFlags]| after(rule, &[], heard).flags_of_syn_ack(0);
        assert_eq!(answer(EcnRule::Accept, &[SYN | BOTH]), TcpFlags::ECE);
        assert_eq!(
            answer(EcnRule::Accept, &[SYN | TcpFlags::ACE]),
            TcpFlags::ECE,
            "it takes what it knows"
        );
        assert_eq!(answer(EcnRule::Off, &[SYN | BOTH]), TcpFlags::empty());
        for plain in [SYN, SYN | TcpFlags::ECE, SYN | TcpFlags::CWR] {
            assert_eq!(answer(EcnRule::Request, &[plain]), TcpFlags::empty());
        }
    }

    /// RFC 9768 tables 1 and 2, and §3.1.3 for what has no meaning yet: the eight answers to a request.
    #[test]
    fn a_request_for_the_accurate_mode_is_answered_by_the_mode_and_what_became_of_it() {
        let (none, classic, accurate) =
            ((false, false, false), (true, false, true), (true, true, true));
        let unsafe_path = (true, true, false);
        for (answer, expected) in
            [none, classic, accurate, unsafe_path, unsafe_path, accurate, unsafe_path, none]
                .into_iter()
                .enumerate()
        {
            let answer = TcpFlags::of_ace(u32::try_from(answer).unwrap());
            let client = Notification::new(EcnRule::Off, EcnRule::Request);
            let mut client = tell(client, &[SYN | TcpFlags::ACE], &[SYN_ACK | answer]);
            client.on_established();
            let found =
                (client.is_on(), client.accurate.is_some(), client.codepoint() == Ecn::Ect0);
            assert_eq!(found, expected, "{answer:?}");
        }
    }

    #[test]
    fn a_server_takes_what_has_no_meaning_yet_for_a_request_and_the_others_for_what_they_are() {
        for asked in 0..8 {
            let syn = SYN | TcpFlags::of_ace(asked);
            let server = tell(Notification::new(EcnRule::Accept, EcnRule::Accept), &[], &[syn]);
            let answer = server.flags_of_syn_ack(0).ace();
            let expected = match asked {
                0b000 => 0b000,
                0b011 => 0b001,
                _ => 0b010,
            };
            assert_eq!(
                (answer, server.accurate.is_some()),
                (expected, expected == 0b010),
                "{asked:03b}"
            );
        }
    }

    /// RFC 9768 §3.1.5: only a server is forbidden marks by a no.
    #[test]
    fn a_no_forbids_marks_to_servers_and_leaves_the_mode() {
        let (ask, answer) = (SYN | TcpFlags::ACE, SYN_ACK | TcpFlags::of_ace(0b010));
        let state = |sent: &[TcpFlags], heard: &[TcpFlags]| {
            let mut notification = Notification::new(EcnRule::Accept, EcnRule::Request);
            if heard[0].contains(TcpFlags::ACK) {
                notification = tell(notification, sent, heard);
            } else {
                notification = tell(notification, &[], heard);
                notification = tell(notification, sent, &[]);
            }
            notification.on_established();
            (notification.accurate.is_some(), notification.codepoint())
        };
        assert_eq!(state(&[answer], &[ask]), (true, Ecn::Ect0));
        assert_eq!(state(&[answer, SYN_ACK], &[ask]), (true, Ecn::NotEct));
        assert_eq!(state(&[answer], &[ask, SYN]), (true, Ecn::NotEct));
        assert_eq!(state(&[answer], &[SYN, ask]), (false, Ecn::NotEct));
        assert_eq!(state(&[ask, SYN], &[answer]), (true, Ecn::Ect0));
    }

    /// What every connection has of it; the rest is there only for those in the accurate mode.
    #[test]
    fn a_connection_without_the_accurate_mode_is_no_larger_for_it() {
        assert_eq!(size_of::<Notification>(), 24);
        assert!(size_of::<Accurate>() <= 144, "{}", size_of::<Accurate>());
    }
}
