//! An AF_XDP socket: memory that is shared with the kernel, in frames, and four rings through which the two hand
//! frames to each other (Documentation/networking/af_xdp.rst).
//!
//! A frame is in one place at a time. One half of them is for what arrives: with the kernel to be filled (fill
//! ring), filled (receive ring), or in our hands. The other half is for what leaves: free, with the kernel to be
//! sent (transmit ring), or sent (completion ring). What the kernel says of a frame is compared with the memory
//! before it is believed.

use super::socket_option;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{ptr, slice};

/// `AF_XDP`.
const FAMILY: u16 = 44;
/// `XDP_COPY`, `XDP_ZEROCOPY`, `XDP_USE_NEED_WAKEUP`, in the flags of binding.
const COPY: u16 = 2;
const ZERO_COPY: u16 = 4;
const USE_NEED_WAKEUP: u16 = 8;
/// `XDP_RING_NEED_WAKEUP`, in the flags of a ring.
const NEEDS_WAKEUP: u32 = 1;
/// How long a queue that is taken is waited for: half a second in all.
const RELEASE_STEP: Duration = Duration::from_millis(5);
const RELEASE_STEPS: u32 = 100;
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
        // SAFETY: the call takes numbers only, and the answer is a new descriptor of ours or an error.
        let socket = unsafe { libc::socket(i32::from(FAMILY), SOCKET_KIND, 0) };
        if socket < 0 {
            return Err(failed("open an AF_XDP socket")(io::Error::last_os_error()));
        }
        // SAFETY: as above.
        let socket = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(socket) };
        let bytes = shape.frame_size as usize * 2 * shape.frames as usize;
        let memory = Mapping::anonymous(bytes).map_err(failed("have memory for frames"))?;
        register(&socket, &memory, shape).map_err(failed("share memory for frames"))?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            socket_option::set_integer(&socket, libc::SOL_XDP, ring, shape.frames.cast_signed())
                .map_err(failed("have a ring"))?;
        }
        let [receive, transmit, fill, completion] =
            offsets(&socket).map_err(failed("be told of its rings"))?;
        let mapped = failed("map a ring");
        let mut opened = Self {
            receive: Incoming(Ring::map(&socket, 0, receive, shape.frames).map_err(&mapped)?),
            transmit: Outgoing(Ring::map(&socket, 0x8000_0000, transmit, shape.frames).map_err(&mapped)?),
            fill: Outgoing(Ring::map(&socket, 0x1_0000_0000, fill, shape.frames).map_err(&mapped)?),
            completion: Incoming(
                Ring::map(&socket, 0x1_8000_0000, completion, shape.frames).map_err(&mapped)?,
            ),
            free: (shape.frames..2 * shape.frames).map(|frame| shape.address(frame)).collect(),
            socket,
            memory,
            shape,
        };
        for frame in 0..shape.frames {
            opened.fill.push(shape.address(frame));
        }
        opened.fill.publish();
        if let Some(microseconds) = busy_poll {
            prefer_busy_poll(&opened.socket, microseconds).map_err(failed("poll busily"))?;
        }
        let flags = USE_NEED_WAKEUP | if zero_copy { ZERO_COPY } else { COPY };
        bind(&opened.socket, interface, queue, flags).map_err(failed("bind to the queue"))?;
        Ok(opened)
    }

    /// The frame that arrived first, where the kernel put it; the empty one if the kernel has named a place that
    /// is none. `None` if nothing has arrived.
    pub(crate) fn front(&mut self) -> Option<&[u8]> {
        let Descriptor { address, length, .. } = self.receive.front()?;
        let (start, length) = (usize::try_from(address).ok()?, length as usize);
        let receiving = self.shape.frame_size as usize * self.shape.frames as usize;
        if start.checked_add(length).is_none_or(|end| end > receiving) {
            return Some(&[]);
        }
        // SAFETY: the bytes lie within the memory, in its half for arriving frames. The kernel has handed this
        // frame over by the receive ring and does not touch it before it is in the fill ring again, which
        // `recycle` does, for which this borrow has to end.
        Some(unsafe { slice::from_raw_parts(self.memory.start.wrapping_add(start), length) })
    }

    /// Goes on to the next frame, and gives the front one back to be filled.
    pub(crate) fn recycle(&mut self) {
        if let Some(Descriptor { address, .. }) = self.receive.front() {
            self.receive.advance();
            // The kernel wants the beginning of the frame, and has named that of the packet in it.
            let frame = address - address % u64::from(self.shape.frame_size);
            if address < u64::from(self.shape.frame_size) * u64::from(self.shape.frames) {
                self.fill.push(frame);
            }
        }
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
        self.receive.front().is_some()
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
        let (size, frames) = (u64::from(self.shape.frame_size), u64::from(self.shape.frames));
        while let Some(address) = self.completion.front() {
            self.completion.advance();
            let frame = address - address % size;
            // What is no frame for sending, or more than there are, is nothing that we have sent.
            if (frames..2 * frames).contains(&(frame / size)) && (self.free.len() as u64) < frames {
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
            if self.transmit.is_empty() || !self.transmit.needs_wakeup() {
                return Ok(());
            }
            // SAFETY: no memory is passed.
            let result = unsafe {
                libc::sendto(self.socket.as_raw_fd(), ptr::null(), 0, libc::MSG_DONTWAIT, ptr::null(), 0)
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

    /// Is everything with the kernel that can be?
    pub(crate) fn has_unsent(&self) -> bool {
        !self.transmit.is_empty()
    }

    /// Lost for want of room for them, invalid as we have described them, lost because the receive ring was full,
    /// and times that the fill ring was empty.
    pub(crate) fn statistics(&self) -> io::Result<[u64; 6]> {
        let mut bytes = [0; 48];
        socket_option::get(&self.socket, libc::SOL_XDP, libc::XDP_STATISTICS, &mut bytes)?;
        let (words, _) = bytes.as_chunks();
        let mut numbers = [0; 6];
        numbers.iter_mut().zip(words).for_each(|(number, word)| *number = u64::from_ne_bytes(*word));
        Ok(numbers)
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const SOCKET_KIND: i32 = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

impl Shape {
    const fn address(self, frame: u32) -> u64 {
        frame as u64 * self.frame_size as u64
    }
}

/// `struct xdp_umem_reg`: address, length, size of a frame, headroom, flags, length of metadata.
fn register(socket: &OwnedFd, memory: &Mapping, shape: Shape) -> io::Result<()> {
    let mut request = [0; 32];
    request[..8].copy_from_slice(&(memory.start.expose_provenance() as u64).to_ne_bytes());
    request[8..16].copy_from_slice(&(memory.length as u64).to_ne_bytes());
    request[16..20].copy_from_slice(&shape.frame_size.to_ne_bytes());
    // From here on the kernel writes into that memory: it is mapped for as long as the socket lives, and looked at
    // in those frames only which the rings say are ours.
    socket_option::set(socket, libc::SOL_XDP, libc::XDP_UMEM_REG, &request)
}

fn prefer_busy_poll(socket: &OwnedFd, microseconds: i32) -> io::Result<()> {
    for (name, value) in
        [(libc::SO_PREFER_BUSY_POLL, 1), (libc::SO_BUSY_POLL, microseconds), (libc::SO_BUSY_POLL_BUDGET, 64)]
    {
        socket_option::set_integer(socket, libc::SOL_SOCKET, name, value)?;
    }
    Ok(())
}

/// Binds to a queue. The kernel takes a queue from a socket that was closed a moment later, and tells nobody when:
/// one that is taken is tried again for a while.
fn bind(socket: &OwnedFd, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    for _ in 0..RELEASE_STEPS {
        match try_to_bind(socket, interface, queue, flags) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(RELEASE_STEP),
            outcome => return outcome,
        }
    }
    try_to_bind(socket, interface, queue, flags)
}

fn try_to_bind(socket: &OwnedFd, interface: u32, queue: u32, flags: u16) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: FAMILY,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let length = libc::socklen_t::try_from(size_of_val(&address)).unwrap_or(0);
    // SAFETY: the kernel reads `length` bytes, which are the whole of the address, and keeps no pointer.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Where the parts of a ring are in its mapping: producer, consumer, entries, flags.
type Places = [u64; 4];

/// The places of the rings to receive, transmit, fill and complete.
fn offsets(socket: &OwnedFd) -> io::Result<[Places; 4]> {
    let mut bytes = [0; 128];
    if socket_option::get(socket, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut bytes)? < bytes.len() {
        // Kernels before 5.4 have no flags, and no way to be woken only when they want it.
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let (words, _) = bytes.as_chunks::<8>();
    let mut places = [[0; 4]; 4];
    places.as_flattened_mut().iter_mut().zip(words).for_each(|(to, word)| *to = u64::from_ne_bytes(*word));
    Ok(places)
}

/// `struct xdp_desc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Descriptor {
    address: u64,
    length: u32,
    options: u32,
}

/// A ring in memory that is shared with the kernel: two free-running indices, and entries.
#[derive(Debug)]
struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: *mut T,
    size: u32,
    /// Our own index, up to which entries are written or read.
    own: u32,
    /// The kernel's index, as it was last seen.
    seen: u32,
}

// SAFETY: a ring is memory that belongs to it until it is dropped, and is bound to no thread.
unsafe impl<T> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn map(socket: &OwnedFd, page: u64, places: Places, size: u32) -> io::Result<Self> {
        let [producer, consumer, entries, flags] =
            places.map(|place| usize::try_from(place).unwrap_or(usize::MAX));
        let length = entries.saturating_add(size as usize * size_of::<T>());
        let mapping = Mapping::of(socket, page, length)?;
        let fits = |place: usize| place.is_multiple_of(4) && place.saturating_add(4) <= length;
        if ![producer, consumer, flags].into_iter().all(fits) || !entries.is_multiple_of(align_of::<T>()) {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        let entries = mapping.start.wrapping_add(entries).cast();
        Ok(Self { mapping, producer, consumer, flags, entries, size, own: 0, seen: 0 })
    }

    fn index(&self, place: usize) -> &AtomicU32 {
        // SAFETY: `map` has seen that four aligned bytes are mapped there, which live as long as the ring; both
        // sides access them as one atomic number.
        unsafe { &*self.mapping.start.wrapping_add(place).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        // The size is a power of two, so the place is one of the ring's.
        self.entries.wrapping_add((index & (self.size - 1)) as usize)
    }
}

/// A ring that the kernel writes.
#[derive(Debug)]
struct Incoming<T>(Ring<T>);

impl<T: Copy> Incoming<T> {
    fn front(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.own == ring.seen {
            // Acquire: the entries are there before the index that shows them.
            ring.seen = ring.index(ring.producer).load(Ordering::Acquire);
            if ring.own == ring.seen {
                return None;
            }
        }
        // SAFETY: the kernel has written this entry and does not touch it before `release`; every pattern of its
        // bits is a value.
        Some(unsafe { ring.entry(ring.own).read_volatile() })
    }

    /// Goes on to the entry after the front one, which was there.
    fn advance(&mut self) {
        self.0.own = self.0.own.wrapping_add(1);
    }

    /// Gives the places of what was read back.
    fn release(&mut self) {
        // Release: the reads of the entries come before the kernel writes there again.
        self.0.index(self.0.consumer).store(self.0.own, Ordering::Release);
    }
}

/// A ring that we write.
#[derive(Debug)]
struct Outgoing<T>(Ring<T>);

impl<T: Copy> Outgoing<T> {
    /// Writes an entry, for which there is always a place: a ring has as many as there are frames for it. One that
    /// is too many is lost.
    fn push(&mut self, entry: T) {
        let ring = &mut self.0;
        if ring.own.wrapping_sub(ring.seen) >= ring.size {
            // Acquire: the kernel has read what it has given back.
            ring.seen = ring.index(ring.consumer).load(Ordering::Acquire);
            if ring.own.wrapping_sub(ring.seen) >= ring.size {
                return;
            }
        }
        // SAFETY: the place is free: the kernel has read what was there, and reads it again after `publish` only.
        unsafe { ring.entry(ring.own).write_volatile(entry) };
        ring.own = ring.own.wrapping_add(1);
    }

    fn publish(&mut self) {
        // Release: the entries are in memory before the index that shows them.
        self.0.index(self.0.producer).store(self.0.own, Ordering::Release);
    }

    /// Has the kernel taken everything?
    fn is_empty(&self) -> bool {
        self.0.index(self.0.consumer).load(Ordering::Acquire) == self.0.own
    }

    fn needs_wakeup(&self) -> bool {
        self.0.index(self.0.flags).load(Ordering::Relaxed) & NEEDS_WAKEUP != 0
    }
}

/// Mapped memory, until it is dropped.
#[derive(Debug)]
struct Mapping {
    start: *mut u8,
    length: usize,
}

// SAFETY: mapped memory is bound to no thread.
unsafe impl Send for Mapping {}

impl Mapping {
    fn anonymous(length: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses a place where nothing is.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        Ok(Self { start: start.cast(), length })
    }

    fn of(socket: &OwnedFd, page: u64, length: usize) -> io::Result<Self> {
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: as above.
        let start = unsafe {
            mmap(ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, flags, socket, page)
        }?;
        Ok(Self { start: start.cast(), length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and whoever borrowed from it is gone. The kernel has pages of its
        // own hold on them, should it still be writing there.
        let _ = unsafe { munmap(self.start.cast(), self.length) };
    }
}
