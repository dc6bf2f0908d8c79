//! A host on its link, and its event loop.

use crate::link::{Link, LinkError};
use crate::stack::Stack;
use crate::stack::turn::{Budget, Turn};
use linerate_units::Instant;

/// A host on its link.
#[derive(Debug)]
pub struct Host<L> {
    stack: Stack,
    link: L,
    budget: Budget,
}

impl<L: Link> Host<L> {
    /// Attaches a host to its link.
    pub fn new(mut stack: Stack, link: L) -> Self {
        stack.attach(link.capabilities());
        Self { stack, link, budget: Budget::default() }
    }

    /// Sets the budget of a turn.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Performs one turn at `now`: receives frames, runs timers and sends frames, within the
    /// budget. Never waits.
    ///
    /// On a link with segmentation offload, sending comes first. Responses to the received frames
    /// are sent in the next turn, which is due immediately ([`Turn::more`]). Acknowledgements then
    /// reflect the reads of the application in between, which keeps the peer's window open and its
    /// frames large.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot carry frames. Timers have run nevertheless, so the call can
    /// be repeated, and connections time out as usual.
    pub fn turn(&mut self, now: Instant) -> Result<Turn, LinkError> {
        self.stack.turn(&mut self.link, self.budget, now)
    }

    /// Returns the stack of the host.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the stack of the host, for calls of the application.
    pub const fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Returns the link.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns the link, for example to wait for it.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Returns the stack and the link.
    pub fn into_parts(self) -> (Stack, L) {
        (self.stack, self.link)
    }
}
