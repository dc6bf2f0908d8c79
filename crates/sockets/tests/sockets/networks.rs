//! Helpers of the tests: two networks that are connected by a memory link.

use linerate_link::MonotonicClock;
use linerate_link::memory::{MemoryConfig, MemoryLink, pair};
use linerate_sockets::{ListenOptions, Net, StackConfig, TcpStream};
use linerate_stack::{Host, ListenHandle, Stack, TcpHandle};
use linerate_tcp::Connection;
use linerate_units::Clock;
use std::borrow::Cow;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;

pub(crate) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// An address on the link that neither network has.
pub(crate) const ABSENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);

pub(crate) fn config(address: Ipv4Addr) -> StackConfig {
    let mac = format!("02:00:00:00:00:{:02x}", address.octets()[3]);
    StackConfig::new(mac.parse().unwrap(), format!("{address}/24").parse().unwrap())
}

pub(crate) fn cable() -> (MemoryLink, MemoryLink) {
    pair(MemoryConfig::default()).unwrap()
}

pub(crate) fn networks() -> (Net, Net) {
    networks_with(|_| ())
}

/// Creates two networks. `change` modifies the configuration of each of them.
pub(crate) fn networks_with(change: impl Fn(&mut StackConfig)) -> (Net, Net) {
    let (left, right) = cable();
    let [left, right] =
        [(left, LEFT, "left"), (right, RIGHT, "right")].map(|(link, address, name)| {
            let mut config = config(address);
            change(&mut config);
            Net::builder(link, config).name(name).start().unwrap()
        });
    (left, right)
}

/// Opens a connection from the right to the left network. Returns the left and the right stream.
pub(crate) fn connection(left: &Net, right: &Net) -> (TcpStream, TcpStream) {
    let listener = left.bind((LEFT, 0)).unwrap();
    let far = right.connect(listener.local_addr().unwrap()).unwrap();
    let (near, peer) = listener.accept().unwrap();
    assert_eq!(peer, far.local_addr().unwrap());
    (near, far)
}

/// Waits until the number of waits by application threads of `net` has reached `waits`. The number
/// counts all waits since the network started.
pub(crate) fn until_waits(net: &Net, waits: u64) {
    while net.activity().waits < waits {
        thread::yield_now();
    }
}

/// A host without a thread, which receives and sends only when a test calls `turn`.
pub(crate) struct ByHand {
    host: Host<MemoryLink>,
    listener: ListenHandle,
}

impl ByHand {
    /// Creates a host with the address of the left network, which listens on port 80.
    pub(crate) fn new(link: MemoryLink) -> Self {
        let mut stack = Stack::new(config(LEFT), [1; 32]);
        let listener =
            stack.tcp_listen(SocketAddrV4::new(LEFT, 80), &ListenOptions::default()).unwrap();
        Self { host: Host::new(stack, link), listener }
    }

    /// Accepts a connection from the right network. Returns its handle on this host, and the stream
    /// of the right network.
    pub(crate) fn accept(&mut self, right: &Net) -> (TcpHandle, TcpStream) {
        thread::scope(|scope| {
            let opening = scope.spawn(|| right.connect((LEFT, 80)).unwrap());
            let near = loop {
                self.turn();
                if let Some((near, _)) = self.host.stack_mut().tcp_accept(self.listener) {
                    break near;
                }
                thread::yield_now();
            };
            (near, opening.join().unwrap())
        })
    }

    /// Makes turns until the host has received all frames that have arrived, and has sent its
    /// responses.
    pub(crate) fn turn(&mut self) {
        while self.host.turn(MonotonicClock.now()).unwrap().more {}
    }

    pub(crate) fn tcp(&self, near: TcpHandle) -> Cow<'_, Connection> {
        self.host.stack().tcp(near).unwrap()
    }
}
