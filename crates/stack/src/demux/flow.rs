//! Flows: the addresses and ports of both ends of a connection or datagram.

use core::hash::Hasher;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The IP addresses of two hosts, in the order of a received packet: the address of the remote host
/// is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hosts {
    /// The remote and the local IPv4 address.
    V4([u8; 8]),
    /// The remote and the local IPv6 address.
    V6([u8; 32]),
}

impl Hosts {
    /// Creates a pair from the addresses of the local and the remote host.
    ///
    /// Both addresses must be of one IP version, which the callers check. As a safeguard, addresses
    /// of different versions become a pair of IPv6 addresses that no packet contains.
    pub(crate) fn new(local: IpAddr, remote: IpAddr) -> Self {
        match (local, remote) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => {
                let mut bytes = [0; 8];
                bytes[..4].copy_from_slice(&remote.octets());
                bytes[4..].copy_from_slice(&local.octets());
                Self::V4(bytes)
            }
            (local, remote) => {
                let octets = |address| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                let mut bytes = [0; 32];
                bytes[..16].copy_from_slice(&octets(remote));
                bytes[16..].copy_from_slice(&octets(local));
                Self::V6(bytes)
            }
        }
    }

    /// Returns the address of the local host.
    pub(crate) fn local(&self) -> IpAddr {
        match self {
            Self::V4([_, _, _, _, a, b, c, d]) => Ipv4Addr::new(*a, *b, *c, *d).into(),
            Self::V6(bytes) => v6(bytes.last_chunk()),
        }
    }

    /// Returns the address of the remote host.
    pub(crate) fn remote(&self) -> IpAddr {
        match self {
            Self::V4([a, b, c, d, ..]) => Ipv4Addr::new(*a, *b, *c, *d).into(),
            Self::V6(bytes) => v6(bytes.first_chunk()),
        }
    }

    /// Returns the octets of both addresses, in the order of a received packet.
    pub(crate) const fn bytes(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }
}

/// Returns the IPv6 address with these octets, or the unspecified address for `None`.
fn v6(octets: Option<&[u8; 16]>) -> IpAddr {
    octets.map_or(Ipv6Addr::UNSPECIFIED, |octets| Ipv6Addr::from(*octets)).into()
}

/// The addresses and ports of a connection, in the order of a received packet: remote before local.
/// For a listener or an unconnected socket, the remote address is unspecified and the remote port
/// is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) hosts: Hosts,
    /// The remote port and then the local port, in network byte order.
    pub(crate) ports: [u8; 4],
}

impl Flow {
    /// Creates the flow between a local and a remote address and port.
    pub(crate) fn new(local: impl Into<SocketAddr>, remote: impl Into<SocketAddr>) -> Self {
        let (local, remote) = (local.into(), remote.into());
        Self::between(Hosts::new(local.ip(), remote.ip()), local.port(), remote.port())
    }

    /// Creates the flow between the port `local` of the local host and the port `remote` of the
    /// remote host.
    #[inline(always)]
    pub(crate) const fn between(hosts: Hosts, local: u16, remote: u16) -> Self {
        let ([a, b], [c, d]) = (remote.to_be_bytes(), local.to_be_bytes());
        Self { hosts, ports: [a, b, c, d] }
    }

    /// Reads the flow from the IPv4 addresses and the ports of a received packet.
    #[inline(always)]
    pub(crate) fn of_packet(ends: &[u8; 12]) -> Self {
        let (words, rest) = ends.as_chunks::<8>();
        let (ports, _) = rest.as_chunks();
        Self { hosts: Hosts::V4(words[0]), ports: ports[0] }
    }

    /// Reads the flow from the IPv6 addresses and the ports of a received packet.
    #[inline(always)]
    pub(crate) fn of_ipv6_packet(ends: &[u8; 36]) -> Self {
        let hosts = ends.first_chunk().copied().unwrap_or([0; 32]);
        let ports = ends.last_chunk().copied().unwrap_or_default();
        Self { hosts: Hosts::V6(hosts), ports }
    }

    /// Returns the flow of a socket that is bound to `local` and has no peer.
    pub(crate) fn bound(local: impl Into<SocketAddr>) -> Self {
        let local = local.into();
        Self::new(local, SocketAddr::new(unspecified_like(local.ip()), 0))
    }

    /// Returns the flow of a socket that is bound to this flow's local port at all addresses.
    pub(crate) const fn bound_to_all(&self) -> Self {
        let hosts = match self.hosts {
            Hosts::V4(_) => Hosts::V4([0; 8]),
            Hosts::V6(_) => Hosts::V6([0; 32]),
        };
        Self::between(hosts, self.local_port(), 0)
    }

    /// Returns the flow of a socket that is bound to this flow's local address and port.
    pub(crate) const fn bound_to_local(&self) -> Self {
        let mut hosts = self.hosts;
        match &mut hosts {
            Hosts::V4([a, b, c, d, ..]) => (*a, *b, *c, *d) = (0, 0, 0, 0),
            Hosts::V6(bytes) => {
                if let Some(remote) = bytes.first_chunk_mut::<16>() {
                    *remote = [0; 16];
                }
            }
        }
        Self::between(hosts, self.local_port(), 0)
    }

    /// Returns the local address and port.
    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.local(), self.local_port())
    }

    /// Returns the remote address and port.
    pub(crate) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.hosts.remote(), self.remote_port())
    }

    /// Sets the local port.
    #[inline(always)]
    pub(crate) const fn set_local_port(&mut self, port: u16) {
        let ([a, b, ..], [c, d]) = (self.ports, port.to_be_bytes());
        self.ports = [a, b, c, d];
    }

    /// Returns the local port.
    pub(crate) const fn local_port(&self) -> u16 {
        let [_, _, a, b] = self.ports;
        u16::from_be_bytes([a, b])
    }

    /// Returns the remote port.
    pub(crate) const fn remote_port(&self) -> u16 {
        let [a, b, ..] = self.ports;
        u16::from_be_bytes([a, b])
    }

    /// Returns the hash of the flow by `hasher`. The flow is written to the hasher as a few
    /// integers of fixed sizes. The compiler then knows how many bytes the hasher has buffered, and
    /// omits the checks for buffered bytes.
    #[inline(always)]
    pub(crate) fn hash_by(&self, mut hasher: impl Hasher) -> u64 {
        // Each IP version has its own sequence of writes. The compiler therefore knows before each
        // write how many bytes the hasher has buffered, and omits checks.
        match &self.hosts {
            Hosts::V4(hosts) => {
                hasher.write_u64(u64::from_ne_bytes(*hosts));
                hasher.write_u32(u32::from_ne_bytes(self.ports));
                hasher.finish()
            }
            Hosts::V6(hosts) => {
                for word in hosts.as_chunks().0 {
                    hasher.write_u64(u64::from_ne_bytes(*word));
                }
                hasher.write_u32(u32::from_ne_bytes(self.ports));
                hasher.finish()
            }
        }
    }

    /// Maximum number of bytes that [`Flow::write_key`] writes.
    pub(crate) const KEY: usize = 36;

    /// Writes the flow as bytes for a keyed hash, the local address and port first. Different flows
    /// give different bytes. Returns the number of bytes.
    pub(crate) fn write_key(&self, key: &mut [u8]) -> usize {
        let hosts = self.hosts.bytes();
        let (remote, local) = hosts.split_at(hosts.len() / 2);
        let (remote_port, local_port) = self.ports.split_at(2);
        let mut length = 0;
        for part in [local, local_port, remote, remote_port] {
            key[length..length + part.len()].copy_from_slice(part);
            length += part.len();
        }
        length
    }
}

/// Returns the unspecified address of the IP version of `address`.
pub(crate) const fn unspecified_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// The hash of a flow in the demultiplexing table. It has only 32 bits, because each connection
/// stores the hash of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHash(pub(crate) u32);

impl FlowHash {
    /// The value for frames that have no flow, because they contain no TCP segment.
    pub(crate) const NONE: Self = Self(0);

    /// Widens the hash to the 64 bits that the table expects: both halves are this hash. The table
    /// selects a bucket by the lower half, and compares tags taken from the upper half, so both
    /// halves must vary.
    pub(crate) fn wide(self) -> u64 {
        u64::from(self.0) << 32 | u64::from(self.0)
    }
}
