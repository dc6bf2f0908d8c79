//! Zero-copy access to the socket buffers: the application borrows them, or passes shared memory.

use crate::{Connection, Error};
use bytes::Bytes;
use linerate_units::Instant;

/// # Application calls: data without copies
impl Connection {
    /// Lets `fill` write into the send buffer itself, and returns the number of bytes written.
    /// [`Connection::write`] copies instead.
    ///
    /// `fill` gets at most `wanted` bytes, for which memory is allocated now. It gets fewer, but at
    /// least one, if there is no room for more or if more would not be contiguous. Their initial
    /// content is arbitrary. `fill` returns the number of bytes that it has written at the start; a
    /// number above their length counts as their length. If it returns zero, nothing is sent.
    /// Without any room `fill` is not called and the result is `Ok(0)`: try again after
    /// [`crate::Event::Writable`].
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_with(
        &mut self,
        now: Instant,
        wanted: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.add(now, wanted, |buffer, memory| buffer.fill(wanted, memory, fill))
    }

    /// Shows received bytes to `take` in place, and removes as many as it returns.
    ///
    /// `take` gets the first contiguous readable bytes, which may be fewer than all. It gets none
    /// only at the end of the stream, as in `std::io::BufRead::fill_buf`. A returned number above
    /// their length counts as their length. Zero leaves everything unread.
    ///
    /// # Errors
    /// As [`Connection::read`]; `take` is not called then.
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
    /// returns its length. Nothing is copied: the memory of `data` is kept until the peer has
    /// acknowledged it, and segments and retransmissions are read from there.
    ///
    /// Each piece counts with its length in the send buffer. Pieces of less than 4 KiB are copied,
    /// which is cheaper than a reference. While other connections wait for memory, all data is
    /// copied.
    ///
    /// # Errors
    /// As [`Connection::write`].
    pub fn write_shared(&mut self, now: Instant, data: &mut Bytes) -> Result<usize, Error> {
        let wanted = data.len();
        self.add(now, wanted, |buffer, memory| {
            let taken = buffer.append_shared(data, memory);
            (taken, taken == wanted)
        })
    }

    /// Removes and returns up to `most` received bytes. The result may have fewer bytes than could
    /// be read. It is empty only at the end of the stream, or if `most` is zero. Data whose memory
    /// the link has passed on ([`crate::Driver::handle_segment_with`]) is not copied: it is a part
    /// of that memory, which stays allocated with it. Other data is copied.
    ///
    /// # Errors
    /// As [`Connection::read`].
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
