//! Methods of the application on UDP sockets: bind, connect, send, receive, options and close.

use crate::demux::binding::end_of_packets;
use crate::demux::{Binding, Flow};
use crate::error::Error;
use crate::handle::UdpHandle;
use crate::ip::zone::with_zone;
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tx::Reply;
use crate::udp::{Fragmentation, UdpOptions, data_limit};
use core::net::SocketAddr;
use linerate_units::Instant;
use linerate_wire::TypeOfService;

/// # Application calls: UDP
impl Stack {
    /// Creates a UDP socket that is bound to an address of this host, to `0.0.0.0` for all IPv4
    /// addresses, or to `::` for all addresses of both IP versions. A socket bound to `::` sends
    /// and receives over IPv4 too, and shows IPv4 addresses as IPv4-mapped IPv6 addresses
    /// (`::ffff:192.0.2.1`); [`UdpOptions::only_v6`] excludes IPv4. A socket bound to a multicast
    /// group receives only datagrams to this group, after it has [joined](Stack::udp_join) the
    /// group. Port zero selects an ephemeral port.
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`], [`Error::AddressInUse`], [`Error::PortsExhausted`],
    /// [`Error::TooManySockets`], [`Error::MappedBind`] or [`Error::UnknownZone`].
    pub fn udp_bind(
        &mut self,
        local: impl Into<SocketAddr>,
        options: &UdpOptions,
    ) -> Result<UdpHandle, Error> {
        let local = local.into();
        let interface = self.interface_for(&local)?;
        self.serving(interface, |stack| stack.bind_udp(local, options))
    }

    fn bind_udp(&mut self, local: SocketAddr, options: &UdpOptions) -> Result<UdpHandle, Error> {
        let binding = Binding::new(local, options.only_v6, self.interface.number)?;
        let address = binding.local().ip();
        let is_open = address.is_unspecified() || address.is_multicast();
        if !is_open && !self.is_ours(address) {
            return Err(Error::AddressNotOurs(address));
        }
        self.sockets.has_room()?;
        let is_taken = |flow: &Flow| self.datagrams.get(flow).is_some();
        let binding = binding.with_free_port(&mut self.udp_ports, is_taken)?;
        let index = self.insert_udp(binding, options);
        self.sockets.udp_handle(index).ok_or(Error::Closed)
    }

    /// Sets the peer of a socket: [`Stack::udp_send`] sends to the peer, and the socket receives
    /// datagrams only from the peer. If an ICMP error about a sent datagram arrives, the next call
    /// of [`Stack::udp_send`] or of a receive method returns this error.
    ///
    /// # Errors
    /// [`Error::Closed`], or the reason why the destination is invalid.
    pub fn udp_connect(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        peer: impl Into<SocketAddr>,
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let given = peer.into();
        let interface = self.interface_of_datagrams(handle, &given)?;
        let peer = with_zone(end_of_packets(given), interface);
        let socket = self.sockets.udp(handle)?;
        let binding = socket.binding;
        if socket.forwarded.is_some() {
            // This socket belongs to a forwarded flow. The key of such a socket in the lookup table
            // contains its peer, so the peer cannot change.
            return Err(Error::AddressInUse(binding.shown_local()));
        }
        let may = (socket.broadcast, false);
        self.serving(interface, |stack| stack.check_destination(now, &binding, peer, may))?;
        self.sockets.udp_mut(handle)?.1.peer = Some(peer);
        Ok(())
    }

    /// Sends a datagram to the peer of a connected socket.
    ///
    /// # Errors
    /// [`Error::NotConnected`], an ICMP error about a datagram that was sent before, or an error of
    /// [`Stack::udp_send_to`].
    pub fn udp_send(&mut self, now: Instant, handle: UdpHandle, data: &[u8]) -> Result<(), Error> {
        let (_, socket) = self.sockets.udp_mut(handle)?;
        let peer = socket.peer.ok_or(Error::NotConnected)?;
        match socket.error.take() {
            Some(error) => Err(error),
            None => self.udp_send_to(now, handle, peer, data),
        }
    }

    /// Sends a datagram to `remote`. If `remote` is an IPv4-mapped IPv6 address
    /// (`::ffff:192.0.2.1`), the datagram is sent over IPv4.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the send queue is full; [`crate::UdpEvent::Writable`] follows when
    /// the queue has room. [`Error::MessageTooLong`] if the datagram is too large, or the reason
    /// why the destination is invalid.
    pub fn udp_send_to(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        remote: impl Into<SocketAddr>,
        data: &[u8],
    ) -> Result<(), Error> {
        self.advance_clock(now);
        let given = remote.into();
        let interface = self.interface_of_datagrams(handle, &given)?;
        let remote = end_of_packets(given);
        self.serving(interface, |stack| stack.send_datagram(now, handle, remote, data))
    }

    /// Returns the number of the interface over which a socket's datagrams to `given` leave. If
    /// `given` is a multicast group without a zone, and the application has set an interface for
    /// multicast, returns that interface.
    pub(super) fn interface_of_datagrams(
        &self,
        handle: UdpHandle,
        given: &SocketAddr,
    ) -> Result<u16, Error> {
        let chosen = self.sockets.udp(handle)?.multicast_interface;
        let has_no_zone = |given: &SocketAddr| match given {
            SocketAddr::V4(_) => true,
            SocketAddr::V6(given) => given.scope_id() == 0,
        };
        match chosen {
            Some(chosen) if given.ip().is_multicast() && has_no_zone(given) => {
                self.numbered(chosen)
            }
            _ => self.interface_for(given),
        }
    }

    fn send_datagram(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        remote: SocketAddr,
        data: &[u8],
    ) -> Result<(), Error> {
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let (binding, fragmentation) = (socket.binding, socket.fragmentation);
        let may = (socket.broadcast, socket.forwarded.is_some());
        // The send queue also limits the size of a datagram. A datagram that does not fit even into
        // an empty queue must be refused with `MessageTooLong`. After `WouldBlock`, the application
        // would wait forever for room in the queue.
        let largest = data_limit(socket.to_send.largest(), remote.ip());
        let to = self.check_destination(now, &binding, remote, may)?;
        let limit = to.limit(fragmentation).min(largest);
        if data.len() > limit {
            return Err(Error::MessageTooLong { limit });
        }
        if self.queue_datagram(index, &to, remote, data) { Ok(()) } else { Err(Error::WouldBlock) }
    }

    /// Removes the next datagram from the receive queue, and copies its data to `into`. Returns the
    /// number of copied bytes and the address of the sender. Bytes that do not fit into `into` are
    /// lost.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if the receive queue is empty; for a connected socket, an ICMP error
    /// that has arrived.
    pub fn udp_receive_from(
        &mut self,
        handle: UdpHandle,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddr), Error> {
        let received = self.udp_peek_from(handle, into)?;
        self.sockets.udp_mut(handle)?.1.received.drop_front();
        Ok(received)
    }

    /// Copies the next datagram to `into` like [`Stack::udp_receive_from`], but leaves the datagram
    /// in the receive queue.
    ///
    /// # Errors
    /// The errors of [`Stack::udp_receive_from`].
    pub fn udp_peek_from(
        &mut self,
        handle: UdpHandle,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddr), Error> {
        let (_, socket) = self.sockets.udp_mut(handle)?;
        if socket.peer.is_some()
            && let Some(error) = socket.error.take()
        {
            return Err(error);
        }
        let (&from, data) = socket.received.front().ok_or(Error::WouldBlock)?;
        let length = data.len().min(into.len());
        into[..length].copy_from_slice(&data[..length]);
        Ok((length, socket.binding.shown(from)))
    }

    /// Removes and returns the most recent error about a sent datagram: an ICMP error, or a next
    /// hop that did not answer address resolution. Each error is returned only once, by this method
    /// or by another. Returns `None` if there is no new error.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_take_error(&mut self, handle: UdpHandle) -> Result<Option<Error>, Error> {
        Ok(self.sockets.udp_mut(handle)?.1.error.take())
    }

    /// Allows or forbids the socket to send to broadcast addresses.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_broadcast(&mut self, handle: UdpHandle, broadcast: bool) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.broadcast = broadcast;
        Ok(())
    }

    /// May the socket send to broadcast addresses?
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_broadcast(&self, handle: UdpHandle) -> Result<bool, Error> {
        Ok(self.sockets.udp(handle)?.broadcast)
    }

    /// Sets whether the host may send datagrams of the socket in fragments.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_fragmentation(
        &mut self,
        handle: UdpHandle,
        fragmentation: Fragmentation,
    ) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.fragmentation = fragmentation;
        Ok(())
    }

    /// Returns whether the host may send datagrams of the socket in fragments.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_fragmentation(&self, handle: UdpHandle) -> Result<Fragmentation, Error> {
        Ok(self.sockets.udp(handle)?.fragmentation)
    }

    /// Returns the MTU of the path to the peer of a connected socket, as far as the host knows it.
    /// This is the maximum size of an IP packet in bytes. Larger packets are sent in fragments, or
    /// refused.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotConnected`], or the reason why there is no path.
    pub fn udp_path_mtu(&mut self, now: Instant, handle: UdpHandle) -> Result<usize, Error> {
        self.advance_clock(now);
        let peer = self.sockets.udp(handle)?.peer.ok_or(Error::NotConnected)?;
        Ok(self.datagram_path_to(now, peer.ip())?.mtu)
    }

    /// Sets the TTL or hop limit of datagrams to unicast and broadcast addresses that are sent from
    /// now on. The value 0 is sent as 1.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_hops(&mut self, handle: UdpHandle, hops: u8) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.hops = hops;
        Ok(())
    }

    /// Returns the TTL or hop limit of datagrams to unicast and broadcast addresses.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_hops(&self, handle: UdpHandle) -> Result<u8, Error> {
        Ok(self.sockets.udp(handle)?.hops)
    }

    /// Sets the IPv4 type of service or IPv6 traffic class, including the ECN bits, of datagrams
    /// that are sent from now on.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_set_type_of_service(
        &mut self,
        handle: UdpHandle,
        type_of_service: TypeOfService,
    ) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.type_of_service = type_of_service;
        Ok(())
    }

    /// Returns the IPv4 type of service or IPv6 traffic class of the socket's datagrams.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_type_of_service(&self, handle: UdpHandle) -> Result<TypeOfService, Error> {
        Ok(self.sockets.udp(handle)?.type_of_service)
    }

    /// Returns the local address and port of the socket. This is the address to which the socket is
    /// bound. If it is bound to all addresses and connected, it is the source address of its
    /// packets to the peer.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_local_addr(&self, handle: UdpHandle) -> Result<SocketAddr, Error> {
        let socket = self.sockets.udp(handle)?;
        let local = socket.binding.local();
        let peer = socket.peer.filter(|_| local.ip().is_unspecified());
        let source = peer.and_then(|peer| {
            let interface = self.interface_for(&peer).ok()?;
            let source = SocketAddr::new(self.source_over(interface, peer.ip())?, local.port());
            Some(with_zone(source, interface))
        });
        Ok(socket.binding.shown(source.unwrap_or(local)))
    }

    /// Returns the address and port of the peer of a connected socket.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotConnected`].
    pub fn udp_peer_addr(&self, handle: UdpHandle) -> Result<SocketAddr, Error> {
        let socket = self.sockets.udp(handle)?;
        Ok(socket.binding.shown(socket.peer.ok_or(Error::NotConnected)?))
    }

    /// Returns whether a socket at an IPv6 address excludes IPv4 ([`UdpOptions::only_v6`]).
    ///
    /// # Errors
    /// [`Error::Closed`]; [`Error::NotIpv6`] for a socket at an IPv4 address.
    pub fn udp_only_v6(&self, handle: UdpHandle) -> Result<bool, Error> {
        let binding = &self.sockets.udp(handle)?.binding;
        binding.only_v6().ok_or_else(|| Error::NotIpv6(binding.shown_local()))
    }

    /// Has the socket a datagram to receive, or, if it is connected, an error to return?
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn udp_is_readable(&self, handle: UdpHandle) -> Result<bool, Error> {
        let socket = self.sockets.udp(handle)?;
        Ok(!socket.received.is_empty() || (socket.peer.is_some() && socket.error.is_some()))
    }

    /// Closes the socket. The host still sends queued datagrams, as far as they fit into the host's
    /// reply queue. Received datagrams that were not read are lost.
    ///
    /// # Errors
    /// [`Error::Closed`] if the socket was already closed.
    pub fn udp_close(&mut self, handle: UdpHandle) -> Result<(), Error> {
        let (_, socket) = self.sockets.udp_mut(handle)?;
        let interface = socket.egress.interface();
        self.serving(interface, |stack| stack.close_udp(handle))
    }

    fn close_udp(&mut self, handle: UdpHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let (flows, forwarded) = (socket.flows(), socket.forwarded);
        while let Some(((), packet)) = socket.to_send.pop() {
            let kept = self.interface.replies.push(Reply::Packet, &packet);
            self.counted.ip.out_discards += u64::from(!kept);
        }
        flows.for_each(|flow| self.datagrams.remove(&flow, index));
        if let Some(forwarded) = forwarded {
            self.leave_udp_flows(index, forwarded);
        }
        self.interface.ready.remove(Sender::Socket(index));
        self.events.forget(index);
        let now = self.now;
        self.all_interfaces_mut().for_each(|interface| interface.groups.remove_socket(now, index));
        self.remove_socket(index);
        self.serving_each(|stack| stack.send_group_reports(now));
        self.schedule_replies();
        Ok(())
    }
}
