//! The flow of a packet: the addresses and ports of both ends.

use core::hash::Hasher;
use core::net::{Ipv4Addr, SocketAddrV4};

/// The addresses and ports of a connection, in the order of a received packet: remote end first. A
/// listener or unconnected socket has 0.0.0.0 and port 0 as its remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    addresses: u64,
    ports: u32,
}

impl Flow {
    /// Creates the flow between a local and a remote end.
    pub(crate) fn new(local: SocketAddrV4, remote: SocketAddrV4) -> Self {
        let mut ends = [0; 12];
        ends[..4].copy_from_slice(&remote.ip().octets());
        ends[4..8].copy_from_slice(&local.ip().octets());
        ends[8..10].copy_from_slice(&remote.port().to_be_bytes());
        ends[10..].copy_from_slice(&local.port().to_be_bytes());
        Self::of_packet(&ends)
    }

    /// Reads the flow from the addresses and ports of a received packet.
    #[inline(always)]
    pub(crate) fn of_packet(ends: &[u8; 12]) -> Self {
        let (words, rest) = ends.as_chunks::<8>();
        let (ports, _) = rest.as_chunks();
        Self { addresses: u64::from_ne_bytes(words[0]), ports: u32::from_ne_bytes(ports[0]) }
    }

    /// Returns the addresses in the order of a received packet.
    pub(crate) const fn addresses(&self) -> [u8; 8] {
        self.addresses.to_ne_bytes()
    }

    /// Hashes the flow with a new hasher. It writes two integers: the compiler then drops the
    /// hasher's check for buffered bytes.
    #[inline(always)]
    pub(crate) fn hash_by(self, mut hasher: impl Hasher) -> u64 {
        hasher.write_u64(self.addresses);
        hasher.write_u32(self.ports);
        hasher.finish()
    }

    /// Returns the flow of a socket that is bound to `local` and has no peer.
    pub(crate) fn bound(local: SocketAddrV4) -> Self {
        Self::new(local, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }
}

/// The hash of a flow in the demultiplexing table. It has 32 bits, because each connection stores
/// its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHash(pub(crate) u32);

impl FlowHash {
    /// A placeholder for packets without a flow.
    pub(crate) const NONE: Self = Self(0);

    /// Widens the hash for the table, which selects a bucket by the lower bits and compares tags of
    /// the upper ones.
    pub(crate) fn wide(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}
