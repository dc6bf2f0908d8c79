//! The receive buffer of a sink's listening socket, which one run at a time may set.
//!
//! The window scale and the first window of a connection depend on the receive buffer that the
//! listening socket has when the SYN arrives. At the accepted socket, the buffer could only be set
//! after the handshake, which is too late. Each run therefore locks the buffer, sets its size,
//! accepts its data connection, and restores the kernel's tuning. Another peer that connects in
//! this time also gets the run's buffer, which does no harm.

use crate::control::SinkTcp;
use crate::socket::Listening;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A lock on the receive buffer of the listening socket.
#[derive(Debug)]
pub(super) struct ReceiveBufferLock<'a> {
    listener: &'a Listening,
    /// Receive buffer of the socket before any run sets it, in bytes as `getsockopt` reports them.
    default_size: u64,
    /// Does a run hold the lock?
    is_locked: Mutex<bool>,
    /// Condition that is notified when the lock is released.
    unlocked: Condvar,
}

impl<'a> ReceiveBufferLock<'a> {
    /// Creates an unlocked lock for the receive buffer of `listener`.
    pub(super) fn new(listener: &'a Listening) -> io::Result<Self> {
        let default_size = listener.default_receive_buffer()?;
        Ok(Self { listener, default_size, is_locked: Mutex::new(false), unlocked: Condvar::new() })
    }

    /// Returns the TCP implementation of the listening socket.
    pub(super) const fn tcp(&self) -> SinkTcp {
        match self.listener {
            Listening::Kernel(_) => SinkTcp::Kernel,
            Listening::Own { .. } => SinkTcp::Linerate,
        }
    }

    /// Returns the receive buffer that would be granted for a request of `receive_buffer` bytes, in
    /// bytes as `getsockopt` reports it.
    pub(super) fn would_grant(&self, receive_buffer: u64) -> io::Result<u64> {
        self.listener.would_grant(receive_buffer)
    }

    /// Locks the buffer; returns `None` if another run still holds the lock after `timeout`.
    pub(super) fn lock_buffer(&self, timeout: Duration) -> Option<ReceiveBufferGuard<'_>> {
        let is_locked = self.is_locked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.unlocked.wait_timeout_while(is_locked, timeout, |is_locked| *is_locked);
        let (mut is_locked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_locked {
            return None;
        }
        *is_locked = true;
        Some(ReceiveBufferGuard { lock: self })
    }
}

/// The locked state of the receive buffer. Dropping the guard restores the buffer's default, and
/// releases the lock.
#[derive(Debug)]
pub(super) struct ReceiveBufferGuard<'a> {
    lock: &'a ReceiveBufferLock<'a>,
}

impl ReceiveBufferGuard<'_> {
    /// Sets the receive buffer and the MSS for all connections that arrive while the lock is held,
    /// both in bytes. `None` keeps the default. Returns the granted buffer in bytes, as
    /// `getsockopt` reports it.
    pub(super) fn set(
        &self,
        receive_buffer: Option<u64>,
        max_segment: Option<u16>,
    ) -> io::Result<u64> {
        self.lock.listener.set_receive(receive_buffer, max_segment)
    }
}

impl Drop for ReceiveBufferGuard<'_> {
    fn drop(&mut self) {
        // Kernels before 5.14 cannot return a socket to automatic tuning, so this call fails there.
        // Peers that connect without a run then get a fixed buffer of the default size.
        let _ = self.lock.listener.restore_receive(self.lock.default_size);
        *self.lock.is_locked.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.lock.unlocked.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Network, Options};
    use std::net::TcpStream;

    fn listening() -> Listening {
        let any_port = "127.0.0.1:0".parse().unwrap();
        Listening::at(&Network::Kernel, any_port, &Options::default()).unwrap()
    }

    fn receive_buffer_of_next(listener: &Listening) -> u64 {
        let _near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.receive_buffer().unwrap()
    }

    #[test]
    fn the_size_is_restored_when_the_lock_is_released() {
        let listener = listening();
        let default_size = receive_buffer_of_next(&listener);
        let receive_buffer = ReceiveBufferLock::new(&listener).unwrap();
        let guard = receive_buffer.lock_buffer(Duration::ZERO).unwrap();
        assert_eq!(guard.set(Some(30_000), Some(1_460)).unwrap(), 60_000);
        assert_eq!(receive_buffer_of_next(&listener), 60_000);
        drop(guard);
        assert_eq!(receive_buffer_of_next(&listener), default_size);
    }

    #[test]
    fn one_run_at_a_time_holds_the_lock() {
        let listener = listening();
        let receive_buffer = ReceiveBufferLock::new(&listener).unwrap();
        let guard = receive_buffer.lock_buffer(Duration::ZERO).unwrap();
        assert!(receive_buffer.lock_buffer(Duration::ZERO).is_none());
        drop(guard);
        assert!(receive_buffer.lock_buffer(Duration::ZERO).is_some());
    }
}
