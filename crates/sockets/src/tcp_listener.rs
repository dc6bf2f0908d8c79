//! A listener that is used like `std::net::TcpListener`.

use crate::error::Error;
use crate::patience::Side;
use crate::shared::{Access, Shared};
use crate::socket::{Handle, Socket};
use crate::tcp_stream::TcpStream;
use crate::waiters::SocketId;
use linerate_stack::{Error as HostError, ListenHandle, ListenOptions, ListenStatistics, Stack};
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;

/// A place at which connections arrive. The last clone to go ends it; connections that nobody has
/// accepted are then reset.
#[derive(Debug)]
pub struct TcpListener {
    socket: Arc<Socket<ListenHandle>>,
}

impl TcpListener {
    pub(crate) fn open(
        shared: &Arc<Shared>,
        local: SocketAddrV4,
        options: &ListenOptions,
    ) -> io::Result<Self> {
        let mut access = shared.access()?;
        access.check_running()?;
        let handle = access.stack.tcp_listen(local, options).map_err(Error::from)?;
        Ok(Self { socket: Arc::new(Socket::new(shared, &mut access, handle)) })
    }

    /// Waits for the next connection, and returns it with the address of its peer.
    ///
    /// # Errors
    /// `WouldBlock` in non-blocking mode if there is none; `InvalidInput` after
    /// [`TcpListener::shutdown`]; `NetworkDown` when the network has ended.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self.socket.block(Side::Read, |state, _| {
            let Some((handle, peer)) = state.stack.tcp_accept(self.socket.handle) else {
                state.stack.tcp_listen_addr(self.socket.handle)?;
                return Err(HostError::WouldBlock);
            };
            Ok((Socket::new(&self.socket.shared, state, handle), peer))
        });
        let (socket, peer) = accepted.map_err(|error| match error {
            Error::Host(HostError::Closed) => Error::ListenerShutDown,
            error => error,
        })?;
        Ok((TcpStream::accepted(socket), peer.into()))
    }

    /// The connections that arrive, without end.
    #[must_use]
    pub const fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// Ends the listener although there are clones of it, or threads that wait for a connection: they
    /// get an error. `std::net` has no word for this.
    ///
    /// # Errors
    /// `NotConnected` if it was ended before.
    pub fn shutdown(&self) -> io::Result<()> {
        Ok(self.socket.call_and_wake(|stack, now| stack.tcp_listen_close(now, self.socket.handle))?)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.call(|stack, _| stack.tcp_listen_addr(self.socket.handle))?.into())
    }

    /// How many connections wait, and what the listener has counted: SYNs that were dropped, cookies.
    ///
    /// # Errors
    /// `NotConnected` after [`TcpListener::shutdown`].
    pub fn statistics(&self) -> io::Result<ListenStatistics> {
        Ok(self.socket.call(|stack, _| stack.tcp_listen_statistics(self.socket.handle))?)
    }

    /// The same listener once more. The non-blocking mode is common to all clones.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { socket: Arc::clone(&self.socket) })
    }

    /// Lets [`TcpListener::accept`] fail with `WouldBlock` instead of waiting. Connections that it
    /// accepts wait as usual.
    ///
    /// # Errors
    /// None; `std::net` has a system call here that can fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.socket.patience.set_nonblocking(nonblocking);
        Ok(())
    }
}

/// The connections that arrive at a listener. It never ends by itself; after the end of the network
/// each is an error.
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}

impl Handle for ListenHandle {
    fn id(self) -> SocketId {
        SocketId::Listen(self)
    }

    /// One event stands for all connections that came since the last.
    fn has_more(self, _: &Stack, _: Side) -> bool {
        true
    }

    fn close(self, access: &mut Access<'_>, _: &Shared) {
        let now = access.now();
        // It may have been shut down already.
        let _ = access.stack.tcp_listen_close(now, self);
    }
}
