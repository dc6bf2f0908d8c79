//! What is kept of a world for those who want to look at it: its frames, and who held what when.

use crate::frame::Frames;
use crate::machine::Level;
use crate::medium::MediumAction;
use crate::timeline::{By, Part, Recorder, Timeline, Unit, Window};
use linerate_units::Tick;

/// What is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Every frame that crosses a wire, with its checksums.
    pub frames: bool,
    /// Who held what when, in this window.
    pub timeline: Option<Window>,
}

/// A frame that has crossed a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it had left its sender as a whole.
    pub at: Tick,
    /// Which wire.
    pub wire: u16,
    /// Its bytes, without preamble and check sequence.
    pub bytes: Vec<u8>,
}

/// What a machine looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// What cards hold of the bus, in per cent.
    pub(crate) bus: u64,
    /// Its processors, each with its queue of the card.
    pub(crate) processors: Vec<ProcessorLook>,
}

/// What a processor looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessorLook {
    /// What it works on.
    pub(crate) works: Option<Level>,
    /// Frames that wait in the driver, in the card to be sent, and in its receive area.
    pub(crate) frames: [usize; 3],
}

/// What a router or a bridge looks like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayLook {
    /// What its processor works on.
    pub(crate) works: Option<Level>,
    /// What cards hold of the bus, in per cent.
    pub(crate) bus: u64,
    /// Frames that wait for the processor to decide.
    pub(crate) input: usize,
    /// By card: frames that wait in front of it, in it to be sent, and in its receive area.
    pub(crate) cards: Vec<[usize; 3]>,
}

/// What has been kept.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    keeps_frames: bool,
    /// Those that have left in the present event.
    pub(crate) frames: Vec<Captured>,
    recorder: Option<Recorder>,
}

impl Trace {
    /// Keeps nothing but this.
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            keeps_frames: keep.frames,
            frames: Vec::new(),
            recorder: keep.timeline.map(Recorder::new),
        }
    }

    /// Something happens on a wire.
    #[inline]
    pub(crate) fn note_wire(
        &mut self,
        now: Tick,
        wire: u16,
        action: MediumAction,
        frames: &Frames,
    ) {
        if self.keeps_frames || self.recorder.is_some() {
            self.keep(now, wire, action, frames);
        }
    }

    fn keep(&mut self, at: Tick, wire: u16, action: MediumAction, frames: &Frames) {
        let (port, frame, does) = match action {
            MediumAction::Sending { port, frame } => (port, frame, Some(By::Frame)),
            MediumAction::Collided { port, frame } => (port, frame, Some(By::Backoff)),
            MediumAction::Sent { port, frame } | MediumAction::GivenUp { port, frame } => {
                (port, frame, None)
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
                MediumAction::Collided { .. } => recorder.correct(part, By::Collision),
                MediumAction::GivenUp { .. } => recorder.correct(part, By::GivenUp),
                _ => {}
            }
            recorder.note(at, part, does.map(|by| (by, bytes.len() as u64)));
        }
        if self.keeps_frames && matches!(action, MediumAction::Sent { .. }) {
            self.frames.push(Captured { at, wire, bytes: bytes.to_vec() });
        }
    }

    /// Something has happened to a machine, which looks like this now.
    #[inline]
    pub(crate) fn note_machine(&mut self, now: Tick, machine: usize, look: impl FnOnce() -> Look) {
        let Some(recorder) = &mut self.recorder else { return };
        let look = look();
        recorder.note(
            now,
            Part::Inside { machine, processor: 0, unit: Unit::Bus },
            taken(look.bus),
        );
        for (processor, look) in (0..).zip(look.processors) {
            let mut note =
                |unit, does| recorder.note(now, Part::Inside { machine, processor, unit }, does);
            note(Unit::Processor, works(look.works));
            let units = [Unit::DriverQueue, Unit::SendRing, Unit::ReceiveArea];
            units.into_iter().zip(look.frames).for_each(|(unit, count)| note(unit, waiting(count)));
        }
    }

    /// Something has happened to a router or a bridge, which looks like this now.
    #[inline]
    pub(crate) fn note_relay(&mut self, now: Tick, relay: u16, look: impl FnOnce() -> RelayLook) {
        let Some(recorder) = &mut self.recorder else { return };
        let look = look();
        let mut note = |unit, does| recorder.note(now, Part::Relay { relay, unit }, does);
        note(Unit::Processor, works(look.works));
        note(Unit::Bus, taken(look.bus));
        note(Unit::Input, waiting(look.input));
        for (card, counts) in (0..).zip(look.cards) {
            for (unit, count) in
                [Unit::Queue, Unit::SendRing, Unit::ReceiveArea].into_iter().zip(counts)
            {
                recorder.note(now, Part::RelayCard { relay, card, unit }, waiting(count));
            }
        }
    }

    /// The world is over: its timeline, if one was to be kept.
    pub(crate) fn take_timeline(
        &mut self,
        now: Tick,
        name: impl Fn(Part) -> String,
    ) -> Option<Timeline> {
        self.recorder.take().map(|recorder| recorder.finish(now, name))
    }
}

/// What a processor does, of a timeline.
fn works(level: Option<Level>) -> Option<(By, u64)> {
    let by = match level? {
        Level::Card => By::Driver,
        Level::Network => By::Network,
        Level::Task => By::Task,
    };
    Some((by, 1))
}

/// What is taken of a bus.
fn taken(share: u64) -> Option<(By, u64)> {
    (share > 0).then_some((By::Card, share))
}

/// Frames that wait somewhere.
fn waiting(count: usize) -> Option<(By, u64)> {
    (count > 0).then_some((By::Frames, count as u64))
}
