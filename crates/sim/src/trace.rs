//! Recording of a simulation: captured frames and the timeline.

use crate::frame::Frames;
use crate::machine::{Level, MachineSnapshot};
use crate::medium::MediumAction;
use crate::relay::RelaySnapshot;
use crate::segment_labels::SegmentLabels;
use crate::timeline::{Activity, Doing, Part, Recorder, Timeline, Unit, Window};
use linerate_units::Tick;

/// The selection of what a run records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Whether to capture every frame that crosses a wire. If so, the hosts compute checksums,
    /// which they otherwise leave out, so that the captured frames are valid.
    pub frames: bool,
    /// Time window of the timeline to record, or `None` to record no timeline.
    pub timeline: Option<Window>,
}

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Time at which the frame had completely left its sender.
    pub at: Tick,
    /// Number of the wire that carried the frame.
    pub wire: u16,
    /// Bytes of the frame, without preamble and check sequence.
    pub bytes: Vec<u8>,
}

/// The recordings of a running simulation.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    captures_frames: bool,
    /// Frames captured during the present event.
    pub(crate) frames: Vec<Captured>,
    recorder: Option<Recorder>,
    labels: SegmentLabels,
}

impl Trace {
    /// Starts the recordings that `keep` selects.
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            captures_frames: keep.frames,
            frames: Vec::new(),
            recorder: keep.timeline.map(Recorder::new),
            labels: SegmentLabels::default(),
        }
    }

    /// Records an action of the medium of wire `wire`. If the action completes a frame, captures
    /// the frame, provided that the run captures frames. Notes the station's new activity in the
    /// timeline.
    #[inline]
    pub(crate) fn note_wire(
        &mut self,
        now: Tick,
        wire: u16,
        action: MediumAction,
        frames: &Frames,
    ) {
        if self.captures_frames || self.recorder.is_some() {
            self.keep(now, wire, action, frames);
        }
    }

    fn keep(&mut self, at: Tick, wire: u16, action: MediumAction, frames: &Frames) {
        let (port, frame, is_active) = match action {
            MediumAction::Sending { port, frame } => (port, frame, true),
            MediumAction::Collided { port, frame } => (port, frame, true),
            MediumAction::Sent { port, frame } | MediumAction::GivenUp { port, frame } => {
                (port, frame, false)
            }
            MediumAction::Later { .. }
            | MediumAction::Arriving { .. }
            | MediumAction::Fragment { .. }
            | MediumAction::Arrived { .. } => return,
        };
        let bytes = frames[frame].sent();
        if let Some(recorder) = &mut self.recorder {
            let part = Part::Station { wire, port };
            match action {
                MediumAction::Collided { .. } => recorder.correct(part, Activity::Collision),
                MediumAction::GivenUp { .. } => recorder.correct(part, Activity::GivenUp),
                _ => {}
            }
            let doing = is_active.then(|| match action {
                MediumAction::Collided { .. } => Doing::new(Activity::Backoff, bytes.len() as u64),
                _ => self.labels.label(bytes),
            });
            recorder.note(at, part, doing);
        }
        if self.captures_frames && matches!(action, MediumAction::Sent { .. }) {
            self.frames.push(Captured { at, wire, bytes: bytes.to_vec() });
        }
    }

    /// Records the state of a machine.
    #[inline]
    pub(crate) fn note_machine(
        &mut self,
        now: Tick,
        machine: usize,
        snapshot: impl FnOnce() -> MachineSnapshot,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let snapshot = snapshot();
        recorder.note(
            now,
            Part::Inside { machine, processor: 0, unit: Unit::Bus },
            bus_use(snapshot.bus),
        );
        recorder.note(
            now,
            Part::Inside { machine, processor: 0, unit: Unit::Wait },
            snapshot.waits_for.map(|by| Doing::new(by, 1)),
        );
        for (processor, snapshot) in (0..).zip(snapshot.processors) {
            let mut note =
                |unit, does| recorder.note(now, Part::Inside { machine, processor, unit }, does);
            note(Unit::Processor, activity(snapshot.level));
            let units = [Unit::DriverQueue, Unit::TransmitRing, Unit::ReceiveRing];
            units
                .into_iter()
                .zip(snapshot.frames)
                .for_each(|(unit, count)| note(unit, queued(count)));
        }
    }

    /// Records the state of a router or a bridge.
    #[inline]
    pub(crate) fn note_relay(
        &mut self,
        now: Tick,
        relay: u16,
        snapshot: impl FnOnce() -> RelaySnapshot,
    ) {
        let Some(recorder) = &mut self.recorder else { return };
        let snapshot = snapshot();
        let mut note = |unit, does| recorder.note(now, Part::Relay { relay, unit }, does);
        note(Unit::Processor, activity(snapshot.level));
        note(Unit::Bus, bus_use(snapshot.bus));
        note(Unit::Input, queued(snapshot.input));
        for (nic, counts) in (0..).zip(snapshot.nics) {
            for (unit, count) in
                [Unit::Queue, Unit::TransmitRing, Unit::ReceiveRing].into_iter().zip(counts)
            {
                recorder.note(now, Part::RelayNic { relay, nic, unit }, queued(count));
            }
        }
    }

    /// Returns the timeline, if one was recorded.
    pub(crate) fn take_timeline(
        &mut self,
        now: Tick,
        name: impl Fn(Part) -> String,
    ) -> Option<Timeline> {
        self.recorder.take().map(|recorder| recorder.finish(now, name))
    }
}

/// Returns the activity to show for a processor that runs a job of this level; `None` if it is
/// idle.
fn activity(level: Option<Level>) -> Option<Doing> {
    let by = match level? {
        Level::Driver => Activity::Driver,
        Level::Network => Activity::Network,
        Level::Task => Activity::Task,
    };
    Some(Doing::new(by, 1))
}

/// Returns the activity to show for a bus of which NICs use `share` per cent; `None` if that is
/// zero.
fn bus_use(share: u64) -> Option<Doing> {
    (share > 0).then_some(Doing::new(Activity::Nic, share))
}

/// Returns the activity to show for a queue or a ring that holds `count` frames; `None` if it is
/// empty.
fn queued(count: usize) -> Option<Doing> {
    (count > 0).then_some(Doing::new(Activity::Frames, count as u64))
}
