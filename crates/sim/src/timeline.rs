//! The timeline of a simulation: the periods of each component's activities, within a time window
//! and a memory limit.

use linerate_units::Tick;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of recorded spans; further ones are only counted.
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
    /// Number of spans that were omitted because of the memory limit.
    pub left_out: u64,
}

/// The activity of one component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Name of the component.
    pub part: String,
    /// Spans of the component in the order of time, clipped to the window.
    pub held: Vec<Held>,
}

/// A span of time in which a component had one activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Start of the span.
    pub from: Tick,
    /// End of the span.
    pub until: Tick,
    /// Activity of the component.
    pub by: Activity,
    /// Amount of the activity: bytes of a frame, frames in a ring, per cent of a bus; 1 for a
    /// processor.
    pub amount: u64,
    /// The TCP segment in a frame.
    pub segment: Option<SegmentLabel>,
}

/// The numbers of a TCP segment, relative to those of the SYNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLabel {
    /// The first byte of data, from 1.
    pub seq: u32,
    /// Bytes of data.
    pub length: u32,
    /// The byte that is expected next from the peer.
    pub ack: u32,
    /// The window field, without scaling.
    pub window: u32,
}

/// An activity of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// A wire carries a frame without a TCP segment, or with a SYN, FIN or RST.
    Frame,
    /// A wire carries data.
    Data,
    /// A wire carries an acknowledgement without data.
    Acknowledgement,
    /// A wire carries a segment without data that only changes the window.
    WindowUpdate,
    /// A frame on the wire collides.
    Collision,
    /// A station waits after a collision.
    Backoff,
    /// A station abandons its frame.
    GivenUp,
    /// The processor runs drivers.
    Driver,
    /// The processor runs IP and TCP.
    Network,
    /// The processor runs tasks.
    Task,
    /// The NIC uses the bus.
    Nic,
    /// Frames are queued.
    Frames,
    /// An idle station waits for an acknowledgement: its congestion window is full, or everything
    /// is sent.
    WaitsForAcknowledgement,
    /// An idle station waits for a larger window of its peer.
    WaitsForWindow,
    /// An idle station waits for data.
    WaitsForData,
}

/// A component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A port of a wire.
    Station { wire: u16, port: usize },
    /// A unit of a machine. Units that all processors share belong to the first.
    Inside { machine: usize, processor: u16, unit: Unit },
    /// A unit of a router or a bridge.
    Relay { relay: u16, unit: Unit },
    /// A unit of a NIC of a router or a bridge.
    RelayNic { relay: u16, nic: u16, unit: Unit },
}

/// A unit of a machine, a router or a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// The processor.
    Processor,
    /// The event that the TCP of an idle machine waits for.
    Wait,
    /// The bus.
    Bus,
    /// Frames that wait for the processor's forwarding decision.
    Input,
    /// Frames in the driver's queue.
    DriverQueue,
    /// Frames in a relay's queue in front of a NIC.
    Queue,
    /// The NIC's transmit ring.
    TransmitRing,
    /// The NIC's receive ring.
    ReceiveRing,
}

impl Unit {
    /// Returns the name that lanes show.
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
    /// Returns an activity without a segment.
    pub(crate) const fn new(by: Activity, amount: u64) -> Self {
        Self { by, amount, segment: None }
    }
}

/// The present activity of a component, if it is active.
type Current = Option<Doing>;

/// Records a timeline.
#[derive(Debug)]
pub(crate) struct Recorder {
    window: Window,
    parts: BTreeMap<Part, Open>,
    kept: u64,
    left_out: u64,
}

/// The recorded and the present activity of a component.
#[derive(Debug, Default)]
struct Open {
    held: Vec<Held>,
    activity: Current,
    since: Tick,
}

impl Recorder {
    /// Creates an empty timeline.
    pub(crate) const fn new(window: Window) -> Self {
        Self { window, parts: BTreeMap::new(), kept: 0, left_out: 0 }
    }

    /// Records the activity of a component from now on.
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

    /// Replaces the present activity of a component since its start.
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

    /// Ends the recording. `name` gives the names of the components.
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
