//! The receive buffer of the listening socket, which one run at a time may set.
//!
//! A connection's window scale and first window are decided by the listening socket's buffer when
//! the SYN arrives; set on the accepted socket it would be too late. So a run takes its turn at the
//! door: it sets the buffer, its data connection comes in, and the buffer is given back to the
//! kernel's tuning. A plain peer that comes in meanwhile gets the run's buffer; it has no wishes.

use crate::control::SinkTcp;
use crate::socket::Listening;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The listening socket's options and whose turn it is to set them.
#[derive(Debug)]
pub(super) struct Door<'a> {
    listener: &'a Listening,
    /// The receive buffer that the socket has by itself, as it reads back.
    usual: u64,
    taken: Mutex<bool>,
    freed: Condvar,
}

impl<'a> Door<'a> {
    /// The door that `listener` is.
    pub(super) fn new(listener: &'a Listening) -> io::Result<Self> {
        let usual = listener.usual_receive_buffer()?;
        Ok(Self { listener, usual, taken: Mutex::new(false), freed: Condvar::new() })
    }

    /// Whose TCP is behind it.
    pub(super) const fn tcp(&self) -> SinkTcp {
        match self.listener {
            Listening::Kernel(_) => SinkTcp::Kernel,
            Listening::Own { .. } => SinkTcp::Linerate,
        }
    }

    /// The receive buffer that a run would be granted, as it reads back.
    pub(super) fn would_grant(&self, receive_buffer: u64) -> io::Result<u64> {
        self.listener.would_grant(receive_buffer)
    }

    /// A turn at the door, with nothing set yet; none if nobody leaves it in time.
    pub(super) fn turn(&self, patience: Duration) -> Option<Turn<'_>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.freed.wait_timeout_while(taken, patience, |taken| *taken);
        let (mut taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *taken {
            return None;
        }
        *taken = true;
        Some(Turn { door: self })
    }
}

/// A turn at the door. Dropping it puts everything back and lets the next one in.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    door: &'a Door<'a>,
}

impl Turn<'_> {
    /// Sets what the next connections will have, and says what was granted.
    pub(super) fn set(
        &self,
        receive_buffer: Option<u64>,
        max_segment: Option<u16>,
    ) -> io::Result<u64> {
        self.door.listener.set_receive(receive_buffer, max_segment)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Kernels before 5.14 cannot go back to tuning: plain peers then have the usual buffer.
        let _ = self.door.listener.put_back_receive(self.door.usual);
        *self.door.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.door.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Network, Options};
    use std::net::TcpStream;

    fn listening() -> Listening {
        let anywhere = "127.0.0.1:0".parse().unwrap();
        Listening::at(&Network::Kernel, anywhere, &Options::default()).unwrap()
    }

    fn receive_buffer_of_next(listener: &Listening) -> u64 {
        let _near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.receive_buffer().unwrap()
    }

    #[test]
    fn what_is_set_holds_for_the_turn_and_no_longer() {
        let listener = listening();
        let usual = receive_buffer_of_next(&listener);
        let door = Door::new(&listener).unwrap();
        let turn = door.turn(Duration::ZERO).unwrap();
        assert_eq!(turn.set(Some(30_000), Some(1_460)).unwrap(), 60_000);
        assert_eq!(receive_buffer_of_next(&listener), 60_000);
        drop(turn);
        assert_eq!(receive_buffer_of_next(&listener), usual);
    }

    #[test]
    fn there_is_one_turn_at_a_time() {
        let listener = listening();
        let door = Door::new(&listener).unwrap();
        let turn = door.turn(Duration::ZERO).unwrap();
        assert!(door.turn(Duration::ZERO).is_none());
        drop(turn);
        assert!(door.turn(Duration::ZERO).is_some());
    }
}
