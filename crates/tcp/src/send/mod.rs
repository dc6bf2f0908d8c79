//! The sending half of a connection: written data, data in flight, and the limits of the peer and
//! the network.

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
mod sent_ranges;
mod undo;
mod usage;

use crate::SharedConfig;
use crate::compact::pack::{packed, packed_enum};
use crate::congestion::Congestion;
use crate::opening::DEFAULT_PEER_MSS;
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

/// The send sequence variables (RFC 9293 §3.3.1). Fields that header prediction of data reads come
/// first.
///
/// Invariant: `una ≤ nxt ≤ max`.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct SendSequence {
    /// SND.UNA: the oldest unacknowledged sequence number.
    pub(crate) una: SeqNum,
    /// SND.WL1: SEG.SEQ of the segment that most recently updated the window.
    pub(crate) wl1: SeqNum,
    /// SND.WL2: SEG.ACK of the segment that most recently updated the window.
    pub(crate) wl2: SeqNum,
    /// SND.WND: the peer's window in bytes, from SND.UNA.
    pub(crate) wnd: u32,
    /// SND.NXT: the next sequence number to send. It is less than SND.MAX during retransmissions.
    pub(crate) nxt: SeqNum,
    /// SND.MAX: the number after the highest sequence number ever sent.
    pub(crate) max: SeqNum,
    /// Max(SND.WND) (RFC 9293 §3.8.6.2.1): the largest window that the peer has announced so far.
    /// It is an estimate of the size of the peer's receive buffer.
    pub(crate) max_wnd: u32,
    /// ISS: our initial sequence number.
    pub(crate) iss: SeqNum,
}

// Fields with similar values are adjacent, since a compact connection stores each sequence number
// as the difference from the one before it.
packed!(SendSequence { wl1, una, wl2, nxt, max, iss, wnd, max_wnd });

impl SendSequence {
    pub(crate) const fn new(iss: SeqNum) -> Self {
        Self { una: iss, wl1: iss, wl2: iss, wnd: 0, nxt: iss, max: iss, max_wnd: 0, iss }
    }

    /// Returns the length of the data in flight, in sequence numbers.
    pub(crate) fn flight(&self) -> u32 {
        self.max - self.una
    }
}

/// The condition that decides whether the application may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Writing is possible while the send buffer has room.
    Taken,
    /// Writing is possible while the unsent data is less than the low-water mark.
    Limited,
    /// Writing is impossible, because the application has closed the sending direction. A FIN
    /// follows the written data.
    Closed,
}

packed_enum!(Writes { Taken, Limited, Closed });

/// The send buffer, and the state that decides what is sent. Fields are ordered by use. The fields
/// that every output uses come first. Then come the fields for data and its acknowledgements, and
/// at the end those for losses and the path MTU.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) usage: Usage,
    /// The number of data bytes in a full segment: the MSS less the options that every segment
    /// carries.
    pub(crate) full: u32,
    pub(crate) writes: Writes,
    /// Whether the congestion window, pacing or a path MTU probe held back data at the most recent
    /// end of output.
    pub(crate) held_back: bool,
    /// Whether the most recent write did not fit the send buffer completely.
    pub(crate) write_refused: bool,
    /// Whether any write has not fitted the send buffer since it was most recently empty. The most
    /// recent write is not enough to know this: with several writing threads, one may have found
    /// room while another waits.
    pub(crate) room_awaited: bool,
    /// Whether the persist timer has expired, so that a segment must be sent although the peer's
    /// window does not permit it.
    pub(crate) probe_due: bool,
    /// Whether the network has reported the peer as unreachable, and no new data was acknowledged
    /// since.
    pub(crate) unreachable: bool,
    /// The number of expiries of the retransmission timer since the peer most recently acknowledged
    /// new data.
    pub(crate) expiries: u32,
    pub(crate) pacer: Pacer,
    pub(crate) buffer: SendBuffer,
    pub(crate) rtt: RoundTrip,
    /// The busy time, allocated only by the first write, so that half-open connections stay small.
    pub(crate) busy: Option<Box<BusyTime>>,
    /// SND.UP: the sequence number after the urgent data, while it is unacknowledged.
    pub(crate) urgent: Option<SeqNum>,
    /// The end of the small segment that was sent most recently (Minshall's SND.SML).
    pub(crate) small_end: SeqNum,
    /// The number of window probes sent since the peer's window was closed.
    pub(crate) probes: u32,
    /// The start of the present period without an answer from the peer. [`Instant::NEVER`] if no
    /// answer is due.
    pub(crate) silent_since: Instant,
    /// The time when the peer most recently acknowledged new data.
    pub(crate) progressed: Instant,
    /// The time when data was most recently sent, not counting window probes.
    pub(crate) last_sent: Instant,
    pub(crate) loss: Loss,
    pub(crate) account: DeliveryAccount,
    pub(crate) rack: Rack,
    /// The ranges in flight if the peer supports SACK, otherwise empty.
    pub(crate) scoreboard: Scoreboard,
    pub(crate) congestion: Congestion,
    pub(crate) prr: Prr,
    /// The state of congestion control before the most recent recovery. It is restored if that
    /// recovery was spurious.
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

    /// Records in the scoreboard that the range from `left` to `right` is sent now. `again` is true
    /// for a retransmission.
    #[inline(always)]
    pub(crate) fn record_sent(&mut self, now: Instant, left: SeqNum, right: SeqNum, again: bool) {
        let in_flight = self.scoreboard.in_flight();
        let then = in_flight.saturating_add(right - left);
        let send_record = self.account.record_sent(now, in_flight == 0, again, then);
        self.scoreboard.note_sent(left, right, send_record);
    }

    /// Records that new data from `left` to `right` is sent now, while nothing else is in flight.
    #[inline(always)]
    pub(crate) fn record_first_sent(&mut self, now: Instant, left: SeqNum, right: SeqNum) {
        let send_record = self.account.record_sent(now, true, false, right - left);
        self.scoreboard.note_first(left, right, send_record);
    }

    /// Whether the congestion window limits the sender, with `in_flight` bytes in flight and full
    /// segments of `full` bytes; see [`Connection::is_window_used`](crate::Connection).
    #[inline(always)]
    pub(crate) fn is_window_used(&self, in_flight: u32, full: u32, nxt: SeqNum) -> bool {
        let window = self.congestion.window();
        in_flight + full > window.cwnd()
            || (self.held_back && self.has_unsent(nxt))
            || (window.cwnd() < window.ssthresh() && self.usage.is_more_than_half_of(window.cwnd()))
    }

    /// Whether the application has closed the sending direction, so that a FIN follows the written
    /// data.
    #[inline(always)]
    pub(crate) fn fin(&self) -> bool {
        self.writes == Writes::Closed
    }

    /// Whether there is unsent data, or an unsent FIN, from `nxt` on.
    pub(crate) fn has_unsent(&self, nxt: SeqNum) -> bool {
        let end = self.buffer.end();
        nxt.before(end) || (self.fin() && nxt == end)
    }

    /// Whether all data and the FIN are acknowledged.
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
