//! Construction of a network: a link, a host on it, and the thread that drives the host. If the
//! link has several queues, each queue gets a thread and a shard, which is a part of the host.

use crate::error::Error;
use crate::net::Net;
use crate::reactor::Reactor;
use crate::shared::Shared;
use linerate_link::shard::{HandoverWatch, ShardError, share};
use linerate_link::{MonotonicClock, Readiness, ShardLink, Waiter, random_bytes};
use linerate_stack::{
    Budget, InterfaceConfig, InterfaceLink, Link, SMALLEST_MTU, Shard, Stack, StackConfig,
};
use linerate_units::Clock;
use parking_lot::Mutex;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

/// The configuration of a network that has not started yet.
///
/// ```
/// use linerate_link::memory::{MemoryConfig, pair};
/// use linerate_sockets::{Budget, Net, StackConfig};
///
/// let (link, _peer) = pair(MemoryConfig::default())?;
/// let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(link, config)
///     .name("tunnel")
///     .budget(Budget { receive: 256, ..Budget::default() })
///     .when_ended(|_link| println!("the link is free again"))
///     .start()?;
/// net.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Builder<L> {
    /// The queues of the link of the first interface: at least one.
    queues: Vec<L>,
    /// All interfaces except the first, each with its link.
    interfaces: Vec<(InterfaceConfig, L)>,
    config: StackConfig,
    seed: Option<[u8; 32]>,
    name: String,
    budget: Budget,
    spins: u32,
    on_end: Box<dyn FnMut(L) + Send>,
}

impl<L: Link + Readiness + Send + 'static> Builder<L> {
    /// Creates a builder for a host with this configuration on `link`.
    #[must_use]
    pub fn new(link: L, config: StackConfig) -> Self {
        Self {
            queues: vec![link],
            interfaces: Vec::new(),
            config,
            seed: None,
            name: "linerate".to_owned(),
            budget: Budget::default(),
            spins: 0,
            on_end: Box::new(drop),
        }
    }

    /// Sets the seed of everything that peers must not be able to guess: sequence numbers, ports,
    /// and the keys of hash tables. A fixed seed makes runs repeatable. By default the seed comes
    /// from the operating system.
    #[must_use]
    pub fn seed(self, seed: [u8; 32]) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Adds more queues of the link that was passed to [`Builder::new`].
    ///
    /// Each queue gets a shard: a host with its own thread, which shares nothing with the other
    /// shards. An outgoing connection is assigned to the next shard in rotation. For an incoming
    /// connection, a hash of the addresses and ports determines the shard. Listeners accept from
    /// all shards; UDP sockets live on the first shard. Each limit of the configuration applies to
    /// all shards together, so a shard gets a part of it.
    #[must_use]
    pub fn queues(mut self, further: impl IntoIterator<Item = L>) -> Self {
        self.queues.extend(further);
        self
    }

    /// Adds an interface on another link. The thread of the first interface also drives this one.
    ///
    /// The first added interface gets number 2, the next one 3, and so on. The number is also the
    /// zone of the interface's link-local addresses. All links have one type, which can be
    /// [`AnyLink`](linerate_link::AnyLink) for links of different kinds.
    #[must_use]
    pub fn interface(mut self, config: InterfaceConfig, link: L) -> Self {
        self.interfaces.push((config, link));
        self
    }

    /// Sets the name of the thread. The name ends before the first zero byte, and the system shows
    /// only its first 15 bytes. With several shards, the number of the shard is appended to the
    /// name of its thread.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        let mut name = name.into();
        name.truncate(name.find('\0').unwrap_or(name.len()));
        Self { name, ..self }
    }

    /// Sets the budget of one turn of the host's event loop. In each field of the budget, zero
    /// counts as one.
    ///
    /// The thread holds the lock of the host during a turn. With a larger budget, bulk transfers
    /// are slightly faster. With a smaller one, application threads wait for the lock for a shorter
    /// time.
    #[must_use]
    pub fn budget(self, Budget { receive, timers, transmit }: Budget) -> Self {
        // With a budget of zero, a turn would make no progress but report more work. So the event
        // loop would spin for ever.
        let budget =
            Budget { receive: receive.max(1), timers: timers.max(1), transmit: transmit.max(1) };
        Self { budget, ..self }
    }

    /// Sets how many times the thread polls for work before it sleeps; each poll takes a few
    /// nanoseconds. Polling shortens the delay until the thread continues, but occupies a core. So
    /// it is worthwhile only if the thread has a core of its own.
    #[must_use]
    pub fn spins(self, spins: u32) -> Self {
        Self { spins, ..self }
    }

    /// Sets a function that receives the links when the network has ended. For instance, it can
    /// finish a capture or read the counters of a link. It is called once for each queue and each
    /// added interface, on the thread that used the link. By default the links are dropped.
    #[must_use]
    pub fn when_ended(self, on_end: impl FnMut(L) + Send + 'static) -> Self {
        Self { on_end: Box::new(on_end), ..self }
    }

    /// Starts the network and its threads.
    ///
    /// # Errors
    /// The error of the operating system if it provides no random numbers, no descriptor or no
    /// thread; `InvalidInput` for more queues than a host can have shards, for a link whose MTU is
    /// smaller than [`SMALLEST_MTU`], or for several queues and several interfaces; `QuotaExceeded`
    /// beyond the limit of interfaces.
    pub fn start(mut self) -> io::Result<Net> {
        let seed = self.seed.map_or_else(random_bytes, Ok)?;
        let mut queues = std::mem::take(&mut self.queues);
        if queues.len() > 1 && !self.interfaces.is_empty() {
            return Err(Error::ShardedInterfaces.into());
        }
        if queues.len() == 1 {
            let further = std::mem::take(&mut self.interfaces);
            let first = queues.drain(..).map(|link| (link, Shard::ONLY));
            return self.start_on(first, further, seed, Vec::new(), |link| link);
        }
        let links = share(queues, seed).map_err(|error| match error {
            ShardError::Queues(_) => io::Error::new(io::ErrorKind::InvalidInput, error),
            error => io::Error::other(error),
        })?;
        let watches = links.iter().map(ShardLink::watch).collect();
        let links = links.into_iter().map(|link| {
            let shard = link.shard();
            (link, shard)
        });
        self.start_on(links, Vec::new(), seed, watches, ShardLink::into_queue)
    }

    /// Starts a host or shard on each of `links`. `further` are the added interfaces of a host
    /// without shards; with several shards, it is empty. `into_queue` converts the link of a host
    /// or shard back to the link that the application passed.
    fn start_on<M: Link + Readiness + Send + 'static>(
        self,
        links: impl Iterator<Item = (M, Shard)>,
        mut further: Vec<(InterfaceConfig, M)>,
        seed: [u8; 32],
        watches: Vec<HandoverWatch>,
        into_queue: impl Fn(M) -> L + Copy + Send + 'static,
    ) -> io::Result<Net> {
        let mut begun = Vec::new();
        for (link, shard) in links {
            for link in std::iter::once(&link).chain(further.iter().map(|(_, link)| link)) {
                if link.capabilities().mtu < SMALLEST_MTU {
                    // The host must be able to send packets of `SMALLEST_MTU` bytes on every link.
                    // A link with a smaller MTU would not take such packets. They would stay
                    // queued, and the event loop would spin for ever.
                    return Err(Error::NarrowLink(link.capabilities().mtu).into());
                }
            }
            let waiter = Waiter::new().map_err(io::Error::other)?.with_spins(self.spins);
            let limits = self.config.limits.among(shard.count);
            let mut stack = Stack::new(StackConfig { shard, limits, ..self.config.clone() }, seed);
            let links = stack.attach_links(MonotonicClock.now(), link, further.drain(..));
            let links = links.map_err(Error::from)?;
            let shared = Arc::new(Shared::new(stack, waiter.doorbell()));
            begun.push((shared, links, waiter, shard));
        }
        let shards: Arc<[_]> = begun.iter().map(|(shared, ..)| Arc::clone(shared)).collect();
        // If starting a thread fails, this function returns early. `net` is then dropped, which
        // stops the threads that have been started before.
        let net = Net::new(Arc::clone(&shards), watches);
        let on_end = Arc::new(Mutex::new(self.on_end));
        for (shared, links, waiter, shard) in begun {
            let (on_end, shards) = (Arc::clone(&on_end), Arc::clone(&shards));
            let reactor = Reactor { shared, links, waiter, budget: self.budget, shards };
            let name = match shard {
                Shard::ONLY => self.name.clone(),
                Shard { number, .. } => format!("{}-{number}", self.name),
            };
            net.add_thread(thread::Builder::new().name(name).spawn(move || {
                for InterfaceLink { link, .. } in reactor.run() {
                    on_end.lock()(into_queue(link));
                }
            })?);
        }
        Ok(net)
    }
}

/// Omits the seed, which is a secret.
impl<L: fmt::Debug> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Builder");
        fields
            .field("queues", &self.queues)
            .field("interfaces", &self.interfaces)
            .field("config", &self.config)
            .field("name", &self.name);
        fields.field("budget", &self.budget).field("spins", &self.spins).finish_non_exhaustive()
    }
}
