//! The sending half: what was written, what is in flight, and what the peer and the network allow.

pub(crate) mod buffer;
pub(crate) mod busy_time;
pub(crate) mod delivery;
mod duplicates;
mod first_flight;
pub(crate) mod frto;
pub(crate) mod loss;
pub(crate) mod pacing;
pub(crate) mod path_mtu;
pub(crate) mod path_probe;
mod path_report;
mod probe;
mod prr;
mod rack;
pub(crate) mod recovery;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
mod stretches;
mod undo;
mod usage;

use crate::SharedConfig;
use crate::congestion::Congestion;
use crate::opening::DEFAULT_PEER_MSS;
use crate::rest::pack::{packed, packed_enum};
use alloc::boxed::Box;
use buffer::SendBuffer;
use busy_time::BusyTime;
use delivery::DeliveryAccount;
use first_flight::FirstFlight;
use linerate_units::Instant;
use linerate_wire::SeqNum;
use loss::Loss;
use pacing::Pacer;
use path_mtu::PathMtu;
use prr::Prr;
use rack::Rack;
use rtt::RoundTrip;
use scoreboard::Scoreboard;
use undo::Undo;
use usage::Usage;

/// The send sequence variables (RFC 9293 §3.3.1). Those that the data arm of header prediction
/// reads come first.
///
/// Invariant: `una ≤ nxt ≤ max`.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct SendSequence {
    /// SND.UNA: the oldest number not acknowledged.
    pub(crate) una: SeqNum,
    /// SND.WL1: SEG.SEQ of the last window update.
    pub(crate) wl1: SeqNum,
    /// SND.WL2: SEG.ACK of the last window update.
    pub(crate) wl2: SeqNum,
    /// SND.WND: what the peer allows beyond una, in bytes.
    pub(crate) wnd: u32,
    /// SND.NXT: the next number to send; behind `max` while old segments are sent again.
    pub(crate) nxt: SeqNum,
    /// One beyond the highest number ever sent.
    pub(crate) max: SeqNum,
    /// Max(SND.WND) (RFC 9293 §3.8.6.2.1): the peer's buffer, as far as we can tell.
    pub(crate) max_wnd: u32,
    /// ISS: our initial number.
    pub(crate) iss: SeqNum,
}

// The first lies beside the peer's numbers, the others beside each other.
packed!(SendSequence { wl1, una, wl2, nxt, max, iss, wnd, max_wnd });

impl SendSequence {
    pub(crate) const fn new(iss: SeqNum) -> Self {
        Self { una: iss, wl1: iss, wl2: iss, wnd: 0, nxt: iss, max: iss, max_wnd: 0, iss }
    }

    /// What was sent and is not acknowledged, in sequence numbers.
    pub(crate) fn flight(&self) -> u32 {
        self.max - self.una
    }
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// It is taken as far as the buffer has room.
    Taken,
    /// It is taken while little is unsent: there is a low-water mark.
    Limited,
    /// It is refused: the application has closed, and a FIN follows the last byte.
    Closed,
}

packed_enum!(Writes { Taken, Limited, Closed });

/// The send buffer and everything that decides what leaves it. First comes what is asked before anything leaves, be
/// it an acknowledgement, then what only data and their acknowledgements touch, and last what only losses and the search
/// for the path's width do.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) usage: Usage,
    /// Bytes of TCP payload that a segment to this peer may have beside the options that every one carries.
    pub(crate) full: u32,
    pub(crate) writes: Writes,
    /// When we could last send, the congestion window, or pacing, was what stopped us.
    pub(crate) held_back: bool,
    /// There was no room for all that the application has written last.
    pub(crate) write_refused: bool,
    /// The same of any write since the buffer was last empty: somebody may wait for room, though another has
    /// found some.
    pub(crate) room_awaited: bool,
    /// The persist timer has expired: something must leave, whatever the window says.
    pub(crate) probe_due: bool,
    /// The network has reported that the peer cannot be reached, and it has acknowledged nothing new
    /// since.
    pub(crate) unreachable: bool,
    /// How often the retransmission timer has expired since the peer last acknowledged something new.
    pub(crate) expiries: u32,
    pub(crate) pacer: Pacer,
    pub(crate) buffer: SendBuffer,
    pub(crate) rtt: RoundTrip,
    /// Once something was written: those that wait in a flood shall not be larger for it.
    pub(crate) busy: Option<Box<BusyTime>>,
    /// SND.UP while urgent data is not acknowledged: the number after it.
    pub(crate) urgent: Option<SeqNum>,
    /// The end of the last segment that was sent although not full (Minshall's SND.SML).
    pub(crate) small_end: SeqNum,
    /// Probes since the window was last open.
    pub(crate) probes: u32,
    /// Since when the peer has owed an answer; [`Instant::NEVER`] if it does not.
    pub(crate) silent_since: Instant,
    /// When the peer last acknowledged something new.
    pub(crate) progressed: Instant,
    /// When a segment with data last left that was no probe of a closed window.
    pub(crate) last_sent: Instant,
    pub(crate) loss: Loss,
    pub(crate) account: DeliveryAccount,
    pub(crate) rack: Rack,
    /// What is in flight, with a peer that names what it has; empty with any other.
    pub(crate) scoreboard: Scoreboard,
    pub(crate) congestion: Congestion,
    pub(crate) prr: Prr,
    /// What the last loss has cost, in case it was none.
    pub(crate) undo: Option<Box<Undo>>,
    pub(crate) first_flight: FirstFlight,
    pub(crate) path: PathMtu,
}

packed!(Sender {
    buffer,
    writes,
    full,
    rtt,
    path,
    loss,
    first_flight,
    congestion,
    pacer,
    scoreboard,
    account,
    rack,
    prr,
    undo,
    held_back,
    usage,
    small_end,
    urgent,
    probe_due,
    probes,
    silent_since,
    unreachable,
    expiries,
    progressed,
    last_sent,
    busy,
    write_refused,
    room_awaited,
});

impl Sender {
    #[inline(always)]
    pub(crate) fn new(config: &SharedConfig, iss: SeqNum, path: PathMtu, now: Instant) -> Self {
        Self {
            buffer: SendBuffer::new(iss + 1, config.send_buffer.initial()),
            writes: Writes::Taken,
            full: DEFAULT_PEER_MSS.into(),
            rtt: RoundTrip::new(&config.rto),
            path,
            loss: Loss::new(iss),
            first_flight: FirstFlight::default(),
            congestion: Congestion::before_handshake(config.window().clone()),
            pacer: Pacer::new(now),
            scoreboard: Scoreboard::new(iss + 1),
            account: DeliveryAccount::new(now),
            rack: Rack::new(iss + 1),
            prr: Prr::default(),
            undo: None,
            held_back: false,
            usage: Usage::new(iss),
            busy: None,
            write_refused: false,
            room_awaited: false,
            small_end: iss,
            urgent: None,
            probe_due: false,
            probes: 0,
            silent_since: Instant::NEVER,
            unreachable: false,
            expiries: 0,
            progressed: now,
            last_sent: now,
        }
    }

    /// `left` up to `right` leaves now, perhaps `again`: scoreboard and account remember it.
    #[inline(always)]
    pub(crate) fn depart(&mut self, now: Instant, left: SeqNum, right: SeqNum, again: bool) {
        let in_flight = self.scoreboard.in_flight();
        let then = in_flight.saturating_add(right - left);
        let departure = self.account.depart(now, in_flight == 0, again, then);
        self.scoreboard.note_sent(left, right, departure);
    }

    /// The same of what leaves while nothing is in flight, for the first time.
    #[inline(always)]
    pub(crate) fn depart_first(&mut self, now: Instant, left: SeqNum, right: SeqNum) {
        let departure = self.account.depart(now, true, false, right - left);
        self.scoreboard.note_first(left, right, departure);
    }

    /// As [`Connection::is_window_used`](crate::Connection), with so much in flight and full segments of that size.
    #[inline(always)]
    pub(crate) fn is_window_used(&self, in_flight: u32, full: u32, nxt: SeqNum) -> bool {
        let window = self.congestion.window();
        in_flight + full > window.cwnd()
            || (self.held_back && self.has_unsent(nxt))
            || (window.cwnd() < window.ssthresh() && self.usage.is_more_than_half_of(window.cwnd()))
    }

    /// Has the application closed, so that a FIN follows the last byte?
    #[inline(always)]
    pub(crate) fn fin(&self) -> bool {
        self.writes == Writes::Closed
    }

    /// Is there data, or a FIN, from `nxt` on?
    pub(crate) fn has_unsent(&self, nxt: SeqNum) -> bool {
        let end = self.buffer.end();
        nxt.before(end) || (self.fin() && nxt == end)
    }

    /// Has everything been acknowledged, the FIN too?
    pub(crate) fn is_fin_acknowledged(&self, una: SeqNum) -> bool {
        self.fin() && una.after(self.buffer.end())
    }

    pub(crate) fn check(&self, snd: &SendSequence) {
        self.buffer.check();
        self.congestion.window().check();
        self.path.check();
        assert!(!snd.una.after(snd.nxt), "una {} after nxt {}", snd.una, snd.nxt);
        assert!(!snd.nxt.after(snd.max), "nxt {} after max {}", snd.nxt, snd.max);
        let end = self.buffer.end() + u32::from(self.fin());
        assert!(!snd.max.after(end), "sent {} beyond the end {end} of what was written", snd.max);
    }
}
