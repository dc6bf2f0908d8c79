//! Methods of the application for the options and the addresses of TCP connections.

use crate::error::Error;
use crate::handle::TcpHandle;
use crate::stack::Stack;
use core::net::SocketAddr;
use core::num::NonZeroU8;
use linerate_tcp::Connection;
use linerate_units::Instant;
use linerate_wire::TypeOfService;

/// # Application calls: options of connections
impl Stack {
    /// Calls `change`, which can set options of the connection, and applies the effects of the new
    /// options. Returns the result of `change`.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_configure<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, Error> {
        self.with_connection(now, handle, change)
    }

    /// Sets the type of service of the segments that are sent from now on (RFC 9293 §3.9.1.9).
    /// Applications should set it before the connection sends, because packets of different classes
    /// can overtake each other.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_set_type_of_service(
        &mut self,
        handle: TcpHandle,
        type_of_service: TypeOfService,
    ) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_type_of_service(type_of_service);
        self.dispatch_step(index);
        self.batch.forget();
        Ok(())
    }

    /// Sets the time to live, or hop limit, of the segments that are sent from now on (RFC 9293
    /// §3.9.2). The default is 64.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_set_ttl(&mut self, handle: TcpHandle, ttl: NonZeroU8) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_ttl(ttl);
        self.dispatch_step(index);
        self.batch.forget();
        Ok(())
    }

    /// Returns the time to live, or hop limit, of the connection's segments.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_ttl(&self, handle: TcpHandle) -> Result<u8, Error> {
        let [_, ttl] = self.sockets.tcp(handle)?.headers.service();
        Ok(ttl)
    }

    /// Returns the type of service of the connection's segments. Its ECN bits are zero.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_type_of_service(&self, handle: TcpHandle) -> Result<TypeOfService, Error> {
        let [type_of_service, _] = self.sockets.tcp(handle)?.headers.service();
        Ok(TypeOfService::from_byte(type_of_service))
    }

    /// Returns the local address and port of the connection. An IPv4 address is returned as an
    /// IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) if the connection was opened to such an
    /// address, or accepted by a listener for both IP versions. The scope ID of an IPv6 link-local
    /// address is the number of its interface.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_local_addr(&self, handle: TcpHandle) -> Result<SocketAddr, Error> {
        Ok(self.sockets.tcp(handle)?.shown_local())
    }

    /// Returns the address and port of the peer, in the form that [`Stack::tcp_local_addr`]
    /// describes.
    ///
    /// # Errors
    /// [`Error::Closed`] if the handle is closed.
    pub fn tcp_peer_addr(&self, handle: TcpHandle) -> Result<SocketAddr, Error> {
        Ok(self.sockets.tcp(handle)?.shown_remote())
    }
}
