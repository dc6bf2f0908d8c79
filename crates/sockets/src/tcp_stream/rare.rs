//! What few programs set of a connection: where its segments end, how much of what was written may be unsent,
//! and how long the host waits for the peer on its own.

use super::TcpStream;
use linerate_tcp::Connection;
use std::io;
use std::time::Duration;

impl TcpStream {
    /// Holds back segments that are not full (`TCP_CORK`), so that several small writes leave together. It ends
    /// when it is switched off, when the stream is closed, and when nothing has been in flight for a
    /// retransmission timeout.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.configure(|connection| connection.set_cork(cork))
    }

    /// Are segments that are not full held back?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn cork(&self) -> io::Result<bool> {
        self.look(Connection::cork)
    }

    /// Lets writes wait while so many bytes of what was written are unsent (`TCP_NOTSENT_LOWAT`), so that the
    /// application decides late what it sends next; `None`, the rule, leaves it to the size of the send buffer.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_unsent_low_water(&self, bytes: Option<u32>) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_unsent_low_water(bytes))
        })?)
    }

    /// How many bytes of what was written may be unsent for a write to be taken, if that was set.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn unsent_low_water(&self) -> io::Result<Option<u32>> {
        self.look(Connection::unsent_low_water)
    }

    /// How long the host waits for the peer's end after this stream was dropped (`TCP_LINGER2`); `None` for
    /// what the configuration says.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_orphan_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.configure(|connection| connection.set_orphan_patience(patience.map(Into::into)))
    }

    /// How long the host waits for the peer's end after this stream was dropped.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn orphan_patience(&self) -> io::Result<Duration> {
        Ok(self.look(Connection::orphan_patience)?.into())
    }
}
