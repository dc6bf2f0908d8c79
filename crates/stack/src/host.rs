//! A host together with its link, and the turn of its event loop.

use crate::link::{Link, LinkError};
use crate::stack::Stack;
use crate::stack::turn::{Budget, Turn};
use linerate_units::Instant;

/// A host together with its link.
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

    /// Sets the budget of a turn: the limits of the work that one turn performs.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Performs one turn at the time `now`: receives frames, runs timers and sends frames, within
    /// the budget. This method never blocks.
    ///
    /// On a link with segmentation offload, a turn sends before it receives. The responses to the
    /// received frames are thus sent in the next turn, which is due immediately ([`Turn::more`]).
    /// If the application reads between the two turns, the acknowledgements announce the freed
    /// buffer space. This keeps the receive window open and the peer's segments large.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot receive or send frames. Timers have run nevertheless, so
    /// connections time out as usual. The caller can repeat the call.
    pub fn turn(&mut self, now: Instant) -> Result<Turn, LinkError> {
        self.stack.turn(&mut self.link, self.budget, now)
    }

    /// Returns the stack of the host.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns a mutable reference to the stack of the host, for calls of the application.
    pub const fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// Returns the link.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// Returns a mutable reference to the link, for example to wait until frames have arrived.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Splits the host into its stack and its link.
    pub fn into_parts(self) -> (Stack, L) {
        (self.stack, self.link)
    }
}
