//! Two networks at the ends of one cable of memory.

use linerate_link::memory::{MemoryConfig, MemoryLink, pair};
use linerate_sockets::{Net, StackConfig, TcpStream};
use std::net::Ipv4Addr;

pub(crate) const LEFT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Nobody has it.
pub(crate) const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 77);

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

/// Both configured in the same way.
pub(crate) fn networks_with(change: impl Fn(&mut StackConfig)) -> (Net, Net) {
    let (left, right) = cable();
    let [left, right] = [(left, LEFT, "left"), (right, RIGHT, "right")].map(|(link, address, name)| {
        let mut config = config(address);
        change(&mut config);
        Net::builder(link, config).name(name).start().unwrap()
    });
    (left, right)
}

/// A connection from the right to the left: the ends of the left and of the right.
pub(crate) fn connection(left: &Net, right: &Net) -> (TcpStream, TcpStream) {
    let listener = left.bind((LEFT, 0)).unwrap();
    let far = right.connect(listener.local_addr().unwrap()).unwrap();
    let (near, peer) = listener.accept().unwrap();
    assert_eq!(peer, far.local_addr().unwrap());
    (near, far)
}
