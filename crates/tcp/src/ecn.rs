//! Explicit congestion notification (ECN): the mode that the SYNs negotiate (none, RFC 3168, or
//! AccECN of RFC 9768), the codepoints of sent packets, and the feedback of received marks.
//!
//! [`crate::Transmit::ecn`] is the codepoint of an outgoing packet; the codepoint of an incoming
//! packet is an argument of [`crate::Driver::handle_segment_with`].

mod accurate;
mod classic;
mod feedback;

use crate::compact::pack::{Pack, Packer, Unpacker, packed, packed_enum};
use accurate::Accurate;
use alloc::boxed::Box;
use bitflags::bitflags;
use linerate_wire::{Ecn, TcpFlags};

/// The two ECN flags of RFC 3168 in the TCP header, ECE and CWR.
const BOTH: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR);

/// The configured rule for the negotiation of one kind of ECN, RFC 3168 or AccECN (RFC 9768).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnRule {
    /// ECN is neither requested nor accepted.
    Off,
    /// ECN is not requested, but accepted if the peer requests it (Linux's default for RFC 3168,
    /// `tcp_ecn` 2).
    Accept,
    /// Our SYN requests ECN (Linux's `tcp_ecn` 1 and 3). Some middleboxes drop such SYNs. If a SYN
    /// gets no answer, a later SYN therefore omits the request. The second SYN omits a request for
    /// RFC 3168, and the third SYN a request for AccECN.
    Request,
}

packed_enum!(EcnRule { Off, Accept, Request });

bitflags! {
    /// The progress of the ECN negotiation, and the signals to be sent.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct EcnSignals: u8 {
        /// We have sent a SYN or SYN-ACK that offers ECN (an ECN-setup packet, RFC 3168 §6.1.1).
        const SENT_SETUP = 0x01;
        /// We have sent a SYN or SYN-ACK that does not offer ECN.
        const SENT_PLAIN = 0x02;
        /// The peer has sent a SYN or SYN-ACK that offers ECN.
        const RECEIVED_SETUP = 0x04;
        /// The peer has sent a SYN or SYN-ACK that does not offer ECN.
        const RECEIVED_PLAIN = 0x08;
        /// A packet with an ECN codepoint has been received.
        const SEEN = 0x10;
        /// The next segment with new data must carry CWR, because the congestion window was
        /// reduced.
        const CWR_DUE = 0x20;
        /// The next segment must carry the AccECN option.
        const OPTION_DUE = 0x40;
        /// The first segment with data must carry the AccECN option. Its arrival shows that the
        /// path passes the option.
        const TEST_OPTION = 0x80;
        /// The two reasons why a segment with data carries an AccECN option:
        /// [`OPTION_DUE`](Self::OPTION_DUE) and [`TEST_OPTION`](Self::TEST_OPTION).
        const OPTION_WITH_DATA = 0xc0;
    }
}

impl Pack for EcnSignals {
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
    /// The state of AccECN, if it was negotiated. Once negotiated, this mode is never left (RFC
    /// 9768 §3.1.5).
    accurate: Option<Box<Accurate>>,
    /// The number of bytes, plus one, that had been sent when a mark most recently reduced the
    /// congestion window. Marks on these bytes do not reduce the window a second time. Zero if no
    /// mark has reduced it yet.
    reduced_before: u64,
    /// The configured rule for RFC 3168. `accurate_rule` is the rule for AccECN.
    rule: EcnRule,
    accurate_rule: EcnRule,
    past: EcnSignals,
    /// The codepoint of packets with new data: ECT(0) once both endpoints have agreed on ECN.
    codepoint: Ecn,
    /// The ECN flags of every segment. In RFC 3168 mode: ECE from the receipt of a mark until the
    /// peer's CWR. In AccECN mode: the ACE field.
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
            past: EcnSignals::empty(),
            codepoint: Ecn::NotEct,
            echo: TcpFlags::empty(),
        }
    }

    /// Returns the ECN flags of our next SYN, if `sent` SYNs have got no answer. If the rule for
    /// AccECN is [`EcnRule::Request`], the first two SYNs request AccECN (RFC 9768 §3.1.4.1). Later
    /// SYNs then request no ECN at all, because a client must not change its request from AccECN to
    /// RFC 3168 (§3.1.5).
    pub(crate) fn flags_of_syn(&self, sent: u32) -> TcpFlags {
        match (self.accurate_rule, self.rule) {
            (EcnRule::Request, _) if sent < 2 => TcpFlags::ACE,
            (EcnRule::Off | EcnRule::Accept, EcnRule::Request) if sent == 0 => BOTH,
            _ => TcpFlags::empty(),
        }
    }

    /// Returns the ECN flags of our next SYN-ACK, if `sent` SYN-ACKs were not acknowledged. In
    /// AccECN mode, the first two SYN-ACKs report the codepoint of the latest SYN (RFC 9768 table
    /// 2). Later SYN-ACKs carry no ECN flags (§3.2.3.2.2).
    pub(crate) fn flags_of_syn_ack(&self, sent: u32) -> TcpFlags {
        if let Some(accurate) = &self.accurate {
            return if sent < 2 { ace_for_codepoint(accurate.syn) } else { TcpFlags::empty() };
        }
        let setup = self.rule != EcnRule::Off
            && self.is_peer_capable()
            && !self.past.contains(EcnSignals::SENT_PLAIN);
        if setup { TcpFlags::ECE } else { TcpFlags::empty() }
    }

    pub(crate) fn on_syn_sent(&mut self, flags: TcpFlags) {
        let setup = self.accurate.is_some() && !flags.intersection(TcpFlags::ACE).is_empty();
        let is_ecn_setup = setup || is_ecn_setup(flags);
        self.past |= if is_ecn_setup { EcnSignals::SENT_SETUP } else { EcnSignals::SENT_PLAIN };
        self.update_codepoint();
    }

    pub(crate) fn on_syn_received(&mut self, flags: TcpFlags) {
        let is_first =
            !self.past.intersects(EcnSignals::RECEIVED_SETUP.union(EcnSignals::RECEIVED_PLAIN));
        if is_first && self.selects_accurate_mode(flags) {
            self.enter_accurate_mode(flags);
        }
        if let Some(accurate) = &mut self.accurate {
            accurate.syn = Ecn::NotEct;
        }
        let any = self.accurate.is_some() && !flags.intersection(TcpFlags::ACE).is_empty();
        let is_ecn_setup = any || is_ecn_setup(flags);
        self.past |=
            if is_ecn_setup { EcnSignals::RECEIVED_SETUP } else { EcnSignals::RECEIVED_PLAIN };
        self.update_codepoint();
    }

    /// Whether the first SYN or SYN-ACK of the peer, with these flags, selects the AccECN mode.
    /// Reserved combinations of flags also select it (RFC 9768 §3.1.3).
    fn selects_accurate_mode(&self, flags: TcpFlags) -> bool {
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
        // Our SYN had the codepoint Not-ECT. If the peer's SYN-ACK reports that the SYN arrived
        // with another codepoint, the path has changed it (RFC 9768 §3.2.2.3). A reserved ACE value
        // does not count as such a report.
        accurate.is_mangled = is_answer && !matches!(flags.ace(), 0b010 | 0b101);
        self.echo = TcpFlags::of_ace(accurate.received.cep);
        self.accurate = Some(Box::new(accurate));
    }

    /// Whether a SYN with these flags requests another ECN mode than the peer's earlier SYN of this
    /// handshake did (RFC 9768 §3.1.5).
    pub(crate) fn is_contradicted_by(&self, flags: TcpFlags) -> bool {
        let asks = flags.intersection(TcpFlags::ACE);
        let classic = asks == BOTH;
        let was_classic = self.accurate.is_none() && self.past.contains(EcnSignals::RECEIVED_SETUP);
        self.accurate_rule != EcnRule::Off
            && !flags.contains(TcpFlags::ACK)
            && ((self.accurate.is_some() && classic)
                || (was_classic && !classic && !asks.is_empty()))
    }

    /// Derives the codepoint of new data from the negotiation. In AccECN mode, it is Not-ECT until
    /// the handshake is complete. A server that has sent or received a SYN or SYN-ACK without ECN
    /// also stays Not-ECT: for the client, ECN may be off (RFC 9768 §3.1.5).
    fn update_codepoint(&mut self) {
        let agreed = match &self.accurate {
            Some(accurate) => {
                let refused =
                    self.past.intersects(EcnSignals::SENT_PLAIN.union(EcnSignals::RECEIVED_PLAIN));
                accurate.is_established && !accurate.is_mangled && !(accurate.is_server && refused)
            }
            None => {
                let setup = EcnSignals::SENT_SETUP.union(EcnSignals::RECEIVED_SETUP);
                self.past.contains(setup)
                    && !self
                        .past
                        .intersects(EcnSignals::SENT_PLAIN.union(EcnSignals::RECEIVED_PLAIN))
            }
        };
        self.codepoint = if agreed { Ecn::Ect0 } else { Ecn::NotEct };
    }

    /// Derives the codepoint of new data at the end of the handshake.
    pub(crate) fn on_established(&mut self) {
        if let Some(accurate) = self.accurate.as_deref_mut() {
            accurate.is_established = true;
        }
        self.update_codepoint();
    }

    fn is_peer_capable(&self) -> bool {
        self.past & EcnSignals::RECEIVED_SETUP.union(EcnSignals::RECEIVED_PLAIN)
            == EcnSignals::RECEIVED_SETUP
    }

    /// Whether the connection has negotiated AccECN (RFC 9768).
    pub(crate) const fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }

    /// Whether both endpoints have agreed on ECN, in either mode.
    pub(crate) fn is_on(&self) -> bool {
        self.accurate.is_some() || self.codepoint != Ecn::NotEct
    }

    /// Whether received marks must be echoed by the rules of RFC 3168. They must even if our latest
    /// SYN or SYN-ACK did not offer ECN, because the peer may have acted on an earlier one that did
    /// (RFC 3168 §6.1.1).
    fn must_echo_marks(&self) -> bool {
        self.accurate.is_none()
            && self.past.contains(EcnSignals::SENT_SETUP)
            && self.is_peer_capable()
    }

    /// Whether a packet with an ECN codepoint has been received (`TCPI_OPT_ECN_SEEN`).
    pub(crate) const fn is_seen(&self) -> bool {
        self.past.contains(EcnSignals::SEEN)
    }

    /// Returns the codepoint of packets with new data.
    pub(crate) const fn codepoint(&self) -> Ecn {
        self.codepoint
    }

    /// Returns the ECN flags that every segment carries.
    pub(crate) const fn echo(&self) -> TcpFlags {
        self.echo
    }

    /// Returns the ECN flags that segments with new data carry in addition to [`Self::echo`].
    pub(crate) fn flags_of_new_data(&self) -> TcpFlags {
        if self.past.contains(EcnSignals::CWR_DUE) { TcpFlags::CWR } else { TcpFlags::empty() }
    }

    pub(crate) fn on_new_data_sent(&mut self) {
        self.past.remove(EcnSignals::CWR_DUE);
    }

    /// Whether the next segment must carry the AccECN option for one of these `reasons`.
    pub(crate) const fn is_option_due(&self, reasons: EcnSignals) -> bool {
        self.past.intersects(reasons)
    }

    /// Whether a mark has already reduced the congestion window for the flight of a certain byte:
    /// the one that follows the first `acknowledged` bytes of the connection.
    fn has_reduced_for(&self, acknowledged: u64) -> bool {
        acknowledged < self.reduced_before
    }

    /// Disables ECN. From TIME-WAIT on, the negotiated mode has no effect (RFC 3168 §6.1.1, RFC
    /// 9768 §3.1.2).
    pub(crate) fn forget(&mut self) {
        *self =
            Self { past: self.past & EcnSignals::SEEN, ..Self::new(EcnRule::Off, EcnRule::Off) };
    }
}

/// Whether a SYN or SYN-ACK with these flags offers ECN by RFC 3168. A SYN-ACK offers ECN by ECE
/// alone. If it has CWR too, the peer has only reflected the reserved bits of our SYN (§6.1.1.2).
fn is_ecn_setup(flags: TcpFlags) -> bool {
    let setup = if flags.contains(TcpFlags::ACK) { TcpFlags::ECE } else { BOTH };
    flags & BOTH == setup
}

/// Returns the ACE field that reports the codepoint of a SYN or SYN-ACK (RFC 9768 tables 2 and 3).
fn ace_for_codepoint(ecn: Ecn) -> TcpFlags {
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

    /// Returns the ECN state after the SYNs and SYN-ACKs with the flags `sent` and `received`, with
    /// AccECN disabled.
    fn after(rule: EcnRule, sent: &[TcpFlags], received: &[TcpFlags]) -> Notification {
        exchange(Notification::new(rule, EcnRule::Off), sent, received)
    }

    fn exchange(
        mut notification: Notification,
        sent: &[TcpFlags],
        received: &[TcpFlags],
    ) -> Notification {
        sent.iter().for_each(|&flags| notification.on_syn_sent(flags));
        received.iter().for_each(|&flags| notification.on_syn_received(flags));
        notification
    }

    #[test]
    fn ecn_is_on_only_if_both_sides_agree_and_neither_refuses() {
        let (ask, answer) = (SYN | BOTH, SYN_ACK | TcpFlags::ECE);
        let is_on = |sent: &[TcpFlags], received: &[TcpFlags]| {
            after(EcnRule::Request, sent, received).is_on()
        };
        assert!(is_on(&[ask], &[answer]));
        assert!(is_on(&[answer], &[ask]));
        assert!(!is_on(&[ask], &[SYN_ACK]));
        assert!(!is_on(&[ask, SYN], &[answer]), "our last SYN refuses ECN");
        assert!(!is_on(&[answer], &[ask, SYN]), "the peer's last SYN refuses ECN");
        assert!(!is_on(&[ask], &[SYN_ACK | BOTH]), "a peer that reflects reserved bits");
        assert!(!is_on(&[ask], &[SYN_ACK | TcpFlags::CWR]));
    }

    #[test]
    fn marks_are_echoed_even_if_our_last_syn_refused_ecn() {
        let answer = SYN_ACK | TcpFlags::ECE;
        assert!(after(EcnRule::Request, &[SYN | BOTH, SYN], &[answer]).must_echo_marks());
        assert!(!after(EcnRule::Request, &[SYN], &[answer]).must_echo_marks());
    }

    #[test]
    fn only_an_ecn_setup_syn_gets_an_ecn_setup_syn_ack() {
        let answer = |rule, received: &[TcpFlags]| after(rule, &[], received).flags_of_syn_ack(0);
        assert_eq!(answer(EcnRule::Accept, &[SYN | BOTH]), TcpFlags::ECE);
        assert_eq!(
            answer(EcnRule::Accept, &[SYN | TcpFlags::ACE]),
            TcpFlags::ECE,
            "an AccECN request falls back to RFC 3168"
        );
        assert_eq!(answer(EcnRule::Off, &[SYN | BOTH]), TcpFlags::empty());
        for plain in [SYN, SYN | TcpFlags::ECE, SYN | TcpFlags::CWR] {
            assert_eq!(answer(EcnRule::Request, &[plain]), TcpFlags::empty());
        }
    }

    /// RFC 9768 tables 1 and 2, and §3.1.3 for reserved values: each of the eight values of the
    /// flags in a SYN-ACK selects a mode.
    #[test]
    fn each_syn_ack_to_an_accecn_request_selects_its_mode() {
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
            let mut client = exchange(client, &[SYN | TcpFlags::ACE], &[SYN_ACK | answer]);
            client.on_established();
            let found =
                (client.is_on(), client.accurate.is_some(), client.codepoint() == Ecn::Ect0);
            assert_eq!(found, expected, "{answer:?}");
        }
    }

    #[test]
    fn a_server_treats_reserved_ecn_flags_of_a_syn_as_an_accecn_request() {
        for asked in 0..8 {
            let syn = SYN | TcpFlags::of_ace(asked);
            let server = exchange(Notification::new(EcnRule::Accept, EcnRule::Accept), &[], &[syn]);
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

    /// RFC 9768 §3.1.5: after it has sent or received a SYN or SYN-ACK without ECN, a server sends
    /// Not-ECT. A client sends ECT(0) even then. Both stay in AccECN mode.
    #[test]
    fn a_refusal_makes_a_server_send_not_ect_and_keeps_the_mode() {
        let (ask, answer) = (SYN | TcpFlags::ACE, SYN_ACK | TcpFlags::of_ace(0b010));
        let state = |sent: &[TcpFlags], received: &[TcpFlags]| {
            let mut notification = Notification::new(EcnRule::Accept, EcnRule::Request);
            if received[0].contains(TcpFlags::ACK) {
                notification = exchange(notification, sent, received);
            } else {
                notification = exchange(notification, &[], received);
                notification = exchange(notification, sent, &[]);
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

    /// Checks the size of the ECN state, which is part of every connection. [`Accurate`] is not
    /// part of it, and is allocated only in AccECN mode.
    #[test]
    fn the_ecn_state_without_accecn_is_24_bytes() {
        assert_eq!(size_of::<Notification>(), 24);
        assert!(size_of::<Accurate>() <= 144, "{}", size_of::<Accurate>());
    }
}
