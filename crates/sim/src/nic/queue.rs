//! A queue of a card: what the card has to tell the processor that serves it, and when it asks for that processor.

use super::parameters::InterruptParameters;
use super::{Completion, NicAction, NicEvent};
use linerate_units::{Span, Tick};
use serde::Serialize;
use std::collections::VecDeque;

/// What a queue of a card has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueStatistics {
    /// Bytes of frames received.
    pub receive_bytes: u64,
    /// Frames received.
    pub receive_packets: u64,
    /// Frames for which there was no room in its receive area.
    pub receive_drops: u64,
    /// Bytes of frames sent.
    pub transmit_bytes: u64,
    /// Frames sent.
    pub transmit_packets: u64,
    /// Frames that the driver's queue had no room for.
    pub transmit_drops: u64,
    /// Interrupts.
    pub interrupts: u64,
}

#[derive(Debug)]
pub(super) struct Queue {
    number: u16,
    /// What the driver has not been told, the oldest first.
    completions: VecDeque<Completion>,
    /// The driver has been asked for, and has not come yet.
    asked: bool,
    /// The moderating timer runs.
    moderating: bool,
    pub(super) counted: QueueStatistics,
}

impl Queue {
    pub(super) fn new(number: u16) -> Self {
        Self {
            number,
            completions: VecDeque::with_capacity(16),
            asked: false,
            moderating: false,
            counted: QueueStatistics::default(),
        }
    }

    /// There is something to tell.
    pub(super) fn tell(
        &mut self,
        now: Tick,
        completion: Completion,
        moderation: &InterruptParameters,
        actions: &mut Vec<NicAction>,
    ) {
        self.completions.push_back(completion);
        if moderation.delay == Span::ZERO || self.completions.len() >= moderation.frames {
            self.ask(actions);
        } else if !self.moderating && !self.asked {
            self.moderating = true;
            let event = NicEvent::Moderated { queue: self.number };
            actions.push(NicAction::Later { at: now + moderation.delay, event });
        }
    }

    /// Enough time has passed.
    pub(super) fn handle_moderated(&mut self, actions: &mut Vec<NicAction>) {
        self.moderating = false;
        self.ask(actions);
    }

    fn ask(&mut self, actions: &mut Vec<NicAction>) {
        if !self.asked && !self.completions.is_empty() {
            self.asked = true;
            self.counted.interrupts += 1;
            actions.push(NicAction::Interrupt { queue: self.number });
        }
    }

    /// The driver asks what there is: the oldest thing.
    pub(super) fn poll_completion(&mut self) -> Option<Completion> {
        self.asked = false;
        self.completions.pop_front()
    }
}
