//! The end where the bytes go.

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
use std::net::SocketAddrV4;

/// A peer that does not take part in the end of the connection is not waited for any longer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads the bytes of a transfer.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    transfer: &'a Transfer<'a>,
    pattern: Pattern,
    buffer: Vec<u8>,
    read: u64,
    /// The first byte that was not the right one.
    wrong_at: Option<u64>,
    /// Has the source said that there is no more?
    is_at_end: bool,
}

/// What the sink has done.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) bytes: u64,
    /// When the last byte had been read, or the time was up.
    pub(crate) finished: Instant,
    pub(crate) complete: bool,
    /// `None` if nobody compared.
    pub(crate) verified: Option<bool>,
    pub(crate) counters: EndCounters,
    /// Bytes of the connection's receive buffer.
    pub(crate) receive_buffer: u64,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(transfer: &'a Transfer<'a>) -> Self {
        let buffer = vec![0; transfer.request.read_size];
        let pattern = Pattern::new(transfer.request.seed);
        Self { transfer, pattern, buffer, read: 0, wrong_at: None, is_at_end: false }
    }

    /// Listens at `local`; to be done before the source connects.
    ///
    /// # Errors
    /// If there is no such address.
    pub(crate) fn listen<L: Link + Readiness>(
        end: &mut End<L>,
        local: SocketAddrV4,
        config: &Config,
    ) -> Result<ListenHandle, BenchError> {
        let options = ListenOptions { config: Some(*config), ..ListenOptions::default() };
        let listening = end.stack().tcp_listen(local, &options);
        listening.map_err(|error| BenchError::ConnectionLost { bytes: 0, what: error.to_string() })
    }

    /// Accepts one connection, reads everything, and sees the connection to its end.
    ///
    /// # Errors
    /// If the connection or the link fails, or somebody asks to stop.
    pub(crate) fn take<L: Link + Readiness>(
        mut self,
        end: &mut End<L>,
        listener: ListenHandle,
        config: &Config,
    ) -> Result<Taken, BenchError> {
        let _ending = self.transfer.ending();
        let handle = self.accept(end, listener)?;
        let finished = self.read_all(end, handle)?;
        let complete = self.read >= self.transfer.request.bytes;
        let counters = self.counters(end, handle)?;
        if complete {
            self.see_to_the_end(end, handle)?;
        } else {
            self.break_off(end, handle)?;
        }
        Ok(Taken {
            bytes: self.read,
            finished,
            complete,
            verified: self.transfer.request.verify.then_some(self.wrong_at.is_none()),
            counters,
            receive_buffer: config.receive_buffer.initial() as u64,
        })
    }

    fn accept<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        listener: ListenHandle,
    ) -> Result<TcpHandle, BenchError> {
        loop {
            if let Some((handle, _)) = end.stack().tcp_accept(listener) {
                return Ok(handle);
            }
            self.transfer.listen_to_interrupt()?;
            if self.transfer.is_over() {
                // Whatever happened to the source is its own to tell.
                return Err(self.lost("there was no connection"));
            }
            end.turn(End::<L>::now())?;
        }
    }

    /// Until all bytes are there, or the time is up; returns when that was.
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
            // A source whose time is up may close before this end looks at its clock.
            if self.transfer.is_late(now) {
                return Ok(now);
            }
            if self.is_at_end {
                return Err(self.lost("the source closed it"));
            }
            self.transfer.listen_to_interrupt()?;
            end.turn(now)?;
            now = End::<L>::now();
        }
    }

    /// Reads as long as there is something.
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

    fn note(&mut self, count: usize) {
        if self.transfer.request.verify && self.wrong_at.is_none() {
            self.wrong_at = self.pattern.verify(self.read, &self.buffer[..count]).err();
        }
        self.read += count as u64;
    }

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

    /// Reads the end of the stream, closes, and waits until the source knows.
    fn see_to_the_end<L: Link + Readiness>(
        &mut self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        let patience = End::<L>::now() + PATIENCE;
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
            if state == State::Closed || now > patience || self.transfer.is_over() {
                return Ok(());
            }
            end.turn(now)?;
        }
    }

    /// Tells the source by a reset that nobody reads any more.
    fn break_off<L: Link + Readiness>(
        &self,
        end: &mut End<L>,
        handle: TcpHandle,
    ) -> Result<(), BenchError> {
        self.transfer.end();
        let now = End::<L>::now();
        end.stack().tcp_abort(now, handle).map_err(|error| self.lost(&error.to_string()))?;
        // If the reset does not get through, the source asks whether it is all over.
        end.turn(now)
    }

    fn lost(&self, what: &str) -> BenchError {
        BenchError::ConnectionLost { bytes: self.read, what: what.to_owned() }
    }
}
