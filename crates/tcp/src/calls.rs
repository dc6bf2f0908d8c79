//! The calls of an application: SEND, RECEIVE and CLOSE (RFC 9293 §3.10.2 to §3.10.4).

use crate::receive::ack_policy::Received;
use crate::receive::saturated;
use crate::send::Writes;
use crate::send::buffer::SendBuffer;
use crate::{Connection, Error, MemoryGrant, State};
use core::hint::cold_path;
use linerate_units::{Duration, Instant};
use linerate_wire::SeqNum;

/// # Application calls: data
impl Connection {
    /// Appends `data` to the send queue, and returns the number of bytes that fitted. `Ok(0)` for
    /// non-empty data means that there is no room: try again after
    /// [`Event::Writable`](crate::Event::Writable).
    ///
    /// # Errors
    /// [`Error::Shutdown`] if the application has closed this direction, or the reason why the
    /// connection has ended.
    #[inline]
    pub fn write(&mut self, now: Instant, data: &[u8]) -> Result<usize, Error> {
        self.add(now, data.len(), |buffer, memory| {
            let taken = buffer.append(data, memory);
            (taken, taken == data.len())
        })
    }

    /// Calls `add` to put up to `wanted` bytes into the send buffer. `add` returns the number of
    /// bytes that it has added, and whether there was room for all bytes that it had to add.
    #[inline]
    pub(crate) fn add(
        &mut self,
        now: Instant,
        wanted: usize,
        add: impl FnOnce(&mut SendBuffer, &MemoryGrant) -> (usize, bool),
    ) -> Result<usize, Error> {
        if self.sender.writes != Writes::Taken || !self.state.may_write() {
            cold_path();
            return self.add_below_low_water(now, wanted, add);
        }
        self.tune_send_buffer(wanted);
        Ok(self.add_within_capacity(now, add))
    }

    /// Does the work of [`Connection::add`] in two cases. If the application may not write any
    /// more, it returns the error. If unsent data has a low-water mark, it adds bytes only up to
    /// that mark.
    #[inline(never)]
    fn add_below_low_water(
        &mut self,
        now: Instant,
        wanted: usize,
        add: impl FnOnce(&mut SendBuffer, &MemoryGrant) -> (usize, bool),
    ) -> Result<usize, Error> {
        let Some(low) =
            self.unsent_low_water().filter(|_| self.state.may_write() && !self.sender.fin())
        else {
            return Err(self.error.unwrap_or(Error::Shutdown));
        };
        self.tune_send_buffer(wanted);
        let capacity = self.sender.buffer.capacity();
        let most = self.sender.buffer.len() + self.room_below(low);
        self.sender.buffer.set_capacity(capacity.min(most));
        let taken = self.add_within_capacity(now, add);
        self.sender.buffer.set_capacity(capacity);
        Ok(taken)
    }

    /// Calls `add` to put bytes into the send buffer, limited only by the buffer's capacity.
    #[inline]
    fn add_within_capacity(
        &mut self,
        now: Instant,
        add: impl FnOnce(&mut SendBuffer, &MemoryGrant) -> (usize, bool),
    ) -> usize {
        let was_empty = self.sender.buffer.len() == 0;
        if was_empty {
            // No data was unacknowledged until this write. So the time that the user timeout limits
            // starts here.
            self.watch_user_timeout(now);
        }
        let waits = self.waits_for_window();
        let (taken, had_room) = add(&mut self.sender.buffer, &self.memory);
        self.output_due |= taken > 0 && !waits;
        self.sender.write_refused = !had_room;
        self.sender.room_awaited |= !had_room;
        if was_empty && taken > 0 {
            self.start_busy_time(now);
        }
        taken
    }

    /// Writes `data`, and marks its last byte as urgent. Urgent data stays in sequence with other
    /// data: the peer is only told the position of the marked byte. RFC 6093 advises new programs
    /// against urgent data.
    ///
    /// # Errors
    /// The errors of [`Connection::write`].
    pub fn write_urgent(&mut self, now: Instant, data: &[u8]) -> Result<usize, Error> {
        self.slow(|connection| {
            let taken = connection.write(now, data)?;
            if taken > 0 {
                connection.sender.urgent = Some(connection.sender.buffer.end());
            }
            Ok(taken)
        })
    }

    /// Reads received bytes into `into`, and returns their number. `Ok(0)` for a non-empty buffer
    /// means that everything was read and no more data will arrive: the peer has closed its
    /// direction, or the application has called [`Connection::shutdown_read`].
    ///
    /// # Errors
    /// [`Error::WouldBlock`] if nothing can be read yet, or the reason why the connection has
    /// ended.
    #[inline]
    pub fn read(&mut self, now: Instant, into: &mut [u8]) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() || into.is_empty() {
            return self.nothing_to_read(into);
        }
        let count = self.receiver.buffer.read(into);
        self.on_bytes_read(now, count);
        Ok(count)
    }

    /// Updates the connection after the application has read `count` bytes, which is at least one
    /// byte.
    #[inline]
    pub(crate) fn on_bytes_read(&mut self, now: Instant, count: usize) {
        self.forget_passed_urgent_mark();
        self.tune_receive_buffer(now, count);
        self.judge_read();
        if self.receiver.buffer.is_empty() {
            if self.receiver.assembler.is_empty() {
                self.receiver.buffer.start_over();
            }
            self.watch_idle_buffers(now);
        }
    }

    /// Copies received bytes into `into` without removing them from the receive buffer.
    ///
    /// # Errors
    /// The errors of [`Connection::read`].
    pub fn peek(&self, into: &mut [u8]) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() || into.is_empty() {
            return self.nothing_to_read(into);
        }
        Ok(self.receiver.buffer.peek(into))
    }

    /// Whether no data can be read now, but more may arrive.
    #[inline]
    #[must_use]
    pub fn has_nothing_to_read(&self) -> bool {
        self.receiver.buffer.is_empty() && !self.is_at_end_of_stream()
    }

    fn nothing_to_read(&self, into: &[u8]) -> Result<usize, Error> {
        if into.is_empty() { Ok(0) } else { self.error_of_empty_read() }
    }

    /// Returns the result of a read from an empty buffer: zero at the end of the stream, or an
    /// error.
    pub(crate) fn error_of_empty_read(&self) -> Result<usize, Error> {
        match self.error {
            Some(error) => Err(error),
            None if self.is_at_end_of_stream() => Ok(0),
            None => Err(Error::WouldBlock),
        }
    }

    /// Schedules an acknowledgement if the read has freed enough room for a window update.
    #[inline(always)]
    fn judge_read(&mut self) {
        let (pending, segment) = (self.rcv.pending(), self.receiver.largest_segment);
        if self.acks.is_nothing_due(pending, segment, self.rcv.window(), self.receiver.capacity()) {
            debug_assert!(!self.acks.on_read(&self.received()), "an acknowledgement is due");
        } else {
            self.owe_ack_if_window_grew();
        }
    }

    /// Returns the inputs of the policy that decides when to send an ACK. They are the amounts of
    /// data that we have not acknowledged and that the application has not read, the segment size,
    /// and the sizes of buffer and window.
    #[inline]
    pub(crate) fn received(&self) -> Received {
        Received {
            pending: self.rcv.pending(),
            segment: self.receiver.largest_segment,
            unread: saturated(self.receiver.buffer.len()),
            capacity: self.receiver.capacity(),
            offered: self.rcv.window(),
            room: self.receiver.room(),
        }
    }

    /// Returns the number of bytes that the application has to read before it reaches the end of
    /// the urgent data. `None` if there is no urgent data, or if all of it was read (`SIOCATMARK`
    /// then reports zero).
    #[must_use]
    pub fn urgent_distance(&self) -> Option<usize> {
        let mark = self.receiver.urgent?;
        Some((mark - self.first_unread()) as usize)
    }

    fn first_unread(&self) -> SeqNum {
        self.rcv.nxt - saturated(self.receiver.buffer.len())
    }

    fn forget_passed_urgent_mark(&mut self) {
        let Some(mark) = self.receiver.urgent else { return };
        cold_path();
        if !mark.after(self.first_unread()) {
            self.slow(|connection| connection.receiver.urgent = None);
        }
    }

    /// Closes the sending direction: a FIN is sent after the written data. The application can
    /// continue to read.
    pub fn shutdown_write(&mut self, now: Instant) {
        if self.sender.fin() || !self.state.may_write() {
            return;
        }
        if !self.has_undelivered() {
            self.watch_user_timeout(now);
        }
        self.slow(|connection| {
            connection.sender.writes = Writes::Closed;
            connection.state = connection.state.after_close();
            connection.output_due = true;
        });
    }

    /// Closes the receiving direction. Data in the receive buffer is discarded. Data that arrives
    /// later is acknowledged and discarded.
    pub fn shutdown_read(&mut self, _now: Instant) {
        if !self.receiver.shut {
            self.slow(|connection| {
                connection.receiver.shut();
                connection.owe_ack_if_window_grew();
            });
        }
    }

    #[inline(never)]
    pub(crate) fn owe_ack_if_window_grew(&mut self) {
        if self.state.takes_data() && self.acks.on_read(&self.received()) {
            self.owe_ack();
        }
    }

    /// Releases the connection: the application will not use it any more. Written data is still
    /// sent, but only for the time that [`Connection::linger`] returns. If received data is unread,
    /// or data arrives after this call, the connection is reset. Without the reset, the peer would
    /// assume that the application has read this data (RFC 9293 §3.6.1, RFC 2525 §2.17).
    pub fn close(&mut self, now: Instant) {
        self.released = true;
        if self.state == State::SynSent {
            self.slow(|connection| connection.end(None));
        } else if self.state == State::TimeWait {
            // In TIME-WAIT, unread data causes no reset. The peer has already received our FIN, and
            // would ignore the reset. TIME-WAIT must continue, so that old segments expire.
            self.slow(|connection| connection.receiver.shut());
        } else if !self.receiver.buffer.is_empty() || self.linger() == Some(Duration::ZERO) {
            self.abort(now);
        } else {
            self.shutdown_write(now);
            self.start_orphan_timer(now);
        }
    }
}
