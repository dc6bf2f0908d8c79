//! Explicit congestion notification (RFC 3168): what the two SYNs say of it, the marks that are echoed
//! to the peer, and the echoes that the peer's acknowledgements bring. Which bits a packet bears in its IP
//! header is told by [`crate::Transmit::ecn`], and learned by [`crate::Connection::handle_marked_segment`].

use crate::rest::pack::{packed, packed_enum};
use crate::send::loss::Phase;
use crate::{Connection, State};
use linerate_units::Instant;
use linerate_wire::{Ecn, Segment, SeqNum, TcpFlags};

/// Both bits of ECN in the header.
const BOTH: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR);

/// Does a connection take part in explicit congestion notification?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnRule {
    /// No.
    Off,
    /// If the peer asks for it (Linux's default, `tcp_ecn` 2).
    Accept,
    /// If the peer can; our own SYN asks for it, and the second try does without, because there are
    /// boxes that drop a SYN that asks (`tcp_ecn` 1).
    Request,
}

packed_enum!(EcnRule { Off, Accept, Request });

/// Which kinds of SYN, or SYN-ACK, have gone one way (RFC 3168 §6.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Syns {
    /// One that says yes: an "ECN-setup SYN".
    setup: bool,
    /// One that says no.
    plain: bool,
}

packed!(Syns { setup, plain });

impl Syns {
    fn note(&mut self, flags: TcpFlags) {
        // A peer that echoes reserved bits answers with both: it does not know what they mean
        // (RFC 3168 §6.1.1.2).
        let yes = if flags.contains(TcpFlags::ACK) { TcpFlags::ECE } else { BOTH };
        let says_yes = flags & BOTH == yes;
        self.setup |= says_yes;
        self.plain |= !says_yes;
    }

    const fn agree(self) -> bool {
        self.setup && !self.plain
    }
}

/// The ECN state of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Notification {
    rule: EcnRule,
    sent: Syns,
    heard: Syns,
    /// What new data bears; ECT(0) once both ends have agreed.
    codepoint: Ecn,
    /// ECE from a mark on until the peer says that it has reduced its window.
    echo: TcpFlags,
    /// The next new data says that the window was reduced.
    cwr_due: bool,
    /// Bytes that had been sent when an echo last reduced the window: echoes of these tell nothing new.
    reduced_at: Option<u64>,
}

packed!(Notification { rule, sent, heard, codepoint, echo, cwr_due, reduced_at });

impl Notification {
    pub(crate) const fn new(rule: EcnRule) -> Self {
        let none = Syns { setup: false, plain: false };
        Self {
            rule,
            sent: none,
            heard: none,
            codepoint: Ecn::NotEct,
            echo: TcpFlags::empty(),
            cwr_due: false,
            reduced_at: None,
        }
    }

    /// The bits of our SYN; `first` if none has left yet.
    pub(crate) fn flags_of_syn(&self, first: bool) -> TcpFlags {
        if self.rule == EcnRule::Request && first { BOTH } else { TcpFlags::empty() }
    }

    /// The bits of our SYN-ACK: an answer in kind to what the peer has asked for.
    pub(crate) fn flags_of_syn_ack(&self) -> TcpFlags {
        let yes = self.rule != EcnRule::Off && self.heard.agree() && !self.sent.plain;
        if yes { TcpFlags::ECE } else { TcpFlags::empty() }
    }

    pub(crate) fn note_sent_syn(&mut self, flags: TcpFlags) {
        self.sent.note(flags);
        self.settle();
    }

    pub(crate) fn note_heard_syn(&mut self, flags: TcpFlags) {
        self.heard.note(flags);
        self.settle();
    }

    fn settle(&mut self) {
        let agreed = self.sent.agree() && self.heard.agree();
        self.codepoint = if agreed { Ecn::Ect0 } else { Ecn::NotEct };
    }

    /// Does new data invite routers to mark it, and do echoes count?
    pub(crate) fn is_on(&self) -> bool {
        self.codepoint != Ecn::NotEct
    }

    /// Must marks be echoed? Even if our last SYN said no: the peer may have heard the one before
    /// (RFC 3168 §6.1.1).
    const fn hears_marks(&self) -> bool {
        self.sent.setup && self.heard.agree()
    }

    /// The codepoint of new data.
    pub(crate) const fn codepoint(&self) -> Ecn {
        self.codepoint
    }

    /// What every acknowledgement says beside its number.
    pub(crate) const fn echo(&self) -> TcpFlags {
        self.echo
    }

    /// What new data says beside its number.
    pub(crate) fn flags_of_new_data(&self) -> TcpFlags {
        if self.cwr_due { TcpFlags::CWR } else { TcpFlags::empty() }
    }

    pub(crate) const fn on_new_data_sent(&mut self) {
        self.cwr_due = false;
    }

    /// The window was reduced, for whatever reason: the peer is told with the next new data.
    pub(crate) fn on_reduced(&mut self) {
        self.cwr_due = self.is_on();
    }

    /// Has an echo reduced the window for all that is sent up to `acknowledged` bytes?
    fn has_reduced_for(&self, acknowledged: u64) -> bool {
        self.reduced_at.is_some_and(|sent| acknowledged <= sent)
    }

    /// The connection is only there to let old segments die (RFC 3168 §6.1.1: what was agreed on is
    /// ignored from TIME-WAIT on).
    pub(crate) const fn forget(&mut self) {
        *self = Self::new(EcnRule::Off);
    }
}

impl Connection {
    /// The ECN bits of the SYN or SYN-ACK that is to leave.
    pub(crate) fn ecn_flags_of_syn(&self) -> TcpFlags {
        if self.state == State::SynSent {
            self.ecn.flags_of_syn(self.snd.max == self.snd.iss)
        } else {
            self.ecn.flags_of_syn_ack()
        }
    }

    /// Data inside the window bore a mark (RFC 3168 §6.1.3).
    pub(crate) fn take_mark(&mut self) {
        if !self.ecn.hears_marks() {
            return;
        }
        self.statistics.marked_segments += 1;
        // A sender whose window is down to one segment would wait for the delayed acknowledgement.
        if self.ecn.echo.is_empty() {
            self.owe_ack();
        }
        self.ecn.echo = TcpFlags::ECE;
    }

    /// The peer has reduced its window: what it marked itself by is echoed no longer.
    pub(crate) fn check_window_reduced(&mut self, segment: &Segment<'_>) {
        if !segment.flags().contains(TcpFlags::CWR) || self.ecn.echo.is_empty() {
            return;
        }
        self.ecn.echo = TcpFlags::empty();
        // Its window may be a single segment now.
        if !segment.payload.is_empty() {
            self.owe_ack();
        }
    }

    /// Does the segment tell that data of ours was marked?
    pub(crate) fn is_echo(&self, segment: &Segment<'_>) -> bool {
        segment.flags().contains(TcpFlags::ECE) && self.ecn.is_on()
    }

    /// Has an echo reduced the window that was in use when what ends at `end`, acknowledged by now, was in
    /// flight?
    pub(crate) fn is_reduced_by_mark(&self, end: SeqNum) -> bool {
        let since = u64::from(self.snd.una - end);
        self.ecn.has_reduced_for(self.statistics.bytes_acknowledged.saturating_sub(since))
    }

    /// An acceptable acknowledgement echoes a mark: the window is reduced as for a loss, once for all the
    /// marks and losses of one window (RFC 3168 §6.1.2).
    pub(crate) fn on_echo(&mut self, now: Instant, segment: &Segment<'_>) {
        self.statistics.mark_echoes += 1;
        let window = self.sender.congestion.window();
        if window.cwnd() < 2 * window.mss() {
            // The window cannot shrink any more, so the next segment waits as if this one were lost.
            self.sender.pacer.hold(now + self.sender.rtt.timeout());
        }
        let newly = if segment.ack.after(self.snd.una) { segment.ack - self.snd.una } else { 0 };
        let acknowledged = self.statistics.bytes_acknowledged + u64::from(newly);
        if self.ecn.has_reduced_for(acknowledged) || self.sender.loss.phase != Phase::Open {
            return;
        }
        self.statistics.mark_reductions += 1;
        let flight = self.in_flight();
        self.sender.congestion.controller().on_mark(flight);
        self.ecn.reduced_at = Some(self.statistics.bytes_sent);
        self.ecn.on_reduced();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYN: TcpFlags = TcpFlags::SYN;
    const SYN_ACK: TcpFlags = TcpFlags::SYN.union(TcpFlags::ACK);

    /// What a connection believes that has sent and heard these.
    fn after(rule: EcnRule, sent: &[TcpFlags], heard: &[TcpFlags]) -> Notification {
        let mut notification = Notification::new(rule);
        sent.iter().for_each(|&flags| notification.note_sent_syn(flags));
        heard.iter().for_each(|&flags| notification.note_heard_syn(flags));
        notification
    }

    #[test]
    fn both_sides_have_to_say_yes_and_never_no() {
        let (ask, answer) = (SYN | BOTH, SYN_ACK | TcpFlags::ECE);
        let is_on = |sent: &[TcpFlags], heard: &[TcpFlags]| after(EcnRule::Request, sent, heard).is_on();
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
        let answer = |rule, heard: &[TcpFlags]| after(rule, &[], heard).flags_of_syn_ack();
        assert_eq!(answer(EcnRule::Accept, &[SYN | BOTH]), TcpFlags::ECE);
        assert_eq!(answer(EcnRule::Off, &[SYN | BOTH]), TcpFlags::empty());
        for plain in [SYN, SYN | TcpFlags::ECE, SYN | TcpFlags::CWR] {
            assert_eq!(answer(EcnRule::Request, &[plain]), TcpFlags::empty());
        }
    }
}
