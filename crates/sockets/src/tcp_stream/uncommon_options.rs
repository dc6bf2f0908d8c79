//! Options that few programs set: corking, the low-water mark of unsent data, and the FIN-WAIT-2
//! timeout of a dropped stream.

use super::TcpStream;
use linerate_tcp::Connection;
use std::io;
use std::time::Duration;

impl TcpStream {
    /// Holds back partial segments (`TCP_CORK`), so that several small writes leave together.
    /// Corking ends when it is switched off, when the stream is closed, and after a retransmission
    /// timeout without data in flight.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.configure(|connection| connection.set_cork(cork))
    }

    /// Are partial segments held back?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn cork(&self) -> io::Result<bool> {
        self.inspect(Connection::cork)
    }

    /// Makes writes wait while this many written bytes are unsent (`TCP_NOTSENT_LOWAT`), so that
    /// the application can decide late what it sends next. `None`, the default, leaves only the
    /// limit of the send buffer.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_unsent_low_water(&self, bytes: Option<u32>) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_unsent_low_water(bytes))
        })?)
    }

    /// Returns the limit of unsent bytes, if it is set.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn unsent_low_water(&self) -> io::Result<Option<u32>> {
        self.inspect(Connection::unsent_low_water)
    }

    /// Sets how long the host waits for the peer's FIN after this stream was dropped
    /// (`TCP_LINGER2`). `None` selects the value of the configuration.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_orphan_timeout(&self, timeouts: Option<Duration>) -> io::Result<()> {
        self.configure(|connection| connection.set_orphan_timeout(timeouts.map(Into::into)))
    }

    /// Returns how long the host waits for the peer's FIN after this stream was dropped.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn orphan_timeout(&self) -> io::Result<Duration> {
        Ok(self.inspect(Connection::orphan_timeout)?.into())
    }
}
