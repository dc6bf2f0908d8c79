//! The completions of a NIC queue that the driver has not read, and their interrupt moderation.

use super::parameters::InterruptParameters;
use super::{Completion, NicAction, NicEvent};
use linerate_units::{Span, Tick};
use serde::Serialize;
use std::collections::VecDeque;

/// Counters of one queue of a NIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueStatistics {
    /// Bytes of frames received.
    pub receive_bytes: u64,
    /// Frames received.
    pub receive_packets: u64,
    /// Frames dropped because the receive ring was full.
    pub receive_drops: u64,
    /// Bytes of frames sent.
    pub transmit_bytes: u64,
    /// Frames sent.
    pub transmit_packets: u64,
    /// Frames dropped because the driver's queue was full.
    pub transmit_drops: u64,
    /// Number of interrupts.
    pub interrupts: u64,
}

#[derive(Debug)]
pub(super) struct CompletionQueue {
    number: u16,
    /// Completions that the driver has not read, oldest first.
    completions: VecDeque<Completion>,
    /// Whether the NIC has raised an interrupt to which the driver has not responded by reading a
    /// completion.
    interrupt_pending: bool,
    /// Whether the timer of interrupt moderation is running.
    moderating: bool,
    pub(super) counted: QueueStatistics,
}

impl CompletionQueue {
    pub(super) fn new(number: u16) -> Self {
        Self {
            number,
            completions: VecDeque::with_capacity(16),
            interrupt_pending: false,
            moderating: false,
            counted: QueueStatistics::default(),
        }
    }

    /// Adds a completion. Interrupts the processor if interrupt moderation permits that now, and
    /// otherwise starts the moderation timer.
    pub(super) fn push(
        &mut self,
        now: Tick,
        completion: Completion,
        moderation: &InterruptParameters,
        actions: &mut Vec<NicAction>,
    ) {
        self.completions.push_back(completion);
        if moderation.delay == Span::ZERO || self.completions.len() >= moderation.frames {
            self.interrupt(actions);
        } else if !self.moderating && !self.interrupt_pending {
            self.moderating = true;
            let event = NicEvent::Moderated { queue: self.number };
            actions.push(NicAction::Later { at: now + moderation.delay, event });
        }
    }

    /// Handles the expiry of the moderation timer.
    pub(super) fn handle_moderated(&mut self, actions: &mut Vec<NicAction>) {
        self.moderating = false;
        self.interrupt(actions);
    }

    fn interrupt(&mut self, actions: &mut Vec<NicAction>) {
        if !self.interrupt_pending && !self.completions.is_empty() {
            self.interrupt_pending = true;
            self.counted.interrupts += 1;
            actions.push(NicAction::Interrupt { queue: self.number });
        }
    }

    /// Removes and returns the oldest completion; `None` if there is none.
    pub(super) fn poll_completion(&mut self) -> Option<Completion> {
        self.interrupt_pending = false;
        self.completions.pop_front()
    }
}
