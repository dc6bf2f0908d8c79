//! What is kept of a world for those who want to look at it: its frames, and who held what when.

use crate::frame::Frames;
use crate::medium::MediumAction;
use linerate_units::Tick;

/// What is to be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Every frame that crosses a wire.
    pub frames: bool,
    /// Who sends, and what becomes of it.
    pub timeline: bool,
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

/// Something that a station did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub at: Tick,
    /// On which wire.
    pub wire: u16,
    /// The station's place on it.
    pub port: usize,
    /// What.
    pub what: What,
    /// Bytes of the frame.
    pub length: usize,
}

/// What a station does on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It begins to send.
    Begin,
    /// It meets another.
    Collision,
    /// It has sent a frame.
    Sent,
    /// It gives a frame up.
    GivenUp,
}

/// What has been kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    keep: Keep,
    pub(crate) frames: Vec<Captured>,
    pub(crate) moments: Vec<Moment>,
}

impl Trace {
    /// Keeps nothing but this.
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Something happens on a wire.
    #[inline]
    pub(crate) fn note(&mut self, now: Tick, wire: u16, action: MediumAction, frames: &Frames) {
        if self.keep != Keep::default() {
            self.keep(now, wire, action, frames);
        }
    }

    fn keep(&mut self, at: Tick, wire: u16, action: MediumAction, frames: &Frames) {
        let (port, frame, what) = match action {
            MediumAction::Sending { port, frame } => (port, frame, What::Begin),
            MediumAction::Collided { port, frame } => (port, frame, What::Collision),
            MediumAction::Sent { port, frame } => (port, frame, What::Sent),
            MediumAction::GivenUp { port, frame } => (port, frame, What::GivenUp),
            MediumAction::Later { .. }
            | MediumAction::Arriving { .. }
            | MediumAction::Fragment { .. }
            | MediumAction::Arrived { .. } => return,
        };
        let bytes = frames[frame].bytes();
        if self.keep.timeline {
            self.moments.push(Moment { at, wire, port, what, length: bytes.len() });
        }
        if self.keep.frames && what == What::Sent {
            self.frames.push(Captured { at, wire, bytes: bytes.to_vec() });
        }
    }
}
