//! A link over a Unix stream socket, on which each frame follows its length in four bytes. This is
//! the format of QEMU's `-netdev stream` and `-netdev socket`.

use crate::MonotonicClock;
use crate::wait::Readiness;
use linerate_stack::{Capabilities, Link, LinkError, Medium, RxFrame, SMALLEST_MTU, TxFrame};
use linerate_units::{Clock, Instant};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use thiserror::Error;

/// Length of the number in front of each frame, in bytes.
const PREFIX: usize = 4;
/// Length of the largest frame that is received, in bytes: the largest IP packet behind an Ethernet
/// header with a VLAN tag.
const LARGEST: usize = 65_535 + 18;
/// Size of the buffer for reading, in bytes.
const INCOMING: usize = 256 << 10;
/// Size of the buffer for writing, in bytes.
const OUTGOING: usize = 256 << 10;

/// A link over a Unix stream, on which each frame follows its length (4 bytes, in network order).
/// Its peer is a virtual machine, or another process with such a link.
///
/// ```
/// use linerate_link::StreamLink;
/// use linerate_stack::{Link, Medium, TxFrame};
/// use std::os::unix::net::UnixStream;
///
/// let (ours, theirs) = UnixStream::pair()?;
/// let mut here = StreamLink::new(ours, Medium::Ip, 1_500)?;
/// let mut there = StreamLink::new(theirs, Medium::Ip, 1_500)?;
/// here.transmit(1, |frame| {
///     frame[..60].fill(7);
///     Some(TxFrame::whole(60))
/// })?;
/// assert_eq!(there.receive(8, |frame| assert_eq!(frame.bytes, [7; 60]))?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamLink {
    stream: UnixStream,
    capabilities: Capabilities,
    incoming: Box<[u8]>,
    /// The range of `incoming` with bytes that were read but not yet passed to the host.
    unread: std::ops::Range<usize>,
    outgoing: Vec<u8>,
    /// The number of bytes at the start of `outgoing` that have already been written to the stream.
    written: usize,
    /// Whether the link is down, because the peer has closed the stream or sent an impossible
    /// length.
    is_over: bool,
    empty: u64,
}

/// The reason why a stream cannot be a link.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The MTU is too small or too large.
    #[error("a stream cannot have an MTU of {0} bytes: choose {SMALLEST_MTU} to 65535")]
    Mtu(usize),
    /// The system refused to configure the socket.
    #[error("the stream cannot be used ({0})")]
    System(#[from] io::Error),
}

impl StreamLink {
    /// Creates a link over `stream`. The host sends packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// [`StreamError`] if the MTU is invalid, or the system refuses to configure the socket.
    pub fn new(stream: UnixStream, medium: Medium, mtu: usize) -> Result<Self, StreamError> {
        if !(SMALLEST_MTU..=65_535).contains(&mtu) {
            return Err(StreamError::Mtu(mtu));
        }
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            capabilities: Capabilities::new(medium, mtu),
            incoming: vec![0; INCOMING].into(),
            unread: 0..0,
            outgoing: Vec::new(),
            written: 0,
            is_over: false,
            empty: 0,
        })
    }

    /// Returns the number of received frames whose length was zero.
    #[must_use]
    pub const fn empty_frames(&self) -> u64 {
        self.empty
    }

    /// Finds the next complete frame in the buffer. Returns its range, and marks it as passed to
    /// the host. Returns `None` if the buffer contains no complete frame.
    fn next_frame(&mut self) -> Result<Option<std::ops::Range<usize>>, LinkError> {
        loop {
            let unread = &self.incoming[self.unread.clone()];
            let Some((length, rest)) = unread.split_first_chunk() else { return Ok(None) };
            let length = u32::from_be_bytes(*length) as usize;
            if length > LARGEST {
                // The length is impossible, so the start of the next frame is unknown, and the link
                // cannot continue.
                self.is_over = true;
                return Err(LinkError::Down);
            }
            if rest.len() < length {
                return Ok(None);
            }
            let start = self.unread.start + PREFIX;
            self.unread.start = start + length;
            if length > 0 {
                return Ok(Some(start..start + length));
            }
            self.empty += 1;
        }
    }

    /// Reads from the stream into the buffer. Returns whether any bytes were read.
    fn read(&mut self) -> Result<bool, LinkError> {
        if self.unread.start > 0 {
            self.incoming.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        loop {
            match self.stream.read(&mut self.incoming[self.unread.end..]) {
                Ok(0) => {
                    self.is_over = true;
                    return Err(LinkError::Down);
                }
                Ok(count) => {
                    self.unread.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(explain("read from the stream", &error)),
            }
        }
    }

    /// Writes the frames in `outgoing` to the stream. Returns false if some bytes still wait,
    /// because the stream has no room.
    fn flush(&mut self) -> Result<bool, LinkError> {
        while self.written < self.outgoing.len() {
            match self.stream.write(&self.outgoing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(explain("write to the stream", &error)),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        Ok(true)
    }
}

fn explain(what: &'static str, error: &io::Error) -> LinkError {
    match error.kind() {
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => LinkError::Down,
        _ => LinkError::Io { errno: error.raw_os_error().unwrap_or(0), what },
    }
}

impl Link for StreamLink {
    fn receive(
        &mut self,
        budget: usize,
        mut on_frame: impl FnMut(RxFrame<'_>),
    ) -> Result<usize, LinkError> {
        if self.is_over {
            return Err(LinkError::Down);
        }
        let mut received = 0;
        while received < budget {
            match self.next_frame()? {
                Some(frame) => {
                    on_frame(RxFrame::plain(&self.incoming[frame], MonotonicClock.now()));
                    received += 1;
                }
                None if self.read()? => {}
                None => break,
            }
        }
        Ok(received)
    }

    fn transmit(
        &mut self,
        budget: usize,
        mut fill: impl FnMut(&mut [u8]) -> Option<TxFrame>,
    ) -> Result<usize, LinkError> {
        if !self.flush()? {
            return Ok(0);
        }
        let room = self.capabilities.room();
        let mut sent = 0;
        while sent < budget {
            if self.outgoing.len() + PREFIX + room > OUTGOING && !self.flush()? {
                break;
            }
            let start = self.outgoing.len();
            self.outgoing.resize(start + PREFIX + room, 0);
            let frame = fill(&mut self.outgoing[start + PREFIX..]);
            let length = frame.map_or(0, |frame| frame.length.min(room));
            if length == 0 {
                self.outgoing.truncate(start);
                break;
            }
            let prefix = u32::try_from(length).unwrap_or(0).to_be_bytes();
            self.outgoing[start..start + PREFIX].copy_from_slice(&prefix);
            self.outgoing.truncate(start + PREFIX + length);
            sent += 1;
        }
        self.flush()?;
        Ok(sent)
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}

impl Readiness for StreamLink {
    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    fn wants_room(&self) -> bool {
        self.written < self.outgoing.len()
    }

    /// Returns true if the buffer contains a complete frame. The descriptor does not become
    /// readable for it, because its bytes have been read from the stream already.
    fn is_ready(&mut self) -> bool {
        let unread = &self.incoming[self.unread.clone()];
        self.is_over
            || unread
                .split_first_chunk()
                .is_some_and(|(length, rest)| rest.len() >= u32::from_be_bytes(*length) as usize)
    }

    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn prepare_to_sleep(&mut self) -> bool {
        !self.is_ready()
    }

    fn awake(&mut self, _signalled: bool) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Shutdown;

    fn link() -> (StreamLink, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (StreamLink::new(ours, Medium::Ethernet, 1_500).unwrap(), theirs)
    }

    fn received(link: &mut StreamLink, budget: usize) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        link.receive(budget, |frame| frames.push(frame.bytes.to_vec())).unwrap();
        frames
    }

    #[test]
    fn frames_in_pieces_are_received_whole() {
        let (mut link, mut peer) = link();
        let bytes = [0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 1, 9];
        for byte in &bytes[..6] {
            peer.write_all(&[*byte]).unwrap();
            assert!(received(&mut link, 8).is_empty() && !link.is_ready());
        }
        peer.write_all(&bytes[6..]).unwrap();
        assert_eq!(received(&mut link, 1), [[1, 2, 3]]);
        assert!(link.is_ready(), "the other frame is in the buffer");
        assert_eq!(received(&mut link, 8), [[9]]);
        assert_eq!(link.empty_frames(), 1);
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(link.receive(8, |_| ()), Err(LinkError::Down));
        assert!(link.is_ready());
    }

    #[test]
    fn a_length_beyond_any_frame_ends_the_link() {
        let (mut link, mut peer) = link();
        peer.write_all(&[0xff; 8]).unwrap();
        assert_eq!(link.receive(8, |_| ()), Err(LinkError::Down));
        assert_eq!(link.receive(8, |_| ()), Err(LinkError::Down));
    }

    #[test]
    fn frames_wait_for_room_and_arrive_in_order() {
        let (mut link, mut peer) = link();
        let mut sent = 0_u32;
        let mut send = |link: &mut StreamLink| {
            link.transmit(1_000, |frame| {
                frame[..4].copy_from_slice(&sent.to_be_bytes());
                sent += 1;
                Some(TxFrame::whole(1_514))
            })
        };
        while send(&mut link).unwrap() == 1_000 {}
        assert!(link.wants_room());
        assert_eq!(send(&mut link), Ok(0), "there is no room");
        peer.set_nonblocking(true).unwrap();
        let mut bytes = Vec::new();
        while link.wants_room() {
            let _ = peer.read_to_end(&mut bytes);
            link.transmit(0, |_| None).unwrap();
        }
        let _ = peer.read_to_end(&mut bytes);
        let (frames, rest) = bytes.as_chunks::<1_518>();
        assert!(rest.is_empty() && frames.len() == sent as usize);
        for (number, frame) in (0_u32..).zip(frames) {
            assert_eq!(frame[..4], 1_514_u32.to_be_bytes());
            assert_eq!(frame[4..8], number.to_be_bytes());
        }
    }

    #[test]
    fn the_mtu_is_checked() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        assert!(matches!(StreamLink::new(ours, Medium::Ip, 20), Err(StreamError::Mtu(20))));
    }
}
