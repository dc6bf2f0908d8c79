//! The sending end of a transfer, with linerate's TCP.

use super::counters;
use super::host::End;
use super::transfer::Transfer;
use crate::bench_error::BenchError;
use linerate_ends::workload::Pattern;
use linerate_evidence::EndCounters;
use linerate_link::Readiness;
use linerate_stack::{ConnectOptions, Error, Link, TcpHandle};
use linerate_tcp::{Config, State};
use linerate_units::{Duration, Instant};
use std::net::SocketAddr;

/// Maximum time for the close of the connection. It starts when the run's maximum duration has
/// passed.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The sending end of a transfer, which writes the data.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    transfer: &'a Transfer<'a>,
    pattern: Pattern,
    /// The data that is passed to one write.
    block: Vec<u8>,
    /// Number of bytes of `block` that have already been written.
    offset: usize,
    /// Total number of bytes written so far.
    written: u64,
}

/// The result of a transfer at its sending end.
#[derive(Debug)]
pub(crate) struct WriteResult {
    /// Time of the first write.
    pub(crate) began: Instant,
    /// Counters of the connection and the host.
    pub(crate) counters: EndCounters,
    /// Size of the connection's send buffer, in bytes.
    pub(crate) send_buffer: u64,
}

impl<'a> Source<'a> {
    /// Creates a source that has not written any data.
    pub(crate) fn new(transfer: &'a Transfer<'a>) -> Self {
        let pattern = Pattern::new(transfer.request.seed);
        let mut block = vec![0; transfer.request.write_size];
        pattern.fill(0, &mut block);
        Self { transfer, pattern, block, offset: 0, written: 0 }
    }

    /// Connects to `peer`, writes all data, and completes the close.
    ///
    /// # Errors
    /// The connection or the link fails, or the run is interrupted.
    pub(crate) fn run<L: Link + Readiness>(
        mut self,
        end: &mut End<L>,
        peer: SocketAddr,
        config: &Config,
    ) -> Result<WriteResult, BenchError> {
        let _ending = self.transfer.ending();
        let options = ConnectOptions { config: Some(*config), ..ConnectOptions::default() };
        let connected = end.stack().tcp_connect(End::<L>::now(), peer, &options);
        let handle = connected.map_err(|error| self.lost(error))?;
        self.wait_for_handshake(end, handle)?;
        self.transfer.begin(End::<L>::now());
        self.write_all(end, handle)?;
        let given = self.given(end, handle, config.send_buffer.initial());
        self.finish_close(end, handle)?;
        given
    }

    /// Waits until the connection is established.
    fn wait_for_handshake<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        while self.state(end, handle)? != State::Established {
            self.transfer.check_interrupt()?;
            end.turn(End::<L>::now())?;
        }
        Ok(())
    }

    /// Writes all data and closes the sending direction. Returns when the peer has acknowledged
    /// everything, or when the sink has ended the run.
    fn write_all<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        let mut is_shut = false;
        while !self.transfer.is_over() {
            let now = End::<L>::now();
            self.write(end, handle, now)?;
            if self.written == self.transfer.request.bytes && !is_shut {
                end.stack().tcp_shutdown_write(now, handle).map_err(|error| self.lost(error))?;
                is_shut = true;
            }
            if is_shut && self.state(end, handle)? != State::FinWait1 {
                break;
            }
            self.transfer.check_interrupt()?;
            end.turn(now)?;
        }
        Ok(())
    }

    /// Writes as much data as fits into the send buffer.
    fn write<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
        now: Instant,
    ) -> Result<(), BenchError> {
        loop {
            let left = self.transfer.request.bytes - self.written;
            let rest = &self.block[self.offset..];
            let rest = &rest[..usize::try_from(left).unwrap_or(usize::MAX).min(rest.len())];
            if rest.is_empty() {
                return Ok(());
            }
            let taken = match end.stack().tcp_write(now, handle, rest) {
                Ok(0) => return Ok(()),
                Ok(taken) => taken,
                // If the sink has ended the run, it may have reset the connection, which is not an
                // error.
                Err(_) if self.transfer.is_over() => return Ok(()),
                Err(error) => return Err(self.lost(error)),
            };
            self.written += taken as u64;
            self.offset += taken;
            if self.offset == self.block.len() {
                self.next_block();
            }
        }
    }

    /// Prepares the next block of data. If the sink does not compare the data, the previous block
    /// is written again.
    fn next_block(&mut self) {
        self.offset = 0;
        if self.transfer.request.verify {
            self.pattern.fill(self.written, &mut self.block);
        }
    }

    /// Returns the result of the sending end. `send_buffer` is the size of the send buffer in
    /// bytes.
    fn given<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
        send_buffer: usize,
    ) -> Result<WriteResult, BenchError> {
        let stack = end.stack();
        let connection = stack.tcp(handle).ok_or_else(|| self.lost(Error::Closed))?;
        let counters = counters::of(&connection, stack);
        Ok(WriteResult { began: self.transfer.began(), counters, send_buffer: send_buffer as u64 })
    }

    /// Waits for the peer's FIN and acknowledges it, so that both ends close cleanly. The sink
    /// sends the FIN when it has read all data, which may take as long as the run.
    fn finish_close<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        let timeout = self.transfer.deadline() + TIMEOUT;
        while !self.transfer.is_over() {
            let now = End::<L>::now();
            let state = self.state(end, handle)?;
            if matches!(state, State::TimeWait | State::Closed) && !end.stack().wants_transmit()
                || now > timeout
            {
                break;
            }
            end.turn(now)?;
        }
        Ok(())
    }

    /// Returns the state of the connection, or an error if the connection failed before the end of
    /// the transfer.
    fn state<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<State, BenchError> {
        let connection = end.stack().tcp(handle).ok_or_else(|| self.lost(Error::Closed))?;
        match connection.error() {
            Some(error) if !self.transfer.is_over() => Err(self.lost(error.into())),
            _ => Ok(connection.state()),
        }
    }

    /// Converts the error of a failed connection to a bench error.
    fn lost(&self, error: Error) -> BenchError {
        BenchError::ConnectionLost { bytes: self.written, what: error.to_string() }
    }
}
