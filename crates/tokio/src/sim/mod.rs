//! Deterministic networks: hosts in virtual time, on one thread.
//!
//! Each [`Host`] runs a complete linerate stack. Its tasks use [`crate::net`] like any program of
//! tokio. Paths between hosts have rate, delay, queue, loss, reordering and duplication, and can be
//! changed and partitioned while the network runs. Equal seeds give equal packets at equal times.
//!
//! Time advances by events. When no task can run, the clock moves to the next timer of tokio or the
//! next deadline of a host or a path, whichever is earlier. An idle hour takes no real time, apart
//! from the processing of its timers. Packets have times in nanoseconds; tokio's own timers expire
//! at whole milliseconds.
//!
//! `tokio::select!` polls a random branch first, so runs with equal seeds can differ. Only an
//! unstable build of tokio (`--cfg tokio_unstable`) can set the seed of this choice. So write
//! `biased;` in each `select!`.

mod addresses;
mod driver;
mod packet;
mod port;
mod schedule;
mod world;

pub use crate::host::SocketEntry;
pub use addresses::IpVersions;
pub use linerate_link::impair::{Impairment, Impairments, Probability};
pub use packet::{Packet, RuleGuard, Verdict};
pub use world::{PathCounters, Trace};

use crate::host::Net;
use driver::{Clockwork, Driver};
use linerate_link::capture_file::CaptureWriter;
use linerate_units::Duration;
use parking_lot::Mutex;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::env;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time;
use tokio::runtime;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use world::World;

/// The configuration of a [`Network`].
///
/// ```
/// use linerate_tokio::sim::{Impairments, Network};
/// use std::time::Duration;
///
/// let link: Impairments = "delay=20ms,loss=1%,rate=10Mb/s".parse()?;
/// let network =
///     Network::builder().seed(7).link(link).time_limit(Duration::from_secs(60)).build();
/// assert_eq!(network.elapsed(), Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    seed: u64,
    link: Impairments,
    versions: IpVersions,
    limit: time::Duration,
    capture: Option<CaptureWriter>,
}

impl Builder {
    /// Sets the seed, from which all secrets and random decisions are derived.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the impairments of all paths. Between two hosts, `transmit` applies to packets from the
    /// host that was added first, and `receive` to packets to that host. The default is a delay of
    /// 100 µs in each direction.
    #[must_use]
    #[allow(clippy::large_types_passed_by_value, reason = "called once for a network")]
    pub const fn link(mut self, link: Impairments) -> Self {
        self.link = link;
        self
    }

    /// Sets the IP versions of the hosts. By default, each host has an IPv4 and an IPv6 address,
    /// and its name resolves to both.
    #[must_use]
    pub const fn ip_versions(mut self, versions: IpVersions) -> Self {
        self.versions = versions;
        self
    }

    /// Sets the limit of virtual time, by default 24 hours. A run that reaches the limit fails: its
    /// tasks probably wait for an event that never comes.
    #[must_use]
    pub const fn time_limit(mut self, limit: time::Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Writes each packet to a pcapng file: once when the sender sends it, and once when it
    /// arrives.
    ///
    /// Without this call, the environment variable `LINERATE_CAPTURES` can name a folder. Each
    /// network then writes a file in this folder, named after the test (or thread) and a number.
    ///
    /// # Errors
    /// The error of the system if the file cannot be created.
    pub fn capture(mut self, path: impl AsRef<Path>) -> io::Result<Self> {
        self.capture = Some(CaptureWriter::create(path)?);
        Ok(self)
    }

    /// Creates the network.
    #[must_use]
    pub fn build(self) -> Network {
        let clockwork = Arc::new(Clockwork::default());
        let capture = self.capture.or_else(|| {
            let folder = env::var_os("LINERATE_CAPTURES")?;
            requested_capture(Path::new(&folder))
        });
        let world =
            World::new(self.seed, self.link, self.versions, capture, Arc::clone(&clockwork));
        let world = Arc::new(Mutex::new(world));
        let tasks = Rc::default();
        let Self { seed, versions, limit, .. } = self;
        Network { world, clockwork, tasks, seed, versions, limit }
    }
}

/// A network of hosts. In this example, a partition separates two hosts for a minute:
///
/// ```
/// use linerate_tokio::net::UdpSocket;
/// use linerate_tokio::sim::Network;
/// use std::time::Duration;
/// use tokio::time::{sleep, timeout};
///
/// let network = Network::builder().seed(7).build();
/// let (one, other) = (network.host("one"), network.host("other"));
/// one.spawn(async {
///     let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
///     loop {
///         socket.send_to(b"tick", "other:7").await.unwrap();
///         sleep(Duration::from_secs(1)).await;
///     }
/// });
/// let operator = network.clone();
/// let ticks = other.clone().run(async move {
///     let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
///     operator.partition(&one, &other);
///     assert!(timeout(Duration::from_secs(60), socket.recv(&mut [0; 4])).await.is_err());
///     operator.repair(&one, &other);
///     socket.recv(&mut [0; 4]).await.unwrap()
/// });
/// assert_eq!(ticks, 4);
/// assert!(network.elapsed() >= Duration::from_secs(60));
/// ```
///
/// Clones refer to the same network, and can be moved into tasks of its hosts.
#[derive(Clone)]
pub struct Network {
    world: Arc<Mutex<World>>,
    clockwork: Arc<Clockwork>,
    /// The tasks that were spawned before the run, as closures that start them.
    tasks: Rc<RefCell<Vec<Start>>>,
    seed: u64,
    versions: IpVersions,
    limit: time::Duration,
}

impl Network {
    /// Creates a builder. The default seed is 1.
    #[must_use]
    pub fn builder() -> Builder {
        let delay = Impairment { delay: Duration::from_micros(100), ..Impairment::NONE };
        Builder {
            seed: 1,
            link: Impairments { receive: delay, transmit: delay },
            versions: IpVersions::Both,
            limit: time::Duration::from_secs(24 * 3_600),
            capture: None,
        }
    }

    /// Adds a host with the next free addresses, or returns the host with this name. The first host
    /// has 10.0.0.1 and fd00::1. Addresses can be used at once, without duplicate address
    /// detection.
    ///
    /// # Panics
    /// With more than 65,000 hosts.
    #[must_use]
    pub fn host(&self, name: &str) -> Host {
        let (net, number) = self.world.lock().host(name);
        Host { network: self.clone(), name: name.to_owned(), net, number }
    }

    /// Runs `main`, which belongs to no host, until it is finished. Then all tasks are dropped.
    ///
    /// # Panics
    /// If a task of [`Host::spawn`] or a packet rule panics, or if the time limit is reached. The
    /// seed is printed.
    pub fn run<T>(&self, main: impl Future<Output = T>) -> T {
        let _announcement = Announcement(self.seed);
        let (world, clockwork) = (Arc::clone(&self.world), Arc::clone(&self.clockwork));
        let driver = Arc::new(Driver::new(world, clockwork, self.limit));
        let idle = Arc::clone(&driver);
        let runtime = runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_park(move || idle.handle_idle())
            .build();
        #[allow(clippy::expect_used, reason = "a runtime without I/O needs no resource but memory")]
        let runtime = runtime.expect("a current-thread runtime without I/O can be built");
        let tasks = LocalSet::new();
        let outcome = runtime.block_on(tasks.run_until(async {
            let _running = self.clockwork.start();
            for start in self.tasks.take() {
                start();
            }
            runtime.spawn(driver.keep_alarm());
            let mut main = pin!(main);
            poll_fn(|context| match self.clockwork.poll_failure(context) {
                Poll::Ready(failure) => Poll::Ready(Err(failure)),
                Poll::Pending => main.as_mut().poll(context).map(Ok),
            })
            .await
        }));
        drop(tasks);
        drop(runtime);
        self.world.lock().flush_capture();
        outcome.unwrap_or_else(|failure| resume_unwind(failure))
    }

    /// Returns the virtual time since the network was built.
    #[must_use]
    pub fn elapsed(&self) -> time::Duration {
        time::Duration::from_nanos(self.clockwork.now().as_nanos())
    }

    /// Changes the impairments between two hosts: `transmit` applies to packets from `one` to
    /// `other`, and `receive` to packets in the reverse direction. Packets in transit are not
    /// affected.
    #[allow(clippy::large_types_passed_by_value, reason = "called rarely")]
    pub fn set_link(&self, one: &Host, other: &Host, link: Impairments) {
        let mut world = self.world.lock();
        world.set_path(one.number, other.number, link.transmit);
        world.set_path(other.number, one.number, link.receive);
    }

    /// Drops all packets between two hosts from now on.
    pub fn partition(&self, one: &Host, other: &Host) {
        self.world.lock().partition(one.number, other.number, true);
    }

    /// Ends the partition of two hosts ([`Network::partition`]).
    pub fn repair(&self, one: &Host, other: &Host) {
        self.world.lock().partition(one.number, other.number, false);
    }

    /// Adds a rule, which decides about each packet before the packet enters its path. Dropping the
    /// guard removes the rule. The rule must not call methods of the network, because the network
    /// is locked.
    pub fn rule(&self, rule: impl FnMut(&Packet<'_>) -> Verdict + Send + 'static) -> RuleGuard {
        let number = self.world.lock().add_rule(Box::new(rule));
        RuleGuard { world: Arc::clone(&self.world), number }
    }

    /// Returns the counters of the path from one host to another.
    #[must_use]
    pub fn path_counters(&self, from: &Host, to: &Host) -> PathCounters {
        self.world.lock().path_counters(from.number, to.number)
    }

    /// Returns a summary of the packets that hosts have sent.
    #[must_use]
    pub fn trace(&self) -> Trace {
        self.world.lock().trace()
    }

    /// Lists the open sockets of all hosts.
    #[must_use]
    pub fn netstat(&self) -> String {
        self.world.lock().netstat()
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// A host of a [`Network`].
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim::Network;
///
/// let network = Network::builder().build();
/// let server = network.host("server");
/// server.spawn(async {
///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///     while listener.accept().await.is_ok() {}
/// });
/// let address = server.address();
/// let peer = network.host("client").run(async {
///     TcpStream::connect("server:80").await.unwrap().peer_addr().unwrap()
/// });
/// assert_eq!(peer.ip(), address);
/// ```
#[derive(Clone, Debug)]
pub struct Host {
    network: Network,
    name: String,
    net: Net,
    number: usize,
}

impl Host {
    /// Returns the name of the host.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the IPv4 address of the host. In a network without IPv4, returns the IPv6 address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        let ipv6 = || self.ipv6().unwrap_or(Ipv6Addr::UNSPECIFIED);
        self.ipv4().map_or_else(|| ipv6().into(), IpAddr::from)
    }

    /// Returns the IPv4 address; `None` in a network without IPv4.
    #[must_use]
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.network.versions.ipv4(self.number)
    }

    /// Returns the IPv6 address; `None` in a network without IPv6.
    #[must_use]
    pub fn ipv6(&self) -> Option<Ipv6Addr> {
        self.network.versions.ipv6(self.number)
    }

    /// Returns the handle to the host's stack, which has its counters and sockets.
    #[must_use]
    pub const fn net(&self) -> &Net {
        &self.net
    }

    /// Starts a task on this host: at once if the network is running, otherwise when it runs.
    /// Further tasks that this task starts by [`tokio::task::spawn_local`] belong to the host, too.
    /// A panic of the task fails the run.
    pub fn spawn<T: 'static>(&self, task: impl Future<Output = T> + 'static) {
        let (net, clockwork) = (self.net.clone(), Arc::clone(&self.network.clockwork));
        if clockwork.is_running() {
            drop(start(&net, clockwork, task));
        } else {
            let start = move || drop(start(&net, clockwork, task));
            self.network.tasks.borrow_mut().push(Box::new(start));
        }
    }

    /// Runs `main` as a task of this host, and the network until `main` is finished.
    ///
    /// # Panics
    /// For the reasons of [`Network::run`].
    pub fn run<T: 'static>(&self, main: impl Future<Output = T> + 'static) -> T {
        self.network.run(async {
            match start(&self.net, Arc::clone(&self.network.clockwork), main).await {
                Ok(result) => result,
                // The task has panicked, so it has no result. Its panic was already reported and
                // ends the run, so this future need not finish.
                Err(_) => std::future::pending().await,
            }
        })
    }
}

/// Starts a task of a host in the current run. The task gets its own [`LocalSet`] in the scope of
/// the host, so that all tasks that it starts belong to the host, too.
fn start<T: 'static>(
    net: &Net,
    clockwork: Arc<Clockwork>,
    task: impl Future<Output = T> + 'static,
) -> JoinHandle<T> {
    let tasks = LocalSet::new();
    let handle = tasks.spawn_local(async move {
        let mut task = Box::pin(task);
        poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(context))) {
            Ok(poll) => poll,
            Err(panic) => {
                clockwork.fail(panic);
                Poll::Pending
            }
        })
        .await
    });
    spawn_local(net.scope(tasks));
    handle
}

/// Runs `main` on a network of one host, which reaches itself at 127.0.0.1 and `::1`.
///
/// ```
/// use linerate_tokio::{net::TcpStream, sim};
///
/// let refused = sim::lo(TcpStream::connect("127.0.0.1:80")).unwrap_err();
/// assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
/// ```
///
/// # Panics
/// For the reasons of [`Network::run`].
pub fn lo<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    Network::builder().build().host("localhost").run(main)
}

/// Runs `server` on a host named "server", and `client` on a host named "client", until `client` is
/// finished.
///
/// # Panics
/// For the reasons of [`Network::run`].
pub fn client_server<S: 'static, T: 'static>(
    server: impl Future<Output = S> + 'static,
    client: impl Future<Output = T> + 'static,
) -> T {
    let network = Network::builder().build();
    network.host("server").spawn(server);
    network.host("client").run(client)
}

/// Creates the capture file of a network, named after the current thread and a number that counts
/// the captures of this thread. If this fails, only prints a message, so that the result of a test
/// does not change.
fn requested_capture(folder: &Path) -> Option<CaptureWriter> {
    thread_local! {
        static CREATED: Cell<u32> = const { Cell::new(0) };
    }
    let number = CREATED.replace(CREATED.get() + 1) + 1;
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed").replace("::", ".");
    let path = folder.join(format!("{name}-{number}.pcapng"));
    match CaptureWriter::create(&path) {
        Ok(writer) => Some(writer),
        Err(error) => {
            eprintln!("{} cannot be written: {error}", path.display());
            None
        }
    }
}

/// A guard that prints the seed if the run panics.
struct Announcement(u64);

impl Drop for Announcement {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this run had the seed {}: `Builder::seed` repeats it", self.0);
        }
    }
}

/// The payload of the panic that ends a run.
type Failure = Box<dyn Any + Send>;

/// A closure that starts a spawned task when the network runs.
type Start = Box<dyn FnOnce()>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requested_capture_has_the_name_of_the_test_and_a_number() {
        let folder = tempfile::tempdir().expect("a folder");
        // An empty capture is deleted when its writer is dropped, so both writers are kept.
        let writers = [(); 2].map(|()| requested_capture(folder.path()));
        assert!(writers.iter().all(Option::is_some));
        assert!(requested_capture(&folder.path().join("absent")).is_none());
        let name = "sim.tests.a_requested_capture_has_the_name_of_the_test_and_a_number";
        for number in 1..=2 {
            assert!(folder.path().join(format!("{name}-{number}.pcapng")).exists());
        }
    }
}
