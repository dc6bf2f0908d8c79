//! Construction of a host on a real link.

use crate::error::Error;
use crate::host::{Driver, Net, State};
use crate::reactor::{Reactor, Signals};
use linerate_link::{MonotonicClock, Readiness, random_bytes};
use linerate_stack::{Budget, InterfaceConfig, Link, SMALLEST_MTU, Stack, StackConfig};
use linerate_units::{Clock, Instant};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// The configuration of a host on a link. A task of the current runtime will drive the host.
///
/// ```
/// use linerate_link::memory::{MemoryConfig, pair};
/// use linerate_tokio::net::TcpStream;
/// use linerate_tokio::{Net, StackConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (left, _right) = pair(MemoryConfig::default())?;
/// let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).name("self", "10.0.0.1".parse()?).start()?;
/// let refused = net.scope(TcpStream::connect("self:80")).await.unwrap_err();
/// assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
/// net.finish(std::time::Duration::from_secs(1)).await?;
/// # Ok(())
/// # }
/// ```
///
/// The host exists until [`Net::shutdown`], or until its last [`Net`] and its last socket are
/// dropped and closed sockets have sent their data. It also stops when the runtime ends.
pub struct Builder<L> {
    link: L,
    config: StackConfig,
    /// All interfaces except the first, each with its link.
    interfaces: Vec<(InterfaceConfig, L)>,
    seed: Option<[u8; 32]>,
    budget: Budget,
    names: BTreeMap<String, Vec<IpAddr>>,
}

impl<L: Link + Readiness + Send + 'static> Builder<L> {
    pub(crate) fn new(link: L, config: StackConfig) -> Self {
        let localhost = vec![Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        let names = [("localhost".to_owned(), localhost)].into();
        Self { link, config, interfaces: Vec::new(), seed: None, budget: Budget::default(), names }
    }

    /// Adds an interface on another link. The task that drives the host drives all its links.
    ///
    /// The first added interface gets number 2, the next one 3, and so on. The number is also the
    /// zone of the interface's link-local addresses. All links have one type, which can be
    /// [`AnyLink`](linerate_link::AnyLink) for links of different kinds.
    #[must_use]
    pub fn interface(mut self, config: InterfaceConfig, link: L) -> Self {
        self.interfaces.push((config, link));
        self
    }

    /// Sets the seed of everything that peers must not be able to guess: sequence numbers, ports,
    /// and the keys of hash tables. By default the seed comes from the operating system.
    #[must_use]
    pub fn seed(self, seed: [u8; 32]) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Sets the budget of one turn of the host's event loop. Zero in a field counts as one. During
    /// a turn, the host is locked and other tasks of this thread do not run, so a large budget
    /// delays them.
    #[must_use]
    pub fn budget(self, Budget { receive, timers, transmit }: Budget) -> Self {
        // With a budget of zero, the driver would spin for ever without making progress.
        let budget =
            Budget { receive: receive.max(1), timers: timers.max(1), transmit: transmit.max(1) };
        Self { budget, ..self }
    }

    /// Adds an address of a name that [`ToSocketAddrs`](crate::ToSocketAddrs) resolves, like a line
    /// of `/etc/hosts`. A name can have several addresses. The operating system's resolver is never
    /// queried.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>, address: IpAddr) -> Self {
        self.names.entry(name.into()).or_default().push(address);
        self
    }

    /// Starts the host as a task of the current runtime.
    ///
    /// # Errors
    /// The error of the operating system if it provides no random numbers or no descriptor, or if
    /// the link's descriptor cannot be polled; `InvalidInput` for a link whose MTU is smaller than
    /// [`SMALLEST_MTU`]; `QuotaExceeded` beyond the limit of interfaces.
    ///
    /// # Panics
    /// Outside a tokio runtime, and in one without I/O (`enable_io`).
    pub fn start(self) -> io::Result<Net> {
        let Self { link, config, interfaces, seed, budget, names } = self;
        for link in std::iter::once(&link).chain(interfaces.iter().map(|(_, link)| link)) {
            let mtu = link.capabilities().mtu;
            if mtu < SMALLEST_MTU {
                // The host sends packets of up to `SMALLEST_MTU` bytes on every link. If the MTU of
                // the link were smaller, such packets would stay queued, and the driver would spin
                // for ever.
                return Err(Error::NarrowLink(mtu).into());
            }
        }
        let tcp_config = config.tcp;
        let mut stack = Stack::new(config, seed.map_or_else(random_bytes, Ok)?);
        let links = stack.attach_links(MonotonicClock.now(), link, interfaces);
        let links = links.map_err(Error::from)?;
        let state = Arc::new(Mutex::new(State::new(stack, &tcp_config)));
        let signals = Arc::new(Signals::default());
        let reactor = Reactor::new(Arc::clone(&state), links, Arc::clone(&signals), budget)?;
        tokio::spawn(reactor.run());
        Ok(Net::new(state, Box::new(LinkDriver { signals, names })))
    }
}

/// Omits the seed, which is a secret.
impl<L: fmt::Debug> fmt::Debug for Builder<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("link", &self.link)
            .field("config", &self.config)
            .field("interfaces", &self.interfaces)
            .field("budget", &self.budget)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// The driver, as the sockets see it. It passes their requests to the task that drives the host.
#[derive(Debug)]
struct LinkDriver {
    signals: Arc<Signals>,
    names: BTreeMap<String, Vec<IpAddr>>,
}

impl Driver for LinkDriver {
    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn wake(&self) {
        self.signals.wake();
    }

    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        self.names.get(name).cloned().unwrap_or_default()
    }
}

/// Reports to the task that drives the host that the last `Net` and the last socket were dropped.
impl Drop for LinkDriver {
    fn drop(&mut self) {
        self.signals.abandon();
    }
}
