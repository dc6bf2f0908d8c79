//! Zero-copy access to the socket buffers: the application reads and writes them in place, or
//! passes shared memory.

use crate::{Connection, Error};
use bytes::Bytes;
use linerate_units::Instant;

/// # Application calls: data without copies
impl Connection {
    /// Lets `fill` write directly into the send buffer, and returns the number of bytes written.
    /// [`Connection::write`] copies instead.
    ///
    /// `fill` gets a slice of at most `wanted` bytes, whose initial content is arbitrary. It is
    /// shorter, but has at least one byte, if there is no room for more or the room is not
    /// contiguous. `fill` returns the number of bytes that it has written at the start of the
    /// slice. A number above the length of the slice counts as the length. If there is no room,
    /// `fill` is not called and the result is `Ok(0)`: try again after [`crate::Event::Writable`].
    ///
    /// # Errors
    /// The errors of [`Connection::write`].
    pub fn write_with(
        &mut self,
        now: Instant,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.add(now, wanted, |buffer, memory| buffer.fill(wanted, memory, fill))
    }

    /// Passes received bytes to `take` without a copy, and removes as many of them as `take`
    /// returns.
    ///
    /// `take` gets the first contiguous bytes, which may be fewer than can be read. They are empty
    /// only at the end of the stream, as in `std::io::BufRead::fill_buf`. If `take` returns a
    /// number larger than their length, all of these bytes are removed.
    ///
    /// # Errors
    /// The errors of [`Connection::read`]; `take` is not called then.
    pub fn read_with(
        &mut self,
        now: Instant,
        take: impl FnOnce(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        if self.receiver.buffer.is_empty() {
            self.error_of_empty_read()?;
            take(&[]);
            return Ok(0);
        }
        let count = self.receiver.buffer.take(take);
        if count > 0 {
            self.on_bytes_read(now, count);
        }
        Ok(count)
    }

    /// Appends as much of `data` to the send queue as fits, removes that part from `data`, and
    /// returns its length. Segments and retransmissions are read from the memory of `data`, which
    /// is kept until the peer has acknowledged it.
    ///
    /// Shared data counts towards the size of the send buffer like copied data. In two cases the
    /// data is copied nevertheless: if less than 4 KiB can be appended, because a reference would
    /// cost more, and while other connections wait for memory.
    ///
    /// # Errors
    /// The errors of [`Connection::write`].
    pub fn write_shared(&mut self, now: Instant, data: &mut Bytes) -> Result<usize, Error> {
        let wanted = data.len();
        self.add(now, wanted, |buffer, memory| {
            let taken = buffer.append_shared(data, memory);
            (taken, taken == wanted)
        })
    }

    /// Removes and returns up to `most` received bytes, possibly fewer than can be read. The result
    /// is empty only at the end of the stream, or if `most` is zero. Data in memory that the link
    /// has shared ([`crate::Driver::handle_segment_with`]) is not copied; the result keeps that
    /// memory allocated. Other data is copied.
    ///
    /// # Errors
    /// The errors of [`Connection::read`].
    pub fn read_shared(&mut self, now: Instant, most: usize) -> Result<Bytes, Error> {
        if most == 0 {
            return Ok(Bytes::new());
        }
        if self.receiver.buffer.is_empty() {
            return self.error_of_empty_read().map(|_| Bytes::new());
        }
        let taken = self.receiver.buffer.take_shared(most);
        self.on_bytes_read(now, taken.len());
        Ok(taken)
    }
}
