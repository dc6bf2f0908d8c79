//! TCP Fast Open (RFC 7413): data on the SYN, and its consequences for the handshake. The host
//! creates and checks cookies, remembers peers, and limits the number of requests.

use crate::compact::pack::packed;
use crate::event::Events;
use crate::receive::saturated;
use crate::send::scoreboard::Verdict;
use crate::{Connection, Error, State};
use linerate_wire::{FastOpenCookie, Segment, SeqNum, TcpOptions};

/// The MSS assumed for data on a SYN if the peer's MSS is not cached (RFC 7413 §4.1.3).
const DEFAULT_MSS: u16 = 536;

/// The maximum MSS for data on a SYN, because middleboxes may drop larger SYNs (RFC 7413 §4.1.3).
const LARGEST_MSS: u16 = 1_460;

/// The Fast Open request of an active open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenOffer {
    /// Requests a cookie for later connections.
    Request,
    /// Sends data on the SYN.
    Data {
        /// The cookie that the server issued earlier.
        cookie: FastOpenCookie,
        /// The MSS that the server announced with the cookie, if any.
        mss: Option<u16>,
    },
}

/// The outcome of a client's Fast Open, which the host should cache for the server (RFC 7413
/// §4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenLesson {
    /// The cookie in the SYN-ACK, for later connections.
    pub cookie: Option<FastOpenCookie>,
    /// The MSS in the SYN-ACK.
    pub mss: Option<u16>,
    /// Whether the SYN-ACK acknowledged any data on the SYN.
    pub accepted: bool,
    /// Whether the server or the path refuses Fast Open (RFC 7413 §4.1.3.1). This is assumed in
    /// three cases. A requested cookie was not returned. Data was not acknowledged, and no new
    /// cookie was returned. The first SYN, with the Fast Open option, got no answer.
    pub refused: bool,
}

packed!(FastOpenLesson { cookie, mss, accepted, refused });

/// The Fast Open state during the handshake.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FastOpen {
    /// The Fast Open option of our first SYN or SYN-ACK; retransmissions omit it.
    pub(crate) option: Option<FastOpenCookie>,
    /// The MSS that the peer announced in an earlier connection, if the host has cached it.
    mss: Option<u16>,
    /// The Fast Open option that our first SYN carried. `None` until that SYN is sent.
    tried: Option<FastOpenCookie>,
    /// The number of data bytes on our SYN.
    data_sent: u32,
    /// FastOpened (RFC 7413 §4.2): whether this endpoint, a server, may send data before the
    /// handshake is complete.
    opened: bool,
    /// Whether data on a SYN was accepted, by the peer or by this endpoint.
    accepted: bool,
    lesson: Option<FastOpenLesson>,
}

packed!(FastOpen { option, mss, tried, data_sent, opened, accepted, lesson });

impl Connection {
    pub(crate) fn try_fast_open(&mut self, offer: FastOpenOffer) {
        let fast_open = self.fast_open.get_or_insert_default();
        (fast_open.option, fast_open.mss) = match offer {
            FastOpenOffer::Request => (Some(FastOpenCookie::REQUEST), None),
            FastOpenOffer::Data { cookie, mss } => (Some(cookie), mss),
        };
    }

    pub(crate) fn open_fast(&mut self, syn: &Segment<'_>) {
        let accepted = self.take_data_of_syn(syn) > 0;
        let fast_open = self.fast_open.get_or_insert_default();
        (fast_open.opened, fast_open.accepted) = (true, accepted);
    }

    /// Returns the outcome of Fast Open, if this endpoint is a client. `None` if the outcome is not
    /// known yet, or Fast Open was not used.
    #[inline]
    #[must_use]
    pub fn fast_open_lesson(&self) -> Option<FastOpenLesson> {
        self.fast_open.as_ref().and_then(|fast_open| self.lesson_of(fast_open))
    }

    #[cold]
    fn lesson_of(&self, fast_open: &FastOpen) -> Option<FastOpenLesson> {
        if fast_open.lesson.is_some() || self.state != State::Closed {
            return fast_open.lesson;
        }
        // The handshake has ended without an answer. If the connection has failed, Fast Open counts
        // as refused. If the application has closed or aborted it, Fast Open counts as refused only
        // if the first SYN has timed out: before that, an answer may still have been on its way.
        let tried = fast_open.tried.is_some();
        let gave_up = !matches!(self.error, None | Some(Error::Aborted));
        let refused = tried && (gave_up || self.sender.expiries > 0);
        refused.then_some(FastOpenLesson { cookie: None, mss: None, accepted: false, refused })
    }

    /// Whether data or a FIN may be sent. With Fast Open, a server may send both before the
    /// handshake is complete, until the SYN-ACK times out. The timeout suggests that the client's
    /// address is spoofed, or that the client has received no SYN-ACK.
    pub(crate) fn may_send(&self) -> bool {
        self.state.sends_data() || self.may_send_early()
    }

    fn may_send_early(&self) -> bool {
        self.state == State::SynReceived && self.is_opened_fast() && self.sender.expiries == 0
    }

    fn is_opened_fast(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast_open| fast_open.opened)
    }

    /// Returns the Fast Open option for the next SYN or SYN-ACK, if there is one and it fits beside
    /// the options `others` (RFC 7413 §4.2.2 step 1).
    pub(crate) fn fast_open_option(&self, others: &TcpOptions) -> Option<FastOpenCookie> {
        let is_first = self.snd.max == self.snd.iss;
        self.fast_open.as_ref()?.option.filter(|&cookie| {
            let together = TcpOptions { fast_open: Some(cookie), ..*others };
            is_first && together.length() <= TcpOptions::MAX_LENGTH
        })
    }

    /// Returns the number of data bytes for which the next SYN has room. Zero if there is no
    /// cookie, or if a SYN was sent already.
    #[must_use]
    pub fn room_on_syn(&self) -> u32 {
        self.room_on_syn_with(&self.options_of_syn())
    }

    /// Returns the number of written bytes that the next SYN will carry.
    pub(crate) fn data_for_syn(&self) -> u32 {
        if self.fast_open.is_none() {
            0
        } else {
            self.room_on_syn().min(saturated(self.sender.buffer.len()))
        }
    }

    /// Returns the number of data bytes that fit a SYN with `options`. Urgent data is never sent on
    /// a SYN, because the end of urgent data beyond this segment could not be expressed.
    fn room_on_syn_with(&self, options: &TcpOptions) -> u32 {
        let brings = options.fast_open.is_some_and(|cookie| !cookie.is_request());
        let Some(fast_open) = self.fast_open.as_ref().filter(|_| brings) else { return 0 };
        if self.state != State::SynSent || self.sender.urgent.is_some() {
            return 0;
        }
        let mss = u32::from(fast_open.mss.unwrap_or(DEFAULT_MSS).min(LARGEST_MSS));
        mss.min(self.path.mss()).saturating_sub(saturated(options.length()))
    }

    /// Records that the first SYN of an active open was sent with `length` bytes of data.
    #[cold]
    pub(crate) fn note_fast_open_syn(&mut self, length: u32) {
        if self.state != State::SynSent {
            return;
        }
        let cookie = self.options_of_syn().fast_open;
        if let Some(fast_open) = &mut self.fast_open {
            (fast_open.tried, fast_open.data_sent) = (cookie, length);
        }
    }

    /// Evaluates the answer in the SYN-ACK to our Fast Open option (RFC 7413 §4.2.2, the client's
    /// step 1).
    #[cold]
    pub(crate) fn evaluate_fast_open(&mut self, syn_ack: &Segment<'_>) {
        let Some(fast_open) = self.fast_open.as_ref() else { return };
        let Some(tried) = fast_open.tried else { return };
        let options = syn_ack.options();
        let cookie = options.fast_open.filter(|cookie| !cookie.is_request());
        let brought = fast_open.data_sent > 0;
        let accepted = self.acknowledge_data_of_syn(syn_ack.ack);
        // If the server has sent a new cookie, our cookie was outdated. This explains why our data
        // was not accepted, so Fast Open does not count as refused.
        let is_renewed = cookie.is_some_and(|cookie| cookie != tried);
        // The first SYN got no answer, and the retransmitted SYN had no Fast Open option. The path
        // may have dropped the first SYN because of that option.
        let was_retransmitted = self.sender.expiries > 0;
        let wanted_more = brought || tried.is_request() || was_retransmitted;
        let refused = wanted_more && !accepted && !is_renewed;
        let lesson = FastOpenLesson { cookie, mss: options.mss, accepted, refused };
        self.fast_open.get_or_insert_default().lesson = Some(lesson);
        // The SYN-ACK may contain the server's answer to our data. If we ignored that answer, the
        // server would retransmit it only after a timeout.
        self.take_data_of_syn(syn_ack);
    }

    /// Processes `ack`, the acknowledgement number of the SYN-ACK. Returns whether it acknowledges
    /// any data on our SYN. Data on the SYN that it does not acknowledge counts as unsent, so that
    /// it is sent again at once.
    #[cold]
    pub(crate) fn acknowledge_data_of_syn(&mut self, ack: SeqNum) -> bool {
        let brought = self.fast_open.as_mut().filter(|fast_open| fast_open.data_sent > 0);
        let Some(fast_open) = brought else { return false };
        let taken = ack - self.snd.iss - 1;
        (fast_open.data_sent, fast_open.accepted) = (taken, taken > 0);
        self.statistics.bytes_sent += u64::from(taken);
        self.snd.nxt = ack;
        self.snd.max = ack;
        taken > 0
    }

    /// Handles the timeout of a SYN-ACK with Fast Open. Data that was sent after the SYN-ACK counts
    /// as lost as well: clients drop data that arrives before the SYN-ACK.
    pub(crate) fn withdraw_early_data(&mut self) {
        if !self.is_opened_fast() {
            return;
        }
        if self.agreement.selective_acks {
            self.sender.scoreboard.mark_lost(|_| Verdict::Lost);
        } else {
            self.snd.nxt = self.snd.iss + 1;
        }
    }

    /// Stores the data of the peer's SYN or SYN-ACK, as far as there is room, and returns its
    /// length. A FIN on it is ignored, because the peer retransmits the FIN.
    fn take_data_of_syn(&mut self, syn: &Segment<'_>) -> usize {
        let length = syn.payload.len().min(self.receiver.buffer.free()).min(usize::from(u16::MAX));
        let data = &syn.payload[..length];
        if data.is_empty() || !self.receiver.buffer.append_copy(data, &self.memory) {
            return 0;
        }
        self.rcv.nxt += saturated(length);
        self.rcv.edge = self.rcv.edge.later(self.rcv.nxt);
        self.receiver.largest_segment = self.receiver.largest_segment.max(saturated(length));
        self.statistics.bytes_received += length as u64;
        self.events |= Events::READABLE;
        length
    }

    /// Whether data on a SYN was accepted, by the peer or by this endpoint (`TCPI_OPT_SYN_DATA`).
    pub(crate) fn is_syn_data_accepted(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast_open| fast_open.accepted)
    }
}
