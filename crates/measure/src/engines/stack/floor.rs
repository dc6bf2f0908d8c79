//! The floor of the memory link: the time in which the bytes of a run pass through the rings of the
//! link without TCP. There are two threads, as in a run. Only the copies and checksums that TCP
//! requires remain.
//!
//! As in a run, there are four copies and two checksums. Each byte is copied to a send buffer, and
//! copied to a frame and checksummed. At the other end it is checksummed again, copied to a receive
//! buffer, and copied to the reading program. Headers are not filled in, and there are no
//! acknowledgements, timers or connections. The writer waits only if the ring is full.

use crate::bench::RunRequest;
use crate::bench_error::BenchError;
use crate::engines::cpu_pinning::PinnedThread;
use crate::engines::own_tcp::LinkWaiter;
use crate::engines::threads::joined;
use linerate_ends::Interrupt;
use linerate_ends::workload::Pattern;
use linerate_evidence::Floor;
use linerate_link::{MemoryLink, MonotonicClock};
use linerate_stack::{Link, LinkError, TxFrame};
use linerate_units::{Clock, Instant};
use linerate_wire::{Sum, checksum::copy_and_sum};
use std::thread;

/// Number of bytes of the Ethernet, IPv4 and TCP headers in a frame. These bytes cross the link,
/// but are not filled in, except for the checksum of the data in the first two bytes.
const HEADERS: usize = 14 + 20 + 20;
/// Maximum number of frames that are sent or received at once, as in a turn of a host. It is also
/// the maximum number of segments in a send buffer.
const BUDGET: usize = 64;

/// Transfers the requested bytes once from `near` to `far`, and returns the time. A frame carries
/// `payload` bytes.
pub(crate) fn measure(
    near: MemoryLink,
    far: MemoryLink,
    payload: u32,
    request: &RunRequest,
    interrupt: &Interrupt,
) -> Result<Floor, BenchError> {
    let payload = payload as usize;
    let (began, ended) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            PinnedThread::Source.pin();
            Writer::new(near, payload, request)?.write_all(interrupt)
        });
        let reader = scope.spawn(|| {
            PinnedThread::Sink.pin();
            Reader::new(far, payload, request)?.read_all(interrupt)
        });
        (joined(writer), joined(reader))
    });
    // If one thread stops early, the other thread reports that the link is down. After an
    // interrupt, that error would be misleading, so the interrupt is returned.
    let (began, ended) = match (began, ended) {
        (Err(BenchError::Interrupted), _) | (_, Err(BenchError::Interrupted)) => {
            return Err(BenchError::Interrupted);
        }
        (began, ended) => (began?, ended?),
    };
    Ok(Floor { bytes: request.bytes, time: ended.since(began), how: how(request) })
}

/// Describes how the floor is measured, for the facts of a sweep.
fn how(request: &RunRequest) -> String {
    let pattern = if request.verify { ", made and compared byte for byte as in a run" } else { "" };
    format!(
        "the same bytes through the same link and two threads, each copied four times and summed \
         twice{pattern}, without protocol"
    )
}

/// A link, with the means to wait for its events.
struct WaitingLink {
    link: MemoryLink,
    link_waiter: LinkWaiter,
}

impl WaitingLink {
    fn new(link: MemoryLink) -> Result<Self, BenchError> {
        Ok(Self { link, link_waiter: LinkWaiter::new()? })
    }

    /// Waits for an event of the link, or returns an error after an interrupt.
    fn wait(&mut self, interrupt: &Interrupt) -> Result<(), BenchError> {
        if interrupt.is_raised() {
            return Err(BenchError::Interrupted);
        }
        self.link_waiter.wait(&mut self.link, Instant::NEVER)
    }
}

/// The sending end: the writing program, its send buffer, and the frames.
struct Writer<'a> {
    waiting_link: WaitingLink,
    request: &'a RunRequest,
    pattern: Pattern,
    /// Data of one write of the program.
    block: Vec<u8>,
    /// The buffer that takes the place of TCP's send buffer.
    buffer: Vec<u8>,
    /// Number of data bytes in a full frame.
    payload: usize,
}

impl<'a> Writer<'a> {
    fn new(link: MemoryLink, payload: usize, request: &'a RunRequest) -> Result<Self, BenchError> {
        let pattern = Pattern::new(request.seed);
        let mut block = vec![0; request.write_size];
        pattern.fill(0, &mut block);
        let room = buffer_size(request.send_buffer.bytes, payload);
        Ok(Self {
            waiting_link: WaitingLink::new(link)?,
            request,
            pattern,
            block,
            buffer: vec![0; room],
            payload,
        })
    }

    /// Writes all bytes, and returns the time of the first write.
    fn write_all(mut self, interrupt: &Interrupt) -> Result<Instant, BenchError> {
        let began = MonotonicClock.now();
        let mut written = 0;
        while written < self.request.bytes {
            if interrupt.is_raised() {
                return Err(BenchError::Interrupted);
            }
            let left = usize::try_from(self.request.bytes - written).unwrap_or(usize::MAX);
            let filled = self.buffer.len().min(left);
            self.fill(written, filled);
            self.send(filled, interrupt)?;
            written += filled as u64;
        }
        // The writer returns without waiting for the reader, and thereby drops its end of the link.
        // The reader can still receive the frames that are in the link.
        Ok(began)
    }

    /// Copies `count` bytes of the program's data, from `position` on, to the send buffer: the
    /// first of the four copies of a transfer.
    fn fill(&mut self, position: u64, count: usize) {
        let mut filled = 0;
        while filled < count {
            let at = position + filled as u64;
            let offset = usize::try_from(at % self.block.len() as u64).unwrap_or(0);
            if offset == 0 && self.request.verify {
                self.pattern.fill(at, &mut self.block);
            }
            let length = (self.block.len() - offset).min(count - filled);
            self.buffer[filled..filled + length]
                .copy_from_slice(&self.block[offset..offset + length]);
            filled += length;
        }
    }

    /// Copies `count` bytes of the send buffer to frames, and computes checksums: the second of the
    /// four copies of a transfer, and the first of its two checksums.
    fn send(&mut self, count: usize, interrupt: &Interrupt) -> Result<(), BenchError> {
        let mut sent = 0;
        while sent < count {
            let (buffer, payload) = (&self.buffer, self.payload);
            let frames = self.waiting_link.link.transmit(BUDGET, |frame| {
                let length = payload.min(count - sent);
                if length == 0 {
                    return None;
                }
                let sum = copy_and_sum(
                    &buffer[sent..sent + length],
                    &mut frame[HEADERS..HEADERS + length],
                );
                frame[..2].copy_from_slice(&sum.finish().to_be_bytes());
                sent += length;
                Some(TxFrame::whole(HEADERS + length))
            });
            if frames.map_err(broken)? == 0 {
                self.waiting_link.wait(interrupt)?;
            }
        }
        Ok(())
    }
}

/// The receiving end: the frames, the receive buffer, and the reading program.
struct Reader<'a> {
    waiting_link: WaitingLink,
    request: &'a RunRequest,
    pattern: Pattern,
    /// The buffer that takes the place of TCP's receive buffer.
    buffer: Vec<u8>,
    /// The buffer into which the program reads.
    block: Vec<u8>,
    /// Number of bytes read so far.
    read: u64,
}

impl<'a> Reader<'a> {
    fn new(link: MemoryLink, payload: usize, request: &'a RunRequest) -> Result<Self, BenchError> {
        let room = buffer_size(request.receive_buffer.bytes, payload).max(BUDGET * payload);
        let pattern = Pattern::new(request.seed);
        let block = vec![0; request.read_size];
        Ok(Self {
            waiting_link: WaitingLink::new(link)?,
            request,
            pattern,
            buffer: vec![0; room],
            block,
            read: 0,
        })
    }

    /// Reads all bytes. Returns the time at which the final read ended.
    fn read_all(mut self, interrupt: &Interrupt) -> Result<Instant, BenchError> {
        while self.read < self.request.bytes {
            let arrived = self.receive()?;
            if arrived == 0 {
                self.waiting_link.wait(interrupt)?;
            }
            self.take(arrived)?;
        }
        Ok(MonotonicClock.now())
    }

    /// Verifies the checksums of frames, and copies their data to the receive buffer: the second of
    /// the two checksums of a transfer, and the third of its four copies. Returns the number of
    /// received bytes.
    fn receive(&mut self) -> Result<usize, BenchError> {
        let (buffer, mut arrived, mut damaged) = (&mut self.buffer, 0, false);
        let received = self.waiting_link.link.receive(BUDGET, |frame| {
            let data = &frame.bytes[HEADERS..];
            damaged |= Sum::of(data).finish().to_be_bytes() != frame.bytes[..2];
            buffer[arrived..arrived + data.len()].copy_from_slice(data);
            arrived += data.len();
        });
        received.map_err(broken)?;
        if damaged { Err(broken_by("a wrong checksum")) } else { Ok(arrived) }
    }

    /// Copies the first `arrived` bytes of the receive buffer to the program: the last of the four
    /// copies of a transfer.
    fn take(&mut self, arrived: usize) -> Result<(), BenchError> {
        for part in self.buffer[..arrived].chunks(self.block.len()) {
            let block = &mut self.block[..part.len()];
            block.copy_from_slice(part);
            if self.request.verify && self.pattern.verify(self.read, block).is_err() {
                return Err(broken_by("wrong data"));
            }
            self.read += part.len() as u64;
        }
        Ok(())
    }
}

/// Returns the size in bytes of the send or receive buffer if the plan requests `requested` bytes.
/// The size is a whole number of segments, from 1 to [`BUDGET`], so that the buffer fits into a
/// processor cache.
fn buffer_size(requested: u64, payload: usize) -> usize {
    let segments = usize::try_from(requested).unwrap_or(usize::MAX) / payload;
    segments.clamp(1, BUDGET) * payload
}

/// Converts an error of the link to a bench error.
fn broken(error: LinkError) -> BenchError {
    broken_by(&error.to_string())
}

fn broken_by(what: &str) -> BenchError {
    BenchError::ConnectionLost { bytes: 0, what: format!("the floor failed: {what}") }
}
