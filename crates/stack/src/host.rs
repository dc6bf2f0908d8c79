//! A host on its link, and the loop that moves frames in, timers, and frames out.

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
    /// Puts a host on its link.
    pub fn new(mut stack: Stack, link: L) -> Self {
        stack.attach(link.capabilities());
        Self { stack, link, budget: Budget::default() }
    }

    /// The same host with another budget for its turns.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Does what there is to do at `now`, within the budget: frames in, timers, frames out. It never
    /// waits.
    ///
    /// On a link with super-frames frames go out first: what the ones that came in call for leaves with the next
    /// turn, which is due at once ([`Turn::more`]). Its acknowledgements then tell of what the application has read
    /// in between, so that the peer goes on with frames as full as the window lets them be.
    ///
    /// # Errors
    /// [`LinkError`] if the link cannot carry frames. Timers have been served all the same, so the
    /// call can be repeated, and connections that hear nothing give up in their time.
    pub fn turn(&mut self, now: Instant) -> Result<Turn, LinkError> {
        self.stack.turn(&mut self.link, self.budget, now)
    }

    /// The host without its link.
    pub const fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The host without its link, to be used by applications.
    pub const fn stack_mut(&mut self) -> &mut Stack {
        &mut self.stack
    }

    /// The link.
    pub const fn link(&self) -> &L {
        &self.link
    }

    /// The link, to be waited for.
    pub const fn link_mut(&mut self) -> &mut L {
        &mut self.link
    }

    /// Takes host and link apart.
    pub fn into_parts(self) -> (Stack, L) {
        (self.stack, self.link)
    }
}
