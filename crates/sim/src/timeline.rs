//! Who held what when: the spans during which a part of the world did one thing, within a window of time and a limit
//! of memory.

use linerate_units::Tick;
use serde::Serialize;
use std::collections::BTreeMap;

/// Spans that are kept; more are counted only.
const MOST_SPANS: u64 = 500_000;

/// The time that a timeline is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// It begins here …
    pub from: Tick,
    /// … and ends here.
    pub until: Tick,
}

/// A timeline: a lane for every part of the world that did anything in its window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The lanes: those of wires first, then those of each machine, then of each router and bridge.
    pub lanes: Vec<Lane>,
    /// Spans that there was no room for.
    pub left_out: u64,
}

/// What a part of the world did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The part.
    pub part: String,
    /// What it did, the earliest first; what began before the window begins with it, and so it ends.
    pub held: Vec<Held>,
}

/// A part did one thing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// When it began.
    pub from: Tick,
    /// When it ended.
    pub until: Tick,
    /// What it did.
    pub by: By,
    /// How much of it: bytes of a frame, frames of a ring, per cent of a bus; 1 of a processor.
    pub amount: u64,
}

/// What holds a part of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// A frame that crosses the wire.
    Frame,
    /// One that meets another.
    Collision,
    /// A station that has met another waits to try again.
    Backoff,
    /// It gives its frame up.
    GivenUp,
    /// The processor serves cards.
    Driver,
    /// The processor does the work of IP and TCP.
    Network,
    /// The processor runs tasks.
    Task,
    /// The card has taken the bus.
    Card,
    /// Frames that wait.
    Frames,
}

/// A part of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A station's place on a wire.
    Station { wire: u16, port: usize },
    /// Something in a machine that is a processor's; what all of them share is with the first.
    Inside { machine: usize, processor: u16, unit: Unit },
    /// Something in a router or a bridge.
    Relay { relay: u16, unit: Unit },
    /// Something about one of its cards.
    RelayCard { relay: u16, card: u16, unit: Unit },
}

/// Something in a machine, a router or a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// The processor.
    Processor,
    /// The bus.
    Bus,
    /// Frames that wait for the processor to decide where they go.
    Input,
    /// Frames that wait in the driver.
    DriverQueue,
    /// Frames that wait in front of a card, in the queue of a router or a bridge.
    Queue,
    /// The card's ring of frames to send.
    SendRing,
    /// The card's receive area.
    ReceiveArea,
}

impl Unit {
    /// What it is called.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Processor => "processor",
            Self::Bus => "bus",
            Self::Input => "input",
            Self::DriverQueue => "driver's queue",
            Self::Queue => "queue",
            Self::SendRing => "send ring",
            Self::ReceiveArea => "receive area",
        }
    }
}

/// What a part does at present.
type Does = Option<(By, u64)>;

/// Whoever writes a timeline.
#[derive(Debug)]
pub(crate) struct Recorder {
    window: Window,
    parts: BTreeMap<Part, Open>,
    kept: u64,
    left_out: u64,
}

/// What a part has done, and what it does since when.
#[derive(Debug, Default)]
struct Open {
    held: Vec<Held>,
    does: Does,
    since: Tick,
}

impl Recorder {
    /// Nothing has happened.
    pub(crate) const fn new(window: Window) -> Self {
        Self { window, parts: BTreeMap::new(), kept: 0, left_out: 0 }
    }

    /// From now on a part does this.
    pub(crate) fn note(&mut self, now: Tick, part: Part, does: Does) {
        let open = self.parts.entry(part).or_default();
        if open.does != does {
            let (did, since) =
                (std::mem::replace(&mut open.does, does), std::mem::replace(&mut open.since, now));
            self.keep(part, did, since, now);
        }
    }

    /// What a part has done all along turns out to be this.
    pub(crate) fn correct(&mut self, part: Part, by: By) {
        let open = self.parts.entry(part).or_default();
        open.does = open.does.map(|(_, amount)| (by, amount));
    }

    fn keep(&mut self, part: Part, did: Does, since: Tick, now: Tick) {
        let (from, until) = (since.max(self.window.from), now.min(self.window.until));
        let Some((by, amount)) = did.filter(|_| from < until) else { return };
        if self.kept == MOST_SPANS {
            self.left_out += 1;
            return;
        }
        self.kept += 1;
        self.parts.entry(part).or_default().held.push(Held { from, until, by, amount });
    }

    /// The world is over: what was written, with names for its parts.
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
    fn what_reaches_into_the_window_is_cut_and_what_does_not_is_nothing() {
        let mut recorder = recorder();
        recorder.note(at(1), PROCESSOR, Some((By::Task, 1)));
        recorder.note(at(8), PROCESSOR, Some((By::Network, 1)));
        recorder.note(at(12), PROCESSOR, Some((By::Network, 1)));
        recorder.note(at(15), PROCESSOR, None);
        recorder.note(at(18), PROCESSOR, Some((By::Driver, 1)));
        let timeline = recorder.finish(at(40), |_| "processor".to_owned());
        let held = [
            Held { from: at(10), until: at(15), by: By::Network, amount: 1 },
            Held { from: at(18), until: at(20), by: By::Driver, amount: 1 },
        ];
        assert_eq!(timeline.lanes, [Lane { part: "processor".to_owned(), held: held.to_vec() }]);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut recorder = recorder();
        recorder.kept = MOST_SPANS - 1;
        recorder.note(at(11), PROCESSOR, Some((By::Task, 1)));
        recorder.note(at(12), PROCESSOR, Some((By::Driver, 1)));
        let timeline = recorder.finish(at(13), |_| String::new());
        assert_eq!((timeline.lanes[0].held.len(), timeline.left_out), (1, 1));
    }
}
