//! UDP sockets of linerate's host.

use super::StackMachine;
use super::calls::{DONT_WAIT, PEEK};
use super::errors::errno;
use super::sockets::Socket;
use crate::machine::{Answer, Output};
use crate::syntax::{Errno, Transfer};
use linerate_stack::{Error, UdpHandle};
use std::net::{Ipv4Addr, SocketAddr};

impl StackMachine {
    /// Returns whether a socket is a UDP socket.
    pub(super) fn has_datagrams(&self, fd: i32) -> bool {
        matches!(self.sockets.get(fd), Some(Socket::Datagrams { .. }))
    }

    /// Binds a UDP socket.
    pub(super) fn bind_datagrams(
        &mut self,
        fd: i32,
        local: SocketAddr,
    ) -> Result<UdpHandle, Errno> {
        let Some(Socket::Datagrams { handle, options }) = self.sockets.get_mut(fd) else {
            return Err(Errno::BADF);
        };
        let bound = self.host.stack_mut().udp_bind(local, options).map_err(errno)?;
        *handle = Some(bound);
        Ok(bound)
    }

    /// Returns the host's handle of a UDP socket. Binds the socket to a free port if it is not
    /// bound yet.
    fn datagrams(&mut self, fd: i32) -> Result<UdpHandle, Errno> {
        match self.sockets.get(fd) {
            Some(Socket::Datagrams { handle: Some(handle), .. }) => Ok(*handle),
            Some(Socket::Datagrams { handle: None, .. }) => {
                let anywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
                self.bind_datagrams(fd, self.end(anywhere))
            }
            _ => Err(Errno::BADF),
        }
    }

    /// Returns the default peer, for datagrams to which the script gives no address.
    fn usual_peer(&self) -> SocketAddr {
        SocketAddr::new(self.remote, self.ports.1)
    }

    pub(super) fn connect_datagrams(
        &mut self,
        fd: i32,
        address: Option<SocketAddr>,
    ) -> Result<Answer, Errno> {
        let handle = self.datagrams(fd)?;
        let peer = self.end(address.unwrap_or_else(|| self.usual_peer()));
        self.host.stack_mut().udp_connect(self.now, handle, peer).map_err(errno)?;
        Ok(Answer::of(0))
    }

    pub(super) fn send_datagram(&mut self, transfer: &Transfer) -> Option<Result<Answer, Errno>> {
        let handle = match self.datagrams(transfer.fd) {
            Ok(handle) => handle,
            Err(errno) => return Some(Err(errno)),
        };
        let waits = self.may_wait(transfer);
        let mut bytes = transfer.data.clone().unwrap_or_default();
        bytes.resize(transfer.count, 0);
        let peer = transfer.address.map(|peer| self.end(peer));
        let usual = self.usual_peer();
        let now = self.now;
        let stack = self.host.stack_mut();
        let is_connected = stack.udp_peer_addr(handle).is_ok();
        let sent = match peer {
            Some(peer) => stack.udp_send_to(now, handle, peer, &bytes),
            None if is_connected => stack.udp_send(now, handle, &bytes),
            None => stack.udp_send_to(now, handle, usual, &bytes),
        };
        match sent {
            Ok(()) => Some(Ok(Answer::of_count(bytes.len(), Output::Nothing))),
            Err(Error::WouldBlock) if waits => None,
            Err(error) => Some(Err(errno(error))),
        }
    }

    pub(super) fn receive_datagram(
        &mut self,
        transfer: &Transfer,
    ) -> Option<Result<Answer, Errno>> {
        let handle = match self.datagrams(transfer.fd) {
            Ok(handle) => handle,
            Err(errno) => return Some(Err(errno)),
        };
        let waits = self.may_wait(transfer);
        let mut bytes = vec![0; transfer.count];
        let stack = self.host.stack_mut();
        let received = if transfer.flags & PEEK == 0 {
            stack.udp_receive_from(handle, &mut bytes)
        } else {
            stack.udp_peek_from(handle, &mut bytes)
        };
        match received {
            Ok((count, _)) => {
                bytes.truncate(count);
                Some(Ok(Answer::of_count(count, Output::Bytes(bytes))))
            }
            Err(Error::WouldBlock) if waits => None,
            Err(error) => Some(Err(errno(error))),
        }
    }

    fn may_wait(&self, transfer: &Transfer) -> bool {
        !self.sockets.is_nonblocking(transfer.fd) && transfer.flags & DONT_WAIT == 0
    }

    /// Returns and clears the error that the network has reported about a datagram, if there is
    /// one.
    pub(super) fn take_datagram_error(&mut self, fd: i32) -> Result<Option<Errno>, Errno> {
        let handle = self.datagrams(fd)?;
        let error = self.host.stack_mut().udp_take_error(handle).map_err(errno)?;
        Ok(error.map(errno))
    }

    /// Returns the path MTU of a connected socket, in bytes, as the script expects it. If a script
    /// for IPv4 runs over IPv6, the path MTU is reduced by the difference between the header
    /// lengths.
    pub(super) fn datagram_path_mtu(&mut self, fd: i32) -> Result<usize, Errno> {
        let handle = self.datagrams(fd)?;
        let mtu = self.host.stack_mut().udp_path_mtu(self.now, handle).map_err(errno)?;
        Ok(mtu.saturating_sub(self.longer.into()))
    }
}
