//! What frames cross: a bus that all share, a cable of their own for each direction, a switch, or a
//! serial line.
//!
//! A medium is told what a card wants to send, and says what follows from it: for itself later, and for the
//! cards on it. Only the world makes events of that.

mod backoff;
mod bus;
mod discipline;
mod duplex;
mod label;
mod outlet;
mod parameters;
mod serial;
#[cfg(test)]
mod stories;
mod switch;

pub(crate) use bus::Bus;
pub(crate) use discipline::QueueParameters;
pub(crate) use duplex::Duplex;
pub(crate) use outlet::Outlet;
pub use outlet::OutletStatistics;
pub(crate) use parameters::{BusParameters, DuplexParameters};
pub(crate) use serial::{Serial, SerialParameters};
pub(crate) use switch::{Cable, Switch, SwitchParameters};

use crate::frame::{FrameId, Frames};
use linerate_units::{Span, Tick};

/// A place on a medium where a card is.
pub(crate) type Port = usize;

/// Bits that go before a frame: the preamble and its last byte, the start delimiter.
pub(crate) const PREAMBLE_BITS: u64 = 64;
/// Bytes of the check sequence behind a frame.
pub(crate) const CHECK_SEQUENCE: usize = 4;
/// Bytes of the shortest frame, its check sequence included.
pub(crate) const SHORTEST: usize = 64;

/// Bytes that a frame has on the wire, padding and check sequence included.
pub(crate) const fn on_wire(length: usize) -> usize {
    let whole = length + CHECK_SEQUENCE;
    if whole < SHORTEST { SHORTEST } else { whole }
}

/// How long a frame of so many bytes on the wire takes there, preamble included, where a bit takes `bit`.
pub(crate) fn time_on_wire(bit: Span, length: usize) -> Span {
    bit * (PREAMBLE_BITS + 8 * length as u64)
}

/// What a medium wants to be told later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumEvent {
    /// The station at a port begins to send, unless the plan has changed since.
    Start { port: Port, plan: u32 },
    /// It ends, or has sent its jam.
    End { port: Port, plan: u32 },
    /// The oldest frame that is on its way from there is in the switch.
    Reached { port: Port },
    /// The switch has passed a frame on to the station there.
    Passed { port: Port },
}

/// What follows for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediumAction {
    /// Tell me at that time.
    Later { at: Tick, event: MediumEvent },
    /// The card's frame begins to leave it.
    Sending { port: Port, frame: FrameId },
    /// The card's frame collides, and will be tried again.
    Collided { port: Port, frame: FrameId },
    /// The card's frame has left as a whole.
    Sent { port: Port, frame: FrameId },
    /// The card's frame has collided too often.
    GivenUp { port: Port, frame: FrameId },
    /// The card hears the beginning of a frame.
    Arriving { port: Port, at: Tick },
    /// What it hears ends, and was no frame.
    Fragment { port: Port, at: Tick },
    /// What it hears ends, and was this frame, whose bytes are right or not.
    Arrived { port: Port, at: Tick, frame: FrameId, intact: bool },
}

/// What has happened on a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediumStatistics {
    /// Frames that crossed it as a whole.
    pub frames: u64,
    /// Their bytes, check sequences included, preambles and gaps not.
    pub bytes: u64,
    /// Bits of frames, preambles, fragments and jams: time during which somebody sent.
    pub busy: Span,
    /// Transmissions that met another.
    pub collisions: u64,
    /// Frames that met others once, twice … before they crossed.
    pub attempts: [u64; 16],
    /// Frames that met others 16 times.
    pub given_up: u64,
    /// Collisions after the slot time: the cable is too long.
    pub late: u64,
    /// Time that stations spent in backoff.
    pub backoff: Span,
    /// Backoffs of no slot, of one, of two or three, of four to seven … of 512 to 1,023.
    pub backoffs: [u64; 11],
    /// Frames that the medium lost, damaged, or delivered behind later ones.
    pub impaired: u64,
    /// Frames with a wrong check sequence, which a switch passed on to nobody.
    pub discarded: u64,
    /// Frames that a switch passed on to the station for which frames waited longest, together.
    pub passed: u64,
    /// How long they had waited, together.
    pub waited: Span,
    /// And the longest.
    pub longest_wait: Span,
    /// Frames that its queues dropped.
    pub dropped: u64,
    /// Frames that its queues marked.
    pub marked: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) enum Medium {
    /// A bus after IEEE 802.3.
    Bus(Bus),
    /// A cable with a pair for each direction.
    Duplex(Duplex),
    /// A switch with a cable for each station.
    Switch(Switch),
    /// A serial line.
    Serial(Box<Serial>),
}

impl Medium {
    /// The card at `port` wants to send `frame` to the `to` ports. It does not ask again before it was told what
    /// became of it.
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

    /// The frame that the card at `port` begins to send now has another length than it had when it was asked for. A
    /// serial line has no card that breaks anything off.
    pub(crate) fn handle_cut(
        &mut self,
        now: Tick,
        port: Port,
        frame: FrameId,
        frames: &Frames,
        actions: &mut Vec<MediumAction>,
    ) {
        let length = on_wire(frames[frame].sent().len());
        match self {
            Self::Bus(bus) => bus.handle_cut(port, length, actions),
            Self::Duplex(duplex) => duplex.handle_cut(now, port, length, actions),
            Self::Switch(switch) => switch.handle_cut(now, port, length, actions),
            Self::Serial(_) => {}
        }
    }

    /// What the card at `port` has asked to send, and does not send yet, may not leave before `until`. On a cable with a
    /// pair for each direction, and on a serial line, nobody listens before he sends, so there is nothing to hold.
    pub(crate) fn handle_hold(&mut self, port: Port, until: Tick, actions: &mut Vec<MediumAction>) {
        match self {
            Self::Bus(bus) => bus.handle_hold(port, until, actions),
            Self::Duplex(_) | Self::Switch(_) | Self::Serial(_) => {}
        }
    }

    /// What the medium wanted to be told of.
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

    /// What has happened on it.
    pub(crate) fn statistics(&self) -> MediumStatistics {
        match self {
            Self::Bus(bus) => *bus.statistics(),
            Self::Duplex(duplex) => *duplex.statistics(),
            Self::Switch(switch) => switch.statistics(),
            Self::Serial(line) => *line.statistics(),
        }
    }

    /// Judges what must hold after every event.
    pub(crate) fn check(&self) {
        match self {
            Self::Bus(bus) => bus.check(),
            Self::Duplex(_) | Self::Serial(_) => {}
            Self::Switch(switch) => switch.check(),
        }
    }
}

/// Who takes a frame off a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Nobody: it only takes up the wire.
    Nobody,
    /// The card at this port.
    One(Port),
    /// Every card but the sender's.
    All,
}
