//! The options and the addresses of TCP connections.

use crate::error::Error;
use crate::handle::TcpHandle;
use crate::stack::Stack;
use core::net::SocketAddr;
use core::num::NonZeroU8;
use linerate_tcp::Connection;
use linerate_units::Instant;
use linerate_wire::TypeOfService;

impl Stack {
    /// Calls a function that changes options of the connection, and dispatches the change.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_configure<R>(
        &mut self,
        now: Instant,
        handle: TcpHandle,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Result<R, Error> {
        self.with_connection(now, handle, change)
    }

    /// Sets the type of service of segments from now on (RFC 9293 §3.9.1.9). It should be set
    /// before the connection sends, because packets of different classes can overtake each other.
    ///
    /// # Errors
    /// [`Error::Closed`].
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

    /// Sets the time to live of segments from now on (RFC 9293 §3.9.2). The default is 64.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_set_ttl(&mut self, handle: TcpHandle, ttl: NonZeroU8) -> Result<(), Error> {
        let (index, socket) = self.sockets.tcp_mut(handle)?;
        socket.headers.set_ttl(ttl);
        self.dispatch_step(index);
        self.batch.forget();
        Ok(())
    }

    /// Returns the local address and port.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_local_addr(&self, handle: TcpHandle) -> Result<SocketAddr, Error> {
        Ok(self.sockets.tcp(handle)?.flow().local())
    }

    /// Returns the address and port of the peer.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn tcp_peer_addr(&self, handle: TcpHandle) -> Result<SocketAddr, Error> {
        Ok(self.sockets.tcp(handle)?.flow().remote())
    }
}
