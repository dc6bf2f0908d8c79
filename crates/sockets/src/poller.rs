//! Readiness of many non-blocking sockets: an event queue with a descriptor.
//!
//! A socket that may have become ready is added to the queue. It is not added a second time until
//! the program has taken its event. So the queue has at most one entry for each registered socket.

use crate::error::Error;
use crate::forwarder::Forwarder;
use crate::tcp_listener::TcpListener;
use crate::tcp_stream::TcpStream;
use crate::timeouts::Direction;
use crate::udp_socket::UdpSocket;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Bits for directions: those in which a registration is interested, and those of its pending
/// event.
const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
/// The bit for a registration that has ended. Its event is not reported, even if it is already
/// queued.
const CANCELLED: u8 = 4;

/// A queue of events of non-blocking sockets.
///
/// Events are edge-triggered, as in mio: after an event, the program must use the socket until a
/// call fails with `WouldBlock`. Data or room that it leaves unused causes no other event. An event
/// can also arrive although the socket is not ready. Sockets of several networks can share a queue.
///
/// A program without an event loop of its own waits with [`Poller::wait`]. A program with an event
/// loop registers the poller's descriptor there, with `mio::unix::SourceFd(&poller.as_raw_fd())`,
/// or with poll or epoll. It calls [`Poller::take`] when the descriptor is readable.
///
/// ```
/// use linerate_link::memory::{MemoryConfig, pair};
/// use linerate_sockets::{Interest, Net, Poller, StackConfig};
/// use std::io::{ErrorKind, Read};
///
/// # let (left, _right) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let listener = net.bind("127.0.0.1:80")?;
/// listener.set_nonblocking(true)?;
/// let poller = Poller::new()?;
/// poller.register(&listener, 7, Interest::Read)?;
/// let _client = net.connect("127.0.0.1:80")?;
///
/// let mut events = Vec::new();
/// let accepted = loop {
///     poller.wait(&mut events, None)?;
///     assert!(events.iter().all(|event| event.token == 7 && event.readable));
///     match listener.accept() {
///         Err(error) if error.kind() == ErrorKind::WouldBlock => {}
///         accepted => break accepted?,
///     }
/// };
/// # drop(accepted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Poller {
    queue: Arc<Queue>,
}

#[derive(Debug)]
struct Queue {
    ready: Mutex<Vec<Arc<Registration>>>,
    /// An eventfd, readable while `ready` is not empty.
    event: OwnedFd,
}

/// The directions in which a program waits for a socket.
///
/// ```
/// use linerate_sockets::{Interest, Net, Poller, StackConfig};
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let socket = net.bind_udp("127.0.0.1:0")?;
/// let poller = Poller::new()?;
/// poller.register(&socket, 0, Interest::Both)?;
/// let mut events = Vec::new();
/// poller.wait(&mut events, None)?;
/// assert!(events[0].writable, "an empty queue has room");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Reports that there is received data, the end of a stream, a new connection or a datagram.
    Read,
    /// Reports that there is room for data to send.
    Write,
    /// Reports the events of `Read` and of `Write`.
    Both,
}

/// An event: a socket may have become ready.
///
/// ```
/// use linerate_sockets::{Interest, Net, Poller, StackConfig};
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let socket = net.bind_udp("127.0.0.1:7")?;
/// let poller = Poller::new()?;
/// poller.register(&socket, 42, Interest::Read)?;
/// socket.send_to(b"to itself", "127.0.0.1:7")?;
/// let mut events = Vec::new();
/// while events.is_empty() {
///     poller.wait(&mut events, None)?;
/// }
/// assert_eq!((events[0].token, events[0].readable), (42, true));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The token that the program passed to [`Poller::register`] for the socket.
    pub token: usize,
    /// Is there something to read or to accept?
    pub readable: bool,
    /// Is there room to write?
    pub writable: bool,
}

impl Poller {
    /// Creates a poller with an empty queue.
    ///
    /// # Errors
    /// The error of the system if it has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { queue: Arc::new(Queue { ready: Mutex::default(), event }) })
    }

    /// Registers a socket: when the socket becomes ready, the poller reports an event with this
    /// token. If the socket is already ready, an event is queued at once. The registration ends
    /// when the last clone of the socket is dropped.
    ///
    /// # Errors
    /// `AlreadyExists` if the socket is registered already.
    pub fn register<'a>(
        &self,
        source: impl Into<Source<'a>>,
        token: usize,
        interest: Interest,
    ) -> io::Result<()> {
        let interest = match interest {
            Interest::Read => READABLE,
            Interest::Write => WRITABLE,
            Interest::Both => READABLE | WRITABLE,
        };
        let queue = Arc::clone(&self.queue);
        let pending = AtomicU8::new(0);
        Ok(source.into().subscribe(&Arc::new(Registration { queue, token, interest, pending }))?)
    }

    /// Ends the registration of a socket.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn deregister<'a>(&self, source: impl Into<Source<'a>>) -> io::Result<()> {
        Ok(source.into().unsubscribe()?)
    }

    /// Moves the queued events to `events`, whose previous contents are removed. Does not wait.
    pub fn take(&self, events: &mut Vec<Event>) {
        events.clear();
        let mut ready = self.queue.ready.lock();
        let mut count = [0; 8];
        // The descriptor is an event counter. Reading it fails if it is zero, and this error is
        // ignored. The counter can be zero although an event is queued: a notifier queues its
        // event, unlocks the queue, and only then increments the counter.
        let _ = rustix::io::read(&self.queue.event, &mut count);
        events.extend(ready.drain(..).filter_map(|registration| registration.take()));
    }

    /// Waits until there are events, and moves them to `events`, whose previous contents are
    /// removed. If there is no event within the timeout, `events` is empty. A timeout of `None`
    /// waits without limit.
    ///
    /// # Errors
    /// The error of the system if it cannot wait.
    pub fn wait(&self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            self.take(events);
            if !events.is_empty() {
                return Ok(());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(());
            }
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.queue.event, PollFlags::IN)], left.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// The descriptor is readable while there are events.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.event.as_fd()
    }
}

impl AsRawFd for Poller {
    fn as_raw_fd(&self) -> RawFd {
        self.queue.event.as_raw_fd()
    }
}

/// The registration of one socket.
#[derive(Debug)]
pub(crate) struct Registration {
    queue: Arc<Queue>,
    token: usize,
    interest: u8,
    /// The directions of the pending event. If any is set, the registration is in the queue.
    pending: AtomicU8,
}

impl Registration {
    /// Adds `direction` to the pending event of the socket. Queues the registration unless it is
    /// queued already.
    pub(crate) fn notify(self: &Arc<Self>, direction: Direction) {
        let direction = match direction {
            Direction::Read => READABLE,
            Direction::Write => WRITABLE,
        };
        let reported = self.interest & direction;
        if reported == 0 || self.pending.fetch_or(reported, Ordering::AcqRel) != 0 {
            return;
        }
        let is_first = {
            let mut ready = self.queue.ready.lock();
            ready.push(Arc::clone(self));
            ready.len() == 1
        };
        if is_first {
            // The descriptor is an event counter, and the write fails only if the counter would
            // overflow. This error is ignored: a counter above zero makes the descriptor readable,
            // so the poller wakes up anyway.
            let _ = rustix::io::write(&self.queue.event, &1_u64.to_ne_bytes());
        }
    }

    pub(crate) fn cancel(&self) {
        self.pending.fetch_or(CANCELLED, Ordering::AcqRel);
    }

    /// Removes and returns the pending event; `None` if the registration has ended.
    fn take(&self) -> Option<Event> {
        let pending = self.pending.fetch_and(CANCELLED, Ordering::AcqRel);
        (pending & CANCELLED == 0).then_some(Event {
            token: self.token,
            readable: pending & READABLE != 0,
            writable: pending & WRITABLE != 0,
        })
    }
}

/// A reference to a socket of any kind, for [`Poller::register`] and [`Poller::deregister`].
///
/// ```
/// use linerate_sockets::{Interest, Net, Poller, Source, StackConfig};
///
/// /// Registers sockets of any kind.
/// fn register<'a>(poller: &Poller, sources: [Source<'a>; 2]) -> std::io::Result<()> {
///     let mut numbered = (0..).zip(sources);
///     numbered.try_for_each(|(token, source)| poller.register(source, token, Interest::Read))
/// }
///
/// # use linerate_link::memory::{MemoryConfig, pair};
/// # let (left, _peer) = pair(MemoryConfig::default())?;
/// # let config = StackConfig::new("02:00:00:00:00:01".parse()?, "10.0.0.1/24".parse()?);
/// let net = Net::builder(left, config).start()?;
/// let (listener, socket) = (net.bind("127.0.0.1:80")?, net.bind_udp("127.0.0.1:80")?);
/// register(&Poller::new()?, [(&listener).into(), (&socket).into()])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(Socket<'a>);

#[derive(Clone, Copy, Debug)]
enum Socket<'a> {
    Stream(&'a TcpStream),
    Listener(&'a TcpListener),
    Datagrams(&'a UdpSocket),
    Forwarder(&'a Forwarder),
}

impl Source<'_> {
    fn subscribe(self, registration: &Arc<Registration>) -> Result<(), Error> {
        match self.0 {
            Socket::Stream(stream) => stream.socket().subscribe(registration),
            Socket::Datagrams(socket) => socket.socket().subscribe(registration),
            Socket::Forwarder(forwarder) => forwarder.socket().subscribe(registration),
            // A listener consists of a socket on each shard. All of them report to this
            // registration, so the program sees them as one socket.
            Socket::Listener(listener) => {
                listener.sockets().iter().try_for_each(|socket| socket.subscribe(registration))
            }
        }
    }

    fn unsubscribe(self) -> Result<(), Error> {
        match self.0 {
            Socket::Stream(stream) => stream.socket().unsubscribe(),
            Socket::Datagrams(socket) => socket.socket().unsubscribe(),
            Socket::Forwarder(forwarder) => forwarder.socket().unsubscribe(),
            Socket::Listener(listener) => {
                listener.sockets().iter().try_for_each(|socket| socket.unsubscribe())
            }
        }
    }
}

impl<'a> From<&'a TcpStream> for Source<'a> {
    fn from(stream: &'a TcpStream) -> Self {
        Self(Socket::Stream(stream))
    }
}

impl<'a> From<&'a TcpListener> for Source<'a> {
    fn from(listener: &'a TcpListener) -> Self {
        Self(Socket::Listener(listener))
    }
}

impl<'a> From<&'a Forwarder> for Source<'a> {
    fn from(forwarder: &'a Forwarder) -> Self {
        Self(Socket::Forwarder(forwarder))
    }
}

impl<'a> From<&'a UdpSocket> for Source<'a> {
    fn from(socket: &'a UdpSocket) -> Self {
        Self(Socket::Datagrams(socket))
    }
}
