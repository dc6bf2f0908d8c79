//! Transmission media: a shared bus, a full-duplex cable, a switch, and a serial line. In IEEE
//! 802.3 and here, the NIC at a port is called a *station*.
//!
//! A medium handles the requests of NICs. It returns actions: timers to start, and signals to
//! deliver to NICs. The simulation's world schedules these actions.

mod backoff;
mod bus;
mod classify;
mod discipline;
mod duplex;
mod egress;
mod parameters;
mod serial;
mod switch;
#[cfg(test)]
mod tests;

pub(crate) use bus::Bus;
pub(crate) use discipline::QueueParameters;
pub(crate) use duplex::Duplex;
pub(crate) use egress::EgressQueue;
pub use egress::EgressStatistics;
pub(crate) use parameters::{BusParameters, DuplexParameters};
pub(crate) use serial::{Serial, SerialParameters};
pub(crate) use switch::{Cable, Switch, SwitchParameters};

use crate::frame::{FrameId, Frames};
use linerate_units::{Span, Tick};

/// Number of a NIC's attachment to a medium, from 0.
pub(crate) type Port = usize;

/// Length in bits of the preamble with the start frame delimiter.
pub(crate) const PREAMBLE_BITS: u64 = 64;
/// Length of the frame check sequence in bytes.
pub(crate) const CHECK_SEQUENCE: usize = 4;
/// Length of the shortest Ethernet frame in bytes, check sequence included.
pub(crate) const SHORTEST: usize = 64;

/// Returns the length on the wire of a frame of `length` bytes: padding and check sequence are
/// added.
pub(crate) const fn on_wire(length: usize) -> usize {
    let whole = length + CHECK_SEQUENCE;
    if whole < SHORTEST { SHORTEST } else { whole }
}

/// Returns the time to send a preamble and a frame of `length` bytes, where each bit takes the time
/// `bit`.
pub(crate) fn time_on_wire(bit: Span, length: usize) -> Span {
    bit * (PREAMBLE_BITS + 8 * length as u64)
}

/// The expiry of a timer of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumEvent {
    /// The station at a port begins to send, unless `plan` is an old version of its schedule.
    Start { port: Port, plan: u32 },
    /// The station at a port ends its frame or its jam, unless `plan` is an old version of its
    /// schedule.
    End { port: Port, plan: u32 },
    /// The oldest frame that was on its way from this port to the switch has arrived there.
    Reached { port: Port },
    /// The switch has sent a frame through this port.
    Passed { port: Port },
}

/// An effect of a medium on other components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumAction {
    /// Schedule an event of the medium.
    Later { at: Tick, event: MediumEvent },
    /// The NIC's requested frame begins to leave.
    Sending { port: Port, frame: FrameId },
    /// The NIC's frame has collided. The medium, not the NIC, will repeat it.
    Collided { port: Port, frame: FrameId },
    /// The NIC's frame has been sent completely.
    Sent { port: Port, frame: FrameId },
    /// The NIC's frame is abandoned after too many collisions.
    GivenUp { port: Port, frame: FrameId },
    /// A frame begins to arrive at the NIC.
    Arriving { port: Port, at: Tick },
    /// The signal that arrives at the NIC ends as a fragment: an incomplete frame.
    Fragment { port: Port, at: Tick },
    /// The signal that arrives at the NIC ends as this complete frame, whose bytes are damaged
    /// unless `intact`.
    Arrived { port: Port, at: Tick, frame: FrameId, intact: bool },
}

/// Counters of a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumStatistics {
    /// Number of frames that were sent completely.
    pub frames: u64,
    /// Number of bytes in the completely sent frames, with check sequences, without preambles and
    /// gaps.
    pub bytes: u64,
    /// Total time of all transmissions: of frames with their preambles, of fragments, and of jams.
    pub busy: Span,
    /// Number of transmissions that collided.
    pub collisions: u64,
    /// Number of frames that were sent after 0, 1, 2 … collisions.
    pub attempts: [u64; 16],
    /// Number of frames that were abandoned after 16 collisions.
    pub given_up: u64,
    /// Number of collisions that were sensed only after the slot time. They show that the cable is
    /// too long.
    pub late: u64,
    /// Total time that stations spent in backoff.
    pub backoff: Span,
    /// Number of backoffs that lasted 0 slot times, 1, 2 to 3, 4 to 7 … 512 to 1,023.
    pub backoffs: [u64; 11],
    /// Number of frames that the medium lost or damaged, or delayed so that later frames may arrive
    /// before them.
    pub impaired: u64,
    /// Number of frames that a switch dropped because of a wrong check sequence.
    pub discarded: u64,
    /// Number of frames that a switch sent through one of its ports: the port with the largest
    /// total queueing delay.
    pub passed: u64,
    /// Total queueing delay of the frames that `passed` counts.
    pub waited: Span,
    /// Longest queueing delay of a frame at any port of a switch.
    pub longest_wait: Span,
    /// Number of frames that queue disciplines dropped.
    pub dropped: u64,
    /// Number of frames that queue disciplines marked with ECN.
    pub marked: u64,
}

/// A transmission medium.
#[derive(Debug)]
pub(crate) enum Medium {
    /// A bus that all stations share (IEEE 802.3).
    Bus(Bus),
    /// A full-duplex cable between two stations.
    Duplex(Duplex),
    /// A switch with a full-duplex cable for each port.
    Switch(Switch),
    /// A serial line between two hosts.
    Serial(Box<Serial>),
}

impl Medium {
    /// Handles the request of the NIC at `port` to send `frame`. The NIC may make its next request
    /// only after the medium has reported that this frame was sent or abandoned.
    pub(crate) fn handle_request(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        to: Audience,
        frames: &Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let length = on_wire(frames[frame].sent().len());
        match self {
            Self::Bus(bus) => bus.handle_request(now, port, frame, length, to, actions),
            Self::Duplex(duplex) => duplex.handle_request(now, port, frame, length, actions),
            Self::Switch(switch) => switch.handle_request(now, port, frame, length, to, actions),
            Self::Serial(line) => line.handle_request(now, port, frame, frames, actions),
        }
    }

    /// Adapts the end of the transmission at `port` to the number of bytes that the NIC sends of
    /// `frame`. A FIFO underrun reduces this number. A serial line ignores this call, because
    /// frames on it are never aborted.
    pub(crate) fn handle_truncation(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        frames: &Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let length = on_wire(frames[frame].sent().len());
        match self {
            Self::Bus(bus) => bus.handle_truncation(port, length, actions),
            Self::Duplex(duplex) => duplex.handle_truncation(now, port, length, actions),
            Self::Switch(switch) => switch.handle_truncation(now, port, length, actions),
            Self::Serial(_) => {}
        }
    }

    /// Delays the start of the frame that the NIC at `port` has requested to send: it may not begin
    /// before `until`. Has no effect if the frame has begun. Media other than a bus ignore this
    /// call, because a station on them can send while it receives.
    pub(crate) fn handle_hold(&mut self, port: Port, until: Tick, actions: &mut Vec<MediumAction>) {
        match self {
            Self::Bus(bus) => bus.handle_hold(port, until, actions),
            Self::Duplex(_) | Self::Switch(_) | Self::Serial(_) => {}
        }
    }

    /// Handles an expired timer of the medium.
    pub(crate) fn handle_event(
        &mut self,
        now: Tick,
        event: MediumEvent,
        frames: &mut Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        match self {
            Self::Bus(bus) => bus.handle_event(now, event, actions),
            Self::Duplex(duplex) => duplex.handle_event(now, event, actions),
            Self::Switch(switch) => switch.handle_event(now, event, frames, actions),
            Self::Serial(line) => line.handle_event(now, event, actions),
        }
    }

    /// Returns the counters of the medium.
    pub(crate) fn statistics(&self) -> MediumStatistics {
        match self {
            Self::Bus(bus) => *bus.statistics(),
            Self::Duplex(duplex) => *duplex.statistics(),
            Self::Switch(switch) => switch.statistics(),
            Self::Serial(line) => *line.statistics(),
        }
    }

    /// Checks the invariants.
    pub(crate) fn check(&self) {
        match self {
            Self::Bus(bus) => bus.check(),
            Self::Duplex(_) | Self::Serial(_) => {}
            Self::Switch(switch) => switch.check(),
        }
    }
}

/// The set of NICs that receive a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// No receiver: the frame only occupies the wire.
    None,
    /// The NIC at this port.
    One(Port),
    /// Every NIC but the sender's.
    All,
}
