//! A ring of an AF_XDP socket, one end of which is the kernel's: entries that it reads, or that it writes.

use super::setup::Places;
use crate::sys::mapping::Mapping;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// `XDP_RING_NEED_WAKEUP`, in the flags of a ring.
const NEEDS_WAKEUP: u32 = 1;

/// A ring in memory that is shared with the kernel: two free-running indices, and entries.
#[derive(Debug)]
pub(super) struct Ring<T> {
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
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// The ring of `socket` that is mapped at this page, of `size` entries, a power of two.
    pub(super) fn map(socket: &OwnedFd, page: u64, places: Places, size: u32) -> io::Result<Self> {
        let [.., entries, _] = places;
        let length = entries.saturating_add(size as usize * size_of::<T>());
        Self::over(Mapping::of(socket, page, length)?, places, size)
    }

    /// The same in memory that is mapped, if it can be there.
    fn over(mapping: Mapping, places: Places, size: u32) -> io::Result<Self> {
        let [producer, consumer, entries, flags] = places;
        let fits = |place: usize, align: usize, bytes: usize| {
            place.is_multiple_of(align) && place.saturating_add(bytes) <= mapping.length
        };
        let has_numbers = [producer, consumer, flags].into_iter().all(|place| fits(place, 4, 4));
        if !has_numbers || !fits(entries, align_of::<T>(), size as usize * size_of::<T>()) {
            return Err(io::Error::from_raw_os_error(libc::EPROTO));
        }
        let entries = mapping.start.wrapping_add(entries).cast();
        Ok(Self { mapping, producer, consumer, flags, entries, size, own: 0, seen: 0 })
    }

    fn index(&self, place: usize) -> &AtomicU32 {
        // SAFETY: `over` has seen that four aligned bytes are mapped there, which live as long as the ring; both
        // sides access them as one atomic number.
        unsafe { &*self.mapping.start.wrapping_add(place).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        // The size is a power of two, so the place is one of the ring's, which `over` has seen to be mapped.
        self.entries.wrapping_add((index & (self.size - 1)) as usize)
    }
}

/// A ring that the kernel writes.
#[derive(Debug)]
pub(super) struct Incoming<T>(pub(super) Ring<T>);

impl<T: Copy> Incoming<T> {
    /// Has the kernel written an entry that was not read?
    #[inline]
    pub(super) fn has_entry(&mut self) -> bool {
        let ring = &mut self.0;
        if ring.own == ring.seen {
            // Acquire: the entries are there before the index that shows them.
            ring.seen = ring.index(ring.producer).load(Ordering::Acquire);
        }
        ring.own != ring.seen
    }

    /// The next entry.
    #[inline]
    pub(super) fn next(&mut self) -> Option<T> {
        if !self.has_entry() {
            return None;
        }
        let ring = &mut self.0;
        // SAFETY: the kernel has written this entry and does not touch it before `release`; every pattern of its
        // bits is a value.
        let entry = unsafe { ring.entry(ring.own).read_volatile() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// Gives the places of what was read back.
    pub(super) fn release(&mut self) {
        // Release: the reads of the entries come before the kernel writes there again.
        self.0.index(self.0.consumer).store(self.0.own, Ordering::Release);
    }
}

/// A ring that we write.
#[derive(Debug)]
pub(super) struct Outgoing<T>(pub(super) Ring<T>);

impl<T: Copy> Outgoing<T> {
    /// Writes an entry, for which there is always a place: a ring has as many as there are frames for it. One that
    /// is too many is lost.
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
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

    pub(super) fn publish(&mut self) {
        // Release: the entries are in memory before the index that shows them.
        self.0.index(self.0.producer).store(self.0.own, Ordering::Release);
    }

    /// Has the kernel taken everything?
    pub(super) fn is_empty(&self) -> bool {
        self.0.index(self.0.consumer).load(Ordering::Acquire) == self.0.own
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.index(self.0.flags).load(Ordering::Relaxed) & NEEDS_WAKEUP != 0
    }
}

/// For tests without a kernel, which do its part.
#[cfg(test)]
impl<T: Copy> Ring<T> {
    /// An empty ring in memory of its own, whose indices are about to begin again at 0.
    pub(super) fn alone(size: u32) -> Self {
        let mapping = Mapping::anonymous(256 + size as usize * size_of::<T>()).unwrap();
        let mut ring = Self::over(mapping, [0, 64, 256, 128], size).unwrap();
        (ring.own, ring.seen) = (u32::MAX - 1, u32::MAX - 1);
        for place in [ring.producer, ring.consumer] {
            ring.index(place).store(ring.own, Ordering::Relaxed);
        }
        ring
    }
}

#[cfg(test)]
impl<T: Copy> Incoming<T> {
    /// The kernel writes an entry.
    pub(super) fn kernel_writes(&mut self, entry: T) {
        let Self(ring) = self;
        let index = ring.index(ring.producer).load(Ordering::Relaxed);
        // SAFETY: the place is the kernel's, which the test is.
        unsafe { ring.entry(index).write_volatile(entry) };
        ring.index(ring.producer).store(index.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
impl<T: Copy> Outgoing<T> {
    /// The kernel says whether it has to be called.
    pub(super) fn kernel_sleeps(&mut self, sleeps: bool) {
        let Self(ring) = self;
        ring.index(ring.flags).store(if sleeps { NEEDS_WAKEUP } else { 0 }, Ordering::Relaxed);
    }

    /// The kernel reads all entries that it is shown.
    pub(super) fn kernel_reads(&mut self) -> Vec<T> {
        let Self(ring) = self;
        let shown = ring.index(ring.producer).load(Ordering::Acquire);
        let mut entries = Vec::new();
        let mut index = ring.index(ring.consumer).load(Ordering::Relaxed);
        while index != shown {
            // SAFETY: it was written before it was shown.
            entries.push(unsafe { ring.entry(index).read_volatile() });
            index = index.wrapping_add(1);
        }
        ring.index(ring.consumer).store(index, Ordering::Release);
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_does_not_lie_in_its_memory_is_refused() {
        let over = |places| Ring::<u64>::over(Mapping::anonymous(256 + 64).unwrap(), places, 8);
        assert!(over([0, 64, 256, 128]).is_ok());
        for places in [
            [2, 64, 256, 128],
            [0, 320, 256, 128],
            [0, 64, 257, 128],
            [0, 64, 264, 128],
            [0, 64, usize::MAX - 7, 128],
            [0, 64, 256, usize::MAX - 3],
        ] {
            assert!(over(places).is_err(), "{places:?}");
        }
    }

    #[test]
    fn entries_come_out_in_their_order_and_where_the_numbers_begin_again() {
        let mut incoming = Incoming(Ring::alone(4));
        let mut outgoing = Outgoing(Ring::alone(4));
        assert_eq!(incoming.next(), None);
        for number in 0..20_u64 {
            incoming.kernel_writes(number);
            incoming.kernel_writes(number + 100);
            assert_eq!(
                [incoming.next(), incoming.next(), incoming.next()],
                [Some(number), Some(number + 100), None]
            );
            incoming.release();
            outgoing.push(number);
            assert!(outgoing.kernel_reads().is_empty(), "it is not shown yet");
            outgoing.publish();
            assert!(!outgoing.is_empty());
            assert_eq!(outgoing.kernel_reads(), [number]);
            assert!(outgoing.is_empty());
        }
    }

    #[test]
    fn an_entry_for_which_there_is_no_place_overwrites_none() {
        let mut outgoing = Outgoing(Ring::alone(2));
        (0..3_u64).for_each(|number| outgoing.push(number));
        outgoing.publish();
        assert_eq!(outgoing.kernel_reads(), [0, 1]);
    }
}
