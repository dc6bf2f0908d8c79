//! Multicast: memberships in groups, and the options of datagrams to groups.

use crate::udp_socket::UdpSocket;
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
    /// `InvalidInput` if `group` is no multicast group, or the socket cannot use its IP version;
    /// `AddrInUse` if the socket has joined the group already; `AddrNotAvailable` if no interface
    /// has this address; `QuotaExceeded` if the host cannot join more groups, or accept more
    /// sources.
    pub fn join_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.change(*interface, *group, None, Stack::udp_join)
    }

    /// Leaves a multicast group. `interface` selects the interface as for
    /// [`UdpSocket::join_multicast_v4`].
    ///
    /// # Errors
    /// `AddrNotAvailable` if no interface matches `interface`, or the socket has not joined the
    /// group there; `InvalidInput` if `group` is no multicast group.
    pub fn leave_multicast_v4(&self, group: &Ipv4Addr, interface: &Ipv4Addr) -> io::Result<()> {
        self.change(*interface, *group, None, Stack::udp_leave)
    }

    /// Joins a multicast group for one source: the socket receives only datagrams of that source.
    /// More calls for the group add other sources.
    ///
    /// # Errors
    /// Those of [`UdpSocket::join_multicast_v4`]; `AddrInUse` also if the socket has joined the
    /// group for all sources.
    pub fn join_ssm_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        let source = Some((*source).into());
        self.change(*interface, *group, source, Stack::udp_join)
    }

    /// Leaves a multicast group for one source that was joined with [`UdpSocket::join_ssm_v4`].
    /// Memberships for other sources continue.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the socket has not joined the group for this source.
    pub fn leave_ssm_v4(
        &self,
        source: &Ipv4Addr,
        group: &Ipv4Addr,
        interface: &Ipv4Addr,
    ) -> io::Result<()> {
        let source = Some((*source).into());
        self.change(*interface, *group, source, Stack::udp_leave)
    }

    /// Joins a multicast group: the socket receives datagrams to the group and to its own port,
    /// from all sources.
    ///
    /// `interface` is the number of the interface, or zero for the interface set with
    /// [`UdpSocket::set_multicast_if_v6`].
    ///
    /// # Errors
    /// `InvalidInput` if `group` is no multicast group, or the socket cannot use its IP version;
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
    /// `AddrNotAvailable` if no interface matches `interface`, or the socket has not joined the
    /// group there; `InvalidInput` if `group` is no multicast group.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.change(interface, *group, None, Stack::udp_leave)
    }

    /// Joins a multicast group for one source: the socket receives only datagrams of that source.
    /// More calls for the group add other sources.
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

    /// Leaves a multicast group for one source that was joined with [`UdpSocket::join_ssm_v6`].
    /// Memberships for other sources continue.
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
        Ok(self
            .socket
            .call(|stack, now| stack.udp_block_source(now, self.socket.handle, group, source))?)
    }

    /// Ends the exclusion of a source from a group ([`UdpSocket::block_multicast_source`]).
    ///
    /// # Errors
    /// `AddrNotAvailable` if the source is not excluded.
    pub fn unblock_multicast_source(&self, group: IpAddr, source: IpAddr) -> io::Result<()> {
        Ok(self
            .socket
            .call(|stack, now| stack.udp_unblock_source(now, self.socket.handle, group, source))?)
    }

    /// Selects whether datagrams that this socket sends to multicast groups are also delivered to
    /// members on this host (`IP_MULTICAST_LOOP`). They are by default.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        Ok(self.socket.call(|stack, _| stack.udp_set_multicast_loop(self.socket.handle, on))?)
    }

    /// Are datagrams that this socket sends to multicast groups also delivered to members on this
    /// host?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        Ok(self.socket.call(|stack, _| stack.udp_multicast_loop(self.socket.handle))?)
    }

    /// Selects whether datagrams that this socket sends to multicast groups are also delivered to
    /// members on this host (`IPV6_MULTICAST_LOOP`). They are by default.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        Ok(self.socket.call(|stack, _| stack.udp_set_multicast_loop(self.socket.handle, on))?)
    }

    /// Are datagrams that this socket sends to multicast groups also delivered to members on this
    /// host?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        Ok(self.socket.call(|stack, _| stack.udp_multicast_loop(self.socket.handle))?)
    }

    /// Sets the TTL of datagrams to multicast groups, by default 1. Datagrams with a TTL of zero do
    /// not leave the host.
    ///
    /// # Errors
    /// `InvalidInput` above 255.
    pub fn set_multicast_ttl_v4(&self, hops: u32) -> io::Result<()> {
        let hops = u8::try_from(hops).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(self.socket.call(|stack, _| stack.udp_set_multicast_hops(self.socket.handle, hops))?)
    }

    /// Returns the TTL of datagrams to multicast groups.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        Ok(self.socket.call(|stack, _| stack.udp_multicast_hops(self.socket.handle))?.into())
    }

    /// Sets the hop limit of datagrams to multicast groups, by default 1. Datagrams with a hop
    /// limit of zero do not leave the host.
    ///
    /// # Errors
    /// `InvalidInput` above 255.
    pub fn set_multicast_hops_v6(&self, hops: u32) -> io::Result<()> {
        let hops = u8::try_from(hops).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(self.socket.call(|stack, _| stack.udp_set_multicast_hops(self.socket.handle, hops))?)
    }

    /// Returns the hop limit of datagrams to multicast groups.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn multicast_hops_v6(&self) -> io::Result<u32> {
        Ok(self.socket.call(|stack, _| stack.udp_multicast_hops(self.socket.handle))?.into())
    }

    /// Sets the outgoing interface of this socket's datagrams to IPv4 groups. `interface` is an
    /// address of the interface; `0.0.0.0`, the default, selects the first interface.
    ///
    /// # Errors
    /// `AddrNotAvailable` if no interface has the address.
    pub fn set_multicast_if_v4(&self, interface: &Ipv4Addr) -> io::Result<()> {
        self.set_interface(*interface)
    }

    /// Sets the outgoing interface of this socket's datagrams to IPv6 groups. It applies if the
    /// destination address has no zone. `interface` is the number of the interface; zero, the
    /// default, selects the first interface.
    ///
    /// # Errors
    /// `AddrNotAvailable` if the host has no such interface.
    pub fn set_multicast_if_v6(&self, interface: u32) -> io::Result<()> {
        self.set_interface(interface)
    }

    /// Returns the number of the outgoing interface of this socket's datagrams to groups. Returns
    /// zero if none is set, so that the first interface is used.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn multicast_if_v6(&self) -> io::Result<u32> {
        let chosen =
            self.socket.call(|stack, _| stack.udp_multicast_interface(self.socket.handle))?;
        Ok(chosen.unwrap_or(0))
    }

    fn set_interface(&self, interface: impl Into<MulticastInterface>) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, _| stack.udp_set_multicast_interface(handle, interface))?)
    }

    fn change(
        &self,
        interface: impl Into<MulticastInterface>,
        group: impl Into<IpAddr>,
        source: Option<IpAddr>,
        change: Change,
    ) -> io::Result<()> {
        let (interface, group) = (interface.into(), group.into());
        Ok(self.socket.call(|stack, now| {
            let interface = stack.multicast_interface(self.socket.handle, interface)?;
            stack.on(interface, |stack| change(stack, now, self.socket.handle, group, source))?
        })?)
    }
}

/// The type of [`Stack::udp_join`] and [`Stack::udp_leave`].
type Change = fn(
    &mut Stack,
    Instant,
    linerate_stack::UdpHandle,
    IpAddr,
    Option<IpAddr>,
) -> Result<(), HostError>;
