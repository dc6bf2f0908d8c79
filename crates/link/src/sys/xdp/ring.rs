//! A ring between an AF_XDP socket and the kernel: one of the two writes entries, and the other
//! reads them.

use crate::sys::mapping::Mapping;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// Flag `XDP_RING_NEED_WAKEUP` of a ring: the kernel processes the ring only when called.
const NEEDS_WAKEUP: u32 = 1;

/// The offsets of a ring's parts in its mapping: producer index, consumer index, entries, flags.
pub(super) type Places = [usize; 4];

/// A ring in memory that is shared with the kernel: two free-running indices, flags, and entries.
#[derive(Debug)]
pub(super) struct Ring<T> {
    mapping: Mapping,
    producer: usize,
    consumer: usize,
    flags: usize,
    entries: *mut T,
    size: u32,
    /// The entries before this index have been written by this program, or read by it if the
    /// kernel writes the ring.
    own: u32,
    /// The value that this program has most recently read from the kernel's index.
    seen: u32,
}

// SAFETY: the ring owns its memory, which is not bound to a thread.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `socket` that the offset `page` selects. The ring has `size` entries, a
    /// power of two.
    pub(super) fn map(socket: &OwnedFd, page: u64, places: Places, size: u32) -> io::Result<Self> {
        let [.., entries, _] = places;
        let length = entries.saturating_add(size as usize * size_of::<T>());
        Self::over(Mapping::of(socket, page, length)?, places, size)
    }

    /// Creates a ring in mapped memory. Fails if an index, the flags or the entries are misaligned
    /// or outside of the mapping.
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
        // SAFETY: `over` has checked that four aligned bytes at this offset lie in the mapping,
        // which lives as long as the ring. This program and the kernel access them atomically.
        unsafe { &*self.mapping.start.wrapping_add(place).cast::<AtomicU32>() }
    }

    fn entry(&self, index: u32) -> *mut T {
        // `over` has checked that all entries lie in the mapping. The number of entries is a power
        // of two, so an index ANDed with this number minus one refers to one of them.
        self.entries.wrapping_add((index & (self.size - 1)) as usize)
    }
}

/// A ring that the kernel writes and this program reads.
#[derive(Debug)]
pub(super) struct Incoming<T>(pub(super) Ring<T>);

impl<T: Copy> Incoming<T> {
    /// Returns whether the ring contains an entry that has not been read.
    #[inline]
    pub(super) fn has_entry(&mut self) -> bool {
        let ring = &mut self.0;
        if ring.own == ring.seen {
            // Acquire: if this load returns a new index, the entries before it are visible as well.
            ring.seen = ring.index(ring.producer).load(Ordering::Acquire);
        }
        ring.own != ring.seen
    }

    /// Reads the next entry, if there is one.
    #[inline]
    pub(super) fn next(&mut self) -> Option<T> {
        if !self.has_entry() {
            return None;
        }
        let ring = &mut self.0;
        // SAFETY: the kernel has written this entry, and does not access it before `release`. Every
        // bit pattern is a valid entry.
        let entry = unsafe { ring.entry(ring.own).read_volatile() };
        ring.own = ring.own.wrapping_add(1);
        Some(entry)
    }

    /// Returns the entries that were read to the kernel.
    pub(super) fn release(&mut self) {
        // Release: the kernel overwrites entries only after this program has read them.
        self.0.index(self.0.consumer).store(self.0.own, Ordering::Release);
    }
}

/// A ring that this program writes and the kernel reads.
#[derive(Debug)]
pub(super) struct Outgoing<T>(pub(super) Ring<T>);

impl<T: Copy> Outgoing<T> {
    /// Appends an entry. The ring cannot be full, because it has as many entries as there are
    /// frames that use it. If it were full, the entry would be dropped.
    #[inline]
    pub(super) fn push(&mut self, entry: T) {
        let ring = &mut self.0;
        if ring.own.wrapping_sub(ring.seen) >= ring.size {
            // Acquire: entries are reused only after the kernel has read them.
            ring.seen = ring.index(ring.consumer).load(Ordering::Acquire);
            if ring.own.wrapping_sub(ring.seen) >= ring.size {
                return;
            }
        }
        // SAFETY: the entry is free. The kernel has read its old value, and reads the new value
        // only after `publish`.
        unsafe { ring.entry(ring.own).write_volatile(entry) };
        ring.own = ring.own.wrapping_add(1);
    }

    pub(super) fn publish(&mut self) {
        // Release: if the kernel sees the new index, it also sees the entries before it.
        self.0.index(self.0.producer).store(self.0.own, Ordering::Release);
    }

    /// Returns whether the kernel has read all entries.
    pub(super) fn is_empty(&self) -> bool {
        self.0.index(self.0.consumer).load(Ordering::Acquire) == self.0.own
    }

    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.index(self.0.flags).load(Ordering::Relaxed) & NEEDS_WAKEUP != 0
    }
}

/// The kernel's operations on a ring, which tests perform themselves.
#[cfg(test)]
impl<T: Copy> Ring<T> {
    /// Creates an empty ring in memory of its own. Its indices begin just below their maximum, so
    /// that tests cover the wrap-around to 0.
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
    /// Appends an entry, as the kernel does.
    pub(super) fn kernel_writes(&mut self, entry: T) {
        let Self(ring) = self;
        let index = ring.index(ring.producer).load(Ordering::Relaxed);
        // SAFETY: the entry at this index belongs to the kernel, whose operations the test
        // performs.
        unsafe { ring.entry(index).write_volatile(entry) };
        ring.index(ring.producer).store(index.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
impl<T: Copy> Outgoing<T> {
    /// Sets the flag by which the kernel requests to be called.
    pub(super) fn kernel_sleeps(&mut self, sleeps: bool) {
        let Self(ring) = self;
        ring.index(ring.flags).store(if sleeps { NEEDS_WAKEUP } else { 0 }, Ordering::Relaxed);
    }

    /// Reads all published entries, as the kernel does.
    pub(super) fn kernel_reads(&mut self) -> Vec<T> {
        let Self(ring) = self;
        let shown = ring.index(ring.producer).load(Ordering::Acquire);
        let mut entries = Vec::new();
        let mut index = ring.index(ring.consumer).load(Ordering::Relaxed);
        while index != shown {
            // SAFETY: the entry was published, so it has been written.
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
    fn a_ring_outside_of_its_memory_is_refused() {
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
    fn entries_stay_in_order_also_across_the_wrap() {
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
    fn an_excess_entry_overwrites_none() {
        let mut outgoing = Outgoing(Ring::alone(2));
        (0..3_u64).for_each(|number| outgoing.push(number));
        outgoing.publish();
        assert_eq!(outgoing.kernel_reads(), [0, 1]);
    }
}
