//! What an application can do with UDP.

use crate::demux::Flow;
use crate::error::Error;
use crate::handle::UdpHandle;
use crate::ready::Sender;
use crate::stack::Stack;
use crate::tx::Reply;
use crate::udp::{UdpOptions, data_limit};
use core::net::{Ipv4Addr, SocketAddrV4};
use linerate_units::Instant;

impl Stack {
    /// Makes a socket at an address of this host, or at 0.0.0.0 for all of them. Port zero asks for
    /// an ephemeral port.
    ///
    /// # Errors
    /// [`Error::AddressNotOurs`], [`Error::AddressInUse`], [`Error::PortsExhausted`] or
    /// [`Error::TooManySockets`].
    pub fn udp_bind(
        &mut self,
        local: SocketAddrV4,
        options: &UdpOptions,
    ) -> Result<UdpHandle, Error> {
        if !local.ip().is_unspecified() && !self.interface.is_ours(*local.ip()) {
            return Err(Error::AddressNotOurs(*local.ip()));
        }
        self.sockets.has_room()?;
        let local = self.choose_udp_port(local)?;
        let index = self.insert_udp(local, options);
        self.sockets.udp_handle(index).ok_or(Error::Closed)
    }

    fn choose_udp_port(&mut self, local: SocketAddrV4) -> Result<SocketAddrV4, Error> {
        let datagrams = &self.datagrams;
        let is_taken =
            |port| datagrams.get(Flow::bound(SocketAddrV4::new(*local.ip(), port))).is_some();
        if local.port() != 0 {
            return if is_taken(local.port()) {
                Err(Error::AddressInUse(local))
            } else {
                Ok(local)
            };
        }
        let anyone = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let port = self.udp_ports.choose(*local.ip(), anyone, is_taken);
        port.map(|port| SocketAddrV4::new(*local.ip(), port)).ok_or(Error::PortsExhausted(anyone))
    }

    /// Names the peer: [`Stack::udp_send`] sends to it, datagrams of others are refused, and what
    /// the network reports is told by the next call.
    ///
    /// # Errors
    /// [`Error::Closed`], or why the peer cannot be sent to.
    pub fn udp_connect(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        peer: SocketAddrV4,
    ) -> Result<(), Error> {
        self.pass_time(now);
        let socket = self.sockets.udp(handle)?;
        let (bound, broadcast) = (*socket.local.ip(), socket.broadcast);
        self.judge_way(now, bound, peer, broadcast)?;
        self.sockets.udp_mut(handle)?.1.peer = Some(peer);
        Ok(())
    }

    /// Sends a datagram to the peer of a connected socket.
    ///
    /// # Errors
    /// [`Error::NotConnected`], what the network has reported since the last call, or as
    /// [`Stack::udp_send_to`].
    pub fn udp_send(&mut self, now: Instant, handle: UdpHandle, data: &[u8]) -> Result<(), Error> {
        let (_, socket) = self.sockets.udp_mut(handle)?;
        let peer = socket.peer.ok_or(Error::NotConnected)?;
        match socket.error.take() {
            Some(error) => Err(error),
            None => self.udp_send_to(now, handle, peer, data),
        }
    }

    /// Sends a datagram to `remote`.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if too much waits for the link; a [`crate::UdpEvent::Writable`] tells
    /// when there is room. [`Error::MessageTooLong`], or why `remote` cannot be sent to.
    pub fn udp_send_to(
        &mut self,
        now: Instant,
        handle: UdpHandle,
        remote: SocketAddrV4,
        data: &[u8],
    ) -> Result<(), Error> {
        self.pass_time(now);
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let (bound, broadcast) = (*socket.local.ip(), socket.broadcast);
        // One for which there is never room would be waited with for ever.
        let longest = data_limit(socket.to_send.largest());
        let (source, limit) = self.judge_way(now, bound, remote, broadcast)?;
        let limit = limit.min(longest);
        if data.len() > limit {
            return Err(Error::MessageTooLong { limit });
        }
        if self.queue_datagram(index, source, remote, data) {
            Ok(())
        } else {
            Err(Error::WouldBlock)
        }
    }

    /// Takes the next received datagram: returns how many bytes of it were copied to `into`, and who
    /// sent it. What does not fit is lost.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if there is none; of a connected socket, what the network has reported.
    pub fn udp_receive_from(
        &mut self,
        handle: UdpHandle,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddrV4), Error> {
        let received = self.udp_peek_from(handle, into)?;
        self.sockets.udp_mut(handle)?.1.received.drop_front();
        Ok(received)
    }

    /// Copies the next received datagram as [`Stack::udp_receive_from`] does, and leaves it there.
    ///
    /// # Errors
    /// As [`Stack::udp_receive_from`].
    pub fn udp_peek_from(
        &mut self,
        handle: UdpHandle,
        into: &mut [u8],
    ) -> Result<(usize, SocketAddrV4), Error> {
        let (_, socket) = self.sockets.udp_mut(handle)?;
        if socket.peer.is_some()
            && let Some(error) = socket.error.take()
        {
            return Err(error);
        }
        let (&from, data) = socket.received.front().ok_or(Error::WouldBlock)?;
        let length = data.len().min(into.len());
        into[..length].copy_from_slice(&data[..length]);
        Ok((length, from))
    }

    /// Takes what the network has reported about a datagram of this socket.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn udp_take_error(&mut self, handle: UdpHandle) -> Result<Option<Error>, Error> {
        Ok(self.sockets.udp_mut(handle)?.1.error.take())
    }

    /// Allows or forbids the socket to send to all hosts of a network.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn udp_set_broadcast(&mut self, handle: UdpHandle, broadcast: bool) -> Result<(), Error> {
        self.sockets.udp_mut(handle)?.1.broadcast = broadcast;
        Ok(())
    }

    /// May the socket send to all hosts of a network?
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn udp_broadcast(&self, handle: UdpHandle) -> Result<bool, Error> {
        Ok(self.sockets.udp(handle)?.broadcast)
    }

    /// What the socket is bound to.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn udp_local_addr(&self, handle: UdpHandle) -> Result<SocketAddrV4, Error> {
        Ok(self.sockets.udp(handle)?.local)
    }

    /// The peer of a connected socket.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::NotConnected`].
    pub fn udp_peer_addr(&self, handle: UdpHandle) -> Result<SocketAddrV4, Error> {
        self.sockets.udp(handle)?.peer.ok_or(Error::NotConnected)
    }

    /// Is there a datagram to receive?
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn udp_is_readable(&self, handle: UdpHandle) -> Result<bool, Error> {
        let socket = self.sockets.udp(handle)?;
        Ok(!socket.received.is_empty() || (socket.peer.is_some() && socket.error.is_some()))
    }

    /// Closes the socket. What it was told to send the host sends all the same, as far as it has room for that among
    /// its replies; datagrams that were not received are lost.
    ///
    /// # Errors
    /// [`Error::Closed`] if it was closed before.
    pub fn udp_close(&mut self, handle: UdpHandle) -> Result<(), Error> {
        let (index, socket) = self.sockets.udp_mut(handle)?;
        let local = socket.local;
        while let Some(((), packet)) = socket.to_send.pop() {
            let kept = self.replies.push(Reply::Packet, &packet);
            self.counted.ip.out_discards += u64::from(!kept);
        }
        self.datagrams.remove(Flow::bound(local), index);
        self.ready.remove(Sender::Socket(index));
        self.events.forget(index);
        self.sockets.remove(index);
        self.call_replies();
        Ok(())
    }
}
