//! The flow of a packet: addresses and ports of both ends, and their hash.

use core::hash::Hasher;
use core::net::{Ipv4Addr, SocketAddrV4};

/// Both ends of a conversation, as they stand in a packet that arrives: theirs, then ours. What is bound on one side
/// only has 0.0.0.0 and port 0 on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    addresses: u64,
    ports: u32,
}

impl Flow {
    /// The flow between an address of ours and one of theirs.
    pub(crate) fn new(local: SocketAddrV4, remote: SocketAddrV4) -> Self {
        let mut ends = [0; 12];
        ends[..4].copy_from_slice(&remote.ip().octets());
        ends[4..8].copy_from_slice(&local.ip().octets());
        ends[8..10].copy_from_slice(&remote.port().to_be_bytes());
        ends[10..].copy_from_slice(&local.port().to_be_bytes());
        Self::of_packet(&ends)
    }

    /// The flow of a packet that has arrived, and bears these addresses and ports.
    #[inline(always)]
    pub(crate) fn of_packet(ends: &[u8; 12]) -> Self {
        let (words, rest) = ends.as_chunks::<8>();
        let (ports, _) = rest.as_chunks();
        Self { addresses: u64::from_ne_bytes(words[0]), ports: u32::from_ne_bytes(ports[0]) }
    }

    /// The addresses, as they stand there.
    pub(crate) const fn addresses(&self) -> [u8; 8] {
        self.addresses.to_ne_bytes()
    }

    /// Its hash, in two words, by a hasher that was just made of its keys: nothing was written to that before, and so
    /// nothing has to be asked.
    #[inline(always)]
    pub(crate) fn hash_by(self, mut hasher: impl Hasher) -> u64 {
        hasher.write_u64(self.addresses);
        hasher.write_u32(self.ports);
        hasher.finish()
    }

    /// What is bound at an address of ours and talks to anyone.
    pub(crate) fn bound(local: SocketAddrV4) -> Self {
        Self::new(local, SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
    }
}

/// Under what the table has a flow, in as few bytes as do, since each connection keeps its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHash(pub(crate) u32);

impl FlowHash {
    /// Of no flow.
    pub(crate) const NONE: Self = Self(0);

    /// For the table, which begins to look where the lower bits say, and tells its entries apart by the upper ones.
    pub(crate) fn wide(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}
