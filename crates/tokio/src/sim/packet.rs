//! The packets that rules examine, and the verdicts of rules. A rule is a function of a test which
//! decides whether a packet passes.

use super::world::World;
use linerate_wire::{Ipv4Packet, Ipv6Packet, PacketLine};
use parking_lot::Mutex;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

/// The decision of a rule about a packet.
///
/// ```
/// use linerate_tokio::net::UdpSocket;
/// use linerate_tokio::sim::{Network, Verdict};
///
/// let network = Network::builder().build();
/// let _guard = network.rule(|_| Verdict::Duplicate);
/// network.host("one").spawn(async {
///     let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
///     socket.send_to(b"twice", "other:7").await.unwrap();
/// });
/// network.host("other").run(async {
///     let socket = UdpSocket::bind("0.0.0.0:7").await.unwrap();
///     for _ in 0..2 {
///         assert_eq!(socket.recv(&mut [0; 9]).await.unwrap(), 5);
///     }
/// });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on to the next rule, and then to its path.
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet enters its path after this time. Packets that are sent in the meantime overtake
    /// the packet.
    Delay(Duration),
    /// The packet enters its path twice.
    Duplicate,
    /// The packet enters its path with one inverted bit after the IP header and extension headers.
    /// The receiver then finds a wrong checksum in the transport header.
    Corrupt,
    /// The packet enters its path after this number of later packets of the path. If fewer follow
    /// within a second, it enters after this second.
    Reorder(u32),
}

/// A packet that a host has sent, as it is passed to a rule.
///
/// ```
/// use linerate_tokio::net::TcpStream;
/// use linerate_tokio::sim::{Network, Verdict};
/// use std::time::Duration;
/// use tokio::time::timeout;
///
/// let network = Network::builder().build();
/// let _guard = network.rule(|packet| {
///     println!("{packet}");
///     if packet.protocol() == 6 { Verdict::Drop } else { Verdict::Pass }
/// });
/// let _server = network.host("server");
/// network.host("client").run(async {
///     let attempt = timeout(Duration::from_secs(5), TcpStream::connect("server:80"));
///     assert!(attempt.await.is_err(), "no segment passes");
/// });
/// ```
///
/// `Display` formats the packet in one line, like `tcpdump`.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The virtual time at which the packet was sent, since the network was built.
    pub time: Duration,
    /// The address of the sending host.
    pub source: IpAddr,
    /// The address of the receiving host.
    pub destination: IpAddr,
    /// The whole IP packet.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Returns the view of a packet; `None` if the packet is too short to contain addresses.
    pub(super) fn new(time: Duration, bytes: &'a [u8]) -> Option<Self> {
        let (source, destination) = match version(bytes) {
            6 => (address::<16, Ipv6Addr>(bytes, 8)?, address::<16, Ipv6Addr>(bytes, 24)?),
            _ => (address::<4, Ipv4Addr>(bytes, 12)?, address::<4, Ipv4Addr>(bytes, 16)?),
        };
        Some(Self { time, source, destination, bytes })
    }

    /// Returns the number of the protocol above IP and its extension headers: 6 for TCP, 17 for
    /// UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        match version(self.bytes) {
            6 => Ipv6Packet::parse(self.bytes).map_or(0, |packet| packet.protocol.number()),
            _ => self.bytes.get(9).copied().unwrap_or(0),
        }
    }

    /// Returns the transport header and the data, after the IP header and its extension headers.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        match version(self.bytes) {
            6 => Ipv6Packet::parse(self.bytes).map_or(&[], |packet| packet.payload),
            _ => Ipv4Packet::parse(self.bytes).map_or(&[], |packet| packet.payload),
        }
    }
}

fn version(bytes: &[u8]) -> u8 {
    bytes.first().map_or(0, |first| first >> 4)
}

/// Returns the IP address that begins at `offset` in a packet; `None` if the packet is too short.
fn address<const LENGTH: usize, A: From<[u8; LENGTH]> + Into<IpAddr>>(
    bytes: &[u8],
    offset: usize,
) -> Option<IpAddr> {
    let octets: [u8; LENGTH] = *bytes.get(offset..)?.first_chunk()?;
    Some(A::from(octets).into())
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.time, PacketLine(self.bytes))
    }
}

/// A guard that removes a rule when it is dropped ([`Network::rule`](super::Network::rule)).
///
/// ```
/// use linerate_tokio::net::{TcpListener, TcpStream};
/// use linerate_tokio::sim::{Network, Verdict};
/// use std::time::Duration;
/// use tokio::time::timeout;
///
/// let network = Network::builder().build();
/// network.host("server").spawn(async {
///     let listener = TcpListener::bind("0.0.0.0:80").await.unwrap();
///     while listener.accept().await.is_ok() {}
/// });
/// let guard = network.rule(|_| Verdict::Drop);
/// network.host("client").run(async move {
///     let connect = || timeout(Duration::from_secs(5), TcpStream::connect("server:80"));
///     assert!(connect().await.is_err(), "all packets are dropped");
///     drop(guard);
///     assert!(connect().await.is_ok());
/// });
/// ```
#[must_use = "dropping the guard removes the rule"]
pub struct RuleGuard {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) number: u64,
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        // The rule may own a socket, and dropping a socket takes locks. So the rule is dropped only
        // after the lock of the world is released.
        let rule = self.world.lock().remove_rule(self.number);
        drop(rule);
    }
}

impl fmt::Debug for RuleGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleGuard").field("number", &self.number).finish_non_exhaustive()
    }
}
