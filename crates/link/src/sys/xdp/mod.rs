//! An AF_XDP socket: frames in memory that is shared with the kernel, and four descriptor rings
//! that pass them (Documentation/networking/af_xdp.rst).
//!
//! Half of the frames are for receiving. Each of them waits to be filled (in the fill ring), has
//! been filled (in the receive ring), or is in use by this program. The other half is for sending.
//! Each of these frames is free, waits to be sent (in the transmit ring), or has been sent (in the
//! completion ring). Addresses that the kernel passes are checked before use: each must lie in a
//! frame of the half that the ring is for.

mod ring;
mod setup;
mod shape;

pub(crate) use shape::Shape;

use super::mapping::Mapping;
use super::socket_option;
use ring::{Incoming, Outgoing, Ring};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::{ptr, slice};

/// The maximum number of system calls for one transmission, each of which makes the kernel send
/// frames.
const KICKS: usize = 8;

/// The operation that failed while a socket was being opened.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) what: &'static str,
    pub(crate) error: io::Error,
}

/// A bound socket and its memory.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    socket: OwnedFd,
    receive: Incoming<Descriptor>,
    fill: Outgoing<u64>,
    transmit: Outgoing<Descriptor>,
    completion: Incoming<u64>,
    /// The addresses of frames that are free for sending.
    free: Vec<u64>,
    memory: Mapping,
    shape: Shape,
    /// The number of descriptors in the receive ring that were invalid.
    malformed: u64,
}

impl XdpSocket {
    /// Opens a socket for `queue` of the interface with this index.
    pub(crate) fn open(
        interface: u32,
        queue: u32,
        shape: Shape,
        zero_copy: bool,
        busy_poll: Option<i32>,
    ) -> Result<Self, Failed> {
        let failed = |what| move |error| Failed { what, error };
        let socket = setup::socket().map_err(failed("open an AF_XDP socket"))?;
        let bytes = shape.frame_size as usize * 2 * shape.frames as usize;
        let memory = Mapping::anonymous(bytes).map_err(failed("have memory for frames"))?;
        setup::register(&socket, &memory, shape).map_err(failed("share memory for frames"))?;
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            socket_option::set_integer(&socket, libc::SOL_XDP, ring, shape.frames.cast_signed())
                .map_err(failed("have a ring"))?;
        }
        let [receive, transmit, fill, completion] =
            setup::offsets(&socket).map_err(failed("be told of its rings"))?;
        let mapped = failed("map a ring");
        let mut opened = Self {
            receive: Incoming(Ring::map(&socket, 0, receive, shape.frames).map_err(&mapped)?),
            transmit: Outgoing(
                Ring::map(&socket, 0x8000_0000, transmit, shape.frames).map_err(&mapped)?,
            ),
            fill: Outgoing(Ring::map(&socket, 0x1_0000_0000, fill, shape.frames).map_err(&mapped)?),
            completion: Incoming(
                Ring::map(&socket, 0x1_8000_0000, completion, shape.frames).map_err(&mapped)?,
            ),
            free: (shape.frames..2 * shape.frames).map(|frame| shape.beginning(frame)).collect(),
            socket,
            memory,
            shape,
            malformed: 0,
        };
        for frame in 0..shape.frames {
            opened.fill.push(shape.beginning(frame));
        }
        opened.fill.publish();
        if let Some(microseconds) = busy_poll {
            setup::prefer_busy_poll(&opened.socket, microseconds).map_err(failed("poll busily"))?;
        }
        setup::bind(&opened.socket, interface, queue, zero_copy)
            .map_err(failed("bind to the queue"))?;
        Ok(opened)
    }

    /// Returns an iterator over received frames. For each descriptor that it takes from the receive
    /// ring, it decrements `left`, even if the descriptor is invalid, and it ends when `left` is
    /// zero. [`finish_receiving`](Self::finish_receiving) then returns the taken frames to the
    /// kernel.
    #[inline]
    pub(crate) fn arrived<'a>(&'a mut self, left: &'a mut usize) -> Arrived<'a> {
        let Self { receive, fill, memory, shape, malformed, .. } = self;
        Arrived { receive, fill, memory, shape: *shape, malformed, left }
    }

    /// Returns the number of descriptors in the receive ring that were invalid.
    pub(crate) const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Returns the taken frames to the kernel, by the fill ring. Makes a system call if the kernel
    /// has requested one, because it would not notice the frames otherwise. With `polls`, always
    /// makes the call: the kernel then receives frames only during such calls.
    pub(crate) fn finish_receiving(&mut self, polls: bool) {
        self.receive.release();
        self.fill.publish();
        if polls || self.fill.needs_wakeup() {
            // SAFETY: the call passes no memory. Its result is not needed.
            unsafe {
                libc::recvfrom(
                    self.socket.as_raw_fd(),
                    ptr::null_mut(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
        }
    }

    /// Returns whether a received frame is in the receive ring.
    pub(crate) fn has_arrived(&mut self) -> bool {
        self.receive.has_entry()
    }

    /// Returns the memory of a free frame for writing, or `None` if all frames are being sent.
    pub(crate) fn offer(&mut self) -> Option<&mut [u8]> {
        let start = usize::try_from(*self.free.last()?).ok()?;
        let length = self.shape.frame_size as usize;
        // SAFETY: a free frame lies within the send half of the memory, and the kernel does not
        // access it. `&mut self` permits only one reference.
        Some(unsafe { slice::from_raw_parts_mut(self.memory.start.wrapping_add(start), length) })
    }

    /// Queues the frame that [`offer`](Self::offer) returned, with this length, for sending.
    pub(crate) fn commit(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(0).min(self.shape.frame_size);
        // The transmit ring cannot be full: it has as many entries as there are frames for sending.
        if let Some(address) = self.free.pop() {
            self.transmit.push(Descriptor { address, length, options: 0 });
        }
    }

    /// Takes back the frames that have been sent. Returns whether a frame is free.
    pub(crate) fn reclaim(&mut self) -> bool {
        while let Some(address) = self.completion.next() {
            // The kernel's addresses are not trusted. An address is ignored if it is not in a frame
            // for sending. It is also ignored if all frames for sending are free already.
            if let Some(frame) = self.shape.leaving(address)
                && self.free.len() < self.shape.frames as usize
            {
                self.free.push(frame);
            }
        }
        self.completion.release();
        !self.free.is_empty()
    }

    /// Publishes the queued frames, and makes the kernel send as many of them as it can without
    /// waiting.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        self.transmit.publish();
        for _ in 0..KICKS {
            if !self.wants_call() {
                return Ok(());
            }
            // SAFETY: no memory is passed.
            let result = unsafe {
                libc::sendto(
                    self.socket.as_raw_fd(),
                    ptr::null(),
                    0,
                    libc::MSG_DONTWAIT,
                    ptr::null(),
                    0,
                )
            };
            if result < 0 {
                let error = io::Error::last_os_error();
                match error.raw_os_error() {
                    // After these errors, one more call can send the remaining frames. After EBUSY,
                    // the driver may have dropped a frame. After the other errors, all frames are
                    // still in the ring.
                    Some(libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENOBUFS) => {}
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Returns whether the kernel has not taken all queued frames yet.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.transmit.is_empty()
    }

    /// Returns whether the kernel must be called to send the remaining frames.
    pub(crate) fn wants_call(&self) -> bool {
        self.has_unsent() && self.transmit.needs_wakeup()
    }

    /// Returns the counters of `XDP_STATISTICS` in this order: frames dropped, invalid fill
    /// addresses, invalid transmit descriptors, receive ring full, fill ring empty, transmit ring
    /// empty.
    pub(crate) fn statistics(&self) -> io::Result<[u64; 6]> {
        let mut bytes = [0; 48];
        socket_option::get(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS, &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        let mut numbers = [0; 6];
        numbers
            .iter_mut()
            .zip(words)
            .for_each(|(number, word)| *number = u64::from_ne_bytes(*word));
        Ok(numbers)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// An iterator over received frames, in the memory where the kernel has written them.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    receive: &'a mut Incoming<Descriptor>,
    fill: &'a mut Outgoing<u64>,
    memory: &'a Mapping,
    shape: Shape,
    malformed: &'a mut u64,
    /// The number of descriptors that may still be taken from the receive ring.
    left: &'a mut usize,
}

impl<'a> Iterator for Arrived<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        while *self.left > 0 {
            let Descriptor { address, length, .. } = self.receive.next()?;
            *self.left -= 1;
            if let Some(frame) = self.shape.arriving(address) {
                self.fill.push(frame);
                let end = address - frame + u64::from(length);
                if end <= u64::from(self.shape.frame_size)
                    && let Ok(start) = usize::try_from(address)
                {
                    let start = self.memory.start.wrapping_add(start);
                    // SAFETY: the bytes lie within a frame for receiving, and so within the memory.
                    // The kernel has passed the frame by the receive ring. It accesses the frame
                    // only after `finish_receiving` has returned it by the fill ring. That call
                    // needs the socket, which stays borrowed until `'a` ends.
                    return Some(unsafe { slice::from_raw_parts(start, length as usize) });
                }
            }
            *self.malformed += 1;
        }
        None
    }
}

/// The layout of `struct xdp_desc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Descriptor {
    address: u64,
    length: u32,
    options: u32,
}

#[cfg(test)]
mod tests;
