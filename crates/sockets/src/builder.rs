//! How a network of one's own is made: a link, a host on it, and the thread that turns the host, or a shard of
//! the host and a thread for each queue of the link.

use crate::error::Error;
use crate::net::Net;
use crate::reactor::Reactor;
use crate::shared::Shared;
use linerate_link::shard::{HandoverWatch, ShardError, share};
use linerate_link::{Readiness, ShardLink, Waiter};
use linerate_stack::{Budget, Link, SMALLEST_MTU, Shard, Stack, StackConfig};
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

/// A network that is about to start.
pub struct Builder<L> {
    /// One at least.
    queues: Vec<L>,
    config: StackConfig,
    seed: Option<[u8; 32]>,
    name: String,
    budget: Budget,
    spins: u32,
    epilogue: Box<dyn FnMut(L) + Send>,
}

impl<L: Link + Readiness + Send + 'static> Builder<L> {
    /// A host of this configuration, on `link`.
    #[must_use]
    pub fn new(link: L, config: StackConfig) -> Self {
        Self {
            queues: vec![link],
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

    /// Further queues of the same link. Each gets a shard: a host of its own with a thread of its own, which
    /// shares nothing with the others. Connections are spread over them, those that are opened here by turns
    /// and those that arrive by a hash of both ends, and listeners accept from all; UDP sockets live on the
    /// first one. The limits of the configuration are divided among them.
    #[must_use]
    pub fn queues(mut self, further: impl IntoIterator<Item = L>) -> Self {
        self.queues.extend(further);
        self
    }

    /// The name of the thread, up to the first zero byte; the system shows 15 bytes of it. Those of several shards
    /// have a number behind.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let mut name = name.into();
        name.truncate(name.find('\0').unwrap_or(name.len()));
        Self { name, ..self }
    }

    /// How much the thread does before others get the lock, one of each kind at least. More is a little faster in
    /// bulk, less lets the threads of the application wait less.
    #[must_use]
    pub fn budget(self, Budget { receive, timers, transmit }: Budget) -> Self {
        // With nothing of one kind it would turn for ever, and come to nothing.
        let budget =
            Budget { receive: receive.max(1), timers: timers.max(1), transmit: transmit.max(1) };
        Self { budget, ..self }
    }

    /// Has the thread look so often for something to do, a few nanoseconds each, before it sleeps: worth
    /// it where it has a core for itself.
    #[must_use]
    pub fn spins(self, spins: u32) -> Self {
        Self { spins, ..self }
    }

    /// Gives the link back when the network has ended, on its thread, and of several queues each: to finish a
    /// capture, or to ask a link what it has counted. Without this it is dropped.
    #[must_use]
    pub fn when_ended(self, epilogue: impl FnMut(L) + Send + 'static) -> Self {
        Self { epilogue: Box::new(epilogue), ..self }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// What the operating system says if it grants no random numbers, no descriptor or no thread;
    /// `InvalidInput` for more queues than a host can have shards, or a link that is narrower than
    /// [`SMALLEST_MTU`].
    pub fn start(mut self) -> io::Result<Net> {
        let seed = self.seed.map_or_else(draw_seed, Ok)?;
        let mut queues = std::mem::take(&mut self.queues);
        if queues.len() == 1 {
            return self.start_on(
                queues.drain(..).map(|link| (link, Shard::ONLY)),
                seed,
                Vec::new(),
                |link| link,
            );
        }
        let links = share(queues, seed).map_err(|error| match error {
            ShardError::Queues(_) => io::Error::new(io::ErrorKind::InvalidInput, error),
            ShardError::Descriptor(error) => io::Error::other(error),
        })?;
        let watches = links.iter().map(ShardLink::watch).collect();
        let links = links.into_iter().map(|link| {
            let shard = link.shard();
            (link, shard)
        });
        self.start_on(links, seed, watches, ShardLink::into_queue)
    }

    /// A host or shard on each of `links`, which `give_back` makes what the application has given.
    fn start_on<M: Link + Readiness + Send + 'static>(
        self,
        links: impl Iterator<Item = (M, Shard)>,
        seed: [u8; 32],
        watches: Vec<HandoverWatch>,
        give_back: impl Fn(M) -> L + Copy + Send + 'static,
    ) -> io::Result<Net> {
        let mut begun = Vec::new();
        for (link, shard) in links {
            if link.capabilities().mtu < SMALLEST_MTU {
                // A host that has something to send and cannot would turn for ever.
                return Err(Error::NarrowLink(link.capabilities().mtu).into());
            }
            let waiter = Waiter::new().map_err(io::Error::other)?.with_spins(self.spins);
            let limits = self.config.limits.among(shard.count);
            let mut stack = Stack::new(StackConfig { shard, limits, ..self.config.clone() }, seed);
            stack.attach(link.capabilities());
            let shared = Arc::new(Shared::new(stack, waiter.doorbell()));
            begun.push((shared, link, waiter, shard));
        }
        let shards: Arc<[_]> = begun.iter().map(|(shared, ..)| Arc::clone(shared)).collect();
        // From here on whoever fails takes down what has started.
        let net = Net::new(Arc::clone(&shards), watches);
        let epilogue = Arc::new(Mutex::new(self.epilogue));
        for (shared, link, waiter, shard) in begun {
            let (epilogue, shards) = (Arc::clone(&epilogue), Arc::clone(&shards));
            let reactor = Reactor { shared, link, waiter, budget: self.budget, shards };
            let name = match shard {
                Shard::ONLY => self.name.clone(),
                Shard { number, .. } => format!("{}-{number}", self.name),
            };
            net.keep(thread::Builder::new().name(name).spawn(move || {
                let link = give_back(reactor.run());
                epilogue.lock()(link);
            })?);
        }
        Ok(net)
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
        fields
            .field("queues", &self.queues)
            .field("config", &self.config)
            .field("name", &self.name);
        fields.field("budget", &self.budget).field("spins", &self.spins).finish_non_exhaustive()
    }
}
