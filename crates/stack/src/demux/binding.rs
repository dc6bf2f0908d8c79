//! The local address of a socket, and the conversion between addresses in packets and addresses
//! that applications see. On IPv6 sockets, applications see IPv4 addresses as IPv4-mapped IPv6
//! addresses (RFC 4291 §2.5.5.2, RFC 3493 §3.7). They see link-local addresses with a zone.

use crate::demux::Flow;
use crate::error::Error;
use crate::ip::zone::with_zone;
use crate::ports::Ports;
use core::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

/// Converts an address and port from an application to those in packet headers: drops the zone and
/// the flow label, and converts an IPv4-mapped IPv6 address to the IPv4 address.
#[inline]
pub(crate) fn end_of_packets(given: SocketAddr) -> SocketAddr {
    match given {
        SocketAddr::V4(_) => given,
        SocketAddr::V6(given) => {
            SocketAddr::new(IpAddr::V6(*given.ip()).to_canonical(), given.port())
        }
    }
}

/// Converts an address and port from a packet to the form that an application sees. If `is_mapped`,
/// converts an IPv4 address to an IPv4-mapped IPv6 address.
pub(crate) const fn end_of_application(end: SocketAddr, is_mapped: bool) -> SocketAddr {
    match end {
        SocketAddr::V4(end) if is_mapped => {
            SocketAddr::V6(SocketAddrV6::new(end.ip().to_ipv6_mapped(), end.port(), 0, 0))
        }
        end => end,
    }
}

/// The local address of a listener or of a UDP socket, and the address family of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The local address and port as in packet headers, so never an IPv4-mapped IPv6 address. A
    /// link-local address has a zone.
    local: SocketAddr,
    family: Family,
}

/// The address family of a socket: the form in which the application passes and sees addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    /// `AF_INET`.
    Ipv4,
    /// `AF_INET6`: the application sees IPv4 addresses as IPv4-mapped IPv6 addresses.
    Ipv6 {
        /// Whether the socket excludes IPv4 (`IPV6_V6ONLY`).
        only: bool,
    },
}

impl Binding {
    /// The binding of a forwarder's listener. It matches no packet, because the listener gets its
    /// segments from the forwarder and not from the table of listeners.
    pub(crate) const NONE: Self =
        Self::to_flow(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));

    /// Creates the binding to the address `given` by an application. A link-local address gets the
    /// zone `interface`. `only_v6` excludes IPv4 from an IPv6 socket.
    ///
    /// # Errors
    /// [`Error::MappedBind`] if `only_v6` is set and `given` is an IPv4-mapped IPv6 address.
    pub(crate) fn new(given: SocketAddr, only_v6: bool, interface: u16) -> Result<Self, Error> {
        let local = with_zone(end_of_packets(given), interface);
        let family = match (given, local) {
            (SocketAddr::V4(_), _) => Family::Ipv4,
            (SocketAddr::V6(_), SocketAddr::V4(_)) if only_v6 => {
                return Err(Error::MappedBind(given));
            }
            (SocketAddr::V6(_), SocketAddr::V4(_)) => Family::Ipv6 { only: false },
            // As on Linux, a socket that is bound to a specific IPv6 address receives no IPv4
            // packets, even if `only_v6` is false.
            (SocketAddr::V6(_), SocketAddr::V6(local)) => {
                Family::Ipv6 { only: only_v6 || !local.ip().is_unspecified() }
            }
        };
        Ok(Self { local, family })
    }

    /// Creates the binding of a forwarded flow. The application sees the addresses of the flow as
    /// they are in packet headers.
    pub(crate) const fn to_flow(local: SocketAddr) -> Self {
        let family = match local {
            SocketAddr::V4(_) => Family::Ipv4,
            SocketAddr::V6(_) => Family::Ipv6 { only: true },
        };
        Self { local, family }
    }

    /// Returns a copy of the binding whose port is `port`.
    pub(crate) const fn with_port(mut self, port: u16) -> Self {
        self.local.set_port(port);
        self
    }

    /// Returns a copy of the binding with a free port. A port that is not zero stays unchanged, and
    /// must be free. Port zero is replaced by a free port that `ports` selects.
    ///
    /// # Errors
    /// [`Error::AddressInUse`] if the port of the binding is taken; [`Error::PortsExhausted`] if
    /// `ports` finds no free port.
    pub(crate) fn with_free_port(
        self,
        ports: &mut Ports,
        is_taken: impl Fn(&Flow) -> bool,
    ) -> Result<Self, Error> {
        let is_taken = |binding: &Self| binding.flows().any(|flow| is_taken(&flow));
        if self.local.port() != 0 {
            let in_use = Error::AddressInUse(self.shown_local());
            return if is_taken(&self) { Err(in_use) } else { Ok(self) };
        }
        let flow = Flow::bound(self.local);
        ports
            .choose(flow, |flow| is_taken(&self.with_port(flow.local_port())))
            .map(|flow| self.with_port(flow.local_port()))
            .ok_or_else(|| Error::PortsExhausted(flow.remote()))
    }

    /// Returns the local address and port as in packet headers, so never an IPv4-mapped IPv6
    /// address. If [`Binding::has_both_versions`], the address `::` stands for all IPv4 and IPv6
    /// addresses.
    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the local address and port as the application sees them.
    pub(crate) const fn shown_local(&self) -> SocketAddr {
        self.shown(self.local)
    }

    /// Converts an address and port from a packet to the form that the application sees.
    pub(crate) const fn shown(&self, end: SocketAddr) -> SocketAddr {
        end_of_application(end, self.is_mapped())
    }

    /// Does the application see IPv4 addresses as IPv4-mapped IPv6 addresses?
    pub(crate) const fn is_mapped(&self) -> bool {
        matches!(self.family, Family::Ipv6 { .. })
    }

    /// Returns whether the socket excludes IPv4 (`IPV6_V6ONLY`). Returns `None` for an IPv4 socket,
    /// which does not have this option.
    pub(crate) const fn only_v6(&self) -> Option<bool> {
        match self.family {
            Family::Ipv4 => None,
            Family::Ipv6 { only } => Some(only),
        }
    }

    /// Is the socket bound to all addresses of both IPv4 and IPv6?
    fn has_both_versions(&self) -> bool {
        self.family == Family::Ipv6 { only: false }
            && self.local.is_ipv6()
            && self.local.ip().is_unspecified()
    }

    /// Returns the keys of the socket in the table of listeners or UDP sockets: one key for each IP
    /// version that the socket accepts.
    pub(crate) fn flows(&self) -> impl Iterator<Item = Flow> + use<> {
        let all_ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), self.local.port());
        let ipv4 = self.has_both_versions().then(|| Flow::bound(all_ipv4));
        core::iter::once(Flow::bound(self.local)).chain(ipv4)
    }

    /// Checks that the socket can exchange packets with the address `remote`, which must not be an
    /// IPv4-mapped IPv6 address.
    ///
    /// # Errors
    /// [`Error::OnlyIpv6`] if `remote` is an IPv4 address that the socket excludes,
    /// [`Error::OtherVersion`] if `remote` is an IPv6 address and the socket is bound to an IPv4
    /// address.
    pub(crate) fn check_version(&self, remote: IpAddr) -> Result<(), Error> {
        let local = self.local.ip();
        match remote {
            _ if local.is_ipv4() == remote.is_ipv4() || self.has_both_versions() => Ok(()),
            IpAddr::V4(_) => Err(Error::OnlyIpv6(remote)),
            IpAddr::V6(_) => Err(Error::OtherVersion { local, remote }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn bind(given: &str, only_v6: bool) -> Binding {
        Binding::new(given.parse().unwrap(), only_v6, 1).unwrap()
    }

    fn flows(binding: &Binding) -> Vec<SocketAddr> {
        binding.flows().map(|flow| flow.local()).collect()
    }

    fn ends(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_socket_is_found_by_the_versions_that_it_accepts() {
        for (given, only_v6, found) in [
            ("0.0.0.0:7", false, &["0.0.0.0:7"][..]),
            ("192.0.2.1:7", true, &["192.0.2.1:7"]),
            ("[::]:7", false, &["[::]:7", "0.0.0.0:7"]),
            ("[::]:7", true, &["[::]:7"]),
            ("[2001:db8::1]:7", false, &["[2001:db8::1]:7"]),
            ("[::ffff:192.0.2.1]:7", false, &["192.0.2.1:7"]),
            ("[::ffff:0.0.0.0]:7", false, &["0.0.0.0:7"]),
            ("[fe80::1%1]:7", false, &["[fe80::1]:7"]),
        ] {
            let binding = bind(given, only_v6);
            assert_eq!(flows(&binding), ends(found), "{given}");
            assert_eq!(binding.shown_local(), given.parse().unwrap());
        }
    }

    #[test]
    fn an_ipv4_address_has_its_ipv6_form_on_a_socket_for_ipv6() {
        let ipv4 = "192.0.2.9:80".parse().unwrap();
        for given in ["[::]:7", "[::ffff:192.0.2.1]:7", "[2001:db8::1]:7"] {
            let shown = bind(given, false).shown(ipv4);
            assert_eq!(shown, "[::ffff:192.0.2.9]:80".parse().unwrap(), "{given}");
            assert_eq!(end_of_packets(shown), ipv4);
        }
        assert_eq!(bind("0.0.0.0:7", false).shown(ipv4), ipv4);
    }

    #[test]
    fn a_socket_reaches_the_versions_that_it_accepts() {
        let ipv4 = "192.0.2.9".parse().unwrap();
        let ipv6 = "2001:db8::9".parse().unwrap();
        let reaches = |given, only_v6| {
            let binding = bind(given, only_v6);
            [ipv4, ipv6].map(|remote| binding.check_version(remote))
        };
        let other = |local: &str, remote| {
            Err(Error::OtherVersion { local: local.parse().unwrap(), remote })
        };
        assert_eq!(reaches("[::]:7", false), [Ok(()); 2]);
        assert_eq!(reaches("[::]:7", true), [Err(Error::OnlyIpv6(ipv4)), Ok(())]);
        assert_eq!(reaches("0.0.0.0:7", false), [Ok(()), other("0.0.0.0", ipv6)]);
        assert_eq!(reaches("[::ffff:0.0.0.0]:7", false), [Ok(()), other("0.0.0.0", ipv6)]);
        assert_eq!(reaches("[::1]:7", false), [Err(Error::OnlyIpv6(ipv4)), Ok(())]);
    }

    #[test]
    fn a_socket_for_ipv6_only_has_no_ipv4_address() {
        let given = "[::ffff:192.0.2.1]:7".parse().unwrap();
        assert_eq!(Binding::new(given, true, 1), Err(Error::MappedBind(given)));
        assert_eq!(bind("[::]:7", true).only_v6(), Some(true));
        assert_eq!(bind("[::]:7", false).only_v6(), Some(false));
        assert_eq!(bind("0.0.0.0:7", true).only_v6(), None);
        assert_eq!(bind("[2001:db8::1]:7", false).only_v6(), Some(true), "as on Linux");
        assert_eq!(bind("[::ffff:192.0.2.1]:7", false).only_v6(), Some(false));
    }
}
