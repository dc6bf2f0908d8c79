//! Packets as rules see them.

use super::world::World;
use linerate_wire::{Ipv4Packet, PacketLine};
use parking_lot::Mutex;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

/// The decision of a rule about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The packet goes on to the next rule, and then to its path.
    Pass,
    /// The packet is dropped.
    Drop,
    /// The packet enters its path after this time. Packets that are sent in the meantime overtake
    /// it.
    Delay(Duration),
    /// The packet enters its path twice.
    Duplicate,
    /// The packet enters its path with an inverted bit above the IP header. The receiver finds a
    /// wrong checksum.
    Corrupt,
    /// The packet enters its path after this number of later packets of the same path, or after a
    /// second if fewer follow.
    Reorder(u32),
}

/// A packet that a host has sent, as a rule sees it:
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
/// Its `Display` is one line, like that of `tcpdump`.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The virtual time.
    pub time: Duration,
    /// The address of the sending host.
    pub source: Ipv4Addr,
    /// The address of the receiving host.
    pub destination: Ipv4Addr,
    /// The whole IP packet.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Returns the number of the protocol above IP: 6 for TCP, 17 for UDP.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.bytes.get(9).copied().unwrap_or(0)
    }

    /// Returns the header and the data above IP.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        Ipv4Packet::parse(self.bytes).map_or(&[], |packet| packet.payload)
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.time, PacketLine(self.bytes))
    }
}

/// Removes a rule when it is dropped.
#[must_use = "dropping the guard removes the rule"]
pub struct RuleGuard {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) number: u64,
}

impl Drop for RuleGuard {
    fn drop(&mut self) {
        // The rule is dropped after the lock is released, because the rule may own a socket.
        let rule = self.world.lock().remove_rule(self.number);
        drop(rule);
    }
}

impl fmt::Debug for RuleGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleGuard").field("number", &self.number).finish_non_exhaustive()
    }
}
