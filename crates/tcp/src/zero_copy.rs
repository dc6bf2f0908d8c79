//! Zero-copy access to the socket buffers: the application reads and writes them in place, or
//! passes shared memory.

use crate::{Connection, Error};
use bytes::Bytes;
use linerate_units::Instant;

/// # Application calls: data without copies
impl Connection {
    /// Lets `fill` write data directly into the send buffer, so that the copy of
    /// [`Connection::write`] is saved. Returns the number of bytes written.
    ///
    /// `fill` gets a slice of at most `wanted` bytes, whose initial content is arbitrary. If there
    /// is less room, or if the room is not contiguous, the slice has fewer than `wanted` bytes, but
    /// at least one. `fill` returns the number of bytes that it has written at the start of the
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
    /// `take` gets the bytes that are next to be read, as far as they are contiguous in memory. The
    /// slice is empty only at the end of the stream, as in `std::io::BufRead::fill_buf`. If `take`
    /// returns a number larger than their length, all of these bytes are removed.
    ///
    /// # Errors
    /// The errors of [`Connection::read`]. In case of an error, `take` is not called.
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
    /// returns its length. Segments are built from the memory of `data`, which stays allocated
    /// until the peer has acknowledged the data.
    ///
    /// Shared data counts towards the size of the send buffer like copied data. In two cases, the
    /// data is copied to the buffer nevertheless. The first is that less than 4 KiB can be
    /// appended, for which a reference would cost more than a copy. The second is that other
    /// connections wait for memory.
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
    /// is empty only if `most` is zero or the end of the stream is reached. Data in memory that the
    /// link has shared ([`crate::Driver::handle_segment_with`]) is not copied; the result keeps
    /// that memory allocated. Other data is copied.
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
