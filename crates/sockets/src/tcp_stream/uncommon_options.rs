//! Options that few programs set: corking, the low-water mark of unsent data, the maximum pacing
//! rate, the FIN-WAIT-2 timeout of a dropped stream, and the fields of the IP header.

use super::TcpStream;
use crate::error::Error;
use linerate_tcp::Connection;
use linerate_units::Rate;
use linerate_wire::TypeOfService;
use std::io;
use std::num::NonZeroU8;
use std::time::Duration;

impl TcpStream {
    /// Sets the time to live (IPv4) or hop limit (IPv6) of the packets that the connection sends
    /// from now on. The default is 64.
    ///
    /// # Errors
    /// `InvalidInput` for zero, and above 255.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let valid = u8::try_from(ttl).ok().and_then(NonZeroU8::new);
        let invalid =
            Error::InvalidOption { option: "time to live", value: ttl, range: "1 to 255" };
        let valid = valid.ok_or(invalid)?;
        Ok(self.socket.call(|stack, _| stack.tcp_set_ttl(self.socket.handle, valid))?)
    }

    /// Returns the time to live or hop limit of packets that the connection sends.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn ttl(&self) -> io::Result<u32> {
        Ok(self.socket.call(|stack, _| stack.tcp_ttl(self.socket.handle))?.into())
    }

    /// Sets the differentiated services code point (RFC 2474) of the packets that the connection
    /// sends from now on. Set it before the connection sends data: packets with different code
    /// points can overtake each other, which looks like reordering.
    ///
    /// # Errors
    /// `InvalidInput` above 63.
    pub fn set_dscp(&self, dscp: u8) -> io::Result<()> {
        let service = TypeOfService::default().with_dscp(dscp);
        let invalid = Error::InvalidOption { option: "DSCP", value: dscp.into(), range: "0 to 63" };
        let service = service.ok_or(invalid)?;
        let handle = self.socket.handle;
        Ok(self.socket.call(|stack, _| stack.tcp_set_type_of_service(handle, service))?)
    }

    /// Returns the differentiated services code point of packets that the connection sends.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn dscp(&self) -> io::Result<u8> {
        Ok(self.socket.call(|stack, _| stack.tcp_type_of_service(self.socket.handle))?.dscp())
    }

    /// Selects whether partial segments are held back (`TCP_CORK`), so that several small writes
    /// share a segment. A partial segment is sent when this option is switched off, or when the
    /// stream is closed. It is also sent if nothing has been in flight for one retransmission
    /// timeout (RTO).
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_cork(&self, cork: bool) -> io::Result<()> {
        self.configure(|connection| connection.set_cork(cork))
    }

    /// Are partial segments held back ([`TcpStream::set_cork`])?
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn cork(&self) -> io::Result<bool> {
        self.inspect(Connection::cork)
    }

    /// Limits the number of unsent bytes (`TCP_NOTSENT_LOWAT`): writes wait while `bytes` or more
    /// are unsent. With a low limit, the application writes data only shortly before it is sent, so
    /// it can decide late what to send. With `None`, the default, only the size of the send buffer
    /// limits unsent bytes.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_unsent_low_water(&self, bytes: Option<u32>) -> io::Result<()> {
        let handle = self.socket.handle;
        Ok(self.socket.call_and_wake(|stack, now| {
            stack.tcp_configure(now, handle, |connection| connection.set_unsent_low_water(bytes))
        })?)
    }

    /// Returns the limit of unsent bytes, or `None` if there is none.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn unsent_low_water(&self) -> io::Result<Option<u32>> {
        self.inspect(Connection::unsent_low_water)
    }

    /// Limits the rate at which the connection sends, in bytes of data per second
    /// (`SO_MAX_PACING_RATE`). The connection then sends bursts at even intervals. A burst has as
    /// much data as the rate allows in one millisecond, but at least two segments. With `None`, the
    /// default, only congestion control and the windows limit the rate.
    ///
    /// # Errors
    /// `InvalidInput` for zero.
    pub fn set_max_pacing_rate(&self, bytes_per_second: Option<u64>) -> io::Result<()> {
        if bytes_per_second == Some(0) {
            let range = "1 and more";
            return Err(
                Error::InvalidOption { option: "maximum pacing rate", value: 0, range }.into()
            );
        }
        let rate = bytes_per_second.map(Rate::from_bytes_per_second);
        self.configure(|connection| connection.set_max_pacing_rate(rate))
    }

    /// Returns the limit of the sending rate in bytes of data per second; `None` if none is set.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn max_pacing_rate(&self) -> io::Result<Option<u64>> {
        let rate = self.inspect(Connection::max_pacing_rate)?;
        Ok(rate.map(|rate| rate.bits_per_second() / 8))
    }

    /// Sets how long the host waits in FIN-WAIT-2 for the peer's FIN after this stream was dropped
    /// (`TCP_LINGER2`). `None` selects the value of the configuration.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn set_orphan_timeout(&self, timeouts: Option<Duration>) -> io::Result<()> {
        self.configure(|connection| connection.set_orphan_timeout(timeouts.map(Into::into)))
    }

    /// Returns how long the host waits in FIN-WAIT-2 for the peer's FIN after this stream was
    /// dropped.
    ///
    /// # Errors
    /// If the network has panicked.
    pub fn orphan_timeout(&self) -> io::Result<Duration> {
        Ok(self.inspect(Connection::orphan_timeout)?.into())
    }
}
