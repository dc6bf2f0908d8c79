//! The connection: its fields, and the methods that report pending work to its driver.

use crate::compact::pack::packed;
use crate::ecn::Notification;
use crate::event::Events;
use crate::expectation::Expectation;
use crate::fast_open::FastOpen;
use crate::options::{Agreement, TimestampState};
use crate::output::reset::Reset;
use crate::path::Path;
use crate::rare_options::RareOptions;
use crate::receive::ack_policy::AckPolicy;
use crate::receive::buffer::Offered;
use crate::receive::{ReceiveSequence, Receiver, saturated};
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
/// Fields that are used together lie together: with many connections, nearly every cache line that
/// is read is a cache miss. The fields that header prediction reads for data segments come first.
/// The fields for other predicted segments, for sending data and for acknowledgements follow.
/// Rarely used fields are last. The structs among the fields follow this order too.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Connection {
    pub(crate) expectation: Expectation,
    pub(crate) state: State,
    /// Whether an acknowledgement must be sent, with or without data.
    pub(crate) ack_due: bool,
    /// Whether the acknowledgement that must be sent is only a challenge ACK. If so, the host may
    /// suppress it.
    pub(crate) challenge_due: bool,
    /// Whether `poll_transmit` may return a segment; if false, it returns none.
    pub(crate) output_due: bool,
    pub(crate) rcv: ReceiveSequence,
    pub(crate) snd: SendSequence,
    pub(crate) timestamps: TimestampState,
    /// The time when the most recent acceptable segment arrived.
    pub(crate) last_received: Instant,
    pub(crate) acks: AckPolicy,
    pub(crate) agreement: Agreement,
    /// Whether a certain segment must be sent before all other output. During the handshake, it is
    /// a SYN or SYN-ACK. In an established connection, it is an acknowledgement that carries
    /// neither data nor SACK blocks.
    pub(crate) first_due: bool,
    pub(crate) events: Events,
    /// The memory that the host allows the buffers to allocate.
    pub(crate) memory: MemoryGrant,
    pub(crate) config: SharedConfig,
    pub(crate) receiver: Receiver,
    /// The settings of the application. They are stored near the state of the receiver: each call
    /// that reads data compares the size of the receive buffer with the size in these settings.
    pub(crate) preferences: Preferences,
    pub(crate) timers: Timers,
    pub(crate) user_timeouts: UserTimeouts,
    pub(crate) ecn: Notification,
    pub(crate) sender: Sender,
    pub(crate) statistics: Statistics,
    /// The earliest time at which the next challenge ACK may be sent (RFC 5961 §7).
    pub(crate) next_challenge: Instant,
    /// The time of the most recent keep-alive probe since a segment of the peer last arrived.
    pub(crate) keep_alive_probed: Instant,
    pub(crate) path: Path,
    /// The state of TCP Fast Open, allocated only when used, so that half-open connections stay
    /// small.
    pub(crate) fast_open: Option<Box<FastOpen>>,
    /// Options that few applications set, allocated on use.
    pub(crate) rare: Option<Box<RareOptions>>,
    /// The number of keep-alive probes that were sent since a segment of the peer last arrived.
    pub(crate) keep_alive_probes: u32,
    pub(crate) keep_alive_due: bool,
    /// The reset that must be sent, if any.
    pub(crate) reset_due: Option<Box<Reset>>,
    /// Whether this endpoint opened the connection by a SYN.
    pub(crate) active: bool,
    /// Whether the application has closed the connection and will not use it any more.
    pub(crate) released: bool,
    /// The reason for the end of the connection, unless it was closed normally. `None` in a
    /// connection that has not ended. Invariant: if there is a reason, the state is CLOSED.
    pub(crate) error: Option<Error>,
    /// The memory of the link that contains the segment that is being processed. Present only if
    /// the receive buffer may keep a reference to this memory instead of copying the data.
    pub(crate) offered: Offered,
}

packed!(Connection {
    expectation, state, events, ack_due, challenge_due, output_due, rcv, snd, timestamps,
    last_received, acks, receiver, timers, statistics, sender, agreement, memory, ecn, preferences,
    path, user_timeouts, keep_alive_probed, next_challenge, fast_open, rare, keep_alive_probes,
    keep_alive_due, first_due, active, released, error
} known {
    reset_due: |_config| None, offered: |_config| None, config: |shared| shared.clone()
});

/// # Observation: pending work and path
impl Connection {
    /// Marks an acknowledgement as due, which the next segment will carry.
    pub(crate) fn owe_ack(&mut self) {
        self.ack_due = true;
        self.challenge_due = false;
        self.output_due = true;
    }

    /// Prefetches the memory that is used to process a segment and to send its acknowledgement.
    #[inline]
    pub fn warm(&self) {
        prefetch_through(&self.expectation, &self.sender.rtt);
        self.warm_counters();
    }

    /// Prefetches the memory that is used to send a segment and to process its acknowledgement.
    #[inline]
    pub fn warm_to_send(&self) {
        prefetch_through(&self.expectation, &self.sender.congestion);
        self.warm_counters();
    }

    fn warm_counters(&self) {
        prefetch_through(&self.statistics.prediction.acks, &self.statistics.bytes_acknowledged);
    }

    /// Returns the pending events without taking them.
    #[inline]
    #[must_use]
    pub const fn events(&self) -> Events {
        self.events
    }

    /// Returns the time when [`crate::Driver::handle_timeout`] must be called next, or
    /// [`Instant::NEVER`]. A call of any other method may move this time earlier or later.
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        self.timers.next()
    }

    /// Returns a lower bound of [`Connection::poll_timeout`] that is cheaper to read: the earliest
    /// deadline that was set since the most recent call of [`crate::Driver::handle_timeout`]. It
    /// can be too early, because the timer with that deadline may have been moved to a later time.
    /// A driver that calls `handle_timeout` at this time is never late, and few of its calls are
    /// needless.
    #[inline]
    #[must_use]
    pub const fn earliest_timeout(&self) -> Instant {
        self.timers.floor()
    }

    /// Whether [`crate::Driver::poll_transmit`] may return a segment. If false, it returns none
    /// until another method is called.
    #[must_use]
    pub const fn wants_transmit(&self) -> bool {
        self.output_due
    }

    /// Returns the number of data bytes in a full segment, which is the MSS less the options that
    /// every segment carries.
    #[must_use]
    pub fn effective_mss(&self) -> usize {
        self.full_segment() as usize
    }

    /// Returns the number of data bytes in a full segment, as a length in sequence space.
    pub(crate) fn full_segment(&self) -> u32 {
        self.sender.full
    }

    /// Returns the length in bytes of the options that every segment with data carries.
    pub(crate) fn constant_options(&self) -> u32 {
        if self.timestamps.on { saturated(TcpOptions::TIMESTAMPS_LENGTH) } else { 0 }
    }

    /// Returns the estimated path MTU in bytes. Segments do not exceed the peer's MSS, so probes
    /// cannot find an MTU above that size. When segments have reached their largest possible size,
    /// this method therefore returns the MTU of the route, if that is larger.
    #[must_use]
    pub fn path_mtu(&self) -> usize {
        let known = if self.sender.path.is_widest() { self.path.mtu_payload } else { 0 };
        known.saturating_add(self.path.ip_header.into()).max(self.sender.path.effective() as usize)
    }

    /// Whether [`Connection::path_mtu`] is supported by evidence. After an ICMP report or repeated
    /// timeouts have reduced it, there is no evidence at first that larger packets do not pass.
    /// Evidence is the loss of a larger segment or the delivery of a smaller one (RFC 5927 §7.2).
    #[must_use]
    pub fn is_path_mtu_confirmed(&self) -> bool {
        self.sender.path.is_confirmed()
    }

    /// Whether a search by probes is in progress, so that [`Connection::path_mtu`] may still grow:
    /// the path may carry larger packets, which were not tested yet.
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

    /// Only fields in the first cache line are read to recognise that a data segment was predicted.
    /// Before its receive buffer is accessed, the connection therefore costs only one cache miss.
    #[test]
    fn the_data_arm_touches_one_line_before_the_buffer() {
        let line = 64;
        assert!(offset_of!(Connection, expectation) < line);
        assert!(offset_of!(Connection, output_due) < line);
        assert!(offset_of!(Connection, rcv) + size_of::<ReceiveSequence>() <= line);
        assert!(offset_of!(Connection, snd) + offset_of!(SendSequence, nxt) <= line);
    }

    /// Returns the number of cache lines that contain `fields`, if the connection is aligned to a
    /// cache line. Each field is given as its offset and size in bytes.
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

    /// The fields that predicted segments read or write lie in few cache lines. The memory that the
    /// buffers have allocated is not counted.
    #[test]
    fn the_arms_of_prediction_touch_few_lines() {
        let both = [
            field!(expectation),
            field!(output_due),
            field!(rcv),
            field!(snd.una),
            field!(snd.wnd),
            field!(timestamps),
            field!(last_received),
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
        // The fields that are read when the acknowledgement of received data is sent.
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
        // The processing of an ACK reads nearly all fields of the sender, and changes half of them.
        // It may therefore use more cache lines than the processing of a data segment.
        assert!(lines_of(&ack) <= 17, "{} lines for an acknowledgement", lines_of(&ack));
    }
}
