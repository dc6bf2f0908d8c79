//! Multicast: memberships in groups, and the options of datagrams to groups.

use super::udp::UdpSocket;
use linerate_stack::{Error as HostError, MulticastInterface, Stack};
use linerate_units::Instant;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// # Multicast
///
/// Memberships in multicast groups, and the options of datagrams that are sent to groups.
impl UdpSocket {
    /// Joins a multicast group: the socket receives datagrams to the group and to its own port,
    /// from all sources.
    ///
    /// `interface` is an address of the interface, or `0.0.0.0` for the interface set with
    /// [`UdpSocket::set_multicast_if_v4`].
    ///
    /// # Errors
    /// `InvalidInput` if `group` is no multicast group, or of the other IP version than the socket;
    /// `AddrInUse` if the socket has joined the group already; `AddrNotAvailable` if no interface
    /// has this address; `QuotaExceeded` if the host cannot join more groups, or accept more
    /// sources.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.change(interface, group, None, Stack::udp_join)
    }

    /// Leaves a multicast group. `interface` selects the interface as for
    /// [`UdpSocket::join_multicast_v4`].
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group; those of
    /// [`UdpSocket::join_multicast_v4`].
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.change(interface, group, None, Stack::udp_leave)
    }

    /// Joins a multicast group for one source. The socket receives datagrams to the group only from
    /// this source, and from the sources of further calls.
    ///
    /// # Errors
    /// Those of [`UdpSocket::join_multicast_v4`]; `AddrInUse` also if the socket has joined the
    /// group for all sources.
    pub fn join_ssm_v4(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: Ipv4Addr,
    ) -> io::Result<()> {
        let source = Some(source.into());
        self.change(interface, group, source, Stack::udp_join)
    }

    /// Stops receiving datagrams to a multicast group from a source that [`UdpSocket::join_ssm_v4`]
    /// has added.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group for this source.
    pub fn leave_ssm_v4(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: Ipv4Addr,
    ) -> io::Result<()> {
        let source = Some(source.into());
        self.change(interface, group, source, Stack::udp_leave)
    }

    /// Joins a multicast group: the socket receives datagrams to the group and to its own port,
    /// from all sources.
    ///
    /// `interface` is the number of the interface, or zero for the interface set with
    /// [`UdpSocket::set_multicast_if_v6`].
    ///
    /// # Errors
    /// `InvalidInput` if `group` is no multicast group, or of the other IP version than the socket;
    /// `AddrInUse` if the socket has joined the group already; `AddrNotAvailable` if the host has
    /// no such interface; `QuotaExceeded` if the host cannot join more groups, or accept more
    /// sources.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.change(interface, *group, None, Stack::udp_join)
    }

    /// Leaves a multicast group. `interface` selects the interface as for
    /// [`UdpSocket::join_multicast_v6`].
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group; those of
    /// [`UdpSocket::join_multicast_v6`].
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.change(interface, *group, None, Stack::udp_leave)
    }

    /// Joins a multicast group for one source. The socket receives datagrams to the group only from
    /// this source, and from the sources of further calls.
    ///
    /// # Errors
    /// Those of [`UdpSocket::join_multicast_v6`]; `AddrInUse` also if the socket has joined the
    /// group for all sources.
    pub fn join_ssm_v6(
        &self,
        source: &Ipv6Addr,
        group: &Ipv6Addr,
        interface: u32,
    ) -> io::Result<()> {
        let source = Some((*source).into());
        self.change(interface, *group, source, Stack::udp_join)
    }

    /// Stops receiving datagrams to a multicast group from a source that [`UdpSocket::join_ssm_v6`]
    /// has added.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group for this source.
    pub fn leave_ssm_v6(
        &self,
        source: &Ipv6Addr,
        group: &Ipv6Addr,
        interface: u32,
    ) -> io::Result<()> {
        let source = Some((*source).into());
        self.change(interface, *group, source, Stack::udp_leave)
    }

    /// Stops receiving datagrams from one source to a group that the socket has joined for all
    /// sources.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group; `AddrInUse` if it has joined the
    /// group only for given sources, or has already excluded this source.
    pub fn block_multicast_source(&self, group: IpAddr, source: IpAddr) -> io::Result<()> {
        self.socket.call(|stack, now| stack.udp_block_source(now, self.handle, group, source))
    }

    /// Ends the exclusion of a source from a group ([`UdpSocket::block_multicast_source`]).
    ///
    /// # Errors
    /// `AddrNotAvailable` if the source is not excluded.
    pub fn unblock_multicast_source(&self, group: IpAddr, source: IpAddr) -> io::Result<()> {
        self.socket.call(|stack, now| stack.udp_unblock_source(now, self.handle, group, source))
    }

    /// Sets whether multicast datagrams of this socket are also delivered to sockets of this host
    /// that have joined the group (`IP_MULTICAST_LOOP`). The default is true.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        self.socket.call(|stack, _| stack.udp_set_multicast_loop(self.handle, on))
    }

    /// Are multicast datagrams of this socket also delivered to sockets of this host that have
    /// joined the group?
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.socket.call(|stack, _| stack.udp_multicast_loop(self.handle))
    }

    /// Sets whether multicast datagrams of this socket are also delivered to sockets of this host
    /// that have joined the group (`IPV6_MULTICAST_LOOP`). The default is true.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        self.socket.call(|stack, _| stack.udp_set_multicast_loop(self.handle, on))
    }

    /// Are multicast datagrams of this socket also delivered to sockets of this host that have
    /// joined the group?
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.socket.call(|stack, _| stack.udp_multicast_loop(self.handle))
    }

    /// Sets the TTL of datagrams to multicast groups, by default 1. Datagrams with a TTL of zero do
    /// not leave the host.
    ///
    /// # Errors
    /// `InvalidInput` above 255.
    pub fn set_multicast_ttl_v4(&self, hops: u32) -> io::Result<()> {
        let hops = u8::try_from(hops).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.socket.call(|stack, _| stack.udp_set_multicast_hops(self.handle, hops))
    }

    /// Returns the TTL of datagrams to multicast groups.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.socket.call(|stack, _| stack.udp_multicast_hops(self.handle)).map(u32::from)
    }

    /// Sets the hop limit of datagrams to multicast groups, by default 1. Datagrams with a hop
    /// limit of zero do not leave the host.
    ///
    /// # Errors
    /// `InvalidInput` above 255.
    pub fn set_multicast_hops_v6(&self, hops: u32) -> io::Result<()> {
        let hops = u8::try_from(hops).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.socket.call(|stack, _| stack.udp_set_multicast_hops(self.handle, hops))
    }

    /// Returns the hop limit of datagrams to multicast groups.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn multicast_hops_v6(&self) -> io::Result<u32> {
        self.socket.call(|stack, _| stack.udp_multicast_hops(self.handle)).map(u32::from)
    }

    /// Sets the outgoing interface of this socket's datagrams to IPv4 groups. `interface` is an
    /// address of the interface; `0.0.0.0`, the default, selects the first interface.
    ///
    /// # Errors
    /// `AddrNotAvailable` if no interface has the address.
    pub fn set_multicast_if_v4(&self, interface: &Ipv4Addr) -> io::Result<()> {
        self.set_interface(*interface)
    }

    /// Sets the outgoing interface of this socket's datagrams to IPv6 groups whose address has no
    /// zone (scope identifier). `interface` is the number of the interface; zero, the default,
    /// selects the first interface.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the host has no such interface.
    pub fn set_multicast_if_v6(&self, interface: u32) -> io::Result<()> {
        self.set_interface(interface)
    }

    /// Returns the number of the outgoing interface of this socket's datagrams to groups. Zero
    /// means that none was set, so the first interface is used.
    ///
    /// # Errors
    /// If the host has panicked.
    pub fn multicast_if_v6(&self) -> io::Result<u32> {
        let chosen = self.socket.call(|stack, _| stack.udp_multicast_interface(self.handle))?;
        Ok(chosen.unwrap_or(0))
    }

    fn set_interface(&self, interface: impl Into<MulticastInterface>) -> io::Result<()> {
        self.socket.call(|stack, _| stack.udp_set_multicast_interface(self.handle, interface))
    }

    fn change(
        &self,
        interface: impl Into<MulticastInterface>,
        group: impl Into<IpAddr>,
        source: Option<IpAddr>,
        change: Change,
    ) -> io::Result<()> {
        let (interface, group) = (interface.into(), group.into());
        self.socket.call(|stack, now| {
            let interface = stack.multicast_interface(self.handle, interface)?;
            stack.on(interface, |stack| change(stack, now, self.handle, group, source))?
        })
    }
}

/// A method of [`Stack`] that makes a socket join or leave a group.
type Change = fn(
    &mut Stack,
    Instant,
    linerate_stack::UdpHandle,
    IpAddr,
    Option<IpAddr>,
) -> Result<(), HostError>;
