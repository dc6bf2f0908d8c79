//! The end where the bytes come from.

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
use std::net::SocketAddrV4;

/// A peer that does not take part in the end of the connection is not waited for any longer after
/// the time of the run is up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes the bytes of a transfer.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    transfer: &'a Transfer<'a>,
    pattern: Pattern,
    block: Vec<u8>,
    /// Bytes of `block` that are written.
    offset: usize,
    written: u64,
}

/// What the source has done.
#[derive(Debug)]
pub(crate) struct Given {
    /// When the first byte was written.
    pub(crate) began: Instant,
    pub(crate) counters: EndCounters,
    /// Bytes of the connection's send buffer.
    pub(crate) send_buffer: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn new(transfer: &'a Transfer<'a>) -> Self {
        let pattern = Pattern::new(transfer.request.seed);
        let mut block = vec![0; transfer.request.write_size];
        pattern.fill(0, &mut block);
        Self { transfer, pattern, block, offset: 0, written: 0 }
    }

    /// Connects to `peer`, writes everything, and sees the connection to its end.
    ///
    /// # Errors
    /// If the connection or the link fails, or somebody asks to stop.
    pub(crate) fn give<L: Link + Readiness>(
        mut self,
        end: &mut End<L>,
        peer: SocketAddrV4,
        config: &Config,
    ) -> Result<Given, BenchError> {
        let _ending = self.transfer.ending();
        let options = ConnectOptions { config: Some(*config), ..ConnectOptions::default() };
        let connected = end.stack().tcp_connect(End::<L>::now(), peer, &options);
        let handle = connected.map_err(|error| self.lost(error))?;
        self.wait_for_handshake(end, handle)?;
        self.transfer.begin(End::<L>::now());
        self.write_all(end, handle)?;
        let given = self.given(end, handle, config.send_buffer.initial());
        self.see_to_the_end(end, handle)?;
        given
    }

    fn wait_for_handshake<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        while self.state(end, handle)? != State::Established {
            self.transfer.listen_to_interrupt()?;
            end.turn(End::<L>::now())?;
        }
        Ok(())
    }

    /// Until the last byte is written and acknowledged, or the sink has had enough.
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
            self.transfer.listen_to_interrupt()?;
            end.turn(now)?;
        }
        Ok(())
    }

    /// Writes as long as there is room, block after block.
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
                // The sink, having had enough, resets the connection.
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

    /// Bytes that somebody compares are made anew; else the same ones are sent again and again.
    fn next_block(&mut self) {
        self.offset = 0;
        if self.transfer.request.verify {
            self.pattern.fill(self.written, &mut self.block);
        }
    }

    fn given<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
        send_buffer: usize,
    ) -> Result<Given, BenchError> {
        let stack = end.stack();
        let connection = stack.tcp(handle).ok_or_else(|| self.lost(Error::Closed))?;
        let counters = counters::of(&connection, stack);
        Ok(Given { began: self.transfer.began(), counters, send_buffer: send_buffer as u64 })
    }

    /// Answers the peer's FIN, so that the connection ends in order for both. It comes when the
    /// sink has read everything, which may take it as long as the run may.
    fn see_to_the_end<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        let patience = self.transfer.deadline() + PATIENCE;
        while !self.transfer.is_over() {
            let now = End::<L>::now();
            let state = self.state(end, handle)?;
            if matches!(state, State::TimeWait | State::Closed) && !end.stack().wants_transmit()
                || now > patience
            {
                break;
            }
            end.turn(now)?;
        }
        Ok(())
    }

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

    fn lost(&self, error: Error) -> BenchError {
        BenchError::ConnectionLost { bytes: self.written, what: error.to_string() }
    }
}
