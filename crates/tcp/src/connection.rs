//! The connection: its parts, and what it is asked between the steps of its life.

use crate::ecn::Notification;
use crate::event::{Event, Events};
use crate::expectation::Expectation;
use crate::fast_open::FastOpen;
use crate::options::{Agreement, TimestampState};
use crate::output::reset::Reset;
use crate::path::Path;
use crate::rare_options::RareOptions;
use crate::receive::ack_policy::AckPolicy;
use crate::receive::buffer::Offered;
use crate::receive::{ReceiveSequence, Receiver, saturated};
use crate::rest::pack::packed;
use crate::send::{SendSequence, Sender};
use crate::shared_config::{Preferences, SharedConfig};
use crate::timers::Timers;
use crate::user_timeout::UserTimeouts;
use crate::{Error, MemoryGrant, State, Statistics};
use alloc::boxed::Box;
use linerate_units::Instant;
use linerate_wire::{TcpOptions, prefetch_through};

/// One TCP connection.
///
/// The fields that the data arm of header prediction touches lie together at the front. What any predicted segment
/// touches besides, arriving or leaving, follows them, then what only data that leave and their acknowledgement do,
/// and what hardly any segment does comes last: where there are very many connections, each line of memory is one to
/// wait for. The parts are laid out to that end, too.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Connection {
    pub(crate) expectation: Expectation,
    pub(crate) state: State,
    /// An acknowledgement must leave, alone or with data.
    pub(crate) ack_due: bool,
    /// It is due for a challenge and nothing else, so the host may withhold it.
    pub(crate) challenge_due: bool,
    /// `poll_transmit` may have something.
    pub(crate) output_due: bool,
    pub(crate) rcv: ReceiveSequence,
    pub(crate) snd: SendSequence,
    pub(crate) timestamps: TimestampState,
    /// When the last acceptable segment came.
    pub(crate) heard: Instant,
    pub(crate) acks: AckPolicy,
    pub(crate) agreement: Agreement,
    /// Something must leave before all else: a SYN or SYN-ACK; or once the connection is established, an
    /// acknowledgement, before data and without blocks.
    pub(crate) first_due: bool,
    pub(crate) events: Events,
    /// What the host lets the buffers take.
    pub(crate) memory: MemoryGrant,
    pub(crate) config: SharedConfig,
    pub(crate) receiver: Receiver,
    pub(crate) timers: Timers,
    pub(crate) user_timeouts: UserTimeouts,
    pub(crate) ecn: Notification,
    pub(crate) sender: Sender,
    pub(crate) statistics: Statistics,
    /// A challenge acknowledgement may leave again from here on (RFC 5961 §7).
    pub(crate) next_challenge: Instant,
    /// When the last of the probes since the peer was last heard was due.
    pub(crate) keep_alive_probed: Instant,
    pub(crate) preferences: Preferences,
    pub(crate) path: Path,
    /// Only where it is used: those that wait in a flood shall not be larger for it.
    pub(crate) fast_open: Option<Box<FastOpen>>,
    /// As `fast_open`, only where it is used.
    pub(crate) rare: Option<Box<RareOptions>>,
    /// Probes since the peer was last heard.
    pub(crate) keep_alive_probes: u32,
    pub(crate) keep_alive_due: bool,
    /// A reset must leave.
    pub(crate) reset_due: Option<Box<Reset>>,
    /// Did the connection begin with our SYN?
    pub(crate) active: bool,
    /// The application has let go.
    pub(crate) released: bool,
    /// Why the connection ended, if not by mutual consent. Invariant: it is CLOSED then.
    pub(crate) error: Option<Error>,
    /// While a segment is handled: the memory that it lies in.
    pub(crate) offered: Offered,
}

packed!(Connection {
    expectation, state, events, ack_due, challenge_due, output_due, rcv, snd, timestamps, heard, acks,
    receiver, timers, statistics, sender, agreement, memory, ecn, preferences, path, user_timeouts,
    keep_alive_probed, next_challenge, fast_open, rare, keep_alive_probes, keep_alive_due, first_due, active,
    released, error
} known {
    reset_due: |_config| None, offered: |_config| None, config: |shared| shared.clone()
});

impl Connection {
    /// An acknowledgement must leave at the next opportunity.
    pub(crate) fn owe_ack(&mut self) {
        self.ack_due = true;
        self.challenge_due = false;
        self.output_due = true;
    }

    /// Fetches what a segment is going to need which arrives, and what is asked before its acknowledgement leaves, so
    /// that all of it is at hand when it has its turn. Nothing else comes of it.
    #[inline]
    pub fn warm(&self) {
        prefetch_through(&self.expectation, &self.sender.rtt);
        self.warm_counters();
    }

    /// The same for who is written to: what its segment and the acknowledgement of that are going to need.
    #[inline]
    pub fn warm_to_send(&self) {
        prefetch_through(&self.expectation, &self.sender.congestion);
        self.warm_counters();
    }

    fn warm_counters(&self) {
        prefetch_through(&self.statistics.prediction.acks, &self.statistics.bytes_acknowledged);
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// What [`Connection::poll_event`] would have.
    #[inline]
    #[must_use]
    pub const fn events(&self) -> Events {
        self.events
    }

    /// Takes all events at once.
    #[inline]
    pub const fn take_events(&mut self) -> Events {
        core::mem::replace(&mut self.events, Events::empty())
    }

    /// When [`Connection::handle_timeout`] must be called next; [`Instant::NEVER`] if not at all. The
    /// answer may move either way with every other call.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// A time before which there is no deadline: the earliest one since [`Connection::handle_timeout`] was
    /// called last, though it may have moved later since. Who looks at it after each step, which costs
    /// nothing, and calls that when it has come, is never late, and seldom called for nothing.
    #[inline]
    #[must_use]
    pub const fn earliest_timeout(&self) -> Instant {
        self.timers.floor()
    }

    /// May [`Connection::poll_transmit`] have something? If not, it has nothing until the next call
    /// of another method.
    #[must_use]
    pub const fn wants_transmit(&self) -> bool {
        self.output_due
    }

    /// Payload bytes of a full segment: the MSS less the options that every segment carries.
    #[must_use]
    pub fn effective_mss(&self) -> usize {
        self.full_segment() as usize
    }

    /// The same as a length in sequence space.
    pub(crate) fn full_segment(&self) -> u32 {
        self.sender.full
    }

    /// Bytes of options that every segment with data carries.
    pub(crate) fn constant_options(&self) -> u32 {
        if self.timestamps.on { saturated(TcpOptions::TIMESTAMPS_LENGTH) } else { 0 }
    }

    /// Bytes of the largest packet that the path is believed to take. Where the peer takes less than the
    /// first link, that is not asked of the path.
    #[must_use]
    pub fn path_mtu(&self) -> usize {
        let known = if self.sender.path.is_widest() { self.path.mtu_payload } else { 0 };
        known.saturating_add(self.path.ip_header.into()).max(self.sender.path.effective() as usize)
    }

    /// Is there evidence for [`Connection::path_mtu`]? There is none yet while segments are smaller because
    /// a router has asked for that, or because large ones were lost in silence, and neither the loss of
    /// a larger one nor the arrival of a smaller one has shown that this was right (RFC 5927 §7.2).
    #[must_use]
    pub fn is_path_mtu_confirmed(&self) -> bool {
        self.sender.path.is_confirmed()
    }

    /// Is it not known yet whether the path would take a larger packet than [`Connection::path_mtu`]?
    #[must_use]
    pub fn is_path_mtu_estimated(&self) -> bool {
        self.sender.path.is_estimated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::mem::offset_of;

    /// What the data arm reads and writes of sequence space lies in the first cache line, so that a
    /// predicted segment costs one miss before it reaches the buffer.
    #[test]
    fn the_data_arm_touches_one_line_before_the_buffer() {
        let line = 64;
        assert!(offset_of!(Connection, expectation) < line);
        assert!(offset_of!(Connection, output_due) < line);
        assert!(offset_of!(Connection, rcv) + size_of::<ReceiveSequence>() <= line);
        assert!(offset_of!(Connection, snd) + offset_of!(SendSequence, nxt) <= line);
    }

    /// Cache lines that hold these fields, of a connection that begins one.
    fn lines(fields: &[(usize, usize)]) -> usize {
        let mut lines: Vec<usize> =
            fields.iter().flat_map(|&(at, size)| at / 64..=(at + size - 1) / 64).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len()
    }

    macro_rules! field {
        ($first:ident $(. $further:ident)*) => {
            (offset_of!(Connection, $first $(. $further)*), {
                const fn size<T>(_: fn(&Connection) -> &T) -> usize {
                    size_of::<T>()
                }
                size(|connection| &connection.$first $(. $further)*)
            })
        };
    }

    /// What a predicted segment reads or writes of its connection, beside the bytes in the buffers.
    #[test]
    fn the_arms_of_prediction_touch_few_lines() {
        let both = [
            field!(expectation),
            field!(output_due),
            field!(rcv),
            field!(snd.una),
            field!(snd.wnd),
            field!(timestamps),
            field!(heard),
            field!(events),
            field!(statistics.segments_received),
        ];
        let data = [
            field!(acks),
            field!(config),
            field!(memory),
            field!(timers),
            field!(receiver.buffer),
            field!(receiver.assembler),
            field!(receiver.largest_segment),
            field!(receiver.largest_window),
            field!(statistics.bytes_received),
            field!(statistics.prediction.data),
        ];
        let ack = [
            field!(snd.max_wnd),
            field!(timers),
            field!(sender.buffer),
            field!(sender.rtt),
            field!(sender.loss),
            field!(sender.congestion),
            field!(sender.scoreboard),
            field!(sender.account),
            field!(sender.rack),
            field!(statistics.bytes_acknowledged),
            field!(statistics.prediction.acks),
        ];
        let lines_of = |arm: &[(usize, usize)]| lines(&[&both[..], arm].concat());
        assert!(lines_of(&data) <= 8, "{} lines for data", lines_of(&data));
        // What is asked before the acknowledgement of data leaves lies behind what the data touched.
        let answer = [
            field!(user_timeouts),
            field!(ecn),
            field!(sender.usage),
            field!(sender.held_back),
            field!(sender.pacer),
            field!(sender.buffer),
            field!(sender.rtt),
            field!(statistics.pure_acks_sent),
        ];
        let answered = lines(&[&both[..], &data, &answer].concat());
        assert!(answered <= 11, "{answered} lines for data and their acknowledgement");
        // All of the sender's parts, of which one acknowledgement moves a half.
        assert!(lines_of(&ack) <= 17, "{} lines for an acknowledgement", lines_of(&ack));
    }
}
