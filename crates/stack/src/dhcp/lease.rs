//! The lease that a DHCP server has granted, and its conversion from a DHCP message.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use linerate_units::{Duration, Instant};
use linerate_wire::dhcp::{DhcpMessage, option};
use linerate_wire::{IpCidr, Ipv4Cidr};

/// Maximum number of addresses that the client takes from one option of a message, such as the list
/// of DNS servers. Further addresses are ignored.
const MAX_ADDRESSES: usize = 8;
/// Lease time in seconds that means an infinite lease (RFC 2131 §3.3).
const INFINITE: u32 = u32::MAX;
/// Minimum duration of a lease in seconds. A shorter lease counts as a lease of this duration,
/// because the client would otherwise renew it continuously.
const SHORTEST: u32 = 4;
/// Minimum MTU in bytes that the server may announce in the MTU option (RFC 2132 §5.1).
const SMALLEST_MTU: u16 = 68;

/// A DHCP lease: an address for a limited time, and the other parameters that the server has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DhcpLease {
    /// The leased address, with its prefix length.
    pub address: IpCidr,
    /// The server that granted the lease.
    pub server: Ipv4Addr,
    /// Addresses of routers in the order of preference. The host uses only the first router.
    pub routers: Vec<Ipv4Addr>,
    /// Addresses of DNS servers in the order of preference.
    pub dns_servers: Vec<Ipv4Addr>,
    /// Domain name for resolving host names, if the server has sent one.
    pub domain: Option<String>,
    /// MTU of the interface in bytes, if the server has sent it.
    pub mtu: Option<u16>,
    /// Time at which the client sent the request that the server granted. The duration of the lease
    /// counts from this time.
    pub since: Instant,
    /// Time at which the client asks the server that granted the lease to extend it (T1);
    /// [`Instant::NEVER`] for an infinite lease.
    pub renew_at: Instant,
    /// Time at which the client asks all servers to extend the lease (T2); [`Instant::NEVER`] for
    /// an infinite lease.
    pub rebind_at: Instant,
    /// Time at which the lease ends; [`Instant::NEVER`] for an infinite lease.
    pub expires_at: Instant,
}

impl DhcpLease {
    /// Reads the lease from `message`, in which a server answers a request that the client sent at
    /// `since`. Returns `None` unless the message contains a usable address, a lease time and a
    /// server identifier.
    pub(crate) fn read(message: &DhcpMessage<'_>, since: Instant) -> Option<Self> {
        let own = message.header.yours;
        let options = &message.options;
        let server = options.address(option::SERVER_ID)?;
        let seconds = options.word(option::LEASE_TIME)?.max(SHORTEST);
        let is_host = |address: Ipv4Addr| {
            !address.is_unspecified()
                && !address.is_loopback()
                && !address.is_multicast()
                && !address.is_broadcast()
        };
        if !is_host(own) || !is_host(server) {
            return None;
        }
        let mask = options.word(option::SUBNET_MASK).unwrap_or(u32::MAX);
        #[allow(clippy::cast_possible_truncation, reason = "at most 32")]
        let prefix_length = mask.leading_ones() as u8;
        let address: IpCidr = Ipv4Cidr::new(own, prefix_length)?.into();
        let addresses = |code| {
            let mut bytes = [0; MAX_ADDRESSES * 4];
            let found = options.get(code, &mut bytes).unwrap_or_default();
            let octets = found.as_chunks::<4>().0.iter();
            octets.map(|octets| Ipv4Addr::from_octets(*octets)).filter(|&at| is_host(at)).collect()
        };
        let mut name = [0; 255];
        let domain = options
            .get(option::DOMAIN_NAME, &mut name)
            .and_then(|name| core::str::from_utf8(name).ok())
            .map(|name| name.trim_end_matches('\0'))
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()))
            .map(String::from);
        let mut mtu = [0; 2];
        let mtu = options
            .get(option::INTERFACE_MTU, &mut mtu)
            .and_then(<[u8]>::first_chunk)
            .map(|mtu| u16::from_be_bytes(*mtu))
            .filter(|&mtu| mtu >= SMALLEST_MTU);
        let [renew_at, rebind_at, expires_at] = times(message, since, seconds);
        Some(Self {
            address,
            server,
            routers: addresses(option::ROUTER),
            dns_servers: addresses(option::DNS),
            domain,
            mtu,
            since,
            renew_at,
            rebind_at,
            expires_at,
        })
    }

    /// Returns the leased address without its prefix length.
    pub(crate) fn own(&self) -> Ipv4Addr {
        match self.address.address() {
            core::net::IpAddr::V4(address) => address,
            core::net::IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        }
    }
}

/// Returns T1, T2 and the end of a lease of `seconds` seconds. T1 and T2 are taken from `message`,
/// or have their default values if the message does not contain them. If T1, T2 and the end are not
/// in ascending order, both T1 and T2 have their default values (RFC 2131 §4.4.5).
fn times(message: &DhcpMessage<'_>, since: Instant, seconds: u32) -> [Instant; 3] {
    if seconds == INFINITE {
        return [Instant::NEVER; 3];
    }
    let whole = Duration::from_secs(seconds.into());
    let given = |code| message.options.word(code).map(|value| Duration::from_secs(value.into()));
    let first = given(option::RENEWAL_TIME).unwrap_or(whole / 2);
    let second = given(option::REBINDING_TIME).unwrap_or(whole * 7 / 8);
    let is_ordered = Duration::ZERO < first && first < second && second < whole;
    let (first, second) = if is_ordered { (first, second) } else { (whole / 2, whole * 7 / 8) };
    [since + first, since + second, since + whole]
}
