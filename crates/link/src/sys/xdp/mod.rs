//! An AF_XDP socket: memory that is shared with the kernel, in frames, and four rings through which the two hand
//! frames to each other (Documentation/networking/af_xdp.rst).
//!
//! A frame is in one place at a time. One half of them is for what arrives: with the kernel to be filled (fill
//! ring), filled (receive ring), or in our hands. The other half is for what leaves: free, with the kernel to be
//! sent (transmit ring), or sent (completion ring). What the kernel says of a frame is compared with the memory
//! before it is believed.

mod ring;
mod setup;

use super::mapping::Mapping;
use super::socket_option;
use ring::{Incoming, Outgoing, Ring};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::{ptr, slice};

/// Calls after which what the kernel still has to send waits for the next occasion.
const KICKS: usize = 8;

/// How much memory a socket has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Frames for each direction, a power of two.
    pub(crate) frames: u32,
    /// Bytes of each, 2048 or 4096.
    pub(crate) frame_size: u32,
}

impl Shape {
    /// Where the frame with this number begins: first come those for what arrives, then those for what leaves.
    const fn beginning(self, frame: u32) -> u64 {
        frame as u64 * self.frame_size as u64
    }

    /// The beginning of the frame that this address lies in.
    const fn frame_of(self, address: u64) -> u64 {
        address & !(self.frame_size as u64 - 1)
    }

    /// The same, of a frame for what arrives; `None` if it lies in none.
    fn arriving(self, address: u64) -> Option<u64> {
        (address < self.beginning(self.frames)).then(|| self.frame_of(address))
    }

    /// The same, of a frame for what leaves.
    fn leaving(self, address: u64) -> Option<u64> {
        let all = self.beginning(self.frames)..self.beginning(2 * self.frames);
        all.contains(&address).then(|| self.frame_of(address))
    }
}

/// What went wrong while a socket was made.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) what: &'static str,
    pub(crate) error: io::Error,
}

/// A bound socket with its memory.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    socket: OwnedFd,
    receive: Incoming<Descriptor>,
    fill: Outgoing<u64>,
    transmit: Outgoing<Descriptor>,
    completion: Incoming<u64>,
    /// Beginnings of frames for sending that are ours.
    free: Vec<u64>,
    memory: Mapping,
    shape: Shape,
    /// Frames that have arrived, as the kernel says, where none can be.
    malformed: u64,
}

impl XdpSocket {
    /// A socket at `queue` of the interface with this index.
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

    /// The frames that have arrived, `left` at most, of which those that are taken go off it. They are to be filled
    /// again, but the kernel hears of that in [`finish_receiving`](Self::finish_receiving) only.
    #[inline]
    pub(crate) fn arrived<'a>(&'a mut self, left: &'a mut usize) -> Arrived<'a> {
        let Self { receive, fill, memory, shape, malformed, .. } = self;
        Arrived { receive, fill, memory, shape: *shape, malformed, left }
    }

    /// Frames that have arrived where none can be, or are longer than those that can.
    pub(crate) const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Shows the kernel what was taken and given back, and wakes it if it sleeps for want of frames, or if
    /// `polls` says that it works for us when it is called only.
    pub(crate) fn finish_receiving(&mut self, polls: bool) {
        self.receive.release();
        self.fill.publish();
        if polls || self.fill.needs_wakeup() {
            // SAFETY: no memory is passed. What there is to be said of errors the next call says, too.
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

    /// Has something arrived?
    pub(crate) fn has_arrived(&mut self) -> bool {
        self.receive.has_entry()
    }

    /// A free frame, to be written; `None` if all are on their way.
    pub(crate) fn offer(&mut self) -> Option<&mut [u8]> {
        let start = usize::try_from(*self.free.last()?).ok()?;
        let length = self.shape.frame_size as usize;
        // SAFETY: a free frame lies within the memory, in its half for leaving frames, and is ours: neither the
        // kernel nor anybody else has it, and `&mut self` keeps it to one reference.
        Some(unsafe { slice::from_raw_parts_mut(self.memory.start.wrapping_add(start), length) })
    }

    /// The offered frame holds so many bytes, and is to be sent.
    pub(crate) fn commit(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(0).min(self.shape.frame_size);
        // There are as many places in the ring as frames.
        if let Some(address) = self.free.pop() {
            self.transmit.push(Descriptor { address, length, options: 0 });
        }
    }

    /// Takes back what was sent. Is there a free frame?
    pub(crate) fn reclaim(&mut self) -> bool {
        while let Some(address) = self.completion.next() {
            // What is no frame for sending, or more than there are, is nothing that we have sent.
            if let Some(frame) = self.shape.leaving(address)
                && self.free.len() < self.shape.frames as usize
            {
                self.free.push(frame);
            }
        }
        self.completion.release();
        !self.free.is_empty()
    }

    /// Shows the kernel what is to be sent, and has it send, as far as it can without waiting.
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
                    // One call sends a part; ENOBUFS is a frame that the driver has dropped.
                    Some(libc::EAGAIN | libc::EBUSY | libc::EINTR | libc::ENOBUFS) => {}
                    _ => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Has the kernel not taken everything that is to be sent?
    pub(crate) fn has_unsent(&self) -> bool {
        !self.transmit.is_empty()
    }

    /// Does the rest of it leave only if the kernel is called once more?
    pub(crate) fn wants_call(&self) -> bool {
        self.has_unsent() && self.transmit.needs_wakeup()
    }

    /// Lost for want of room for them, invalid as we have described them, lost because the receive ring was full,
    /// and times that the fill ring was empty.
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

/// Frames that have arrived, one after the other, each where the kernel put it.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    receive: &'a mut Incoming<Descriptor>,
    fill: &'a mut Outgoing<u64>,
    memory: &'a Mapping,
    shape: Shape,
    malformed: &'a mut u64,
    /// How many may still be taken.
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
                    // SAFETY: the bytes lie within a frame for what arrives, and so within the memory. The kernel has
                    // handed that over by the receive ring, and does not touch it before it sees it in the fill ring
                    // again; that takes `finish_receiving`, which has to wait for the end of `'a`.
                    return Some(unsafe { slice::from_raw_parts(start, length as usize) });
                }
            }
            *self.malformed += 1;
        }
        None
    }
}

/// `struct xdp_desc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Descriptor {
    address: u64,
    length: u32,
    options: u32,
}

#[cfg(test)]
mod tests;
