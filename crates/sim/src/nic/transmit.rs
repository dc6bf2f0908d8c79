//! The half of a card that sends: a ring of commands, worked off one after the other.

use super::parameters::TransmitParameters;
use super::receive::Receiver;
use super::{NicAction, NicEvent};
use crate::frame::FrameId;
use linerate_units::Tick;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Transmitter {
    parameters: TransmitParameters,
    /// Commands whose frames have not left, the one that is worked on first.
    waiting: VecDeque<FrameId>,
    /// Commands whose frames have left, and that are not done.
    leaving: usize,
    /// Is the command at the head worked on?
    works: bool,
}

impl Transmitter {
    pub(super) fn new(parameters: TransmitParameters) -> Self {
        let waiting = VecDeque::with_capacity(parameters.ring);
        Self { parameters, waiting, leaving: 0, works: false }
    }

    pub(super) fn has_room(&self) -> bool {
        self.held() < self.parameters.ring
    }

    /// Commands that it has.
    pub(super) fn held(&self) -> usize {
        self.waiting.len() + self.leaving
    }

    pub(super) fn queue(&mut self, now: Tick, frame: FrameId, actions: &mut Vec<NicAction>) {
        assert!(self.has_room(), "the driver gives no command that there is no room for");
        self.waiting.push_back(frame);
        if !self.works {
            self.works = true;
            actions.push(NicAction::Later { at: now + self.parameters.start, event: NicEvent::Ready });
        }
    }

    /// The head is ready to leave, unless the card has to turn round after receiving.
    pub(super) fn handle_ready(&self, now: Tick, receiver: &Receiver, actions: &mut Vec<NicAction>) {
        let turned = receiver.ended() + self.parameters.after_receive;
        if receiver.ended() > Tick::ZERO && turned > now {
            actions.push(NicAction::Later { at: turned, event: NicEvent::Ready });
        } else if let Some(&frame) = self.waiting.front() {
            actions.push(NicAction::Request { frame });
        }
    }

    pub(super) fn handle_sent(&mut self, now: Tick, actions: &mut Vec<NicAction>) {
        let Some(frame) = self.waiting.pop_front() else { return };
        self.leaving += 1;
        actions.push(NicAction::Release { frame });
        actions.push(NicAction::Later { at: now + self.parameters.done, event: NicEvent::CommandDone });
        self.works = !self.waiting.is_empty();
        if self.works {
            actions.push(NicAction::Later { at: now + self.parameters.chained, event: NicEvent::Ready });
        }
    }

    pub(super) const fn handle_done(&mut self) {
        self.leaving -= 1;
    }

    pub(super) fn check(&self) {
        assert!(self.held() <= self.parameters.ring, "the ring holds what it holds");
        assert!(!self.works || !self.waiting.is_empty(), "nobody works on a command that is not there");
    }
}
