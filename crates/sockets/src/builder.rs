//! How a network of one's own is made: a link, a host on it, and the thread that turns the host.

use crate::net::Net;
use crate::reactor::Reactor;
use crate::shared::Shared;
use linerate_link::{Readiness, Waiter};
use linerate_stack::{Budget, Link, Stack, StackConfig};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

/// A network that is about to start.
pub struct Builder<L> {
    link: L,
    config: StackConfig,
    seed: Option<[u8; 32]>,
    name: String,
    budget: Budget,
    spins: u32,
    epilogue: Box<dyn FnOnce(L) + Send>,
}

impl<L: Link + Readiness + Send + 'static> Builder<L> {
    /// A host of this configuration, on `link`.
    #[must_use]
    pub fn new(link: L, config: StackConfig) -> Self {
        Self {
            link,
            config,
            seed: None,
            name: "linerate".to_owned(),
            budget: Budget::default(),
            spins: 0,
            epilogue: Box::new(drop),
        }
    }

    /// Draws everything that others must not be able to guess (sequence numbers, ports, the keys of
    /// tables) from `seed`, for what has to be repeated. Without this it is drawn from the operating
    /// system.
    #[must_use]
    pub fn seed(self, seed: [u8; 32]) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The name of the thread; the system shows 15 bytes of it.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// How much the thread does before others get the lock. More is a little faster in bulk, less lets
    /// the threads of the application wait less.
    #[must_use]
    pub fn budget(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// Has the thread look so often for something to do, a few nanoseconds each, before it sleeps: worth
    /// it where it has a core for itself.
    #[must_use]
    pub fn spins(self, spins: u32) -> Self {
        Self { spins, ..self }
    }

    /// Gives the link back when the network has ended, on its thread: to finish a capture, or to ask a
    /// link what it has counted. Without this it is dropped.
    #[must_use]
    pub fn when_ended(self, epilogue: impl FnOnce(L) + Send + 'static) -> Self {
        Self { epilogue: Box::new(epilogue), ..self }
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// What the operating system says if it grants no random numbers, no descriptor or no thread.
    pub fn start(self) -> io::Result<Net> {
        let seed = self.seed.map_or_else(draw_seed, Ok)?;
        let waiter = Waiter::new().map_err(io::Error::other)?.with_spins(self.spins);
        let mut stack = Stack::new(self.config, seed);
        stack.attach(self.link.capabilities());
        let shared = Arc::new(Shared::new(stack, waiter.doorbell()));
        let reactor = Reactor { shared: Arc::clone(&shared), link: self.link, waiter, budget: self.budget };
        let epilogue = self.epilogue;
        let thread = thread::Builder::new().name(self.name).spawn(move || epilogue(reactor.run()))?;
        Ok(Net::new(shared, thread))
    }
}

fn draw_seed() -> io::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut drawn = 0;
    while drawn < seed.len() {
        drawn += getrandom(&mut seed[drawn..], GetRandomFlags::empty())?;
    }
    Ok(seed)
}

/// The seed is a secret.
impl<L: fmt::Debug> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Builder");
        fields.field("link", &self.link).field("config", &self.config).field("name", &self.name);
        fields.field("budget", &self.budget).field("spins", &self.spins).finish_non_exhaustive()
    }
}
