//! The timeline of a simulation: the activities of each component over time. A time window and a
//! memory limit bound the recording.

use linerate_units::Tick;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of recorded activities. Activities after these are only counted.
const MOST_SPANS: u64 = 500_000;

/// The time window of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub from: Tick,
    /// End of the window.
    pub until: Tick,
}

/// A timeline: one lane for each component that was active in the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Lanes of wires, then of machines, then of routers and bridges.
    pub lanes: Vec<Lane>,
    /// Number of activities that were omitted because of the memory limit.
    pub left_out: u64,
}

/// The activities of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the component.
    pub part: String,
    /// Periods of activity in the order of time, clipped to the window.
    pub held: Vec<Held>,
}

/// A period in which a component had one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Start of the period.
    pub from: Tick,
    /// End of the period.
    pub until: Tick,
    /// The component's activity in this period.
    pub by: Activity,
    /// Size of the activity, in a unit that depends on its kind: bytes of a frame, frames in a ring
    /// or queue, or percentage of a bus. It is 1 for a processor.
    pub amount: u64,
    /// Label of the TCP segment, if the activity is the transmission of a labelled segment.
    pub segment: Option<SegmentLabel>,
}

/// Sequence number, length, acknowledgement number and window of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLabel {
    /// Position in the stream of the first byte of data, where the stream begins with byte 1.
    pub seq: u32,
    /// Number of bytes of data.
    pub length: u32,
    /// Acknowledgement number: position of the next byte that is expected from the peer. The peer's
    /// stream begins with byte 1.
    pub ack: u32,
    /// Window field of the header, without scaling.
    pub window: u32,
}

/// An activity of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// A wire carries a frame without a TCP segment, or a segment with SYN, FIN or RST.
    Frame,
    /// A wire carries a segment with data.
    Data,
    /// A wire carries an acknowledgement without data.
    Acknowledgement,
    /// A wire carries a segment without data that changes only the window, compared with the
    /// previous segment in its direction.
    WindowUpdate,
    /// A frame on the wire collides.
    Collision,
    /// A station waits in backoff after a collision.
    Backoff,
    /// A station abandons its frame after too many collisions.
    GivenUp,
    /// The processor runs drivers.
    Driver,
    /// The processor runs IP and TCP.
    Network,
    /// The processor runs tasks.
    Task,
    /// NICs use the bus.
    Nic,
    /// Frames wait in a queue or a ring.
    Frames,
    /// An idle host waits for an acknowledgement, because its congestion window is full or all its
    /// data have been sent. It does not wait for the peer's receive window.
    WaitsForAcknowledgement,
    /// An idle host waits until its peer opens the receive window.
    WaitsForWindow,
    /// An idle host waits for data from its peer.
    WaitsForData,
}

/// A component that has a lane in the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The station at a port of a wire.
    Station { wire: u16, port: usize },
    /// A unit of a machine. A unit that all processors share, such as the bus, is recorded with the
    /// number of the first processor.
    Inside { machine: usize, processor: u16, unit: Unit },
    /// A unit of a router or a bridge.
    Relay { relay: u16, unit: Unit },
    /// A unit of a NIC of a router or a bridge.
    RelayNic { relay: u16, nic: u16, unit: Unit },
}

/// A unit inside a machine, a router or a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// The processor.
    Processor,
    /// The event that the TCP of an idle machine waits for.
    Wait,
    /// The bus.
    Bus,
    /// Received frames that wait for the processor's forwarding decision.
    Input,
    /// Frames in the driver's queue, in front of the transmit ring.
    DriverQueue,
    /// Frames in a relay's egress queue, in front of a NIC.
    Queue,
    /// The NIC's transmit ring.
    TransmitRing,
    /// The NIC's receive ring.
    ReceiveRing,
}

impl Unit {
    /// Returns the unit's name as the lanes of a timeline show it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Wait => "waits for",
            Self::Bus => "bus",
            Self::Input => "input",
            Self::DriverQueue => "driver's queue",
            Self::Queue => "queue",
            Self::TransmitRing => "transmit ring",
            Self::ReceiveRing => "receive ring",
        }
    }
}

/// The present activity of a component and its amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doing {
    pub(crate) by: Activity,
    pub(crate) amount: u64,
    pub(crate) segment: Option<SegmentLabel>,
}

impl Doing {
    /// Returns an activity without a segment label.
    pub(crate) const fn new(by: Activity, amount: u64) -> Self {
        Self { by, amount, segment: None }
    }
}

/// The present activity of a component; `None` if it is inactive.
type Current = Option<Doing>;

/// Records the activities of all components.
#[derive(Debug)]
pub(crate) struct Recorder {
    window: Window,
    parts: BTreeMap<Part, Open>,
    kept: u64,
    left_out: u64,
}

/// The past activities of a component, and the present one with its start.
#[derive(Debug, Default)]
struct Open {
    held: Vec<Held>,
    activity: Current,
    since: Tick,
}

impl Recorder {
    /// Creates a recorder without activities for this window.
    pub(crate) const fn new(window: Window) -> Self {
        Self { window, parts: BTreeMap::new(), kept: 0, left_out: 0 }
    }

    /// Notes the activity that a component has from `now` on. If it differs from the activity until
    /// now, records the latter as a period that has ended.
    pub(crate) fn note(&mut self, now: Tick, part: Part, activity: Current) {
        let open = self.parts.entry(part).or_default();
        if open.activity != activity {
            let (previous, since) = (
                std::mem::replace(&mut open.activity, activity),
                std::mem::replace(&mut open.since, now),
            );
            self.keep(part, previous, since, now);
        }
    }

    /// Changes the kind of a component's present activity to `by`, for the whole time since the
    /// activity began. For example, a frame turns out to collide only after it has begun.
    pub(crate) fn correct(&mut self, part: Part, by: Activity) {
        let open = self.parts.entry(part).or_default();
        open.activity = open.activity.map(|doing| Doing { by, ..doing });
    }

    fn keep(&mut self, part: Part, previous: Current, since: Tick, now: Tick) {
        let (from, until) = (since.max(self.window.from), now.min(self.window.until));
        let Some(doing) = previous.filter(|_| from < until) else { return };
        let Doing { by, amount, segment } = doing;
        if self.kept == MOST_SPANS {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        self.parts.entry(part).or_default().held.push(Held { from, until, by, amount, segment });
    }

    /// Ends the recording and returns the timeline. `name` returns the name of a component's lane.
    pub(crate) fn finish(mut self, now: Tick, name: impl Fn(Part) -> String) -> Timeline {
        let parts: Vec<Part> = self.parts.keys().copied().collect();
        parts.into_iter().for_each(|part| self.note(now, part, None));
        let lanes = self.parts.into_iter().filter(|(_, open)| !open.held.is_empty());
        let lanes = lanes.map(|(part, open)| Lane { part: name(part), held: open.held });
        Timeline { lanes: lanes.collect(), left_out: self.left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSOR: Part = Part::Inside { machine: 0, processor: 0, unit: Unit::Processor };

    const fn at(picos: u64) -> Tick {
        Tick::from_picos(picos)
    }

    fn recorder() -> Recorder {
        Recorder::new(Window { from: at(10), until: at(20) })
    }

    #[test]
    fn spans_are_clipped_to_the_window() {
        let mut recorder = recorder();
        recorder.note(at(1), PROCESSOR, Some(Doing::new(Activity::Task, 1)));
        recorder.note(at(8), PROCESSOR, Some(Doing::new(Activity::Network, 1)));
        recorder.note(at(12), PROCESSOR, Some(Doing::new(Activity::Network, 1)));
        recorder.note(at(15), PROCESSOR, None);
        recorder.note(at(18), PROCESSOR, Some(Doing::new(Activity::Driver, 1)));
        let timeline = recorder.finish(at(40), |_| "processor".to_owned());
        let held = [
            Held { from: at(10), until: at(15), by: Activity::Network, amount: 1, segment: None },
            Held { from: at(18), until: at(20), by: Activity::Driver, amount: 1, segment: None },
        ];
        assert_eq!(timeline.lanes, [Lane { part: "processor".to_owned(), held: held.to_vec() }]);
    }

    #[test]
    fn spans_beyond_the_limit_are_counted() {
        let mut recorder = recorder();
        recorder.kept = MOST_SPANS - 1;
        recorder.note(at(11), PROCESSOR, Some(Doing::new(Activity::Task, 1)));
        recorder.note(at(12), PROCESSOR, Some(Doing::new(Activity::Driver, 1)));
        let timeline = recorder.finish(at(13), |_| String::new());
        assert_eq!((timeline.lanes[0].held.len(), timeline.left_out), (1, 1));
    }
}
