//! The receiving end of a transfer, with linerate's TCP.

use super::counters;
use super::host::End;
use super::transfer::Transfer;
use crate::bench_error::BenchError;
use linerate_ends::workload::Pattern;
use linerate_evidence::EndCounters;
use linerate_link::Readiness;
use linerate_stack::{Error, Link, ListenHandle, ListenOptions, TcpHandle};
use linerate_tcp::{Config, State};
use linerate_units::{Duration, Instant};
use std::net::SocketAddr;

/// Maximum time to wait for a peer that does not complete the close of the connection.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The receiving end of a transfer, which reads and optionally verifies the data.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    transfer: &'a Transfer<'a>,
    pattern: Pattern,
    /// The buffer that is passed to each read.
    buffer: Vec<u8>,
    /// Number of bytes read so far.
    read: u64,
    /// Position of the first wrong byte in the data; `None` if none was found.
    wrong_at: Option<u64>,
    /// Has the source closed its sending direction?
    is_at_end: bool,
}

/// The result of a transfer at its receiving end.
#[derive(Debug)]
pub(crate) struct ReadResult {
    /// Number of bytes read.
    pub(crate) bytes: u64,
    /// Time at which the sink had read the last byte of the run, or at which it noticed that the
    /// maximum duration had passed.
    pub(crate) finished: Instant,
    /// Have all requested bytes arrived?
    pub(crate) complete: bool,
    /// Was the data correct? `None` if it was not compared.
    pub(crate) verified: Option<bool>,
    /// Counters of the connection and the host.
    pub(crate) counters: EndCounters,
    /// Size of the connection's receive buffer, in bytes.
    pub(crate) receive_buffer: u64,
}

impl<'a> Sink<'a> {
    /// Creates a sink that has not read any data.
    pub(crate) fn new(transfer: &'a Transfer<'a>) -> Self {
        let buffer = vec![0; transfer.request.read_size];
        let pattern = Pattern::new(transfer.request.seed);
        Self { transfer, pattern, buffer, read: 0, wrong_at: None, is_at_end: false }
    }

    /// Listens at `local`. The source must connect afterwards.
    ///
    /// # Errors
    /// The host does not have the address.
    pub(crate) fn listen<L: Link + Readiness>(
        end: &mut End<L>,
        local: SocketAddr,
        config: &Config,
    ) -> Result<ListenHandle, BenchError> {
        let options = ListenOptions { config: Some(*config), ..ListenOptions::default() };
        let listening = end.stack().tcp_listen(local, &options);
        listening.map_err(|error| BenchError::ConnectionLost { bytes: 0, what: error.to_string() })
    }

    /// Accepts a connection, reads all data, and completes the close.
    ///
    /// # Errors
    /// The connection or the link fails, or the run is interrupted.
    pub(crate) fn run<L: Link + Readiness>(
        mut self,
        end: &mut End<L>,
        listener: ListenHandle,
        config: &Config,
    ) -> Result<ReadResult, BenchError> {
        let _ending = self.transfer.ending();
        let handle = self.accept(end, listener)?;
        let finished = self.read_all(end, handle)?;
        let complete = self.read >= self.transfer.request.bytes;
        let counters = self.counters(end, handle)?;
        if complete {
            self.finish_close(end, handle)?;
        } else {
            self.reset(end, handle)?;
        }
        Ok(ReadResult {
            bytes: self.read,
            finished,
            complete,
            verified: self.transfer.request.verify.then_some(self.wrong_at.is_none()),
            counters,
            receive_buffer: config.receive_buffer.initial() as u64,
        })
    }

    /// Waits for the connection of the source.
    fn accept<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        listener: ListenHandle,
    ) -> Result<TcpHandle, BenchError> {
        loop {
            if let Some((handle, _)) = end.stack().tcp_accept(listener) {
                return Ok(handle);
            }
            self.transfer.check_interrupt()?;
            if self.transfer.is_over() {
                // The transfer is over before a connection arrived, so the source has failed. The
                // bench reports the error of the source instead of this error.
                return Err(self.lost("there was no connection"));
            }
            end.turn(End::<L>::now())?;
        }
    }

    /// Reads until all data has arrived or the maximum duration has passed. Returns the time at
    /// which reading ended.
    fn read_all<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<Instant, BenchError> {
        let mut now = End::<L>::now();
        loop {
            self.read(end, handle, now)?;
            if self.read >= self.transfer.request.bytes {
                return Ok(End::<L>::now());
            }
            // The time is checked before the end of the stream. The source may be the first to
            // notice that the maximum duration has passed, and closes the stream before all data is
            // sent. Such an early end of the stream is not an error.
            if self.transfer.is_late(now) {
                return Ok(now);
            }
            if self.is_at_end {
                return Err(self.lost("the source closed it"));
            }
            self.transfer.check_interrupt()?;
            end.turn(now)?;
            now = End::<L>::now();
        }
    }

    /// Reads all data that has arrived so far.
    fn read<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
        now: Instant,
    ) -> Result<(), BenchError> {
        while !self.is_at_end {
            match end.stack().tcp_read(now, handle, &mut self.buffer) {
                Ok(0) => self.is_at_end = true,
                Ok(count) => self.note(count),
                Err(Error::WouldBlock) => break,
                Err(error) => return Err(self.lost(&error.to_string())),
            }
        }
        Ok(())
    }

    /// Counts and verifies the first `count` bytes of the buffer.
    fn note(&mut self, count: usize) {
        if self.transfer.request.verify && self.wrong_at.is_none() {
            self.wrong_at = self.pattern.verify(self.read, &self.buffer[..count]).err();
        }
        self.read += count as u64;
    }

    /// Returns the counters of the connection, and the position of the first wrong byte.
    fn counters<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<EndCounters, BenchError> {
        let stack = end.stack();
        let connection = stack.tcp(handle).ok_or_else(|| self.lost("it is gone"))?;
        let mut counters = counters::of(&connection, stack);
        if let Some(position) = self.wrong_at {
            counters.set("first_wrong_byte", position);
        }
        Ok(counters)
    }

    /// Waits for the end of the stream, closes the connection, and waits until the source has
    /// acknowledged the close.
    fn finish_close<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        let timeout = End::<L>::now() + TIMEOUT;
        let mut is_closed = false;
        loop {
            let now = End::<L>::now();
            self.read(end, handle, now)?;
            if self.is_at_end && !is_closed {
                end.stack()
                    .tcp_shutdown_write(now, handle)
                    .map_err(|error| self.lost(&error.to_string()))?;
                is_closed = true;
            }
            let state =
                end.stack().tcp(handle).map_or(State::Closed, |connection| connection.state());
            if state == State::Closed || now > timeout || self.transfer.is_over() {
                return Ok(());
            }
            end.turn(now)?;
        }
    }

    /// Resets the connection, so that the source stops sending.
    fn reset<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        self.transfer.end();
        let now = End::<L>::now();
        end.stack().tcp_abort(now, handle).map_err(|error| self.lost(&error.to_string()))?;
        // This turn sends the reset. If the reset is lost, the source still learns from
        // `Transfer::is_over` that the run has ended.
        end.turn(now)
    }

    /// Returns the error of a connection that failed because of `what`.
    fn lost(&self, what: &str) -> BenchError {
        BenchError::ConnectionLost { bytes: self.read, what: what.to_owned() }
    }
}
