//! The half of a card that sends: a ring of commands, worked off one after the other.

use super::fifo::Fifo;
use super::parameters::TransmitParameters;
use super::receive::Receiver;
use super::{NicAction, NicEvent};
use crate::frame::FrameId;
use linerate_units::{Span, Tick};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Transmitter {
    parameters: TransmitParameters,
    /// The FIFO, if it can run empty.
    fifo: Option<Fifo>,
    /// Frames that have not left, the one that is worked on first.
    waiting: VecDeque<Piece>,
    /// Commands that they belong to.
    commands: usize,
    /// Commands whose frames have left, and that are not done.
    leaving: usize,
    /// Is the command at the head worked on?
    works: bool,
    /// Bytes of its frame that leave before the FIFO runs empty, if it does.
    cut: Option<usize>,
    /// How often it was broken off so.
    broken_off: u64,
}

/// A frame that is to be sent: all that a command asks for, or a piece of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) frame: FrameId,
    pub(super) length: usize,
    /// Its command is done when it has left.
    pub(super) is_last: bool,
}

impl Transmitter {
    pub(super) fn new(parameters: TransmitParameters, fifo: Option<Fifo>) -> Self {
        let waiting = VecDeque::with_capacity(parameters.ring);
        Self { parameters, fifo, waiting, commands: 0, leaving: 0, works: false, cut: None, broken_off: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.held() < self.parameters.ring
    }

    /// Commands that it has.
    pub(super) fn held(&self) -> usize {
        self.commands + self.leaving
    }

    pub(super) fn queue(&mut self, now: Tick, piece: Piece, actions: &mut Vec<NicAction>) {
        assert!(self.has_room(), "the driver gives no command that there is no room for");
        self.commands += usize::from(piece.is_last);
        self.waiting.push_back(piece);
        if !self.works {
            self.works = true;
            actions.push(NicAction::Later { at: now + self.parameters.start, event: NicEvent::Ready });
        }
    }

    /// The head is ready to leave, unless the card has to turn round after receiving. What becomes of its FIFO is
    /// decided here, as though the wire were free.
    pub(super) fn handle_ready(&mut self, now: Tick, receiver: &Receiver, actions: &mut Vec<NicAction>) {
        let turned = receiver.ended() + self.parameters.after_receive;
        if receiver.ended() > Tick::ZERO && turned > now {
            actions.push(NicAction::Later { at: turned, event: NicEvent::Ready });
        } else if let Some(&Piece { frame, length, .. }) = self.waiting.front() {
            let left = self.fifo.and_then(|fifo| fifo.runs_empty(now, length as u64));
            self.cut = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
            actions.push(NicAction::Request { frame, cut: self.cut });
        }
    }

    /// A frame has been received: what is about to leave must be fetched again, if both halves share a FIFO.
    pub(super) fn handle_received(&self, now: Tick, actions: &mut Vec<NicAction>) {
        if self.works && self.parameters.after_receive > Span::ZERO {
            actions.push(NicAction::Hold { until: now + self.parameters.after_receive });
        }
    }

    /// Does the frame that leaves end before its end?
    pub(super) const fn is_broken_off(&self) -> bool {
        self.cut.is_some()
    }

    pub(super) fn handle_sent(&mut self, now: Tick, broken_off: bool, actions: &mut Vec<NicAction>) {
        self.cut = None;
        if broken_off && self.broken_off < self.parameters.retries {
            self.broken_off += 1;
            let at = now + self.parameters.restart;
            return actions.push(NicAction::Later { at, event: NicEvent::Ready });
        }
        self.broken_off = 0;
        let Some(Piece { frame, is_last, .. }) = self.waiting.pop_front() else { return };
        actions.push(NicAction::Release { frame });
        if is_last {
            (self.commands, self.leaving) = (self.commands - 1, self.leaving + 1);
            actions.push(NicAction::Later { at: now + self.parameters.done, event: NicEvent::CommandDone });
        }
        self.works = !self.waiting.is_empty();
        if self.works {
            let until_next = if broken_off { self.parameters.restart } else { self.parameters.chained };
            actions.push(NicAction::Later { at: now + until_next, event: NicEvent::Ready });
        }
    }

    pub(super) const fn handle_done(&mut self) {
        self.leaving -= 1;
    }

    pub(super) fn check(&self) {
        assert!(self.held() <= self.parameters.ring, "the ring holds what it holds");
        let commands = self.waiting.iter().filter(|piece| piece.is_last).count();
        assert_eq!(commands, self.commands, "a command ends with one of its frames");
        assert!(!self.works || !self.waiting.is_empty(), "nobody works on a command that is not there");
    }
}
