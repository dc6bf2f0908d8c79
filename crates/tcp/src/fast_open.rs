//! TCP Fast Open (RFC 7413): data on the SYN, and what follows from it for the handshake. Which cookie is
//! right, whether a peer is worth trying, and how many may wait is the host's business.

use crate::event::Events;
use crate::receive::saturated;
use crate::rest::pack::packed;
use crate::send::scoreboard::Verdict;
use crate::{Connection, Error, State};
use linerate_wire::{FastOpenCookie, Segment, SeqNum, TcpOptions};

/// What a SYN may bear beside its options when the peer's MSS is not remembered (RFC 7413 §4.1.3).
const DEFAULT_MSS: u16 = 536;

/// The most that it may bear, whatever the peer says: larger SYNs are what middleboxes stumble over
/// (§4.1.3).
const LARGEST_MSS: u16 = 1_460;

/// What an active open tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpenOffer {
    /// To get a cookie for the next time.
    Request,
    /// To have its data taken from the SYN.
    Data {
        /// What the server has given the last time.
        cookie: FastOpenCookie,
        /// The MSS that it announced then, if it did.
        mss: Option<u16>,
    },
}

/// What the try of a client has shown, to be remembered for the next (RFC 7413 §4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastOpenLesson {
    /// The cookie that the SYN-ACK has brought.
    pub cookie: Option<FastOpenCookie>,
    /// The MSS that it announced.
    pub mss: Option<u16>,
    /// The data was acknowledged with the SYN.
    pub accepted: bool,
    /// The server, or something on the way to it, does not want this: no cookie for one that asked, data
    /// that was not acknowledged although the cookie is still good, or no answer at all (§4.1.3.1).
    pub refused: bool,
}

packed!(FastOpenLesson { cookie, mss, accepted, refused });

/// What both ends know of it while the handshake goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FastOpen {
    /// What the first SYN, or SYN-ACK, bears; none that leaves again does.
    option: Option<FastOpenCookie>,
    /// The MSS that the peer announced another time.
    mss: Option<u16>,
    /// What our SYN has borne, once it has left.
    tried: Option<FastOpenCookie>,
    /// Bytes of data on it.
    data_sent: u32,
    /// FastOpened (RFC 7413 §4.2): the peer's SYN was as good as its ACK will be.
    opened: bool,
    /// Data on a SYN, ours or the peer's, has counted.
    accepted: bool,
    lesson: Option<FastOpenLesson>,
}

packed!(FastOpen { option, mss, tried, data_sent, opened, accepted, lesson });

impl Connection {
    /// Lets the SYN of an active open ask for a cookie, or bring one, with what is written before it leaves
    /// (RFC 7413 §4.2). Only for data that may arrive twice: a SYN that the network has doubled may open a
    /// second connection after the first was forgotten (§6.1).
    pub fn try_fast_open(&mut self, offer: FastOpenOffer) {
        let fast_open = self.fast_open.get_or_insert_default();
        (fast_open.option, fast_open.mss) = match offer {
            FastOpenOffer::Request => (Some(FastOpenCookie::REQUEST), None),
            FastOpenOffer::Data { cookie, mss } => (Some(cookie), mss),
        };
    }

    /// Lets the SYN-ACK of a passive open give the peer a cookie for its next time.
    pub fn give_cookie(&mut self, cookie: FastOpenCookie) {
        self.fast_open.get_or_insert_default().option = Some(cookie);
    }

    /// Takes the data of `syn`, by which the connection was accepted and whose cookie was found right: it
    /// can be read, and answered, before the handshake is complete (RFC 7413 §4.2.2). Only where data may
    /// arrive twice (§6.1).
    pub fn open_fast(&mut self, syn: &Segment<'_>) {
        let accepted = self.take_data_of_syn(syn) > 0;
        let fast_open = self.fast_open.get_or_insert_default();
        (fast_open.opened, fast_open.accepted) = (true, accepted);
    }

    /// What the try of this client has shown; `None` as long as it has shown nothing, or there was none.
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
        // It ended before it was answered. An application that loses patience says nothing of the path,
        // unless the path had its time.
        let tried = fast_open.tried.is_some();
        let gave_up = !matches!(self.error, None | Some(Error::Aborted));
        let refused = tried && (gave_up || self.sender.expiries > 0);
        refused.then_some(FastOpenLesson { cookie: None, mss: None, accepted: false, refused })
    }

    /// May data, or a FIN, leave? Of a connection that was opened fast also before the handshake is
    /// complete; but once the SYN-ACK has been lost, or was sent to somebody who has not asked for it,
    /// no more than that follows it.
    pub(crate) fn may_send(&self) -> bool {
        self.state.sends_data() || self.may_send_early()
    }

    fn may_send_early(&self) -> bool {
        self.state == State::SynReceived && self.is_opened_fast() && self.sender.expiries == 0
    }

    fn is_opened_fast(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast_open| fast_open.opened)
    }

    /// The option of the SYN, or SYN-ACK, that leaves now beside `others`, if there is one and it fits (RFC
    /// 7413 §4.2.2 step 1).
    pub(crate) fn fast_open_option(&self, others: &TcpOptions) -> Option<FastOpenCookie> {
        let is_first = self.snd.max == self.snd.iss;
        self.fast_open.as_ref()?.option.filter(|&cookie| {
            let together = TcpOptions { fast_open: Some(cookie), ..*others };
            is_first && together.length() <= TcpOptions::MAX_LENGTH
        })
    }

    /// How much data the SYN that is about to leave can bring: none without a cookie, and none once it has
    /// left.
    #[must_use]
    pub fn room_on_syn(&self) -> u32 {
        self.room_beside(&self.options_of_syn())
    }

    /// How much of what was written leaves with the SYN.
    pub(crate) fn data_for_syn(&self) -> u32 {
        if self.fast_open.is_none() {
            0
        } else {
            self.room_on_syn().min(saturated(self.sender.buffer.len()))
        }
    }

    /// How much data a SYN that bears `options` can bring. The end of urgent data could not be told there.
    fn room_beside(&self, options: &TcpOptions) -> u32 {
        let brings = options.fast_open.is_some_and(|cookie| !cookie.is_request());
        let Some(fast_open) = self.fast_open.as_ref().filter(|_| brings) else { return 0 };
        if self.state != State::SynSent || self.sender.urgent.is_some() {
            return 0;
        }
        let mss = u32::from(fast_open.mss.unwrap_or(DEFAULT_MSS).min(LARGEST_MSS));
        mss.min(self.path.mss()).saturating_sub(saturated(options.length()))
    }

    /// The first SYN of an active open has left with its cookie and so much data.
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

    /// The SYN-ACK says what became of the try (RFC 7413 §4.2.2, the client's step 1).
    #[cold]
    pub(crate) fn learn_from_syn_ack(&mut self, syn_ack: &Segment<'_>) {
        let Some(fast_open) = self.fast_open.as_ref() else { return };
        let Some(tried) = fast_open.tried else { return };
        let options = syn_ack.options();
        let cookie = options.fast_open.filter(|cookie| !cookie.is_request());
        let brought = fast_open.data_sent > 0;
        let accepted = self.settle_data_of_syn(syn_ack.ack);
        // A cookie in place of ours means that ours was too old, and the next one is welcome.
        let is_renewed = cookie.is_some_and(|cookie| cookie != tried);
        // The answer to a SYN that went again bare shows that the first was lost, perhaps for what it bore.
        let went_again = self.sender.expiries > 0;
        let wanted_more = brought || tried.is_request() || went_again;
        let refused = wanted_more && !accepted && !is_renewed;
        let lesson = FastOpenLesson { cookie, mss: options.mss, accepted, refused };
        self.fast_open.get_or_insert_default().lesson = Some(lesson);
        // A server may have answered already, and would send that again only after a timeout.
        self.take_data_of_syn(syn_ack);
    }

    /// The peer's first acknowledgement, `ack`, tells how much of the data on our SYN it has taken, and
    /// whether it was any. The rest was never sent, as far as it is concerned, and leaves at once.
    #[cold]
    pub(crate) fn settle_data_of_syn(&mut self, ack: SeqNum) -> bool {
        let brought = self.fast_open.as_mut().filter(|fast_open| fast_open.data_sent > 0);
        let Some(fast_open) = brought else { return false };
        let taken = ack - self.snd.iss - 1;
        (fast_open.data_sent, fast_open.accepted) = (taken, taken > 0);
        self.statistics.bytes_sent += u64::from(taken);
        self.snd.nxt = ack;
        self.snd.max = ack;
        taken > 0
    }

    /// The SYN-ACK of a connection that was opened fast has not been acknowledged in time. What followed it
    /// was lost as well: a client that has no SYN-ACK drops it.
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

    /// Takes what the peer's SYN brings beside itself, as far as there is room; how much. Its FIN, if it has
    /// one, is left to be sent again.
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

    /// Has data on a SYN, ours or the peer's, counted (`TCPI_OPT_SYN_DATA`)?
    pub(crate) fn is_syn_data_accepted(&self) -> bool {
        self.fast_open.as_ref().is_some_and(|fast_open| fast_open.accepted)
    }
}
